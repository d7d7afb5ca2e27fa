//! All that a run found out, added up over its threads.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::monitor::Usage;
use crate::plan::Plan;
use crate::record::{Counts, Latencies, SecondCounts, Series};
use crate::scenario::Scenario;
use crate::swarm::{ThreadReport, Timeline};
use crate::units::ratio;
use crate::validity::{Health, Limit, ThreadLoad};
use crate::verdict::{Delivery, Fault, faults};

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was run.
    pub scenario: Scenario,
    /// Against which broker.
    pub target: String,
    /// When it started, in seconds since 1970.
    pub started_unix: u64,
    /// It was ended early from outside.
    pub was_interrupted: bool,
    /// The clients.
    pub clients: Clients,
    /// Length of the hold as it was.
    pub hold: Duration,
    /// Latencies of the hold.
    pub latencies: Latencies,
    /// Counts.
    pub counts: Counts,
    /// Counts by second of the load.
    pub series: Vec<SecondCounts>,
    /// Deliveries, judged.
    pub delivery: Delivery,
    /// Promises that were not kept.
    pub faults: Vec<Fault>,
    /// Reasons of failures and how often each occurred.
    pub reasons: BTreeMap<String, u64>,
    /// What the broker used, if it could be seen.
    pub broker: Option<Broker>,
    /// What the generator used.
    pub generator: Option<Usage>,
    /// How the generator was.
    pub health: Health,
}

/// The clients of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clients {
    /// As the scenario has them.
    pub wanted: u64,
    /// Connected and subscribed.
    pub ready: u64,
    /// Did not get that far.
    pub failed: u64,
    /// From the first connection to the last client ready.
    pub ramp: Duration,
}

/// What the broker used.
#[derive(Clone, Debug, PartialEq)]
pub struct Broker {
    /// Its process.
    pub pid: u32,
    /// With its children.
    pub usage: Usage,
}

/// What the generator used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Generator {
    pub(crate) usage: Option<Usage>,
    pub(crate) threads: Vec<ThreadLoad>,
}

/// The pieces of an outcome.
pub(crate) struct Measured<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) target: String,
    pub(crate) started_unix: u64,
    pub(crate) was_interrupted: bool,
    pub(crate) clients: Clients,
    pub(crate) timeline: Timeline,
    pub(crate) broker: Option<Broker>,
    pub(crate) generator: Generator,
    pub(crate) reports: Vec<ThreadReport>,
}

impl Outcome {
    /// Adds up and judges.
    pub(crate) fn new(measured: Measured<'_>) -> Self {
        let Measured {
            plan,
            timeline,
            clients,
            reports,
            ..
        } = measured;
        let delivery = Delivery::settle(plan, &reports);
        let mut latencies = Latencies::new();
        let mut counts = Counts::default();
        let mut series = Series::with_seconds(1);
        let mut reasons = BTreeMap::new();
        for report in reports {
            latencies.merge(&report.latencies);
            counts.merge(&report.counts);
            series.merge(&report.series);
            for (reason, times) in report.reasons {
                *reasons.entry(reason).or_default() += times;
            }
        }
        let health = Health {
            lag_p99_ns: latencies.lag.value_at_quantile(0.99),
            offered: offered(plan, timeline),
            sent: counts.sent_in_hold,
            held_back: counts.held_back_at_end,
            threads: measured.generator.threads,
        };
        let hold_ns = timeline.hold_end_ns.saturating_sub(timeline.hold_start_ns);
        Self {
            faults: faults(
                plan.scenario.delivery_qos(),
                &delivery,
                &counts,
                clients.failed,
            ),
            scenario: plan.scenario.clone(),
            target: measured.target,
            started_unix: measured.started_unix,
            was_interrupted: measured.was_interrupted,
            clients,
            hold: Duration::from_nanos(hold_ns),
            latencies,
            counts,
            series: series.seconds().to_vec(),
            delivery,
            reasons,
            broker: measured.broker,
            generator: measured.generator.usage,
            health,
        }
    }

    /// Limits of the generator that showed; none makes the run VALID.
    pub fn limits(&self) -> Vec<Limit> {
        self.health.limits()
    }

    /// Messages per second that were due in the hold.
    pub fn offered_rate(&self) -> f64 {
        self.per_second(self.health.offered)
    }

    /// Messages per second that were sent in the hold.
    pub fn sent_rate(&self) -> f64 {
        self.per_second(self.counts.sent_in_hold)
    }

    /// Messages per second that were received in the hold.
    pub fn received_rate(&self) -> f64 {
        self.per_second(self.counts.received_in_hold)
    }

    /// Connections per second of the ramp.
    pub fn connect_rate(&self) -> f64 {
        let ramp_ns = crate::units::nanos(self.clients.ramp);
        ratio(self.clients.ready, ramp_ns) * 1e9
    }

    /// Exit code of the command line: 130 interrupted, 7 INVALID, 1 promises not kept, else 0.
    pub fn exit_code(&self) -> u8 {
        if self.was_interrupted {
            130
        } else if !self.limits().is_empty() {
            7
        } else {
            u8::from(!self.faults.is_empty())
        }
    }

    fn per_second(&self, messages: u64) -> f64 {
        ratio(messages, crate::units::nanos(self.hold)) * 1e9
    }
}

/// Messages of all publishers that are due within the hold.
fn offered(plan: &Plan, timeline: Timeline) -> u64 {
    let warm_up_ns = timeline.hold_start_ns.saturating_sub(timeline.start_ns);
    let load_ns = timeline.hold_end_ns.saturating_sub(timeline.start_ns);
    let publishers = (0..).zip(plan.publishers());
    publishers
        .map(|(publisher, _)| {
            let before = plan.due_within(publisher, warm_up_ns);
            u64::from(plan.due_within(publisher, load_ns).saturating_sub(before))
        })
        .sum()
}
