//! Limits that a run must keep: `e2e.p99 < 50ms`, `delivered == 100%`.

use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// How a figure is compared with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what its name says")]
pub enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}

/// A limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The figure.
    pub metric: Metric,
    /// How it is compared.
    pub comparison: Comparison,
    /// The limit in the unit of the metric.
    pub limit: f64,
    /// The condition as written: `< 50ms`.
    pub text: String,
}

/// Why a limit makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    /// No such figure.
    #[error("no figure named '{name}'; did you mean '{closest}'?")]
    UnknownMetric {
        /// As written.
        name: String,
        /// The most similar name.
        closest: String,
    },
    /// Not a comparison with a value of the figure's unit.
    #[error("'{text}' is no limit for {metric}: write a comparison and {example}")]
    Malformed {
        /// The figure.
        metric: String,
        /// As written.
        text: String,
        /// What would be right.
        example: &'static str,
    },
}

/// A limit and what was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThresholdResult {
    /// Name of the figure.
    pub metric: String,
    /// The condition as written: `< 50ms`.
    pub condition: String,
    /// The limit in the unit of the metric.
    pub limit: f64,
    /// The figure in the unit of the metric; none if it was not measured, which fails.
    pub measured: Option<f64>,
    /// Whether the run kept it.
    pub pass: bool,
}
