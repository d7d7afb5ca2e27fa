//! The store on disk: read line by line, replaced as a whole.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read as _, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Gid, Uid, fchown, flock};
use rustix::process::geteuid;

use super::error::StoreError;
use super::record::read_line;
use super::store::UserStore;

/// Most bytes of a line: a user with thousands of rules.
pub const LINE_BYTES_MAX: u64 = 1 << 20;
/// Most lines of a file.
pub const LINES_MAX: usize = 2_000_000;
/// The owner reads and writes, nobody else does anything.
const MODE: u32 = 0o600;

/// Reads a store; one that is not there is empty.
///
/// # Errors
/// The file cannot be read, or a line is damaged.
pub fn read(path: &Path) -> Result<UserStore, StoreError> {
    match File::open(path) {
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
    /// What was read, to be changed and saved.
    pub store: UserStore,
    path: PathBuf,
    /// Locked until it is closed.
    _lock: File,
}

impl LockedStore {
    /// Waits for the lock and reads the file; one that is not there is empty.
    ///
    /// # Errors
    /// The lock file beside it cannot be made, or the file cannot be read.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        // A link stays a link: what it leads to is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let lock_path = beside(&path, "lock");
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(MODE)
            .open(&lock_path)
            .and_then(|lock| {
                flock(&lock, FlockOperation::LockExclusive)?;
                give_to_owner(&lock, &path)?;
                Ok(lock)
            });
        let lock = lock.map_err(|source| StoreError::Write {
            path: lock_path,
            source,
        })?;
        let store = read(&path)?;
        Ok(Self {
            store,
            path,
            _lock: lock,
        })
    }

    /// Replaces the file; it is on the disk when this returns.
    ///
    /// # Errors
    /// The file cannot be written; the old one is still there then.
    pub fn save(&self) -> Result<(), StoreError> {
        let temporary = beside(&self.path, "new");
        let written = self.replace(&temporary);
        if written.is_err() {
            // The error that matters is the first one.
            drop(std::fs::remove_file(&temporary));
        }
        written.map_err(|source| StoreError::Write {
            path: self.path.clone(),
            source,
        })
    }

    fn replace(&self, temporary: &Path) -> io::Result<()> {
        // Of a process that ended while it wrote; nobody else writes now.
        match std::fs::remove_file(temporary) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(MODE)
            .open(temporary)?;
        give_to_owner(&file, &self.path)?;
        let mut to = BufWriter::new(file);
        for line in self.store.lines() {
            writeln!(to, "{}", line?)?;
        }
        to.into_inner()?.sync_all()?;
        std::fs::rename(temporary, &self.path)?;
        File::open(folder(&self.path))?.sync_all()
    }
}

/// Root writes for the broker, which is somebody else: the owner of the old file, or of the folder, owns the new one.
fn give_to_owner(file: &File, path: &Path) -> io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let old = std::fs::metadata(path).or_else(|_| std::fs::metadata(folder(path)))?;
    let owner = Uid::from_raw(old.uid());
    let group = Gid::from_raw(old.gid());
    Ok(fchown(file, Some(owner), Some(group))?)
}

fn folder(path: &Path) -> &Path {
    let folder = path.parent().unwrap_or_else(|| Path::new("/"));
    if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    }
}

/// The file's name with something behind it.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}
