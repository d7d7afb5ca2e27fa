//! A run as text: verdicts, the paragraph at the top, tiles, limits.

use std::time::Duration;

use serde::Serialize;

use super::view::{NAME_MAX, brief};
use crate::metric::{self, Unit};
use crate::result::{Quantiles, RunResult, Usage};
use crate::summary::{is_without_figures, verdict_word};
use crate::svg::value_text;
use crate::threshold::ThresholdResult;
use crate::units;

/// Most rows of the table of limits.
const THRESHOLDS_MAX: usize = 60;
/// Most reasons of errors.
const ERRORS_MAX: usize = 20;

/// A verdict in a few words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Badge {
    pub(crate) text: String,
    pub(crate) good: bool,
    /// The subject of the badge.
    pub(crate) help: &'static str,
}

/// One of the six figures at the top.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Tile {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) note: String,
}

/// A limit and how far the run was from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ThresholdRow {
    metric: String,
    condition: String,
    measured: String,
    margin: String,
    pass: bool,
    help: &'static str,
}

/// Errors of one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ErrorRow {
    reason: String,
    count: String,
    first: String,
    last: String,
}

/// Target and time.
pub(crate) fn subtitle(result: &RunResult) -> String {
    let scenario = &result.scenario;
    let hold = Duration::try_from_secs_f64(scenario.stages.hold).unwrap_or_default();
    let parts = [
        scenario.summary.clone(),
        scenario
            .targets
            .iter()
            .take(4)
            .cloned()
            .collect::<Vec<_>>()
            .join(", "),
        format!("{} hold", units::span(hold)),
        result.started.clone(),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    brief(&parts.join(" · "), NAME_MAX * 3)
}

/// Whether the figures count, whether the protocol was kept, whether the limits were.
pub(crate) fn badges(result: &RunResult) -> Vec<Badge> {
    let badge = |good, yes: &str, no: &str, help| Badge {
        text: if good { yes } else { no }.to_owned(),
        good,
        help,
    };
    let mut badges = Vec::new();
    if !is_without_figures(result) {
        badges.push(badge(
            result.validity.valid,
            "VALID",
            "INVALID",
            "whether the figures are the broker's and not the generator's",
        ));
    }
    // A run that was ended early is not a pass; the last badge says that it was ended.
    if verdict_word(result) != "INTERRUPTED" {
        badges.push(badge(
            result.verdict.pass,
            "PASS",
            "FAIL",
            "whether the broker kept the promises of the protocol",
        ));
    }
    let limits = result.thresholds.len();
    let missed = result
        .thresholds
        .iter()
        .filter(|threshold| !threshold.pass)
        .count();
    if limits > 0 {
        badges.push(Badge {
            text: match missed {
                0 => format!("{limits} OF {limits} LIMITS KEPT"),
                missed => format!("{missed} OF {limits} LIMITS MISSED"),
            },
            good: missed == 0,
            help: "whether the run met the limits that its scenario sets",
        });
    }
    if result.interrupted {
        badges.push(badge(
            false,
            "",
            "INTERRUPTED",
            "the run was stopped from outside",
        ));
    }
    badges
}

/// The run in a few sentences.
pub(crate) fn paragraph(result: &RunResult) -> String {
    let mut sentences = vec![what_was_done(result)];
    sentences.extend(what_arrived(result));
    sentences.extend(how_long(result));
    sentences.extend(what_it_cost(result));
    sentences.extend(limits_missed(result));
    sentences.push(if !result.verdict.text.is_empty() {
        sentence(&format!(
            "Verdict: {}",
            unbroken_figures(&brief(&result.verdict.text, NAME_MAX * 2))
        ))
    } else if result.verdict.pass {
        "The broker kept the promises of the protocol.".to_owned()
    } else {
        "The broker broke promises of the protocol.".to_owned()
    });
    sentences.push(
        if result.validity.valid {
            "The generator kept up, so the figures are the broker's."
        } else {
            "The generator was the limit, so the figures are not the broker's."
        }
        .to_owned(),
    );
    sentences.join(" ")
}

fn what_was_done(result: &RunResult) -> String {
    let hold = Duration::try_from_secs_f64(result.scenario.stages.hold).unwrap_or_default();
    let ready = figure(result.clients.ready);
    let wanted = if result.clients.ready == result.clients.wanted {
        String::new()
    } else {
        format!(" of {}", figure(result.clients.wanted))
    };
    let load = if result.rates.offered > 0.0 {
        format!(
            ", with {} messages due per second and {} sent",
            unbroken(&units::figure(result.rates.offered)),
            unbroken(&units::figure(result.rates.sent))
        )
    } else {
        String::new()
    };
    format!(
        "{ready}{wanted} clients were up for {}{load}.",
        units::span(hold)
    )
}

fn what_arrived(result: &RunResult) -> Option<String> {
    let delivery = &result.delivery;
    (delivery.expected > 0).then(|| {
        let all = figure(delivery.expected);
        if delivery.delivered >= delivery.expected {
            return format!("All {all} deliveries arrived.");
        }
        let share = units::ratio(delivery.delivered, delivery.expected);
        let share = unbroken(&value_text(share, Unit::Share));
        let arrived = figure(delivery.delivered);
        let lost = match delivery.lost {
            0 => "none was lost, the others were not promised".to_owned(),
            1 => "1 was lost".to_owned(),
            lost => format!("{} were lost", figure(lost)),
        };
        format!("{arrived} of {all} deliveries arrived ({share}); {lost}.")
    })
}

fn how_long(result: &RunResult) -> Option<String> {
    let (what, quantiles) = match (&result.latency_ns.e2e, &result.latency_ns.connect) {
        (Some(e2e), _) => ("messages", e2e.quantiles),
        (None, Some(connect)) => ("connections", connect.quantiles),
        (None, None) => return None,
    };
    let Quantiles { p50, p99, max, .. } = quantiles;
    Some(format!(
        "Half of the {what} took at most {}, 99 % at most {}, the slowest {}.",
        units::latency(p50),
        units::latency(p99),
        units::latency(max)
    ))
}

fn what_it_cost(result: &RunResult) -> Option<String> {
    let usage = first_broker(result)?;
    Some(format!(
        "The broker used {} cores on average and at most {} of memory.",
        units::figure(usage.cores_avg),
        unbroken(&units::bytes(units::fraction(usage.rss_max_bytes)))
    ))
}

fn limits_missed(result: &RunResult) -> Option<String> {
    let missed = result.thresholds.iter().filter(|threshold| !threshold.pass);
    let names: Vec<_> = missed
        .take(5)
        .map(|threshold| {
            brief(
                &format!("{} {}", threshold.metric, threshold.condition),
                NAME_MAX,
            )
        })
        .collect();
    (!names.is_empty()).then(|| format!("Limits missed: {}.", names.join("; ")))
}

/// The six figures that most readers look for.
pub(crate) fn tiles(result: &RunResult) -> Vec<Tile> {
    let clients = &result.clients;
    vec![
        rate_tile(result),
        latency_tile(result),
        delivery_tile(result),
        Tile {
            name: "Clients ready",
            value: units::count(clients.ready),
            note: format!(
                "of {} · {}",
                units::count(clients.wanted),
                units::rate(clients.connect_rate)
            ),
        },
        broker_tile(result, "Broker CPU", |usage| {
            let cost = usage.cpu_us_per_message;
            let cost = cost.map_or_else(String::new, |cost| {
                format!(" · {}µs/message", units::figure(cost))
            });
            let most = format!("max {}{cost}", units::figure(usage.cores_max));
            (format!("{} cores", units::figure(usage.cores_avg)), most)
        }),
        broker_tile(result, "Broker memory", |usage| {
            let each = usage.bytes_per_connection;
            let each = each.map_or_else(String::new, |each| {
                format!(" · {}/client", units::bytes(each))
            });
            let mean = units::bytes(units::fraction(usage.rss_avg_bytes));
            (
                units::bytes(units::fraction(usage.rss_max_bytes)),
                format!("avg {mean}{each}"),
            )
        }),
    ]
}

fn rate_tile(result: &RunResult) -> Tile {
    let rates = &result.rates;
    if rates.offered > 0.0 || rates.received > 0.0 {
        return Tile {
            name: "Received",
            value: units::rate(rates.received),
            note: format!(
                "sent {} of {}",
                units::figure(rates.sent),
                units::figure(rates.offered)
            ),
        };
    }
    Tile {
        name: "Connected",
        value: units::rate(result.clients.connect_rate),
        note: "no messages in this scenario".to_owned(),
    }
}

fn latency_tile(result: &RunResult) -> Tile {
    let latencies = &result.latency_ns;
    let (name, found) = match (&latencies.e2e, &latencies.connect) {
        (None, Some(connect)) => ("Connect time p99", Some(connect)),
        (e2e, _) => ("Response time p99", e2e.as_ref()),
    };
    let Some(Quantiles { p50, p99, max, .. }) = found.map(|found| found.quantiles) else {
        return Tile {
            name,
            value: "–".to_owned(),
            note: "not measured".to_owned(),
        };
    };
    Tile {
        name,
        value: units::latency(p99),
        note: format!("p50 {} · max {}", units::latency(p50), units::latency(max)),
    }
}

fn delivery_tile(result: &RunResult) -> Tile {
    let delivery = &result.delivery;
    let (value, note) = if delivery.expected == 0 {
        ("–".to_owned(), "nothing was promised".to_owned())
    } else {
        let share = units::ratio(delivery.delivered, delivery.expected);
        let note = format!(
            "{} lost · {} duplicated",
            units::count(delivery.lost),
            units::count(delivery.duplicated)
        );
        (value_text(share, Unit::Share), note)
    };
    Tile {
        name: "Delivered",
        value,
        note,
    }
}

fn broker_tile(
    result: &RunResult,
    name: &'static str,
    text: impl Fn(&Usage) -> (String, String),
) -> Tile {
    let Some(usage) = first_broker(result) else {
        return Tile {
            name,
            value: "–".to_owned(),
            note: "the broker could not be watched".to_owned(),
        };
    };
    let (value, mut note) = text(usage);
    if result.brokers.len() > 1 {
        note = format!("first of {} brokers · {note}", result.brokers.len());
    }
    Tile { name, value, note }
}

fn first_broker(result: &RunResult) -> Option<&Usage> {
    result.brokers.first().map(|broker| &broker.usage)
}

/// The limits with what was measured.
pub(super) fn thresholds(result: &RunResult) -> Vec<ThresholdRow> {
    result
        .thresholds
        .iter()
        .take(THRESHOLDS_MAX)
        .map(threshold_row)
        .collect()
}

fn threshold_row(threshold: &ThresholdResult) -> ThresholdRow {
    let found = metric::find(&threshold.metric);
    let unit = found.map_or(Unit::Count, |metric| metric.unit);
    ThresholdRow {
        metric: brief(&threshold.metric, NAME_MAX),
        condition: brief(&threshold.condition, NAME_MAX),
        measured: threshold.measured.map_or_else(
            || "not measured".to_owned(),
            |measured| value_text(measured, unit),
        ),
        margin: threshold.measured.map_or_else(String::new, |measured| {
            margin(measured, threshold.limit, unit)
        }),
        pass: threshold.pass,
        help: found.map_or("", |metric| metric.help),
    }
}

/// How far a figure is from its limit: relative where the limit is not 0.
fn margin(measured: f64, limit: f64, unit: Unit) -> String {
    let distance = measured - limit;
    if distance.abs() <= limit.abs() * 1e-9 {
        return "at the limit".to_owned();
    }
    let side = if distance < 0.0 { "below" } else { "above" };
    if limit == 0.0 || unit == Unit::Share {
        let points = if unit == Unit::Share {
            format!("{} points", trimmed(distance.abs() * 100.0))
        } else {
            value_text(distance.abs(), unit)
        };
        return format!("{points} {side}");
    }
    format!(
        "{} % {side}",
        units::figure(distance.abs() / limit.abs() * 100.0)
    )
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.4}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "0" {
        "< 0.0001".to_owned()
    } else {
        short.to_owned()
    }
}

