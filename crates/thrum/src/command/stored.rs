//! Where what a broker has stored is: in a data directory, or at a broker elsewhere.

use clap::Args;

use super::data_dir::DataDir;
use super::running::{Broker, Running};

/// Where it is.
#[derive(Debug, Args)]
pub(super) struct Stored {
    #[command(flatten)]
    running: Running,
}

/// What has it.
pub(super) enum Place {
    /// A directory of this machine, whether a broker has it or not.
    Directory(DataDir),
    /// A broker elsewhere.
    Broker(Broker),
}

impl Stored {
    /// Finds it out.
    pub(super) fn place(&self) -> anyhow::Result<Place> {
        Ok(match self.running.broker()? {
            Broker::Local(path) => Place::Directory(DataDir::at(path)),
            broker @ Broker::Remote(_) => Place::Broker(broker),
        })
    }

    /// A broker that runs on a directory is preferred to the directory, which it has locked.
    pub(super) fn place_to_change(&self) -> anyhow::Result<Place> {
        let broker = self.running.broker()?;
        if broker.is_reachable() {
            return Ok(Place::Broker(broker));
        }
        self.place()
    }
}
