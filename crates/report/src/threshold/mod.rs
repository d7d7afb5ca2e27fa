//! Limits that a run must keep: `e2e.p99 < 50ms`, `delivered == 100%`.

mod name;
mod quantity;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metric::{self, Metric, Unit};
use crate::result::{RunResult, Validity};
use thrum_figures as units;

/// The comparison of a figure with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
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
    /// The comparison.
    pub comparison: Comparison,
    /// The limit in the unit of the metric.
    pub limit: f64,
    /// The condition as written: `< 50ms`.
    pub text: String,
}

/// Why a limit makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    /// An unknown figure.
    #[error("no figure named '{name}'; did you mean '{closest}'?")]
    UnknownMetric {
        /// As written.
        name: String,
        /// The most similar name.
        closest: String,
    },
    /// Not a comparison with a value of the figure's unit.
    #[error("'{text}' is not a limit for {metric}: write a comparison and {example}")]
    Malformed {
        /// The figure.
        metric: String,
        /// As written.
        text: String,
        /// An example of a valid one.
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
    /// Why there is a figure that is not used.
    pub withheld: Option<String>,
    /// Whether the run kept it.
    pub pass: bool,
}

/// The comparisons in their text form; those of two characters first, because they begin like the
/// others.
const COMPARISONS: [(&str, Comparison); 5] = [
    ("<=", Comparison::LessOrEqual),
    ("==", Comparison::Equal),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// Figures that differ by less than this part are equal: the largest rounding error of
/// computations.
const ROUNDING: f64 = 1e-9;

impl Comparison {
    /// As it is written: `<`.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Equal => "==",
            Self::GreaterOrEqual => ">=",
            Self::Greater => ">",
        }
    }

    /// Whether a figure keeps a limit.
    pub fn holds(self, measured: f64, limit: f64) -> bool {
        let is_equal = (measured - limit).abs() <= ROUNDING * limit.abs();
        match self {
            Self::Less => measured < limit && !is_equal,
            Self::LessOrEqual => measured < limit || is_equal,
            Self::Equal => is_equal,
            Self::GreaterOrEqual => measured > limit || is_equal,
            Self::Greater => measured > limit && !is_equal,
        }
    }
}

impl Threshold {
    /// Reads a limit: `e2e.p99` and `< 50ms`.
    ///
    /// # Errors
    /// The figure is unknown, or the condition is not a comparison with a value of its unit.
    pub fn parse(metric: &str, condition: &str) -> Result<Self, ThresholdError> {
        let found = name::find(metric).ok_or_else(|| ThresholdError::UnknownMetric {
            name: metric.to_owned(),
            closest: name::closest(metric).to_owned(),
        })?;
        let text = condition.trim();
        let comparison = COMPARISONS.iter().find_map(|(sign, comparison)| {
            text.strip_prefix(sign)
                .map(|value| (*comparison, value.trim()))
        });
        let parsed = comparison.and_then(|(comparison, value)| {
            quantity::parse(found.unit, value).map(|limit| (comparison, limit))
        });
        let (comparison, limit) = parsed.ok_or_else(|| ThresholdError::Malformed {
            metric: found.name.to_owned(),
            text: text.to_owned(),
            example: quantity::example(found.unit),
        })?;
        Ok(Self {
            metric: found,
            comparison,
            limit,
            text: text.to_owned(),
        })
    }

    /// Judges a run with the figures filled in; an unmeasured one fails, and one that is withheld
    /// does with the reason.
    pub fn judge(&self, run: &RunResult) -> ThresholdResult {
        let result = self.evaluate(&run.metrics);
        let name = self.metric.name.split_once('.');
        let of_latency = name.and_then(|(distribution, figure)| {
            let distribution = run.latency_ns.find(distribution)?;
            distribution.withheld.get(figure).map(ToString::to_string)
        });
        let of_other = run.validity.why_withheld(self.metric.name);
        let withheld = of_latency.or_else(|| of_other.map(str::to_owned));
        ThresholdResult { withheld, ..result }
    }

    /// Judges figures; an unmeasured one fails.
    fn evaluate(&self, metrics: &BTreeMap<String, f64>) -> ThresholdResult {
        let measured = metrics.get(self.metric.name).copied();
        ThresholdResult {
            metric: self.metric.name.to_owned(),
            condition: self.text.clone(),
            limit: self.limit,
            measured,
            withheld: None,
            pass: measured.is_some_and(|measured| self.comparison.holds(measured, self.limit)),
        }
    }
}

impl ThresholdResult {
    /// Whether the run broke the limit; that of a figure which the generator withholds is neither
    /// kept nor missed.
    pub fn is_missed(&self, validity: &Validity) -> bool {
        !self.pass && !validity.withheld.contains_key(&self.metric)
    }

    /// The figure with its unit: `3.9ms`, `not measured`.
    pub fn measured_text(&self) -> String {
        match (self.measured, &self.withheld) {
            (Some(measured), _) => metric::format(self.unit(), measured),
            (None, Some(why)) => format!("withheld: {why}"),
            (None, None) => "not measured".to_owned(),
        }
    }

    /// How far the figure is from the limit: `92 % below`, `at the limit`; of shares in points, and
    /// none if there is no figure.
    pub fn margin_text(&self) -> Option<String> {
        let difference = self.measured? - self.limit;
        let side = if difference < 0.0 { "below" } else { "above" };
        let distance = match self.unit() {
            Unit::Share => format!("{} points", units::figure(difference.abs() * 100.0)),
            unit if self.limit == 0.0 => metric::format(unit, difference.abs()),
            _ => units::percent(difference.abs() / self.limit.abs()),
        };
        if distance.starts_with("0 ") || difference == 0.0 {
            return Some("at the limit".to_owned());
        }
        Some(format!("{distance} {side}"))
    }

    fn unit(&self) -> Unit {
        metric::find(&self.metric).map_or(Unit::Count, |metric| metric.unit)
    }
}

#[cfg(test)]
mod tests;
