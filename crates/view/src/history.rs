//! The seconds of a run as points of a chart: the latest ones exact, all of them thinned out.

use thrum_figures::fraction;
use thrum_report::result::{Quantiles, Second};

/// Seconds that are kept one by one: the longest exact time scale.
pub(crate) const RECENT_MAX: usize = 300;

/// Points that the whole run is thinned out to; more than a wide terminal has dots.
const OVERVIEW_MAX: usize = 600;

/// The displayed latency: the most informative one available.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Timing {
    EndToEnd,
    Acknowledgement,
    #[default]
    Connect,
}

impl Timing {
    pub(crate) fn of_run(series: &[Second]) -> Self {
        let has = |of: fn(&Second) -> bool| series.iter().rev().any(of);
        if has(|second| second.e2e.is_some()) {
            Self::EndToEnd
        } else if has(|second| second.publish_ack.is_some()) {
            Self::Acknowledgement
        } else {
            Self::Connect
        }
    }

    /// As text, for a title.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::EndToEnd => "end-to-end latency",
            Self::Acknowledgement => "time to acknowledgement",
            Self::Connect => "connect latency",
        }
    }

    const fn of_second(self, second: &Second) -> Option<Quantiles> {
        match self {
            Self::EndToEnd => second.e2e,
            Self::Acknowledgement => second.publish_ack,
            Self::Connect => second.connect,
        }
    }
}

/// The seconds of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) timing: Timing,
    /// Whether a message was due so far.
    pub(crate) has_messages: bool,
    /// The latest ones, at most [`RECENT_MAX`].
    pub(crate) recent: Vec<Point>,
    /// The whole run, at most [`OVERVIEW_MAX`] points of equally many seconds.
    pub(crate) overview: Vec<Point>,
}

/// One second, or a few of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// Seconds from the first connection to its beginning.
    pub(crate) at: f64,
    /// Its length in seconds.
    pub(crate) span: f64,
    /// Clients connected at its end.
    pub(crate) up: u64,
    /// Clients that got ready per second.
    pub(crate) connected: f64,
    /// Messages per second.
    pub(crate) offered: f64,
    pub(crate) sent: f64,
    pub(crate) received: f64,
    /// In nanoseconds, the worst second counts; none if nothing was measured.
    pub(crate) latency: Option<Latency>,
    /// Cores that the broker used, mean.
    pub(crate) broker_cores: f64,
}

/// The quantiles that are drawn, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Latency {
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) p99_9: u64,
}

impl History {
    pub(crate) fn new(series: &[Second]) -> Self {
        let recent = series.get(series.len().saturating_sub(RECENT_MAX)..);
        let timing = Timing::of_run(series);
        let seconds_per_point = series.len().div_ceil(OVERVIEW_MAX).max(1);
        let merge = |seconds: &[Second]| merged(seconds, timing);
        let is_message = |second: &Second| second.offered + second.sent + second.received > 0;
        Self {
            timing,
            has_messages: series.iter().any(is_message),
            recent: recent.unwrap_or_default().chunks(1).map(merge).collect(),
            overview: series.chunks(seconds_per_point).map(merge).collect(),
        }
    }

    /// The last second.
    pub(crate) fn last(&self) -> Option<&Point> {
        self.recent.last()
    }
}

fn merged(seconds: &[Second], timing: Timing) -> Point {
    let span: f64 = seconds.iter().map(|second| second.span).sum();
    let per_second = |of: fn(&Second) -> u64| {
        let total: u64 = seconds.iter().map(of).sum();
        if span > 0.0 {
            fraction(total) / span
        } else {
            0.0
        }
    };
    let cores = seconds.iter().filter_map(|second| second.broker);
    let cores = cores.map(|broker| broker.cores_user + broker.cores_system);
    Point {
        at: seconds.first().map_or(0.0, |second| second.at),
        span,
        up: seconds.last().map_or(0, |second| second.up),
        connected: per_second(|second| second.connected),
        offered: per_second(|second| second.offered),
        sent: per_second(|second| second.sent),
        received: per_second(|second| second.received),
        latency: worst(seconds, timing),
        broker_cores: cores.sum::<f64>() / fraction(seconds.len().max(1) as u64),
    }
}

/// Quantiles of several seconds cannot be averaged, so the worst second stands for all.
fn worst(seconds: &[Second], timing: Timing) -> Option<Latency> {
    let measured = seconds.iter().filter_map(|second| timing.of_second(second));
    measured
        .map(|found| Latency {
            p50: found.p50,
            p99: found.p99,
            p99_9: found.p99_9,
        })
        .reduce(|one, other| Latency {
            p50: one.p50.max(other.p50),
            p99: one.p99.max(other.p99),
            p99_9: one.p99_9.max(other.p99_9),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_long_run_is_thinned_out_and_its_end_stays_exact() {
        let history = History::new(&sample::series(86_400));
        assert_eq!(history.recent.len(), RECENT_MAX);
        assert_eq!(history.overview.len(), OVERVIEW_MAX);
        let last = history.last().copied().unwrap_or_default();
        assert!((last.at - 86_399.0).abs() < 1e-9);
        assert!((last.span - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_rate_is_per_second_whatever_the_length() {
        let second = |span| Second {
            span,
            sent: 500,
            ..Second::default()
        };
        let rate = |seconds: &[Second]| merged(seconds, Timing::Connect).sent;
        assert!((rate(&[second(0.5)]) - 1000.0).abs() < 1e-9);
        assert!((rate(&[second(0.5), second(1.5)]) - 500.0).abs() < 1e-9);
        assert!(rate(&[second(0.0)]).abs() < 1e-9);
    }

    #[test]
    fn merged_latencies_are_those_of_the_worst_second() {
        let with = |p99| Second {
            span: 1.0,
            e2e: Some(Quantiles {
                p99,
                ..Quantiles::default()
            }),
            ..Second::default()
        };
        let merge = |seconds: &[Second]| merged(seconds, Timing::EndToEnd).latency;
        let worst = merge(&[with(5), Second::default(), with(3)]);
        assert_eq!(worst.map(|found| found.p99), Some(5));
        assert_eq!(merge(&[Second::default()]), None);
    }

    #[test]
    fn the_connect_time_is_shown_until_messages_arrive() {
        let connect = Second {
            connect: Some(Quantiles::default()),
            ..Second::default()
        };
        let e2e = Second {
            e2e: Some(Quantiles::default()),
            ..Second::default()
        };
        assert_eq!(
            Timing::of_run(std::slice::from_ref(&connect)),
            Timing::Connect
        );
        assert_eq!(Timing::of_run(&[connect, e2e]), Timing::EndToEnd);
    }
}
