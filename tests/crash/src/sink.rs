//! The file of a durable `log` sink: every message that was accepted stands in it, whatever
//! happened to the broker in between.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::event::MessageNumber;
use crate::payload::number_of;

/// The file, as far as it was read.
#[derive(Debug)]
pub struct SinkLog {
    path: PathBuf,
    folder: PathBuf,
    /// Where its folder is while the sink cannot write.
    away: PathBuf,
    /// Bytes of whole lines.
    read: u64,
    written: BTreeSet<MessageNumber>,
}

impl SinkLog {
    /// The file of a run in this folder; it need not exist yet.
    ///
    /// # Panics
    /// The folder cannot be written.
    pub fn new(scratch: &Path) -> Self {
        let folder = scratch.join("sink");
        fs::create_dir_all(&folder).expect("a folder of the test");
        Self {
            path: folder.join("log.jsonl"),
            folder,
            away: scratch.join("sink-away"),
            read: 0,
            written: BTreeSet::new(),
        }
    }

    /// For the environment of a broker that writes to it.
    pub fn environment(&self) -> [(String, String); 2] {
        let path = self.path.to_string_lossy().into_owned();
        [("FILTER", "#".to_owned()), ("PATH", path)]
            .map(|(key, value)| (format!("THRUM_SINKS__CRASH__{key}"), value))
    }

    /// The sink cannot write from now on: its messages wait.
    ///
    /// # Panics
    /// The folder cannot be moved.
    pub fn goes(&self) {
        if !self.away.exists() {
            fs::rename(&self.folder, &self.away).expect("it is there");
        }
    }

    /// It can write again.
    ///
    /// # Panics
    /// As [`Self::goes`].
    pub fn comes_back(&self) {
        if self.away.exists() {
            fs::rename(&self.away, &self.folder).expect("it is away");
        }
    }

    /// Reads on; the messages of `accepted` that do not stand in it.
    ///
    /// # Panics
    /// A whole line is not what the broker writes.
    pub fn missing(&mut self, accepted: &BTreeSet<MessageNumber>) -> Vec<MessageNumber> {
        self.read_on();
        accepted.difference(&self.written).copied().collect()
    }

    fn read_on(&mut self) {
        let Ok(file) = File::open(&self.path) else {
            return;
        };
        let mut file = BufReader::new(file);
        file.seek(SeekFrom::Start(self.read))
            .expect("a regular file");
        let mut line = Vec::new();
        loop {
            line.clear();
            let bytes = file.read_until(b'\n', &mut line).expect("a readable file");
            if line.last() != Some(&b'\n') {
                return;
            }
            self.read += bytes as u64;
            self.written.extend(number_in(&line));
        }
    }
}

/// The number of the message of a line; none if it was not sent by a client of the run.
fn number_in(line: &[u8]) -> Option<MessageNumber> {
    let shown = || String::from_utf8_lossy(line).into_owned();
    let parsed: serde_json::Value = serde_json::from_slice(line)
        .unwrap_or_else(|error| panic!("a line of the sink is no JSON: {error}: {}", shown()));
    let bytes = if let Some(text) = parsed["payload_base64"].as_str() {
        STANDARD.decode(text).expect("base64")
    } else {
        let text = parsed["payload"].as_str();
        let text = text.unwrap_or_else(|| panic!("a line without payload: {}", shown()));
        text.as_bytes().to_vec()
    };
    number_of(&bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::payload::payload;

    #[test]
    fn only_whole_lines_count() {
        let scratch = std::env::temp_dir().join(format!("thrum-sink-{}", std::process::id()));
        fs::create_dir_all(&scratch).unwrap();
        let mut log = SinkLog::new(&scratch);
        let accepted = [1, 2].into();
        assert_eq!(log.missing(&accepted), [1, 2]);
        let mut file = File::create(&log.path).unwrap();
        let line = |number| {
            let text = STANDARD.encode(payload(number, 16));
            format!("{{\"payload_base64\":\"{text}\"}}\n")
        };
        file.write_all(line(1).as_bytes()).unwrap();
        let second = line(2);
        file.write_all(&second.as_bytes()[..10]).unwrap();
        assert_eq!(log.missing(&accepted), [2]);
        file.write_all(&second.as_bytes()[10..]).unwrap();
        assert_eq!(log.missing(&accepted), [0_u64; 0]);
        fs::remove_dir_all(&scratch).unwrap();
    }
}
