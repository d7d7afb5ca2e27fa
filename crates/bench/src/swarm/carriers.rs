//! The threads that carry the connections of this process over QUIC: how long they were ready to
//! run and waited for a core. No thread of clients sees that in its own account.

use std::collections::VecDeque;

use super::run_queue::RunQueue;

/// Looks that are kept: several seconds of them, at the pace of a thread that waits for messages.
const LOOKS_MAX: usize = 4_096;

/// Looks closer together than this are one.
const LOOK_NS_MIN: u64 = 50_000;

/// The waits of the threads, as seen from time to time.
#[derive(Debug)]
pub(super) struct Carriers {
    accounts: Vec<RunQueue>,
    waits: Waits,
}

/// The time waited until each look, of all threads together.
#[derive(Debug, Default)]
struct Waits {
    /// Oldest first.
    looks: VecDeque<Look>,
    waited_ns: u64,
}

/// What was known at a time.
#[derive(Clone, Copy, Debug)]
struct Look {
    at_ns: u64,
    waited_ns: u64,
}

impl Carriers {
    /// Those with these numbers of the kernel.
    pub(super) fn new(threads: impl Iterator<Item = u32>) -> Self {
        Self {
            accounts: threads.map(RunQueue::of_thread).collect(),
            waits: Waits::default(),
        }
    }

    /// Reads the accounts. A wait is in them once it is over, so before what was waited for.
    pub(super) fn look(&mut self, now_ns: u64) {
        if self.accounts.is_empty() || !self.waits.is_due(now_ns) {
            return;
        }
        let waits = self
            .accounts
            .iter_mut()
            .filter_map(RunQueue::wait_since_last_call);
        self.waits.enter(now_ns, waits.sum());
    }

    /// How long they may have kept what has been under way since then.
    pub(super) fn waited_since_ns(&self, since_ns: u64) -> u64 {
        self.waits.since_ns(since_ns)
    }
}

impl Waits {
    fn is_due(&self, now_ns: u64) -> bool {
        let last = self.looks.back();
        last.is_none_or(|last| now_ns.saturating_sub(last.at_ns) >= LOOK_NS_MIN)
    }

    fn enter(&mut self, at_ns: u64, waited_ns: u64) {
        self.waited_ns += waited_ns;
        let look = Look {
            at_ns,
            waited_ns: self.waited_ns,
        };
        // The first and the last of equal ones tell all.
        let [before, last] = [2, 1].map(|back| {
            let at = self.looks.len().checked_sub(back)?;
            self.looks.get(at).map(|look| look.waited_ns)
        });
        if last == Some(look.waited_ns) && before == last {
            self.looks.pop_back();
        } else if self.looks.len() >= LOOKS_MAX {
            self.looks.pop_front();
        }
        self.looks.push_back(look);
    }

    /// Of what is older than the looks, all that they have is counted.
    fn since_ns(&self, since_ns: u64) -> u64 {
        let later = self.looks.partition_point(|look| look.at_ns <= since_ns);
        let before = later.checked_sub(1).and_then(|at| self.looks.get(at));
        let before_ns = match before {
            Some(look) => look.waited_ns,
            // What was dropped had been waited before.
            None if self.looks.len() < LOOKS_MAX => 0,
            None => self.looks.front().map_or(0, |first| first.waited_ns),
        };
        self.waited_ns - before_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn what_is_under_way_has_had_all_waits_since_the_look_before_it_left() {
        let mut waits = Waits::default();
        for (at_ms, waited_ms) in [(10, 1), (20, 0), (30, 0), (40, 0), (50, 5), (60, 2)] {
            waits.enter(at_ms * MS, waited_ms * MS);
        }
        let since = |at_ms: u64| waits.since_ns(at_ms * MS) / MS;
        assert_eq!([since(5), since(10), since(15), since(40)], [8, 7, 7, 7]);
        assert_eq!([since(49), since(50), since(59), since(60)], [7, 2, 2, 0]);
        // The looks in between that told nothing are not kept.
        assert_eq!(waits.looks.len(), 4);
    }

    #[test]
    fn the_looks_kept_are_limited() {
        let mut waits = Waits::default();
        for number in 0..10_000 {
            waits.enter(number * MS, 1_000);
        }
        assert_eq!(waits.looks.len(), LOOKS_MAX);
        assert_eq!(waits.since_ns(9_989 * MS), 10_000);
        assert_eq!(
            waits.since_ns(0),
            1_000 * (u64::try_from(LOOKS_MAX).unwrap() - 1)
        );
    }

    #[test]
    fn without_threads_there_are_no_waits() {
        let mut none = Carriers::new(std::iter::empty());
        none.look(MS);
        assert_eq!(none.waited_since_ns(0), 0);
    }
}
