//! Detects that a file was written or replaced.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A file that was changed within this time may be half written: editors and `cp` empty a file
/// before they fill it.
const WRITE_TIME: Duration = Duration::from_millis(200);

/// One state of a file, at the end of all links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    /// The present state of a file; none if it does not exist.
    ///
    /// # Errors
    /// The error of the system.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        match fs::metadata(path) {
            Ok(found) => Ok(Some(Self {
                device: found.dev(),
                inode: found.ino(),
                bytes: found.len(),
                modified: found.modified().ok(),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a process may still be writing the file; `before` is its stamp at the last read. A
    /// file that replaced another one is complete.
    pub fn may_be_half_written(&self, before: Option<&Self>, now: SystemTime) -> bool {
        let is_same_file =
            before.is_some_and(|before| (before.device, before.inode) == (self.device, self.inode));
        // A time in the future is meaningless: the clock was set.
        let age = self
            .modified
            .and_then(|modified| now.duration_since(modified).ok());
        is_same_file && age.is_some_and(|age| age < WRITE_TIME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(inode: u64, modified: Duration) -> Stamp {
        Stamp {
            device: 1,
            inode,
            bytes: 0,
            modified: Some(SystemTime::UNIX_EPOCH + modified),
        }
    }

    #[test]
    fn a_changed_file_may_be_half_written_and_a_replaced_one_is_complete() {
        let second = Duration::from_secs(1);
        let before = stamp(7, second);
        let written = stamp(7, 10 * second);
        let at = |millis| SystemTime::UNIX_EPOCH + 10 * second + Duration::from_millis(millis);
        assert!(written.may_be_half_written(Some(&before), at(0)));
        assert!(written.may_be_half_written(Some(&before), at(199)));
        assert!(!written.may_be_half_written(Some(&before), at(200)));
        let replaced = stamp(8, 10 * second);
        assert!(!replaced.may_be_half_written(Some(&before), at(0)));
        assert!(!replaced.may_be_half_written(None, at(0)));
        let in_the_future = stamp(7, 20 * second);
        assert!(!in_the_future.may_be_half_written(Some(&before), at(0)));
    }

    #[test]
    fn a_file_that_is_written_or_replaced_has_another_stamp() {
        let folder = std::env::temp_dir().join(format!("thrum-stamp-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (path, other) = (folder.join("file"), folder.join("other"));
        assert_eq!(Stamp::of(&path).unwrap(), None);
        fs::write(&path, "1").unwrap();
        let first = Stamp::of(&path).unwrap().unwrap();
        fs::write(&path, "22").unwrap();
        let second = Stamp::of(&path).unwrap().unwrap();
        assert_ne!(first, second);
        fs::write(&other, "33").unwrap();
        fs::rename(&other, &path).unwrap();
        assert_ne!(second, Stamp::of(&path).unwrap().unwrap());
        fs::remove_dir_all(&folder).unwrap();
    }
}
