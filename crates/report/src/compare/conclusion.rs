//! A comparison in one sentence.

use super::{Comparison, FAILURES, NoiseSource, Row, Verdict};
use crate::metric;
use crate::units::figure;

/// The comparison in one sentence; `name` is the candidate's, the baseline is `A`.
///
/// `B needs 0.81 ± 0.04 times the CPU of A per message; p99: no difference shown.`
pub fn conclusion(comparison: &Comparison, name: &str) -> String {
    if !comparison.is_valid {
        return "No conclusion: the figures of an INVALID run are the generator's.".to_owned();
    }
    let gates = comparison.rows.iter().filter(|row| row.is_gate);
    let mut parts = promises(comparison, name);
    // CPU stands first, as it needs the fewest words.
    let (cpu, others): (Vec<&Row>, Vec<&Row>) =
        gates.partition(|row| row.metric == "broker.cpu_per_message");
    let phrases = cpu.into_iter().chain(others);
    parts.extend(phrases.filter_map(|row| phrase(row, name)));
    if parts.is_empty() {
        return "No conclusion: the runs have no figure in common.".to_owned();
    }
    format!("{}.", parts.join("; "))
}

/// Promises that only one side broke.
fn promises(comparison: &Comparison, name: &str) -> Vec<String> {
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
        told(name, "A", &broken(Verdict::Worse)),
        told("A", name, &broken(Verdict::Better)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn phrase(row: &Row, name: &str) -> Option<String> {
    let of_a = match row.metric {
        "broker.cpu_per_message" => "the CPU of A per message",
        "broker.rss" => "the memory of A",
        "rate.received" => "the messages of A",
        _ => "",
    };
    let verb = match row.metric {
        "rate.received" => "delivers",
        _ => "needs",
    };
    let short = short(row.metric);
    match row.verdict {
        Verdict::Better | Verdict::Worse if of_a.is_empty() => {
            let times = times(row)?;
            Some(format!("{short} of {name} is {times} times that of A"))
        }
        Verdict::Better | Verdict::Worse => {
            Some(format!("{name} {verb} {} times {of_a}", times(row)?))
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
