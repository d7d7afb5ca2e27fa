//! Runs against runs: which figures differ by more than they vary.
//!
//! Percentiles of several runs are those of all their values together (the histograms are merged),
//! never means of percentiles; every other figure of several runs is their median.

mod conditions;
mod noise;
#[cfg(test)]
mod tests;
mod text;

use serde::Serialize;

pub use text::{json, markdown, text, versus_line};

use crate::metric::{self, Better, DISTRIBUTIONS, Metric};
use crate::result::{Distribution, RunResult};
use crate::units;

/// Least noise of repeated runs, as no machine repeats itself better.
const NOISE_OF_RUNS_MIN: f64 = 0.005;

/// Least noise of single runs: whole runs differ by more than their parts do.
const NOISE_OF_ONE_MIN: f64 = 0.05;

/// The compared figures, in the order of their display.
const COMPARED: [&str; 32] = [
    "rate.sent",
    "rate.received",
    "e2e.p50",
    "e2e.p90",
    "e2e.p99",
    "e2e.p99.9",
    "e2e.max",
    "service.p50",
    "service.p99",
    "publish_ack.p50",
    "publish_ack.p99",
    "connect.p50",
    "connect.p99",
    "connect.rate",
    "subscribe.p99",
    "reconnect.p99",
    "delivered",
    "lost",
    "duplicated",
    "reordered",
    "misdelivered",
    "refused",
    "held_back",
    "connect.errors",
    "connections.lost",
    "errors",
    "broker.cores",
    "broker.cpu_per_message",
    "broker.messages_per_core",
    "broker.rss",
    "broker.bytes_per_connection",
    "broker.context_switches",
];

/// Deliveries and counts of what ought not to happen: each one matters, and no spread within a run
/// excuses it.
const FAILURES: [&str; 9] = [
    "delivered",
    "lost",
    "duplicated",
    "reordered",
    "misdelivered",
    "refused",
    "connect.errors",
    "connections.lost",
    "errors",
];

/// Figures that may break a build besides [`FAILURES`]. If every compared figure counted, one would
/// be beyond its noise in about every other comparison of the same broker.
const GATING: [&str; 5] = [
    "rate.received",
    "e2e.p99",
    "connect.p99",
    "broker.cpu_per_message",
    "broker.rss",
];

/// Result of a comparison for a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The candidate's figure is better, by more than the noise.
    Better,
    /// It is worse, by more than the noise.
    Worse,
    /// The figures differ by no more than the noise.
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
            Self::Same => "same",
            Self::NotComparable => "not comparable",
        }
    }
}

/// The source of the noise band.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseSource {
    /// The spread of at least three runs on each side.
    Runs,
    /// The spread of blocks of seconds within the hold: less than what runs differ by.
    Seconds,
    /// The number of values of a percentile that is not known per second, in single runs; as
    /// `Seconds`.
    Values,
    /// There is none: each one counts.
    Exact,
    /// Too few runs, and no figure per second.
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

/// One figure on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub metric: &'static str,
    /// Of the baseline, in the unit of the metric.
    pub baseline: Option<f64>,
    /// Of the candidate.
    pub candidate: Option<f64>,
    /// Candidate minus baseline as a part of the baseline.
    pub change: Option<f64>,
    /// A change of up to this part, in both directions, is noise (95 %).
    pub noise: Option<f64>,
    /// The source of `noise`.
    pub noise_source: NoiseSource,
    /// The verdict.
    pub verdict: Verdict,
}

/// Runs of a candidate against runs of a baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The baseline.
    pub baseline: Side,
    /// The compared run.
    pub candidate: Side,
    /// Conditions that differ, and other reasons not to trust it.
    pub warnings: Vec<String>,
    /// The figures that at least one side has.
    pub rows: Vec<Row>,
}

impl Comparison {
    /// Compares runs; a side without runs has no figures.
    pub fn new(baseline: &[RunResult], candidate: &[RunResult]) -> Self {
        let mut warnings = conditions::warnings(baseline, candidate);
        let is_valid = |run: &RunResult| run.validity.valid;
        let are_valid = baseline.iter().all(is_valid) && candidate.iter().all(is_valid);
        let sides = [Figures::new(baseline), Figures::new(candidate)];
        warnings.extend(sides.iter().filter_map(|side| side.warning.clone()));
        let compared = COMPARED.iter().filter_map(|name| metric::find(name));
        let rows = compared.filter_map(|metric| {
            let mut row = row(metric, &sides)?;
            if !are_valid {
                row.verdict = Verdict::NotComparable;
            }
            Some(row)
        });
        Self {
            rows: rows.collect(),
            baseline: side(baseline),
            candidate: side(candidate),
            warnings,
        }
    }

    /// The row of a figure.
    pub fn row(&self, metric: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.metric == metric)
    }

    /// Figures that got worse and should break a build: losses and failures, the rate, the p99, and
    /// the CPU and memory of the broker.
    pub fn regressions(&self) -> Vec<&Row> {
        let gates = |row: &&Row| FAILURES.contains(&row.metric) || GATING.contains(&row.metric);
        let worse = self.rows.iter().filter(|row| row.verdict == Verdict::Worse);
        worse.filter(gates).collect()
    }
}

/// Compares several candidates, each with the same baseline.
pub fn against_first(baseline: &[RunResult], candidates: &[&[RunResult]]) -> Vec<Comparison> {
    let each = candidates
        .iter()
        .map(|candidate| Comparison::new(baseline, candidate));
    each.collect()
}

