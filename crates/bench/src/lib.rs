//! The benchmark: open-loop MQTT load, exact latency, delivery verdicts and the broker's cost.
//!
//! Invariant: a figure is either exact or marked; a run that the generator limited is INVALID.
#![forbid(unsafe_code)]

pub mod agents;
pub mod clock;
mod collect;
mod generator;
pub mod import;
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
pub mod proxy;
pub mod record;
pub mod relay;
pub mod run;
pub mod scenario;
pub mod search;
mod source;
mod swarm;
pub mod validity;
pub mod verdict;
pub mod versus;

pub use thrum_report::units;

pub use outcome::Outcome;
pub use run::{BrokerProcess, RunError, RunOptions, Status, Target, run};
pub use swarm::Progress;
pub use thrum_report::result::Stage;
