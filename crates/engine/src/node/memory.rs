//! Memory of the process against its limit, as all workers know it, and what one worker adds to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use thrum_protection::MemoryLevel;
use thrum_protocol::Time;

/// Somebody looks at the resident memory this often while there is something to do. It takes some
/// microseconds.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// A worker looks in the middle of a turn too, once its sessions hold so much more: this part of
/// the limit, divided among the workers.
const STEPS: u64 = 128;
/// More often is not worth the system call.
const STEP_MIN: u64 = 256 * 1024;
/// Memory goes back to the system once this part of the limit has become free.
const GIVE_BACK: u64 = 16;

/// A [`MemoryLevel`], 0 while there is enough.
pub type SharedLevel = Arc<AtomicU8>;

/// What all workers know.
#[derive(Debug)]
pub struct NodeMemory {
    level: SharedLevel,
    /// Milliseconds of the node's clock when somebody looked last.
    looked_at: AtomicU64,
    /// What sessions gave up since memory was last given back to the system.
    freed: AtomicU64,
    is_giving_back: AtomicBool,
}

impl NodeMemory {
    /// A node that has enough.
    pub fn new() -> Self {
        Self {
            level: SharedLevel::default(),
            looked_at: AtomicU64::new(0),
            freed: AtomicU64::new(0),
            is_giving_back: AtomicBool::new(false),
        }
    }

    /// How short memory is.
    #[inline]
    pub fn level(&self) -> MemoryLevel {
        MemoryLevel::ALL[usize::from(self.level.load(Ordering::Relaxed)) % MemoryLevel::ALL.len()]
    }

    /// The same for the rooms of queues.
    pub fn shared_level(&self) -> SharedLevel {
        Arc::clone(&self.level)
    }

    /// The level with so much memory in use; the one before if it is another.
    pub fn observe(&self, bytes: u64, limit: u64) -> (MemoryLevel, Option<MemoryLevel>) {
        let before = self.level();
        let level = before.next(bytes, limit);
        if level == before {
            return (level, None);
        }
        // Of several workers that see the same change one says so.
        let said = self.level.compare_exchange(
            before as u8,
            level as u8,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        (level, said.is_ok().then_some(before))
    }

    /// Nobody has looked for a while.
    fn is_due(&self, now: Time) -> bool {
        let (now, looked_at) = (now.as_millis(), self.looked_at.load(Ordering::Relaxed));
        let every = u64::try_from(LOOK_EVERY.as_millis()).unwrap_or(u64::MAX);
        let is_due = now.saturating_sub(looked_at) >= every;
        if is_due {
            self.looked_at.store(now, Ordering::Relaxed);
        }
        is_due
    }

    /// So much is free that the system should have it; true for one caller, who says when that is
    /// done.
    pub fn should_give_back(&self, limit: u64) -> bool {
        let is_worth_it = self.freed.load(Ordering::Relaxed) >= limit / GIVE_BACK;
        let should = is_worth_it && !self.is_giving_back.swap(true, Ordering::Relaxed);
        if should {
            self.freed.store(0, Ordering::Relaxed);
        }
        should
    }

    /// Memory was given back to the system.
    pub fn gave_back(&self) {
        self.is_giving_back.store(false, Ordering::Relaxed);
    }
}

/// What one worker knows and adds.
#[derive(Debug, Default)]
pub struct WorkerMemory {
    /// As of the beginning of the turn, or later.
    pub level: MemoryLevel,
    /// The message at hand waits while memory is low: its publisher is to be read less.
    pub has_queued: bool,
    limit: u64,
    /// What sessions began to hold since somebody here looked.
    grown: u64,
    step: u64,
    freed: u64,
}

impl WorkerMemory {
    pub fn set_limit(&mut self, limit: u64, workers: usize) {
        self.limit = limit;
        self.step = if limit == 0 {
            u64::MAX
        } else {
            (limit / STEPS / workers as u64).max(STEP_MIN)
        };
    }

    /// The limit in bytes; 0 is none.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Sessions hold so much more; true if it is time to look.
    #[inline]
    pub fn grew(&mut self, bytes: usize) -> bool {
        self.grown += bytes as u64;
        self.grown >= self.step
    }

    /// Sessions hold so much less.
    pub fn shrank(&mut self, bytes: u64) {
        self.freed += bytes;
    }

    /// Somebody here looks.
    pub fn looks(&mut self) {
        self.grown = 0;
    }

    /// At the end of a turn: whether this worker is the one to look.
    pub fn is_to_look(&mut self, node: &NodeMemory, now: Time) -> bool {
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
    fn one_worker_says_that_the_level_changed() {
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
    fn a_worker_looks_when_its_sessions_hold_a_step_more() {
        let mut memory = WorkerMemory::default();
        memory.set_limit(STEPS * 4 * STEP_MIN, 2);
        let step = usize::try_from(2 * STEP_MIN).unwrap();
        assert!(!memory.grew(step - 1) && memory.grew(1));
        memory.looks();
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
        assert!(memory.is_to_look(&node, Time::from_millis(50)));
        assert!(!memory.is_to_look(&node, Time::from_millis(59)));
        assert!(node.should_give_back(1600) && !node.should_give_back(1600));
        node.gave_back();
        assert!(!node.should_give_back(1600));
    }
}
