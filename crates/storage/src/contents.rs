//! The contents of a log, read from outside: for inspection and for checking a copy.

use std::io;

use crate::disk::ReadDisk;
use crate::log::{
    End, FoundSegment, LogReport, OpenError, SnapshotError, SnapshotTarget, read_segment, snapshot,
};
use crate::record::{Change, Message, Will, decode};
use crate::state::{Recovered, Replay};

/// Reads the segments of a snapshot, oldest first, and collects the state.
#[derive(Debug, Default)]
pub struct Contents {
    replay: Replay,
    report: LogReport,
    /// The last segment that was read.
    last: FoundSegment,
    /// Whether topics, properties and payloads of messages and wills are omitted.
    counts_only: bool,
}

impl Contents {
    /// Collects only counts: topics, properties and payloads of messages and wills are empty and
    /// use no memory.
    pub fn counted() -> Self {
        Self {
            counts_only: true,
            ..Self::default()
        }
    }

    /// Reads the next segment, from its beginning to the end of its content.
    ///
    /// # Errors
    ///
    /// [`OpenError::Newer`] if a later version wrote it, [`OpenError::Io`] of
    /// [`io::ErrorKind::InvalidInput`] if the name is not that of a segment. Damage is not an
    /// error, but counted.
    pub fn read(&mut self, name: &str, bytes: &[u8]) -> Result<(), OpenError> {
        let Self {
            replay,
            report,
            last,
            counts_only,
        } = self;
        read_segment(name, bytes, report, last, &mut |payload| {
            let change = decode(payload);
            match change {
                Ok(change) if *counts_only => replay.apply(&without_text(change), payload),
                Ok(change) => replay.apply(&change, payload),
                Err(_) => {}
            }
            change.is_ok()
        })
    }

    /// Finishes after all segments. The report has no torn bytes, because a snapshot contains none.
    pub fn finish(self) -> (Recovered, LogReport) {
        self.finish_before(None)
    }

    /// As [`Contents::finish`], for a log that was durable up to `end`.
    fn finish_before(mut self, end: Option<End>) -> (Recovered, LogReport) {
        let (_, recovered) = self.replay.finish();
        self.report.compare_end(end, self.last);
        self.report.compare_oldest(recovered.reclaimed);
        (recovered, self.report)
    }
}

impl SnapshotTarget for Contents {
    fn start_over(&mut self) -> io::Result<()> {
        *self = Self {
            counts_only: self.counts_only,
            ..Self::default()
        };
        Ok(())
    }

    fn segment(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.read(name, bytes).map_err(io::Error::other)
    }
}

/// Reads the state of a log without changing it, even while a broker writes to it.
///
/// # Errors
///
/// As [`snapshot`].
pub fn read_state(disk: &impl ReadDisk) -> Result<(Recovered, LogReport), SnapshotError> {
    // Read before the segments, which must contain everything that is durable now.
    let end = End::read(disk);
    let mut contents = Contents::default();
    snapshot(disk, &mut contents)?;
    Ok(contents.finish_before(end))
}

fn without_text(change: Change<'_>) -> Change<'_> {
    match change {
        Change::Message(message) => Change::Message(Message {
            topic: "",
            properties: &[],
            payload: &[],
            ..message
        }),
        Change::Will(will) => Change::Will(Will {
            topic: "",
            properties: &[],
            payload: &[],
            ..will
        }),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::sim::SimStorage;
    use crate::record::Batch;
    use crate::store::{Options, Store};
    use thrum_codec::{QoS, Version};

    /// The only segment of a log with a session, its will and a message for it.
    fn segment() -> (String, Vec<u8>) {
        let storage = SimStorage::new(1);
        let (mut store, ..) = Store::open(storage.open().unwrap(), Options::default()).unwrap();
        let mut batch = Batch::default();
        batch.push(&Change::Session(crate::record::Session {
            id: 1,
            client_id: "c",
            version: Version::V5,
            expiry_secs: 60,
            away_since: None,
            packet_id_hint: 0,
            owner: crate::record::Owner::Unknown,
        }));
        batch.push(&Change::Will(Will {
            session: 1,
            delay_secs: 3,
            message_expiry_secs: None,
            qos: QoS::AtLeastOnce,
            retain: true,
            topic: "w",
            properties: b"wp",
            payload: b"will",
        }));
        batch.push(&Change::Message(Message {
            id: 1,
            publisher: 0,
            published_at: 0,
            expires_at: None,
            qos: QoS::AtLeastOnce,
            retain: true,
            topic: "t",
            properties: b"tp",
            payload: b"text",
        }));
        batch.push(&Change::Retained(crate::record::Retained {
            change: 1,
            topic: "t",
            message: 1,
            source: None,
        }));
        store.apply(&batch).unwrap();
        store.commit().unwrap();
        store.close().unwrap();
        let mut files = storage.files().into_iter();
        files.find(|(name, _)| name.contains(".log")).unwrap()
    }

    fn texts(contents: Contents) -> [Vec<u8>; 6] {
        let (recovered, report) = contents.finish();
        assert_eq!((report.segments, report.records), (1, 4));
        assert!(!report.is_damaged());
        let will = &recovered.sessions[0].will.as_ref().unwrap();
        assert_eq!((will.delay_secs, will.retain), (3, true));
        let message = &recovered.messages[0];
        assert!(message.retain);
        [
            will.content.topic().into(),
            will.content.properties().into(),
            will.content.payload().into(),
            message.content.topic().into(),
            message.content.properties().into(),
            message.content.payload().into(),
        ]
    }

    #[test]
    fn counted_contents_keep_no_text_even_after_the_reading_starts_over() {
        let (name, bytes) = segment();
        let mut contents = Contents::default();
        contents.read(&name, &bytes).unwrap();
        let all = [&b"w"[..], b"wp", b"will", b"t", b"tp", b"text"];
        assert_eq!(texts(contents), all);
        let mut counted = Contents::counted();
        counted.read(&name, &bytes).unwrap();
        counted.start_over().unwrap();
        counted.segment(&name, &bytes).unwrap();
        assert_eq!(texts(counted), [const { Vec::new() }; 6]);
    }

    #[test]
    fn a_file_without_the_name_of_a_segment_is_refused() {
        let (_, bytes) = segment();
        let error = Contents::default().segment("1.log", &bytes).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Other);
    }
}