/// The most frequent reasons, and how many are not shown.
pub(super) fn errors(result: &RunResult) -> (Vec<ErrorRow>, usize) {
    let mut errors: Vec<_> = result.errors.iter().collect();
    errors.sort_by_key(|error| std::cmp::Reverse(error.count));
    let rows = errors.iter().take(ERRORS_MAX).map(|error| ErrorRow {
        reason: brief(&error.reason, NAME_MAX * 2),
        count: units::count(error.count),
        first: clock(error.first_seconds),
        last: clock(error.last_seconds),
    });
    (rows.collect(), errors.len().saturating_sub(ERRORS_MAX))
}

/// Time since the first connection: `2:05.3`.
pub(super) fn clock(seconds: f64) -> String {
    let tenths = units::whole((seconds * 10.0).max(0.0));
    let (minutes, rest) = (tenths / 600, tenths % 600);
    if minutes >= 60 {
        format!("{}:{:02}:{:02}", minutes / 60, minutes % 60, rest / 10)
    } else {
        format!("{minutes}:{:02}.{}", rest / 10, rest % 10)
    }
}

fn figure(value: u64) -> String {
    unbroken(&units::count(value))
}

/// A figure that no line break divides.
fn unbroken(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// A text whose figures are not split by a line break: `all 30 000 deliveries`.
fn unbroken_figures(text: &str) -> String {
    let is_digit = |character: Option<char>| character.is_some_and(|digit| digit.is_ascii_digit());
    let mut before = None;
    let mut after = text.chars().skip(1);
    let characters = text.chars().map(|character| {
        let next = after.next();
        let is_within = character == ' ' && is_digit(before) && is_digit(next);
        before = Some(character);
        if is_within { '\u{a0}' } else { character }
    });
    characters.collect()
}

fn sentence(text: &str) -> String {
    if text.ends_with('.') {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_are_relative_unless_the_limit_is_zero() {
        assert_eq!(margin(3.9e6, 5e7, Unit::Nanoseconds), "92 % below");
        assert_eq!(margin(1.1e9, 1e9, Unit::Bytes), "10 % above");
        assert_eq!(margin(3.0, 0.0, Unit::Count), "3 above");
        assert_eq!(margin(0.0, 0.0, Unit::Count), "at the limit");
        assert_eq!(margin(0.98, 1.0, Unit::Share), "2 points below");
        assert_eq!(
            margin(0.999_999_99, 1.0, Unit::Share),
            "< 0.0001 points below"
        );
    }

    #[test]
    fn a_run_without_messages_speaks_of_connections() {
        let mut result = RunResult::default();
        result.clients.ready = 10_000;
        result.clients.wanted = 10_000;
        result.latency_ns.connect = Some(crate::result::Distribution::default());
        assert_eq!(tiles(&result)[1].name, "Connect time p99");
        assert!(paragraph(&result).contains("Half of the connections"));
    }

    #[test]
    fn deliveries_are_described_in_plain_words() {
        let told = |expected, delivered, lost| {
            let mut result = RunResult::default();
            (result.delivery.expected, result.delivery.delivered) = (expected, delivered);
            result.delivery.lost = lost;
            what_arrived(&result).map(|text| text.replace('\u{a0}', " "))
        };
        assert_eq!(told(0, 0, 0), None);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            told(30_000, 30_000, 0),
            text("All 30 000 deliveries arrived.")
        );
        assert_eq!(
            told(30_000, 29_997, 3),
            text("29 997 of 30 000 deliveries arrived (99.99 %); 3 were lost.")
        );
        assert_eq!(
            told(4, 3, 0),
            text("3 of 4 deliveries arrived (75 %); none was lost, the others were not promised.")
        );
    }

    #[test]
    fn no_line_break_divides_a_figure_of_the_verdict() {
        assert_eq!(
            unbroken_figures("all 4 000 deliveries, 2 of 3"),
            "all 4\u{a0}000 deliveries, 2 of 3"
        );
    }

    #[test]
    fn times_of_errors_are_minutes_and_seconds() {
        assert_eq!(clock(125.3), "2:05.3");
        assert_eq!(clock(7_325.0), "2:02:05");
    }
}
