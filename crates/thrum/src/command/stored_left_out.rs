//! Where what a broker has stored is: in a data directory; brokers cannot be asked by a program
//! that was built without the management interface.

use clap::Args;

use super::data_dir::DataDir;

/// Where it is.
#[derive(Debug, Args)]
pub(super) struct Stored {
    #[command(flatten)]
    data_dir: DataDir,
}

/// What has it.
pub(super) enum Place {
    /// A directory of this machine, whether a broker has it or not.
    Directory(DataDir),
}

impl Stored {
    /// Finds it out.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the same as in a complete program"
    )]
    pub(super) fn place(&self) -> anyhow::Result<Place> {
        Ok(Place::Directory(self.data_dir.clone()))
    }

    /// The same, to change something.
    pub(super) fn place_to_change(&self) -> anyhow::Result<Place> {
        self.place()
    }
}
