//! Which connection is due when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Entries of connections that are gone or have another time by now stay until they are due, unless
/// there are more than this for each connection.
const ENTRIES_PER_CONNECTION: usize = 8;

/// Fewer entries are not worth looking through.
const ENTRIES_MIN: usize = 4096;

/// Times and the connections that they concern. An entry is a hint: its taker checks whether
/// it still holds.
#[derive(Debug, Default)]
pub(super) struct Timetable {
    entries: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Timetable {
    pub(super) fn add(&mut self, at_ns: u64, key: usize) {
        self.entries.push(Reverse((at_ns, key)));
    }

    /// Adds an entry if there is a time.
    pub(super) fn extend(&mut self, at_ns: Option<u64>, key: usize) {
        if let Some(at_ns) = at_ns {
            self.add(at_ns, key);
        }
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        self.entries.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// Takes the first entry if it is due.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<(u64, usize)> {
        self.next_ns().filter(|at_ns| *at_ns <= now_ns)?;
        self.entries.pop().map(|Reverse(entry)| entry)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Drops outdated and duplicate entries if they have become too many for this many
    /// connections.
    pub(super) fn prune(&mut self, connections: usize, holds: impl Fn(u64, usize) -> bool) {
        if self.entries.len() > ENTRIES_MIN + connections * ENTRIES_PER_CONNECTION {
            let mut entries = std::mem::take(&mut self.entries).into_vec();
            entries.retain(|Reverse((at_ns, key))| holds(*at_ns, *key));
            entries.sort_unstable();
            entries.dedup();
            self.entries = entries.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_taken_in_order_of_time_when_they_are_due() {
        let mut table = Timetable::default();
        for (at_ns, key) in [(30, 1), (10, 2), (20, 3)] {
            table.add(at_ns, key);
        }
        assert_eq!(table.take_due(9), None);
        assert_eq!(table.take_due(25), Some((10, 2)));
        assert_eq!(table.take_due(25), Some((20, 3)));
        assert_eq!(table.take_due(25), None);
        assert_eq!(table.next_ns(), Some(30));
    }

    #[test]
    fn outdated_entries_are_dropped_when_there_are_many() {
        let mut table = Timetable::default();
        for at_ns in 0..100 {
            table.add(at_ns, 7);
        }
        table.prune(1, |_, _| false);
        assert_eq!(table.len(), 100);
        for at_ns in 100..10_000 {
            table.add(at_ns, 7);
            table.add(9_999, 7);
        }
        table.prune(1, |at_ns, _| at_ns == 9_999);
        assert_eq!(table.take_due(u64::MAX), Some((9_999, 7)));
        assert_eq!(table.len(), 0);
    }
}
