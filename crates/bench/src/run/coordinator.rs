//! Runs the stages: polls the generators fifty times a second, sends them orders, and collects
//! their seconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thrum_figures::{SECOND_NS, nanos};
use thrum_load::pacing::Warp;
use thrum_load::plan::{Machines, Plan};
use thrum_load::validity::CoordinatorDelay;
use thrum_report::result::{Mark, Stage};

use super::commands::Wishes;
use super::hooks::Hooks;
use super::prepare::{Prepared, Wired};
use super::{RunError, RunOptions, Status, Target};
use crate::agents::{self, BrokerWatch, RemoteAgents};
use crate::clock;
use crate::collect::{Began, Collector};
use crate::generator::{GeneratorReport, GeneratorSetup, LoadGenerator, LocalGenerator};
use crate::message_stages::StageFeed;
use crate::monitor::{Moment, Monitor};
use crate::observe::Observer;
use crate::outcome::{
    BrokerSeen, Clients, Findings, Measured, Missing, Outcome, Unfinished, between_clocks,
};
use crate::swarm::{ANSWER_NS_MAX, Progress, Timeline, page};

/// Interval at which the coordinator polls its generators.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Rest between the last connection and the load: the broker's memory and its idle CPU are read
/// meanwhile.
const SETTLE_NS: u64 = SECOND_NS / 2;

/// From the decision to start or change the load to its effect: every thread must have seen it.
pub(super) const ORDER_DELAY_NS: u64 = SECOND_NS / 4;

/// Silence after the last delivery in which duplicates may still arrive.
const ECHO_NS: u64 = SECOND_NS / 5;

pub(super) struct Coordinator<'a> {
    plan: Arc<Plan>,
    targets: Vec<Target>,
    command: String,
    started_unix: u64,
    ramp_start_ns: u64,
    generators: Vec<Box<dyn LoadGenerator>>,
    monitors: Vec<Option<BrokerWatch>>,
    generator: Option<Monitor>,
    agents: Option<RemoteAgents>,
    /// Holds the networks of the run until its end, and reads the stages of the broker.
    wired: Wired,
    /// From the decision to start or change the load to its effect: every thread must have seen it.
    pub(super) order_delay_ns: u64,
    pub(super) collector: Collector,
    hooks: Hooks,
    pub(super) marks: Vec<Mark>,
    interrupt: Arc<AtomicBool>,
    observer: &'a mut dyn Observer,
    pub(super) timeline: Option<Timeline>,
    pub(super) warp: Warp,
    pub(super) wishes: Wishes,
    pub(super) was_stopped: bool,
    looks: Looks,
}

/// The coordinator's looks at broker and generators.
#[derive(Clone, Copy, Debug)]
struct Looks {
    /// When the next second is over.
    second_ns: u64,
    /// When the next look is due; never if it is not a rest that ends.
    due_ns: u64,
    /// How late they were in the hold.
    delay: CoordinatorDelay,
}

/// A stage under way.
#[derive(Clone, Copy)]
struct Watch {
    stage: Stage,
    start_ns: u64,
    planned_ns: u64,
    /// An interruption does not shorten it.
    is_last_part: bool,
}

