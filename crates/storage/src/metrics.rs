//! Counters of the committer, readable at any time from any thread.

use std::sync::atomic::{AtomicU64, Ordering};
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
    usage: UsageCells,
}

/// The usage of the store, without a lock: a reading may have some figures of one commit and some
/// of the next.
#[derive(Debug, Default)]
struct UsageCells([AtomicU64; 11]);

impl UsageCells {
    fn store(&self, usage: Usage) {
        let Usage {
            live_bytes,
            used_bytes,
            disk_bytes_max,
            segments,
            pending_bytes,
            sessions,
            messages,
            reclaimed_segments,
            moved_records,
            damaged_places,
            reclaim_failures,
        } = usage;
        let values = [
            live_bytes,
            used_bytes,
            disk_bytes_max,
            segments as u64,
            pending_bytes as u64,
            sessions as u64,
            messages as u64,
            reclaimed_segments,
            moved_records,
            damaged_places,
            reclaim_failures,
        ];
        for (cell, value) in self.0.iter().zip(values) {
            cell.store(value, Ordering::Relaxed);
        }
    }

    fn load(&self) -> Usage {
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let values = self.0.each_ref().map(|cell| cell.load(Ordering::Relaxed));
        let [
            live_bytes,
            used_bytes,
            disk_bytes_max,
            segments,
            pending_bytes,
            sessions,
            messages,
            reclaimed_segments,
            moved_records,
            damaged_places,
            reclaim_failures,
        ] = values;
        Usage {
            live_bytes,
            used_bytes,
            disk_bytes_max,
            segments: size(segments),
            pending_bytes: size(pending_bytes),
            sessions: size(sessions),
            messages: size(messages),
            reclaimed_segments,
            moved_records,
            damaged_places,
            reclaim_failures,
        }
    }
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
        self.usage.store(usage);
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
            usage: self.usage.load(),
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
    fn a_usage_is_read_as_it_was_written() {
        let usage = Usage {
            live_bytes: 1,
            used_bytes: 2,
            disk_bytes_max: 3,
            segments: 4,
            pending_bytes: 5,
            sessions: 6,
            messages: 7,
            reclaimed_segments: 8,
            moved_records: 9,
            damaged_places: 10,
            reclaim_failures: 11,
        };
        let metrics = Metrics::default();
        metrics.usage(usage);
        assert_eq!(metrics.snapshot().usage, usage);
    }

    #[test]
    fn times_fall_into_classes_of_powers_of_two() {
        let classes = [0, 1, 2, 3, 4, 255, 256, u64::MAX].map(class_of);
        assert_eq!(classes, [0, 1, 2, 2, 3, 8, 9, COMMIT_TIME_CLASSES - 1]);
    }
}
