//! The names of all figures: one list for thresholds, comparisons, reports and `result.json`.

use thrum_figures as units;

/// Whether a higher or a lower figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Lower.
    Lower,
    /// Higher.
    Higher,
    /// Neither: it describes the run.
    Neither,
}

/// The unit that a figure is kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Seconds.
    Seconds,
    /// Per second.
    PerSecond,
    /// A number.
    Count,
    /// A part of 1.
    Share,
    /// Bytes.
    Bytes,
    /// CPU cores.
    Cores,
    /// CPU microseconds.
    Microseconds,
}

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name: `e2e.p99`.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// The better direction.
    pub better: Better,
    /// Its meaning, in one line.
    pub help: &'static str,
}

/// Distributions that have the figures `count min mean p50 p75 p90 p95 p99 p99.9 p99.99 max`.
pub const DISTRIBUTIONS: [&str; 10] = [
    "e2e",
    "service",
    "publish_ack",
    "publish_response",
    "connect",
    "subscribe",
    "reconnect",
    "generator_lag",
    "receive_lag",
    "open_lag",
];

const fn metric(name: &'static str, unit: Unit, better: Better, help: &'static str) -> Metric {
    Metric {
        name,
        unit,
        better,
        help,
    }
}

/// All figures except those of the distributions.
pub const METRICS: [Metric; 42] = [
    metric(
        "rate.offered",
        Unit::PerSecond,
        Better::Neither,
        "messages due per second of the hold",
    ),
    metric(
        "rate.sent",
        Unit::PerSecond,
        Better::Higher,
        "messages sent per second of the hold",
    ),
    metric(
        "rate.received",
        Unit::PerSecond,
        Better::Higher,
        "messages received per second of the hold",
    ),
    metric(
        "held_back",
        Unit::Count,
        Better::Lower,
        "messages that the broker did not take when they were due",
    ),
    metric(
        "delivered",
        Unit::Share,
        Better::Higher,
        "deliveries that happened, of those promised",
    ),
    metric(
        "lost",
        Unit::Count,
        Better::Lower,
        "deliveries that were promised and did not happen",
    ),
    metric(
        "excused",
        Unit::Count,
        Better::Lower,
        "deliveries that did not happen and were not promised",
    ),
    metric(
        "duplicated",
        Unit::Count,
        Better::Lower,
        "deliveries that happened again",
    ),
    metric(
        "reordered",
        Unit::Count,
        Better::Lower,
        "messages that arrived after a later one of their publisher",
    ),
    metric(
        "misdelivered",
        Unit::Count,
        Better::Lower,
        "messages to a subscriber that did not ask for them",
    ),
    metric(
        "wrong_qos",
        Unit::Count,
        Better::Lower,
        "messages with another QoS than the lower one of publisher and subscription",
    ),
    metric(
        "wrong_topic",
        Unit::Count,
        Better::Lower,
        "messages on another topic than they were published to",
    ),
    metric(
        "wrong_retain",
        Unit::Count,
        Better::Lower,
        "messages with the retain flag that were published without it",
    ),
    metric(
        "wrong_payload",
        Unit::Count,
        Better::Lower,
        "messages with another payload than they were published with",
    ),
    metric(
        "refused",
        Unit::Count,
        Better::Lower,
        "messages that the broker refused",
    ),
    metric(
        "clients.ready",
        Unit::Count,
        Better::Higher,
        "clients connected and subscribed",
    ),
    metric(
        "connect.errors",
        Unit::Count,
        Better::Lower,
        "clients that were not accepted",
    ),
    metric(
        "connect.rate",
        Unit::PerSecond,
        Better::Higher,
        "clients that got ready per second of the ramp",
    ),
    metric(
        "connections.lost",
        Unit::Count,
        Better::Lower,
        "connections lost that the scenario did not cut",
    ),
    metric(
        "connections.reconnected",
        Unit::Count,
        Better::Higher,
        "connections that were restored",
    ),
    metric(
        "errors",
        Unit::Count,
        Better::Lower,
        "errors of all reasons",
    ),
    metric(
        "broker.cores",
        Unit::Cores,
        Better::Lower,
        "cores in use by the broker, mean of the hold",
    ),
    metric(
        "broker.cores.max",
        Unit::Cores,
        Better::Lower,
        "cores in use by the broker in the busiest second",
    ),
    metric(
        "broker.cores.idle",
        Unit::Cores,
        Better::Lower,
        "cores in use by the broker with all clients and no load",
    ),
    metric(
        "broker.cpu",
        Unit::Share,
        Better::Lower,
        "CPU of the whole machine in use by the broker, mean",
    ),
    metric(
        "broker.cpu.max",
        Unit::Share,
        Better::Lower,
        "the same in the busiest second",
    ),
    metric(
        "broker.cpu_per_message",
        Unit::Microseconds,
        Better::Lower,
        "CPU time of the broker per message received",
    ),
    metric(
        "machine.cpu_per_message",
        Unit::Microseconds,
        Better::Lower,
        "CPU time of the broker's whole machine per message received",
    ),
    metric(
        "machine.stolen",
        Unit::Share,
        Better::Neither,
        "CPU of the broker's machine that its host kept, mean of the hold",
    ),
    metric(
        "broker.messages_per_core",
        Unit::PerSecond,
        Better::Higher,
        "messages in and out per second and core of the broker",
    ),
    metric(
        "broker.rss",
        Unit::Bytes,
        Better::Lower,
        "resident memory of the broker: highest of the hold",
    ),
    metric(
        "broker.rss.avg",
        Unit::Bytes,
        Better::Lower,
        "resident memory of the broker: mean of the hold",
    ),
    metric(
        "broker.rss.stable",
        Unit::Seconds,
        Better::Lower,
        "time until the broker's memory no longer changed by 1 %",
    ),
    metric(
        "broker.bytes_per_connection",
        Unit::Bytes,
        Better::Lower,
        "resident memory that one connection added",
    ),
    metric(
        "machine.kernel_bytes_per_connection",
        Unit::Bytes,
        Better::Lower,
        "kernel memory that one connection added on the broker's machine",
    ),
    metric(
        "broker.threads",
        Unit::Count,
        Better::Neither,
        "threads of the broker, most",
    ),
    metric(
        "broker.open_files",
        Unit::Count,
        Better::Neither,
        "open files of the broker, most",
    ),
    metric(
        "broker.context_switches",
        Unit::PerSecond,
        Better::Lower,
        "context switches of the broker per second",
    ),
    metric(
        "generator.cores",
        Unit::Cores,
        Better::Neither,
        "cores in use by the generator, mean",
    ),
    metric(
        "generator.busiest_thread",
        Unit::Share,
        Better::Neither,
        "share of the hold that its busiest thread was on a core",
    ),
    metric(
        "generator.cpu_per_message",
        Unit::Microseconds,
        Better::Neither,
        "CPU time of the generator per message received",
    ),
    metric(
        "generator.bytes_per_connection",
        Unit::Bytes,
        Better::Neither,
        "resident memory of the generator per connection",
    ),
];

