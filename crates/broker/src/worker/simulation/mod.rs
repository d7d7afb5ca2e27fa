//! Whole nodes under simulation: real workers, registry, mailboxes, sessions and storage; a virtual
//! clock; a network that splits, delays and breaks; a disk that fails, fills and loses its power;
//! clients that remember everything.
//!
//! ```text
//!   Plan (how long, how many, which habits)
//!   -> World: one act after the other, all of it decided by the seed
//!     acts: publish, subscribe, connect, take over, cut, storm, carry bytes, (half) turns,
//!           commit, crash, time ...
//!   -> History (what clients did and saw) -> checker: every promise kept?
//!   finale: everything heals, what is owed arrives, everyone leaves, nothing is left in memory
//!           or on the disk
//! ```
//!
//! One seed is one run. A run that fails prints its seed, its last events and how to repeat it;
//! more runs, as for a night:
//! `THRUM_SIM_SEEDS=1000..1000000 cargo test --release -p thrum-broker --lib simulation`.

mod bounds;
mod checker;
mod client;
mod departures;
mod disk;
mod endings;
mod finale;
mod gatekeeper;
mod history;
mod link;
mod machine;
mod owed;
mod plan;
mod questions;
mod random;
mod replays;
mod run;
mod seat;
mod sink;
mod steps;
mod tests;
mod tls;
pub(crate) mod websocket;
mod world;
