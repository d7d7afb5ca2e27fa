//! A message from whoever runs the broker, and what became of it.

use std::sync::Arc;

use thrum_codec::properties::PublishProperties;
use thrum_codec::{QoS, ReasonCode, topic};
use thrum_protocol::{Message, Publication};
use thrum_storage::Ticket;

use super::QueryError;
use super::ask::Asker;
use super::questions::{Progress, Work};
use crate::engine::Engine;
use crate::engine::publishing::is_reserved;
use crate::metrics::Counter;
use crate::traffic::Traffic;

/// A message to publish.
#[derive(Clone, Debug)]
pub struct OperatorMessage {
    /// Topic name, behind any mount point.
    pub topic: String,
    /// Payload; an empty one removes what is retained.
    pub payload: Vec<u8>,
    /// Quality of service.
    pub qos: QoS,
    /// It becomes the retained message of its topic.
    pub retain: bool,
    /// Seconds after which it is no longer delivered.
    pub expiry_secs: Option<u32>,
}

/// What became of a message. It is told when what was promised is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Who has it.
    pub fate: Fate,
    /// It is the retained message of its topic, or has removed that.
    pub is_retained: bool,
}

/// Who has a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// At least one subscriber, or the worker of one.
    Taken,
    /// Nobody has subscribed to its topic.
    NoSubscribers,
    /// Nobody, and why.
    Refused(&'static str),
}

/// See [`Queries::publish`](super::Queries::publish).
pub(super) fn publish(asker: &Asker, message: &OperatorMessage) -> Result<Published, QueryError> {
    check_message(asker, message)?;
    let now = asker.node().clock.now();
    let message = Arc::new(Message::new(&Publication {
        topic: &message.topic,
        payload: &message.payload,
        properties: PublishProperties::default(),
        qos: message.qos,
        retain: message.retain,
        expires_at: message.expiry_secs.map(|seconds| now.plus_secs(seconds)),
        publisher: 0,
        publisher_hash: 0,
    }));
    // One worker, so that what is published one after the other stays in order.
    asker.ask_one(|| Publish::new(&message))
}

fn check_message(asker: &Asker, message: &OperatorMessage) -> Result<(), QueryError> {
    let limits = asker.control.config().limits;
    let topic = &*message.topic;
    let problem = if topic.is_empty() || !topic::is_valid_name(topic) {
        "a topic to publish to is not empty and contains neither + nor #".to_owned()
    } else if is_reserved(topic) {
        format!("{topic:?} belongs to the broker: publish to a topic that does not begin with $")
    } else if topic.len() > usize::from(limits.topic_length) {
        format!(
            "the topic is longer than limits.topic_length ({})",
            limits.topic_length
        )
    } else if limits.max_payload > 0 && message.payload.len() as u64 > limits.max_payload.into() {
        format!(
            "the payload is larger than limits.max_payload ({} bytes)",
            limits.max_payload
        )
    } else {
        return Ok(());
    };
    Err(QueryError::Invalid(problem))
}

#[derive(Debug)]
struct Publish {
    message: Arc<Message>,
    stage: Stage,
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Begins,
    /// What it promises is handed in at the end of the turn.
    Settles(Published),
    /// It waits for the disk.
    Written(Published, Ticket),
}

impl Publish {
    fn new(message: &Arc<Message>) -> Self {
        Self {
            message: Arc::clone(message),
            stage: Stage::Begins,
        }
    }
}

impl Work for Publish {
    type Answer = Published;

    fn go_on(&mut self, traffic: &mut Traffic) -> Progress<Published> {
        let engine = &mut traffic.engine;
        let (published, ticket) = match self.stage {
            Stage::Begins => {
                let published = route(engine, &self.message);
                if engine.core.durable.journal.is_none() {
                    return Progress::Done(published);
                }
                self.stage = Stage::Settles(published);
                return Progress::More;
            }
            Stage::Settles(published) => match &engine.core.durable.journal {
                Some(journal) if !journal.is_stuck() => (published, journal.submitted()),
                Some(_) | None => return Progress::Waits,
            },
            Stage::Written(published, ticket) => (published, ticket),
        };
        let journal = engine.core.durable.journal.as_deref();
        if journal.is_some_and(|journal| journal.durable() >= ticket) {
            return Progress::Done(published);
        }
        self.stage = Stage::Written(published, ticket);
        Progress::Waits
    }
}

fn route(engine: &mut Engine, message: &Arc<Message>) -> Published {
    let refused = |what| Published {
        fate: Fate::Refused(what),
        is_retained: false,
    };
    let (core, topics) = (&mut engine.core, &mut engine.router.topics);
    if core.durable.is_disk_full() && topics.needs_disk(core, &message.publication()) {
        core.row().add(Counter::StorageRefused, 1);
        return refused("the storage is full (storage.max_disk, or the disk)");
    }
    let Some(outcome) = engine.publish_order(message) else {
        return refused(
            "a limit of retained messages is reached (limits.retained_messages, limits.retained_bytes or limits.memory)",
        );
    };
    let fate = match outcome {
        ReasonCode::Success => Fate::Taken,
        ReasonCode::NoMatchingSubscribers => Fate::NoSubscribers,
        _ => Fate::Refused("the queues of all its subscribers are full"),
    };
    Published {
        fate,
        is_retained: message.retain(),
    }
}
