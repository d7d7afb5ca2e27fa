//! The load of a benchmark run as data: scenarios, the plan of each client, the pacing of messages,
//! their payloads, and the judgement of what arrived.
//!
//! Invariant: nothing here reads a clock, a file or a socket, or starts a thread; what was due and
//! what was promised follows from the scenario alone.
#![forbid(unsafe_code)]

pub mod delivered;
pub mod floors;
mod gaps;
pub mod histogram;
pub mod import;
pub mod ledger;
pub mod mark;
pub mod pacing;
pub mod payload;
pub mod plan;
pub mod scenario;
mod settlement;
pub mod thread_report;
pub mod validity;
pub mod verdict;
