//! The store on disk: read line by line, replaced as a whole.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use thrum_files::{Folder, open_named};

use super::error::StoreError;
use super::record::read_line;
use super::store::UserStore;

/// Most bytes of a line: a user with thousands of rules.
pub const LINE_BYTES_MAX: u64 = 1 << 20;
/// Most lines of a file.
pub const LINES_MAX: usize = 2_000_000;

/// Reads a store; a missing one is empty.
///
/// # Errors
/// The file cannot be read, or a line is damaged.
pub fn read(path: &Path) -> Result<UserStore, StoreError> {
    match open_named(path) {
        Ok(file) => read_from(BufReader::new(file), path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(UserStore::default()),
        Err(source) => Err(StoreError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Reads the lines of a store; `path` is for errors.
///
/// # Errors
/// They cannot be read, or one is damaged.
pub fn read_from(mut from: impl BufRead, path: &Path) -> Result<UserStore, StoreError> {
    let mut store = UserStore::default();
    let mut bytes = Vec::new();
    for line in 1.. {
        let damaged = |what: String| StoreError::Line {
            path: path.to_owned(),
            line,
            what,
        };
        bytes.clear();
        let read = from
            .by_ref()
            .take(LINE_BYTES_MAX + 1)
            .read_until(b'\n', &mut bytes);
        let read = read.map_err(|source| StoreError::Read {
            path: path.to_owned(),
            source,
        })?;
        if read == 0 {
            break;
        }
        if read as u64 > LINE_BYTES_MAX {
            return Err(damaged(format!(
                "a line has more than {LINE_BYTES_MAX} bytes"
            )));
        }
        if line > LINES_MAX {
            return Err(damaged(format!("more than {LINES_MAX} lines")));
        }
        let text = str::from_utf8(&bytes).map_err(|_| damaged("not text in UTF-8".to_owned()))?;
        if !text.trim().is_empty() {
            read_line(text, &mut store).map_err(damaged)?;
        }
    }
    Ok(store)
}

/// A store that one process at a time may change. Readers need no lock.
#[derive(Debug)]
pub struct LockedStore {
    /// The contents, to be changed and saved.
    pub store: UserStore,
    path: PathBuf,
    folder: Folder,
    name: OsString,
    /// Locked until it is closed.
    _lock: std::fs::File,
}

impl LockedStore {
    /// Waits for the lock and reads the file; a missing one is empty. A link is followed if the
    /// current user created it in a directory of its own; apart from that neither the file nor its
    /// lock may be a link, or belong to a user other than the owner of the directory.
    ///
    /// # Errors
    /// The lock file beside it cannot be created, or the file cannot be read.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let refused = |path: PathBuf| move |source| StoreError::Write { path, source };
        // A link of the administrator stays a link: its target is replaced.
        let path = &Folder::resolve_own_links(path);
        let name = path.file_name().unwrap_or_default().to_owned();
        let folder = Folder::containing(path).map_err(refused(path.to_owned()))?;
        let lock_name = beside(&name, "lock");
        let lock_path = path.with_file_name(&lock_name);
        let lock = folder.change_or_create(&lock_name).and_then(|lock| {
            lock.lock()?;
            Ok(lock)
        });
        let lock = lock.map_err(refused(lock_path))?;
        let store = read_own(&folder, &name, path)?;
        Ok(Self {
            store,
            path: path.to_owned(),
            folder,
            name,
            _lock: lock,
        })
    }

    /// Replaces the file; it is on the disk when this returns.
    ///
    /// # Errors
    /// The file cannot be written, or would be larger than what is read; the old one is still
    /// there then.
    pub fn save(&self) -> Result<(), StoreError> {
        // With such a file no broker starts.
        let mut refused = None;
        let replaced = self.folder.replace(&self.name, |to| {
            for (number, line) in (1..).zip(self.store.lines()) {
                let line = line?;
                refused = too_large(number, &line);
                match refused {
                    Some(_) => return Err(ErrorKind::FileTooLarge.into()),
                    None => writeln!(to, "{line}")?,
                }
            }
            Ok(())
        });
        replaced.map_err(|source| {
            let path = self.path.clone();
            match refused {
                Some(what) => StoreError::TooLarge { path, what },
                None => StoreError::Write { path, source },
            }
        })
    }
}

/// Why [`read_from`] would refuse a line of this number; none if it would not.
pub(super) fn too_large(number: usize, line: &str) -> Option<String> {
    let bytes = line.len() as u64 + 1;
    if bytes > LINE_BYTES_MAX {
        return Some(format!(
            "a user, a group or a role would take {bytes} bytes, and may take {LINE_BYTES_MAX}; \
             give it fewer rules, roles or groups"
        ));
    }
    (number > LINES_MAX).then(|| {
        format!("more than {LINES_MAX} users, groups and roles together; remove some of them")
    })
}

/// Reads a store that is to be changed: a file of the folder's owner.
fn read_own(folder: &Folder, name: &OsStr, path: &Path) -> Result<UserStore, StoreError> {
    match folder.change(name) {
        Ok(file) => read_from(BufReader::new(file), path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(UserStore::default()),
        Err(source) => Err(StoreError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

/// The file's name with something behind it.
fn beside(name: &OsStr, ending: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(".");
    name.push(ending);
    name
}
