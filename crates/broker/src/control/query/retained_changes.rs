//! The operator removes and stores retained messages, without a message to subscribers.

use std::sync::Arc;

use thrum_codec::properties::{PublishProperties, UserProperties};
use thrum_codec::{QoS, topic};
use thrum_engine::Engine;
use thrum_protocol::{Message, Publication, Time};

use super::QueryError;
use super::committing::Committing;
use super::sender::{FIRST_WORKER, QuerySender};
use super::tasks::{TaskProgress, WorkerTask};
use crate::config::LimitsConfig;
use crate::traffic::Traffic;

/// Retained messages that one command changes: an operation on more of them takes several.
pub const RETAINED_BATCH_MAX: usize = 1000;
/// Units of a change: a lock, and a record of the storage.
const CHANGE_UNITS: u64 = 4;
/// Longest text or field of a property, in bytes.
const FIELD_BYTES_MAX: usize = u16::MAX as usize;
/// Topics of the broker itself.
const OWN_TOPICS: &str = "$SYS/";

/// A retained message to store. Times are milliseconds of the Unix epoch.
#[derive(Clone, Debug, Default)]
pub struct RetainedMessage {
    /// Topic name, with the mount point in front.
    pub topic: String,
    /// Payload; not empty.
    pub payload: Vec<u8>,
    /// Quality of service.
    pub qos: QoS,
    /// Time of publication; none is now, which a later time stands for, too.
    pub published_at: Option<u64>,
    /// Time from which it is no longer delivered.
    pub expires_at: Option<u64>,
    /// The payload is UTF-8.
    pub payload_format_indicator: Option<bool>,
    /// Kind of the payload.
    pub content_type: Option<String>,
    /// Topic for answers.
    pub response_topic: Option<String>,
    /// Identifies the request that is answered.
    pub correlation_data: Option<Vec<u8>>,
    /// User properties.
    pub user_properties: Vec<(String, String)>,
}

/// The effect of a removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetainedRemoved {
    /// Messages that were removed.
    pub messages: usize,
    /// Topics without a retained message.
    pub missing: usize,
}

/// See [`Queries::remove_retained`](super::Queries::remove_retained).
pub(super) fn remove(
    sender: &QuerySender,
    topics: Vec<String>,
) -> Result<RetainedRemoved, QueryError> {
    check_number(topics.len())?;
    if let Some(own) = topics.iter().find(|topic| topic.starts_with(OWN_TOPICS)) {
        return Err(QueryError::Invalid(own_topic(own)));
    }
    let topics: Arc<[String]> = topics.into();
    sender.query_worker(FIRST_WORKER, || RemoveRetained {
        topics: Arc::clone(&topics),
        next: 0,
        removed: RetainedRemoved::default(),
        committing: Committing::default(),
    })
}

/// See [`Queries::store_retained`](super::Queries::store_retained).
pub(super) fn store(
    sender: &QuerySender,
    messages: &[RetainedMessage],
) -> Result<usize, QueryError> {
    check_number(messages.len())?;
    let limits = sender.control.config().limits;
    for message in messages {
        if let Some(problem) = message.problem(&limits) {
            let topic = &message.topic;
            return Err(QueryError::Invalid(format!("topic {topic:?}: {problem}")));
        }
    }
    let node = sender.node();
    let (wall, now) = (&node.state.wall, node.clock.now());
    let stored = messages.iter().map(|message| {
        let published_at = message.published_at.map(|at| wall.at_millis(at));
        StoredMessage {
            message: Arc::new(message.message(message.expires_at.map(|at| wall.at_millis(at)))),
            published_at: published_at.map_or(now, |at| at.min(now)),
        }
    });
    let messages: Arc<[StoredMessage]> = stored.collect();
    sender.query_worker(FIRST_WORKER, || StoreRetained {
        messages: Arc::clone(&messages),
        next: 0,
        stored: 0,
        committing: Committing::default(),
    })
}

fn check_number(number: usize) -> Result<(), QueryError> {
    if number > RETAINED_BATCH_MAX {
        let what = format!("one command changes at most {RETAINED_BATCH_MAX} retained messages");
        return Err(QueryError::Invalid(what));
    }
    Ok(())
}

fn own_topic(topic: &str) -> String {
    format!("{topic:?} is a topic of the broker itself, which publishes it again")
}

