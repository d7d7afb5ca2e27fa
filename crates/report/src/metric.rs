//! The names of all figures: one list for thresholds, comparisons, reports and `result.json`.

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
    /// What is better.
    pub better: Better,
    /// What it is, in one line.
    pub help: &'static str,
}

/// Distributions that have the figures `count min mean p50 p75 p90 p95 p99 p99.9 p99.99 max`.
pub const DISTRIBUTIONS: [&str; 8] = [
    "e2e",
    "service",
    "publish_ack",
    "connect",
    "subscribe",
    "reconnect",
    "generator_lag",
    "receive_lag",
];

const fn metric(name: &'static str, unit: Unit, better: Better, help: &'static str) -> Metric {
    Metric {
        name,
        unit,
        better,
        help,
    }
}

/// All figures but those of the distributions.
pub const METRICS: [Metric; 35] = [
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
        "connections that came back",
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
        (Unit::Count, _) | (_, "generator_lag" | "receive_lag") => Better::Neither,
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

/// The figures of the distributions and what they are.
const DISTRIBUTION_NAMES: [(&str, &str); 88] = [
    (
        "e2e.count",
        "response time, from the intended send to the arrival",
    ),
    (
        "e2e.min",
        "response time, from the intended send to the arrival",
    ),
    (
        "e2e.mean",
        "response time, from the intended send to the arrival",
    ),
    (
        "e2e.p50",
        "response time, from the intended send to the arrival",
    ),
    (
        "e2e.p75",
        "response time, from the intended send to the arrival",
    ),
    (
        "e2e.p90",
        "response time, from the intended send to the arrival",
    ),
    (
        "e2e.p95",
        "response time, from the intended send to the arrival",
    ),
    (
        "e2e.p99",
        "response time, from the intended send to the arrival",
    ),
    (
        "e2e.p99.9",
        "response time, from the intended send to the arrival",
    ),
    (
        "e2e.p99.99",
        "response time, from the intended send to the arrival",
    ),
    (
        "e2e.max",
        "response time, from the intended send to the arrival",
    ),
    (
        "service.count",
        "service time, from the actual send to the arrival",
    ),
    (
        "service.min",
        "service time, from the actual send to the arrival",
    ),
    (
        "service.mean",
        "service time, from the actual send to the arrival",
    ),
    (
        "service.p50",
        "service time, from the actual send to the arrival",
    ),
    (
        "service.p75",
        "service time, from the actual send to the arrival",
    ),
    (
        "service.p90",
        "service time, from the actual send to the arrival",
    ),
    (
        "service.p95",
        "service time, from the actual send to the arrival",
    ),
    (
        "service.p99",
        "service time, from the actual send to the arrival",
    ),
    (
        "service.p99.9",
        "service time, from the actual send to the arrival",
    ),
    (
        "service.p99.99",
        "service time, from the actual send to the arrival",
    ),
    (
        "service.max",
        "service time, from the actual send to the arrival",
    ),
    ("publish_ack.count", "time to PUBACK or PUBCOMP"),
    ("publish_ack.min", "time to PUBACK or PUBCOMP"),
    ("publish_ack.mean", "time to PUBACK or PUBCOMP"),
    ("publish_ack.p50", "time to PUBACK or PUBCOMP"),
    ("publish_ack.p75", "time to PUBACK or PUBCOMP"),
    ("publish_ack.p90", "time to PUBACK or PUBCOMP"),
    ("publish_ack.p95", "time to PUBACK or PUBCOMP"),
    ("publish_ack.p99", "time to PUBACK or PUBCOMP"),
    ("publish_ack.p99.9", "time to PUBACK or PUBCOMP"),
    ("publish_ack.p99.99", "time to PUBACK or PUBCOMP"),
    ("publish_ack.max", "time to PUBACK or PUBCOMP"),
    (
        "connect.count",
        "time from opening the connection to CONNACK",
    ),
    ("connect.min", "time from opening the connection to CONNACK"),
    (
        "connect.mean",
        "time from opening the connection to CONNACK",
    ),
    ("connect.p50", "time from opening the connection to CONNACK"),
    ("connect.p75", "time from opening the connection to CONNACK"),
    ("connect.p90", "time from opening the connection to CONNACK"),
    ("connect.p95", "time from opening the connection to CONNACK"),
    ("connect.p99", "time from opening the connection to CONNACK"),
    (
        "connect.p99.9",
        "time from opening the connection to CONNACK",
    ),
    (
        "connect.p99.99",
        "time from opening the connection to CONNACK",
    ),
    ("connect.max", "time from opening the connection to CONNACK"),
    ("subscribe.count", "time from SUBSCRIBE to SUBACK"),
    ("subscribe.min", "time from SUBSCRIBE to SUBACK"),
    ("subscribe.mean", "time from SUBSCRIBE to SUBACK"),
    ("subscribe.p50", "time from SUBSCRIBE to SUBACK"),
    ("subscribe.p75", "time from SUBSCRIBE to SUBACK"),
    ("subscribe.p90", "time from SUBSCRIBE to SUBACK"),
    ("subscribe.p95", "time from SUBSCRIBE to SUBACK"),
    ("subscribe.p99", "time from SUBSCRIBE to SUBACK"),
    ("subscribe.p99.9", "time from SUBSCRIBE to SUBACK"),
    ("subscribe.p99.99", "time from SUBSCRIBE to SUBACK"),
    ("subscribe.max", "time from SUBSCRIBE to SUBACK"),
    (
        "reconnect.count",
        "time from the loss of a connection to being ready again",
    ),
    (
        "reconnect.min",
        "time from the loss of a connection to being ready again",
    ),
    (
        "reconnect.mean",
        "time from the loss of a connection to being ready again",
    ),
    (
        "reconnect.p50",
        "time from the loss of a connection to being ready again",
    ),
    (
        "reconnect.p75",
        "time from the loss of a connection to being ready again",
    ),
    (
        "reconnect.p90",
        "time from the loss of a connection to being ready again",
    ),
    (
        "reconnect.p95",
        "time from the loss of a connection to being ready again",
    ),
    (
        "reconnect.p99",
        "time from the loss of a connection to being ready again",
    ),
    (
        "reconnect.p99.9",
        "time from the loss of a connection to being ready again",
    ),
    (
        "reconnect.p99.99",
        "time from the loss of a connection to being ready again",
    ),
    (
        "reconnect.max",
        "time from the loss of a connection to being ready again",
    ),
    (
        "generator_lag.count",
        "lag of the generator behind its schedule",
    ),
    (
        "generator_lag.min",
        "lag of the generator behind its schedule",
    ),
    (
        "generator_lag.mean",
        "lag of the generator behind its schedule",
    ),
    (
        "generator_lag.p50",
        "lag of the generator behind its schedule",
    ),
    (
        "generator_lag.p75",
        "lag of the generator behind its schedule",
    ),
    (
        "generator_lag.p90",
        "lag of the generator behind its schedule",
    ),
    (
        "generator_lag.p95",
        "lag of the generator behind its schedule",
    ),
    (
        "generator_lag.p99",
        "lag of the generator behind its schedule",
    ),
    (
        "generator_lag.p99.9",
        "lag of the generator behind its schedule",
    ),
    (
        "generator_lag.p99.99",
        "lag of the generator behind its schedule",
    ),
    (
        "generator_lag.max",
        "lag of the generator behind its schedule",
    ),
    (
        "receive_lag.count",
        "upper bound of the time that the generator left a message unread",
    ),
    (
        "receive_lag.min",
        "upper bound of the time that the generator left a message unread",
    ),
    (
        "receive_lag.mean",
        "upper bound of the time that the generator left a message unread",
    ),
    (
        "receive_lag.p50",
        "upper bound of the time that the generator left a message unread",
    ),
    (
        "receive_lag.p75",
        "upper bound of the time that the generator left a message unread",
    ),
    (
        "receive_lag.p90",
        "upper bound of the time that the generator left a message unread",
    ),
    (
        "receive_lag.p95",
        "upper bound of the time that the generator left a message unread",
    ),
    (
        "receive_lag.p99",
        "upper bound of the time that the generator left a message unread",
    ),
    (
        "receive_lag.p99.9",
        "upper bound of the time that the generator left a message unread",
    ),
    (
        "receive_lag.p99.99",
        "upper bound of the time that the generator left a message unread",
    ),
    (
        "receive_lag.max",
        "upper bound of the time that the generator left a message unread",
    ),
];

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
}
