//! Routes about the program around the broker: its configuration, listeners, log and alarms, the
//! node, its storage and backups.

mod alarms;
mod backups;
mod configuration;
mod error;
mod listeners;
mod log_stream;
mod logs;
mod node;
mod storage;

use utoipa_axum::routes;

use super::routes::Routes;
use crate::login::Scope;

pub(super) use backups::FILES_MAX as BACKUP_FILES_MAX;
pub(super) use error::no_program;

pub use alarms::{Alarm, AlarmHistory, AlarmList, PastAlarm};
pub use backups::{Backup, BackupPage};
pub use configuration::{
    Applied, Configuration, ConfigurationKey, ConfigurationVersion, Difference, OverriddenKey,
    Plan, Reloaded, VersionList,
};
pub use listeners::{
    Certificate, CertificateRenewal, ListenerDetail, ListenerLimits, ListenerList, ListenerTls,
    StoppedListener,
};
pub use logs::{LevelChange, LevelList, LogLine, LogPage, RaisedLevel};
pub use node::{Host, Node, NodeLimits, Process, Worker};
pub use storage::{StorageDisk, StorageState};

/// Requests that wait for the program, each in a thread; more wait for a permit. They wait for each
/// other in the program anyway.
pub(in crate::api) const PROGRAM_TASKS_MAX: usize = 3;

/// All of them.
pub(in crate::api) fn routes(routes: Routes) -> Routes {
    let (read, write) = (Scope::ConfigRead, Scope::ConfigWrite);
    routes
        .scoped(read, routes!(configuration::list))
        .scoped(read, routes!(configuration::schema))
        .scoped(read, routes!(configuration::versions))
        .scoped(read, routes!(configuration::show))
        .scoped(write, routes!(configuration::plan))
        .scoped(write, routes!(configuration::apply))
        .scoped(write, routes!(configuration::roll_back))
        .scoped(write, routes!(configuration::reload))
        .scoped(read, routes!(listeners::list))
        .scoped(read, routes!(listeners::show))
        .scoped(write, routes!(listeners::stop))
        .scoped(write, routes!(listeners::start))
        .scoped(write, routes!(listeners::reload_certificates))
        .scoped(Scope::LogsRead, routes!(logs::list))
        .scoped(Scope::LogsRead, routes!(logs::levels))
        .scoped(write, routes!(logs::set_level))
        .scoped(Scope::MetricsRead, routes!(alarms::list))
        .scoped(Scope::MetricsRead, routes!(alarms::history))
        .scoped(Scope::MetricsRead, routes!(node::show))
        .scoped(Scope::MetricsRead, routes!(storage::show))
        .scoped(Scope::Admin, routes!(backups::list, backups::make))
        .scoped(Scope::Admin, routes!(backups::show, backups::remove))
        .scoped(Scope::Admin, routes!(backups::fetch))
}
