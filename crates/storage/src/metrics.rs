//! Counters of the committer, readable at any time from any thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::store::{Committed, Usage};

/// Classes of the histogram of commit times: class `n` counts those below 2ⁿ microseconds that no
/// earlier class counts; the last one counts everything from about four seconds on.
pub const COMMIT_TIME_CLASSES: usize = 24;

/// Counters of a committer; all except the queue and the usage only increase.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    commits: AtomicU64,
    failures: AtomicU64,
    records: AtomicU64,
    bytes: AtomicU64,
    times: [AtomicU64; COMMIT_TIME_CLASSES],
    time_micros: AtomicU64,
    queue_bytes: AtomicU64,
    queue_full: AtomicU64,
    /// Guards one copy; taken once per commit and per reading.
    usage: Mutex<Usage>,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricsSnapshot {
    /// Commits that became durable.
    pub commits: u64,
    /// Commits that failed.
    pub failures: u64,
    /// Changes written, including moved records.
    pub records: u64,
    /// Bytes written, without framing.
    pub bytes: u64,
    /// Times of commits (write and sync), by class ([`COMMIT_TIME_CLASSES`]).
    pub commit_times: [u64; COMMIT_TIME_CLASSES],
    /// Sum of these times in microseconds.
    pub commit_micros: u64,
    /// Bytes in the queue.
    pub queue_bytes: u64,
    /// Batches that were refused because the queue was full.
    pub queue_full: u64,
    /// Usage of the store.
    pub usage: Usage,
}

impl Metrics {
    pub(crate) fn committed(&self, committed: Committed, time: Duration) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.records.fetch_add(committed.records, Ordering::Relaxed);
        self.bytes.fetch_add(committed.bytes, Ordering::Relaxed);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.time_micros.fetch_add(micros, Ordering::Relaxed);
        if let Some(class) = self.times.get(class_of(micros)) {
            class.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn queue(&self, bytes: usize) {
        self.queue_bytes.store(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn queue_was_full(&self) {
        self.queue_full.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn usage(&self, usage: Usage) {
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner) = usage;
    }

    pub(crate) fn snapshot(&self) -> MetricsSnapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        MetricsSnapshot {
            commits: read(&self.commits),
            failures: read(&self.failures),
            records: read(&self.records),
            bytes: read(&self.bytes),
            commit_times: self.times.each_ref().map(read),
            commit_micros: read(&self.time_micros),
            queue_bytes: read(&self.queue_bytes),
            queue_full: read(&self.queue_full),
            usage: *self.usage.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

fn class_of(micros: u64) -> usize {
    let bits = (u64::BITS - micros.leading_zeros()) as usize;
    bits.min(COMMIT_TIME_CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_classes_of_powers_of_two() {
        let classes = [0, 1, 2, 3, 4, 255, 256, u64::MAX].map(class_of);
        assert_eq!(classes, [0, 1, 2, 2, 3, 8, 9, COMMIT_TIME_CLASSES - 1]);
    }
}