impl<'a> Coordinator<'a> {
    /// Starts the threads; they open their connections at once.
    pub(super) fn start(
        prepared: Prepared,
        options: &RunOptions,
        observer: &'a mut dyn Observer,
    ) -> Result<Self, RunError> {
        let plan = prepared.plan;
        let order_delay_ns = if prepared.agents.is_some() {
            agents::ORDER_DELAY_NS
        } else {
            ORDER_DELAY_NS
        };
        let (ramp_start_ns, threads, generators) = match &prepared.agents {
            None => {
                let ramp_start_ns = clock::monotonic_ns();
                let setup = GeneratorSetup {
                    first_thread: 0,
                    threads: prepared.threads,
                    machines: Machines::new(&[prepared.threads]),
                    targets: Arc::clone(&prepared.wired.setups),
                    target_of_group: Arc::clone(&prepared.wired.target_of_group),
                    clock_offset_ns: 0,
                    ramp_start_ns,
                };
                let generator: Box<dyn LoadGenerator> =
                    Box::new(LocalGenerator::start(&plan, &setup)?);
                (ramp_start_ns, prepared.threads, vec![generator])
            }
            Some(agents) => {
                let ramp_start_ns = clock::monotonic_ns() + order_delay_ns;
                (ramp_start_ns, agents.threads(), agents.start(ramp_start_ns))
            }
        };
        // The generator's accounts are those of the machines that generate the load.
        let generator = match prepared.agents {
            None => Monitor::own(),
            Some(_) => None,
        };
        let collector = Collector::new(
            Began {
                ramp_start_ns,
                started_unix: prepared.started_unix,
                threads,
            },
            options.latency_log.as_deref(),
        )?;
        Ok(Self {
            generators,
            hooks: Hooks::new(&plan.scenario, options.on_fault.as_deref()),
            targets: prepared.targets,
            command: options.command.clone(),
            started_unix: prepared.started_unix,
            ramp_start_ns,
            monitors: prepared.monitors,
            generator,
            agents: prepared.agents,
            wired: prepared.wired,
            order_delay_ns,
            collector,
            marks: Vec::new(),
            interrupt: Arc::clone(&options.interrupt),
            observer,
            timeline: None,
            warp: Warp::identity(),
            wishes: Wishes::default(),
            was_stopped: false,
            looks: Looks {
                second_ns: ramp_start_ns + SECOND_NS,
                due_ns: u64::MAX,
                delay: CoordinatorDelay::default(),
            },
            plan,
        })
    }

    /// Runs all stages.
    pub(super) fn conduct(mut self) -> Result<Outcome, RunError> {
        self.ramp_up()?;
        let ramp = Duration::from_nanos(clock::monotonic_ns().saturating_sub(self.ramp_start_ns));
        let progress = self.progress();
        if progress.ready == 0 && !self.is_interrupted() {
            return Err(self.no_client_accepted());
        }
        if !self.is_interrupted() {
            self.apply_load()?;
        }
        let clients = Clients {
            wanted: u64::from(self.plan.clients()),
            ramp,
            ready_in_ramp: progress.ready,
            // They are known with the reports of the threads.
            ..Clients::default()
        };
        self.settle_up(clients)
    }

    /// Waits until every client is ready or has failed.
    fn ramp_up(&mut self) -> Result<(), RunError> {
        let planned_ns = nanos(self.plan.scenario.ramp());
        let watch = Watch {
            stage: Stage::Ramp,
            start_ns: self.ramp_start_ns,
            planned_ns,
            is_last_part: false,
        };
        // Each client decides for itself when an answer is late; this only ends a ramp that hangs.
        let latest_ns = self.ramp_start_ns + planned_ns + 4 * ANSWER_NS_MAX;
        let clients = u64::from(self.plan.clients());
        self.watch(
            watch,
            |_| latest_ns,
            |progress| progress.ready + progress.failed >= clients,
        )?;
        Ok(())
    }

    /// Warm-up, hold and drain.
    fn apply_load(&mut self) -> Result<(), RunError> {
        self.settle()?;
        let timeline = self.start_load();
        let warm_up = Watch {
            stage: Stage::WarmUp,
            start_ns: timeline.start_ns,
            planned_ns: timeline.hold_start_ns - timeline.start_ns,
            is_last_part: false,
        };
        self.watch(warm_up, |_| timeline.hold_start_ns, |_| false)?;
        if let Some(stages) = &self.wired.stages {
            stages.begin_hold(!self.plan.scenario.stages.warm_up.is_zero());
        }
        self.mark(Moment::HoldStart);
        self.note_border(timeline.hold_start_ns);
        let hold = Watch {
            stage: Stage::Hold,
            start_ns: timeline.hold_start_ns,
            planned_ns: timeline.hold_end_ns - timeline.hold_start_ns,
            is_last_part: false,
        };
        // Its end may move while it lasts.
        self.watch(hold, |timeline| timeline.hold_end_ns, |_| false)?;
        self.end_hold_early();
        let rest = Watch {
            is_last_part: true,
            ..hold
        };
        self.watch(rest, |timeline| timeline.hold_end_ns, |_| false)?;
        let ends_ns = self.timeline.unwrap_or(timeline).hold_end_ns;
        self.mark(Moment::HoldEnd);
        self.note_border(ends_ns);
        self.drain()
    }

