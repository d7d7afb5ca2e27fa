//! A part of a run, cut out afterwards.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::hlog::{self, HlogError};
use crate::result::{
    Delivery, Distribution, Latencies, Rates, Resources, RunResult, Second, Usage,
};
use thrum_figures::{figure, fraction, whole};

/// Start times in a log are rounded to milliseconds.
const ROUNDING_SECONDS: f64 = 0.0005;

/// Adds up the intervals of a log that begin in the window, by their tags. Intervals are not
/// divided.
///
/// # Errors
/// The log cannot be read, or has nothing in the window.
pub fn cut(
    log: &str,
    from_seconds: f64,
    to_seconds: f64,
) -> Result<BTreeMap<String, Histogram<u64>>, HlogError> {
    let is_inside =
        |at: f64| at >= from_seconds - ROUNDING_SECONDS && at < to_seconds - ROUNDING_SECONDS;
    let mut sums: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
    hlog::each(log, is_inside, |interval| {
        let Some(sum) = sums.get_mut(&interval.tag) else {
            sums.insert(interval.tag, interval.histogram);
            return Ok(());
        };
        sum.add(&interval.histogram)
            .map_err(|error| HlogError::Histogram {
                tag: interval.tag,
                start_seconds: interval.start_seconds,
                source: error.into(),
            })
    })?;
    if sums.is_empty() {
        return Err(HlogError::EmptyWindow {
            from_seconds,
            to_seconds,
        });
    }
    Ok(sums)
}

/// A latency within a window: its error is not known there, so what the whole run withholds stays
/// so.
fn part_of(run: &RunResult, tag: &str, histogram: &Histogram<u64>) -> Distribution {
    let mut part = Distribution::from_histogram(histogram).with_bound(None);
    let whole = run.latency_ns.find(tag);
    for (name, why) in whole.into_iter().flat_map(|whole| &whole.withheld) {
        part.withheld.entry(name.clone()).or_insert(*why);
    }
    part
}

/// The run as if the window had been its hold: latencies from the log, rates and resources of the
/// broker from the seconds that begin in the window. Clients, validity and verdict stay those of
/// the whole run; figures that are only known for the whole run (losses, resources of the
/// generator, thresholds) are omitted.
///
/// # Errors
/// The log cannot be read, or has nothing in the window.
pub fn run(
    run: &RunResult,
    log: &str,
    from_seconds: f64,
    to_seconds: f64,
) -> Result<RunResult, HlogError> {
    let mut part = run.clone();
    part.latency_ns = Latencies::default();
    for (tag, histogram) in cut(log, from_seconds, to_seconds)? {
        // Tags that are not ours are of other tools.
        let _is_known = part
            .latency_ns
            .set(&tag, Some(part_of(run, &tag, &histogram)));
    }
    let is_inside = |at: f64| at >= from_seconds && at < to_seconds;
    part.series.retain(|second| is_inside(second.at));
    part.marks.retain(|mark| is_inside(mark.at));
    part.scenario.name = format!(
        "{} [{}s-{}s]",
        run.scenario.name,
        figure(from_seconds),
        figure(to_seconds)
    );
    part.scenario.stages.hold = part.series.iter().map(|second| second.span).sum();
    part.rates = rates(&part.series);
    part.delivery = Delivery {
        sent_messages: part.series.iter().map(|second| second.sent).sum(),
        ..Delivery::default()
    };
    part.errors.clear();
    part.thresholds.clear();
    part.generator.usage = None;
    part.generator.threads.clear();
    part.brokers.truncate(1);
    for broker in &mut part.brokers {
        broker.usage = usage(&part.series);
    }
    part.fill_metrics();
    Ok(part)
}

fn rates(series: &[Second]) -> Rates {
    let seconds: f64 = series.iter().map(|second| second.span).sum();
    let of = |count: fn(&Second) -> u64| series.iter().map(count).sum::<u64>();
    let per_second = |messages| {
        if seconds > 0.0 {
            fraction(messages) / seconds
        } else {
            0.0
        }
    };
    Rates {
        offered: per_second(of(|second| second.offered)),
        sent: per_second(of(|second| second.sent)),
        received: per_second(of(|second| second.received)),
        held_back_messages: of(|second| second.held_back),
    }
}

