//! The benchmark: open-loop MQTT load, exact latency, delivery verdicts and the broker's cost.
//!
//! Invariant: a figure is either exact or marked; a run that the generator limited is INVALID.
#![forbid(unsafe_code)]

pub mod clock;
mod kernel_text;
pub mod ledger;
pub mod machine;
pub mod mark;
pub mod monitor;
pub mod observe;
pub mod outcome;
pub mod pacing;
pub mod payload;
pub mod plan;
pub mod preflight;
pub mod record;
pub mod report;
pub mod run;
pub mod scenario;
mod swarm;
pub mod target;
pub mod validity;
pub mod verdict;

pub use thrum_report::units;

pub use outcome::Outcome;
pub use run::{BrokerProcess, RunError, RunOptions, Stage, Status, run};
pub use swarm::Progress;
