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
