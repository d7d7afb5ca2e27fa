//! Whether the parts of a run follow from each other.

use serde::Deserialize;
use serde_json::Value;

use super::{BundleError, LOG, RESULT, SCENARIO, seconds};
use crate::compat::Compat;
use crate::folder;
use crate::result::{Distribution, RunResult};
use crate::threshold::{Threshold, ThresholdResult};

/// Relative difference of two numbers that are the same: the last digit of one read from text.
const ROUNDING: f64 = 1e-9;

/// Latencies of the generator itself: nothing of them is withheld.
const OF_GENERATOR: [&str; 3] = ["generator_lag", "receive_lag", "open_lag"];

/// The files of a run.
pub(super) struct Parts<'a> {
    pub(super) result: &'a [u8],
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
pub(super) fn all(run: &mut RunResult, parts: &Parts<'_>) -> Result<Vec<String>, BundleError> {
    if run.scenario.toml.as_bytes() != parts.scenario {
        return Err(disagrees(format!(
            "{SCENARIO} is not the scenario of {RESULT}"
        )));
    }
    let mut checks = vec![
        format!("{SCENARIO}: that of {RESULT}"),
        seconds::table(run, parts.series)?,
        seconds::sums(run)?,
        distributions(run)?,
        metrics(run)?,
        conclusion(run)?,
    ];
    compat(run, parts.result)?;
    checks.push(match parts.log {
        Some(log) => seconds::log(run, log)?,
        None => format!("{LOG}: the run has none"),
    });
    Ok(checks)
}

fn disagrees(what: String) -> BundleError {
    BundleError::Disagrees { what }
}

/// Every quantile, and what is withheld of it, follows from the histogram and the error beside it.
fn distributions(run: &RunResult) -> Result<String, BundleError> {
    let (mut distributions, mut figures) = (0, 0);
    for (name, distribution) in run.latency_ns.named() {
        let Some(kept) = distribution else {
            continue;
        };
        let computed = again(name, kept)?;
        let of_kept = kept.quantiles.figures().into_iter();
        for ((figure, kept), (_, computed)) in of_kept.zip(computed.quantiles.figures()) {
            if kept != computed {
                let what = format!(
                    "{RESULT} has {kept} ns as {name}.{figure}, and its histogram has {computed}"
                );
                return Err(disagrees(what));
            }
            figures += 1;
        }
        withheld(name, kept, &computed)?;
        if !is_same_curve(&kept.curve, &computed.curve) {
            let what = format!("the curve of {name} in {RESULT} is not that of its histogram");
            return Err(disagrees(what));
        }
        bounds(run, name, kept)?;
        distributions += 1;
    }
    Ok(format!(
        "histograms: {figures} figures of {distributions} distributions computed again, and what is withheld of them"
    ))
}

/// A distribution, made again out of its histogram and its error.
fn again(name: &str, kept: &Distribution) -> Result<Distribution, BundleError> {
    let histogram = kept.histogram();
    let histogram = histogram.map_err(|error| disagrees(format!("{name} of {RESULT}: {error}")))?;
    if OF_GENERATOR.contains(&name) {
        return Ok(Distribution::from_histogram(&histogram));
    }
    let missing = Distribution::with_missing(&histogram, kept.missing, kept.missing_over);
    Ok(missing.with_bound(kept.bound))
}

fn withheld(name: &str, kept: &Distribution, again: &Distribution) -> Result<(), BundleError> {
    if kept.withheld == again.withheld && kept.bound == again.bound {
        return Ok(());
    }
    let figures = again.quantiles.figures();
    let differs = |figure: &str| kept.withheld.get(figure) != again.withheld.get(figure);
    let figure = figures.iter().find(|(figure, _)| differs(figure));
    let figure = figure.map_or("a figure", |(figure, _)| figure);
    let why = again.why(figure).map_or_else(
        || "nothing withholds it".to_owned(),
        |why| format!("it is withheld ({why})"),
    );
    let what = format!(
        "{name}.{figure}: by its histogram and its error {why}, and {RESULT} says otherwise"
    );
    Err(disagrees(what))
}

/// No error is larger than its figure, but for the error of the clocks: of the time that nothing
/// took, nothing is the generator's.
fn bounds(run: &RunResult, name: &str, kept: &Distribution) -> Result<(), BundleError> {
    let clocks = run.agents.iter().map(|agent| agent.clock_error_ns);
    let clocks = clocks.fold(0_u64, u64::saturating_add);
    // A quantile among missing values is not known, but its error is that of a value that is.
    let figures = kept.quantiles.figures().into_iter();
    for (figure, seen) in figures.filter(|(figure, _)| *figure != "count") {
        let most = seen.saturating_add(clocks);
        if let Some(bound) = kept.bound_of(figure).filter(|bound| *bound > most) {
            let what =
                format!("{RESULT} has {bound} ns as error of {name}.{figure}, which is {seen} ns");
            return Err(disagrees(what));
        }
    }
    Ok(())
}

