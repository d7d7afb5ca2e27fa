//! Resources of a broker, measured by this machine's kernel or by an agent on the broker's host.

use std::cell::RefCell;
use std::rc::Rc;

use thrum_report::result::{Broker, Resources, Usage};

use super::registry::AgentRegistry;
use crate::monitor::{Moment, Monitor, ProcessTree, Work, listening_process};
use crate::run::Target;

/// A process for an agent to watch, written `[TARGET=]PORT` or `[TARGET=]PID`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Name of the target in the scenario whose broker it is; empty for the first one.
    pub target: String,
    /// The port that it listens on, or its number.
    pub port_or_pid: u32,
}

impl Watch {
    /// Reads `1883`, `4711` or `left=1883`; none if that is not a number.
    pub fn parse(text: &str) -> Option<Self> {
        let (target, number) = text.split_once('=').unwrap_or(("", text));
        Some(Self {
            target: target.to_owned(),
            port_or_pid: number.parse().ok().filter(|number| *number > 0)?,
        })
    }

    /// The process and its children; none if no process has this port or number.
    pub(super) fn tree(&self) -> Option<ProcessTree> {
        let port = u16::try_from(self.port_or_pid).ok();
        if let Some(port) = port.filter(|port| listening_process(*port).is_some()) {
            return ProcessTree::listening_on(port);
        }
        let mut tree = ProcessTree::new(self.port_or_pid);
        tree.memory().is_some().then_some(tree)
    }
}

/// Source of a broker's resource use.
pub(crate) enum BrokerWatch {
    /// This machine's kernel.
    Here(Box<Monitor>),
    /// An agent.
    There(Distant),
}

/// A process that an agent watches.
pub(crate) struct Distant {
    pub(super) registry: Rc<RefCell<AgentRegistry>>,
    pub(super) agent: usize,
    pub(super) watch: usize,
}

impl BrokerWatch {
    /// Marks the begin or end of a stage; an agent is told of it through its generator.
    pub(crate) fn mark(&mut self, moment: Moment) {
        if let Self::Here(monitor) = self {
            mark(monitor, moment);
        }
    }

    /// The use of the last second; an agent's seconds arrive later.
    pub(crate) fn sample(&mut self) -> Option<Resources> {
        match self {
            Self::Here(monitor) => monitor.sample(),
            Self::There(_) => None,
        }
    }

    /// The sum of it all.
    pub(crate) fn usage(&mut self, work: Work) -> Option<Usage> {
        match self {
            Self::Here(monitor) => monitor.usage(
                work.messages_received,
                work.messages_in_and_out,
                work.connections,
            ),
            Self::There(distant) => {
                let registry = distant.registry.borrow();
                registry
                    .watched(distant.agent, distant.watch)?
                    .usage
                    .usage(work)
            }
        }
    }

    /// Describes the broker; its use is added at the end.
    pub(crate) fn broker(&self, target: &Target) -> Broker {
        Broker {
            target: target.name.clone(),
            version: target.version.clone(),
            configuration: target.configuration.clone(),
            host: self.host(),
            pid: self.pid(),
            usage: Usage::default(),
        }
    }

    /// Its process.
    fn pid(&self) -> u32 {
        match self {
            Self::Here(monitor) => monitor.pid(),
            Self::There(distant) => {
                let registry = distant.registry.borrow();
                let watched = registry.watched(distant.agent, distant.watch);
                watched.map_or(0, |watched| watched.pid)
            }
        }
    }

    /// The name of the agent that watches it; empty for this machine.
    fn host(&self) -> String {
        match self {
            Self::Here(_) => String::new(),
            Self::There(distant) => distant.registry.borrow().name(distant.agent).to_owned(),
        }
    }
}

/// Reads what belongs to a moment.
pub(crate) fn mark(monitor: &mut Monitor, moment: Moment) {
    match moment {
        Moment::Connected => monitor.mark_connected(),
        Moment::IdleEnd => monitor.mark_idle_end(),
        Moment::HoldStart => monitor.begin_hold(),
        Moment::HoldEnd => monitor.end_hold(),
        // The monitor handles these when it is made, sampled and summed.
        Moment::Start | Moment::Second | Moment::End => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_is_parsed_with_and_without_target() {
        let watch = |target: &str, port_or_pid| {
            Some(Watch {
                target: target.to_owned(),
                port_or_pid,
            })
        };
        assert_eq!(Watch::parse("1883"), watch("", 1883));
        assert_eq!(Watch::parse("left=70000"), watch("left", 70_000));
        for text in ["", "0", "left", "left=", "-1", "a=b=1"] {
            assert_eq!(Watch::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_process_is_found_by_its_port_and_by_its_number() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = u32::from(listener.local_addr().unwrap().port());
        for port_or_pid in [port, std::process::id()] {
            let watch = Watch {
                target: String::new(),
                port_or_pid,
            };
            assert_eq!(watch.tree().unwrap().root(), std::process::id());
        }
        let no_process = Watch {
            target: String::new(),
            port_or_pid: u32::MAX,
        };
        assert!(no_process.tree().is_none());
    }
}
