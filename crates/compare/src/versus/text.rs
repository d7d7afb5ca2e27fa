//! The comparison as tables for the terminal, in the form of the published results: rate, latency,
//! CPU, memory.

use std::fmt::Write as _;

use thrum_report::Unit;
use thrum_report::versus::{Spread, void_note};

use super::{Ended, Standing, VersusReport};

/// Columns of a table; the measured values are second to fourth and seventh.
const HEADINGS: [&str; 8] = [
    "broker",
    "message rate",
    "avg latency",
    "p99",
    "CPU cores max / avg",
    "memory max / avg",
    "CPU per message",
    "runs",
];

/// The same where only connections were measured.
const CONNECT_HEADINGS: [&str; 8] = [
    "broker",
    "connect rate",
    "avg connect",
    "connect p99",
    "CPU cores max / avg",
    "memory max / avg",
    "memory per connection",
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
    let shown = |name: &str, unit| spread(name).map_or_else(dash, |spread| with_ends(spread, unit));
    let pair = |max: &str, avg: &str, unit| {
        let median = |name| spread(name).map_or_else(dash, |spread| spread.text(unit));
        format!("{} / {}", median(max), median(avg))
    };
    let (rate, timed, cost, cost_unit) = if carries_messages(standing) {
        (
            "rate.received",
            "e2e",
            "broker.cpu_per_message",
            Unit::Microseconds,
        )
    } else {
        (
            "connect.rate",
            "connect",
            "broker.bytes_per_connection",
            Unit::Bytes,
        )
    };
    [
        standing.broker.clone(),
        shown(rate, Unit::PerSecond),
        shown(&format!("{timed}.mean"), Unit::Nanoseconds),
        shown(&format!("{timed}.p99"), Unit::Nanoseconds),
        pair("broker.cores.max", "broker.cores", Unit::Cores),
        pair("broker.rss", "broker.rss.avg", Unit::Bytes),
        shown(cost, cost_unit),
        runs(standing),
    ]
}

fn dash() -> String {
    "–".to_owned()
}

fn with_ends(spread: &Spread, unit: Unit) -> String {
    let text = format!("{} {}", spread.text(unit), spread.range_text(unit));
    text.trim_end().to_owned()
}

/// The ends of the runs, as text.
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

/// Void figures, crashes, failures, notes, and brokers that are not installed.
fn remarks(report: &VersusReport, bullet: &str) -> String {
    let mut text = String::new();
    let void = |standing: &&Standing| standing.measured > 0 && standing.valid == 0;
    for standing in report.standings.iter().filter(void) {
        let note = void_note(&standing.broker, &standing.scenario);
        writeln!(text, "{bullet}{note}").ok();
    }
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
    use thrum_report::RunResult;
    use thrum_report::result::{Broker, Distribution};
    use thrum_report::versus;

    use super::super::Run;
    use super::super::standing::tests::{entry, measured, run};
    use super::*;

    fn spread(values: &[f64]) -> Spread {
        Spread::of(values.to_vec()).unwrap()
    }

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
        figures.insert("e2e.mean".to_owned(), spread(&[1e6, 1e6]));
        let text = table(&report);
        let line = text.lines().find(|line| line.starts_with("  a ")).unwrap();
        assert!(
            line.contains("1ms") && line.contains("6ms [5ms..7ms]") && line.ends_with("2 PASS"),
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
        figures.insert("connect.rate".to_owned(), spread(&[1e3]));
        figures.insert("broker.bytes_per_connection".to_owned(), spread(&[1e3]));
        let text = table(&report);
        assert!(text.contains("connect rate"), "{text}");
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

    /// A run with the source values of both tables.
    fn result(received: f64, p99_ms: u64, valid: bool) -> RunResult {
        let mut run = RunResult::default();
        run.validity.valid = valid;
        run.verdict.pass = true;
        run.machine.cores = 2;
        run.rates.offered = 5_000.0;
        run.rates.received = received;
        let mut e2e = Distribution::default();
        (e2e.quantiles.mean, e2e.quantiles.p99) = (1_100_000, p99_ms * 1_000_000);
        run.latency_ns.e2e = Some(e2e);
        let mut broker = Broker::default();
        (broker.usage.cores_avg, broker.usage.cores_max) = (0.31, 0.42);
        run.brokers.push(broker);
        run.fill_metrics();
        run
    }

    /// The same rounds as the terminal has them and as the page has them.
    fn both(rounds: &[RunResult]) -> (String, String) {
        let runs = (1..).zip(rounds).map(|(round, result)| Run {
            broker: "a".to_owned(),
            scenario: "s".to_owned(),
            round,
            ended: Ended::Measured {
                pass: result.verdict.pass,
                valid: result.validity.valid,
                figures: result.metrics.clone(),
                folder: String::new(),
            },
        });
        let count = u32::try_from(rounds.len()).unwrap();
        let report =
            VersusReport::new(String::new(), count, vec![entry("a", true)], runs.collect());
        let page = versus::VersusReport {
            rounds: count,
            scenarios: vec![versus::VersusScenario {
                name: "s".to_owned(),
                brokers: vec![versus::VersusBroker {
                    name: "a".to_owned(),
                    runs: rounds.to_vec(),
                    ..versus::VersusBroker::default()
                }],
                ..versus::VersusScenario::default()
            }],
            ..versus::VersusReport::default()
        };
        (table(&report), versus::markdown(&page))
    }

    #[test]
    fn the_terminal_and_the_page_leave_out_the_same_rounds_and_use_the_same_units() {
        let rounds = [
            result(5_000.0, 6, true),
            result(4_792.0, 223, false),
            result(5_000.0, 5, true),
        ];
        let (terminal, page) = both(&rounds);
        for text in [&terminal, &page] {
            assert!(text.contains("5 000/s"), "{text}");
            assert!(text.contains("5.5ms [5ms..6ms]"), "{text}");
            assert!(!text.contains("223ms") && !text.contains("4 896"), "{text}");
        }
        assert!(terminal.contains("0.42 / 0.31"), "cores: {terminal}");
        for row in [
            "| max CPU cores, user + system | 0.42 |",
            "| avg CPU cores, user + system | 0.31 |",
        ] {
            assert!(page.contains(row), "cores: {page}");
        }
        assert!(terminal.contains("3 PASS (1 INVALID)"), "{terminal}");
        assert!(
            page.contains("INVALID in 1 of 3") && page.contains("INVALID rounds do not count"),
            "{page}"
        );
    }

    #[test]
    fn figures_of_a_broker_with_only_invalid_rounds_have_a_note() {
        let (terminal, page) = both(&[result(4_792.0, 223, false)]);
        for text in [&terminal, &page] {
            assert!(text.contains("4 792/s"), "{text}");
            assert!(text.contains("a, s: every round was INVALID"), "{text}");
        }
    }
}
