//! A run as text: verdicts, the paragraph at the top, tiles, limits.

use std::time::Duration;

use serde::Serialize;

use super::view::{NAME_MAX, brief};
use crate::latencies;
use crate::metric::{self, Unit};
use crate::result::{RunResult, Usage, Withheld};
use crate::summary::{is_without_figures, verdict_word};
use crate::svg::value_text;
use crate::threshold::ThresholdResult;
use thrum_figures as units;

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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Tile {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) note: String,
    /// What else belongs to it.
    pub(crate) more: String,
    /// Why it is not to be used; empty if it is.
    pub(crate) why: String,
    /// The run is INVALID, and this is not the broker's.
    pub(crate) void: bool,
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
        if is_without_figures(result) {
            String::new()
        } else {
            format!("{} hold", units::span(hold))
        },
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
    let thresholds = || result.thresholds.iter();
    let missed = thresholds().filter(|threshold| threshold.is_missed(&result.validity));
    let kept = thresholds().filter(|threshold| threshold.pass).count();
    if limits > 0 {
        badges.push(Badge {
            text: match missed.count() {
                0 => format!("{kept} OF {limits} LIMITS KEPT"),
                missed => format!("{missed} OF {limits} LIMITS MISSED"),
            },
            good: kept == limits,
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
    sentences.push(what_is_the_generators(result));
    sentences.join(" ")
}

fn what_is_the_generators(result: &RunResult) -> String {
    if is_without_figures(result) {
        return "The run was ended before its hold.".to_owned();
    }
    if !result.validity.valid {
        return "The generator was the limit, so the figures that are marked as void are not the broker's."
            .to_owned();
    }
    let main = result.latency_ns.main();
    let bound = main.and_then(|(_, main)| {
        main.bound_of("p99")
            .filter(|_| !main.withheld.contains_key("p99"))
    });
    match bound {
        Some(bound) => format!(
            "The generator kept up: at most {} of the p99 may be its own.",
            units::latency(bound)
        ),
        None => "The generator kept up, so the figures are the broker's.".to_owned(),
    }
}

fn what_was_done(result: &RunResult) -> String {
    if is_without_figures(result) {
        let (ready, wanted) = (figure(result.clients.ready), figure(result.clients.wanted));
        return format!("{ready} of {wanted} clients were up, and nothing was measured.");
    }
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
    let (name, main) = result.latency_ns.main()?;
    let what = match name {
        "connect" => "connections",
        "e2e" => "messages",
        _ => "acknowledgements",
    };
    let at_most = |figure| match main.withheld.get(figure) {
        None => format!("at most {}", main.figure_text(figure)),
        Some(Withheld::Missing { over, .. }) => format!("more than {}", units::latency(*over)),
        Some(Withheld::TooFew { .. }) => "an unknown time, as they are too few".to_owned(),
        Some(_) => "a time that is withheld".to_owned(),
    };
    let slowest = match main.withheld.get("max") {
        None => main.figure_text("max"),
        Some(Withheld::Missing { .. }) => "never arrived".to_owned(),
        Some(_) => "a time that is withheld".to_owned(),
    };
    Some(format!(
        "Half of the {what} took {}, 99 % {}, the slowest {slowest}.",
        at_most("p50"),
        at_most("p99"),
    ))
}

fn what_it_cost(result: &RunResult) -> Option<String> {
    let usage = first_broker(result)?;
    let memory = match result.validity.why_withheld("broker.rss") {
        None => {
            let most = unbroken(&units::bytes(units::fraction(usage.rss_max_bytes)));
            format!("at most {most} of memory")
        }
        Some(_) => "an amount of memory that is withheld".to_owned(),
    };
    let cores = match result.validity.why_withheld("broker.cores") {
        None => format!("{} cores on average", units::figure(usage.cores_avg)),
        Some(_) => "an amount of CPU that is withheld".to_owned(),
    };
    Some(format!("The broker used {cores} and {memory}."))
}

fn limits_missed(result: &RunResult) -> Option<String> {
    let thresholds = result.thresholds.iter();
    let missed = thresholds.filter(|threshold| threshold.is_missed(&result.validity));
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
            ..Tile::default()
        },
        cpu_tile(result),
        broker_tile(result, "Broker memory", |usage| {
            let each = usage.bytes_per_connection;
            let of =
                |name: &str, bytes: f64| result.validity.unless_withheld(name, units::bytes(bytes));
            let each = each.map_or_else(String::new, |each| {
                format!(" · {}/client", of("broker.bytes_per_connection", each))
            });
            let mean = of("broker.rss.avg", units::fraction(usage.rss_avg_bytes));
            let names = [
                "broker.rss",
                "broker.rss.avg",
                "broker.bytes_per_connection",
            ];
            let why = result.validity.reasons_withheld(&names);
            Tile {
                value: of("broker.rss", units::fraction(usage.rss_max_bytes)),
                note: format!("avg {mean}{each}"),
                void: why.is_some(),
                why: why.unwrap_or_default(),
                ..Tile::default()
            }
        }),
    ]
}

