//! What the log needs of a disk, small enough to be simulated.

mod real;
#[cfg(feature = "testing")]
pub mod sim;

use std::io;

pub use real::{OpenDirError, RealDisk, RealFile, RealReader};

/// A folder that one process has to itself.
///
/// Names are plain, or one level deep below [`QUARANTINE`]. Nothing that happens to the folder
/// itself (create, rename, remove) is safe before [`Disk::sync_dir`].
pub trait Disk: Send + std::fmt::Debug {
    /// An open file.
    type File: File + std::fmt::Debug;

    /// Names of the files in the folder, in any order; those of sub-folders are left out.
    ///
    /// # Errors
    ///
    /// Whatever the operating system says.
    fn list(&self) -> io::Result<Vec<String>>;

    /// A new, empty file to read and write; what had this name is emptied.
    ///
    /// # Errors
    ///
    /// Whatever the operating system says; [`io::ErrorKind::StorageFull`] without space.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// An existing file to read and write.
    ///
    /// # Errors
    ///
    /// Whatever the operating system says.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Another name; a file that has it is replaced.
    ///
    /// # Errors
    ///
    /// Whatever the operating system says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// Whatever the operating system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns when the names in the folder are safe.
    ///
    /// # Errors
    ///
    /// Whatever the operating system says.
    fn sync_dir(&self) -> io::Result<()>;

    /// Bytes that could still be written.
    ///
    /// # Errors
    ///
    /// Whatever the operating system says.
    fn free_bytes(&self) -> io::Result<u64>;

    /// Looks whether the folder is still at its path, and ours.
    ///
    /// # Errors
    ///
    /// It was moved, removed or replaced: what is written to it, nobody would find.
    fn check_place(&self) -> io::Result<()>;
}

/// A folder that is only read; another process may write to it meanwhile.
pub trait ReadDisk {
    /// An open file, which nobody writes through.
    type File: File;

    /// As [`Disk::list`]; what is created or removed meanwhile may be in it or not.
    ///
    /// # Errors
    ///
    /// Whatever the operating system says.
    fn list(&self) -> io::Result<Vec<String>>;

    /// An existing file to read. It stays what it is when its name goes to another one.
    ///
    /// # Errors
    ///
    /// Whatever the operating system says; [`io::ErrorKind::NotFound`] if there is none of that
    /// name.
    fn open(&self, name: &str) -> io::Result<Self::File>;
}

impl<D: Disk> ReadDisk for D {
    type File = D::File;

    fn list(&self) -> io::Result<Vec<String>> {
        Disk::list(self)
    }

    fn open(&self, name: &str) -> io::Result<D::File> {
        Disk::open(self, name)
    }
}

/// A file.
pub trait File: Send {
    /// Its size in bytes.
    ///
    /// # Errors
    ///
    /// Whatever the operating system says.
    fn size(&self) -> io::Result<u64>;

    /// Reads up to as many bytes as `into` holds; 0 is the end.
    ///
    /// # Errors
    ///
    /// Whatever the operating system says.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes some of the bytes and says how many; not safe before [`File::sync`].
    ///
    /// # Errors
    ///
    /// Whatever the operating system says; [`io::ErrorKind::StorageFull`] without space.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Returns when everything written so far is safe.
    ///
    /// # Errors
    ///
    /// Whatever the operating system says. What was written since the last success may be lost
    /// then, and a second call that succeeds proves nothing about it.
    fn sync(&self) -> io::Result<()>;
}

/// Sub-folder for what was found damaged.
pub const QUARANTINE: &str = "quarantine";

/// Writes everything, however short the single writes are.
///
/// # Errors
///
/// Those of [`File::write_at`]; a write of nothing counts as one.
pub fn write_all(file: &impl File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(len) => {
                bytes = bytes.get(len..).unwrap_or_default();
                offset += len as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Fills `into` as far as the file reaches, however short the single reads are, and says how far.
///
/// # Errors
///
/// Those of [`File::read_at`].
pub(crate) fn read_full(file: &impl File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + done as u64) {
            Ok(0) => break,
            Ok(len) => done += len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
