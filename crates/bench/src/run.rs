//! One run from the first connection to the figures: starts the threads, keeps the stages, collects.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};

use crate::clock;
use crate::ledger::as_index;
use crate::monitor::{Monitor, ThreadTime, listening_process, thread_time};
use crate::outcome::{Broker, Clients, Generator, Measured, Outcome};
use crate::plan::{Plan, PlanError};
use crate::preflight::{self, PreflightError};
use crate::record::Counts;
use crate::scenario::Scenario;
use crate::swarm::{Control, Progress, Swarm, ThreadReport, Timeline, Wiring};
use crate::target::{Target, TargetError};
use crate::units::{SECOND_NS, nanos, ratio};
use crate::validity::ThreadLoad;

/// How often the coordinator looks at its threads.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Rest between the last connection and the look at the broker's memory.
const SETTLE_NS: u64 = SECOND_NS / 4;

/// From the decision to start to the first message: every thread must have seen it.
const START_DELAY_NS: u64 = SECOND_NS / 4;

/// Silence after the last delivery in which duplicates may still come.
const ECHO_NS: u64 = SECOND_NS / 5;

/// A load is a fan-out if less than this part of all messages is sent, the rest delivered.
const FAN_OUT_PART_MAX: f64 = 0.1;

/// What one thread handles when it is about half busy: past two thirds a burst of the broker's makes it the limit.
const THREAD_MESSAGES_PER_SECOND: f64 = 150_000.0;

/// Most threads.
pub const THREADS_MAX: u32 = 256;

/// How to run a scenario.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The broker.
    pub target: Target,
    /// Whose CPU and memory to measure.
    pub broker: BrokerProcess,
    /// Threads of the generator; by default half of the cores, at least 1.
    pub threads: Option<u32>,
    /// Set from outside to end the run early; it is still reported.
    pub interrupt: Arc<AtomicBool>,
}

/// Whose CPU and memory to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokerProcess {
    /// Of the process that listens on the target's port, if the target is on this machine.
    Detect,
    /// Of nobody.
    Unknown,
    /// Of this process and its children.
    Pid(u32),
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each stage is what its name says")]
pub enum Stage {
    Ramp,
    WarmUp,
    Hold,
    Drain,
}

/// A look at a run under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Where it is.
    pub stage: Stage,
    /// Since the beginning of the stage.
    pub elapsed: Duration,
    /// How long the stage takes as planned.
    pub planned: Duration,
    /// Clients of the scenario.
    pub clients: u32,
    /// What the threads report.
    pub progress: Progress,
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario makes no sense.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The target makes no sense.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// This machine or the broker cannot do it.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// No client was accepted.
    #[error("no client was accepted by {target}: {reason}")]
    NobodyAccepted {
        /// As typed.
        target: String,
        /// The most frequent reason.
        reason: String,
    },
    /// The process to measure is not there.
    #[error("no process with pid {0} can be measured")]
    NoProcess(u32),
    /// The kernel refused something that the generator needs.
    #[error("the generator failed: {0}")]
    Generator(#[from] io::Error),
    /// A thread panicked: a bug.
    #[error("a thread of the generator ended unexpectedly")]
    ThreadDied,
}

impl RunError {
    /// Exit code of the command line.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Plan(_) | Self::NoProcess(_) => 2,
            Self::Target(TargetError::Unresolved { .. })
            | Self::Preflight(PreflightError::Unreachable { .. })
            | Self::NobodyAccepted { .. } => 5,
            Self::Target(_) | Self::Preflight(_) => 2,
            Self::Generator(_) | Self::ThreadDied => 1,
        }
    }
}

