//! What the management interface asks of this program; nearly all of it is done by the thread that
//! has the broker.

use serde_json::Value;
use thrum_management::api::{Applied, Backup, Configuration, ConfigurationVersion, Plan, Reloaded};
use thrum_management::{
    BackupEnded, Benchmarks, ChangeOrder, ConfigurationChanges, ListenerOrder, OpenBackup, Program,
    ProgramError, RollbackOrder,
};

use super::benchmarks::HostedBenchmarks;
use super::tasks::{Around, Serving};
use crate::command::KeptBackups;
use crate::config;

/// This program around its broker.
#[derive(Clone, Debug)]
pub(crate) struct Operated {
    pub(crate) around: Around,
    pub(crate) backups: KeptBackups,
    pub(crate) benchmarks: HostedBenchmarks,
}

impl Program for Operated {
    fn configuration(&self) -> Result<Configuration, ProgramError> {
        self.around.ask.ask(|serving| serving.configuration())?
    }

    fn schema(&self) -> Value {
        config::json_schema()
    }

    fn plan(&self, changes: ConfigurationChanges) -> Result<Plan, ProgramError> {
        self.around.ask.ask(move |serving| serving.plan(&changes))?
    }

    fn apply(&self, order: ChangeOrder) -> Result<Applied, ProgramError> {
        self.around.ask.ask(move |serving| serving.apply(&order))?
    }

    fn versions(&self) -> Result<Vec<ConfigurationVersion>, ProgramError> {
        self.around.ask.ask(|serving| serving.versions())?
    }

    fn plan_rollback(&self, version: u64) -> Result<Plan, ProgramError> {
        self.around
            .ask
            .ask(move |serving| serving.plan_rollback(version))?
    }

    fn roll_back(&self, order: RollbackOrder) -> Result<Applied, ProgramError> {
        self.around
            .ask
            .ask(move |serving| serving.roll_back(&order))?
    }

    fn reload(&self) -> Result<Reloaded, ProgramError> {
        self.around.ask.ask(Serving::reload)?
    }

    fn set_listener(&self, order: ListenerOrder) -> Result<(), ProgramError> {
        self.around
            .ask
            .ask(move |serving| serving.set_listener(&order))?
    }

    fn renew_certificates(&self) -> Result<Vec<String>, ProgramError> {
        self.around
            .ask
            .ask(|serving| serving.broker.renew_certificates())
    }

    fn set_log_directives(&self, directives: Vec<String>) -> Result<(), ProgramError> {
        let set = self.around.level.add(directives);
        set.map_err(|error| ProgramError::Refused(format!("{error:#}")))
    }

    fn log_level(&self) -> String {
        self.around.level.configured()
    }

    fn begin_backup(&self, ended: BackupEnded) -> Result<Backup, ProgramError> {
        self.backups.begin(ended)
    }

    fn backups(&self) -> Result<Vec<Backup>, ProgramError> {
        self.backups.list()
    }

    fn unfinished_backup(&self) -> Option<Backup> {
        self.backups.unfinished()
    }

    fn open_backup(&self, name: &str) -> Result<OpenBackup, ProgramError> {
        self.backups.open(name)
    }

    fn remove_backup(&self, name: &str) -> Result<(), ProgramError> {
        self.backups.remove(name)
    }

    fn benchmarks(&self) -> &dyn Benchmarks {
        &self.benchmarks
    }
}
