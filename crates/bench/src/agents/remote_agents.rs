//! Gathers the agents of a run, sends them the scenario, and starts them on one clock.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thrum_figures::{SECOND_NS, span};
use thrum_load::plan::{Machines, Plan};
use thrum_transport::Endpoint;

use super::control_connection::ControlError;
use super::message::{Assignment, ToAgent, WireTarget};
use super::registry::AgentRegistry;
use super::remote_generator::RemoteGenerator;
use super::used::Used;
use super::watch::{BrokerWatch, Distant};
use crate::clock;
use crate::generator::LoadGenerator;
use crate::run::{RunError, THREADS_MAX, Target};

/// Most agents of a run.
pub const AGENTS_MAX: u32 = 64;

/// Longest wait for agents to join.
const JOIN_NS_MAX: u64 = 60 * SECOND_NS;

/// Longest time for clock measurement.
const SYNC_NS_MAX: u64 = 30 * SECOND_NS;

/// Longest time to plan the scenario and to reach the brokers: minutes for millions of clients.
const PREPARE_NS_MAX: u64 = 180 * SECOND_NS;

/// Interval of announcements while agents are missing.
const ANNOUNCE_NS: u64 = SECOND_NS / 2;

/// Longest single wait for messages.
const LISTEN: Duration = Duration::from_millis(50);

/// The other machines of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentsWanted {
    /// The broker of coordinator and agents.
    pub control: Endpoint,
    /// Number of agents, including those that only watch.
    pub count: u32,
}

/// Why a run with agents does not begin.
#[derive(Debug, thiserror::Error)]
pub enum AgentsError {
    /// An invalid number of agents.
    #[error("{0} agents are not possible: give 1 to {AGENTS_MAX}")]
    Count(u32),
    /// The control broker cannot be used.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Agents are missing.
    #[error(
        "only {joined} of {wanted} agents joined within {}: start each with `thrum bench agent --control {control}`",
        span(Duration::from_nanos(JOIN_NS_MAX))
    )]
    Missing {
        /// Agents that joined.
        joined: usize,
        /// Required number of agents.
        wanted: u32,
        /// The control broker.
        control: String,
    },
    /// An agent joined but is not ready.
    #[error("agent '{name}' was not ready within {}", span(*limit))]
    Late {
        /// Its name.
        name: String,
        /// Its time limit.
        limit: Duration,
    },
    /// All agents only watch.
    #[error(
        "none of the agents generates load: start one without --watch, or with --threads as well"
    )]
    NoLoad,
    /// More threads than a run can have.
    #[error(
        "the agents have {0} threads, more than the {THREADS_MAX} of a run: give some of them --threads"
    )]
    Threads(u32),
    /// Interrupted from outside.
    #[error("interrupted while waiting for agents")]
    Interrupted,
}

/// The agents of a run.
pub(crate) struct RemoteAgents {
    registry: Rc<RefCell<AgentRegistry>>,
    machines: Machines,
}

