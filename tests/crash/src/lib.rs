//! Kills a running broker at random moments, simulates losses of power, and checks the observations
//! of its clients.
//!
//! ```text
//!   run --spawn, kill, lose power--> broker (the real binary)
//!    |                                  ^ packets
//!   world --rounds--> clients (roles)---+
//!                        +--Observed--> journal --> checker --> Violation
//! ```
//!
//! Invariant: nothing here uses the broker's own code; `checker` defines correct behaviour
//! independently.

pub mod broker;
pub mod checker;
pub mod client;
pub mod disk;
pub mod event;
pub mod inspector;
pub mod journal;
pub mod payload;
pub mod random;
pub mod roles;
pub mod run;
pub mod shifted_clock;
pub mod sink;
pub mod world;
