//! The part of an agent in a run: its clients, its own use of the machine, the watched processes.

use std::io;
use std::sync::Arc;

use thrum_figures::SECOND_NS;
use thrum_load::pacing::Warp;
use thrum_load::plan::{Machines, Plan};
use thrum_load::thread_report::Counts;
use thrum_report::result::Usage;

use super::message::{Assignment, Clock, FromAgent, Report, WireSlice};
use super::offset::ClockEstimate;
use super::watch::{Watch, mark};
use crate::clock;
use crate::generator::{GeneratorSetup, LoadGenerator, LocalGenerator};
use crate::monitor::{Moment, Monitor, ProcessTree};
use crate::preflight::{PreflightError, own_sources};
use crate::run::{RunError, Target, Wired, connect};
use crate::swarm::{Progress, Timeline, page};

/// An agent's part of a run.
pub(super) struct Load {
    plan: Arc<Plan>,
    machines: Machines,
    machine: usize,
    wired: Wired,
    local: Option<Box<LocalGenerator>>,
    generator: Option<Monitor>,
    watched: Vec<ProcessTree>,
    ramp_start_ns: u64,
    timeline: Option<Timeline>,
    next_second_ns: u64,
}

/// Why an agent cannot take part.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    /// An error that a run without agents has too.
    #[error(transparent)]
    Run(#[from] RunError),
    /// This version does not know a scheme of the coordinator.
    #[error("a target has a scheme that is unknown here")]
    Scheme,
    /// The watched process does not exist.
    #[error("no process listens on port {0} or has that number: start the broker before the agent")]
    NothingToWatch(u32),
}

impl Load {
    /// Plans the scenario and reaches the brokers; reports the watched processes as they are
    /// before the run.
    pub(super) fn prepare(
        assignment: Assignment,
        watches: &[Watch],
        say: &mut dyn FnMut(FromAgent),
    ) -> Result<Self, LoadError> {
        let targets: Option<Vec<Target>> = assignment
            .targets
            .into_iter()
            .map(super::message::WireTarget::target)
            .collect();
        let targets = targets.ok_or(LoadError::Scheme)?;
        let plan = crate::plan(assignment.scenario, &assignment.run_tag).map_err(RunError::from)?;
        let machines = Machines::new(&assignment.threads);
        let clients = machines.clients_of(&plan, assignment.machine);
        let wired = if clients > 0 {
            let sources = own_sources(&plan.scenario.source_addresses);
            let sources = sources.map_err(|error| RunError::from(PreflightError::from(error)))?;
            connect(&plan, &targets, clients, sources)?
        } else {
            Wired::default()
        };
        let watched = watches.iter().map(|watch| {
            let tree = watch.tree();
            tree.ok_or(LoadError::NothingToWatch(watch.port_or_pid))
        });
        let mut load = Self {
            watched: watched.collect::<Result<_, _>>()?,
            generator: (clients > 0).then(Monitor::own).flatten(),
            plan: Arc::new(plan),
            machines,
            machine: assignment.machine,
            wired,
            local: None,
            ramp_start_ns: 0,
            timeline: None,
            next_second_ns: u64::MAX,
        };
        load.read(Moment::Start, 0, say);
        Ok(load)
    }

    /// Clients of this machine, and threads for them.
    pub(super) fn size(&self) -> (u32, u32) {
        let clients = self.machines.clients_of(&self.plan, self.machine);
        let threads = self.machines.threads().get(self.machine);
        (clients, threads.copied().unwrap_or(0))
    }

    /// The scenario's name.
    pub(super) fn name(&self) -> &str {
        &self.plan.scenario.name
    }

    /// Starts the threads, which open the first connection at this time of the coordinator's clock.
    pub(super) fn go(&mut self, ramp_start_ns: u64, clock_offset_ns: i64) -> io::Result<()> {
        self.ramp_start_ns = ramp_start_ns;
        self.next_second_ns = ramp_start_ns + SECOND_NS;
        let (_, threads) = self.size();
        let setup = GeneratorSetup {
            first_thread: self.machines.first_thread(self.machine),
            threads,
            machines: self.machines.clone(),
            targets: Arc::clone(&self.wired.setups),
            target_of_group: Arc::clone(&self.wired.target_of_group),
            clock_offset_ns,
            ramp_start_ns,
        };
        if threads > 0 {
            self.local = Some(Box::new(LocalGenerator::start(&self.plan, &setup)?));
        }
        Ok(())
    }

