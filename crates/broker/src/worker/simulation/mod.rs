//! Whole nodes under simulation: real workers, registry, mailboxes, sessions and storage; a virtual
//! clock; a network that splits, delays and breaks; a disk that fails, fills and loses its power;
//! clients that keep their session state for ever.
//!
//! ```text
//!   Plan (length, numbers, weights of the steps)
//!   -> World: one act after the other, all decided by the seed
//!     acts: publish, subscribe, connect, take over, cut, reconnect all, transfer bytes,
//!           (half) turns, commit, crash, time ...
//!   -> History (actions and observations of clients) -> checker: every guarantee kept?
//!   complete: without faults all expected messages arrive, all clients disconnect, no state is
//!             left in memory or on the disk
//! ```
//!
//! One seed is one run. A failed run prints its seed, its last events and how to repeat it; more
//! runs, as for a night: `THRUM_SIM_SEEDS=1000..1000000 cargo test --release -p thrum-broker --lib
//! simulation`.

mod bounds;
mod checker;
mod client;
mod completion;
mod disconnects;
mod disk;
mod expected;
mod gatekeeper;
mod history;
mod last_output_tests;
mod link;
mod machine;
mod plan;
mod queries;
mod random;
mod replay_tests;
mod run;
mod sink;
mod stepped_worker;
mod steps;
mod tests;
mod timelines;
pub(crate) mod tls;
mod traces;
mod wall_clock_tests;
pub(crate) mod websocket;
mod world;
