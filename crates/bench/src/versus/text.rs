//! The comparison as tables, in the form of the published results: rate, latency, CPU, memory.

use std::fmt::Write as _;

use super::{Ended, Spread, Standing, VersusReport};
use crate::units::{bytes, figure, latency, percent, whole};

/// Columns of a table; those of what was measured stand second to fourth and seventh.
const HEADINGS: [&str; 8] = [
    "broker",
    "received/s",
    "avg latency",
    "p99",
    "CPU max / avg",
    "memory max / avg",
    "CPU/message",
    "runs",
];

/// The same where only connections were measured.
const CONNECT_HEADINGS: [&str; 8] = [
    "broker",
    "connections/s",
    "avg connect",
    "p99",
    "CPU max / avg",
    "memory max / avg",
    "memory/connection",
    "runs",
];

/// Characters that a column needs at least.
const GAP: usize = 2;

/// The comparison for the terminal.
pub fn table(report: &VersusReport) -> String {
    let mut text = String::new();
    for (scenario, standings) in by_scenario(report) {
        let rows = standings.iter().map(|standing| row(standing));
        let rows: Vec<[String; 8]> = rows.collect();
        let headings = headings(&standings);
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0).max(headings[column].len()) + GAP
        };
        writeln!(text, "{scenario}\n").ok();
        let mut line = |cells: &[&str]| {
            text.push_str("  ");
            for (column, cell) in cells.iter().enumerate() {
                write!(text, "{cell:<0$}", width(column)).ok();
            }
            text.truncate(text.trim_end_matches(' ').len());
            text.push('\n');
        };
        line(headings);
        for row in &rows {
            line(&row.each_ref().map(String::as_str));
        }
        text.push('\n');
    }
    text.push_str(&remarks(report, "  "));
    text
}

/// The comparison in Markdown.
pub fn markdown(report: &VersusReport) -> String {
    let mut text = "# Brokers compared\n\n".to_owned();
    text.push_str("| Broker | Version | Licence |\n|---|---|---|\n");
    for broker in report.brokers.iter().filter(|broker| broker.installed) {
        writeln!(
            text,
            "| {} | {} | {} |",
            broker.name, broker.version, broker.license
        )
        .ok();
    }
    writeln!(
        text,
        "\nEach broker was started afresh for every run, alone, in turns over {} rounds. Figures are medians \
         (lowest..highest).\n\n    {}\n",
        report.rounds, report.command
    )
    .ok();
    for (scenario, standings) in by_scenario(report) {
        writeln!(
            text,
            "## {scenario}\n\n| {} |\n|{}",
            headings(&standings).join(" | "),
            "---|".repeat(8)
        )
        .ok();
        for standing in standings {
            writeln!(text, "| {} |", row(standing).join(" | ")).ok();
        }
        text.push('\n');
    }
    text.push_str(&remarks(report, "- "));
    text
}

fn by_scenario(report: &VersusReport) -> Vec<(&str, Vec<&Standing>)> {
    let mut scenarios: Vec<(&str, Vec<&Standing>)> = Vec::new();
    for standing in &report.standings {
        match scenarios.last_mut() {
            Some((name, standings)) if *name == standing.scenario => standings.push(standing),
            _ => scenarios.push((&standing.scenario, vec![standing])),
        }
    }
    scenarios
}

fn headings(standings: &[&Standing]) -> &'static [&'static str; 8] {
    let has_messages = standings.iter().any(|standing| carries_messages(standing));
    let has_figures = standings
        .iter()
        .any(|standing| !standing.figures.is_empty());
    if has_messages || !has_figures {
        &HEADINGS
    } else {
        &CONNECT_HEADINGS
    }
}

/// Without messages the connections are what was measured.
fn carries_messages(standing: &Standing) -> bool {
    standing.figures.contains_key("e2e.mean")
}

fn row(standing: &Standing) -> [String; 8] {
    let spread = |name: &str| standing.figures.get(name);
    let time = |value: f64| latency(whole(value));
    let shown = |name: &str, show: &dyn Fn(f64) -> String| {
        spread(name).map_or_else(dash, |spread| with_ends(spread, show))
    };
    let pair = |max: &str, avg: &str, show: &dyn Fn(f64) -> String| {
        let median = |name| spread(name).map_or_else(dash, |spread| show(spread.median));
        format!("{} / {}", median(max), median(avg))
    };
    let (rate, timed) = if carries_messages(standing) {
        ("rate.received", "e2e")
    } else {
        ("connect.rate", "connect")
    };
    let cost = if carries_messages(standing) {
        shown("broker.cpu_per_message", &|value| {
            format!("{}µs", figure(value))
        })
    } else {
        shown("broker.bytes_per_connection", &bytes)
    };
    [
        standing.broker.clone(),
        shown(rate, &figure),
        shown(&format!("{timed}.mean"), &time),
        shown(&format!("{timed}.p99"), &time),
        pair("broker.cpu.max", "broker.cpu", &percent),
        pair("broker.rss", "broker.rss.avg", &bytes),
        cost,
        runs(standing),
    ]
}

