//! Runs against runs: which figures differ by more than noise explains.
//!
//! Figures of several runs are the medians of the runs' figures. A difference is called one if it
//! is at least the least practical difference and noise does not explain it: with at least three
//! runs a side by an exact permutation test, with fewer by what the seconds of a run show and what
//! runs of the same thing are known to differ by.

mod conclusion;
mod conditions;
mod figures;
mod noise;
mod permutation;
#[cfg(test)]
mod tests;
mod text;

use serde::Serialize;

pub use conclusion::conclusion;
pub(crate) use text::cells;
pub use text::{json, markdown, text, versus_line};

use crate::metric::{self, Better, Metric};
use crate::result::RunResult;
use figures::{COMPARED, FAILURES, Kind};
use permutation::Figure;

/// Equal sides raise an alarm at most this often, over all figures that may raise one.
pub const LEVEL: f64 = 0.05;

/// Runs a side that can raise an alarm by their spread.
pub const RUNS_NEEDED: usize = noise::RUNS_MIN;

/// The part of the level that the least p may be for the test to decide alone.
const LEAST_P_WITH_ROOM: f64 = 0.5;

/// Least noise that is shown of repeated runs, as no machine repeats itself better.
const NOISE_OF_RUNS_MIN: f64 = 0.005;

/// What multiplies the least practical difference if one side was measured after the other: the
/// machine may have changed in between.
const NOT_ALTERNATED: f64 = 2.0;

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

/// Compares several candidates, each with the same baseline.
pub fn against_first(baseline: &[RunResult], candidates: &[&[RunResult]]) -> Vec<Comparison> {
    let each = candidates
        .iter()
        .map(|candidate| Comparison::new(baseline, candidate));
    each.collect()
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
        is_by_runs: least_p <= LEVEL,
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

/// The runs of both sides.
struct Sides<'a> {
    baseline: &'a [RunResult],
    candidate: &'a [RunResult],
    method: Method,
}

impl Sides<'_> {
    fn rows(&self) -> Vec<Row> {
        let compared = COMPARED.iter().filter_map(|name| metric::find(name));
        let mut rows: Vec<Row> = compared.filter_map(|metric| self.row(metric)).collect();
        for gates in figures::GATES {
            let has_figures = |name: &&&str| {
                let found = rows.iter().find(|row| row.metric == **name);
                found.is_some_and(|row| row.baseline.is_some() && row.candidate.is_some())
            };
            let gate = gates.iter().find(has_figures);
            let row = gate.and_then(|gate| rows.iter_mut().find(|row| row.metric == *gate));
            if let Some(row) = row {
                row.is_gate = true;
            }
        }
        if self.method.is_by_runs {
            self.test(&mut rows);
        } else {
            for row in &mut rows {
                self.judge_by_band(row);
            }
        }
        rows
    }

    /// A figure on both sides, not judged unless it is a broken promise; none if neither side has
    /// it, or if nothing happened that ought not to.
    fn row(&self, metric: Metric) -> Option<Row> {
        let name = metric.name;
        let sides = [self.baseline, self.candidate];
        let is_withheld =
            |run: &RunResult| run.metrics.contains_key(name) && !figures::is_supported(run, name);
        let is_withheld = sides.iter().any(|runs| runs.iter().any(is_withheld));
        let values = sides.map(|runs| values(runs, name));
        let [baseline, candidate] = values.each_ref().map(|values| noise::median(values));
        let is_nothing = |value: &f64| *value == 0.0;
        if values.iter().flatten().all(is_nothing) && name != "lost" {
            return None;
        }
        let [baseline_range, candidate_range] = values.each_ref().map(|values| range(values));
        let is_failure = FAILURES.contains(&name);
        let mut row = Row {
            metric: name,
            baseline: baseline.filter(|_| !is_withheld),
            candidate: candidate.filter(|_| !is_withheld),
            baseline_range: baseline_range.filter(|_| !is_withheld),
            candidate_range: candidate_range.filter(|_| !is_withheld),
            change: None,
            noise: None,
            noise_source: NoiseSource::Unknown,
            least: Kind::of(name).least(),
            p: None,
            is_gate: is_failure,
            verdict: Verdict::NotComparable,
        };
        if self.method.is_one_after_the_other && self.method.is_by_runs {
            row.least *= NOT_ALTERNATED;
        }
        if is_withheld {
            row.noise_source = NoiseSource::TooFewValues;
            return Some(row);
        }
        let both = row.baseline.zip(row.candidate);
        row.change = both.and_then(|(baseline, candidate)| relative_change(baseline, candidate));
        if is_failure {
            judge_promise(&mut row, &values);
        }
        Some(row)
    }

    /// Judges the rows that every run has: those that may raise an alarm together, others alone.
    fn test(&self, rows: &mut [Row]) {
        let [before, after] = [self.baseline, self.candidate].map(<[RunResult]>::len);
        let mut together = Vec::new();
        let mut places = Vec::new();
        for (place, row) in rows.iter_mut().enumerate() {
            let Some(figure) = self.figure(row) else {
                continue;
            };
            row.noise_source = NoiseSource::Runs;
            let noise = noise::of_runs(
                &values(self.baseline, row.metric),
                &values(self.candidate, row.metric),
            );
            row.noise = noise.map(|noise| noise.max(NOISE_OF_RUNS_MIN));
            if row.is_gate {
                together.push(figure);
                places.push(place);
            } else {
                let alone = permutation::joint(&[figure], before, after);
                judge_by_p(row, alone[0]);
            }
        }
        let tested = permutation::joint(&together, before, after);
        for (place, p) in places.into_iter().zip(tested) {
            judge_by_p(&mut rows[place], p);
        }
        if self.method.least_p > LEVEL * LEAST_P_WITH_ROOM {
            for row in rows {
                withdraw_within_noise(row);
            }
        }
    }

    /// The figure of every run, if all of them have it and it is not judged yet.
    fn figure(&self, row: &Row) -> Option<Figure> {
        if !matches!(row.noise_source, NoiseSource::Unknown) {
            return None;
        }
        let runs = || self.baseline.iter().chain(self.candidate);
        let values = runs().map(|run| run.metrics.get(row.metric).copied());
        let values: Option<Vec<f64>> = values.collect();
        let bounds = runs().map(|run| figures::error_ns(run, row.metric).unwrap_or(0.0));
        let better = metric::find(row.metric)?.better;
        Some(Figure::new(values?, bounds.collect(), better, row.least))
    }

    /// Too few runs show no spread: what runs are known to differ by, and the error within them.
    fn judge_by_band(&self, row: &mut Row) {
        if !matches!(row.noise_source, NoiseSource::Unknown) {
            return;
        }
        let (Some(baseline), Some(candidate)) = (row.baseline, row.candidate) else {
            return;
        };
        let errors = [self.baseline, self.candidate].map(|runs| error_of(runs, row.metric));
        let [Some(before), Some(after)] = errors else {
            return;
        };
        row.noise_source = if before.is_of_seconds && after.is_of_seconds {
            NoiseSource::Seconds
        } else {
            NoiseSource::Values
        };
        let noise = Kind::of(row.metric).between_runs() + noise::of_errors(before, after);
        row.noise = Some(noise);
        let bound: f64 = [self.baseline, self.candidate]
            .map(|runs| bound_of(runs, row.metric))
            .iter()
            .sum();
        let [low, high] = [baseline.min(candidate), baseline.max(candidate)];
        let is_difference = high > low * (1.0 + noise.max(row.least)) && high - low > bound;
        row.verdict = direction(row.metric, is_difference, candidate > baseline);
    }
}