/// Finds a figure by its name, those of the distributions included.
pub fn find(name: &str) -> Option<Metric> {
    let known = METRICS.iter().find(|metric| metric.name == name);
    known.copied().or_else(|| of_distribution(name))
}

fn of_distribution(name: &str) -> Option<Metric> {
    let (distribution, figure) = name.split_once('.')?;
    let &distribution = DISTRIBUTIONS.iter().find(|known| **known == distribution)?;
    let unit = match figure {
        "count" => Unit::Count,
        "min" | "mean" | "p50" | "p75" | "p90" | "p95" | "p99" | "p99.9" | "p99.99" | "max" => {
            Unit::Nanoseconds
        }
        _ => return None,
    };
    let better = match (unit, distribution) {
        (Unit::Count, _) | (_, "generator_lag" | "receive_lag" | "open_lag") => Better::Neither,
        _ => Better::Lower,
    };
    let (name, help) = DISTRIBUTION_NAMES
        .iter()
        .find(|(known, _)| *known == name)
        .copied()?;
    Some(Metric {
        name,
        unit,
        better,
        help,
    })
}

macro_rules! figures_of {
    ($($distribution:literal: $help:literal,)*) => {
        [$(
            (concat!($distribution, ".count"), $help),
            (concat!($distribution, ".min"), $help),
            (concat!($distribution, ".mean"), $help),
            (concat!($distribution, ".p50"), $help),
            (concat!($distribution, ".p75"), $help),
            (concat!($distribution, ".p90"), $help),
            (concat!($distribution, ".p95"), $help),
            (concat!($distribution, ".p99"), $help),
            (concat!($distribution, ".p99.9"), $help),
            (concat!($distribution, ".p99.99"), $help),
            (concat!($distribution, ".max"), $help),
        )*]
    };
}