fn dash() -> String {
    "-".to_owned()
}

fn with_ends(spread: &Spread, show: &dyn Fn(f64) -> String) -> String {
    let (median, min, max) = (show(spread.median), show(spread.min), show(spread.max));
    if min == max {
        median
    } else {
        format!("{median} ({min}..{max})")
    }
}

/// How the runs ended, in words.
fn runs(standing: &Standing) -> String {
    let counted = [
        (standing.passed, "PASS"),
        (standing.measured - standing.passed, "FAIL"),
        (standing.crashed, "crashed"),
        (standing.failed, "without result"),
    ];
    let counted = counted.iter().filter(|(number, _)| *number > 0);
    let parts: Vec<String> = counted
        .map(|(number, what)| format!("{number} {what}"))
        .collect();
    let limited = match standing.measured - standing.valid {
        0 => String::new(),
        number => format!(" ({number} INVALID)"),
    };
    format!("{}{limited}", parts.join(", "))
}

/// Crashes, failures, notes, and who is not installed.
fn remarks(report: &VersusReport, bullet: &str) -> String {
    let mut text = String::new();
    for run in &report.runs {
        let (what, why) = match &run.ended {
            Ended::Measured { .. } => continue,
            Ended::Crashed { how } => ("crashed", how),
            Ended::Failed { why } => ("no result", why),
        };
        let (broker, scenario, round) = (&run.broker, &run.scenario, run.round);
        writeln!(
            text,
            "{bullet}{broker}, {scenario}, round {round}: {what}: {why}"
        )
        .ok();
    }
    for broker in &report.brokers {
        if !broker.installed {
            writeln!(
                text,
                "{bullet}{}: not installed; get it: {}",
                broker.name, broker.obtain
            )
            .ok();
        } else if !broker.note.is_empty() {
            writeln!(text, "{bullet}{}: {}", broker.name, broker.note).ok();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::standing::tests::{entry, measured, run};
    use super::*;

    fn report() -> VersusReport {
        let runs = vec![
            run("a", 1, measured(5e6, true)),
            run(
                "b",
                1,
                Ended::Crashed {
                    how: "signal: 11".to_owned(),
                },
            ),
            run("a", 2, measured(7e6, true)),
        ];
        let brokers = vec![entry("a", true), entry("b", true), entry("c", false)];
        VersusReport::new("thrum bench versus".to_owned(), 2, brokers, runs)
    }

    #[test]
    fn the_table_has_a_line_for_each_broker_that_ran() {
        let mut report = report();
        let figures = &mut report.standings[0].figures;
        figures.insert(
            "e2e.mean".to_owned(),
            Spread {
                median: 1e6,
                min: 1e6,
                max: 1e6,
            },
        );
        let text = table(&report);
        let line = text.lines().find(|line| line.starts_with("  a ")).unwrap();
        assert!(
            line.contains("1ms") && line.contains("6ms (5ms..7ms)") && line.ends_with("2 PASS"),
            "{line}"
        );
        let line = text.lines().find(|line| line.starts_with("  b ")).unwrap();
        assert!(line.ends_with("1 crashed"), "{line}");
    }

    #[test]
    fn connections_have_columns_of_their_own_and_invalid_runs_are_counted() {
        let runs = vec![run("a", 1, measured(5e6, false))];
        let mut report = VersusReport::new(String::new(), 1, vec![entry("a", true)], runs);
        let figures = &mut report.standings[0].figures;
        let spread = Spread {
            median: 1e3,
            min: 1e3,
            max: 1e3,
        };
        figures.insert("connect.rate".to_owned(), spread);
        figures.insert("broker.bytes_per_connection".to_owned(), spread);
        let text = table(&report);
        assert!(text.contains("connections/s"), "{text}");
        let line = text.lines().find(|line| line.starts_with("  a ")).unwrap();
        assert!(
            line.contains("1 000 B") && line.ends_with("1 PASS (1 INVALID)"),
            "{line}"
        );
    }

    #[test]
    fn crashes_and_missing_brokers_are_explained() {
        let text = table(&report());
        assert!(
            text.contains("b, p2p-1K, round 1: crashed: signal: 11"),
            "{text}"
        );
        assert!(
            text.contains("c: not installed; get it: apt install it"),
            "{text}"
        );
    }

    #[test]
    fn the_markdown_names_versions_and_the_command() {
        let text = markdown(&report());
        assert!(text.contains("| a | 1.0 | MIT |"), "{text}");
        assert!(text.contains("    thrum bench versus\n"), "{text}");
        assert!(!text.contains("| c |"), "{text}");
    }
}