/// Runs of a side with their merged distributions.
struct Figures<'a> {
    runs: &'a [RunResult],
    merged: Vec<(&'static str, Distribution)>,
    warning: Option<String>,
}

impl<'a> Figures<'a> {
    fn new(runs: &'a [RunResult]) -> Self {
        let mut figures = Self {
            runs,
            merged: Vec::new(),
            warning: None,
        };
        // The figures of a single run are in the result.
        if runs.len() < 2 {
            return figures;
        }
        for name in DISTRIBUTIONS {
            let parts = runs.iter().filter_map(|run| run.latency_ns.find(name));
            match Distribution::merge(parts.clone()) {
                Ok(merged) => figures.merged.push((name, merged)),
                Err(_) if parts.clone().next().is_none() => {}
                Err(error) => {
                    figures.warning = Some(format!(
                        "{name} is the median of the runs' figures: {error}"
                    ));
                }
            }
        }
        figures
    }

    /// The figure of all runs together.
    fn value(&self, metric: &str) -> Option<f64> {
        let merged = metric
            .split_once('.')
            .and_then(|(distribution, figure)| self.merged(distribution)?.quantiles.figure(figure));
        merged
            .map(units::fraction)
            .or_else(|| noise::median(&self.values(metric)))
    }

    fn merged(&self, distribution: &str) -> Option<&Distribution> {
        let found = self.merged.iter().find(|(name, _)| *name == distribution);
        found.map(|(_, merged)| merged)
    }

    /// The values of all runs together.
    fn distribution(&self, name: &str) -> Option<&Distribution> {
        let first = || self.runs.first().and_then(|run| run.latency_ns.find(name));
        self.merged(name).or_else(first)
    }

    /// The figure of each run that has it.
    fn values(&self, metric: &str) -> Vec<f64> {
        let values = self.runs.iter().filter_map(|run| run.metrics.get(metric));
        values.copied().collect()
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

/// A figure on both sides; none if neither has it, or if nothing happened that ought not to.
fn row(metric: Metric, sides: &[Figures<'_>; 2]) -> Option<Row> {
    let [baseline, candidate] = sides.each_ref().map(|side| side.value(metric.name));
    let is_nothing = |value: Option<f64>| value.is_none_or(|value| value == 0.0);
    if is_nothing(baseline) && is_nothing(candidate) && metric.name != "lost" {
        return None;
    }
    if baseline.is_none() && candidate.is_none() {
        return None;
    }
    let (noise, noise_source) = noise_of(metric, sides);
    let change = baseline
        .zip(candidate)
        .and_then(|(baseline, candidate)| relative_change(baseline, candidate));
    let mut row = Row {
        metric: metric.name,
        baseline,
        candidate,
        change,
        noise,
        noise_source,
        verdict: Verdict::NotComparable,
    };
    row.verdict = verdict(metric, &row);
    Some(row)
}

fn noise_of(metric: Metric, sides: &[Figures<'_>; 2]) -> (Option<f64>, NoiseSource) {
    let [baseline, candidate] = sides.each_ref().map(|side| side.values(metric.name));
    let is_failure = FAILURES.contains(&metric.name);
    if baseline.len() >= noise::RUNS_MIN && candidate.len() >= noise::RUNS_MIN {
        let least = if is_failure { 0.0 } else { NOISE_OF_RUNS_MIN };
        let noise = noise::of_runs(&baseline, &candidate).map(|noise| noise.max(least));
        return (noise, NoiseSource::Runs);
    }
    if is_failure {
        return (Some(0.0), NoiseSource::Exact);
    }
    let [baseline, candidate] = sides
        .each_ref()
        .map(|side| noise::blocks(side.runs, metric.name));
    let of_seconds = noise::of_blocks(&baseline, &candidate);
    let known = of_seconds
        .map(|noise| (noise, NoiseSource::Seconds))
        .or_else(|| noise_of_values(metric, sides).map(|noise| (noise, NoiseSource::Values)));
    match known {
        Some((noise, source)) => (Some(noise.max(NOISE_OF_ONE_MIN)), source),
        None => (None, NoiseSource::Unknown),
    }
}

fn noise_of_values(metric: Metric, sides: &[Figures<'_>; 2]) -> Option<f64> {
    let (distribution, figure) = metric.name.split_once('.')?;
    let [baseline, candidate] = sides.each_ref().map(|side| side.distribution(distribution));
    noise::of_values(
        &baseline?.histogram().ok()?,
        &candidate?.histogram().ok()?,
        figure,
    )
}

/// None if something grew out of nothing, which is not a multiple of it.
fn relative_change(baseline: f64, candidate: f64) -> Option<f64> {
    if baseline == 0.0 {
        (candidate == 0.0).then_some(0.0)
    } else {
        Some((candidate - baseline) / baseline.abs())
    }
}

fn verdict(metric: Metric, row: &Row) -> Verdict {
    let (Some(baseline), Some(candidate)) = (row.baseline, row.candidate) else {
        return Verdict::NotComparable;
    };
    match (row.change, row.noise) {
        (_, None) if row.noise_source != NoiseSource::Runs => return Verdict::NotComparable,
        (Some(change), noise) if change.abs() <= noise.unwrap_or(0.0) => {
            return Verdict::Same;
        }
        _ => {}
    }
    match (metric.better, candidate > baseline) {
        (Better::Neither, _) => Verdict::Same,
        (Better::Higher, true) | (Better::Lower, false) => Verdict::Better,
        (Better::Higher, false) | (Better::Lower, true) => Verdict::Worse,
    }
}
