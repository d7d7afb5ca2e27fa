//! The target of a `log` sink: a file with one JSON object a line.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::Offer;
use crate::clock::Clock;

/// Bytes at the end of a file that are searched for the end of its last whole line at a time.
const TAIL_BYTES: u64 = 64 * 1024;

/// See above.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    /// Bytes that are whole lines.
    len: u64,
    /// Device and number of the file, to see that the path names another one.
    identity: (u64, u64),
    /// A write is over once the disk has it.
    syncs: bool,
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
    /// The file cannot be opened, read or cut, or is no regular file.
    pub(super) fn open(path: &Path, syncs: bool) -> io::Result<Self> {
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            let what = "it is not a regular file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let len = cut_torn_line(&mut file, metadata.len())?;
        if syncs {
            sync_directory(path)?;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            len,
            identity: (metadata.dev(), metadata.ino()),
            syncs,
            lines: Vec::new(),
        })
    }

    /// Appends the messages, all or none.
    ///
    /// # Errors
    /// The disk did not take them.
    pub(super) fn write(&mut self, offers: &[Offer], clock: &Clock) -> io::Result<()> {
        self.follow()?;
        self.lines.clear();
        for offer in offers {
            let line = Line::of(offer, clock);
            serde_json::to_writer(&mut self.lines, &line)?;
            self.lines.push(b'\n');
        }
        let written = self.file.write_all(&self.lines).and_then(|()| {
            if self.syncs {
                self.file.sync_data()
            } else {
                Ok(())
            }
        });
        let lines = self.lines.len() as u64;
        self.lines.shrink_to(2 * super::writer::BATCH_BYTES);
        match written {
            Ok(()) => self.len += lines,
            // What is cut is written again.
            Err(_) => self.file.set_len(self.len)?,
        }
        written
    }

    /// Opens the file of that name if another program has moved or removed the one that is open.
    fn follow(&mut self) -> io::Result<()> {
        let is_same = std::fs::metadata(&self.path)
            .is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == self.identity);
        if !is_same {
            *self = Self::open(&self.path, self.syncs)?;
        }
        Ok(())
    }
}

impl<'a> Line<'a> {
    fn of(offer: &'a Offer, clock: &Clock) -> Self {
        let publication = offer.message.publication();
        let properties = publication.properties;
        let payload = match std::str::from_utf8(publication.payload) {
            Ok(text) => Payload::Text(text),
            Err(_) => Payload::Bytes(STANDARD.encode(publication.payload)),
        };
        Self {
            timestamp: clock.wall_millis(offer.received_at),
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
/// program has written, the last line gets its end instead. Returns the length then.
fn cut_torn_line(file: &mut File, len: u64) -> io::Result<u64> {
    let whole = end_of_last_line(file, len)?;
    if whole == len {
        return Ok(len);
    }
    let mut first = [0];
    file.seek(SeekFrom::Start(whole))?;
    file.read_exact(&mut first)?;
    if first == *b"{" || first == [0] {
        file.set_len(whole)?;
        return Ok(whole);
    }
    file.write_all(b"\n")?;
    Ok(len + 1)
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