/// Runs a scenario; `observe` is called many times per second with where it is.
///
/// # Errors
/// The run could not start, or nobody was accepted.
pub fn run(
    scenario: Scenario,
    options: &RunOptions,
    observe: &mut dyn FnMut(&Status),
) -> Result<Outcome, RunError> {
    let started_unix = clock::unix_seconds();
    let plan = Arc::new(Plan::new(scenario, &run_tag(started_unix))?);
    let address = options.target.resolve()?;
    let pid = broker_pid(options.broker, address);
    preflight::raise_open_files(plan.clients())?;
    let sources = preflight::source_addresses(address.ip(), plan.clients())?;
    preflight::reach(&options.target, address)?;
    if let Some(pid) = pid {
        preflight::check_broker_files(pid, plan.clients())?;
    }
    let broker = pid.and_then(Monitor::new);
    if let (BrokerProcess::Pid(pid), None) = (options.broker, &broker) {
        return Err(RunError::NoProcess(pid));
    }
    let mut coordinator = Coordinator {
        control: Arc::new(Control::new(0, 0)),
        threads: Vec::new(),
        broker,
        generator: Monitor::new(std::process::id()),
        interrupt: Arc::clone(&options.interrupt),
        observe,
        plan,
    };
    coordinator.start_threads(options.threads, address, &sources)?;
    coordinator.conduct(&options.target, started_unix)
}

/// Default number of threads: half of the cores, the other half is the broker's. More if the load
/// would keep those busy all the time; a fan-out has one more even then: its publishers do so little
/// that they cost nothing, and are punctual for it.
fn default_threads(plan: &Plan) -> u32 {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let half = u32::try_from(cores / 2).unwrap_or(1).clamp(1, THREADS_MAX);
    let (sent, delivered) = plan.messages_per_second();
    let for_load = ((sent + delivered) / THREAD_MESSAGES_PER_SECOND).ceil();
    let for_load = u32::try_from(crate::units::whole(for_load)).unwrap_or(THREADS_MAX);
    let threads = half.max(for_load.min(u32::try_from(cores).unwrap_or(1)));
    if plan.publishing_part() < FAN_OUT_PART_MAX {
        threads + 1
    } else {
        threads
    }
}

struct Coordinator<'a> {
    plan: Arc<Plan>,
    control: Arc<Control>,
    threads: Vec<JoinHandle<io::Result<ThreadReport>>>,
    broker: Option<Monitor>,
    generator: Option<Monitor>,
    interrupt: Arc<AtomicBool>,
    observe: &'a mut dyn FnMut(&Status),
}

