//! The target of a `log` sink: a file with one JSON object in each line.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::Serialize;
use thrum_engine::sinks::Offer;

use thrum_engine::node::WallClock;

/// Bytes read at a time, from the end of a file, to find the end of its last whole line.
const TAIL_BYTES: u64 = 64 * 1024;
/// The beginning of every line that a sink writes.
const LINE_BEGIN: &[u8] = b"{\"timestamp\":";

/// The file that a sink writes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) path: PathBuf,
    /// A write ends only when the disk has the data.
    pub(super) syncs: bool,
}

/// A file that one sink of one process writes to. A lock on it prevents a second writer, under
/// another name of the file or in another broker.
#[derive(Debug)]
pub(super) struct LogFile {
    target: Target,
    file: File,
    /// Device and inode of the file, to notice that the path refers to another file.
    identity: (u64, u64),
    /// A failed write left bytes that could not be removed: the file has to be opened again.
    is_dirty: bool,
    /// The lines of the current write.
    lines: Vec<u8>,
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    /// Milliseconds of the Unix epoch at which the broker received the message.
    timestamp: u64,
    topic: &'a str,
    qos: u8,
    retain: bool,
    #[serde(flatten)]
    payload: Payload<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_topic: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_data_base64: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    user_properties: Vec<(&'a str, &'a str)>,
}

#[derive(Debug, Serialize)]
enum Payload<'a> {
    #[serde(rename = "payload")]
    Text(&'a str),
    #[serde(rename = "payload_base64")]
    Bytes(String),
}

impl LogFile {
    /// Opens the file for appending, or creates it. An incomplete last line, which a broker leaves
    /// when it ends during a write, is removed.
    ///
    /// # Errors
    /// The file cannot be opened, read or truncated, is no regular file, or has another writer.
    pub(super) fn open(target: Target) -> io::Result<Self> {
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&target.path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            let what = "it is not a regular file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        lock(&file)?;
        repair_last_line(&mut file)?;
        if target.syncs {
            sync_directory(&target.path)?;
        }
        Ok(Self {
            target,
            file,
            identity: (metadata.dev(), metadata.ino()),
            is_dirty: false,
            lines: Vec::new(),
        })
    }

    /// Whether the file was opened for this target.
    pub(super) fn is_of(&self, target: &Target) -> bool {
        self.target == *target
    }

    /// Whether writes go to this target and the path still refers to the open file; if not, it has
    /// to be opened again.
    pub(super) fn is_current(&self, target: &Target) -> bool {
        let is_same = |metadata: Metadata| (metadata.dev(), metadata.ino()) == self.identity;
        !self.is_dirty && self.is_of(target) && fs::metadata(&target.path).is_ok_and(is_same)
    }

    /// Appends messages, the oldest first, until the disk is full; returns the number of messages
    /// written.
    ///
    /// # Errors
    /// The disk took no message.
    pub(super) fn write(&mut self, offers: &[Offer], clock: &WallClock) -> io::Result<usize> {
        self.lines.clear();
        for offer in offers {
            let line = Line::of(offer, clock);
            serde_json::to_writer(&mut self.lines, &line)?;
            self.lines.push(b'\n');
        }
        // Another program may have truncated the file.
        let before = self.file.metadata()?.len();
        let mut taken = 0;
        let written = append(&mut self.file, &self.lines, &mut taken);
        let whole = whole_lines(self.lines.get(..taken).unwrap_or_default());
        let synced = if self.target.syncs && !whole.is_empty() {
            self.file.sync_data()
        } else {
            Ok(())
        };
        let kept = if synced.is_ok() { whole } else { &[] };
        let count = kept.split_inclusive(|byte| *byte == b'\n').count();
        let (end, after) = (before + kept.len() as u64, before + taken as u64);
        if end < after {
            self.truncate_to(end, after);
        }
        self.lines.shrink_to(2 * super::writer::BATCH_BYTES);
        if count > 0 {
            return Ok(count);
        }
        written.and(synced).map(|()| 0)
    }

    /// Removes the bytes of a failed write behind `end`, if the file still has the length that the
    /// write left. Opening the file again repairs any other remains.
    fn truncate_to(&mut self, end: u64, after: u64) {
        // If another program has truncated the file, setting its length would fill it with zeros.
        let len = self.file.metadata().map(|metadata| metadata.len());
        let is_ours = len.is_ok_and(|len| len == after);
        self.is_dirty = !is_ours || self.file.set_len(end).is_err();
    }
}

