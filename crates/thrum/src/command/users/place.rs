//! Where users are: at a broker that runs, or in the file of one that does not.

use std::path::PathBuf;

use clap::Args;

use super::store_file::StoreFile;
#[cfg(feature = "management")]
use crate::command::running::Broker;
use crate::command::running::{OPTIONS, Reached, Running};

/// Where users are.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// File of a user store, whether a broker runs or not; created if it does not exist.
    #[arg(long, value_name = "FILE", conflicts_with_all = OPTIONS)]
    users: Option<PathBuf>,
    #[command(flatten)]
    running: Running,
}

/// What has the users.
pub(super) enum Store {
    /// A file: no broker runs, or a running one looks into it each second.
    File(StoreFile),
    /// A running broker.
    #[cfg(feature = "management")]
    Broker(Broker),
}

impl Place {
    /// A broker that runs is asked: it knows its file, and its audit log says who changed what.
    pub(super) fn store(&self) -> anyhow::Result<Store> {
        if let Some(file) = &self.users {
            return Ok(Store::File(StoreFile::named(file.clone())));
        }
        Ok(match self.running.reach()? {
            #[cfg(feature = "management")]
            Reached::Running(broker) => Store::Broker(broker),
            Reached::DataDir(data_dir) => Store::File(StoreFile::in_data_dir(data_dir)),
            Reached::Configuration(file) => {
                Store::File(StoreFile::of_configuration(file.as_deref())?)
            }
        })
    }
}
