//! Runs against runs: which figures differ by more than noise explains.
//!
//! Figures of several runs are the medians of the runs' figures. A difference is called one if it
//! is at least the least practical difference and noise does not explain it: with at least three
//! runs a side by an exact permutation test, with fewer by what the seconds of a run show and what
//! runs of the same thing are known to differ by.

mod conclusion;
mod conditions;
mod figures;
mod judge;
mod noise;
mod permutation;
#[cfg(test)]
mod tests;
mod text;

use serde::Serialize;

pub use conclusion::conclusion;
pub(crate) use conclusion::{Names, conclusion_between};
pub(crate) use text::{cells, noise, notes};
pub use text::{json, markdown, text, versus_line};

use crate::result::RunResult;
use figures::FAILURES;
use judge::Sides;

/// Equal sides raise an alarm at most this often, over all figures that may raise one.
pub const LEVEL: f64 = 0.05;

/// Runs a side that can raise an alarm by their spread.
pub const RUNS_NEEDED: usize = noise::RUNS_MIN;

/// The part of the level that the least p may be; above it, chance alone reaches the level.
const LEAST_P_WITH_ROOM: f64 = 0.7;

/// Result of a comparison for a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The candidate's figure is better, by more than noise explains.
    Better,
    /// It is worse, by more than noise explains.
    Worse,
    /// No difference is shown.
    Same,
    /// One side has no such figure, the noise is not known, or a run is invalid.
    NotComparable,
}

impl Verdict {
    /// As text.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "no difference shown",
            Self::NotComparable => "not comparable",
        }
    }
}

/// The source of the noise band.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseSource {
    /// The spread of the runs of each side.
    Runs,
    /// The seconds of the hold, and what runs are known to differ by.
    Seconds,
    /// The number of values of a percentile that is not known per second, and what runs are known
    /// to differ by.
    Values,
    /// There is none: a promise that one side kept and the other broke.
    Exact,
    /// Withheld: too few values stand behind the figure.
    TooFewValues,
    /// A run does not have the figure, or nothing is known of its noise.
    Unknown,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Side {
    /// Name of the scenario.
    pub scenario: String,
    /// The broker's version, or its address.
    pub broker: String,
    /// Runs.
    pub runs: usize,
    /// Start of the first run, UTC.
    pub started: String,
}

/// Lowest and highest figure of the runs of a side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names of the fields are self-explanatory")]
pub struct Range {
    pub lowest: f64,
    pub highest: f64,
}

/// One figure on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub metric: &'static str,
    /// Median of the runs of the baseline, in the unit of the metric.
    pub baseline: Option<f64>,
    /// Of the candidate.
    pub candidate: Option<f64>,
    /// Range of several runs of the baseline.
    pub baseline_range: Option<Range>,
    /// Of the candidate.
    pub candidate_range: Option<Range>,
    /// Candidate minus baseline as a part of the baseline.
    pub change: Option<f64>,
    /// Noise of the change as a part of the baseline.
    pub noise: Option<f64>,
    /// The source of `noise`.
    pub noise_source: NoiseSource,
    /// Least practical difference, as a part of the lower figure.
    pub least: f64,
    /// Probability that equal sides show a difference as large in this direction, in any of the
    /// figures that are tested together; none without a test.
    pub p: Option<f64>,
    /// Whether it may raise an alarm; these figures are tested together, others each alone.
    pub is_gate: bool,
    /// The verdict.
    pub verdict: Verdict,
}

/// The means by which differences were told from noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Method {
    /// [`LEVEL`].
    pub level: f64,
    /// The least p that as many runs can show.
    pub least_p: f64,
    /// Whether there are runs enough for the permutation test.
    pub is_by_runs: bool,
    /// Whether all runs of one side started before those of the other.
    pub is_one_after_the_other: bool,
}

impl Method {
    /// Whether the least practical differences are doubled.
    pub fn is_cautious(&self) -> bool {
        self.is_one_after_the_other || self.least_p > self.level * LEAST_P_WITH_ROOM
    }
}

/// Runs of a candidate (B) against runs of a baseline (A).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The baseline.
    pub baseline: Side,
    /// The compared runs.
    pub candidate: Side,
    /// Whether all runs are valid; the figures of others are the generator's.
    pub is_valid: bool,
    /// Conditions that are not the same in all runs, one line each.
    pub differences: Vec<String>,
    /// These, and other reasons not to trust it.
    pub warnings: Vec<String>,
    /// The means by which differences were told from noise.
    pub method: Method,
    /// The figures that at least one side has.
    pub rows: Vec<Row>,
}

impl Comparison {
    /// Compares runs; a side without runs has no figures.
    pub fn new(baseline: &[RunResult], candidate: &[RunResult]) -> Self {
        let differences = conditions::differences(baseline, candidate);
        let mut warnings = differences.clone();
        warnings.extend(conditions::faults(baseline, candidate));
        let is_valid = |run: &RunResult| run.validity.valid;
        let sides = Sides {
            baseline,
            candidate,
            method: method(baseline, candidate),
        };
        let mut comparison = Self {
            rows: sides.rows(),
            baseline: side(baseline),
            candidate: side(candidate),
            is_valid: baseline.iter().all(is_valid) && candidate.iter().all(is_valid),
            differences,
            warnings,
            method: sides.method,
        };
        if !comparison.is_valid {
            for row in &mut comparison.rows {
                row.verdict = Verdict::NotComparable;
            }
        }
        comparison
    }

    /// The row of a figure.
    pub fn row(&self, metric: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.metric == metric)
    }

    /// Figures that got worse and should break a build: promises that were broken, the latency, the
    /// rate, and the CPU and memory of the broker.
    pub fn regressions(&self) -> Vec<&Row> {
        let worse = self.rows.iter().filter(|row| row.verdict == Verdict::Worse);
        worse.filter(|row| row.is_gate).collect()
    }
}

fn method(baseline: &[RunResult], candidate: &[RunResult]) -> Method {
    let least_p = permutation::least_p(baseline.len(), candidate.len());
    let started = |runs: &[RunResult]| {
        let mut started: Vec<String> = runs.iter().map(|run| run.started.clone()).collect();
        started.sort();
        started.first().cloned().zip(started.pop())
    };
    let spans = started(baseline).zip(started(candidate));
    Method {
        level: LEVEL,
        least_p,
        // A side of one or two runs may reach the level beside a long one, but shows nothing of
        // what its own runs differ by.
        is_by_runs: baseline.len().min(candidate.len()) >= RUNS_NEEDED && least_p <= LEVEL,
        is_one_after_the_other: spans
            .is_some_and(|(one, other)| one.1 < other.0 || other.1 < one.0),
    }
}

fn side(runs: &[RunResult]) -> Side {
    let first = runs.first();
    let broker = first.map(|run| {
        let version = run.brokers.iter().map(|broker| &broker.version);
        let known = version.filter(|version| !version.is_empty());
        let mut names = known.chain(&run.scenario.targets);
        names.next().cloned().unwrap_or_default()
    });
    let started = runs.iter().map(|run| run.started.as_str()).min();
    Side {
        scenario: first.map_or_else(String::new, |run| run.scenario.name.clone()),
        broker: broker.unwrap_or_default(),
        runs: runs.len(),
        started: started.unwrap_or_default().to_owned(),
    }
}
