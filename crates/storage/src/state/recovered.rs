//! The state that the node gets at the start.

use std::sync::Arc;

use thrum_codec::packet::SubscriptionOptions;
use thrum_codec::{PacketId, QoS, Version};

use crate::record::{
    Awaiting, ClockNote, LogMillis, Message, MessageId, Owner, Seq, SessionId, WallMillis, Will,
};

/// The complete state after all acknowledged changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// By ascending number.
    pub sessions: Vec<RecoveredSession>,
    /// Every message that is referenced, once; references are positions in this list.
    pub messages: Vec<RecoveredMessage>,
    /// By topic.
    pub retained: Vec<RecoveredRetained>,
    /// Highest session number that occurred; new ones continue after it.
    pub session_id_max: SessionId,
    /// Highest message number that occurred; new ones continue after it.
    pub message_id_max: MessageId,
    /// Highest number of a retained change that occurred; new ones continue after it.
    pub retained_change_max: u64,
    /// The last note of the clock; `None` in a log of a version that did not record it.
    pub clock: Option<ClockNote>,
    /// The latest time in the log that has passed.
    pub latest: LogMillis,
    /// Number of the last segment that was removed; `None` in a log without such a record.
    pub reclaimed: Option<u64>,
    /// Objects that were omitted because a part of them is missing.
    pub orphans: Orphans,
}

impl Recovered {
    /// The log time for the given wall-clock time, on which all stored times are based. It is never
    /// before a time that has passed according to the log, so that nothing outlives its expiry.
    pub fn log_time(&self, wall: WallMillis) -> LogMillis {
        let Some(note) = self.clock else {
            return wall.max(self.latest);
        };
        // Two consecutive notes may be missing if the log is damaged; a later time was never the
        // present.
        let latest_max = note.at.saturating_add(2 * ClockNote::INTERVAL_MILLIS);
        note.resume(wall).max(self.latest.min(latest_max))
    }

    /// Milliseconds by which the given wall-clock time is ahead of the log time.
    pub fn wall_ahead(&self, wall: WallMillis) -> i64 {
        let signed = |millis: u64| i64::try_from(millis).unwrap_or(i64::MAX);
        signed(wall) - signed(self.log_time(wall))
    }

    /// Converts all times to wall-clock times, given the present one, for display.
    #[must_use]
    pub fn in_wall_time(mut self, wall: WallMillis) -> Self {
        let ahead = self.wall_ahead(wall);
        let shown = |at: LogMillis| at.saturating_add_signed(ahead);
        for session in &mut self.sessions {
            session.away_since = session.away_since.map(shown);
        }
        for message in &mut self.messages {
            message.published_at = shown(message.published_at);
            message.expires_at = message.expires_at.map(shown);
        }
        self
    }
}

/// Objects that could not be recovered because a required record is damaged or was never
/// acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orphans {
    /// Sessions without their own record: the client identifier is unknown.
    pub sessions: u64,
    /// Deliveries without their message.
    pub deliveries: u64,
    /// Retained messages without their message.
    pub retained: u64,
}

/// A session.
#[derive(Debug, PartialEq, Eq)]
pub struct RecoveredSession {
    /// Its number.
    pub id: SessionId,
    /// Client identifier.
    pub client_id: Box<str>,
    /// Protocol version of its last connection.
    pub version: Version,
    /// Session expiry in seconds; `u32::MAX` means never.
    pub expiry_secs: u32,
    /// Time since when it has no connection; `None` if it had one when the broker ended.
    pub away_since: Option<LogMillis>,
    /// As [`Session::packet_id_hint`](crate::Session::packet_id_hint).
    pub packet_id_hint: u16,
    /// The owner of the session.
    pub owner: Owner<Box<str>>,
    /// By filter.
    pub subscriptions: Vec<RecoveredSubscription>,
    /// Deliveries in order: first those that were sent, then those that are queued.
    pub deliveries: Vec<RecoveredDelivery>,
    /// Packet identifiers of accepted `QoS` 2 messages without PUBREL, in ascending order.
    pub received: Vec<PacketId>,
    /// Its will.
    pub will: Option<RecoveredWill>,
    /// Highest sequence number of a delivery that occurred; new ones continue after it.
    pub seq_max: Seq,
}

impl RecoveredSession {
    /// Whether the session belongs to the node instead of a client: it contains messages that were
    /// being forwarded within the node. Client identifiers do not contain U+0000; those of these
    /// sessions start with it.
    pub fn is_of_node(&self) -> bool {
        self.client_id.starts_with('\0')
    }
}

/// A subscription.
#[derive(Debug, PartialEq, Eq)]
pub struct RecoveredSubscription {
    /// As [`Subscription::filter`](crate::Subscription::filter).
    pub filter: Box<str>,
    /// Options as granted.
    pub options: SubscriptionOptions,
    /// Subscription identifier; 0 for none.
    pub identifier: u32,
    /// As [`Subscription::owed`](crate::Subscription::owed).
    pub owed: Option<Box<[u8]>>,
}

