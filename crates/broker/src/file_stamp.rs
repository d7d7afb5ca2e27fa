//! What tells that a file was written or replaced.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

/// One state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    modified: Option<SystemTime>,
    len: u64,
    #[cfg(unix)]
    inode: u64,
}

impl FileStamp {
    /// What a file is now, at the end of all links; none if there is none.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self {
            modified: found.modified().ok(),
            len: found.len(),
            #[cfg(unix)]
            inode: std::os::unix::fs::MetadataExt::ino(&found),
        })
    }
}
