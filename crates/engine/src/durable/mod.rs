//! Durability: changes for the storage thread, and output that waits until they are durable.
//!
//! ```text
//! session steps -> Journal (a worker's batch of the turn) -> storage thread -> disk
//! output that depends on them -> HeldOutput of its connection <- Turns: durable up to here
//! start: storage -> Recovered -> recover.rs: the part of each worker -> restore.rs
//! ```
//!
//! Invariants: output is sent only when every change that it depends on is durable; a message to
//! another worker is stored before it is acknowledged ([`lanes`]).

mod held;
mod journal;
mod lanes;
mod recover;
mod turns;

use std::sync::atomic::{AtomicU64, Ordering};

pub use held::HeldOutput;
pub use journal::Journal;
pub use lanes::PassedTo;
pub use recover::{Divided, Part, Passed, Restored, divide};
pub(crate) use turns::Turns;

/// The place of a message in the storage, which is removed when the message has a new place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Number of the session or lane that stores the message.
    pub session: u64,
    /// Sequence number of the delivery within the session or lane.
    pub seq: u64,
    /// The session is ending, which removes all of its places.
    pub ends: bool,
}

/// Source of the numbers of stored messages, from which a worker reserves a block at a time.
#[derive(Debug)]
pub struct MessageIds(AtomicU64);

impl MessageIds {
    /// Numbers in a block.
    const BLOCK: u64 = 4096;

    /// Creates a source of numbers greater than `used`.
    pub fn above(used: u64) -> Self {
        Self(AtomicU64::new(used + 1))
    }

    /// Reserves a block of numbers for one worker.
    fn block(&self) -> std::ops::Range<u64> {
        let first = self.0.fetch_add(Self::BLOCK, Ordering::Relaxed);
        first..first + Self::BLOCK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_message_numbers_begin_above_the_used_ones_and_do_not_overlap() {
        let ids = MessageIds::above(10);
        let blocks = [ids.block(), ids.block(), ids.block()];
        assert_eq!(blocks[0].start, 11);
        assert!(
            blocks
                .iter()
                .all(|block| block.end - block.start == MessageIds::BLOCK)
        );
        assert!(blocks.windows(2).all(|two| two[0].end == two[1].start));
    }
}
