//! What would happen to a packet of a client, found out without doing it.
//!
//! The worker of the client takes the steps up to the receivers; then every worker tells its own
//! receivers, and the names of chosen members of shared groups.

use std::sync::Arc;

use thrum_codec::QoS;
use thrum_protocol::server::DropReason;
use thrum_protocol::{Message, Publication};

use super::QueryError;
use super::sender::QuerySender;
use super::tasks::{TaskProgress, WorkerTask};
use crate::traffic::Traffic;
use thrum_engine::explain::{
    Foreseen, GroupReceiver, PublishAsked, PublishExplained, QueueState, RECEIVERS_MAX,
    ReceiverSearch, Receivers, SessionReceiver, Step, SubscribeAsked, SubscribeExplained,
    explain_groups, explain_publish, explain_subscribe, foresee, queue_state,
};
use thrum_engine::interest::SessionRef;

/// Units of the steps up to the receivers.
const STEPS_UNITS: u64 = 64;
/// Units of a receiver that is listed.
const RECEIVER_UNITS: u64 = 8;
/// Subscriptions that are looked at before the time of the turn is: one takes up to a unit, the
/// first hundred more.
const SUBSCRIPTIONS_OF_PORTION: usize = 128;
/// Bytes of the payload that queues are asked about: a larger one finds as much room.
const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;

/// A PUBLISH that a client might send.
#[derive(Clone, Debug)]
pub struct PublishQuestion {
    /// Client identifier.
    pub client_id: String,
    /// The topic as the client writes it.
    pub topic: String,
    /// Quality of service.
    pub qos: QoS,
    /// It is to be retained.
    pub retain: bool,
    /// Bytes of the payload.
    pub payload_bytes: usize,
}

/// What would happen to a PUBLISH.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishAnswer {
    /// The steps up to the receivers; the last one may refuse it.
    pub steps: Vec<Step>,
    /// The topic by which receivers are found, with the mount point; none if it is refused.
    pub topic: Option<Box<str>>,
    /// Reasons why the client is slowed or not read now, in words.
    pub limited: Vec<&'static str>,
    /// Sessions that it matches.
    pub receivers: Vec<SessionReceiver>,
    /// Sessions beyond them, which are not listed.
    pub more_receivers: usize,
    /// Subscriptions that it matches, of all these sessions: one may have several.
    pub subscriptions: usize,
    /// Shared groups that it matches.
    pub groups: Vec<GroupAnswer>,
}

/// A shared group that a PUBLISH matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupAnswer {
    /// The filter, with `$share/GROUP/`.
    pub filter: Box<str>,
    /// How members are chosen: a value of `shared.strategy`.
    pub strategy: &'static str,
    /// Members.
    pub members: usize,
    /// Members whose clients are connected.
    pub online: usize,
    /// Client identifier of the member that gets the next message of this client; none if that is
    /// left to chance.
    pub next: Option<Box<str>>,
    /// The queue of that member has room; else another member with room gets it.
    pub has_room: bool,
}

/// A filter that a client might subscribe to.
#[derive(Clone, Debug)]
pub struct SubscribeQuestion {
    /// Client identifier.
    pub client_id: String,
    /// The filter as the client writes it.
    pub filter: String,
    /// Quality of service.
    pub qos: QoS,
}

/// Which messages a client did not get, and what would happen to the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropsAnswer {
    /// Its queue and window.
    pub queue: QueueState,
    /// What its session would do now with a small message of QoS 0, 1 and 2.
    pub now: [Foreseen; 3],
    /// Messages that it did not get since its session began, or since the start of the broker, by
    /// reason.
    pub dropped: Vec<(DropReason, u64)>,
    /// Reasons why it is slowed or not read now, in words.
    pub limited: Vec<&'static str>,
}