/// A delivery.
#[derive(Debug, PartialEq, Eq)]
pub struct RecoveredDelivery {
    /// Its sequence number in the session.
    pub seq: Seq,
    /// Position in [`Recovered::messages`]; `None` if only a PUBCOMP is expected.
    pub message: Option<usize>,
    /// Packet identifier and the expected acknowledgement; `None` while it is queued.
    pub inflight: Option<(PacketId, Awaiting)>,
    /// Quality of service; [`QoS::ExactlyOnce`] if only a PUBCOMP is expected.
    pub qos: QoS,
    /// Retain flag.
    pub retain: bool,
    /// Subscription identifiers.
    pub identifiers: Box<[u32]>,
    /// The shared subscription that the session was chosen for.
    pub group: Option<Box<str>>,
}

/// A message.
#[derive(Debug, PartialEq, Eq)]
pub struct RecoveredMessage {
    /// Its number.
    pub id: MessageId,
    /// Session that published it; 0 is the node.
    pub publisher: SessionId,
    /// Time of arrival.
    pub published_at: LogMillis,
    /// Time after which it must not be delivered.
    pub expires_at: Option<LogMillis>,
    /// Quality of service as published.
    pub qos: QoS,
    /// Retain flag as published.
    pub retain: bool,
    /// Number of bytes that its record occupies in the log.
    pub(super) record_len: u32,
    /// Topic, properties and payload.
    pub content: Content,
}

/// A will.
#[derive(Debug, PartialEq, Eq)]
pub struct RecoveredWill {
    /// As [`Will::delay_secs`].
    pub delay_secs: u32,
    /// As [`Will::message_expiry_secs`].
    pub message_expiry_secs: Option<u32>,
    /// Quality of service.
    pub qos: QoS,
    /// Retain flag.
    pub retain: bool,
    /// Topic, properties and payload.
    pub content: Content,
}

/// A retained message.
#[derive(Debug, PartialEq, Eq)]
pub struct RecoveredRetained {
    /// Topic name.
    pub topic: Box<str>,
    /// Position in [`Recovered::messages`].
    pub message: usize,
    /// As [`Retained::source`](crate::Retained::source); all messages of one client share one
    /// value.
    pub source: Option<Arc<[u8]>>,
}

/// Topic, properties and payload in one allocation.
#[derive(Debug, PartialEq, Eq)]
pub struct Content {
    bytes: Box<[u8]>,
    topic_len: usize,
    properties_len: usize,
}

impl Content {
    fn new(topic: &str, properties: &[u8], payload: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(topic.len() + properties.len() + payload.len());
        bytes.extend_from_slice(topic.as_bytes());
        bytes.extend_from_slice(properties);
        bytes.extend_from_slice(payload);
        Self {
            bytes: bytes.into_boxed_slice(),
            topic_len: topic.len(),
            properties_len: properties.len(),
        }
    }

    /// Topic name.
    pub fn topic(&self) -> &str {
        let (topic, _) = self.bytes.split_at(self.topic_len);
        // These bytes were a `str` when the content was made.
        std::str::from_utf8(topic).unwrap_or_default()
    }

    /// Properties in the format of the caller.
    pub fn properties(&self) -> &[u8] {
        self.bytes
            .get(self.topic_len..self.topic_len + self.properties_len)
            .unwrap_or_default()
    }

    /// Payload.
    pub fn payload(&self) -> &[u8] {
        self.bytes
            .get(self.topic_len + self.properties_len..)
            .unwrap_or_default()
    }

    /// The bytes of topic, properties and payload, and the lengths of the first two.
    pub fn into_parts(self) -> (Box<[u8]>, usize, usize) {
        (self.bytes, self.topic_len, self.properties_len)
    }
}

impl RecoveredMessage {
    pub(super) fn new(message: &Message<'_>, record_len: u64) -> Self {
        Self {
            id: message.id,
            publisher: message.publisher,
            published_at: message.published_at,
            expires_at: message.expires_at,
            qos: message.qos,
            retain: message.retain,
            record_len: u32::try_from(record_len).unwrap_or(u32::MAX),
            content: Content::new(message.topic, message.properties, message.payload),
        }
    }
}

impl From<&Will<'_>> for RecoveredWill {
    fn from(will: &Will<'_>) -> Self {
        Self {
            delay_secs: will.delay_secs,
            message_expiry_secs: will.message_expiry_secs,
            qos: will.qos,
            retain: will.retain,
            content: Content::new(will.topic, will.properties, will.payload),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_properties_and_payload_are_distinguished() {
        let content = Content::new("topic", b"prop", b"payload");
        assert_eq!(content.topic(), "topic");
        assert_eq!(content.properties(), b"prop");
        assert_eq!(content.payload(), b"payload");
        let (bytes, topic_len, properties_len) = content.into_parts();
        assert_eq!(*bytes, *b"topicproppayload");
        assert_eq!((topic_len, properties_len), (5, 4));
    }
}
