//! Clients that try to use up a running broker, and what its other clients notice.
//!
//! ```text
//!   attacks/: what is allowed, and much of it ----> victim: a broker of one worker
//!   watch: a probe's rounds, several in 100 ms ----^
//!        outcome: memory, CPU time, rounds, verdict --> table
//! ```
//!
//! Invariant: every attack is bounded, by a count of what is sent or by time, and works over
//! loopback; the broker is a real binary, the one of this tree or an older one, so that attacks use
//! only settings that both know.

pub mod attacks;
pub mod flood;
pub mod outcome;
pub mod requests;
pub mod table;
pub mod victim;
pub mod watch;

pub use attacks::{ATTACKS, Attack};
pub use outcome::Outcome;
pub use victim::{Setup, Site, Victim};
