//! Errors of the system that the user can do something about.

use std::io::{Error, ErrorKind};

/// Whether a file was not written because there is no room for it: on the disk, in the quota of the
/// user, or within the size that the system allows.
pub fn is_no_room(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
    )
}
