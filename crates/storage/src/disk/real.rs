//! A directory of the file system.

use std::ffi::OsStr;
use std::fs::{self, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use thrum_files::Folder;

use super::{Disk, File, QUARANTINE, ReadDisk};

/// A lock on this file shows that a broker uses the directory; the file remains when the broker
/// ends.
const LOCK: &str = "lock";

/// Reason why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenDirError {
    /// Another process uses the directory.
    #[error(
        "the data directory {} is in use by another broker; stop that one or name another directory",
        .0.display()
    )]
    InUse(PathBuf),
    /// The directory does not exist.
    #[error("there is no directory {}; name the data directory of a broker", .0.display())]
    Missing(PathBuf),
    /// The file system returned an error.
    #[error("the data directory {} cannot be used; check that it can be created, read and written", .path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// A directory, locked against other brokers for the lifetime of this value.
#[derive(Debug)]
pub struct RealDisk {
    /// The directory itself is locked too, because that lock remains if files are removed; some
    /// network file systems do not support locks of directories.
    folder: Folder,
    is_folder_locked: bool,
    /// The open file with the lock.
    lock: fs::File,
}

/// Opens a directory and creates it and its parents if they do not exist; they are durable when
/// this returns. The directory itself must not be a link, because another user may own its parent.
fn create_folders(path: &Path) -> io::Result<Folder> {
    let parent = parent(path);
    let above = match Folder::open(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => create_folders(parent)?,
        opened => opened?,
    };
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?;
    let folder = above.open_or_create_directory(name)?;
    // An earlier start may have ended between the creation and this sync.
    above.sync()?;
    Ok(folder)
}

/// Performs the same checks as [`create_folders`] and the following steps.
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
    let folder = match above.open_directory(name) {
        _ if rest != parent(path) => return above.check_writable(),
        Err(error) if is_missing(&error) => return above.check_writable(),
        folder => folder?,
    };
    folder.check_writable()?;
    match folder.open_directory(QUARANTINE) {
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
    /// Opens and locks the directory, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// [`OpenDirError::InUse`] if another process uses it, [`OpenDirError::Io`] if the file system
    /// returns an error, or if the directory or a file in it is a link or belongs to another user.
    pub fn open(path: &Path) -> Result<Self, OpenDirError> {
        let refused = |source| OpenDirError::Io {
            path: path.to_owned(),
            source,
        };
        let folder = create_folders(path).map_err(refused)?;
        folder
            .open_or_create_directory(QUARANTINE)
            .map_err(refused)?;
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
        // Another process may have moved the directory, or removed the lock, before this one got
        // it.
        disk.check_place().map_err(refused)?;
        Ok(disk)
    }

    /// Checks whether [`RealDisk::open`] would succeed if no other process uses the directory.
    /// Nothing is created.
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

    /// Path of the directory.
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
        self.folder.check_path()?;
        if self.is_folder_locked {
            return Ok(());
        }
        let there = self.folder.read(LOCK.as_ref())?.metadata()?;
        let ours = self.lock.metadata()?;
        if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) {
            return Ok(());
        }
        Err(io::Error::other("its lock file was replaced"))
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.folder.free_bytes()
    }
}

/// A directory to be read, even if another process uses it; nothing in it is changed or created.
#[derive(Debug)]
pub struct RealReader(Folder);

impl RealReader {
    /// Opens an existing directory.
    ///
    /// # Errors
    ///
    /// [`OpenDirError::Missing`] if it does not exist, [`OpenDirError::Io`] if the file system
    /// returns an error or it is a link.
    pub fn open(path: &Path) -> Result<Self, OpenDirError> {
        let name = path.file_name().and_then(|name| name.to_str());
        let opened = match name {
            Some(name) => Folder::containing(path).and_then(|above| above.open_directory(name)),
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

/// Opens a file of the directory, or of the subdirectory in its name.
fn within(
    folder: &Folder,
    name: &str,
    open: impl FnOnce(&Folder, &OsStr) -> io::Result<fs::File>,
) -> io::Result<RealFile> {
    let file = match name.split_once('/') {
        Some((inner, name)) => open(&folder.open_directory(inner)?, name.as_ref()),
        None => open(folder, name.as_ref()),
    };
    file.map(RealFile)
}

/// A file of the directory.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of its own, removed at the end.
    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            let name = format!("thrum-real-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn a_check_creates_nothing_and_accepts_a_path_that_can_be_created() {
        let directory = Directory::new("check");
        RealDisk::check(&directory.0.join("state")).unwrap();
        RealDisk::check(&directory.0.join("a/b/c/state")).unwrap();
        RealDisk::check(&directory.0).unwrap();
        assert_eq!(fs::read_dir(&directory.0).unwrap().count(), 0);
        drop(RealDisk::open(&directory.0.join("state")).unwrap());
        RealDisk::check(&directory.0.join("state")).unwrap();
    }

    #[test]
    fn a_check_refuses_files_in_the_places_of_directories_and_the_reverse() {
        let directory = Directory::new("refused");
        let state = directory.0.join("state");
        fs::write(&state, "a file").unwrap();
        assert!(RealDisk::check(&state).is_err());
        assert!(RealDisk::check(&state.join("below")).is_err());
        fs::remove_file(&state).unwrap();
        fs::create_dir(&state).unwrap();
        fs::write(state.join(QUARANTINE), "a file").unwrap();
        assert!(RealDisk::check(&state).is_err());
        fs::remove_file(state.join(QUARANTINE)).unwrap();
        fs::create_dir(state.join(LOCK)).unwrap();
        assert!(RealDisk::check(&state).is_err());
        fs::remove_dir(state.join(LOCK)).unwrap();
        RealDisk::check(&state).unwrap();
    }

    #[test]
    fn a_reader_sees_the_files_of_a_directory_in_use() {
        let directory = Directory::new("reader");
        let state = directory.0.join("state");
        assert!(matches!(
            RealReader::open(&state),
            Err(OpenDirError::Missing(path)) if path == state
        ));
        let disk = RealDisk::open(&state).unwrap();
        assert_eq!(disk.path(), state);
        let file = Disk::create(&disk, "1.log").unwrap();
        assert_eq!(file.write_at(b"content", 0).unwrap(), 7);
        Disk::create(&disk, &format!("{QUARANTINE}/1-2")).unwrap();
        let reader = RealReader::open(&state).unwrap();
        let mut names = reader.list().unwrap();
        names.sort_unstable();
        assert_eq!(names, ["1.log", LOCK]);
        let file = ReadDisk::open(&reader, "1.log").unwrap();
        let mut bytes = [0; 10];
        assert_eq!(file.read_at(&mut bytes, 3).unwrap(), 4);
        assert_eq!(&bytes[..4], b"tent");
        assert_eq!(file.size().unwrap(), 7);
        assert!(ReadDisk::open(&reader, &format!("{QUARANTINE}/1-2")).is_ok());
        disk.rename("1.log", "2.log").unwrap();
        disk.remove("2.log").unwrap();
        disk.sync_dir().unwrap();
        assert_eq!(reader.list().unwrap(), [LOCK]);
        assert!(disk.free_bytes().unwrap() > 1);
    }
}
