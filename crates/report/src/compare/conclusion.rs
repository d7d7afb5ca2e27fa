//! A comparison in one sentence.

use super::{Comparison, FAILURES, NoiseSource, Row, Verdict};
use crate::metric;
use thrum_figures::figure;

/// The comparison in one sentence; `name` is the candidate's, the baseline is `A`.
///
/// `B needs 0.81 ± 0.04 times the CPU of A per message; p99: no difference shown.`
pub fn conclusion(comparison: &Comparison, name: &str) -> String {
    conclusion_between(comparison, Names { name, other: "A" })
}

/// The names of candidate and baseline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'a> {
    pub(crate) name: &'a str,
    pub(crate) other: &'a str,
}

/// The comparison in one sentence, with these names.
///
/// `thrum needs 0.81 ± 0.04 times the CPU of mosquitto per message; p99: no difference shown.`
pub(crate) fn conclusion_between(comparison: &Comparison, names: Names<'_>) -> String {
    if !comparison.is_valid {
        return "No conclusion: the figures of an INVALID run are the generator's.".to_owned();
    }
    let gates = comparison.rows.iter().filter(|row| row.is_gate);
    let mut parts = promises(comparison, names);
    // CPU stands first, as it needs the fewest words.
    let (cpu, others): (Vec<&Row>, Vec<&Row>) =
        gates.partition(|row| row.metric == "broker.cpu_per_message");
    let phrases = cpu.into_iter().chain(others);
    parts.extend(phrases.filter_map(|row| phrase(row, names)));
    if parts.is_empty() {
        return "No conclusion: the runs have no figure in common.".to_owned();
    }
    format!("{}.", parts.join("; "))
}

/// Promises that only one side broke.
fn promises(comparison: &Comparison, Names { name, other }: Names<'_>) -> Vec<String> {
    let broken = |verdict: Verdict| -> Vec<String> {
        let rows = comparison.rows.iter().filter(|row| {
            row.noise_source == NoiseSource::Exact
                && row.verdict == verdict
                && FAILURES.contains(&row.metric)
                && row.metric != "delivered"
        });
        rows.map(|row| row.metric.to_owned()).collect()
    };
    let told = |who: &str, other: &str, broken: &[String]| {
        (!broken.is_empty()).then(|| {
            format!(
                "{who} broke promises that {other} kept ({})",
                broken.join(", ")
            )
        })
    };
    [
        told(name, other, &broken(Verdict::Worse)),
        told(other, name, &broken(Verdict::Better)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn phrase(row: &Row, Names { name, other }: Names<'_>) -> Option<String> {
    let of_other = match row.metric {
        "broker.cpu_per_message" => format!("the CPU of {other} per message"),
        "broker.rss" => format!("the memory of {other}"),
        "rate.received" => format!("the messages of {other}"),
        _ => String::new(),
    };
    let verb = match row.metric {
        "rate.received" => "delivers",
        _ => "needs",
    };
    let short = short(row.metric);
    match row.verdict {
        Verdict::Better | Verdict::Worse if of_other.is_empty() => {
            let times = times(row)?;
            Some(format!(
                "{short} of {name} is {times} times that of {other}"
            ))
        }
        Verdict::Better | Verdict::Worse => {
            Some(format!("{name} {verb} {} times {of_other}", times(row)?))
        }
        _ if FAILURES.contains(&row.metric) => None,
        // Equal rates are the rule, as the generator sets them, and memory seldom matters.
        _ if matches!(row.metric, "rate.received" | "broker.rss") => None,
        verdict => Some(format!("{short}: {}", verdict.text())),
    }
}

/// `0.81 ± 0.04`; none if the baseline is 0, or no noise is known.
fn times(row: &Row) -> Option<String> {
    let ratio = 1.0 + row.change?;
    let noise = row.noise?;
    Some(format!("{} ± {}", factor(ratio), factor(noise)))
}

fn factor(value: f64) -> String {
    if value >= 10.0 {
        figure(value)
    } else {
        format!("{:.2}", value.max(0.01))
    }
}

/// `p99` for `e2e.p99`; other latencies keep their name.
fn short(metric: &str) -> String {
    match metric.split_once('.') {
        Some(("e2e", figure)) => figure.to_owned(),
        Some(("broker", "cpu_per_message")) => "CPU per message".to_owned(),
        Some((distribution, figure)) if metric::DISTRIBUTIONS.contains(&distribution) => {
            format!("{} {figure}", distribution.replace('_', " "))
        }
        _ => metric.to_owned(),
    }
}
