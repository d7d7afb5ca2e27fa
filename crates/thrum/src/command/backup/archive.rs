//! The file: a tar archive of the log's segments, oldest first, with a manifest at its end.
//!
//! ```text
//!   state/00000000000000000017.log
//!   state/00000000000000000018.log
//!   files/administrators.jsonl
//!   files/audit/00000000000000000001.jsonl
//!   manifest.json
//!     {"format": "thrum-backup/2", "taken_at": …, "segments": [{"name", "bytes", "crc32c"}],
//!      "files": [the same]}
//! ```
//!
//! A file without its manifest is an unfinished backup. `tar -x` unpacks it without thrum.

use std::fs::File;
use std::io::{self, Seek as _};

use serde::{Deserialize, Serialize};
use tar::{Builder, Header};
use thrum_storage::SnapshotTarget;

use super::files::Copied;

/// Folder of the segments.
pub(super) const STATE: &str = "state/";
/// Folder of the other files.
pub(super) const FILES: &str = "files/";
/// The last entry.
pub(super) const MANIFEST: &str = "manifest.json";
/// The format in the manifest; another format gets another number.
pub(super) const FORMAT: &str = "thrum-backup/2";
/// The one before, without files, which is read as well.
pub(super) const FORMAT_BEFORE: &str = "thrum-backup/1";

/// The last entry.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) format: String,
    /// Version of the program that wrote it.
    pub(super) thrum: String,
    /// Start of the copy.
    pub(super) taken_at: String,
    /// Oldest first.
    pub(super) segments: Vec<Segment>,
    /// Other files of the data directory.
    #[serde(default)]
    pub(super) files: Vec<Segment>,
}

/// A segment or a file in the manifest.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Segment {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) crc32c: u32,
}

impl Segment {
    /// Of these bytes.
    pub(super) fn of(name: &str, bytes: &[u8]) -> Self {
        Self {
            name: name.to_owned(),
            bytes: bytes.len() as u64,
            crc32c: crc32c::crc32c(bytes),
        }
    }
}

/// Writes one.
pub(super) struct Archive {
    file: File,
    builder: Builder<File>,
    segments: Vec<Segment>,
    files: Vec<Segment>,
    /// Seconds for the times of the entries, which are informative.
    seconds: u64,
}

impl Archive {
    /// Into an empty file; `seconds` since 1970.
    pub(super) fn new(file: File, seconds: u64) -> io::Result<Self> {
        Ok(Self {
            builder: Builder::new(file.try_clone()?),
            file,
            segments: Vec::new(),
            files: Vec::new(),
            seconds,
        })
    }

    /// Adds a file behind the segments.
    pub(super) fn file(&mut self, file: &Copied) -> io::Result<()> {
        self.files.push(Segment::of(&file.name, &file.bytes));
        self.append(&format!("{FILES}{}", file.name), &file.bytes)
    }

    /// Adds the manifest and returns when all of it is safe.
    pub(super) fn finish(mut self, taken_at: String) -> io::Result<()> {
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            thrum: env!("CARGO_PKG_VERSION").to_owned(),
            taken_at,
            segments: std::mem::take(&mut self.segments),
            files: std::mem::take(&mut self.files),
        };
        let text = serde_json::to_vec_pretty(&manifest)?;
        self.append(MANIFEST, &text)?;
        self.builder.finish()?;
        self.file.sync_all()
    }

    fn append(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let mut header = Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(self.seconds);
        self.builder.append_data(&mut header, path, bytes)
    }
}

impl SnapshotTarget for Archive {
    fn start_over(&mut self) -> io::Result<()> {
        self.segments.clear();
        // The writer before it ends at its position in the file, so it is dropped first.
        self.builder = Builder::new(self.file.try_clone()?);
        self.file.set_len(0)?;
        self.file.rewind()
    }

    fn segment(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.segments.push(Segment::of(name, bytes));
        self.append(&format!("{STATE}{name}"), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starting_over_discards_the_written_part() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("thrum-archive-{}", std::process::id()));
        let mut archive = Archive::new(File::create(&path).unwrap(), 0).unwrap();
        archive.segment("old", &[7; 5000]).unwrap();
        archive.start_over().unwrap();
        archive.segment("new", b"abc").unwrap();
        archive.finish("now".to_owned()).unwrap();
        let mut read = tar::Archive::new(File::open(&path).unwrap());
        let entries = read.entries().unwrap();
        let names: Vec<String> = entries
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(names, ["state/new", MANIFEST]);
    }
}