/// The figures of the distributions and what they are.
const DISTRIBUTION_NAMES: [(&str, &str); 110] = figures_of! {
    "e2e": "response time, from the intended send to the arrival",
    "service": "service time, from the actual send to the arrival",
    "publish_ack": "time from the actual send to PUBACK or PUBCOMP",
    "publish_response": "time from the intended send to PUBACK or PUBCOMP",
    "connect": "time from the scheduled opening of the connection to CONNACK",
    "subscribe": "time from SUBSCRIBE to SUBACK",
    "reconnect": "time from the loss of a connection to being ready again",
    "generator_lag": "lag of the generator behind its schedule",
    "receive_lag": "upper bound of the time that the generator left a message unread",
    "open_lag": "lag of the generator behind its schedule of connections",
};

/// Names of all figures, those of the distributions included.
pub fn names() -> impl Iterator<Item = &'static str> {
    let distributions = DISTRIBUTION_NAMES.iter().map(|(name, _)| *name);
    METRICS
        .iter()
        .map(|metric| metric.name)
        .chain(distributions)
}

/// A figure with its unit, as a person reads it: `3.9ms`, `1.1 GiB`, `99.998 %`.
pub fn format(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Nanoseconds => units::latency(units::whole(value)),
        Unit::Seconds => format!("{}s", units::figure(value)),
        Unit::PerSecond => units::rate(value),
        Unit::Count => units::count(units::whole(value)),
        Unit::Share => share(value),
        Unit::Bytes => units::bytes(value),
        Unit::Cores => format!("{} cores", units::figure(value)),
        Unit::Microseconds => format!("{}µs", units::figure(value)),
    }
}

/// A share in percent; a share below 1 never reads `100 %`.
fn share(value: f64) -> String {
    let percent = value * 100.0;
    if !(99.0..100.0).contains(&percent) {
        return units::percent(value);
    }
    let decimals = (1..9).find(|decimals| !format!("{percent:.decimals$}").starts_with("100"));
    format!("{percent:.*} %", decimals.unwrap_or(9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_distribution_has_its_figures() {
        for distribution in DISTRIBUTIONS {
            for figure in ["count", "mean", "p50", "p99.99", "max"] {
                assert!(find(&format!("{distribution}.{figure}")).is_some());
            }
        }
        assert_eq!(find("e2e.p42"), None);
        assert_eq!(
            find("e2e.p99").map(|metric| metric.unit),
            Some(Unit::Nanoseconds)
        );
        assert_eq!(
            find("lost").map(|metric| metric.better),
            Some(Better::Lower)
        );
    }

    #[test]
    fn every_unit_reads_well() {
        for (unit, value, text) in [
            (Unit::Nanoseconds, 3_900_000.0, "3.9ms"),
            (Unit::Seconds, 12.4, "12s"),
            (Unit::PerSecond, 49_998.0, "49 998/s"),
            (Unit::Count, 3.0, "3"),
            (Unit::Share, 1.0, "100 %"),
            (Unit::Share, 0.073, "7.3 %"),
            (Unit::Bytes, 1_181_116_006.0, "1.1 GiB"),
            (Unit::Cores, 4.1, "4.1 cores"),
            (Unit::Microseconds, 50.0, "50µs"),
        ] {
            assert_eq!(format(unit, value), text);
        }
    }

    #[test]
    fn a_share_that_is_not_all_never_reads_all() {
        assert_eq!(format(Unit::Share, 0.999_98), "99.998 %");
        assert_eq!(format(Unit::Share, 1.0 - 1e-7), "99.99999 %");
        assert_eq!(format(Unit::Share, 0.995), "99.5 %");
    }
}
