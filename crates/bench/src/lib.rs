//! The benchmark: open-loop MQTT load, exact latency, delivery verdicts and the broker's cost.
//!
//! Invariant: a figure is either exact or marked; a run that the generator limited is INVALID.
#![forbid(unsafe_code)]

pub mod clock;