impl RetainedMessage {
    /// Why it cannot be stored.
    fn problem(&self, limits: &LimitsConfig) -> Option<String> {
        let texts = [&self.content_type, &self.response_topic];
        let texts = texts.into_iter().flatten();
        let pairs = self.user_properties.iter();
        let mut texts = texts.chain(pairs.flat_map(|(name, value)| [name, value]));
        let is_text = |text: &str| text.len() <= FIELD_BYTES_MAX && !text.contains('\0');
        let correlation_bytes = self.correlation_data.as_ref().map_or(0, Vec::len);
        let response_topic = self.response_topic.as_deref();
        Some(if !topic::is_valid_name(&self.topic) {
            "a topic name has 1 to 65,535 bytes and contains neither +, # nor the null character"
                .to_owned()
        } else if self.topic.starts_with(OWN_TOPICS) {
            own_topic(&self.topic)
        } else if self.topic.len() > usize::from(limits.packet.topic_length) {
            let most = limits.packet.topic_length;
            format!("it is longer than limits.topic_length ({most})")
        } else if self.payload.is_empty() {
            "a retained message has a payload; DELETE removes one".to_owned()
        } else if limits.packet.max_payload > 0
            && self.payload.len() as u64 > limits.packet.max_payload.into()
        {
            let most = limits.packet.max_payload;
            format!("the payload is larger than limits.max_payload ({most} bytes)")
        } else if correlation_bytes > FIELD_BYTES_MAX || !texts.all(|text| is_text(text)) {
            format!("a property has the null character, or more than {FIELD_BYTES_MAX} bytes")
        } else if response_topic.is_some_and(|topic| !topic::is_valid_name(topic)) {
            "the response topic is no topic name".to_owned()
        } else {
            return None;
        })
    }

    fn message(&self, expires_at: Option<Time>) -> Message {
        let user = self.user_properties.iter();
        let user: Vec<(&str, &str)> = user.map(|(name, value)| (&**name, &**value)).collect();
        Message::new(&Publication {
            properties: PublishProperties {
                payload_format_indicator: self.payload_format_indicator,
                content_type: self.content_type.as_deref(),
                response_topic: self.response_topic.as_deref(),
                correlation_data: self.correlation_data.as_deref(),
                user: UserProperties::Listed(&user),
                ..PublishProperties::default()
            },
            retain: true,
            expires_at,
            ..Publication::new(&self.topic, &self.payload, self.qos)
        })
    }
}

#[derive(Debug)]
struct RemoveRetained {
    topics: Arc<[String]>,
    next: usize,
    removed: RetainedRemoved,
    committing: Committing,
}

impl WorkerTask for RemoveRetained {
    type Answer = RetainedRemoved;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<RetainedRemoved> {
        let engine = &mut traffic.engine;
        while let Some(topic) = self.topics.get(self.next) {
            let core = &mut engine.core;
            if core.durable.forget_retained(&core.node.retained, topic) {
                self.removed.messages += 1;
            } else {
                self.removed.missing += 1;
            }
            self.next += 1;
            if is_portion_over(engine) && self.next < self.topics.len() {
                return TaskProgress::More;
            }
        }
        let removed = self.removed;
        self.committing.advance(engine, || removed)
    }
}

#[derive(Clone, Debug)]
struct StoredMessage {
    message: Arc<Message>,
    published_at: Time,
}

#[derive(Debug)]
struct StoreRetained {
    messages: Arc<[StoredMessage]>,
    next: usize,
    stored: usize,
    committing: Committing,
}

impl WorkerTask for StoreRetained {
    type Answer = usize;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<usize> {
        let engine = &mut traffic.engine;
        while let Some(one) = self.messages.get(self.next) {
            let core = &mut engine.core;
            let store = &core.node.retained;
            let is_stored = !core.durable.is_disk_full()
                && core
                    .durable
                    .retain_message(store, &one.message, None, one.published_at);
            if !is_stored {
                // The caller learns where it ended.
                self.next = self.messages.len();
                break;
            }
            self.stored += 1;
            self.next += 1;
            if is_portion_over(engine) && self.next < self.messages.len() {
                return TaskProgress::More;
            }
        }
        let stored = self.stored;
        self.committing.advance(engine, || stored)
    }
}

/// Counts a change; true if the next one has to wait for the next turn.
fn is_portion_over(engine: &mut Engine) -> bool {
    engine.core.turn.work += CHANGE_UNITS;
    engine.core.durable.end_unit();
    engine.core.turn.is_portion_over()
}
