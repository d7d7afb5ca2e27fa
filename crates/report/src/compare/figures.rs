//! The compared figures: their order, their least practical differences, and which of them may
//! raise an alarm.

use crate::metric;
use crate::result::{RunResult, VALUES_MIN};
use thrum_figures::fraction;

/// The compared figures, in the order of their display: latency and CPU first. The highest value
/// of a distribution is one value and is not compared.
pub(super) const COMPARED: [&str; 36] = [
    "e2e.p50",
    "e2e.p90",
    "e2e.p99",
    "e2e.p99.9",
    "publish_ack.p50",
    "publish_ack.p90",
    "publish_ack.p99",
    "connect.p50",
    "connect.p90",
    "connect.p99",
    "broker.cpu_per_message",
    "rate.received",
    "broker.rss",
    "delivered",
    "lost",
    "duplicated",
    "reordered",
    "misdelivered",
    "wrong_qos",
    "wrong_topic",
    "wrong_retain",
    "wrong_payload",
    "refused",
    "connect.errors",
    "connections.lost",
    "errors",
    "rate.sent",
    "service.p50",
    "service.p99",
    "connect.rate",
    "subscribe.p99",
    "reconnect.p99",
    "held_back",
    "broker.cores",
    "broker.bytes_per_connection",
    "broker.context_switches",
];

/// Broken promises: one that A kept in every run and B broke is a fact, not a difference.
pub(super) const FAILURES: [&str; 12] = [
    "delivered",
    "lost",
    "duplicated",
    "reordered",
    "misdelivered",
    "wrong_qos",
    "wrong_topic",
    "wrong_retain",
    "wrong_payload",
    "refused",
    "connect.errors",
    "connections.lost",
];

/// Figures that are tested together and may raise an alarm: of each line the first figure that
/// every run has. If every compared figure counted, none would be shown with few runs.
pub(super) const GATES: [&[&str]; 5] = [
    &[
        "e2e.p99",
        "e2e.p90",
        "e2e.p50",
        "publish_ack.p99",
        "publish_ack.p90",
        "publish_ack.p50",
    ],
    &["connect.p99", "connect.p90", "connect.p50"],
    &["broker.cpu_per_message"],
    &["rate.received"],
    &["broker.rss"],
];

/// Figures that vary alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A time.
    Latency,
    /// CPU, and what follows from it.
    Cpu,
    /// Memory.
    Memory,
    /// A rate, or a share of deliveries.
    Rate,
    /// A number of events.
    Count,
}

impl Kind {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "broker.cpu_per_message" | "broker.cores" => Self::Cpu,
            "broker.rss" | "broker.bytes_per_connection" => Self::Memory,
            "rate.sent" | "rate.received" | "connect.rate" | "delivered" => Self::Rate,
            _ => match metric::find(name).map(|metric| metric.unit) {
                Some(metric::Unit::Nanoseconds | metric::Unit::Seconds) => Self::Latency,
                _ => Self::Count,
            },
        }
    }

    /// Least practical difference, as a part of the lower figure: a smaller one is none, however
    /// sure it is.
    pub(super) const fn least(self) -> f64 {
        match self {
            Self::Latency | Self::Memory | Self::Count => 0.10,
            Self::Cpu => 0.05,
            Self::Rate => 0.02,
        }
    }

    /// What two runs of the same thing may differ by, as a part of the lower figure, where too few
    /// runs show it. Measured on two shared cores: the p99 of equal runs has a standard deviation
    /// of 15 to 30 %, the CPU per message of up to 12 %, memory of 3 %.
    pub(super) const fn between_runs(self) -> f64 {
        match self {
            Self::Latency | Self::Count => 1.0,
            Self::Cpu => 0.3,
            Self::Memory => 0.2,
            Self::Rate => 0.1,
        }
    }
}

/// How much of a figure of a run may be the generator's, in nanoseconds; none if it is not known.
pub(super) fn error_ns(run: &RunResult, metric: &str) -> Option<f64> {
    let (distribution, figure) = metric.split_once('.')?;
    let bound = run.latency_ns.find(distribution)?.bound_of(figure)?;
    Some(fraction(bound))
}

/// Whether enough values stand behind a figure of a run; true for figures that are no quantiles.
pub(super) fn is_supported(run: &RunResult, metric: &str) -> bool {
    let Some((distribution, figure)) = metric.split_once('.') else {
        return true;
    };
    let Some(distribution) = run.latency_ns.find(distribution) else {
        return true;
    };
    distribution.quantiles.count >= VALUES_MIN && distribution.has_enough_values(figure)
}

/// Whether a run broke the promise that a figure of failures counts: losses and duplicates are
/// promised at some qualities of service alone, which its verdict knows.
pub(super) fn is_broken(run: &RunResult, metric: &str) -> bool {
    let fault = match metric {
        "delivered" | "lost" => "messages lost",
        "duplicated" => "messages delivered again",
        _ => {
            let value = run.metrics.get(metric);
            return value.is_some_and(|value| !is_clean(metric, *value));
        }
    };
    let faults = &run.verdict.faults;
    faults.iter().any(|text| text.starts_with(fault))
}

/// Value of a figure of failures that is no failure.
pub(super) fn is_clean(metric: &str, value: f64) -> bool {
    if metric == "delivered" {
        value >= 1.0
    } else {
        value <= 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Distribution;
    use crate::sample;

    #[test]
    fn a_percentile_needs_a_hundred_values_and_ten_beyond_it() {
        let is_supported = |count: u64, metric: &str| {
            let mut run = sample::run();
            let mut e2e = Distribution::default();
            e2e.quantiles.count = count;
            run.latency_ns.e2e = Some(e2e);
            is_supported(&run, metric)
        };
        for (count, metric, expected) in [
            (150, "e2e.p50", true),
            (99, "e2e.p50", false),
            (100, "e2e.p90", true),
            (800, "e2e.p99", false),
            (1_000, "e2e.p99", true),
            (800, "e2e.p99.9", false),
            (10_000, "e2e.p99.9", true),
            (0, "broker.rss", true),
            (0, "lost", true),
        ] {
            assert_eq!(is_supported(count, metric), expected, "{metric} of {count}");
        }
    }

    #[test]
    fn every_compared_figure_is_known() {
        for name in COMPARED {
            assert!(metric::find(name).is_some(), "{name}");
        }
        let gates = GATES.into_iter().flatten();
        for name in gates.chain(&FAILURES) {
            assert!(COMPARED.contains(name), "{name}");
        }
    }
}