    /// An interrupted hold ends as soon as every thread can know it, so that what is counted is
    /// counted in the same time everywhere. One that has not begun does not begin.
    fn end_hold_early(&mut self) {
        let now_ns = clock::monotonic_ns();
        let Some(timeline) = self.timeline else {
            return;
        };
        let end_ns = if now_ns < timeline.hold_start_ns {
            now_ns
        } else {
            now_ns + self.order_delay_ns
        };
        if self.is_interrupted() && end_ns < timeline.hold_end_ns {
            self.order(Timeline {
                hold_end_ns: end_ns,
                ..timeline
            });
        }
    }

    /// Looks at the broker's memory and idle CPU before the load.
    fn settle(&mut self) -> Result<(), RunError> {
        self.mark(Moment::Connected);
        let now_ns = clock::monotonic_ns();
        let watch = Watch {
            stage: Stage::Ramp,
            start_ns: self.ramp_start_ns,
            planned_ns: nanos(self.plan.scenario.ramp()),
            is_last_part: false,
        };
        self.watch(watch, |_| now_ns + SETTLE_NS, |_| false)?;
        self.mark(Moment::IdleEnd);
        Ok(())
    }

    fn start_load(&mut self) -> Timeline {
        let stages = self.plan.scenario.stages;
        let start_ns = clock::monotonic_ns() + self.order_delay_ns;
        let hold_start_ns = start_ns + nanos(stages.warm_up);
        let timeline = Timeline {
            start_ns,
            hold_start_ns,
            hold_end_ns: (hold_start_ns + nanos(stages.hold))
                .saturating_add(self.wishes.extended_ns),
        };
        // Rate changes requested during the ramp take effect at the start.
        let factor = self.factor_now();
        if (factor - 1.0).abs() > f64::EPSILON {
            // A factor within its limits at time 0 is never refused.
            self.warp.change(0, factor).ok();
        }
        self.order(timeline);
        timeline
    }

    /// Sends the current times and changes to all generators.
    pub(super) fn order(&mut self, timeline: Timeline) {
        self.timeline = Some(timeline);
        self.collector.set_load(timeline, self.warp.clone());
        // The pages are others now, and each is to have its sample.
        let now_ns = clock::monotonic_ns();
        (_, self.looks.second_ns) = page(self.ramp_start_ns, self.timeline, now_ns);
        for generator in &mut self.generators {
            generator.order(timeline, &self.warp);
        }
    }

    /// Marks the begin or end of a stage: reads accounts.
    fn mark(&mut self, moment: Moment) {
        for monitor in self.monitors.iter_mut().flatten() {
            monitor.mark(moment);
        }
        if let Some(generator) = &mut self.generator {
            agents::mark(generator, moment);
        }
        for generator in &mut self.generators {
            generator.mark(moment);
        }
    }

    /// Waits for messages on their way, and a moment for duplicates of the last ones.
    fn drain(&mut self) -> Result<(), RunError> {
        let start_ns = clock::monotonic_ns();
        let planned_ns = nanos(self.plan.scenario.stages.drain);
        let watch = Watch {
            stage: Stage::Drain,
            start_ns,
            planned_ns,
            is_last_part: true,
        };
        let echo_ns = ECHO_NS.min(planned_ns);
        // The messages sent so far are in the gauges after the next turn of each thread, an agent's
        // a little later.
        let news_ns = match self.agents {
            None => echo_ns,
            Some(_) => self.order_delay_ns.min(planned_ns),
        };
        self.watch(watch, |_| start_ns + news_ns, |_| false)?;
        self.watch(
            watch,
            |_| start_ns + planned_ns,
            |progress| progress.distinct >= progress.expected && progress.pending == 0,
        )?;
        let end_ns = clock::monotonic_ns() + echo_ns;
        self.watch(watch, |_| end_ns, |_| false)
    }

