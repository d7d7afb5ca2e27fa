//! The benchmark's engine: it runs a plan against a broker, with exact latency and the broker's
//! cost.
//!
//! Invariant: a figure is either exact or marked; a run that the generator limited is INVALID.
#![forbid(unsafe_code)]

pub mod agents;
pub mod clock;
mod collect;
mod generator;
mod kernel_text;
pub mod machine;
mod message_stages;
pub mod monitor;
pub mod observe;
pub mod outcome;
mod payload_file;
pub mod preflight;
pub mod proxy;
pub mod record;
pub mod run;
mod sent_before;
mod source;
mod swarm;

pub use outcome::Outcome;
pub use payload_file::plan;
pub use run::{BrokerProcess, RunError, RunOptions, Status, Target, run};
pub use swarm::Progress;
pub use thrum_report::result::Stage;
