//! Findings about a run during and after it: the same fields for the live view and the report.

use std::collections::BTreeMap;

use thrum_figures::{fraction, utc_text, whole};
use thrum_load::floors::Delays;
use thrum_load::plan::Plan;
use thrum_report::RunResult;
use thrum_report::result::{
    Broker, Clients, Delivery, ErrorCount, Mark, Rates, Resources, Second, Stage, Tool, Usage,
    Verdict,
};

use super::describe;
use super::distributions::{Missing, distributions};
use crate::machine::cores;
use crate::record;
use crate::run::Target;
use crate::swarm::{Progress, Timeline};

/// Seconds that the live view is given: ten minutes.
const LIVE_SECONDS_MAX: usize = 600;

/// Findings about a run.
pub(crate) struct Findings<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) targets: &'a [Target],
    pub(crate) command: &'a str,
    pub(crate) started_unix: u64,
    pub(crate) timeline: Option<Timeline>,
    pub(crate) latencies: &'a record::Latencies,
    pub(crate) delays: &'a BTreeMap<u32, Delays>,
    /// Largest error of latencies between two machines; 0 if there are none.
    pub(crate) clock_error_ns: u64,
    pub(crate) seconds: &'a [Second],
    pub(crate) errors: Vec<ErrorCount>,
    pub(crate) marks: &'a [Mark],
    pub(crate) missing: Missing,
}

impl Findings<'_> {
    /// The fields that are known at any time.
    pub(super) fn result(self) -> RunResult {
        let latencies = self.latencies;
        RunResult {
            schema: thrum_report::SCHEMA.to_owned(),
            tool: Tool {
                name: "thrum bench".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                command: self.command.to_owned(),
            },
            started: utc_text(self.started_unix),
            scenario: describe::scenario(self.plan, self.targets, self.timeline),
            latency_ns: distributions(latencies, self.missing, self.clock_error_ns),
            errors: self.errors,
            marks: self.marks.to_vec(),
            ..RunResult::default()
        }
    }

    /// The result so far, with the brokers that are watched.
    pub(crate) fn so_far(self, progress: &Progress, mut brokers: Vec<Broker>) -> RunResult {
        let (seconds, plan, delays) = (self.seconds, self.plan, self.delays);
        let mut result = self.result();
        let hold: Vec<&Second> = seconds
            .iter()
            .filter(|second| second.stage == Stage::Hold)
            .collect();
        let span: f64 = hold.iter().map(|second| second.span).sum();
        let per_second = |of: fn(&Second) -> u64| {
            let sum: u64 = hold.iter().map(|second| of(second)).sum();
            if span > 0.0 {
                fraction(sum) / span
            } else {
                0.0
            }
        };
        result.rates = Rates {
            offered: per_second(|second| second.offered),
            sent: per_second(|second| second.sent),
            received: per_second(|second| second.received),
            held_back_messages: seconds.iter().map(|second| second.held_back).sum(),
        };
        result.clients = Clients {
            wanted: u64::from(plan.clients()),
            ready: progress.ready,
            failed: progress.failed,
            lost: progress.lost,
            ..Clients::default()
        };
        // Losses are known only after the drain: until then messages may be in flight.
        result.delivery = Delivery {
            sent_messages: progress.sent,
            expected: progress.expected,
            delivered: progress.distinct,
            duplicated: progress.duplicated,
            ..Delivery::default()
        };
        let (limits, lag) = (
            describe::limits_so_far(&result.latency_ns, delays),
            &mut result.validity,
        );
        lag.valid = limits.is_empty();
        lag.limits = limits;
        result.verdict = Verdict::default();
        result.machine.cores = cores();
        // Nothing is known of its use before the first second of the hold, which is not the same as
        // none.
        let is_seen = hold.iter().any(|second| second.broker.is_some());
        if let Some(broker) = brokers.first_mut().filter(|_| is_seen) {
            broker.usage = usage_so_far(&hold);
            result.brokers = std::mem::take(&mut brokers);
        }
        result.series = seconds[seconds.len().saturating_sub(LIVE_SECONDS_MAX)..].to_vec();
        result.fill_metrics();
        if !is_seen {
            result.brokers = brokers;
        }
        let thresholds = plan.scenario.thresholds.iter();
        result.thresholds = thresholds
            .map(|threshold| threshold.judge(&result))
            .collect();
        result
    }
}

/// A broker's use in the seconds of the hold, without figures that need the end of the run.
fn usage_so_far(hold: &[&Second]) -> Usage {
    let used: Vec<&Resources> = hold
        .iter()
        .filter_map(|second| second.broker.as_ref())
        .collect();
    let cores = |used: &&Resources| used.cores_user + used.cores_system;
    let most = |of: fn(&Resources) -> u64| used.iter().map(|used| of(used)).max().unwrap_or(0);
    let seconds = fraction(u64::try_from(used.len().max(1)).unwrap_or(u64::MAX));
    let rss: u64 = used.iter().map(|used| used.rss_bytes).sum();
    Usage {
        cores_avg: used.iter().map(cores).sum::<f64>() / seconds,
        cores_max: used.iter().map(cores).fold(0.0, f64::max),
        rss_max_bytes: most(|used| used.rss_bytes),
        rss_avg_bytes: whole(fraction(rss) / seconds),
        threads_max: most(|used| used.threads),
        open_files_max: most(|used| used.open_files),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brokers_use_so_far_is_that_of_the_seconds_of_the_hold() {
        let second = |cores_user, rss_bytes| Second {
            broker: Some(Resources {
                cores_user,
                cores_system: 0.5,
                rss_bytes,
                threads: 3,
                ..Resources::default()
            }),
            ..Second::default()
        };
        let (one, other) = (second(0.5, 1_000), second(1.5, 3_000));
        let usage = usage_so_far(&[&one, &Second::default(), &other]);
        assert!((usage.cores_avg - 1.5).abs() < 1e-9 && (usage.cores_max - 2.0).abs() < 1e-9);
        assert_eq!((usage.rss_max_bytes, usage.rss_avg_bytes), (3_000, 2_000));
        assert_eq!(usage.threads_max, 3);
    }
}