/// A broker's use as far as its seconds show it.
fn usage(series: &[Second]) -> Usage {
    let seen = series
        .iter()
        .filter_map(|second| second.broker.map(|broker| (second, broker)));
    let seen: Vec<(&Second, Resources)> = seen.collect();
    let seconds: f64 = seen.iter().map(|(second, _)| second.span).sum();
    if seconds <= 0.0 {
        return Usage::default();
    }
    let integral = |of: fn(&Resources) -> f64| -> f64 {
        seen.iter()
            .map(|(second, broker)| of(broker) * second.span)
            .sum()
    };
    let most = |of: fn(&Resources) -> u64| seen.iter().map(|(_, broker)| of(broker)).max();
    let count = |of: fn(&Second) -> u64| -> f64 {
        fraction(seen.iter().map(|(second, _)| of(second)).sum())
    };
    let (user, system) = (integral(|of| of.cores_user), integral(|of| of.cores_system));
    let (busy, received) = (user + system, count(|second| second.received));
    let messages = received + count(|second| second.sent);
    let cores = seen
        .iter()
        .map(|(_, broker)| broker.cores_user + broker.cores_system);
    Usage {
        cpu_user_seconds: user,
        cpu_system_seconds: system,
        cores_avg: busy / seconds,
        cores_max: cores.fold(0.0, f64::max),
        cpu_us_per_message: (received > 0.0).then(|| busy * 1e6 / received),
        messages_per_core_second: (busy > 0.0).then(|| messages / busy),
        rss_max_bytes: most(|of| of.rss_bytes).unwrap_or(0),
        rss_avg_bytes: whole(integral(|of| fraction(of.rss_bytes)) / seconds),
        threads_max: most(|of| of.threads).unwrap_or(0),
        open_files_max: most(|of| of.open_files).unwrap_or(0),
        voluntary_context_switches: whole(integral(|of| of.context_switches)),
        network_in_bytes: integral(|of| of.network_in_bytes) / seconds,
        network_out_bytes: integral(|of| of.network_out_bytes) / seconds,
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    /// Ten seconds, in each a response time of as many milliseconds and one connection.
    fn log() -> String {
        let mut log = hlog::header(0.0);
        for second in 0..10_u32 {
            for (tag, value) in [("e2e", u64::from(second) * 1_000_000), ("connect", 5)] {
                let mut histogram = Histogram::new(3).unwrap();
                histogram.record(value).unwrap();
                log.push_str(&hlog::line(tag, f64::from(second), 1.0, &histogram));
            }
        }
        log
    }

    #[test]
    fn a_window_holds_the_intervals_that_begin_in_it() {
        let sums = cut(&log(), 3.0, 6.0).unwrap();
        assert_eq!(sums.keys().collect::<Vec<_>>(), ["connect", "e2e"]);
        let e2e = &sums["e2e"];
        assert_eq!(e2e.len(), 3);
        assert!(e2e.min() <= 3_000_000 && e2e.min() > 2_990_000);
        assert!(e2e.max() >= 5_000_000 && e2e.max() < 5_010_000);
    }

    #[test]
    fn a_window_of_nothing_is_an_error() {
        let error = cut(&log(), 10.0, 20.0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the log has no interval between 10 s and 20 s"
        );
    }

    #[test]
    fn a_part_of_a_run_has_its_own_figures() {
        let mut whole = sample::run();
        whole.series[5].received = 4_000;
        let part = run(&whole, &log(), 4.0, 6.0).unwrap();
        assert_eq!(part.scenario.name, "p2p-1K [4s-6s]");
        assert_eq!(part.series.len(), 2);
        assert!((part.metrics["rate.received"] - 2_500.0).abs() < 1e-9);
        assert!((part.metrics["broker.cpu_per_message"] - 400.0).abs() < 1e-9);
        assert!((part.metrics["e2e.count"] - 2.0).abs() < 1e-9);
        assert_eq!(part.marks, whole.marks);
        for left_out in ["delivered", "service.p99", "generator.cores"] {
            assert!(!part.metrics.contains_key(left_out), "{left_out}");
        }
    }
}
