//! An agent as a load generator of the coordinator.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use thrum_figures::SECOND_NS;
use thrum_load::pacing::Warp;
use thrum_report::result::Generator;

use super::message::ToAgent;
use super::registry::AgentRegistry;
use super::remote_agents::AgentsError;
use crate::clock;
use crate::generator::{GeneratorReport, LoadGenerator};
use crate::monitor::Moment;
use crate::record::Slice;
use crate::run::RunError;
use crate::swarm::{Progress, Timeline};

/// Longest time from the stop order to an agent's report: the agent closes and reports millions of
/// clients.
const REPORT_NS_MAX: u64 = 300 * SECOND_NS;

/// Longest single wait for messages.
const LISTEN: Duration = Duration::from_millis(20);

/// One agent.
pub(super) struct RemoteGenerator {
    registry: Rc<RefCell<AgentRegistry>>,
    agent: usize,
    is_stopped: bool,
}

impl RemoteGenerator {
    pub(super) const fn new(registry: Rc<RefCell<AgentRegistry>>, agent: usize) -> Self {
        Self {
            registry,
            agent,
            is_stopped: false,
        }
    }

    fn say(&self, message: &ToAgent) {
        self.registry.borrow_mut().say(self.agent, message);
    }

    fn listen(&self, timeout: Duration) -> Result<(), RunError> {
        let mut registry = self.registry.borrow_mut();
        registry.pump(timeout).map_err(AgentsError::from)?;
        registry.check(self.agent)
    }
}

impl LoadGenerator for RemoteGenerator {
    fn progress(&self) -> Progress {
        self.registry.borrow_mut().agent_mut(self.agent).progress
    }

    fn order(&mut self, timeline: Timeline, warp: &Warp) {
        self.say(&ToAgent::Order {
            said_ns: clock::monotonic_ns(),
            timeline,
            warp: warp.clone(),
        });
    }

    fn mark(&mut self, moment: Moment) {
        self.say(&ToAgent::Mark(moment));
    }

    fn take_slices(&mut self, take: &mut dyn FnMut(&Slice)) {
        let slices = self.registry.borrow_mut().take_slices(self.agent);
        slices.iter().for_each(take);
    }

    fn check(&mut self) -> Result<(), RunError> {
        self.listen(Duration::ZERO)
    }

    fn stop(&mut self) {
        if !self.is_stopped {
            self.is_stopped = true;
            self.say(&ToAgent::Stop);
        }
    }

    fn finish(
        mut self: Box<Self>,
        take: &mut dyn FnMut(&Slice),
    ) -> Result<GeneratorReport, RunError> {
        self.stop();
        let began_ns = clock::monotonic_ns();
        let report = loop {
            let report = self
                .registry
                .borrow_mut()
                .agent_mut(self.agent)
                .report
                .take();
            if let Some(report) = report {
                break report;
            }
            self.listen(LISTEN)?;
            self.take_slices(take);
            if clock::monotonic_ns().saturating_sub(began_ns) > REPORT_NS_MAX {
                return Err(AgentsError::Late {
                    name: self.registry.borrow().name(self.agent).to_owned(),
                    limit: Duration::from_nanos(REPORT_NS_MAX),
                }
                .into());
            }
        };
        self.take_slices(take);
        let agent = self
            .registry
            .borrow_mut()
            .agent_mut(self.agent)
            .describe(report.clients);
        Ok(GeneratorReport {
            threads: report.threads,
            generator: Generator {
                threads: report.loads,
                usage: report.usage,
            },
            agent: Some(agent),
        })
    }
}
