//! The order in which the messages of one thread's publishers are due, without a heap.
//!
//! Publishers of one group keep their order from round to round, so the schedule is a ring.

use super::Pace;

/// One thread's publishers of one group.
#[derive(Clone, Debug)]
pub struct Ring {
    pace: Pace,
    members: Vec<Member>,
    span_ns: u64,
    position: usize,
    /// At `u32::MAX` the sequences are used up.
    round: u32,
    /// Of the member at the position in this round.
    offset_ns: u64,
}

/// A message that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// The thread's own number of the publisher.
    pub slot: u32,
    /// Sequence of the message.
    pub sequence: u32,
    /// Nanoseconds from the start of the load.
    pub offset_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    publisher: u32,
    slot: u32,
}

impl Ring {
    /// A ring for a load that lasts `span_ns`.
    ///
    /// `members` are pairs of a publisher's number in its group, ascending, and its slot in the
    /// thread.
    pub fn new(
        pace: impl Into<Pace>,
        members: impl IntoIterator<Item = (u32, u32)>,
        span_ns: u64,
    ) -> Self {
        let members = members
            .into_iter()
            .map(|(publisher, slot)| Member { publisher, slot })
            .collect();
        let mut ring = Self {
            pace: pace.into(),
            members,
            span_ns,
            position: 0,
            round: 0,
            offset_ns: 0,
        };
        ring.place();
        ring
    }

    /// The next message that is due; none when the load is over.
    pub fn next(&self) -> Option<Tick> {
        let member = self.members.get(self.position)?;
        // Offsets ascend: when one is past the end, so are all that follow.
        let is_due = self.offset_ns < self.span_ns && self.round < u32::MAX;
        is_due.then_some(Tick {
            slot: member.slot,
            sequence: self.round,
            offset_ns: self.offset_ns,
        })
    }

    /// Advances to the message after [`Ring::next`].
    pub fn advance(&mut self) {
        self.position += 1;
        if self.position >= self.members.len() {
            self.position = 0;
            self.round = self.round.saturating_add(1);
        }
        self.place();
    }

    /// Ends the load earlier.
    pub fn cut(&mut self, span_ns: u64) {
        self.span_ns = self.span_ns.min(span_ns);
    }

    /// Ends the load at another time, earlier or later.
    pub const fn end_at(&mut self, span_ns: u64) {
        self.span_ns = span_ns;
    }

    /// Computes when the member at the position is due: once for each message.
    fn place(&mut self) {
        if let Some(member) = self.members.get(self.position) {
            self.offset_ns = self.pace.offset_ns(member.publisher, self.round);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::Constant;

    fn drain(mut ring: Ring) -> Vec<(u32, u32, u64)> {
        let mut ticks = Vec::new();
        while let Some(tick) = ring.next() {
            ticks.push((tick.slot, tick.sequence, tick.offset_ns));
            ring.advance();
        }
        ticks
    }

    #[test]
    fn ticks_are_in_order_of_time() {
        let ring = Ring::new(Constant::new(100, 4), [(1, 0), (3, 1)], 250);
        assert_eq!(
            drain(ring),
            [
                (0, 0, 25),
                (1, 0, 75),
                (0, 1, 125),
                (1, 1, 175),
                (0, 2, 225)
            ]
        );
    }

    #[test]
    fn two_threads_share_the_load_without_gap_or_overlap() {
        let pace = Constant::new(1_000, 7);
        let of_thread = |first: u32| {
            let members = (0..7u32).skip(usize::try_from(first).unwrap()).step_by(2);
            drain(Ring::new(pace, members.zip(0..), 10_000))
        };
        let mut times: Vec<u64> = of_thread(0)
            .into_iter()
            .chain(of_thread(1))
            .map(|tick| tick.2)
            .collect();
        times.sort_unstable();
        let expected: u32 = (0..7)
            .map(|publisher| pace.due_within(publisher, 10_000))
            .sum();
        assert_eq!(times.len(), usize::try_from(expected).unwrap());
        assert!(
            times
                .windows(2)
                .all(|pair| (142..=143).contains(&(pair[1] - pair[0])))
        );
    }

    #[test]
    fn a_cut_load_ends_there() {
        let mut ring = Ring::new(Constant::new(100, 1), [(0, 0)], 1_000);
        ring.cut(150);
        assert_eq!(drain(ring), [(0, 0, 0), (0, 1, 100)]);
    }

    #[test]
    fn a_load_that_continues_after_its_end_misses_nothing() {
        let mut ring = Ring::new(Constant::new(100, 1), [(0, 0)], 100);
        ring.advance();
        assert_eq!(ring.next(), None);
        ring.end_at(300);
        assert_eq!(drain(ring), [(0, 1, 100), (0, 2, 200)]);
    }

    #[test]
    fn a_publisher_out_of_sequences_is_never_due_again() {
        let pace = Constant::new(1, 1);
        let mut ring = Ring::new(pace, [(0, 0)], u64::MAX);
        ring.round = u32::MAX - 2;
        ring.advance();
        assert_eq!(ring.next().map(|tick| tick.sequence), Some(u32::MAX - 1));
        ring.advance();
        assert_eq!(ring.next(), None);
        ring.advance();
        assert_eq!(ring.next(), None);
        assert_eq!(pace.due_within(0, u64::MAX), u32::MAX);
    }

    #[test]
    fn a_ring_without_publishers_is_never_due() {
        assert_eq!(Ring::new(Constant::new(100, 1), [], 1_000).next(), None);
    }
}
