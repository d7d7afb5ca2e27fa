//! Where administrators are changed: in a broker that runs, or in the data directory of one that is
//! stopped.

use std::io::Write as _;

use serde_json::Value;
use thrum_management::{StoppedBroker, StoppedChange};

use crate::command::Failure;
use crate::command::running::{Method, Running, encoded, refused};

/// A change as a running broker takes it.
pub(super) struct Asked<'a> {
    pub(super) method: Method,
    /// Of the route.
    pub(super) path: String,
    /// Null for none.
    pub(super) body: Value,
    /// The same for a stopped one.
    pub(super) stopped: StoppedChange,
    /// Name of the administrator.
    pub(super) name: &'a str,
}

impl Asked<'_> {
    /// Carries it out.
    pub(super) fn carry_out(self, running: &Running) -> anyhow::Result<()> {
        let Some(data_dir) = running.stopped()? else {
            return running.change(self.method, &self.path, &self.body);
        };
        let broker = StoppedBroker::open(&data_dir).map_err(Failure::usage)?;
        let changed = broker.change(self.name, self.stopped);
        changed.map_err(|problem| refused(&problem))?;
        writeln!(
            std::io::stderr(),
            "no broker runs on {}: its file was changed",
            data_dir.display()
        )?;
        Ok(())
    }
}

/// The path of an administrator.
pub(super) fn path_of(name: &str) -> String {
    format!("/admins/{}", encoded(name))
}
