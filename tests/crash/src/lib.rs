//! Kills a running broker at random moments and takes its power away, and checks what its clients saw.
//!
//! ```text
//!   cast --roles--> client --packets--> broker (the real binary; killed, robbed of its power, started again)
//!                     |
//!                     +--Observed--> checker --> Violation
//! ```
//!
//! Invariant: nothing here uses the broker's own code; what is right is written down anew in `checker`.

pub mod checker;
pub mod disk;
pub mod event;
pub mod payload;
pub mod random;
