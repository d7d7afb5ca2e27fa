//! The seconds of the last 15 minutes, in a fixed number of bytes.

use std::time::Duration;

use thrum_engine::stages::StageSeries;

use super::pulse::{Pulse, RATES};
use crate::sys_topics::DROPS;

/// Seconds that are kept: what a page shows when it opens.
pub const HISTORY_SECONDS: usize = 15 * 60;

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveUnit {
    /// A number of things.
    Count,
    /// Things a second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// Milliseconds.
    Millis,
    /// Percent of one core.
    Percent,
}

impl LiveUnit {
    /// Its name in the interface.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::PerSecond => "per second",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes per second",
            Self::Millis => "ms",
            Self::Percent => "percent of one core",
        }
    }
}

/// A figure of each second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveFigure {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: LiveUnit,
}

const fn figure(name: &'static str, unit: LiveUnit) -> LiveFigure {
    LiveFigure { name, unit }
}

/// The figures, by their places in [`LiveSecond::values`].
pub const LIVE_FIGURES: [LiveFigure; 41] = [
    figure("clients", LiveUnit::Count),
    figure("sessions", LiveUnit::Count),
    figure("subscriptions", LiveUnit::Count),
    figure("retained", LiveUnit::Count),
    figure("messages_in", LiveUnit::PerSecond),
    figure("messages_out", LiveUnit::PerSecond),
    figure("bytes_in", LiveUnit::BytesPerSecond),
    figure("bytes_out", LiveUnit::BytesPerSecond),
    figure("connects", LiveUnit::PerSecond),
    figure("disconnects", LiveUnit::PerSecond),
    figure("refused", LiveUnit::PerSecond),
    figure("drops", LiveUnit::PerSecond),
    figure("drops_queue_full", LiveUnit::PerSecond),
    figure("drops_queue_oldest", LiveUnit::PerSecond),
    figure("drops_queue_age", LiveUnit::PerSecond),
    figure("drops_offline", LiveUnit::PerSecond),
    figure("drops_slow_consumer", LiveUnit::PerSecond),
    figure("drops_too_large", LiveUnit::PerSecond),
    figure("drops_expired", LiveUnit::PerSecond),
    figure("drops_outside_mount", LiveUnit::PerSecond),
    figure("drops_not_allowed", LiveUnit::PerSecond),
    figure("drops_memory_short", LiveUnit::PerSecond),
    figure("drops_no_shared_member", LiveUnit::PerSecond),
    figure("drops_retained_refused", LiveUnit::PerSecond),
    figure("publishes_refused", LiveUnit::PerSecond),
    figure("delivery_p50_ms", LiveUnit::Millis),
    figure("delivery_p99_ms", LiveUnit::Millis),
    figure("cpu_percent", LiveUnit::Percent),
    figure("memory_bytes", LiveUnit::Bytes),
    figure("deliveries_to_100us", LiveUnit::PerSecond),
    figure("deliveries_to_200us", LiveUnit::PerSecond),
    figure("deliveries_to_500us", LiveUnit::PerSecond),
    figure("deliveries_to_1ms", LiveUnit::PerSecond),
    figure("deliveries_to_2ms", LiveUnit::PerSecond),
    figure("deliveries_to_5ms", LiveUnit::PerSecond),
    figure("deliveries_to_10ms", LiveUnit::PerSecond),
    figure("deliveries_to_20ms", LiveUnit::PerSecond),
    figure("deliveries_to_50ms", LiveUnit::PerSecond),
    figure("deliveries_to_100ms", LiveUnit::PerSecond),
    figure("deliveries_to_1s", LiveUnit::PerSecond),
    figure("deliveries_longer", LiveUnit::PerSecond),
];

/// The longest times of the ranges of `deliveries_to_…`, in nanoseconds; each range begins where
/// the one before it ends, and `deliveries_longer` has the rest.
const DELIVERY_RANGES_NS: [u64; 11] = [
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    1_000_000_000,
];

const FIGURES: usize = LIVE_FIGURES.len();

const _: () = assert!(
    FIGURES == 4 + RATES.len() + 1 + DROPS.len() + 1 + 4 + DELIVERY_RANGES_NS.len() + 1,
    "a figure for each of them"
);

/// The figures of one second, or of the time between two pulses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveSecond {
    /// Its end, in milliseconds of the Unix epoch.
    pub at: u64,
    /// By [`LIVE_FIGURES`]; not a number if it is not known.
    pub values: [f32; FIGURES],
}

/// Bytes of the history at most.
const HISTORY_BYTES_MAX: usize = 160 * 1024;

const _: () = assert!(HISTORY_SECONDS * size_of::<LiveSecond>() <= HISTORY_BYTES_MAX);

