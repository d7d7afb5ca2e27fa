//! The files of a broker: a program that was built without the management interface cannot ask a
//! running one.

use std::path::PathBuf;

use clap::Args;

/// The options that name a broker.
pub(super) const OPTIONS: [&str; 2] = ["data_dir", "config"];

/// The broker whose files are meant.
#[derive(Clone, Debug, Args)]
pub(super) struct Running {
    /// Data directory of the broker, as `node.data_dir` names it.
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    data_dir: Option<PathBuf>,
    /// Configuration of the broker, which names the data directory; without it
    /// /etc/thrum/thrum.toml.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Where the files are.
#[derive(Debug)]
pub(super) enum Reached {
    /// In this data directory.
    DataDir(PathBuf),
    /// Where this configuration says, or that of the system.
    Configuration(Option<PathBuf>),
}

impl Running {
    /// Where its files are.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "the same as in a complete program"
    )]
    pub(super) fn reach(&self) -> anyhow::Result<Reached> {
        let data_dir = self.data_dir.clone().map(Reached::DataDir);
        Ok(data_dir.unwrap_or_else(|| Reached::Configuration(self.config.clone())))
    }
}
