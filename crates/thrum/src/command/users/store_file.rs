//! The file of the user store, which is changed while no broker is asked.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use thrum_auth::config::USERS_FILE;
use thrum_auth::users::{LockedStore, StoreError, UserStore, read};
use thrum_files::Folder;

use crate::command::{Failure, root_alone};
use crate::config::{self, Request};

/// The file.
#[derive(Debug)]
pub(super) struct StoreFile {
    path: PathBuf,
    /// The data directory that it is in, which is made if it does not exist.
    data_dir: Option<PathBuf>,
    /// It is given to the owner of the data directory, whoever writes it.
    is_of_broker: bool,
}

impl StoreFile {
    /// The file of this name.
    pub(super) const fn named(path: PathBuf) -> Self {
        Self {
            path,
            data_dir: None,
            is_of_broker: false,
        }
    }

    /// That in a data directory.
    pub(super) fn in_data_dir(data_dir: PathBuf) -> Self {
        Self {
            path: data_dir.join(USERS_FILE),
            data_dir: Some(data_dir),
            is_of_broker: true,
        }
    }

    /// That of a configuration, or of that of the system.
    pub(super) fn of_configuration(file: Option<&Path>) -> anyhow::Result<Self> {
        let request = Request {
            file: file.map(Path::to_owned),
            ..Request::default()
        };
        let loaded = config::load(&request).map_err(Failure::usage)?;
        let settings = loaded.config.access();
        let path = settings.users_file().ok_or_else(|| {
            Failure::usage(
                "where is the user store? name it with --users FILE, name the broker's data directory with \
                 --data-dir DIR, or its configuration with -c FILE",
            )
        })?;
        Ok(Self {
            path,
            data_dir: None,
            is_of_broker: settings.auth.users.as_os_str().is_empty(),
        })
    }

    /// Reads the store.
    pub(super) fn read(&self) -> anyhow::Result<UserStore> {
        read(&self.path).map_err(unusable)
    }

    /// Takes the store to change it.
    pub(super) fn open(&self) -> anyhow::Result<LockedStore> {
        if let Some(data_dir) = &self.data_dir {
            make(data_dir)?;
        }
        let folder = self.path.parent().filter(|it| !it.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(Failure::usage(format!(
                "there is no directory {}; make it first, or name another file with --users",
                folder.display()
            )));
        }
        if let Some(warning) = root_alone::warning(&self.path).filter(|_| !self.is_of_broker) {
            writeln!(io::stderr(), "{warning}")?;
        }
        LockedStore::open(&self.path).map_err(unusable)
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
