//! Bytes that wait for the end of the turn, so that each connection is written to once per turn.

use thrum_figures::as_index;
use thrum_load::plan::Plan;

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
    /// PUBRELs of publishers among the replies.
    pub(super) releases: u64,
}

/// Messages of one publisher that one write takes: what is written late must not wait for much.
const MESSAGES_PER_WRITE: usize = 16;

impl Outgoing {
    /// Deliveries, answers and exchanges that wait for what is written in this turn. Which of the
    /// answers are those of one client is not known: all of them, at most.
    pub(super) fn events(&self, plan: &Plan) -> u64 {
        let receivers = self.messages.iter().map(|sent| {
            let planned = plan.publishers().get(as_index(sent.publisher));
            u64::from(planned.map_or(1, |of| of.fan_out.max(1)))
        });
        receivers.sum::<u64>() + self.answers + self.releases
    }

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
    pub(super) unfinished: Unfinished,
}

/// Deliveries, answers and exchanges that wait for the unsent bytes of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unfinished {
    events: u64,
    /// When the socket took nothing more.
    full_ns: u64,
    /// How long it may have had room, and the thread did not write.
    late_ns: u64,
}

impl Unfinished {
    /// The socket does not take all that these wait for.
    pub(super) const fn add(&mut self, events: u64, now_ns: u64) {
        if self.events == 0 {
            self.full_ns = now_ns;
        }
        self.events += events;
    }

    /// The thread wrote again, having not looked at the socket since `unread_since_ns`.
    pub(super) fn write_on(&mut self, unread_since_ns: u64, now_ns: u64) {
        let has_room_ns = unread_since_ns.max(self.full_ns);
        self.late_ns += now_ns.saturating_sub(has_room_ns);
        self.full_ns = now_ns;
    }

    /// Joins what has come to wait meanwhile.
    pub(super) const fn join(&mut self, later: Self) {
        self.events += later.events;
    }

    /// Whether nothing waits.
    pub(super) const fn is_empty(self) -> bool {
        self.events == 0
    }

    /// Events and how long the thread may have had them.
    pub(super) const fn finish(self) -> (u64, u64) {
        (self.events, self.late_ns)
    }
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
    fn what_waits_for_a_socket_is_late_since_it_may_have_had_room() {
        let mut unfinished = Unfinished::default();
        unfinished.add(3, 1_000);
        unfinished.add(2, 1_500);
        // Full since 1,000, whenever the thread had looked before.
        unfinished.write_on(400, 1_200);
        // It looked at 5,000 last, and had no core until 9,000.
        unfinished.write_on(5_000, 9_000);
        assert_eq!(unfinished.finish(), (5, 4_200));
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
