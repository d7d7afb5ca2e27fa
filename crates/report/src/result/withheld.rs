//! Figures that say too little to be used.

use std::fmt;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::{Distribution, Quantiles, Validity};
use thrum_figures::{count, fraction, latency, whole};

/// A figure is withheld if more than this part of it may be the generator's.
pub const BOUND_SHARE_MAX: f64 = 0.5;

/// Bounds up to this withhold nothing and make nothing invalid: a virtual machine takes as long to
/// wake the core that reads an answer, once in a hundred times.
pub const BOUND_NS_MIN: u64 = 250_000;

/// A run is INVALID if more than this part of a figure in use may be the generator's.
pub const BOUND_SHARE_IN_USE_MAX: f64 = 0.2;

/// The figures of the run's main latency that are in use: those that the summary shows first.
pub const FIGURES_IN_USE: [&str; 6] = ["mean", "p50", "p75", "p90", "p95", "p99"];

/// Values that a quantile needs.
pub const VALUES_MIN: u64 = 100;

/// Values that a quantile needs beyond it: with ten, it is known to a third.
pub const VALUES_BEYOND_MIN: f64 = 10.0;

/// Share of the mean that missing values may change.
const MISSING_SHARE_OF_MEAN_MAX: f64 = 0.2;

/// The quantiles among the figures, by their names.
const QUANTILES: [(&str, f64); 7] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.999_9),
];

/// Why a figure is not to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "because", rename_all = "kebab-case")]
pub enum Withheld {
    /// Too few values stand behind it.
    TooFew {
        /// Their number.
        values: u64,
        /// It takes this many.
        needed: u64,
    },
    /// More of it may be the generator's than the broker's.
    Generator {
        /// The generator's part, at most, in nanoseconds.
        bound: u64,
        /// The figure in nanoseconds.
        seen: u64,
    },
    /// It lies among the values that never arrived.
    Missing {
        /// Their number.
        missing: u64,
        /// Of this many.
        of: u64,
        /// They would be more than this many nanoseconds.
        over: u64,
    },
}

impl fmt::Display for Withheld {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooFew { values, needed } => write!(
                formatter,
                "{} values are too few: it takes {}",
                count(values),
                count(needed)
            ),
            Self::Generator { bound, seen } => write!(
                formatter,
                "up to {} of {} may be the generator's",
                latency(bound),
                latency(seen)
            ),
            Self::Missing { missing, of, over } => write!(
                formatter,
                "more than {}: {} of {} never arrived",
                latency(over),
                count(missing),
                count(of)
            ),
        }
    }
}

impl Validity {
    /// Why a figure other than a latency is not to be used: `broker.cores`.
    pub fn why_withheld(&self, name: &str) -> Option<&str> {
        self.withheld.get(name).map(String::as_str)
    }

    /// The text of such a figure, or that it is withheld.
    pub(crate) fn unless_withheld(&self, name: &str, text: impl Into<String>) -> String {
        match self.why_withheld(name) {
            Some(_) => "withheld".to_owned(),
            None => text.into(),
        }
    }

