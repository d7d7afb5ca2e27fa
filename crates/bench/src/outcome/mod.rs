//! All that a run found out, added up over its threads and judged.

mod describe;
mod distributions;
mod findings;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use thrum_codec::QoS;
use thrum_figures::{ratio, utc_text};
use thrum_load::floors::Delays;
use thrum_load::pacing::Warp;
use thrum_load::plan::{Due, Plan};
use thrum_load::scenario::{FaultKind, Scenario};
use thrum_load::thread_report::{Counts, ThreadReport};
use thrum_load::validity::{CoordinatorDelay, Health, Limit, ThreadLoad, figures_in_use};
use thrum_load::verdict::{Connections, Delivery, Fault, Promise, faults};
use thrum_report::RunResult;
use thrum_report::result::{
    Agent, Broker, ErrorCount, Generator, Mark, MessageStages, Second, Stage,
};

use crate::agents::BrokerWatch;
use crate::generator::GeneratorReport;
use crate::machine::machine;
use crate::monitor::{Monitor, Work};
use crate::record::Latencies;
use crate::run::Target;
use crate::swarm::{ANSWER_NS_MAX, Timeline};

use distributions::Wait;
pub(crate) use distributions::{Missing, between_clocks, response_bound};
pub(crate) use findings::Findings;

/// Result of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The scenario.
    pub scenario: Scenario,
    /// It was ended early from outside.
    pub was_interrupted: bool,
    /// The clients.
    pub clients: Clients,
    /// Actual length of the hold.
    pub hold: Duration,
    /// Latencies of the hold.
    pub latencies: Latencies,
    /// Counts.
    pub counts: Counts,
    /// Deliveries, judged.
    pub delivery: Delivery,
    /// Promises that were not kept.
    pub faults: Vec<Fault>,
    /// State of the generator.
    pub health: Health,
    /// The complete result, as it is written and shown.
    pub result: RunResult,
    /// Why the log of histograms is incomplete; none if it is complete or was not wanted.
    pub log_error: Option<String>,
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
    /// Of them, ready by then.
    pub ready_in_ramp: u64,
}

/// A broker that was watched.
pub(crate) struct BrokerSeen {
    pub(crate) target: Target,
    pub(crate) monitor: BrokerWatch,
}

/// The pieces of an outcome.
pub(crate) struct Measured {
    pub(crate) plan: Arc<Plan>,
    pub(crate) targets: Vec<Target>,
    pub(crate) command: String,
    pub(crate) started_unix: u64,
    pub(crate) was_interrupted: bool,
    pub(crate) clients: Clients,
    /// What was waited for at the end.
    pub(crate) unfinished: Unfinished,
    pub(crate) timeline: Timeline,
    pub(crate) warp: Warp,
    pub(crate) brokers: Vec<BrokerSeen>,
    pub(crate) generator: Option<Monitor>,
    /// Largest error of latencies between two machines; 0 if there are none.
    pub(crate) clock_error_ns: u64,
    pub(crate) reports: Vec<GeneratorReport>,
    pub(crate) errors: Vec<ErrorCount>,
    pub(crate) latencies: Latencies,
    pub(crate) delays: BTreeMap<u32, Delays>,
    pub(crate) coordinator: CoordinatorDelay,
    pub(crate) seconds: Vec<Second>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) log_error: Option<io::Error>,
}

impl Outcome {
    /// Adds up and judges.
    pub(crate) fn new(mut measured: Measured) -> Self {
        let (mut threads, mut loads) = (Vec::new(), Vec::new());
        let (mut agents, mut generator) = (Vec::new(), Generator::default());
        for report in std::mem::take(&mut measured.reports) {
            threads.extend(report.threads);
            loads.extend(report.generator.threads.iter().copied());
            match report.agent {
                Some(agent) => agents.push(Agent {
                    generator: report.generator,
                    ..agent
                }),
                None => generator = report.generator,
            }
        }
        let mut counts = Counts::default();
        for thread in &threads {
            counts.merge(&thread.counts);
        }
        // Until the threads had ended, clients still got ready, or failed.
        measured.clients.ready = threads.iter().map(|thread| thread.ready).sum();
        measured.clients.failed = threads.iter().map(|thread| thread.failed).sum();
        (counts.sent_in_hold, counts.received_in_hold) = in_hold(&measured.seconds);
        let (plan, timeline, clients) = (&measured.plan, measured.timeline, measured.clients);
        let delivery = settle(&measured, &threads);
        let connections = connections(plan, clients, &counts, &threads);
        measured.unfinished = Unfinished::of(plan, &threads);
        let plan = &measured.plan;
        let loads = loads.iter().map(|load| ThreadLoad {
            busy: load.busy,
            busy_max: load.busy_max,
        });
        let health = Health {
            // They are known with the result.
            figures: Vec::new(),
            delays: std::mem::take(&mut measured.delays),
            has_closed_loop: plan.scenario.has_closed_loop(),
            stolen: 0.0,
            coordinator: measured.coordinator,
            offered: offered(plan, timeline, &measured.warp),
            sent: counts.sent_in_hold,
            held_back: counts.held_back_at_end,
            threads: loads.collect(),
            clock_error_ns: measured.clock_error_ns,
        };
        let hold_ns = timeline.hold_end_ns.saturating_sub(timeline.hold_start_ns);
        let mut outcome = Self {
            scenario: plan.scenario.clone(),
            was_interrupted: measured.was_interrupted,
            clients,
            hold: Duration::from_nanos(hold_ns),
            faults: faults(Promise::of(&plan.scenario), &delivery, &connections),
            delivery,
            counts,
            health,
            latencies: measured.latencies.clone(),
            result: RunResult::default(),
            log_error: measured.log_error.as_ref().map(ToString::to_string),
        };
        outcome.result = outcome.conclude(measured, generator, agents);
        outcome
    }

