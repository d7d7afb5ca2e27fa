//! What is known of a run while it lasts and after it: the same fields for the live view and the report.

use thrum_report::RunResult;
use thrum_report::result::{
    Clients, Delivery, ErrorCount, Latencies, Mark, Rates, Second, Stage, Tool, Verdict,
};

use super::{describe, distribution};
use crate::clock::utc_text;
use crate::plan::Plan;
use crate::record;
use crate::run::Target;
use crate::swarm::{Progress, Timeline};
use crate::units::fraction;

/// Seconds that the live view is given: ten minutes.
const LIVE_SECONDS_MAX: usize = 600;

/// What is known of a run.
pub(crate) struct Findings<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) targets: &'a [Target],
    pub(crate) command: &'a str,
    pub(crate) started_unix: u64,
    pub(crate) timeline: Option<Timeline>,
    pub(crate) latencies: &'a record::Latencies,
    pub(crate) seconds: &'a [Second],
    pub(crate) errors: Vec<ErrorCount>,
    pub(crate) marks: &'a [Mark],
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
            latency_ns: Latencies {
                e2e: distribution(&latencies.response),
                service: distribution(&latencies.service),
                publish_ack: distribution(&latencies.publish_ack),
                connect: distribution(&latencies.connect),
                subscribe: distribution(&latencies.subscribe),
                reconnect: distribution(&latencies.reconnect),
                generator_lag: distribution(&latencies.lag),
                receive_lag: distribution(&latencies.receive_lag),
            },
            errors: self.errors,
            marks: self.marks.to_vec(),
            ..RunResult::default()
        }
    }

    /// The result so far.
    pub(crate) fn so_far(self, progress: &Progress) -> RunResult {
        let (seconds, plan) = (self.seconds, self.plan);
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
        // What is lost shows only after the drain: until then messages may be on their way.
        result.delivery = Delivery {
            sent_messages: progress.sent,
            expected: progress.expected,
            delivered: progress.distinct,
            duplicated: progress.duplicated,
            ..Delivery::default()
        };
        let (limits, lag) = (
            describe::limits_so_far(self_latencies(&result)),
            &mut result.validity,
        );
        lag.valid = limits.is_empty();
        lag.limits = limits;
        result.verdict = Verdict::default();
        result.series = seconds[seconds.len().saturating_sub(LIVE_SECONDS_MAX)..].to_vec();
        result.fill_metrics();
        let thresholds = plan.scenario.thresholds.iter();
        result.thresholds = thresholds
            .map(|threshold| threshold.evaluate(&result.metrics))
            .collect();
        result
    }
}

const fn self_latencies(result: &RunResult) -> &Latencies {
    &result.latency_ns
}