    /// The reasons why some of these figures are withheld, each once; none if all may be used.
    pub(crate) fn reasons_withheld(&self, names: &[&str]) -> Option<String> {
        let mut reasons: Vec<&str> = Vec::new();
        for reason in names.iter().filter_map(|name| self.why_withheld(name)) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

impl Distribution {
    /// A distribution with values that are known to be more than `over` nanoseconds and nothing
    /// else: the quantiles are those of all values, and those that lie among the missing are
    /// withheld.
    pub fn with_missing(histogram: &Histogram<u64>, missing: u64, over: u64) -> Self {
        let mut distribution = Self::from_histogram(histogram);
        if missing == 0 || histogram.is_empty() {
            return distribution;
        }
        let arrived = histogram.len();
        let all = fraction(arrived + missing);
        let why = Withheld::Missing {
            missing,
            of: arrived + missing,
            over,
        };
        let quantiles = &mut distribution.quantiles;
        for (name, quantile) in QUANTILES {
            let rank = whole((quantile * all).ceil()).max(1);
            let value = if rank > arrived {
                distribution.withheld.insert(name.to_owned(), why);
                over
            } else {
                histogram.value_at_quantile(fraction(rank) / fraction(arrived))
            };
            quantiles.set(name, value);
        }
        distribution.withheld.insert("max".to_owned(), why);
        let mean = fraction(quantiles.mean);
        if fraction(missing) * fraction(over) / all > MISSING_SHARE_OF_MEAN_MAX * mean {
            distribution.withheld.insert("mean".to_owned(), why);
        }
        (distribution.missing, distribution.missing_over) = (missing, over);
        distribution
    }

    /// Sets how much of each figure may be the generator's, and withholds those of which it is too
    /// much, or that too few values stand behind.
    #[must_use]
    pub fn with_bound(mut self, bound: Option<Quantiles>) -> Self {
        self.bound = bound;
        self.withhold_rare();
        let figures = self.quantiles.figures();
        for (name, value) in figures {
            let bound = self.bound_of(name).filter(|_| name != "count");
            let is_too_much = |bound: u64| {
                bound > BOUND_NS_MIN && fraction(bound) > BOUND_SHARE_MAX * fraction(value)
            };
            if let Some(bound) = bound.filter(|bound| is_too_much(*bound)) {
                let why = Withheld::Generator { bound, seen: value };
                self.withheld.entry(name.to_owned()).or_insert(why);
            }
        }
        self
    }

    /// The figures that are not withheld, by their names.
    pub fn figures_in_use(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let figures = self.quantiles.figures().into_iter();
        figures.filter(|(name, _)| !self.withheld.contains_key(*name))
    }

    /// How much of a figure may be the generator's, at most; none if it is not known.
    pub fn bound_of(&self, figure: &str) -> Option<u64> {
        self.bound.as_ref()?.figure(figure)
    }

    /// Whether enough values stand behind a figure: a quantile takes some beyond it.
    pub fn has_enough_values(&self, figure: &str) -> bool {
        let quantile = QUANTILES.iter().find(|(name, _)| *name == figure);
        let needed = match (figure, quantile) {
            (_, Some((_, quantile))) => values_needed(*quantile),
            ("mean", None) => VALUES_MIN,
            _ => 0,
        };
        self.values() >= needed
    }

    /// Values that were waited for: those that arrived and those that did not.
    pub const fn values(&self) -> u64 {
        self.quantiles.count + self.missing
    }

    /// A figure with its unit, or why it is not to be used: `900µs`, `withheld`, `> 5s`, `–`.
    pub fn figure_text(&self, figure: &str) -> String {
        match self.withheld.get(figure) {
            Some(Withheld::TooFew { .. }) => "–".to_owned(),
            Some(Withheld::Generator { .. }) => "withheld".to_owned(),
            // The mean of values that are more than something need not be more than that.
            Some(Withheld::Missing { .. }) if figure == "mean" => "withheld".to_owned(),
            Some(Withheld::Missing { over, .. }) => format!("> {}", latency(*over)),
            None => latency(self.quantiles.figure(figure).unwrap_or(0)),
        }
    }

    /// Why a figure is not to be used.
    pub fn why(&self, figure: &str) -> Option<String> {
        let why = self.withheld.get(figure)?;
        Some(match why {
            Withheld::Missing { missing, of, .. } if figure == "mean" => {
                format!("{} of {} never arrived", count(*missing), count(*of))
            }
            why => why.to_string(),
        })
    }

    /// How much of a figure may be the generator's, `≤ 60µs`; none if it is not known, or if the
    /// figure is not known itself.
    pub fn bound_text(&self, figure: &str) -> Option<String> {
        let is_unknown = matches!(
            self.withheld.get(figure),
            Some(Withheld::TooFew { .. } | Withheld::Missing { .. })
        );
        let bound = self.bound_of(figure).filter(|_| !is_unknown)?;
        Some(format!("≤ {}", latency(bound)))
    }

    /// Whether the generator may have made so much of a figure in use that a run is INVALID; also
    /// if that is not known.
    pub fn is_spoiled(&self) -> bool {
        let Some(bound) = &self.bound else {
            return true;
        };
        FIGURES_IN_USE.iter().any(|figure| {
            let [bound, seen] = [bound, &self.quantiles].map(|of| of.figure(figure).unwrap_or(0));
            let is_too_much = fraction(bound) > BOUND_SHARE_IN_USE_MAX * fraction(seen);
            bound > BOUND_NS_MIN && is_too_much && self.has_enough_values(figure)
        })
    }

    /// Withholds quantiles that too few values stand behind.
    fn withhold_rare(&mut self) {
        let values = self.values();
        for (name, quantile) in QUANTILES {
            let needed = values_needed(quantile);
            if values < needed {
                let why = Withheld::TooFew { values, needed };
                self.withheld.entry(name.to_owned()).or_insert(why);
            }
        }
    }
}

/// Values that a quantile needs.
fn values_needed(quantile: f64) -> u64 {
    // A quantile has no exact complement: a millionth is rounding.
    let for_the_rest = (VALUES_BEYOND_MIN / (1.0 - quantile) - 1e-6).ceil();
    whole(for_the_rest).max(VALUES_MIN)
}

impl Quantiles {
    fn set(&mut self, name: &str, value: u64) {
        let place = match name {
            "p50" => &mut self.p50,
            "p75" => &mut self.p75,
            "p90" => &mut self.p90,
            "p95" => &mut self.p95,
            "p99" => &mut self.p99,
            "p99.9" => &mut self.p99_9,
            _ => &mut self.p99_99,
        };
        *place = value;
    }
}