    /// Adds the stages of messages inside the broker, and splits the mean latency by them.
    pub(crate) fn add_stages(&mut self, mut stages: MessageStages) {
        // The latency of a request is that of two messages.
        let mut groups = self.scenario.groups.iter();
        let has_answers = groups.any(|group| {
            let publish = group.publish.as_ref();
            publish.is_some_and(|publish| publish.response.is_some())
        });
        let latencies = &mut self.result.latency_ns;
        stages.split(latencies.e2e.as_ref().filter(|_| !has_answers));
        latencies.stages = Some(stages);
    }

    /// Limits of the generator that showed; none makes the run VALID. A closed loop has no schedule
    /// to keep.
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
        let ramp_ns = thrum_figures::nanos(self.clients.ramp);
        ratio(self.clients.ready_in_ramp, ramp_ns) * 1e9
    }

    /// Exit code of the command line: 130 interrupted, 7 INVALID, 1 promises not kept, 99
    /// thresholds failed, else 0.
    pub const fn exit_code(&self) -> u8 {
        self.result.exit_code
    }

    /// What of the figures may be the generator's.
    fn examine(&mut self, result: &RunResult) {
        let thresholds = self.scenario.thresholds.iter();
        let judged: Vec<&str> = thresholds.map(|threshold| threshold.metric.name).collect();
        self.health.figures = figures_in_use(&result.latency_ns, &judged);
        let machine = result.generator.usage.as_ref().map(|usage| usage.machine);
        let agents = result.agents.iter().filter_map(|agent| {
            let usage = agent.generator.usage.as_ref()?;
            Some(usage.machine.stolen)
        });
        let own = machine.map(|machine| machine.stolen);
        self.health.stolen = own.into_iter().chain(agents).fold(0.0, f64::max);
    }

    /// What was waited for and never happened, of what was due in the hold.
    fn missing(&self, measured: &Measured) -> Missing {
        let latencies = &measured.latencies;
        let drain_ns = thrum_figures::nanos(self.scenario.stages.drain);
        let wait = |events, over_ns| Wait { events, over_ns };
        let sent: u64 = self.health.delays.values().map(|of| of.expected).sum();
        let arrived = latencies.response.len() + self.delivery.excused;
        let due = sent + measured.unfinished.deliveries;
        let connected = latencies.connect.len();
        let clients = self.clients.ready + self.clients.failed;
        Missing {
            deliveries: wait(due.saturating_sub(arrived), drain_ns),
            acknowledgements: wait(measured.unfinished.acknowledgements, drain_ns),
            // Those that a subscription failed were accepted before.
            connections: wait(clients.saturating_sub(connected), ANSWER_NS_MAX),
        }
    }

    fn per_second(&self, messages: u64) -> f64 {
        ratio(messages, thrum_figures::nanos(self.hold)) * 1e9
    }

    fn conclude(
        &mut self,
        mut measured: Measured,
        mut generator: Generator,
        agents: Vec<Agent>,
    ) -> RunResult {
        let findings = Findings {
            plan: &measured.plan,
            targets: &measured.targets,
            command: &measured.command,
            started_unix: measured.started_unix,
            timeline: Some(measured.timeline),
            latencies: &measured.latencies,
            delays: &self.health.delays,
            clock_error_ns: measured.clock_error_ns,
            missing: self.missing(&measured),
            seconds: &[],
            errors: measured.errors,
            marks: &measured.marks,
        };
        let mut result = findings.result();
        for (name, floor) in measured.latencies.floors.named() {
            result.latency_ns.keep_floor(name, floor);
        }
        let (received, ready) = (self.counts.received_in_hold, self.clients.ready);
        let in_and_out = received + self.counts.sent_in_hold;
        result.series = measured.seconds;
        result.machine = machine();
        result.started = utc_text(measured.started_unix);
        result.interrupted = self.was_interrupted;
        describe::count(self, &mut result);
        generator.usage = measured
            .generator
            .as_mut()
            .and_then(|monitor| monitor.usage(received, in_and_out, ready));
        result.generator = generator;
        result.agents = agents;
        let seen = measured.brokers.iter_mut().filter_map(|seen| {
            let usage = seen.monitor.usage(Work {
                messages_received: received,
                messages_in_and_out: in_and_out,
                connections: ready,
            })?;
            Some(Broker {
                usage,
                ..seen.monitor.broker(&seen.target)
            })
        });
        result.brokers = seen.collect();
        self.examine(&result);
        describe::judge(self, &mut result);
        result.fill_metrics();
        result.conclude(&self.scenario.thresholds);
        result
    }
}