impl Pulse {
    /// The figures of the time since an earlier pulse.
    pub fn since(&self, earlier: &Self) -> LiveSecond {
        let span = self.uptime.saturating_sub(earlier.uptime).as_secs_f64();
        let rate = |now: u64, before: u64| {
            let more = as_real(now.saturating_sub(before));
            if span > 0.0 { more / span } else { f64::NAN }
        };
        let gauges = [
            self.clients,
            self.sessions,
            self.subscriptions,
            self.retained,
        ];
        let rates = self.rates.iter().zip(&earlier.rates);
        let drops = self.drops.iter().zip(&earlier.drops);
        let deliveries = self.deliveries.as_ref().zip(earlier.deliveries.as_ref());
        let deliveries = deliveries.map(|(now, before)| now.since(before));
        let (p50, p99) = delivery_millis(deliveries.as_ref());
        let ranges = deliveries.as_ref().map(counts_by_range);
        let cpu = match (self.cpu_millis, earlier.cpu_millis) {
            (Some(now), Some(before)) => rate(now, before) / 10.0,
            _ => f64::NAN,
        };
        let all = gauges
            .into_iter()
            .map(as_real)
            .chain(rates.map(|(now, before)| rate(*now, *before)))
            .chain([rate(self.dropped, earlier.dropped)])
            .chain(drops.map(|(now, before)| rate(*now, *before)))
            .chain([rate(self.publishes_refused, earlier.publishes_refused)])
            .chain([p50, p99, cpu, self.memory_bytes.map_or(f64::NAN, as_real)])
            .chain(ranges.into_iter().flatten().map(|count| rate(count, 0)));
        let mut values = [f32::NAN; FIGURES];
        for (place, value) in values.iter_mut().zip(all) {
            *place = narrow(value);
        }
        LiveSecond {
            at: self.at,
            values,
        }
    }
}

/// The times within which 50 and 99 of 100 stamped messages were delivered.
fn delivery_millis(deliveries: Option<&StageSeries>) -> (f64, f64) {
    let Some(series) = deliveries.filter(|series| series.count() > 0) else {
        return (f64::NAN, f64::NAN);
    };
    let millis = |permille| as_real(series.quantile_ns(permille)) / 1e6;
    (millis(500), millis(990))
}

/// How many stamped messages were delivered within each of the [`DELIVERY_RANGES_NS`], and later.
fn counts_by_range(deliveries: &StageSeries) -> [u64; DELIVERY_RANGES_NS.len() + 1] {
    let mut counts = [0; DELIVERY_RANGES_NS.len() + 1];
    for (ns, count) in deliveries.cells() {
        counts[DELIVERY_RANGES_NS.partition_point(|most| *most < ns)] += count;
    }
    counts
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a second need no more than 15 digits"
)]
fn as_real(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "seven digits are more than anybody reads"
)]
fn narrow(value: f64) -> f32 {
    value as f32
}

/// The seconds so far; the newest takes the place of the oldest.
#[derive(Debug, Default)]
pub(crate) struct History {
    seconds: Vec<LiveSecond>,
    /// Where the next one goes, once all places are taken.
    next: usize,
    last: Option<Pulse>,
}

impl History {
    /// A gap is longer than this: nobody entered seconds meanwhile.
    const GAP: Duration = Duration::from_secs(5);

    /// Enters the time since the last pulse, unless that is long ago.
    pub(super) fn enter(&mut self, pulse: Pulse) {
        let before = self.last.as_ref();
        let before = before.filter(|last| pulse.uptime.saturating_sub(last.uptime) < Self::GAP);
        if let Some(before) = before {
            let second = pulse.since(before);
            if self.seconds.len() < HISTORY_SECONDS {
                self.seconds
                    .reserve_exact(HISTORY_SECONDS - self.seconds.len());
                self.seconds.push(second);
            } else {
                self.seconds[self.next] = second;
                self.next = (self.next + 1) % HISTORY_SECONDS;
            }
        }
        self.last = Some(pulse);
    }