    /// Whether the times of the load are set.
    pub(super) const fn has_times(&self) -> bool {
        self.timeline.is_some()
    }

    pub(super) fn order(&mut self, timeline: Timeline, warp: &Warp) {
        self.timeline = Some(timeline);
        if let Some(local) = &mut self.local {
            local.order(timeline, warp);
        }
    }

    /// Marks the begin or end of a stage.
    pub(super) fn mark(&mut self, moment: Moment, now_ns: u64, say: &mut dyn FnMut(FromAgent)) {
        if let Some(generator) = &mut self.generator {
            mark(generator, moment);
        }
        if let Some(local) = &mut self.local {
            local.mark(moment);
        }
        self.read(moment, now_ns, say);
    }

    /// Progress of the clients; none without clients.
    pub(super) fn progress(&self) -> Option<Progress> {
        self.local.as_ref().map(|local| local.progress())
    }

    /// Hands over complete seconds; `now_ns` is of the coordinator's clock.
    pub(super) fn look(
        &mut self,
        now_ns: u64,
        say: &mut dyn FnMut(FromAgent),
    ) -> Result<(), RunError> {
        if let Some(local) = &mut self.local {
            local.check()?;
            local.take_slices(&mut |slice| {
                say(FromAgent::Slice(Box::new(WireSlice::new(slice))));
            });
        }
        if now_ns < self.next_second_ns {
            return Ok(());
        }
        let at_ns = self.next_second_ns - 1;
        if let Some(resources) = self.generator.as_mut().and_then(Monitor::sample) {
            say(FromAgent::Used { at_ns, resources });
        }
        self.read(Moment::Second, at_ns, say);
        (_, self.next_second_ns) = page(self.ramp_start_ns, self.timeline, now_ns);
        Ok(())
    }

    /// Ends the clients and reports what they counted.
    pub(super) fn finish(
        &mut self,
        estimate: &ClockEstimate,
        say: &mut dyn FnMut(FromAgent),
    ) -> Result<(), RunError> {
        // The last message has arrived: later clock drift does not matter.
        let clock = Clock {
            offset_ns: estimate.offset_ns(),
            error_ns: estimate.error_ns_until(clock::monotonic_ns()),
        };
        let (mut threads, mut loads, mut ready) = (Vec::new(), Vec::new(), 0);
        if let Some(local) = self.local.take() {
            ready = local.progress().ready;
            let report = local.finish(&mut |slice| {
                say(FromAgent::Slice(Box::new(WireSlice::new(slice))));
            })?;
            (threads, loads) = (report.threads, report.generator.threads);
        }
        let mut counts = Counts::default();
        for thread in &threads {
            counts.merge(&thread.counts);
        }
        self.next_second_ns = u64::MAX;
        self.read(Moment::End, 0, say);
        let report = Report {
            threads,
            loads,
            usage: self.usage(&counts, ready),
            clients: u64::from(self.size().0),
            clock,
        };
        say(FromAgent::Report(Box::new(report)));
        Ok(())
    }

    /// Ends the clients without a report.
    pub(super) fn give_up(&mut self) {
        if let Some(local) = self.local.take() {
            // The run has failed already.
            local.finish(&mut |_| {}).ok();
        }
    }

    fn usage(&mut self, counts: &Counts, ready: u64) -> Option<Usage> {
        let in_and_out = counts.received_in_hold + counts.sent_in_hold;
        let generator = self.generator.as_mut()?;
        generator.usage(counts.received_in_hold, in_and_out, ready)
    }

    fn read(&mut self, moment: Moment, at_ns: u64, say: &mut dyn FnMut(FromAgent)) {
        for (watch, tree) in self.watched.iter_mut().enumerate() {
            let reading = Box::new(tree.read(moment));
            say(FromAgent::Reading {
                watch,
                pid: tree.root(),
                at_ns,
                reading,
            });
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.give_up();
    }
}
