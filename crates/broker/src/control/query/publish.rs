//! A message of the operator, and its outcome.

use std::sync::Arc;

use thrum_codec::{QoS, ReasonCode, topic};
use thrum_protocol::{Message, Publication};

use super::QueryError;
use super::committing::Committing;
use super::sender::{FIRST_WORKER, QuerySender};
use super::tasks::{TaskProgress, WorkerTask};
use crate::config::LimitsConfig;
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

/// Messages of one batch: some megabytes with usual payloads.
pub const BATCH_MESSAGES_MAX: usize = 1000;

/// See [`Queries::publish`](super::Queries::publish).
pub(super) fn publish(
    sender: &QuerySender,
    message: &OperatorMessage,
) -> Result<Published, QueryError> {
    let published = publish_all(sender, std::slice::from_ref(message))?;
    published.first().copied().ok_or(QueryError::Stopped)
}

/// See [`Queries::publish_all`](super::Queries::publish_all).
pub(super) fn publish_all(
    sender: &QuerySender,
    messages: &[OperatorMessage],
) -> Result<Vec<Published>, QueryError> {
    if messages.len() > BATCH_MESSAGES_MAX {
        let what = format!("a batch has at most {BATCH_MESSAGES_MAX} messages");
        return Err(QueryError::Invalid(what));
    }
    let config = sender.control.config();
    for (number, message) in messages.iter().enumerate() {
        if let Some(problem) = problem(&config.limits, message) {
            let which = match messages.len() {
                1 => String::new(),
                _ => format!("message {number}: "),
            };
            return Err(QueryError::Invalid(format!("{which}{problem}")));
        }
    }
    let now = sender.node().clock.now();
    let messages = messages.iter().map(|message| {
        Arc::new(Message::new(&Publication {
            retain: message.retain,
            expires_at: message.expiry_secs.map(|seconds| now.plus_secs(seconds)),
            ..Publication::new(&message.topic, &message.payload, message.qos)
        }))
    });
    let messages: Arc<[Arc<Message>]> = messages.collect();
    // Always the same worker, so that messages keep their order.
    sender.query_worker(FIRST_WORKER, || Publish::new(&messages))
}

/// Why a message cannot be published.
fn problem(limits: &LimitsConfig, message: &OperatorMessage) -> Option<String> {
    let topic = &*message.topic;
    Some(if topic.is_empty() || !topic::is_valid_name(topic) {
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
        return None;
    })
}

#[derive(Debug)]
struct Publish {
    messages: Arc<[Arc<Message>]>,
    /// The outcomes of the messages that are routed.
    routed: Vec<Published>,
    committing: Committing,
}

impl Publish {
    fn new(messages: &Arc<[Arc<Message>]>) -> Self {
        Self {
            messages: Arc::clone(messages),
            routed: Vec::new(),
            committing: Committing::default(),
        }
    }
}

impl WorkerTask for Publish {
    type Answer = Vec<Published>;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<Vec<Published>> {
        let engine = &mut traffic.engine;
        while let Some(message) = self.messages.get(self.routed.len()) {
            if !self.routed.is_empty() && engine.core.turn.is_portion_over() {
                return TaskProgress::More;
            }
            engine.core.turn.work += 1;
            self.routed.push(route(engine, message));
            engine.core.durable.end_unit();
        }
        let routed = &mut self.routed;
        self.committing.advance(engine, || std::mem::take(routed))
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
