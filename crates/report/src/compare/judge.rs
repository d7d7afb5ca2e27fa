//! The figures of both sides and the verdict for each.

use super::figures::{self, COMPARED, FAILURES, Kind};
use super::permutation::{self, Figure};
use super::{LEVEL, Method, NoiseSource, Range, Row, Verdict, noise};
use crate::metric::{self, Better, Metric};
use crate::result::RunResult;

/// Least noise that is shown of repeated runs, as no machine repeats itself better.
const NOISE_OF_RUNS_MIN: f64 = 0.005;

/// What multiplies the least practical difference if one side was measured after the other, as the
/// machine may have changed in between, or if chance alone can reach the level with so few runs.
const CAUTIOUS: f64 = 2.0;

/// The runs of both sides.
pub(super) struct Sides<'a> {
    pub(super) baseline: &'a [RunResult],
    pub(super) candidate: &'a [RunResult],
    pub(super) method: Method,
}

impl Sides<'_> {
    /// The figures that at least one side has, judged.
    pub(super) fn rows(&self) -> Vec<Row> {
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
        if self.method.is_by_runs && self.method.is_cautious() {
            row.least *= CAUTIOUS;
        }
        if is_withheld {
            row.noise_source = NoiseSource::TooFewValues;
            return Some(row);
        }
        let both = row.baseline.zip(row.candidate);
        row.change = both.and_then(|(baseline, candidate)| relative_change(baseline, candidate));
        if is_failure {
            let breaks = sides.map(|runs| runs.iter().any(|run| figures::is_broken(run, name)));
            judge_promise(&mut row, &values, breaks);
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
        for row in rows {
            withdraw_within_noise(row);
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

/// The figure of each run; nothing if one of them lacks it, for the others would speak for it.
fn values(runs: &[RunResult], metric: &str) -> Vec<f64> {
    let values = runs.iter().map(|run| run.metrics.get(metric).copied());
    values.collect::<Option<_>>().unwrap_or_default()
}

fn range(values: &[f64]) -> Option<Range> {
    (values.len() > 1).then(|| Range {
        lowest: values.iter().copied().fold(f64::INFINITY, f64::min),
        highest: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    })
}

/// A promise that all runs of one side kept and a run of the other broke is a fact. What MQTT
/// allows at the quality of service of the run is none, and no reason for an alarm.
fn judge_promise(row: &mut Row, values: &[Vec<f64>; 2], breaks: [bool; 2]) {
    if values.iter().any(Vec::is_empty) {
        return;
    }
    row.is_gate = breaks[0] || breaks[1];
    let is_kept = |values: &Vec<f64>| {
        let mut values = values.iter();
        values.all(|value| figures::is_clean(row.metric, *value))
    };
    row.verdict = match values.each_ref().map(is_kept) {
        [true, true] => Verdict::Same,
        [true, false] if breaks[1] => Verdict::Worse,
        [false, true] if breaks[0] => Verdict::Better,
        _ => return,
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

/// No winner is within the noise that is shown: that is a second and weaker opinion.
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
