//! A folder of the file system.

use std::fs::{self, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{Disk, File, QUARANTINE, ReadDisk};

/// Its lock says that a broker uses the folder; it stays when the broker is gone.
const LOCK: &str = "lock";

/// The folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenDirError {
    /// Another process has it.
    #[error(
        "the data directory {} is in use by another broker; stop that one or name another directory",
        .0.display()
    )]
    InUse(PathBuf),
    /// There is no such folder.
    #[error("there is no directory {}; name the data directory of a broker", .0.display())]
    Missing(PathBuf),
    /// The file system refuses.
    #[error("the data directory {} cannot be used; check that it can be created, read and written", .path.display())]
    Io {
        /// Which folder.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
}

/// A folder, locked against other brokers for as long as this lives.
#[derive(Debug)]
pub struct RealDisk {
    path: PathBuf,
    /// For syncing the names in it.
    dir: fs::File,
    /// Holds the lock.
    _lock: fs::File,
}

/// Creates a folder and those above it; when this returns, the loss of power takes none of them.
fn create_folders(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    create_folders(parent(path))?;
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        created => created?,
    }
    sync_name(path)
}

/// Makes the name of a folder safe.
fn sync_name(path: &Path) -> io::Result<()> {
    fs::File::open(parent(path))?.sync_all()
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

impl RealDisk {
    /// Takes the folder, and creates it if there is none.
    ///
    /// # Errors
    ///
    /// [`OpenDirError::InUse`] if another process holds it, [`OpenDirError::Io`] if the file system refuses.
    pub fn open(path: &Path) -> Result<Self, OpenDirError> {
        let refused = |source| OpenDirError::Io {
            path: path.to_owned(),
            source,
        };
        create_folders(&path.join(QUARANTINE)).map_err(refused)?;
        // An earlier start may have ended between creating it and this.
        sync_name(path).map_err(refused)?;
        let lock = fs::File::options()
            .create(true)
            .write(true)
            .truncate(false)
            .open(path.join(LOCK))
            .map_err(refused)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenDirError::InUse(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(refused(error)),
        }
        Ok(Self {
            path: path.to_owned(),
            dir: fs::File::open(path).map_err(refused)?,
            _lock: lock,
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Disk for RealDisk {
    type File = RealFile;

    fn list(&self) -> io::Result<Vec<String>> {
        list(&self.path)
    }

    fn create(&self, name: &str) -> io::Result<RealFile> {
        let mut options = fs::File::options();
        options.create(true).truncate(true).read(true).write(true);
        options.open(self.path.join(name)).map(RealFile)
    }

    fn open(&self, name: &str) -> io::Result<RealFile> {
        let mut options = fs::File::options();
        options.read(true).write(true);
        options.open(self.path.join(name)).map(RealFile)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.dir.sync_all()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let space = rustix::fs::fstatvfs(&self.dir)?;
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    }
}

/// A folder to look into, whoever has it; nothing in it is changed, not even created.
#[derive(Debug)]
pub struct RealReader(PathBuf);

impl RealReader {
    /// Looks whether the folder is there.
    ///
    /// # Errors
    ///
    /// [`OpenDirError::Missing`] if it is not, [`OpenDirError::Io`] if the file system does not tell.
    pub fn open(path: &Path) -> Result<Self, OpenDirError> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Ok(Self(path.to_owned())),
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(OpenDirError::Io {
                path: path.to_owned(),
                source,
            }),
            Ok(_) | Err(_) => Err(OpenDirError::Missing(path.to_owned())),
        }
    }
}

impl ReadDisk for RealReader {
    type File = RealFile;

    fn list(&self) -> io::Result<Vec<String>> {
        list(&self.0)
    }

    fn open(&self, name: &str) -> io::Result<RealFile> {
        fs::File::open(self.0.join(name)).map(RealFile)
    }
}

fn list(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.extend(entry.file_name().into_string());
        }
    }
    Ok(names)
}

/// A file of the folder.
#[derive(Debug)]
pub struct RealFile(fs::File);

impl File for RealFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(into, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
