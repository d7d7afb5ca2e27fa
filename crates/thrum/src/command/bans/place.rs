//! The location of the bans.

use std::path::{Path, PathBuf};

use clap::Args;
use thrum_broker::{BanFile, BanFileError};
use thrum_protection::BanList;

use crate::command::Failure;
use crate::command::root_alone;

/// A data directory or a file.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct Place {
    /// Data directory of the broker, as `node.data_dir` names it.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// File of bans, if `protection.bans` names one.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Place {
    /// The file of the bans of the administrator.
    pub(super) fn bans(&self) -> anyhow::Result<BanFile> {
        match (&self.data_dir, &self.file) {
            (Some(data_dir), _) if !data_dir.is_dir() => Err(missing(data_dir, "node.data_dir")),
            (Some(data_dir), _) => Ok(BanFile::in_data_dir(data_dir)),
            (None, Some(file)) => {
                let folder = file
                    .parent()
                    .filter(|folder| !folder.as_os_str().is_empty());
                match folder.filter(|folder| !folder.is_dir()) {
                    Some(folder) => Err(missing(folder, "protection.bans")),
                    None => Ok(BanFile::at(file.clone())),
                }
            }
            (None, None) => Err(Failure::usage("name a data directory with --data-dir")),
        }
    }

    /// The warning about a new file that the broker may not be able to read. In its data directory
    /// the file is given to the broker.
    pub(super) fn for_root_alone(&self) -> Option<String> {
        root_alone::warning(self.file.as_deref()?)
    }

    /// The file in which the broker shows the bans that it made for a time.
    pub(super) fn temporary(&self) -> Option<BanFile> {
        self.data_dir.as_deref().map(BanFile::temporary_in)
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
