//! The result of a benchmark run, as data, and every form of it for people and programs.
//!
//! Invariant: every form shows the figures of a [`RunResult`]; only [`RunResult::fill_metrics`],
//! [`compare`], [`compat`] and [`window`] compute any.
#![forbid(unsafe_code)]

pub mod bundle;
pub mod compare;
pub mod compat;
mod csv;
mod env;
pub mod folder;
mod grid;
mod hdr;
mod hgrm;
pub mod hlog;
pub mod html;
mod junit;
mod latencies;
pub mod live;
mod markdown;
pub mod metric;
pub mod page;
pub mod png;
mod progress;
pub mod result;
#[cfg(test)]
mod sample;
mod stages;
mod style;
mod summary;
pub mod svg;
mod table;
pub mod threshold;
pub mod versus;
pub mod window;

pub use compare::Comparison;
pub use csv::series_csv;
pub use env::environment_json;
pub use folder::{Files, RunFolder};
pub use hdr::HistogramError;
pub use hgrm::{distribution_text, hgrm};
pub use junit::junit;
pub use markdown::markdown;
pub use metric::{Better, Metric, Unit};
pub use progress::{progress_line, stage_name};
pub use result::{RunResult, SCHEMA};
pub use stages::stages_csv;
pub use style::Style;
pub use summary::{summary, summary_line, summary_styled, summary_with_baseline};
pub use table::{table, table_markdown};
pub use threshold::{Threshold, ThresholdError, ThresholdResult};
