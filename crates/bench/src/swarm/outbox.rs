//! Bytes that wait for the end of the turn, so that each connection is written to once per turn.

use thrum_figures::as_index;

use super::times::Sending;

/// Output of many connections in one buffer, which is reused.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Bytes appended between [`Outbox::open`] and [`Outbox::close`] belong to that peer.
    pub(super) bytes: Vec<u8>,
    segments: Vec<Segment>,
}

/// All output of a turn.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Acknowledgements, answers and all that clients say by themselves.
    pub(super) replies: Outbox,
    /// Messages that are due.
    pub(super) publications: Outbox,
    /// The messages among the publications.
    pub(super) messages: Vec<Sending>,
    /// Answers among the replies.
    pub(super) answers: u64,
}

/// Messages of one publisher that one write takes: what is written late must not wait for much.
const MESSAGES_PER_WRITE: usize = 16;

impl Outgoing {
    /// Whether messages are to be written before the next one of a peer, so that each leaves soon
    /// after its send time.
    pub(super) fn is_full_for(&self, peer: u32) -> bool {
        self.messages.len() >= MESSAGES_PER_WRITE || self.publications.is_of_other(peer)
    }
}

/// Bytes of one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) peer: u32,
    start: usize,
    end: usize,
}

impl Outbox {
    /// Start of the next bytes.
    pub(super) const fn open(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes since `start` belong to `peer`; joined with what it has last.
    pub(super) fn close(&mut self, peer: u32, start: usize) {
        let end = self.bytes.len();
        if start == end {
            return;
        }
        match self.segments.last_mut() {
            Some(last) if last.peer == peer && last.end == start => last.end = end,
            _ => self.segments.push(Segment { peer, start, end }),
        }
    }

    /// Whether the last bytes belong to another peer.
    pub(super) fn is_of_other(&self, peer: u32) -> bool {
        self.segments.last().is_some_and(|last| last.peer != peer)
    }

    /// Number of segments.
    pub(super) const fn len(&self) -> usize {
        self.segments.len()
    }

    /// A segment and its bytes.
    pub(super) fn segment(&self, index: usize) -> Option<(u32, &[u8])> {
        let segment = self.segments.get(index)?;
        Some((segment.peer, self.bytes.get(segment.start..segment.end)?))
    }

    /// Empties it, keeping the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.segments.clear();
    }
}

/// Bytes that a socket did not take, or a packet that is not complete.
#[derive(Debug, Default)]
pub(super) struct Stalled {
    pub(super) partial: Vec<u8>,
    pub(super) unsent: Vec<u8>,
    /// Readable, but not read until the unsent bytes are gone.
    pub(super) paused: bool,
}

impl Stalled {
    pub(super) const fn is_empty(&self) -> bool {
        self.partial.is_empty() && self.unsent.is_empty() && !self.paused
    }
}

/// Index of a peer.
pub(super) const fn slot(peer: u32) -> usize {
    as_index(peer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(outbox: &mut Outbox, peer: u32, bytes: &[u8]) {
        let start = outbox.open();
        outbox.bytes.extend_from_slice(bytes);
        outbox.close(peer, start);
    }

    #[test]
    fn neighbouring_output_of_a_peer_becomes_one_write() {
        let mut outbox = Outbox::default();
        put(&mut outbox, 1, b"ab");
        put(&mut outbox, 1, b"c");
        put(&mut outbox, 2, b"");
        put(&mut outbox, 3, b"d");
        put(&mut outbox, 1, b"e");
        let writes: Vec<_> = (0..outbox.len())
            .filter_map(|index| outbox.segment(index))
            .collect();
        assert_eq!(writes, [(1, &b"abc"[..]), (3, b"d"), (1, b"e")]);
        outbox.clear();
        assert_eq!((outbox.len(), outbox.open()), (0, 0));
    }
}