impl RemoteAgents {
    /// Waits until all agents have joined and measured their clocks.
    ///
    /// # Errors
    /// An agent is missing, or the control broker cannot be used.
    pub(crate) fn gather(
        wanted: &AgentsWanted,
        interrupt: &AtomicBool,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, RunError> {
        if !(1..=AGENTS_MAX).contains(&wanted.count) {
            return Err(AgentsError::Count(wanted.count).into());
        }
        let count = thrum_figures::as_index(wanted.count);
        let control = wanted.control.to_string();
        let mut registry =
            AgentRegistry::open(&wanted.control, count).map_err(AgentsError::from)?;
        note(&format!(
            "waiting for {} agents: start each with `thrum bench agent --control {control}`",
            wanted.count
        ));
        let began_ns = clock::monotonic_ns();
        let (mut announced_ns, mut joined) = (0, 0);
        while registry.agents().len() < count {
            let now_ns = clock::monotonic_ns();
            if interrupt.load(Ordering::Relaxed) {
                return Err(AgentsError::Interrupted.into());
            }
            if now_ns.saturating_sub(began_ns) > JOIN_NS_MAX {
                return Err(AgentsError::Missing {
                    joined: registry.agents().len(),
                    wanted: wanted.count,
                    control,
                }
                .into());
            }
            if now_ns.saturating_sub(announced_ns) >= ANNOUNCE_NS {
                announced_ns = now_ns;
                registry.announce().map_err(AgentsError::from)?;
            }
            registry.pump(LISTEN).map_err(AgentsError::from)?;
            registry.dismiss_lost();
            registry.take_notes().iter().for_each(|text| note(text));
            joined = joined.min(registry.agents().len());
            for agent in joined..registry.agents().len() {
                note(&joined_text(&registry, agent));
            }
            joined = registry.agents().len();
        }
        let threads: Vec<u32> = registry
            .agents()
            .iter()
            .map(|agent| agent.join.threads)
            .collect();
        let agents = Self {
            machines: Machines::new(&threads),
            registry: Rc::new(RefCell::new(registry)),
        };
        match threads.iter().sum() {
            0 => return Err(AgentsError::NoLoad.into()),
            1..=THREADS_MAX => {}
            too_many => return Err(AgentsError::Threads(too_many).into()),
        }
        agents.wait(interrupt, SYNC_NS_MAX, |registry, agent| {
            registry.agent_mut(agent).clock.is_some()
        })?;
        Ok(agents)
    }

    /// Sends the run to all agents and waits until they are ready.
    ///
    /// # Errors
    /// An agent cannot run it.
    pub(crate) fn prepare(
        &self,
        plan: &Plan,
        targets: &[Target],
        interrupt: &AtomicBool,
    ) -> Result<(), RunError> {
        let agents = self.registry.borrow().agents().len();
        for agent in 0..agents {
            let assignment = Assignment {
                scenario: plan.scenario.clone(),
                run_tag: plan.run_tag.clone(),
                targets: targets.iter().map(WireTarget::new).collect(),
                machine: agent,
                threads: self.machines.threads().to_vec(),
            };
            let prepare = ToAgent::Prepare(Box::new(assignment));
            self.registry.borrow_mut().say(agent, &prepare);
        }
        self.wait(interrupt, PREPARE_NS_MAX, |registry, agent| {
            registry.agent_mut(agent).is_prepared
        })
    }

    /// Threads of all agents.
    pub(crate) fn threads(&self) -> u32 {
        self.machines.threads().iter().sum()
    }

    /// Starts all agents at a time of this machine's clock.
    pub(crate) fn start(&self, ramp_start_ns: u64) -> Vec<Box<dyn LoadGenerator>> {
        let mut registry = self.registry.borrow_mut();
        let agents = 0..registry.agents().len();
        agents
            .map(|agent| {
                registry.say(agent, &ToAgent::Go { ramp_start_ns });
                let generator = RemoteGenerator::new(Rc::clone(&self.registry), agent);
                Box::new(generator) as Box<dyn LoadGenerator>
            })
            .collect()
    }

    /// The agent that watches the broker of a target, if there is one; a watch without a name is
    /// the first target's.
    pub(crate) fn watch(&self, number: usize, target: &Target) -> Option<BrokerWatch> {
        let mut registry = self.registry.borrow_mut();
        let is_of_target = |name: &String| *name == target.name || (number == 0 && name.is_empty());
        let found = registry
            .agents()
            .iter()
            .enumerate()
            .find_map(|(agent, of)| {
                let watch = of.join.watches.iter().position(is_of_target)?;
                Some((agent, watch))
            });
        let (agent, watch) = found?;
        if number == 0 {
            registry.show(agent, watch);
        }
        drop(registry);
        Some(BrokerWatch::There(Distant {
            registry: Rc::clone(&self.registry),
            agent,
            watch,
        }))
    }

    /// Resource use of the seconds that have ended.
    pub(crate) fn take_uses(&self) -> Vec<Used> {
        self.registry.borrow_mut().take_uses()
    }

    /// Largest error of latencies between two machines; 0 if no client receives from another
    /// machine.
    pub(crate) fn clock_error_ns(&self, plan: &Plan) -> u64 {
        if !plan.crosses(&self.machines) {
            return 0;
        }
        let registry = self.registry.borrow();
        let at_work = registry
            .agents()
            .iter()
            .filter(|agent| agent.join.threads > 0);
        let mut errors: Vec<u64> = at_work
            .filter_map(|agent| Some(agent.clock?.error_ns))
            .collect();
        errors.sort_unstable();
        errors.iter().rev().take(2).sum()
    }

    fn wait(
        &self,
        interrupt: &AtomicBool,
        limit_ns: u64,
        is_ready: impl Fn(&mut AgentRegistry, usize) -> bool,
    ) -> Result<(), RunError> {
        let began_ns = clock::monotonic_ns();
        loop {
            let mut registry = self.registry.borrow_mut();
            registry.pump(LISTEN).map_err(AgentsError::from)?;
            let agents = 0..registry.agents().len();
            for agent in agents.clone() {
                registry.check(agent)?;
            }
            let late = agents
                .clone()
                .find(|agent| !is_ready(&mut registry, *agent));
            let Some(late) = late else { return Ok(()) };
            if interrupt.load(Ordering::Relaxed) {
                return Err(AgentsError::Interrupted.into());
            }
            if clock::monotonic_ns().saturating_sub(began_ns) > limit_ns {
                return Err(AgentsError::Late {
                    name: registry.name(late).to_owned(),
                    limit: Duration::from_nanos(limit_ns),
                }
                .into());
            }
        }
    }
}

fn joined_text(registry: &AgentRegistry, agent: usize) -> String {
    let join = &registry.agents()[agent].join;
    let does = match (join.threads, join.watches.len()) {
        (0, _) => "watches the broker".to_owned(),
        (threads, 0) => format!("{threads} threads"),
        (threads, _) => format!("{threads} threads, watches the broker"),
    };
    format!("agent '{}' is here: {does}", join.name)
}
