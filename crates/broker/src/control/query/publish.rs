//! A message of the operator, and its outcome.

use std::sync::Arc;

use thrum_codec::{QoS, ReasonCode, topic};
use thrum_protocol::{Message, Publication};
use thrum_storage::Ticket;

use super::QueryError;
use super::sender::{FIRST_WORKER, QuerySender};
use super::tasks::{TaskProgress, WorkerTask};
use crate::traffic::Traffic;
use thrum_engine::Engine;
use thrum_engine::node::metrics::Counter;

/// A message to publish.
#[derive(Clone, Debug)]
pub struct OperatorMessage {
    /// Topic name, with the mount point in front.
    pub topic: String,
    /// Payload; with `retain` an empty one removes the retained message.
    pub payload: Vec<u8>,
    /// Quality of service.
    pub qos: QoS,
    /// It becomes the retained message of its topic.
    pub retain: bool,
    /// Seconds after which it is no longer delivered.
    pub expiry_secs: Option<u32>,
}

/// The outcome of a message, sent when the message is durable as far as required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Whether it was delivered.
    pub outcome: PublishOutcome,
    /// It is the retained message of its topic, or has removed it.
    pub is_retained: bool,
}

/// Whether a message was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishOutcome {
    /// The message was delivered to at least one subscriber, or to the worker of one.
    Delivered,
    /// No client has subscribed to its topic.
    NoSubscribers,
    /// The message was delivered to no subscriber, for this reason.
    Refused(&'static str),
}

/// See [`Queries::publish`](super::Queries::publish).
pub(super) fn publish(
    sender: &QuerySender,
    message: &OperatorMessage,
) -> Result<Published, QueryError> {
    check_message(sender, message)?;
    let now = sender.node().clock.now();
    let message = Arc::new(Message::new(&Publication {
        retain: message.retain,
        expires_at: message.expiry_secs.map(|seconds| now.plus_secs(seconds)),
        ..Publication::new(&message.topic, &message.payload, message.qos)
    }));
    // Always the same worker, so that messages keep their order.
    sender.query_worker(FIRST_WORKER, || Publish::new(&message))
}

fn check_message(sender: &QuerySender, message: &OperatorMessage) -> Result<(), QueryError> {
    let limits = sender.control.config().limits;
    let topic = &*message.topic;
    let problem = if topic.is_empty() || !topic::is_valid_name(topic) {
        "a topic name has 1 to 65,535 bytes and contains neither +, # nor the null character"
            .to_owned()
    } else if topic.starts_with('$') {
        format!("{topic:?} is reserved: publish to a topic that does not begin with $")
    } else if topic.len() > usize::from(limits.packet.topic_length) {
        format!(
            "the topic is longer than limits.topic_length ({})",
            limits.packet.topic_length
        )
    } else if limits.packet.max_payload > 0
        && message.payload.len() as u64 > limits.packet.max_payload.into()
    {
        format!(
            "the payload is larger than limits.max_payload ({} bytes)",
            limits.packet.max_payload
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

/// Progress of a message.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// It is not routed yet.
    New,
    /// Its records are submitted to the storage at the end of the turn.
    Routed(Published),
    /// Its records are written to the disk.
    Written(Published, Ticket),
}

impl Publish {
    fn new(message: &Arc<Message>) -> Self {
        Self {
            message: Arc::clone(message),
            stage: Stage::New,
        }
    }
}

impl WorkerTask for Publish {
    type Answer = Published;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<Published> {
        let engine = &mut traffic.engine;
        let (published, ticket) = match self.stage {
            Stage::New => {
                let published = route(engine, &self.message);
                if engine.core.durable.journal.is_none() {
                    return TaskProgress::Done(published);
                }
                self.stage = Stage::Routed(published);
                return TaskProgress::More;
            }
            Stage::Routed(published) => match &engine.core.durable.journal {
                Some(journal) if !journal.is_stuck() => (published, journal.submitted()),
                Some(_) | None => return TaskProgress::Blocked,
            },
            Stage::Written(published, ticket) => (published, ticket),
        };
        let journal = engine.core.durable.journal.as_deref();
        if journal.is_some_and(|journal| journal.durable() >= ticket) {
            return TaskProgress::Done(published);
        }
        self.stage = Stage::Written(published, ticket);
        TaskProgress::Blocked
    }
}

fn route(engine: &mut Engine, message: &Arc<Message>) -> Published {
    let refused = |what| Published {
        outcome: PublishOutcome::Refused(what),
        is_retained: false,
    };
    let (core, topics) = (&mut engine.core, &mut engine.router.topics);
    if core.durable.is_disk_full() && topics.needs_disk(core, &message.publication()) {
        core.row().add(Counter::StorageRefused, 1);
        return refused("the storage is full (storage.max_disk, or the disk)");
    }
    if message.qos() != QoS::AtMostOnce && engine.is_refused_by_sinks(message.topic()) {
        return refused(
            "the queue of a sink is full (sinks.NAME.queue_messages, sinks.NAME.queue_bytes)",
        );
    }
    let Some(reason) = engine.publish_order(message) else {
        return refused(
            "a limit of retained messages is reached (limits.retained_messages, limits.retained_bytes or limits.memory)",
        );
    };
    let outcome = match reason {
        ReasonCode::Success => PublishOutcome::Delivered,
        ReasonCode::NoMatchingSubscribers => PublishOutcome::NoSubscribers,
        _ => PublishOutcome::Refused("the queues of all its subscribers are full"),
    };
    Published {
        outcome,
        is_retained: message.retain(),
    }
}