fn rate_tile(result: &RunResult) -> Tile {
    let rates = &result.rates;
    if is_without_figures(result) {
        return Tile {
            name: "Received",
            value: "–".to_owned(),
            note: "ended before the hold".to_owned(),
            ..Tile::default()
        };
    }
    if rates.offered > 0.0 || rates.received > 0.0 {
        return Tile {
            name: "Received",
            value: units::rate(rates.received),
            note: format!(
                "sent {} of {}",
                units::figure(rates.sent),
                units::figure(rates.offered)
            ),
            ..Tile::default()
        };
    }
    Tile {
        name: "Connected",
        value: units::rate(result.clients.connect_rate),
        note: "no messages in this scenario".to_owned(),
        ..Tile::default()
    }
}

fn latency_tile(result: &RunResult) -> Tile {
    let main = result.latency_ns.main();
    let name = match main {
        Some(("connect", _)) => "Connect time p99",
        Some(("publish_ack", _)) => "Acknowledged p99",
        _ => "Response time p99",
    };
    let Some((distribution, found)) = main else {
        return Tile {
            name,
            value: "–".to_owned(),
            note: "not measured".to_owned(),
            ..Tile::default()
        };
    };
    let (p50, max) = (found.figure_text("p50"), found.figure_text("max"));
    let reason = found.why("p99");
    let is_void = latencies::is_void(result, distribution);
    Tile {
        name,
        value: found.figure_text("p99"),
        note: format!("p50 {p50} · max {max}"),
        more: found
            .bound_text("p99")
            .map_or_else(String::new, |bound| format!("generator {bound}")),
        void: is_void,
        why: match reason {
            Some(reason) => reason,
            None if is_void => "the generator may have made too much of it".to_owned(),
            None => String::new(),
        },
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
        ..Tile::default()
    }
}

/// CPU of the broker and of its whole machine.
fn cpu_tile(result: &RunResult) -> Tile {
    let of = |name: &str, text: String| result.validity.unless_withheld(name, text);
    let each = |cost: f64| format!("{}µs", units::figure(cost));
    broker_tile(result, "Broker CPU", |usage| {
        let most = of("broker.cores.max", units::figure(usage.cores_max));
        let cost = usage.cpu_us_per_message.map(|cost| {
            let cost = of("broker.cpu_per_message", each(cost));
            format!(" · {cost}/message")
        });
        let whole = usage.machine.cpu_us_per_message.map(|cost| {
            let cost = of("machine.cpu_per_message", each(cost));
            format!("whole machine {cost}/message · ")
        });
        let stolen = units::percent(usage.machine.stolen);
        let why = result.validity.reasons_withheld(&[
            "broker.cores",
            "broker.cores.max",
            "broker.cpu_per_message",
            "machine.cpu_per_message",
        ]);
        Tile {
            value: of(
                "broker.cores",
                format!("{} cores", units::figure(usage.cores_avg)),
            ),
            note: format!("busiest second {most}{}", cost.unwrap_or_default()),
            more: format!("{}{stolen} stolen by its host", whole.unwrap_or_default()),
            void: why.is_some(),
            why: why.unwrap_or_default(),
            ..Tile::default()
        }
    })
}

fn broker_tile(result: &RunResult, name: &'static str, tile: impl Fn(&Usage) -> Tile) -> Tile {
    let Some(usage) = first_broker(result) else {
        return Tile {
            name,
            value: "–".to_owned(),
            note: "the broker could not be watched".to_owned(),
            ..Tile::default()
        };
    };
    let mut tile = tile(usage);
    tile.name = name;
    if result.brokers.len() > 1 {
        tile.note = format!("first of {} brokers · {}", result.brokers.len(), tile.note);
    }
    tile
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
        measured: match threshold.measured {
            Some(measured) => value_text(measured, unit),
            None => brief(&threshold.measured_text(), NAME_MAX),
        },
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