/// What did not happen of what messages ought to cause: those that were due and never sent, and
/// those without acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unfinished {
    pub(crate) deliveries: u64,
    pub(crate) acknowledgements: u64,
}

impl Unfinished {
    fn of(plan: &Plan, threads: &[ThreadReport]) -> Self {
        let mut unfinished = Self::default();
        for report in threads.iter().flat_map(|thread| &thread.publishers) {
            let Some(planned) = plan
                .publishers()
                .get(thrum_figures::as_index(report.number))
            else {
                continue;
            };
            let group = plan.scenario.groups.get(planned.group);
            let publish = group.and_then(|group| group.publish.as_ref());
            let is_acknowledged = publish.is_some_and(|publish| publish.qos > QoS::AtMostOnce);
            let messages = u64::from(report.unsent);
            unfinished.deliveries += messages * u64::from(planned.measured_fan_out);
            unfinished.acknowledgements += u64::from(report.unacknowledged);
            if is_acknowledged {
                unfinished.acknowledgements += messages;
            }
        }
        unfinished
    }
}

/// Messages sent and received in the seconds of the hold.
fn in_hold(seconds: &[Second]) -> (u64, u64) {
    let hold = seconds.iter().filter(|second| second.stage == Stage::Hold);
    hold.fold((0, 0), |(sent, received), second| {
        (sent + second.sent, received + second.received)
    })
}

fn settle(measured: &Measured, threads: &[ThreadReport]) -> Delivery {
    let (plan, timeline, warp) = (&measured.plan, measured.timeline, &measured.warp);
    let due_ns = |publisher: u32, sequence: u32| match plan.due(publisher, sequence)? {
        Due::At(offset_ns) => Some(timeline.start_ns.saturating_add(warp.real_ns(offset_ns))),
        // When it left is not kept: a closed loop's losses are never excused by an absence.
        Due::WhenAllowed => None,
    };
    Delivery::settle(plan, threads, &due_ns)
}

/// Errors that count against the broker: connections that the scenario makes fail do not.
fn connections(
    plan: &Plan,
    clients: Clients,
    counts: &Counts,
    threads: &[ThreadReport],
) -> Connections {
    let scenario = &plan.scenario;
    let cuts = |group: &thrum_load::scenario::Group| {
        group
            .client
            .network
            .is_some_and(|network| network.cut_after.is_some())
    };
    let breaks = |kind: &FaultKind| !matches!(kind, FaultKind::StopReading { .. });
    let is_rough =
        scenario.faults.iter().any(|fault| breaks(&fault.kind)) || scenario.groups.iter().any(cuts);
    let unacknowledged = threads.iter().flat_map(|thread| &thread.publishers);
    Connections {
        failed: clients.failed,
        lost: if is_rough { 0 } else { counts.connections_lost },
        away: counts.away_at_end,
        refused: counts.refused,
        unacknowledged: unacknowledged
            .map(|publisher| u64::from(publisher.unacknowledged))
            .sum(),
    }
}

/// Messages of all publishers that are due within the hold.
fn offered(plan: &Plan, timeline: Timeline, warp: &Warp) -> u64 {
    let virtual_ns = |at_ns: u64| warp.virtual_span_ns(at_ns.saturating_sub(timeline.start_ns));
    let (before_ns, load_ns) = (
        virtual_ns(timeline.hold_start_ns),
        virtual_ns(timeline.hold_end_ns),
    );
    let publishers = (0..).zip(plan.publishers());
    publishers
        .map(|(publisher, _)| {
            let before = plan.due_within(publisher, before_ns);
            u64::from(plan.due_within(publisher, load_ns).saturating_sub(before))
        })
        .sum()
}