    /// See [`Queries::history`](crate::Queries::history).
    pub(super) fn since(&self, at: u64) -> Option<Vec<LiveSecond>> {
        self.last.as_ref()?;
        let (newer, older) = self.seconds.split_at(self.next);
        let all = older.iter().chain(newer);
        Some(all.filter(|second| second.at > at).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use thrum_engine::stages::{MessageStage, StageFigures};

    use super::*;

    fn pulse(secs: u64) -> Pulse {
        Pulse {
            at: 1_000_000 + secs * 1000,
            uptime: Duration::from_secs(secs),
            clients: 7,
            sessions: 9,
            subscriptions: 3,
            retained: 1,
            rates: [secs * 10; RATES.len()],
            drops: [secs * 2; DROPS.len()],
            dropped: secs * 5,
            publishes_refused: secs * 3,
            cpu_millis: Some(secs * 250),
            memory_bytes: Some(1 << 20),
            deliveries: None,
        }
    }

    fn value(second: &LiveSecond, name: &str) -> f32 {
        let place = LIVE_FIGURES.iter().position(|figure| figure.name == name);
        second.values[place.unwrap()]
    }

    #[track_caller]
    fn is(found: f32, expected: f32) {
        assert!((found - expected).abs() < 0.001, "{found} {expected}");
    }

    #[test]
    fn two_pulses_give_rates_and_gauges() {
        let second = pulse(14).since(&pulse(12));
        is(value(&second, "clients"), 7.0);
        is(value(&second, "messages_in"), 10.0);
        is(value(&second, "refused"), 10.0);
        is(value(&second, "drops"), 5.0);
        is(value(&second, "drops_queue_full"), 2.0);
        is(value(&second, "drops_retained_refused"), 2.0);
        is(value(&second, "publishes_refused"), 3.0);
        is(value(&second, "cpu_percent"), 25.0);
        is(value(&second, "memory_bytes"), 1_048_576.0);
        assert!(
            value(&second, "delivery_p99_ms").is_nan(),
            "nothing is stamped"
        );
        assert!(value(&pulse(3).since(&pulse(3)), "messages_in").is_nan());
    }

    #[test]
    fn the_names_of_the_ranges_say_where_they_end() {
        let names = LIVE_FIGURES.iter().map(|figure| figure.name);
        let ends = names.filter_map(|name| name.strip_prefix("deliveries_to_"));
        let said = DELIVERY_RANGES_NS.map(|ns| match ns {
            1_000_000_000.. => format!("{}s", ns / 1_000_000_000),
            1_000_000.. => format!("{}ms", ns / 1_000_000),
            _ => format!("{}us", ns / 1000),
        });
        assert_eq!(ends.collect::<Vec<_>>(), said);
    }

    #[test]
    fn every_delivery_is_in_the_range_of_its_time() {
        let all = StageFigures::full(3);
        let series = all.series(MessageStage::Broker);
        let mut later = pulse(14);
        later.deliveries = Some(series.clone());
        let mut earlier = pulse(12);
        earlier.deliveries = Some(StageSeries::default());
        let second = later.since(&earlier);
        let names = LIVE_FIGURES.iter().map(|figure| figure.name);
        let ranges: Vec<_> = names
            .filter(|name| name.starts_with("deliveries_"))
            .collect();
        assert_eq!(ranges.len(), DELIVERY_RANGES_NS.len() + 1);
        let sum: f32 = ranges.iter().map(|name| value(&second, name)).sum();
        is(sum, narrow(as_real(series.count()) / 2.0));
        let to_100us = series.cells().filter(|(ns, _)| *ns <= 100_000);
        let to_100us: u64 = to_100us.map(|(_, count)| count).sum();
        is(
            value(&second, "deliveries_to_100us"),
            narrow(as_real(to_100us) / 2.0),
        );
        assert!(value(&second, "deliveries_longer") > 0.0);
        assert!(
            value(&pulse(14).since(&pulse(12)), "deliveries_longer").is_nan(),
            "nothing is stamped"
        );
    }

    #[test]
    fn the_figures_of_drops_have_the_names_of_their_reasons() {
        let names = LIVE_FIGURES.iter().map(|figure| figure.name);
        let reasons = names.filter_map(|name| name.strip_prefix("drops_"));
        let reasons: Vec<_> = reasons.collect();
        assert_eq!(reasons, DROPS.map(|(reason, _)| reason));
    }

    #[test]
    fn the_newest_second_takes_the_place_of_the_oldest() {
        let mut history = History::default();
        assert!(history.since(0).is_none(), "nobody enters any");
        for secs in 0..=HISTORY_SECONDS as u64 + 10 {
            history.enter(pulse(secs));
        }
        let all = history.since(0).unwrap();
        assert_eq!(all.len(), HISTORY_SECONDS);
        assert!(all.windows(2).all(|two| two[0].at + 1000 == two[1].at));
        assert_eq!(
            all.last().unwrap().at,
            pulse(HISTORY_SECONDS as u64 + 10).at
        );
        assert_eq!(history.since(all[897].at).unwrap().len(), 2);
        assert_eq!(history.seconds.capacity(), HISTORY_SECONDS);
    }

    #[test]
    fn a_pause_is_no_second() {
        let mut history = History::default();
        for secs in [1, 2, 100, 101] {
            history.enter(pulse(secs));
        }
        assert_eq!(history.since(0).unwrap().len(), 2);
    }
}