    /// Polls until a time, an interruption or `is_done`.
    fn watch(
        &mut self,
        watch: Watch,
        end_ns: impl Fn(&Timeline) -> u64,
        is_done: impl Fn(&Progress) -> bool,
    ) -> Result<(), RunError> {
        loop {
            let now_ns = clock::monotonic_ns();
            self.note_lateness(watch.stage, now_ns);
            let progress = self.progress();
            self.look(watch, now_ns, progress)?;
            let ends_early = self.is_interrupted() && !watch.is_last_part;
            let end_ns = end_ns(&self.timeline.unwrap_or_default());
            if is_done(&progress) || ends_early || now_ns >= end_ns {
                return Ok(());
            }
            let rest = LOOK_INTERVAL.min(Duration::from_nanos(end_ns - now_ns));
            // What the look itself took counts: meanwhile no other was possible.
            self.looks.due_ns = now_ns + nanos(rest);
            clock::rest(rest);
        }
    }

    /// The accounts of the hold have been read from here on, or until here.
    fn note_border(&mut self, due_ns: u64) {
        let late_ns = clock::monotonic_ns().saturating_sub(due_ns);
        self.looks.delay.borders_ns += late_ns;
        self.looks.delay.note(late_ns);
    }

    /// A look that is late in the hold, or the one that begins or ends it, moves what is read to
    /// another time.
    fn note_lateness(&mut self, stage: Stage, now_ns: u64) {
        let due_ns = std::mem::replace(&mut self.looks.due_ns, u64::MAX);
        let is_first_of_hold = self
            .timeline
            .is_some_and(|timeline| now_ns >= timeline.hold_start_ns);
        if is_first_of_hold && matches!(stage, Stage::WarmUp | Stage::Hold) {
            self.looks.delay.note(now_ns.saturating_sub(due_ns));
        }
    }

    fn look(&mut self, watch: Watch, now_ns: u64, progress: Progress) -> Result<(), RunError> {
        for generator in &mut self.generators {
            generator.check()?;
            generator.take_slices(&mut |slice| self.collector.take(slice));
        }
        for used in self.agents.iter().flat_map(RemoteAgents::take_uses) {
            self.collector.note_use(&used);
        }
        if now_ns >= self.looks.second_ns {
            self.sample(now_ns, progress.up);
        }
        let at = self.collector.seconds_at(now_ns);
        if watch.stage == Stage::Hold {
            self.hooks
                .begin_due(now_ns.saturating_sub(watch.start_ns), at, &mut self.marks);
        }
        self.hooks.look_after(at, &mut self.marks);
        self.collector.latest.clear();
        if self.collector.close(&self.plan, now_ns) && self.observer.wants_seconds() {
            let seen = self.monitors.iter().zip(&self.targets);
            let seen = seen.filter_map(|(watch, target)| Some((watch.as_ref()?, target)));
            let brokers = seen.map(|(watch, target)| watch.broker(target)).collect();
            let so_far = self.findings().so_far(&progress, brokers);
            self.observer.second(&so_far, &self.collector.latest);
        }
        let planned_ns = match (watch.stage, self.timeline) {
            (Stage::Hold, Some(timeline)) => {
                timeline.hold_end_ns.saturating_sub(timeline.hold_start_ns)
            }
            _ => watch.planned_ns,
        };
        self.observer.look(&Status {
            stage: watch.stage,
            elapsed: Duration::from_nanos(now_ns.saturating_sub(watch.start_ns)),
            planned: Duration::from_nanos(planned_ns),
            clients: self.plan.clients(),
            progress,
        });
        while let Some(command) = self.observer.next_command() {
            self.obey(command, now_ns);
        }
        Ok(())
    }

