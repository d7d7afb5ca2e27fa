//! The file: a tar archive of the log's segments, oldest first, with a manifest at its end.
//!
//! ```text
//!   state/00000000000000000017.log
//!   state/00000000000000000018.log
//!   files/administrators.jsonl
//!   files/managed.toml
//!   files/audit/00000000000000000001.jsonl
//!   manifest.json
//!     {"format": "thrum-backup/2", "taken_at": …, "segments": [{"name", "bytes", "crc32c"}],
//!      "files": [the same]}
//! ```
//!
//! A file without its manifest is an unfinished backup. `tar -x` unpacks it without thrum.

use std::fs::File;
use std::io::{self, Read, Seek as _, Write};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tar::{Builder, Header};
use thrum_storage::SnapshotTarget;

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
/// Bytes after which what is written goes to the disk, and somebody may end the work: a sync of
/// more at once would hold up the commits of a broker on the same disk.
const PORTION_BYTES: u64 = 8 * 1024 * 1024;
/// Bytes of a file that are in memory at once.
#[cfg(feature = "management")]
pub(super) const CHUNK_BYTES: usize = 64 * 1024;

/// Is told after each portion how many bytes are written; its error ends the work.
pub(super) type Watch = Arc<dyn Fn(u64) -> io::Result<()> + Send + Sync>;

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

/// A file that is written in portions.
struct Portions {
    file: File,
    watch: Watch,
    written: u64,
}

impl Write for Portions {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = PORTION_BYTES - self.written % PORTION_BYTES;
        let len = usize::try_from(room).map_or(bytes.len(), |room| room.min(bytes.len()));
        let count = self.file.write(&bytes[..len])?;
        self.written += count as u64;
        if count > 0 && self.written.is_multiple_of(PORTION_BYTES) {
            self.file.sync_data()?;
            (self.watch)(self.written)?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Bytes that are counted while they are read.
struct Counted<R> {
    from: R,
    bytes: u64,
    crc32c: u32,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(into)?;
        self.bytes += count as u64;
        self.crc32c = crc32c::crc32c_append(self.crc32c, &into[..count]);
        Ok(count)
    }
}

/// Writes one.
pub(super) struct Archive {
    file: File,
    builder: Builder<Portions>,
    watch: Watch,
    segments: Vec<Segment>,
    files: Vec<Segment>,
    /// Seconds for the times of the entries, which are informative.
    seconds: u64,
}

impl Archive {
    /// Into an empty file; `seconds` since 1970.
    pub(super) fn new(file: File, seconds: u64, watch: Watch) -> io::Result<Self> {
        Ok(Self {
            builder: builder(&file, &watch)?,
            file,
            watch,
            segments: Vec::new(),
            files: Vec::new(),
            seconds,
        })
    }

    /// Adds a file behind the segments: the bytes that it has now, though it may grow.
    pub(super) fn file(&mut self, name: &str, file: &File) -> io::Result<()> {
        let len = file.metadata()?.len();
        let mut from = Counted {
            from: file.take(len),
            bytes: 0,
            crc32c: 0,
        };
        let mut header = self.header(len);
        let path = format!("{FILES}{name}");
        self.builder.append_data(&mut header, path, &mut from)?;
        if from.bytes != len {
            return Err(io::Error::other(format!("{name} was shortened meanwhile")));
        }
        self.files.push(Segment {
            name: name.to_owned(),
            bytes: from.bytes,
            crc32c: from.crc32c,
        });
        Ok(())
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
        let mut header = self.header(bytes.len() as u64);
        self.builder.append_data(&mut header, path, bytes)
    }

    fn header(&self, len: u64) -> Header {
        let mut header = Header::new_ustar();
        header.set_size(len);
        header.set_mode(0o600);
        header.set_mtime(self.seconds);
        header
    }
}

fn builder(file: &File, watch: &Watch) -> io::Result<Builder<Portions>> {
    Ok(Builder::new(Portions {
        file: file.try_clone()?,
        watch: Arc::clone(watch),
        written: 0,
    }))
}

impl SnapshotTarget for Archive {
    fn start_over(&mut self) -> io::Result<()> {
        self.segments.clear();
        // The writer before it ends at its position in the file, so it is dropped first.
        self.builder = builder(&self.file, &self.watch)?;
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
    use std::sync::Mutex;

    use super::*;

    fn archive(path: &std::path::Path, watch: Watch) -> Archive {
        Archive::new(File::create(path).unwrap(), 0, watch).unwrap()
    }

    #[test]
    fn after_each_portion_the_work_can_be_ended() {
        let path = std::env::temp_dir().join(format!("thrum-portions-{}", std::process::id()));
        let seen = Arc::<Mutex<Vec<u64>>>::default();
        let told = Arc::clone(&seen);
        let watch: Watch = Arc::new(move |written| {
            let mut told = told.lock().unwrap();
            told.push(written);
            if told.len() < 3 {
                return Ok(());
            }
            Err(io::Error::other("enough"))
        });
        let mut archive = archive(&path, watch);
        let portion = usize::try_from(PORTION_BYTES).unwrap();
        let ended = archive.segment("one", &vec![7; 5 * portion]).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(ended.to_string(), "enough");
        let expected = [1, 2, 3].map(|count| count * PORTION_BYTES);
        assert_eq!(*seen.lock().unwrap(), expected);
    }

    #[test]
    fn starting_over_discards_the_written_part() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("thrum-archive-{}", std::process::id()));
        let mut archive = archive(&path, Arc::new(|_| Ok(())));
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
