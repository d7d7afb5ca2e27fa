//! The disk operations that the log needs, few enough to be simulated.

mod real;
#[cfg(feature = "testing")]
pub mod sim;

use std::io;

pub use real::{OpenDirError, RealDisk, RealFile, RealReader};

/// A directory that one process uses exclusively.
///
/// Names are plain, or one level deep below [`QUARANTINE`]. Changes of the directory itself
/// (create, rename, remove) are durable only after [`Disk::sync_dir`].
pub trait Disk: Send + std::fmt::Debug {
    /// An open file.
    type File: File + std::fmt::Debug;

    /// Names of the files in the directory, in any order, without those of subdirectories.
    ///
    /// # Errors
    ///
    /// Any error of the operating system.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Creates an empty file for reading and writing; an existing file of that name is truncated.
    ///
    /// # Errors
    ///
    /// Any error of the operating system; [`io::ErrorKind::StorageFull`] without space.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    ///
    /// Any error of the operating system.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Renames a file; an existing file of the new name is replaced.
    ///
    /// # Errors
    ///
    /// Any error of the operating system.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// Any error of the operating system.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns after the names in the directory are durable.
    ///
    /// # Errors
    ///
    /// Any error of the operating system.
    fn sync_dir(&self) -> io::Result<()>;

    /// Number of bytes that can still be written.
    ///
    /// # Errors
    ///
    /// Any error of the operating system.
    fn free_bytes(&self) -> io::Result<u64>;

    /// Checks that the directory is still at its path and locked by this process.
    ///
    /// # Errors
    ///
    /// The directory was moved, removed or replaced: data written to it could not be found again.
    fn check_place(&self) -> io::Result<()>;
}

/// A directory for reading only; another process may write to it meanwhile.
pub trait ReadDisk {
    /// An open file that is never written.
    type File: File;

    /// As [`Disk::list`]; files created or removed meanwhile may be listed or not.
    ///
    /// # Errors
    ///
    /// Any error of the operating system.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens an existing file for reading. Its content does not change if its name is given to
    /// another file.
    ///
    /// # Errors
    ///
    /// Any error of the operating system; [`io::ErrorKind::NotFound`] if no file has that name.
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
    /// Size in bytes.
    ///
    /// # Errors
    ///
    /// Any error of the operating system.
    fn size(&self) -> io::Result<u64>;

    /// Reads at most as many bytes as `into` has; 0 means the end of the file.
    ///
    /// # Errors
    ///
    /// Any error of the operating system.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes a part of the bytes and returns its length; the bytes are durable only after
    /// [`File::sync`].
    ///
    /// # Errors
    ///
    /// Any error of the operating system; [`io::ErrorKind::StorageFull`] without space.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Returns after all bytes written so far are durable.
    ///
    /// # Errors
    ///
    /// Any error of the operating system. Bytes written since the last success may be lost then,
    /// and a second call that succeeds proves nothing about them.
    fn sync(&self) -> io::Result<()>;
}

/// Subdirectory for damaged records.
pub const QUARANTINE: &str = "quarantine";

/// Writes all bytes, even if the single writes are short.
///
/// # Errors
///
/// Those of [`File::write_at`]; a write of 0 bytes is an error too.
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

/// Fills `into` as far as the file reaches, even if the single reads are short, and returns the
/// number of bytes.
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