    /// Ends a second: joins the use of broker and generator with the counts of the threads.
    fn sample(&mut self, now_ns: u64, up: u64) {
        let mut brokers = self.monitors.iter_mut().flatten().map(BrokerWatch::sample);
        let broker = brokers.next().flatten();
        brokers.for_each(drop);
        let generator = self.generator.as_mut().and_then(Monitor::sample);
        let last_ns = self.looks.second_ns - 1;
        if self
            .timeline
            .is_some_and(|timeline| timeline.holds(last_ns))
        {
            // Since the second was over, to when its accounts were read.
            let late_ns = clock::monotonic_ns().saturating_sub(self.looks.second_ns);
            self.looks.delay.note(late_ns);
        }
        self.collector.note(last_ns, up, broker, generator);
        (_, self.looks.second_ns) = page(self.ramp_start_ns, self.timeline, now_ns);
    }

    fn progress(&self) -> Progress {
        self.generators
            .iter()
            .fold(Progress::default(), |sum, generator| {
                sum.plus(&generator.progress())
            })
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.was_stopped || self.interrupt.load(Ordering::Relaxed)
    }

    fn no_client_accepted(mut self) -> RunError {
        let mut failure = None;
        for generator in std::mem::take(&mut self.generators) {
            let finished = generator.finish(&mut |slice| self.collector.take(slice));
            failure = failure.or_else(|| finished.err());
        }
        let targets: Vec<String> = self
            .targets
            .iter()
            .map(|target| target.endpoint.to_string())
            .collect();
        failure.unwrap_or_else(|| RunError::NobodyAccepted {
            target: targets.join(", "),
            reason: self
                .collector
                .main_error()
                .unwrap_or_else(|| "no answer".to_owned()),
        })
    }

    fn clock_error_ns(&self) -> u64 {
        let agents = self.agents.as_ref();
        agents.map_or(0, |agents| agents.clock_error_ns(&self.plan))
    }

    fn findings(&self) -> Findings<'_> {
        Findings {
            plan: &self.plan,
            targets: &self.targets,
            command: &self.command,
            started_unix: self.started_unix,
            timeline: self.timeline,
            latencies: &self.collector.latencies,
            delays: &self.collector.delays,
            clock_error_ns: self.clock_error_ns(),
            missing: Missing::default(),
            seconds: &self.collector.seconds,
            errors: self.collector.errors(),
            marks: &self.marks,
        }
    }

    /// Ends all clients, sums the reports and makes the verdict.
    fn settle_up(mut self, clients: Clients) -> Result<Outcome, RunError> {
        for generator in &mut self.generators {
            generator.stop();
        }
        let mut reports: Vec<GeneratorReport> = Vec::new();
        for generator in std::mem::take(&mut self.generators) {
            reports.push(generator.finish(&mut |slice| self.collector.take(slice))?);
        }
        self.collector.close_all(&self.plan, clock::monotonic_ns());
        // The figures do not depend on the log.
        let log_error = self.collector.finish_log().err();
        let was_interrupted = self.is_interrupted();
        let stages = self.wired.stages.take().and_then(StageFeed::finish);
        let clock_error_ns = self.clock_error_ns();
        for second in &mut self.collector.seconds {
            let bound = &mut second.delays.e2e_bound;
            *bound = bound.map(|bound| between_clocks(bound, clock_error_ns));
        }
        let seen = self
            .monitors
            .into_iter()
            .zip(&self.targets)
            .filter_map(|(monitor, target)| {
                Some(BrokerSeen {
                    target: target.clone(),
                    monitor: monitor?,
                })
            });
        let seen: Vec<_> = seen.collect();
        let mut outcome = Outcome::new(Measured {
            plan: self.plan,
            targets: self.targets,
            command: self.command,
            started_unix: self.started_unix,
            was_interrupted,
            clients,
            unfinished: Unfinished::default(),
            timeline: self.timeline.unwrap_or_default(),
            warp: self.warp,
            brokers: seen,
            generator: self.generator,
            clock_error_ns,
            reports,
            errors: self.collector.errors(),
            latencies: self.collector.latencies,
            delays: self.collector.delays,
            coordinator: self.looks.delay,
            seconds: self.collector.seconds,
            marks: self.marks,
            log_error,
        });
        if let Some(stages) = stages {
            outcome.add_stages(stages);
        }
        Ok(outcome)
    }
}
