//! Whether the parts of a run agree with each other.

use crate::folder;
use crate::hlog;
use crate::result::{Distribution, RunResult};
use crate::units::count;

use super::{BundleError, LOG, RESULT, SCENARIO, SERIES};

/// Relative difference of two numbers that are the same: the last digit of one read from text.
const ROUNDING: f64 = 1e-9;

/// The files beside the result.
pub(super) struct Parts<'a> {
    pub(super) scenario: &'a [u8],
    pub(super) series: &'a [u8],
    pub(super) log: Option<&'a [u8]>,
}

/// The run of `result.json`.
pub(super) fn result(bytes: &[u8]) -> Result<RunResult, BundleError> {
    let why = |why: String| BundleError::Result { why };
    let text = std::str::from_utf8(bytes).map_err(|error| why(error.to_string()))?;
    Ok(folder::parse_result(text)?)
}

/// Checks everything; returns a sentence about each check.
pub(super) fn all(run: &RunResult, parts: &Parts<'_>) -> Result<Vec<String>, BundleError> {
    if run.scenario.toml.as_bytes() != parts.scenario {
        return Err(disagrees(format!(
            "{SCENARIO} is not the scenario of {RESULT}"
        )));
    }
    let mut checks = vec![
        format!("{SCENARIO}: that of {RESULT}"),
        series(run, parts.series)?,
        histograms(run)?,
        metrics(run)?,
    ];
    checks.push(match parts.log {
        Some(log) => intervals(log)?,
        None => format!("{LOG}: the run has none"),
    });
    Ok(checks)
}

fn disagrees(what: String) -> BundleError {
    BundleError::Disagrees { what }
}

fn series(run: &RunResult, bytes: &[u8]) -> Result<String, BundleError> {
    // A head, and a row for each second.
    let rows = bytes
        .split(|byte| *byte == b'\n')
        .filter(|row| !row.is_empty());
    let (rows, seconds) = (rows.count(), run.series.len());
    if rows != seconds + 1 {
        let what = format!("{SERIES} has {rows} rows for {seconds} seconds and their head");
        return Err(disagrees(what));
    }
    Ok(format!(
        "{SERIES}: {seconds} seconds, as many as in {RESULT}"
    ))
}

/// Every quantile follows from the histogram beside it.
fn histograms(run: &RunResult) -> Result<String, BundleError> {
    let (mut distributions, mut figures) = (0, 0);
    for (name, distribution) in run.latency_ns.named() {
        let Some(kept) = distribution else {
            continue;
        };
        let histogram = kept.histogram();
        let histogram =
            histogram.map_err(|error| disagrees(format!("{name} of {RESULT}: {error}")))?;
        let computed = Distribution::with_missing(&histogram, kept.missing, kept.missing_over);
        let (kept, computed) = (kept.quantiles.figures(), computed.quantiles.figures());
        for ((figure, kept), (_, computed)) in kept.into_iter().zip(computed) {
            if kept != computed {
                let what = format!(
                    "{RESULT} has {kept} ns as {name}.{figure}, and its histogram has {computed}"
                );
                return Err(disagrees(what));
            }
            figures += 1;
        }
        distributions += 1;
    }
    Ok(format!(
        "histograms: {figures} figures of {distributions} distributions computed again"
    ))
}

/// Every metric follows from the other fields. Later versions may know more of them.
fn metrics(run: &RunResult) -> Result<String, BundleError> {
    let mut again = run.clone();
    again.fill_metrics();
    for (name, kept) in &run.metrics {
        let computed = again.metrics.get(name).copied();
        let is_same = |computed: f64| (computed - kept).abs() <= ROUNDING * kept.abs();
        if !computed.is_some_and(is_same) {
            let computed = computed.map_or_else(|| "none".to_owned(), |value| value.to_string());
            let what =
                format!("{RESULT} has {kept} as {name}, and its other fields give {computed}");
            return Err(disagrees(what));
        }
    }
    Ok(format!(
        "metrics: {} figures computed again",
        run.metrics.len()
    ))
}

/// Every interval can be read, one at a time.
fn intervals(log: &[u8]) -> Result<String, BundleError> {
    let wrong = |error: String| disagrees(format!("{LOG}: {error}"));
    let log = std::str::from_utf8(log).map_err(|error| wrong(error.to_string()))?;
    let (mut intervals, mut values) = (0_u64, 0_u64);
    let read = hlog::each(
        log,
        |_| true,
        |interval| {
            intervals += 1;
            values = values.saturating_add(interval.histogram.len());
            Ok(())
        },
    );
    read.map_err(|error| wrong(error.to_string()))?;
    Ok(format!(
        "{LOG}: {} intervals, {} values",
        count(intervals),
        count(values)
    ))
}