/// The figure of each run that has it.
fn values(runs: &[RunResult], metric: &str) -> Vec<f64> {
    let values = runs.iter().filter_map(|run| run.metrics.get(metric));
    values.copied().collect()
}

fn range(values: &[f64]) -> Option<Range> {
    (values.len() > 1).then(|| Range {
        lowest: values.iter().copied().fold(f64::INFINITY, f64::min),
        highest: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    })
}

/// A promise that all runs of one side kept and a run of the other broke is a fact.
fn judge_promise(row: &mut Row, values: &[Vec<f64>; 2]) {
    if values.iter().any(Vec::is_empty) {
        return;
    }
    let is_kept = |values: &Vec<f64>| {
        let mut values = values.iter();
        values.all(|value| figures::is_clean(row.metric, *value))
    };
    row.verdict = match values.each_ref().map(is_kept) {
        [true, true] => Verdict::Same,
        [true, false] => Verdict::Worse,
        [false, true] => Verdict::Better,
        [false, false] => return,
    };
    row.noise_source = NoiseSource::Exact;
}

fn judge_by_p(row: &mut Row, [worse, better]: [f64; 2]) {
    row.p = Some(worse.min(better));
    row.verdict = if worse <= LEVEL {
        direction_of_worse(row.metric, Verdict::Worse)
    } else if better <= LEVEL {
        direction_of_worse(row.metric, Verdict::Better)
    } else {
        Verdict::Same
    };
}

/// With the fewest runs, any other division that looks as bad hides a difference, and chance alone
/// reaches the level: a winner has to be beyond the noise that is shown as well.
fn withdraw_within_noise(row: &mut Row) {
    let both = row.change.zip(row.noise);
    if both.is_some_and(|(change, noise)| change.abs() <= noise) {
        row.verdict = Verdict::Same;
    }
}

/// A figure without a better direction has no winner.
fn direction_of_worse(metric: &str, verdict: Verdict) -> Verdict {
    match metric::find(metric).map(|metric| metric.better) {
        None | Some(Better::Neither) => Verdict::Same,
        Some(Better::Higher | Better::Lower) => verdict,
    }
}

fn direction(metric: &str, is_difference: bool, is_higher: bool) -> Verdict {
    let better = metric::find(metric).map(|metric| metric.better);
    match (better, is_difference, is_higher) {
        (_, false, _) | (None | Some(Better::Neither), _, _) => Verdict::Same,
        (Some(Better::Higher), true, true) | (Some(Better::Lower), true, false) => Verdict::Better,
        (Some(Better::Higher), true, false) | (Some(Better::Lower), true, true) => Verdict::Worse,
    }
}

/// The largest error of the runs of a side: the figures of few runs vary too little to add up.
fn error_of(runs: &[RunResult], metric: &str) -> Option<noise::Error> {
    let errors = runs.iter().map(|run| noise::error_within(run, metric));
    let errors: Option<Vec<noise::Error>> = errors.collect();
    let largest =
        |left: &noise::Error, right: &noise::Error| left.relative.total_cmp(&right.relative);
    errors?.into_iter().max_by(largest)
}

/// The largest error bound of the generator in a figure of a side, in nanoseconds.
fn bound_of(runs: &[RunResult], metric: &str) -> f64 {
    let bounds = runs.iter().filter_map(|run| figures::error_ns(run, metric));
    bounds.fold(0.0, f64::max)
}

/// None if something grew out of nothing, which is not a multiple of it.
fn relative_change(baseline: f64, candidate: f64) -> Option<f64> {
    if baseline == 0.0 {
        (candidate == 0.0).then_some(0.0)
    } else {
        Some((candidate - baseline) / baseline.abs())
    }
}
