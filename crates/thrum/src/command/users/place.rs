//! The location of the user store.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use thrum_auth::Settings;
use thrum_auth::config::USERS_FILE;
use thrum_auth::users::{LockedStore, StoreError, UserStore, read};
use thrum_files::Folder;

use crate::command::Failure;
use crate::command::root_alone;
use crate::config::{self, Request};

/// Location of the store.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(super) struct Place {
    /// File of the store; created if it does not exist.
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,
    /// Data directory of the broker, as `node.data_dir` names it: the store is users.jsonl in it.
    /// Created if it does not exist.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Configuration of the broker, which names the store or the data directory; without it
    /// /etc/thrum/thrum.toml.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Place {
    /// The file of the store.
    pub(super) fn file(&self) -> anyhow::Result<PathBuf> {
        if let Some(file) = &self.users {
            return Ok(file.clone());
        }
        if let Some(folder) = &self.data_dir {
            return Ok(folder.join(USERS_FILE));
        }
        self.settings()?.users_file().ok_or_else(|| {
            Failure::usage(
                "where is the user store? name it with --users FILE, name the broker's data directory with \
                 --data-dir DIR, or its configuration with -c FILE",
            )
        })
    }

    /// The settings of the configuration.
    fn settings(&self) -> anyhow::Result<Settings> {
        let request = Request {
            file: self.config.clone(),
            ..Request::default()
        };
        let loaded = config::load(&request).map_err(Failure::usage)?;
        Ok(loaded.config.access())
    }

    /// The configuration has no other file for it than that in the data directory, which is the
    /// broker's.
    fn is_in_data_dir(&self) -> anyhow::Result<bool> {
        Ok(self.users.is_none() && self.settings()?.auth.users.as_os_str().is_empty())
    }

    /// Reads the store.
    pub(super) fn read(&self) -> anyhow::Result<UserStore> {
        read(&self.file()?).map_err(unusable)
    }

    /// Takes the store to change it.
    pub(super) fn open(&self) -> anyhow::Result<LockedStore> {
        let file = self.file()?;
        let folder = file.parent().filter(|it| !it.as_os_str().is_empty());
        if let Some(data_dir) = &self.data_dir {
            make(data_dir)?;
        }
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(Failure::usage(format!(
                "there is no directory {}; make it first, or name another file with --users",
                folder.display()
            )));
        }
        let is_given = self.data_dir.is_some() || self.is_in_data_dir()?;
        if let Some(warning) = root_alone::warning(&file).filter(|_| !is_given) {
            writeln!(io::stderr(), "{warning}")?;
        }
        LockedStore::open(&file).map_err(unusable)
    }
}

/// Creates a folder in an existing one, as the broker would.
fn make(folder: &Path) -> anyhow::Result<()> {
    let parent = folder.parent().unwrap_or(folder);
    let is_possible = parent.as_os_str().is_empty() || parent.is_dir();
    let name = folder.file_name().and_then(|name| name.to_str());
    if let Some(name) = name.filter(|_| is_possible && !folder.exists()) {
        let made = Folder::open(parent).and_then(|parent| parent.open_or_create_directory(name));
        made.with_context(|| format!("cannot make {}", folder.display()))?;
        writeln!(io::stderr(), "made the directory {}", folder.display())?;
    }
    Ok(())
}

/// A damaged line can be mended, a disk cannot.
fn unusable(error: StoreError) -> anyhow::Error {
    match error {
        StoreError::Line { .. } | StoreError::TooLarge { .. } => Failure::usage(error),
        StoreError::Read { .. } | StoreError::Write { .. } => error.into(),
    }
}