/// See [`Queries::explain_publish`](super::Queries::explain_publish).
pub(super) fn publish(
    sender: &QuerySender,
    question: &PublishQuestion,
) -> Result<Option<PublishAnswer>, QueryError> {
    let question = Arc::new(question.clone());
    let first = sender.query_all(|| FirstSteps(Arc::clone(&question)))?;
    let Some(first) = first.into_iter().flatten().next() else {
        return Ok(None);
    };
    let mut answer = PublishAnswer {
        steps: first.explained.steps,
        topic: first.explained.topic,
        limited: first.limited,
        receivers: Vec::new(),
        more_receivers: 0,
        subscriptions: 0,
        groups: Vec::new(),
    };
    let Some(topic) = &answer.topic else {
        return Ok(Some(answer));
    };
    let about = Arc::new(About {
        message: message(topic, &question),
        publisher: first.publisher,
        members: first.groups.iter().filter_map(|group| group.next).collect(),
    });
    let mut names = Vec::new();
    for found in sender.query_all(|| FindReceivers::new(&about))? {
        answer.receivers.extend(found.receivers.sessions);
        answer.more_receivers += found.receivers.more;
        answer.subscriptions += found.receivers.subscriptions;
        names.extend(found.names);
    }
    let receivers = &mut answer.receivers;
    receivers.sort_by(|one, other| one.client_id.cmp(&other.client_id));
    answer.more_receivers += receivers.len().saturating_sub(RECEIVERS_MAX);
    receivers.truncate(RECEIVERS_MAX);
    answer.groups = first
        .groups
        .into_iter()
        .map(|group| group_answer(group, &names))
        .collect();
    Ok(Some(answer))
}

/// See [`Queries::explain_subscribe`](super::Queries::explain_subscribe).
pub(super) fn subscribe(
    sender: &QuerySender,
    question: &SubscribeQuestion,
) -> Result<Option<SubscribeExplained>, QueryError> {
    let question = Arc::new(question.clone());
    let answers = sender.query_all(|| Filter(Arc::clone(&question)))?;
    Ok(answers.into_iter().flatten().next())
}

/// See [`Queries::explain_drops`](super::Queries::explain_drops).
pub(super) fn drops(
    sender: &QuerySender,
    client_id: &str,
) -> Result<Option<DropsAnswer>, QueryError> {
    let answers = sender.query_all(|| Drops(client_id.into()))?;
    Ok(answers.into_iter().flatten().next())
}

fn message(topic: &str, question: &PublishQuestion) -> Message {
    let payload = vec![0; question.payload_bytes.min(PAYLOAD_BYTES_MAX)];
    Message::new(&Publication {
        retain: question.retain,
        ..Publication::new(topic, &payload, question.qos)
    })
}

fn group_answer(group: GroupReceiver, names: &[Name]) -> GroupAnswer {
    let next = group.next.and_then(|member| {
        let named = names.iter().find(|name| name.session == member.id);
        named.map(|name| name.client_id.clone())
    });
    GroupAnswer {
        filter: group.filter,
        strategy: group.strategy.name(),
        members: group.members,
        online: group.online,
        next,
        has_room: group.has_room,
    }
}

/// What the worker of the client knows.
#[derive(Debug)]
pub(crate) struct FirstStepsTaken {
    explained: PublishExplained,
    publisher: u64,
    groups: Vec<GroupReceiver>,
    limited: Vec<&'static str>,
}

/// The steps up to the receivers.
#[derive(Debug)]
struct FirstSteps(Arc<PublishQuestion>);

impl WorkerTask for FirstSteps {
    type Answer = Option<FirstStepsTaken>;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<Self::Answer> {
        let question = &*self.0;
        traffic.engine.core.turn.work += STEPS_UNITS;
        let Traffic { edge, engine, .. } = &*traffic;
        let Some(slot) = engine.core.sessions.find(&question.client_id) else {
            return TaskProgress::Done(None);
        };
        let asked = PublishAsked {
            topic: &question.topic,
            qos: question.qos,
            retain: question.retain,
            payload_bytes: question.payload_bytes,
        };
        let explained = explain_publish(engine, slot, &asked);
        let topic = explained.topic.as_deref();
        let groups = topic.map(|topic| explain_groups(engine, slot, &message(topic, question)));
        let client = &engine.core.sessions[slot];
        let connection = client.connection.and_then(|key| edge.connections.get(key));
        TaskProgress::Done(Some(FirstStepsTaken {
            explained,
            publisher: client.session.id(),
            groups: groups.unwrap_or_default(),
            limited: connection.map_or_else(Vec::new, |one| one.reading.reasons().collect()),
        }))
    }
}

