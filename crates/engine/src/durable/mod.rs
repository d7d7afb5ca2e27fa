//! What keeps the node's word across a crash: changes on their way to the storage thread, and
//! answers that wait for it.
//!
//! ```text
//!   session steps -> Journal (a worker's batch of the turn) -> storage thread -> disk
//!   answers that rest on them -> HeldOutput of their connection <- Turns: safe up to here
//!   start: storage -> Recovered -> recover.rs: each worker's part -> engine/restore.rs
//! ```
//!
//! Invariants: an answer leaves only when every change it rests on is durable; what is on its way
//! to another worker is durable before it is acknowledged ([`lanes`]).

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
pub use turns::Turns;

/// Where a message of a shared group stood before it was given to another member: the place is
/// cleared when the message has a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub session: u64,
    pub seq: u64,
    /// The session is ending, and with it all its places.
    pub ends: bool,
}

/// Numbers of stored messages, of which a worker takes many at a time.
#[derive(Debug)]
pub struct MessageIds(AtomicU64);

impl MessageIds {
    /// Numbers that a worker takes at a time.
    const BLOCK: u64 = 4096;

    /// Numbers above `used`.
    pub fn above(used: u64) -> Self {
        Self(AtomicU64::new(used + 1))
    }

    /// Numbers for one worker alone.
    fn block(&self) -> std::ops::Range<u64> {
        let first = self.0.fetch_add(Self::BLOCK, Ordering::Relaxed);
        first..first + Self::BLOCK
    }
}
