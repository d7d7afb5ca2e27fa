//! The agents of a run as the coordinator knows them: their reports, and whether they are lost.

use std::collections::VecDeque;
use std::time::Duration;

use thrum_codec::QoS;
use thrum_figures::{SECOND_NS, span};
use thrum_report::result::Agent;
use thrum_transport::Endpoint;

use super::channel::{Channel, ChannelError, SILENCE_NS_MAX, unfragmented};
use super::control_connection::{
    ControlConnection, ControlError, ControlSetup, Incoming, Outgoing,
};
use super::message::{Announcement, Clock, FromAgent, Join, Refusal, Report, ToAgent, written};
use super::topic::{ANNOUNCEMENTS, Topics, agent_of, unique};
use super::used::Used;
use crate::clock;
use crate::monitor::UsageBuilder;
use crate::record::Slice;
use crate::run::RunError;
use crate::swarm::Progress;

/// Version that coordinator and agents must share.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Seconds of all threads of an agent that wait to be taken; the coordinator takes them fifty times
/// a second.
const SLICES_WAITING_MAX: usize = 16_384;

/// The agents of one run.
pub(crate) struct AgentRegistry {
    connection: ControlConnection,
    topics: Topics,
    session: String,
    wanted: usize,
    agents: Vec<RegisteredAgent>,
    uses: Vec<Used>,
    /// Notes for the user.
    notes: Vec<String>,
}

/// One agent.
pub(super) struct RegisteredAgent {
    id: String,
    pub(super) join: Join,
    channel: Channel,
    pub(super) clock: Option<Clock>,
    pub(super) is_prepared: bool,
    /// Time of the last message.
    heard_ns: u64,
    pub(super) progress: Progress,
    slices: VecDeque<Slice>,
    pub(super) report: Option<Report>,
    watched: Vec<Watched>,
    /// Why it is lost.
    trouble: Option<String>,
}

/// A process that an agent watches.
#[derive(Debug, Default)]
pub(super) struct Watched {
    pub(super) pid: u32,
    pub(super) usage: UsageBuilder,
    /// Whether it is the broker of the series.
    pub(super) is_shown: bool,
}

impl AgentRegistry {
    /// Connects to the control broker.
    pub(super) fn open(control: &Endpoint, wanted: usize) -> Result<Self, ControlError> {
        let session = unique();
        let topics = Topics::new(&session);
        let gone = unfragmented(&topics.all(), &ToAgent::Gone);
        let connection = ControlConnection::open(ControlSetup {
            endpoint: control,
            client_id: &format!("thrum-run-{session}"),
            will: Some((gone.topic, gone.payload)),
            filters: vec![topics.coordinator("+"), topics.ask("+")],
            pulse: Some(unfragmented(&topics.all(), &ToAgent::Alive)),
        })?;
        Ok(Self {
            connection,
            topics,
            session,
            wanted,
            agents: Vec::new(),
            uses: Vec::new(),
            notes: Vec::new(),
        })
    }

    /// Announces the run to idle agents.
    pub(super) fn announce(&self) -> Result<(), ControlError> {
        let announcement = Announcement {
            session: self.session.clone(),
            version: VERSION.to_owned(),
        };
        self.connection.send(Outgoing {
            topic: ANNOUNCEMENTS.to_owned(),
            payload: written(&announcement),
            qos: QoS::AtMostOnce,
        })
    }

    /// Handles all received messages; waits for the first one.
    pub(super) fn pump(&mut self, timeout: Duration) -> Result<(), ControlError> {
        let mut timeout = timeout;
        while let Some(incoming) = self.connection.receive(timeout)? {
            timeout = Duration::ZERO;
            self.handle(&incoming)?;
        }
        Ok(())
    }

    pub(super) fn agents(&self) -> &[RegisteredAgent] {
        &self.agents
    }

    pub(super) fn agent_mut(&mut self, agent: usize) -> &mut RegisteredAgent {
        &mut self.agents[agent]
    }

    pub(super) fn name(&self, agent: usize) -> &str {
        &self.agents[agent].join.name
    }

    pub(super) fn watched(&self, agent: usize, watch: usize) -> Option<&Watched> {
        self.agents.get(agent)?.watched.get(watch)
    }

    /// Selects a watched process as the broker of the series.
    pub(super) fn show(&mut self, agent: usize, watch: usize) {
        let watched = self.agents.get_mut(agent).map(|agent| &mut agent.watched);
        if let Some(watched) = watched.and_then(|watched| watched.get_mut(watch)) {
            watched.is_shown = true;
        }
    }

