//! Errors of a user store.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a user store cannot be read or written.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is to be written could not be read again; the old file is still there.
    #[error("cannot keep this in {}: {what}", path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
        /// The limit; contains no secret.
        what: String,
    },
    /// A line is damaged.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        /// In which file.
        path: PathBuf,
        /// Which, from 1.
        line: usize,
        /// Its error; contains no secret.
        what: String,
    },
}

impl StoreError {
    /// Whether the file was not written because the disk has no room for it.
    pub fn is_no_room(&self) -> bool {
        match self {
            Self::Write { source, .. } => thrum_files::is_no_room(source),
            Self::Read { .. } | Self::TooLarge { .. } | Self::Line { .. } => false,
        }
    }
}
