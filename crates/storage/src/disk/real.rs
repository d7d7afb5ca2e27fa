//! A folder of the file system.

use std::ffi::OsStr;
use std::fs::{self, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use thrum_files::Folder;

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
    /// It holds a lock too, which stays when files are removed; some network file systems know no
    /// locks of folders.
    folder: Folder,
    is_folder_locked: bool,
    /// Holds the lock.
    lock: fs::File,
}

/// Opens a folder and creates it, and those above it, if there are none; when this returns, the
/// loss of power takes none of them. The folder itself must not be a link: it stands in a directory
/// whose owner may be somebody else.
fn create_folders(path: &Path) -> io::Result<Folder> {
    let parent = parent(path);
    let above = match Folder::open(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => create_folders(parent)?,
        opened => opened?,
    };
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?;
    let folder = above.make(name)?;
    // An earlier start may have ended between creating it and this.
    above.sync()?;
    Ok(folder)
}

/// Looks as [`create_folders`] and what follows it do.
fn check_folders(path: &Path) -> io::Result<()> {
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let mut above = Folder::open(parent(path));
    let mut rest = parent(path);
    while above.as_ref().is_err_and(is_missing) && rest != parent(rest) {
        rest = parent(rest);
        above = Folder::open(rest);
    }
    let above = above?;
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?;
    let folder = match above.inner(name) {
        _ if rest != parent(path) => return above.check_writable(),
        Err(error) if is_missing(&error) => return above.check_writable(),
        folder => folder?,
    };
    folder.check_writable()?;
    match folder.inner(QUARANTINE) {
        Err(error) if !is_missing(&error) => return Err(error),
        Ok(_) | Err(_) => {}
    }
    match folder.change(LOCK.as_ref()) {
        Err(error) if !is_missing(&error) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
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
    /// [`OpenDirError::InUse`] if another process holds it, [`OpenDirError::Io`] if the file system
    /// refuses, or if the folder or a file in it is a link or somebody else's.
    pub fn open(path: &Path) -> Result<Self, OpenDirError> {
        let refused = |source| OpenDirError::Io {
            path: path.to_owned(),
            source,
        };
        let folder = create_folders(path).map_err(refused)?;
        folder.make(QUARANTINE).map_err(refused)?;
        let lock = folder.change_or_create(LOCK.as_ref()).map_err(refused)?;
        let is_folder_locked = match (lock.try_lock(), folder.try_lock()) {
            (Err(TryLockError::WouldBlock), _) | (_, Ok(false)) => {
                return Err(OpenDirError::InUse(path.to_owned()));
            }
            (Err(TryLockError::Error(error)), _) => return Err(refused(error)),
            (Ok(()), locked) => locked.is_ok(),
        };
        let disk = Self {
            folder,
            is_folder_locked,
            lock,
        };
        // Another one may have moved the folder, or removed the lock, before it was ours.
        disk.check_place().map_err(refused)?;
        Ok(disk)
    }

    /// Whether [`RealDisk::open`] could take the folder if no other process has it. Nothing is
    /// created.
    ///
    /// # Errors
    ///
    /// [`OpenDirError::Io`].
    pub fn check(path: &Path) -> Result<(), OpenDirError> {
        check_folders(path).map_err(|source| OpenDirError::Io {
            path: path.to_owned(),
            source,
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Disk for RealDisk {
    type File = RealFile;

    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.file_names()
    }

    fn create(&self, name: &str) -> io::Result<RealFile> {
        within(&self.folder, name, Folder::create)
    }

    fn open(&self, name: &str) -> io::Result<RealFile> {
        within(&self.folder, name, Folder::change)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from.as_ref(), to.as_ref())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name.as_ref())
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.folder.sync()
    }

    fn check_place(&self) -> io::Result<()> {
        self.folder.check_place()?;
        if self.is_folder_locked {
            return Ok(());
        }
        let there = self.folder.read(LOCK.as_ref())?.metadata()?;
        let ours = self.lock.metadata()?;
        if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) {
            return Ok(());
        }
        Err(io::Error::other("its lock is another one than before"))
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.folder.free_bytes()
    }
}

/// A folder to look into, whoever has it; nothing in it is changed, not even created.
#[derive(Debug)]
pub struct RealReader(Folder);

impl RealReader {
    /// Looks whether the folder is there.
    ///
    /// # Errors
    ///
    /// [`OpenDirError::Missing`] if it is not, [`OpenDirError::Io`] if the file system does not
    /// tell or it is a link.
    pub fn open(path: &Path) -> Result<Self, OpenDirError> {
        let name = path.file_name().and_then(|name| name.to_str());
        let opened = match name {
            Some(name) => Folder::around(path).and_then(|above| above.inner(name)),
            None => Folder::open(path),
        };
        opened.map(Self).map_err(|source| {
            let path = path.to_owned();
            match source.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                    OpenDirError::Missing(path)
                }
                _ => OpenDirError::Io { path, source },
            }
        })
    }
}

impl ReadDisk for RealReader {
    type File = RealFile;

    fn list(&self) -> io::Result<Vec<String>> {
        self.0.file_names()
    }

    fn open(&self, name: &str) -> io::Result<RealFile> {
        within(&self.0, name, Folder::read)
    }
}

/// Opens a file of the folder, or of the one in it that its name names.
fn within(
    folder: &Folder,
    name: &str,
    open: impl FnOnce(&Folder, &OsStr) -> io::Result<fs::File>,
) -> io::Result<RealFile> {
    let file = match name.split_once('/') {
        Some((inner, name)) => open(&folder.inner(inner)?, name.as_ref()),
        None => open(folder, name.as_ref()),
    };
    file.map(RealFile)
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
