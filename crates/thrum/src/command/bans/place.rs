//! Where bans are: at a broker that runs, or in the file of one that does not.

use std::path::{Path, PathBuf};

use clap::Args;
use thrum_broker::{BanFile, BanFileError};
use thrum_protection::BanList;

#[cfg(feature = "management")]
use crate::command::running::Broker;
use crate::command::running::{OPTIONS, Reached, Running};
use crate::command::{Failure, root_alone};
use crate::config::{self, Request};

/// Where bans are.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// File of bans, whether a broker runs or not, if `protection.bans` names one.
    #[arg(long, value_name = "FILE", conflicts_with_all = OPTIONS)]
    file: Option<PathBuf>,
    #[command(flatten)]
    running: Running,
}

/// What has the bans.
pub(super) enum Bans {
    /// Files: no broker runs, or a running one looks into them each second.
    Files(BanFiles),
    /// A running broker.
    #[cfg(feature = "management")]
    Broker(Broker),
}

/// The files of a broker.
pub(super) struct BanFiles {
    /// The bans of the administrator.
    pub(super) listed: BanFile,
    /// Those that the broker made for a time, if it has a data directory.
    pub(super) temporary: Option<BanFile>,
    /// Not in a data directory, in which a file is given to the broker.
    named: Option<PathBuf>,
}

impl Place {
    /// A broker that runs is asked: it knows its file, and its audit log says who changed what.
    pub(super) fn bans(&self) -> anyhow::Result<Bans> {
        if let Some(file) = &self.file {
            return BanFiles::named(file.clone(), None).map(Bans::Files);
        }
        match self.running.reach()? {
            #[cfg(feature = "management")]
            Reached::Running(broker) => Ok(Bans::Broker(broker)),
            Reached::DataDir(data_dir) => BanFiles::in_data_dir(&data_dir).map(Bans::Files),
            Reached::Configuration(file) => BanFiles::of_configuration(file).map(Bans::Files),
        }
    }
}

impl BanFiles {
    fn in_data_dir(data_dir: &Path) -> anyhow::Result<Self> {
        if !data_dir.is_dir() {
            return Err(missing(data_dir, "node.data_dir"));
        }
        Ok(Self {
            listed: BanFile::in_data_dir(data_dir),
            temporary: Some(BanFile::temporary_in(data_dir)),
            named: None,
        })
    }

    fn named(file: PathBuf, data_dir: Option<&Path>) -> anyhow::Result<Self> {
        let folder = file.parent();
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(missing(folder, "protection.bans"));
        }
        Ok(Self {
            listed: BanFile::at(file.clone()),
            temporary: data_dir.map(BanFile::temporary_in),
            named: Some(file),
        })
    }

    fn of_configuration(file: Option<PathBuf>) -> anyhow::Result<Self> {
        let request = Request {
            file,
            ..Request::default()
        };
        let loaded = config::load(&request).map_err(Failure::usage)?;
        let broker = loaded.config.broker();
        let is_set = |path: &&PathBuf| !path.as_os_str().is_empty();
        let data_dir = Some(&broker.node.data_dir).filter(is_set);
        let bans = Some(&broker.protection.bans).filter(is_set);
        match (bans, data_dir) {
            (Some(file), data_dir) => Self::named(file.clone(), data_dir.map(|dir| &**dir)),
            (None, Some(data_dir)) => Self::in_data_dir(data_dir),
            (None, None) => Err(Failure::usage(
                "where are the bans? name the broker's data directory with --data-dir DIR, its configuration with -c FILE, \
                 or the file itself with --file FILE",
            )),
        }
    }

    /// The warning about a new file that the broker may not be able to read. In its data directory
    /// the file is given to the broker.
    pub(super) fn for_root_alone(&self) -> Option<String> {
        root_alone::warning(self.named.as_deref()?)
    }
}

fn missing(folder: &Path, key: &str) -> anyhow::Error {
    let folder = folder.display();
    Failure::usage(format!(
        "there is no directory {folder}; name the directory that {key} names"
    ))
}

/// Reads a file of bans.
pub(super) fn load(file: &BanFile) -> anyhow::Result<BanList> {
    file.load().map_err(failure)
}

/// A wrong line can be mended by the user, the rest is the disk's.
pub(super) fn failure(error: BanFileError) -> anyhow::Error {
    match error {
        BanFileError::Line { .. } => Failure::usage(error),
        BanFileError::Read { .. } | BanFileError::Write { .. } => error.into(),
    }
}
