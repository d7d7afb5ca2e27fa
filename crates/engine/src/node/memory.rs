//! Memory level of the process, as all workers know it, and the growth of the sessions of one
//! worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use thrum_protection::MemoryLevel;
use thrum_protocol::Time;

/// Interval in which a busy worker reads the resident memory. A reading takes some microseconds.
const READ_INTERVAL: Duration = Duration::from_millis(10);
/// Part of the limit, divided among the workers, by which the sessions of a worker may grow before
/// the worker reads the memory within a turn.
const STEPS: u64 = 128;
/// Smallest growth in bytes that is worth the system call of a reading.
const STEP_MIN: u64 = 256 * 1024;
/// Part of the limit that must have become free before memory is returned to the system.
const GIVE_BACK: u64 = 16;

/// A shared [`MemoryLevel`] as a number, which is 0 while there is enough memory.
pub type SharedLevel = Arc<AtomicU8>;

/// Memory level of the process, shared by all workers.
#[derive(Debug)]
pub struct NodeMemory {
    level: SharedLevel,
    /// Time of the last reading, in milliseconds of the node's clock.
    read_at: AtomicU64,
    /// Bytes that sessions have freed since memory was last returned to the system.
    freed: AtomicU64,
    is_giving_back: AtomicBool,
}

impl Default for NodeMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl NodeMemory {
    /// Creates the state of a node with enough memory.
    pub fn new() -> Self {
        Self {
            level: SharedLevel::default(),
            read_at: AtomicU64::new(0),
            freed: AtomicU64::new(0),
            is_giving_back: AtomicBool::new(false),
        }
    }

    /// The current memory level.
    #[inline]
    pub fn level(&self) -> MemoryLevel {
        MemoryLevel::ALL[usize::from(self.level.load(Ordering::Relaxed)) % MemoryLevel::ALL.len()]
    }

    /// The shared memory level, for the capacity of queues.
    pub fn shared_level(&self) -> SharedLevel {
        Arc::clone(&self.level)
    }

    /// Updates the level for `bytes` in use; returns the level, and the previous one to the caller
    /// that changed it.
    pub fn observe(&self, bytes: u64, limit: u64) -> (MemoryLevel, Option<MemoryLevel>) {
        let before = self.level();
        let level = before.next(bytes, limit);
        if level == before {
            return (level, None);
        }
        // One of several workers that see the same change reports it.
        let said = self.level.compare_exchange(
            before as u8,
            level as u8,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        (level, said.is_ok().then_some(before))
    }

    /// Whether the last reading is too old; then this call counts as the next reading.
    fn is_due(&self, now: Time) -> bool {
        let (now, read_at) = (now.as_millis(), self.read_at.load(Ordering::Relaxed));
        let every = u64::try_from(READ_INTERVAL.as_millis()).unwrap_or(u64::MAX);
        let is_due = now.saturating_sub(read_at) >= every;
        if is_due {
            self.read_at.store(now, Ordering::Relaxed);
        }
        is_due
    }

    /// Whether enough memory is free to be returned to the system; true for one caller, which has
    /// to call [`NodeMemory::finish_giving_back`] when that is done.
    pub fn should_give_back(&self, limit: u64) -> bool {
        let is_worth_it = self.freed.load(Ordering::Relaxed) >= limit / GIVE_BACK;
        let should = is_worth_it && !self.is_giving_back.swap(true, Ordering::Relaxed);
        if should {
            self.freed.store(0, Ordering::Relaxed);
        }
        should
    }

    /// Records that memory was returned to the system.
    pub fn finish_giving_back(&self) {
        self.is_giving_back.store(false, Ordering::Relaxed);
    }
}

/// Memory level as one worker knows it, and the growth of its sessions.
#[derive(Debug, Default)]
pub struct WorkerMemory {
    /// The memory level at the start of the turn or later.
    pub level: MemoryLevel,
    /// The current message was queued while memory is low, so that its publisher is read less.
    pub has_queued: bool,
    limit: u64,
    /// Growth in bytes of this worker's sessions since its last reading.
    grown: u64,
    step: u64,
    freed: u64,
}

impl WorkerMemory {
    /// Sets the memory limit of the process in bytes, 0 for none, and the number of workers.
    pub fn set_limit(&mut self, limit: u64, workers: usize) {
        self.limit = limit;
        self.step = if limit == 0 {
            u64::MAX
        } else {
            (limit / STEPS / workers as u64).max(STEP_MIN)
        };
    }

    /// The memory limit of the process in bytes; 0 is none.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Adds to the growth of the sessions; true if the memory should be read.
    #[inline]
    pub fn grew(&mut self, bytes: usize) -> bool {
        self.grown += bytes as u64;
        self.grown >= self.step
    }

    /// Adds to the bytes that the sessions have freed.
    pub fn shrank(&mut self, bytes: u64) {
        self.freed += bytes;
    }

    /// Resets the growth for a reading of the memory by this worker.
    pub fn reset_growth(&mut self) {
        self.grown = 0;
    }

    /// Whether this worker has to read the memory at the end of a turn.
    pub fn must_read(&mut self, node: &NodeMemory, now: Time) -> bool {
        if self.limit == 0 || !node.is_due(now) {
            return false;
        }
        let freed = std::mem::take(&mut self.freed);
        node.freed.fetch_add(freed, Ordering::Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_reports_a_change_of_the_level() {
        let node = NodeMemory::new();
        assert_eq!(
            node.observe(950, 1000),
            (MemoryLevel::Short, Some(MemoryLevel::Ample))
        );
        assert_eq!(node.observe(960, 1000), (MemoryLevel::Short, None));
        assert_eq!(node.level(), MemoryLevel::Short);
        assert_eq!(
            node.observe(0, 1000),
            (MemoryLevel::Ample, Some(MemoryLevel::Short))
        );
    }

    #[test]
    fn a_worker_reads_the_memory_when_its_sessions_have_grown_by_a_step() {
        let mut memory = WorkerMemory::default();
        memory.set_limit(STEPS * 4 * STEP_MIN, 2);
        let step = usize::try_from(2 * STEP_MIN).unwrap();
        assert!(!memory.grew(step - 1) && memory.grew(1));
        memory.reset_growth();
        assert!(!memory.grew(step - 1));
        memory.set_limit(0, 2);
        assert!(!memory.grew(1 << 40));
    }

    #[test]
    fn memory_is_given_back_once_for_what_became_free() {
        let node = NodeMemory::new();
        let mut memory = WorkerMemory::default();
        memory.set_limit(1600, 1);
        memory.shrank(100);
        assert!(!node.should_give_back(1600));
        assert!(memory.must_read(&node, Time::from_millis(50)));
        assert!(!memory.must_read(&node, Time::from_millis(59)));
        assert!(node.should_give_back(1600) && !node.should_give_back(1600));
        node.finish_giving_back();
        assert!(!node.should_give_back(1600));
        memory.shrank(100);
        assert!(memory.must_read(&node, Time::from_millis(60)));
        assert!(node.should_give_back(1600), "more became free");
    }
}
