//! An agent as the coordinator sees it: a crew.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use thrum_report::result::Generator;

use super::company::AgentsError;
use super::hub::Hub;
use super::message::ToAgent;
use crate::clock;
use crate::crew::{Crew, CrewReport};
use crate::monitor::Moment;
use crate::pacing::Warp;
use crate::record::Slice;
use crate::run::RunError;
use crate::swarm::{Progress, Timeline};
use crate::units::SECOND_NS;

/// How long an agent may take from the order to stop to its report: it closes and writes down
/// millions of clients.
const REPORT_NS_MAX: u64 = 300 * SECOND_NS;

/// How long to wait for letters at a time.
const LISTEN: Duration = Duration::from_millis(20);

/// One agent.
pub(super) struct RemoteCrew {
    hub: Rc<RefCell<Hub>>,
    seat: usize,
    is_stopped: bool,
}

impl RemoteCrew {
    pub(super) const fn new(hub: Rc<RefCell<Hub>>, seat: usize) -> Self {
        Self {
            hub,
            seat,
            is_stopped: false,
        }
    }

    fn say(&self, message: &ToAgent) {
        self.hub.borrow_mut().say(self.seat, message);
    }

    fn listen(&self, timeout: Duration) -> Result<(), RunError> {
        let mut hub = self.hub.borrow_mut();
        hub.pump(timeout).map_err(AgentsError::from)?;
        hub.check(self.seat)
    }
}

impl Crew for RemoteCrew {
    fn progress(&self) -> Progress {
        self.hub.borrow_mut().seat(self.seat).progress
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
        let slices = self.hub.borrow_mut().take_slices(self.seat);
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

    fn finish(mut self: Box<Self>, take: &mut dyn FnMut(&Slice)) -> Result<CrewReport, RunError> {
        self.stop();
        let began_ns = clock::monotonic_ns();
        let report = loop {
            let report = self.hub.borrow_mut().seat(self.seat).report.take();
            if let Some(report) = report {
                break report;
            }
            self.listen(LISTEN)?;
            self.take_slices(take);
            if clock::monotonic_ns().saturating_sub(began_ns) > REPORT_NS_MAX {
                return Err(AgentsError::Late {
                    name: self.hub.borrow().name(self.seat).to_owned(),
                    limit: Duration::from_nanos(REPORT_NS_MAX),
                }
                .into());
            }
        };
        self.take_slices(take);
        let agent = self.hub.borrow_mut().seat(self.seat).agent(report.clients);
        Ok(CrewReport {
            threads: report.threads,
            generator: Generator {
                threads: report.loads,
                usage: report.usage,
            },
            agent: Some(agent),
        })
    }
}