impl Coordinator<'_> {
    fn start_threads(
        &mut self,
        threads: Option<u32>,
        target: SocketAddr,
        sources: &[IpAddr],
    ) -> io::Result<()> {
        let threads = threads
            .unwrap_or_else(|| default_threads(&self.plan))
            .clamp(1, THREADS_MAX);
        let threads = threads.min(self.plan.clients().max(1));
        let gauges = as_index(threads);
        self.control = Arc::new(Control::new(gauges, clock::monotonic_ns()));
        let sources: Arc<[IpAddr]> = sources.into();
        for number in 0..threads {
            let wiring = Wiring {
                thread: number,
                threads,
                target,
                sources: Arc::clone(&sources),
            };
            let (plan, control) = (Arc::clone(&self.plan), Arc::clone(&self.control));
            let builder = thread::Builder::new().name(format!("bench-{number}"));
            // The clients are not to be moved between threads, so each thread makes its own.
            self.threads
                .push(builder.spawn(move || Swarm::new(plan, control, wiring)?.run())?);
        }
        Ok(())
    }

    /// Keeps the stages.
    fn conduct(mut self, target: &Target, started_unix: u64) -> Result<Outcome, RunError> {
        self.ramp_up();
        let ramp_ns = clock::monotonic_ns().saturating_sub(self.control.ramp_start_ns);
        let ready = self.control.progress().ready;
        if ready == 0 && !self.is_interrupted() {
            let reports = self.finish()?;
            return Err(RunError::NobodyAccepted {
                target: target.to_string(),
                reason: main_reason(&reports),
            });
        }
        let (timeline, threads) = if self.is_interrupted() {
            (Timeline::default(), Vec::new())
        } else {
            self.apply_load()
        };
        let was_interrupted = self.is_interrupted();
        let (plan, control) = (Arc::clone(&self.plan), Arc::clone(&self.control));
        let broker = self.broker.take();
        let generator = self.generator.take();
        let reports = self.finish()?;
        let in_hold =
            |of: fn(&Counts) -> u64| reports.iter().map(|report| of(&report.counts)).sum::<u64>();
        let received = in_hold(|counts| counts.received_in_hold);
        let in_and_out = received + in_hold(|counts| counts.sent_in_hold);
        let ready = control.progress().ready;
        let usage = |mut monitor: Monitor| monitor.usage(received, in_and_out, ready);
        Ok(Outcome::new(Measured {
            plan: &plan,
            target: target.to_string(),
            started_unix,
            was_interrupted,
            clients: Clients {
                wanted: u64::from(plan.clients()),
                ready: control.progress().ready,
                failed: control.progress().failed,
                ramp: Duration::from_nanos(ramp_ns),
            },
            timeline,
            broker: broker.and_then(|monitor| {
                Some(Broker {
                    pid: monitor.pid(),
                    usage: usage(monitor)?,
                })
            }),
            generator: Generator {
                usage: generator.and_then(usage),
                threads,
            },
            reports,
        }))
    }

    /// Warm-up, hold and drain.
    fn apply_load(&mut self) -> (Timeline, Vec<ThreadLoad>) {
        self.settle();
        let timeline = self.start_load();
        self.watch(
            Stage::WarmUp,
            timeline.start_ns,
            timeline.hold_start_ns,
            |_| false,
        );
        let before = self.begin_hold();
        self.hold(timeline);
        let threads = self.end_hold(&before, timeline.hold_start_ns);
        self.drain();
        (self.control.timeline().unwrap_or(timeline), threads)
    }

    /// Waits until every client is ready or has failed.
    fn ramp_up(&mut self) {
        let start_ns = self.control.ramp_start_ns;
        let planned_ns = nanos(self.plan.scenario.ramp());
        // Each client decides for itself when an answer is late; this only ends a ramp that hangs.
        let latest_ns = start_ns + planned_ns + 3 * crate::swarm::ANSWER_NS_MAX;
        let clients = u64::from(self.plan.clients());
        self.watch(Stage::Ramp, start_ns, latest_ns, |progress| {
            progress.ready + progress.failed >= clients
        });
    }

    /// Looks at the broker's memory before the load.
    fn settle(&mut self) {
        rest_until(clock::monotonic_ns() + SETTLE_NS);
        for monitor in self.monitors() {
            monitor.mark_connected();
        }
    }

    fn start_load(&self) -> Timeline {
        let start_ns = clock::monotonic_ns() + START_DELAY_NS;
        let hold_start_ns = start_ns + nanos(self.plan.scenario.stages.warm_up);
        let hold_end_ns = hold_start_ns + nanos(self.plan.scenario.stages.hold);
        let timeline = Timeline {
            start_ns,
            hold_start_ns,
            hold_end_ns,
        };
        self.control.start(timeline);
        timeline
    }

    fn begin_hold(&mut self) -> Vec<(u64, ThreadTime)> {
        for monitor in self.monitors() {
            monitor.begin_hold();
        }
        self.thread_times()
    }

    fn hold(&mut self, timeline: Timeline) {
        let mut second_ns = timeline.hold_start_ns + SECOND_NS;
        while second_ns < timeline.hold_end_ns {
            if self.watch(Stage::Hold, timeline.hold_start_ns, second_ns, |_| false) {
                break;
            }
            for monitor in self.monitors() {
                monitor.sample();
            }
            second_ns += SECOND_NS;
        }
        self.watch(
            Stage::Hold,
            timeline.hold_start_ns,
            timeline.hold_end_ns,
            |_| false,
        );
    }

    fn end_hold(&mut self, before: &[(u64, ThreadTime)], hold_start_ns: u64) -> Vec<ThreadLoad> {
        let now_ns = clock::monotonic_ns();
        self.control.end_hold(now_ns);
        for monitor in self.monitors() {
            monitor.end_hold();
        }
        let span_ns = now_ns.saturating_sub(hold_start_ns);
        let after = self.thread_times();
        let pairs = after.iter().filter_map(|(thread, after)| {
            let (_, before) = before.iter().find(|(before, _)| before == thread)?;
            Some((before, after))
        });
        pairs
            .map(|(before, after)| ThreadLoad {
                busy: ratio(after.run_ns.saturating_sub(before.run_ns), span_ns),
                waited: ratio(after.wait_ns.saturating_sub(before.wait_ns), span_ns),
            })
            .collect()
    }

    /// Waits for messages on their way, and a moment for duplicates of the last ones.
    fn drain(&mut self) {
        let start_ns = clock::monotonic_ns();
        let end_ns = start_ns + nanos(self.plan.scenario.stages.drain);
        // What was sent until now shows in the gauges with the next turn of each thread.
        rest_until(start_ns + ECHO_NS.min(nanos(self.plan.scenario.stages.drain)));
        self.watch(Stage::Drain, start_ns, end_ns, |progress| {
            progress.distinct >= progress.expected && progress.pending == 0
        });
        rest_until(clock::monotonic_ns() + ECHO_NS);
    }

    fn finish(self) -> Result<Vec<ThreadReport>, RunError> {
        self.control.stop();
        let mut reports = Vec::with_capacity(self.threads.len());
        for thread in self.threads {
            reports.push(thread.join().map_err(|_| RunError::ThreadDied)??);
        }
        Ok(reports)
    }

    /// Looks on until a time, an interruption or until `is_done`; true if it ended early.
    fn watch(
        &mut self,
        stage: Stage,
        start_ns: u64,
        end_ns: u64,
        is_done: impl Fn(&Progress) -> bool,
    ) -> bool {
        let stages = self.plan.scenario.stages;
        let planned = match stage {
            Stage::Ramp => self.plan.scenario.ramp(),
            Stage::WarmUp => stages.warm_up,
            Stage::Hold => stages.hold,
            Stage::Drain => stages.drain,
        };
        loop {
            let now_ns = clock::monotonic_ns();
            let progress = self.control.progress();
            (self.observe)(&Status {
                stage,
                elapsed: Duration::from_nanos(now_ns.saturating_sub(start_ns)),
                planned,
                clients: self.plan.clients(),
                progress,
            });
            let is_drained = stage == Stage::Drain && now_ns >= end_ns;
            if is_done(&progress) || is_drained {
                return true;
            }
            if (self.is_interrupted() && stage != Stage::Drain) || self.threads_died() {
                return true;
            }
            if now_ns >= end_ns {
                return false;
            }
            clock::rest(LOOK_INTERVAL.min(Duration::from_nanos(end_ns - now_ns)));
        }
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    fn threads_died(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    fn monitors(&mut self) -> impl Iterator<Item = &mut Monitor> {
        self.broker.iter_mut().chain(&mut self.generator)
    }

    fn thread_times(&self) -> Vec<(u64, ThreadTime)> {
        let threads = self.control.thread_ids().into_iter();
        threads
            .filter_map(|thread| Some((thread, thread_time(thread)?)))
            .collect()
    }
}

fn broker_pid(broker: BrokerProcess, address: SocketAddr) -> Option<u32> {
    match broker {
        BrokerProcess::Pid(pid) => Some(pid),
        BrokerProcess::Detect if address.ip().is_loopback() => listening_process(address.port()),
        BrokerProcess::Detect | BrokerProcess::Unknown => None,
    }
}

/// Short text that differs from run to run on one machine.
fn run_tag(started_unix: u64) -> String {
    format!(
        "{:x}",
        (started_unix % 0x1000) * 0x1000 + u64::from(std::process::id()) % 0x1000
    )
}

fn rest_until(at_ns: u64) {
    while let Some(left @ 1..) = at_ns.checked_sub(clock::monotonic_ns()) {
        clock::rest(Duration::from_nanos(left));
    }
}

fn main_reason(reports: &[ThreadReport]) -> String {
    let reasons = reports.iter().flat_map(|report| &report.reasons);
    let main = reasons.max_by_key(|(_, count)| **count);
    main.map_or_else(|| "no answer".to_owned(), |(reason, _)| reason.clone())
}