/// Writes the bytes; `taken` is the number that the disk took, also after an error.
fn append(file: &mut File, bytes: &[u8], taken: &mut usize) -> io::Result<()> {
    while let Some(rest) = bytes.get(*taken..).filter(|rest| !rest.is_empty()) {
        match file.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => *taken += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The part of the bytes up to the end of the last whole line.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    end.and_then(|at| bytes.get(..=at)).unwrap_or_default()
}

/// # Errors
/// Another sink or another program has the lock.
fn lock(file: &File) -> io::Result<()> {
    let locked = flock(file, FlockOperation::NonBlockingLockExclusive);
    locked.map_err(|error| match error {
        Errno::WOULDBLOCK => io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another sink or another broker writes to this file",
        ),
        error => error.into(),
    })
}

impl<'a> Line<'a> {
    fn of(offer: &'a Offer, clock: &WallClock) -> Self {
        let publication = offer.message.publication();
        let properties = publication.properties;
        let payload = match std::str::from_utf8(publication.payload) {
            Ok(text) => Payload::Text(text),
            Err(_) => Payload::Bytes(STANDARD.encode(publication.payload)),
        };
        Self {
            timestamp: clock.millis(offer.received_at),
            topic: publication.topic,
            qos: publication.qos as u8,
            retain: publication.retain,
            payload,
            content_type: properties.content_type,
            response_topic: properties.response_topic,
            correlation_data_base64: properties
                .correlation_data
                .map(|data| STANDARD.encode(data)),
            user_properties: properties.user.iter().collect(),
        }
    }
}

/// Removes an incomplete last line of a sink; if another program has written the line, completes it
/// with a line feed.
fn repair_last_line(file: &mut File) -> io::Result<()> {
    let len = file.metadata()?.len();
    let whole = end_of_last_line(file, len)?;
    if whole == len {
        return Ok(());
    }
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(whole))?;
    let mut begin = io::Read::by_ref(file).take(LINE_BEGIN.len() as u64);
    begin.read_to_end(&mut tail)?;
    if LINE_BEGIN.starts_with(&tail) || tail.iter().all(|byte| *byte == 0) {
        return file.set_len(whole);
    }
    file.write_all(b"\n")
}

/// Offset behind the last whole line.
fn end_of_last_line(file: &mut File, len: u64) -> io::Result<u64> {
    let mut end = len;
    let mut tail = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(TAIL_BYTES);
        tail.clear();
        file.seek(SeekFrom::Start(start))?;
        io::Read::by_ref(file)
            .take(end - start)
            .read_to_end(&mut tail)?;
        if let Some(at) = tail.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Syncs the directory, so that the name of a new file is on the disk too.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    File::open(parent.unwrap_or_else(|| Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str) -> Target {
        let process = std::process::id();
        Target {
            path: std::env::temp_dir().join(format!("thrum-log-file-{name}-{process}")),
            syncs: false,
        }
    }

    #[test]
    fn a_file_has_one_writer_whatever_its_name() {
        let [target, link] = [target("one"), target("link")];
        let open = LogFile::open(target.clone()).expect("a file of the test");
        std::os::unix::fs::symlink(&target.path, &link.path).expect("a link of the test");
        for other in [&target, &link] {
            let refused = LogFile::open(other.clone()).expect_err("it has a writer");
            assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy);
        }
        drop(open);
        LogFile::open(link.clone()).expect("its writer is gone");
        for path in [&target.path, &link.path] {
            fs::remove_file(path).expect("it is there");
        }
    }

    #[test]
    fn only_lines_with_an_end_are_whole() {
        let cases = [
            ("", ""),
            ("{\"a", ""),
            ("{}\n", "{}\n"),
            ("{}\n{}\n{\"", "{}\n{}\n"),
        ];
        for (bytes, whole) in cases {
            assert_eq!(whole_lines(bytes.as_bytes()), whole.as_bytes());
        }
    }

    #[test]
    fn a_file_that_was_emptied_during_a_failed_write_does_not_get_its_length_back() {
        let target = target("emptied");
        let path = target.path.clone();
        let mut log = LogFile::open(target.clone()).expect("a file of the test");
        log.file
            .write_all(b"{\"timestamp\":0}\n{\"timest")
            .expect("it is written");
        log.truncate_to(16, 24);
        assert_eq!(
            fs::read(&path).expect("it is there"),
            b"{\"timestamp\":0}\n"
        );
        assert!(log.is_current(&target));
        fs::write(&path, "").expect("another program empties it");
        log.file.write_all(b"{\"timest").expect("it is written");
        log.truncate_to(16, 24);
        assert_eq!(fs::read(&path).expect("it is there"), b"{\"timest");
        assert!(!log.is_current(&target));
        fs::remove_file(&path).expect("it is there");
    }
}
