//! Sources of payloads: an argument, a file, or standard input, whole or line by line.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::Stop;

/// The longest payload a packet can hold.
const PAYLOAD_BYTES_MAX: usize = 268_435_455;
/// Bytes of standard input that are read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// The payload to publish once.
#[derive(Debug, Args)]
pub(crate) struct PayloadArgs {
    /// Payload
    #[arg(
        short,
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        help_heading = "Message"
    )]
    message: Option<OsString>,

    /// File with the payload
    #[arg(short, long, value_name = "FILE", help_heading = "Message")]
    file: Option<PathBuf>,

    /// Empty payload
    #[arg(short, long, help_heading = "Message")]
    null_message: bool,

    /// Standard input up to its end is the payload
    #[arg(short, long, help_heading = "Message")]
    stdin_file: bool,
}

impl PayloadArgs {
    /// Number of payload options that are given.
    pub(crate) fn count(&self) -> usize {
        usize::from(self.message.is_some())
            + usize::from(self.file.is_some())
            + usize::from(self.null_message)
            + usize::from(self.stdin_file)
    }

    /// Reads the payload.
    ///
    /// # Errors
    /// The file or standard input cannot be read, or is too long for a packet.
    pub(crate) fn read(&self) -> Result<Vec<u8>, Stop> {
        let payload = if let Some(message) = &self.message {
            message.clone().into_vec()
        } else if let Some(path) = &self.file {
            read_file(path)?
        } else if self.stdin_file {
            read_bounded(std::io::stdin(), "standard input")?
        } else {
            Vec::new()
        };
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(too_long("the message"));
        }
        Ok(payload)
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, Stop> {
    let name = path.display();
    let file = File::open(path)
        .map_err(|error| Stop::usage(format!("cannot read the file {name}: {error}")))?;
    read_bounded(file, &format!("the file {name}"))
}

fn read_bounded(source: impl Read, name: &str) -> Result<Vec<u8>, Stop> {
    let mut payload = Vec::new();
    let limit = u64::try_from(PAYLOAD_BYTES_MAX + 1).unwrap_or(u64::MAX);
    source
        .take(limit)
        .read_to_end(&mut payload)
        .map_err(|error| Stop::failed(format!("cannot read {name}: {error}")))?;
    if payload.len() > PAYLOAD_BYTES_MAX {
        return Err(too_long(name));
    }
    Ok(payload)
}

fn too_long(name: &str) -> Stop {
    Stop::failed(format!(
        "{name} is over 256 MiB, more than a packet can hold"
    ))
}

/// Standard input line by line, without blocking if no bytes have arrived yet.
#[derive(Debug)]
pub(crate) struct Lines {
    source: File,
    chunk: Box<[u8]>,
    splitter: Splitter,
}

impl Lines {
    /// Reads its own descriptor, because the standard library's buffer could hold bytes back.
    pub(crate) fn of_stdin() -> Result<Self, Stop> {
        let descriptor = std::io::stdin().as_fd().try_clone_to_owned()?;
        let chunk = vec![0; CHUNK_BYTES].into_boxed_slice();
        Ok(Self {
            source: File::from(descriptor),
            chunk,
            splitter: Splitter::default(),
        })
    }

    /// The input to wait for; none once it has ended.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (!self.splitter.ended).then(|| self.source.as_fd())
    }

    /// Reads what is there.
    pub(crate) fn fill(&mut self) -> Result<(), Stop> {
        let length = self.source.read(&mut self.chunk)?;
        self.splitter.push(&self.chunk[..length])
    }

    /// The next line without its line feed; none if it has not arrived yet or the input has ended.
    pub(crate) fn peek(&mut self) -> Option<&[u8]> {
        self.splitter.peek()
    }

    /// Drops the line last peeked at.
    pub(crate) fn consume(&mut self) {
        self.splitter.consume();
    }

    /// All lines were consumed and no more will arrive.
    pub(crate) fn is_finished(&self) -> bool {
        self.splitter.ended && self.splitter.start == self.splitter.bytes.len()
    }
}

/// Cuts chunks into lines.
#[derive(Debug, Default)]
struct Splitter {
    bytes: Vec<u8>,
    start: usize,
    /// Start of the search for the next line feed: everything before was searched.
    searched: usize,
    ended: bool,
}

impl Splitter {
    /// An empty chunk is the end.
    fn push(&mut self, chunk: &[u8]) -> Result<(), Stop> {
        self.ended |= chunk.is_empty();
        self.bytes.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.bytes.extend_from_slice(chunk);
        if self.bytes.len() > PAYLOAD_BYTES_MAX {
            return Err(too_long("a line of the input"));
        }
        Ok(())
    }

    fn peek(&mut self) -> Option<&[u8]> {
        let end = self.line_end()?;
        Some(&self.bytes[self.start..end])
    }

    fn consume(&mut self) {
        if let Some(end) = self.line_end() {
            // The last line may end without a line feed.
            self.start = self.bytes.len().min(end + 1);
            self.searched = self.start;
        }
    }

    fn line_end(&mut self) -> Option<usize> {
        let found = self.bytes[self.searched..]
            .iter()
            .position(|byte| *byte == b'\n');
        self.searched = found.map_or(self.bytes.len(), |at| self.searched + at);
        match found {
            Some(_) => Some(self.searched),
            None => (self.ended && self.start < self.bytes.len()).then_some(self.bytes.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(splitter: &mut Splitter) -> Option<Vec<u8>> {
        let line = splitter.peek()?.to_vec();
        splitter.consume();
        Some(line)
    }

    #[test]
    fn lines_are_the_same_however_the_input_is_cut() {
        let input = b"one\n\ntwo\r\nlast";
        for size in 1..=input.len() {
            let mut splitter = Splitter::default();
            let mut lines = Vec::new();
            for chunk in input.chunks(size).chain([&[][..]]) {
                splitter.push(chunk).unwrap();
                lines.extend(std::iter::from_fn(|| next(&mut splitter)));
            }
            let expected: [&[u8]; 4] = [b"one", b"", b"two\r", b"last"];
            assert_eq!(lines, expected, "chunks of {size}");
        }
    }

    #[test]
    fn a_line_can_be_looked_at_again_before_it_is_consumed() {
        let mut splitter = Splitter::default();
        splitter.push(b"a\nb").unwrap();
        assert_eq!(splitter.peek(), Some(&b"a"[..]));
        assert_eq!(splitter.peek(), Some(&b"a"[..]));
        splitter.consume();
        assert_eq!(splitter.peek(), None);
        splitter.push(b"\n").unwrap();
        assert_eq!(splitter.peek(), Some(&b"b"[..]));
    }
}