    pub(super) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    pub(super) fn take_uses(&mut self) -> Vec<Used> {
        std::mem::take(&mut self.uses)
    }

    pub(super) fn take_slices(&mut self, agent: usize) -> VecDeque<Slice> {
        std::mem::take(&mut self.agents[agent].slices)
    }

    /// Sends a message to an agent; the next check reports a failure.
    pub(super) fn say(&mut self, agent: usize, message: &ToAgent) {
        let Some(agent) = self.agents.get_mut(agent) else {
            return;
        };
        if let Err(error) = agent.channel.say(&self.connection, message) {
            agent.fail(format!("cannot receive orders: {error}"));
        }
    }

    /// Whether an agent is still there.
    pub(super) fn check(&self, agent: usize) -> Result<(), RunError> {
        let agent = &self.agents[agent];
        let silence_ns = clock::monotonic_ns().saturating_sub(agent.heard_ns);
        let why = match &agent.trouble {
            Some(trouble) => trouble.clone(),
            None if silence_ns > SILENCE_NS_MAX => {
                let limit = Duration::from_nanos(SILENCE_NS_MAX);
                format!("was silent for more than {}", span(limit))
            }
            None => return Ok(()),
        };
        Err(RunError::AgentLost {
            name: agent.join.name.clone(),
            why,
        })
    }

    /// Forgets agents that left before the run began.
    pub(super) fn dismiss_lost(&mut self) {
        for agent in (0..self.agents.len()).rev() {
            if let Err(error) = self.check(agent) {
                self.notes.push(format!("{error}; waiting for another one"));
                self.agents.remove(agent);
            }
        }
    }

    fn handle(&mut self, incoming: &Incoming) -> Result<(), ControlError> {
        let id = agent_of(&incoming.topic);
        let Some(agent) = self.agents.iter_mut().position(|agent| agent.id == id) else {
            return self.handle_unknown(incoming);
        };
        let sender = &mut self.agents[agent];
        sender.heard_ns = sender.heard_ns.max(incoming.at_ns);
        match sender.channel.take::<FromAgent>(incoming) {
            Ok((message, confirm)) => {
                if let Some((message_id, fragments)) = confirm {
                    let taken = ToAgent::Taken(message_id, fragments);
                    sender.channel.confirm(&self.connection, &taken)?;
                }
                if let Some(message) = message {
                    self.take(agent, message);
                }
            }
            Err(ChannelError::Control(error)) => return Err(error),
            Err(error) => sender.fail(error.to_string()),
        }
        Ok(())
    }

    /// Registers an unknown agent, unless it must be refused.
    fn handle_unknown(&mut self, incoming: &Incoming) -> Result<(), ControlError> {
        let id = agent_of(&incoming.topic).to_owned();
        let mut channel = Channel::new(self.topics.agent(&id));
        let Ok((Some(FromAgent::Join(join)), _)) = channel.take(incoming) else {
            return Ok(());
        };
        let names = self.agents.iter().map(|agent| agent.join.name.as_str());
        if let Some(refusal) = refusal(&join, names, self.wanted) {
            self.notes.extend(words(&join, &refusal));
            return channel.confirm(&self.connection, &ToAgent::Refused(refusal));
        }
        channel.confirm(&self.connection, &ToAgent::Welcome)?;
        let watched = join.watches.iter().map(|_| Watched::default()).collect();
        self.agents.push(RegisteredAgent {
            id,
            join: *join,
            channel,
            clock: None,
            is_prepared: false,
            heard_ns: incoming.at_ns,
            progress: Progress::default(),
            slices: VecDeque::new(),
            report: None,
            watched,
            trouble: None,
        });
        Ok(())
    }

