//! What a benchmark run found, as data, and every form in which a person or a program reads it.
//!
//! Invariant: every form shows the figures of one [`RunResult`] and computes none of its own.
#![forbid(unsafe_code)]

mod hdr;
pub mod metric;
pub mod result;
#[cfg(test)]
mod sample;
pub mod threshold;
pub mod units;

pub use hdr::HistogramError;
pub use metric::{Better, Metric, Unit};
pub use result::{RunResult, SCHEMA};
pub use threshold::{Threshold, ThresholdError, ThresholdResult};
