//! The audit log of a broker without a data directory: the newest entries, in memory.

use std::collections::VecDeque;

use super::entry::{End, Entry};

/// Entries: about 1 MB.
const ENTRIES_MAX: usize = 2000;

/// The newest entries.
#[derive(Debug, Default)]
pub(super) struct Ring {
    entries: VecDeque<Entry>,
    next: u64,
}

impl Ring {
    /// Adds an entry, and returns its number.
    pub(super) fn push(&mut self, mut entry: Entry) -> u64 {
        self.next += 1;
        entry.number = self.next;
        if self.entries.len() >= ENTRIES_MAX {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
        self.next
    }

    /// Notes how one ended, if it is still there.
    pub(super) fn end(&mut self, end: End) {
        let mut entries = self.entries.iter_mut().rev();
        if let Some(entry) = entries.find(|entry| entry.number == end.of) {
            entry.end(end);
        }
    }

    /// The newest first.
    pub(super) fn newest(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().rev()
    }
}
