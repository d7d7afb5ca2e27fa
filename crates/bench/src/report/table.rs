//! Several runs side by side: the end of a suite.

use std::fmt::Write as _;

use crate::monitor::Usage;
use crate::outcome::Outcome;
use crate::units::{bytes, count, figure, fraction, latency, rate};

const HEAD: [&str; 11] = [
    "scenario",
    "verdict",
    "received",
    "p50",
    "p99",
    "max",
    "lost",
    "cpu avg/max",
    "µs/msg",
    "rss max",
    "B/conn",
];

/// A table with one line per run; latencies are end to end, or to connect where nothing is sent.
pub fn table(outcomes: &[Outcome]) -> String {
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    rows.extend(outcomes.iter().map(row));
    let widths: Vec<usize> = (0..HEAD.len())
        .map(|column| {
            rows.iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width - cell.chars().count());
            // Words to the left, figures to the right.
            if column < 2 {
                write!(line, " {cell}{padding} ").ok();
            } else {
                write!(line, " {padding}{cell} ").ok();
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn row(outcome: &Outcome) -> Vec<String> {
    let is_idle = outcome.scenario.publishers() == 0;
    let latencies = if is_idle {
        &outcome.latencies.connect
    } else {
        &outcome.latencies.response
    };
    let at = |quantile| latency(latencies.value_at_quantile(quantile));
    let usage = outcome.broker.as_ref().map(|broker| &broker.usage);
    let of = |text: &dyn Fn(&Usage) -> Option<String>| {
        usage.and_then(text).unwrap_or_else(|| "-".to_owned())
    };
    vec![
        outcome.scenario.alias.clone(),
        verdict(outcome),
        if is_idle {
            "-".to_owned()
        } else {
            rate(outcome.received_rate())
        },
        at(0.5),
        at(0.99),
        at(1.0),
        if is_idle {
            "-".to_owned()
        } else {
            count(outcome.delivery.lost)
        },
        of(&|usage| {
            Some(format!(
                "{}/{}",
                figure(usage.cores_avg),
                figure(usage.cores_max)
            ))
        }),
        of(&|usage| usage.cpu_us_per_message.map(figure)),
        of(&|usage| Some(bytes(fraction(usage.rss_max_bytes)))),
        of(&|usage| usage.bytes_per_connection.map(|each| figure(each.max(0.0)))),
    ]
}

fn verdict(outcome: &Outcome) -> String {
    let verdict = if outcome.faults.is_empty() {
        "PASS"
    } else {
        "FAIL"
    };
    if outcome.limits().is_empty() {
        verdict.to_owned()
    } else {
        format!("{verdict} INVALID")
    }
}
