//! The benchmark: open-loop MQTT load, exact latency, delivery verdicts and the broker's cost.
//!
//! Invariant: a figure is either exact or marked; a run that the generator limited is INVALID.
#![forbid(unsafe_code)]

pub mod clock;
pub mod ledger;
pub mod mark;
pub mod pacing;
pub mod plan;
pub mod record;
pub mod scenario;
pub mod target;
pub mod units;
