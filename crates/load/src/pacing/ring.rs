//! The order in which the messages of one thread's publishers are due.
//!
//! Where the publishers of a group keep their order from round to round the schedule is a ring and
//! costs nothing; only random arrivals need a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Pace;

/// One thread's publishers of one group.
#[derive(Clone, Debug)]
pub struct Ring {
    pace: Pace,
    members: Vec<Member>,
    span_ns: u64,
    order: Order,
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

#[derive(Clone, Debug)]
enum Order {
    /// Each member once in a round; the next message.
    Rounds(Next),
    /// The next message of each member, the earliest on top.
    Random(BinaryHeap<Reverse<Next>>),
}

/// A message to come. Ordered by time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    offset_ns: u64,
    /// At `u32::MAX` the sequences are used up.
    sequence: u32,
    /// Index into the members.
    position: usize,
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
        let pace = pace.into();
        let members = members.into_iter();
        let members: Vec<_> = members
            .map(|(publisher, slot)| Member { publisher, slot })
            .collect();
        let first = |(position, member): (usize, &Member)| Next {
            offset_ns: pace.offset_ns(member.publisher, 0),
            sequence: 0,
            position,
        };
        let mut firsts = members.iter().enumerate().map(first);
        let order = if pace.goes_in_rounds() {
            Order::Rounds(firsts.next().unwrap_or_default())
        } else {
            Order::Random(firsts.map(Reverse).collect())
        };
        Self {
            pace,
            members,
            span_ns,
            order,
        }
    }

    /// The next message that is due; none when the load is over.
    pub fn next(&self) -> Option<Tick> {
        let next = match &self.order {
            Order::Rounds(next) => *next,
            Order::Random(heap) => heap.peek()?.0,
        };
        let member = self.members.get(next.position)?;
        // Offsets ascend: when one is past the end, so are all that follow.
        let is_due = next.offset_ns < self.span_ns && next.sequence < u32::MAX;
        is_due.then_some(Tick {
            slot: member.slot,
            sequence: next.sequence,
            offset_ns: next.offset_ns,
        })
    }

    /// Advances to the message after [`Ring::next`].
    pub fn advance(&mut self) {
        match &mut self.order {
            Order::Rounds(next) => {
                next.position += 1;
                if next.position >= self.members.len() {
                    next.position = 0;
                    next.sequence = next.sequence.saturating_add(1);
                }
                place(next, &self.pace, &self.members);
            }
            Order::Random(heap) => {
                let Some(mut top) = heap.peek_mut() else {
                    return;
                };
                top.0.sequence = top.0.sequence.saturating_add(1);
                place(&mut top.0, &self.pace, &self.members);
            }
        }
    }

    /// Ends the load earlier.
    pub fn cut(&mut self, span_ns: u64) {
        self.span_ns = self.span_ns.min(span_ns);
    }

    /// Ends the load at another time, earlier or later.
    pub const fn end_at(&mut self, span_ns: u64) {
        self.span_ns = span_ns;
    }
}

/// Computes when a message is due: once for each.
fn place(next: &mut Next, pace: &Pace, members: &[Member]) {
    if let Some(member) = members.get(next.position) {
        next.offset_ns = if next.sequence < u32::MAX {
            pace.offset_ns(member.publisher, next.sequence)
        } else {
            u64::MAX
        };
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
        ring.order = Order::Rounds(Next {
            sequence: u32::MAX - 2,
            ..Next::default()
        });
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
