//! Whose rules are meant: those of a running broker, or those that one would have.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use thrum_access::{Admission, Identity};
use thrum_auth::AuthService;
use thrum_auth::config::USERS;

use crate::command::Failure;
#[cfg(feature = "management")]
use crate::command::running::Broker;
use crate::command::running::{Reached, Running};
use crate::config::{self, Request};

/// Whose rules.
#[derive(Debug, Args)]
pub(super) struct Place {
    #[command(flatten)]
    running: Running,
}

/// What has them.
pub(super) enum Rules {
    /// A configuration, with the file of its users.
    Files(Arc<AuthService>),
    /// A running broker.
    #[cfg(feature = "management")]
    Broker(Broker),
}

impl Place {
    /// Finds it out, and reads the files if no broker runs.
    pub(super) fn rules(&self) -> anyhow::Result<Rules> {
        let (file, data_dir) = match self.running.reach()? {
            #[cfg(feature = "management")]
            Reached::Running(broker) => return Ok(Rules::Broker(broker)),
            Reached::DataDir(data_dir) => (None, Some(data_dir)),
            Reached::Configuration(file) => (file, None),
        };
        read(file, data_dir).map(Rules::Files)
    }
}

fn read(file: Option<PathBuf>, data_dir: Option<PathBuf>) -> anyhow::Result<Arc<AuthService>> {
    let data_dir = data_dir.map(|folder| folder.to_string_lossy().into_owned());
    let flag = data_dir.map(|folder| ("node.data_dir", folder, "--data-dir"));
    let request = Request {
        file,
        flags: flag.into_iter().collect(),
        ..Request::default()
    };
    let loaded = config::load(&request).map_err(Failure::usage)?;
    AuthService::start(&loaded.config.access()).map_err(Failure::usage)
}

/// The rights of a client that would connect, and whose they are: those of the user in the store,
/// or those of anybody of that name.
pub(super) fn admission(
    auth: &AuthService,
    identity: Identity,
) -> anyhow::Result<(Admission, &'static str)> {
    let admission = auth.admission_of(identity).map_err(Failure::usage)?;
    let is_of_store = admission.identity.backend.as_deref() == Some(USERS);
    Ok((admission, if is_of_store { "store" } else { "name" }))
}