fn is_same_curve(left: &[(f64, u64)], right: &[(f64, u64)]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).all(|(left, right)| {
            left.1 == right.1 && (left.0 - right.0).abs() <= ROUNDING * right.0
        })
}

/// Every metric follows from the other fields; what is withheld is none. Other versions may know
/// more of them, or fewer.
fn metrics(run: &mut RunResult) -> Result<String, BundleError> {
    let all = std::mem::take(&mut run.metrics);
    run.fill_metrics();
    let again = std::mem::replace(&mut run.metrics, all);
    for (name, kept) in &run.metrics {
        let computed = again.get(name).copied();
        let is_same = |computed: f64| (computed - kept).abs() <= ROUNDING * kept.abs();
        if !computed.is_some_and(is_same) {
            let computed = computed.map_or_else(|| "none".to_owned(), |value| value.to_string());
            let name = name.escape_debug();
            let what =
                format!("{RESULT} has {kept} as {name}, and its other fields give {computed}");
            return Err(disagrees(what));
        }
    }
    let mut names = again.keys();
    let left_out = names.find(|name| !run.metrics.contains_key(*name));
    if let Some(name) = left_out.filter(|_| is_of_this_version(run)) {
        let what = format!("{RESULT} has no {name}, and its other fields give one");
        return Err(disagrees(what));
    }
    Ok(format!(
        "metrics: {} figures computed again",
        run.metrics.len()
    ))
}

fn is_of_this_version(run: &RunResult) -> bool {
    run.tool.version == env!("CARGO_PKG_VERSION")
}

/// Thresholds, validity and exit code follow from the figures and from each other.
fn conclusion(run: &mut RunResult) -> Result<String, BundleError> {
    let mut thresholds = Vec::new();
    for kept in &run.thresholds {
        let read = Threshold::parse(&kept.metric, &kept.condition);
        let read = read.map_err(|error| disagrees(format!("a threshold of {RESULT}: {error}")));
        thresholds.push(read?);
    }
    let (kept, validity) = (run.thresholds.clone(), run.validity.clone());
    let exit_code = run.exit_code;
    run.conclude(&thresholds);
    let mut pairs = kept.iter().zip(&run.thresholds);
    if let Some((kept, again)) = pairs.find(|(kept, again)| kept != again) {
        let what = format!(
            "{RESULT} says that {} {} was {}, and its figures say {} ({})",
            again.metric,
            again.condition.escape_debug(),
            kept_or_missed(kept),
            kept_or_missed(again),
            again.measured_text().escape_debug()
        );
        return Err(disagrees(what));
    }
    let is_valid = validity.limits.is_empty();
    if validity != run.validity
        || validity.valid != is_valid
        || validity.limits.len() != validity.advice.len()
    {
        let word = |is_valid| if is_valid { "VALID" } else { "INVALID" };
        let (kept, again) = (word(validity.valid), word(run.validity.valid && is_valid));
        let what = format!("{RESULT} says {kept}, and the limits of its figures say {again}");
        return Err(disagrees(what));
    }
    if run.verdict.pass && !run.verdict.faults.is_empty() {
        return Err(disagrees(format!("{RESULT} says PASS, and has faults")));
    }
    if exit_code != run.exit_code {
        let again = run.exit_code;
        let what = format!("{RESULT} has exit code {exit_code}, and its conclusions give {again}");
        return Err(disagrees(what));
    }
    Ok(format!(
        "conclusions: {} thresholds judged again; validity and exit code follow",
        thresholds.len()
    ))
}

const fn kept_or_missed(threshold: &ThresholdResult) -> &'static str {
    if threshold.pass { "kept" } else { "missed" }
}

/// The figures of another tool, a field of `result.json` that a [`RunResult`] has not.
fn compat(run: &RunResult, result: &[u8]) -> Result<(), BundleError> {
    #[derive(Deserialize)]
    struct WithCompat {
        compat: Option<Value>,
    }
    let why = |why: String| BundleError::Result { why };
    let WithCompat { compat } =
        serde_json::from_slice(result).map_err(|error| why(error.to_string()))?;
    let Some(kept) = compat else {
        return Ok(());
    };
    let again = Compat::xmeter(run).map_err(|error| why(error.to_string()))?;
    let again = serde_json::to_value(again).map_err(|error| why(error.to_string()))?;
    if is_same_value(&kept, &again) {
        return Ok(());
    }
    let what = format!("the field compat of {RESULT} does not follow from its histograms");
    Err(disagrees(what))
}

/// Whether two values are the same but for rounding.
fn is_same_value(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, value)| {
                    right
                        .get(name)
                        .is_some_and(|other| is_same_value(value, other))
                })
        }
        (Value::Number(left), Value::Number(right)) => {
            let of = |number: &serde_json::Number| number.as_f64().unwrap_or_default();
            (of(left) - of(right)).abs() <= ROUNDING * of(right).abs()
        }
        _ => left == right,
    }
}
