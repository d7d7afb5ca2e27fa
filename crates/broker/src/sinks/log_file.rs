//! The target of a `log` sink: a file with one JSON object a line.

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

/// Bytes at the end of a file that are searched for the end of its last whole line at a time.
const TAIL_BYTES: u64 = 64 * 1024;
/// Every line of a sink begins with it.
const LINE_BEGIN: &[u8] = b"{\"timestamp\":";

/// What a sink writes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) path: PathBuf,
    /// A write is over once the disk has it.
    pub(super) syncs: bool,
}

/// See above. One sink of one process has a file, by a lock on it: neither another name of the file
/// nor another broker leads to a second writer.
#[derive(Debug)]
pub(super) struct LogFile {
    target: Target,
    file: File,
    /// Device and number of the file, to see that the path names another one.
    identity: (u64, u64),
    /// A failed write left bytes that could not be cut: the file is opened again.
    is_dirty: bool,
    /// Lines of the write at hand.
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
    /// Opens the file to append to it, and creates it if there is none. A line that is not whole,
    /// because the broker ended while it wrote, is cut off.
    ///
    /// # Errors
    /// The file cannot be opened, read or cut, is no regular file, or has another writer.
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
        cut_torn_line(&mut file)?;
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

    /// Whether writes go there and the path still names the file; if not, it has to be opened
    /// again.
    pub(super) fn is_current(&self, target: &Target) -> bool {
        let is_same = |metadata: Metadata| (metadata.dev(), metadata.ino()) == self.identity;
        !self.is_dirty && self.target == *target && fs::metadata(&target.path).is_ok_and(is_same)
    }

    /// Appends the messages, all or none.
    ///
    /// # Errors
    /// The disk did not take them.
    pub(super) fn write(&mut self, offers: &[Offer], clock: &WallClock) -> io::Result<()> {
        self.lines.clear();
        for offer in offers {
            let line = Line::of(offer, clock);
            serde_json::to_writer(&mut self.lines, &line)?;
            self.lines.push(b'\n');
        }
        // Another program may have emptied the file.
        let before = self.file.metadata()?.len();
        let written = self.file.write_all(&self.lines).and_then(|()| {
            if self.target.syncs {
                self.file.sync_data()
            } else {
                Ok(())
            }
        });
        if written.is_err() {
            self.cut_back(before);
        }
        self.lines.shrink_to(2 * super::writer::BATCH_BYTES);
        written
    }

    /// Removes what a failed write has left, if nothing else stands behind it. What remains is
    /// repaired when the file is opened again.
    fn cut_back(&mut self, before: u64) {
        let after = self.file.metadata().map(|metadata| metadata.len());
        let is_ours = after.is_ok_and(|after| after <= before + self.lines.len() as u64);
        self.is_dirty = !is_ours || self.file.set_len(before).is_err();
    }
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

/// Cuts what follows the last end of a line, if a line of ours began there; of a file that another
/// program has written, the last line gets its end instead.
fn cut_torn_line(file: &mut File) -> io::Result<()> {
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

/// Where the last line ends that has an end.
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

/// The name of a new file is on the disk as well.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    File::open(parent.unwrap_or_else(|| Path::new(".")))?.sync_all()
}