/// A message, its publisher, and the sessions that are to be named.
#[derive(Debug)]
pub(super) struct About {
    pub(super) message: Message,
    pub(super) publisher: u64,
    pub(super) members: Vec<SessionRef>,
}

/// The receivers of one worker.
#[derive(Debug)]
pub(crate) struct FoundReceivers {
    pub(crate) receivers: Receivers,
    names: Vec<Name>,
}

/// The client identifier of a session.
#[derive(Debug)]
struct Name {
    session: u64,
    client_id: Box<str>,
}

#[derive(Debug)]
pub(super) struct FindReceivers {
    about: Arc<About>,
    search: ReceiverSearch,
}

impl FindReceivers {
    pub(super) fn new(about: &Arc<About>) -> Self {
        Self {
            about: Arc::clone(about),
            search: ReceiverSearch::new(about.publisher),
        }
    }
}

impl WorkerTask for FindReceivers {
    type Answer = FoundReceivers;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<FoundReceivers> {
        let about = &*self.about;
        loop {
            let engine = &mut traffic.engine;
            let most = SUBSCRIPTIONS_OF_PORTION;
            let is_over = self.search.advance(engine, &about.message, most);
            engine.core.turn.work += SUBSCRIPTIONS_OF_PORTION as u64;
            if is_over {
                break;
            }
            if engine.core.turn.is_portion_over() {
                return TaskProgress::More;
            }
        }
        let engine = &traffic.engine;
        let receivers = self.search.finish(engine, &about.message);
        let own = about.members.iter().filter(|member| {
            member.worker == engine.core.id && engine.core.sessions.is(member.slot, member.id)
        });
        let names = own.map(|member| Name {
            session: member.id,
            client_id: engine.core.sessions[member.slot].session.client_id().into(),
        });
        let names = names.collect();
        let listed = receivers.sessions.len() as u64;
        traffic.engine.core.turn.work += STEPS_UNITS + RECEIVER_UNITS * listed;
        TaskProgress::Done(FoundReceivers { receivers, names })
    }
}

#[derive(Debug)]
struct Filter(Arc<SubscribeQuestion>);

impl WorkerTask for Filter {
    type Answer = Option<SubscribeExplained>;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<Self::Answer> {
        let question = &*self.0;
        traffic.engine.core.turn.work += STEPS_UNITS;
        let engine = &traffic.engine;
        let slot = engine.core.sessions.find(&question.client_id);
        let asked = SubscribeAsked {
            filter: &question.filter,
            qos: question.qos,
        };
        TaskProgress::Done(slot.map(|slot| explain_subscribe(engine, slot, &asked)))
    }
}

#[derive(Debug)]
struct Drops(Box<str>);

impl WorkerTask for Drops {
    type Answer = Option<DropsAnswer>;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<Self::Answer> {
        traffic.engine.core.turn.work += STEPS_UNITS;
        let Traffic { edge, engine, .. } = &*traffic;
        let core = &engine.core;
        let Some(slot) = core.sessions.find(&self.0) else {
            return TaskProgress::Done(None);
        };
        let client = &core.sessions[slot];
        let connection = client.connection.and_then(|key| edge.connections.get(key));
        let qualities = [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce];
        let now = qualities.map(|qos| {
            let message = Message::new(&Publication::new("t", b"x", qos));
            foresee(core, client, &message, qos)
        });
        TaskProgress::Done(Some(DropsAnswer {
            queue: queue_state(core, client),
            now,
            dropped: client.dropped().collect(),
            limited: connection.map_or_else(Vec::new, |one| one.reading.reasons().collect()),
        }))
    }
}
