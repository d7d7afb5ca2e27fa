//! The order in which the publishers of one thread come due, without a heap.
//!
//! Publishers of one rate keep their order from period to period, so the schedule is a ring.

use super::Constant;

/// One thread's publishers of one group.
#[derive(Clone, Debug)]
pub struct Ring {
    pace: Constant,
    members: Vec<Member>,
    span_ns: u64,
    position: usize,
    round: u32,
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
    /// `members` are pairs of a publisher's number in its group, ascending, and its slot in the thread.
    pub fn new(
        pace: Constant,
        members: impl IntoIterator<Item = (u32, u32)>,
        span_ns: u64,
    ) -> Self {
        let members = members
            .into_iter()
            .map(|(publisher, slot)| Member { publisher, slot })
            .collect();
        Self {
            pace,
            members,
            span_ns,
            position: 0,
            round: 0,
        }
    }

    /// The next message that comes due; none when the load is over.
    pub fn next(&self) -> Option<Tick> {
        let member = self.members.get(self.position)?;
        let offset_ns = self.pace.offset_ns(member.publisher, self.round);
        // Phases ascend within a round: when one is past the end, so are all that follow.
        (offset_ns < self.span_ns).then_some(Tick {
            slot: member.slot,
            sequence: self.round,
            offset_ns,
        })
    }

    /// Goes on to the message after [`Ring::next`].
    pub fn advance(&mut self) {
        self.position += 1;
        if self.position >= self.members.len() {
            self.position = 0;
            self.round += 1;
        }
    }

    /// Ends the load earlier.
    pub fn cut(&mut self, span_ns: u64) {
        self.span_ns = self.span_ns.min(span_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(mut ring: Ring) -> Vec<(u32, u32, u64)> {
        let mut ticks = Vec::new();
        while let Some(tick) = ring.next() {
            ticks.push((tick.slot, tick.sequence, tick.offset_ns));
            ring.advance();
        }
        ticks
    }

    #[test]
    fn ticks_come_in_order_of_time() {
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
    fn a_ring_without_publishers_is_never_due() {
        assert_eq!(Ring::new(Constant::new(100, 1), [], 1_000).next(), None);
    }
}