    fn take(&mut self, number: usize, message: FromAgent) {
        let agent = &mut self.agents[number];
        match message {
            FromAgent::Join(_) | FromAgent::Alive => {}
            FromAgent::Synced(clock) => agent.clock = Some(clock),
            FromAgent::Prepared => agent.is_prepared = true,
            FromAgent::Progress(progress) => agent.progress = progress,
            FromAgent::Used { at_ns, resources } => self.uses.push(Used {
                at_ns,
                broker: None,
                generator: Some(resources),
            }),
            FromAgent::Slice(slice) => match slice.slice() {
                Some(slice) if agent.slices.len() < SLICES_WAITING_MAX => {
                    agent.slices.push_back(slice);
                }
                Some(_) => agent.fail("sends more seconds than the coordinator accepts".to_owned()),
                None => agent.fail("sent unreadable histograms".to_owned()),
            },
            FromAgent::Reading {
                watch,
                pid,
                at_ns,
                reading,
            } => {
                let Some(watched) = agent.watched.get_mut(watch) else {
                    return;
                };
                watched.pid = pid;
                let used = watched.usage.enter(&reading);
                if let Some(used) = used.filter(|_| watched.is_shown) {
                    self.uses.push(Used {
                        at_ns,
                        broker: Some(used),
                        generator: None,
                    });
                }
            }
            FromAgent::Report(report) => {
                agent.clock = Some(report.clock);
                agent.report = Some(*report);
            }
            FromAgent::Failed(why) => agent.fail(format!("failed: {why}")),
            FromAgent::Taken(message_id, fragments) => {
                if let Err(error) = agent
                    .channel
                    .confirmed(&self.connection, message_id, fragments)
                {
                    agent.fail(format!("cannot receive orders: {error}"));
                }
            }
            FromAgent::Gone => {
                agent.fail("is gone: its connection to the control broker ended".to_owned());
            }
        }
    }
}

impl RegisteredAgent {
    /// Keeps the first failure, which is the cause of the others.
    fn fail(&mut self, why: String) {
        self.trouble.get_or_insert(why);
    }

    /// Its description for the report.
    pub(super) fn describe(&self, clients: u64) -> Agent {
        let clock = self.clock.unwrap_or_default();
        Agent {
            name: self.join.name.clone(),
            machine: self.join.machine.clone(),
            clients,
            clock_offset_ns: clock.offset_ns.saturating_neg(),
            clock_error_ns: clock.error_ns,
            ..Agent::default()
        }
    }
}

/// Why an agent is refused, given the agents with these names.
fn refusal<'a>(
    join: &Join,
    names: impl ExactSizeIterator<Item = &'a str>,
    wanted: usize,
) -> Option<Refusal> {
    if join.version != VERSION {
        return Some(Refusal::Version(VERSION.to_owned()));
    }
    let is_full = names.len() >= wanted;
    let mut names = names;
    if names.any(|name| name == join.name) {
        return Some(Refusal::Name);
    }
    is_full.then_some(Refusal::Full)
}

/// The note for the user; none about a surplus agent, which waits for the next run.
fn words(join: &Join, refusal: &Refusal) -> Option<String> {
    let (name, version) = (&join.name, &join.version);
    match refusal {
        Refusal::Full => None,
        Refusal::Version(ours) => Some(format!(
            "agent '{name}' is thrum {version}, this is {ours}: it is not used"
        )),
        Refusal::Name => Some(format!(
            "a second agent has the name '{name}': it is not used"
        )),
    }
}

impl Drop for AgentRegistry {
    fn drop(&mut self) {
        // An agent that misses it detects the silence.
        self.connection
            .send(unfragmented(&self.topics.all(), &ToAgent::End))
            .ok();
    }
}

/// Delay until a change takes effect, so that the order reaches every agent before.
pub(crate) const ORDER_DELAY_NS: u64 = SECOND_NS;

#[cfg(test)]
mod tests {
    use super::*;

    fn join(name: &str, version: &str) -> Join {
        Join {
            version: version.to_owned(),
            name: name.to_owned(),
            threads: 1,
            watches: Vec::new(),
            machine: thrum_report::result::Machine::default(),
        }
    }

    #[test]
    fn an_agent_takes_part_if_it_fits() {
        let names = || ["left", "right"].into_iter();
        assert_eq!(refusal(&join("third", VERSION), names(), 3), None);
        let refused = |name, version, wanted| refusal(&join(name, version), names(), wanted);
        assert_eq!(refused("left", VERSION, 3), Some(Refusal::Name));
        assert_eq!(refused("third", VERSION, 2), Some(Refusal::Full));
        let version = Refusal::Version(VERSION.to_owned());
        assert_eq!(refused("third", "0.0.1", 3), Some(version));
    }

    #[test]
    fn the_user_gets_a_note_about_different_versions() {
        let old = join("left", "0.0.1");
        let told = words(&old, &Refusal::Version("0.1.0".to_owned())).unwrap();
        assert_eq!(
            told,
            "agent 'left' is thrum 0.0.1, this is 0.1.0: it is not used"
        );
        assert_eq!(words(&old, &Refusal::Full), None);
    }
}
