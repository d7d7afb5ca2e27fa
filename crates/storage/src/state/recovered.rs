//! What the node finds at start.

use std::sync::Arc;

use thrum_codec::packet::SubscriptionOptions;
use thrum_codec::{PacketId, QoS, Version};

use crate::record::{
    Awaiting, ClockNote, LogMillis, Message, MessageId, Owner, Seq, SessionId, WallMillis, Will,
};

/// The whole state, as the acknowledged changes left it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// By ascending number.
    pub sessions: Vec<RecoveredSession>,
    /// Every message that something refers to, once; the others speak of its place in this list.
    pub messages: Vec<RecoveredMessage>,
    /// By topic.
    pub retained: Vec<RecoveredRetained>,
    /// Highest number of a session seen; new ones go on behind it.
    pub session_id_max: SessionId,
    /// Highest number of a message seen; new ones go on behind it.
    pub message_id_max: MessageId,
    /// Highest number of a retained change seen; new ones go on behind it.
    pub retained_change_max: u64,
    /// What the wall clock showed last; none in a log of a version that did not note it.
    pub clock: Option<ClockNote>,
    /// The latest moment that the log speaks of as past.
    pub latest: LogMillis,
    /// Up to this one the segments were given back; none in a log that never said so.
    pub reclaimed: Option<u64>,
    /// What was left out because a part of it is missing.
    pub orphans: Orphans,
}

impl Recovered {
    /// The log's time when the wall clock shows this: what is stored counts from it. It is never
    /// before what the log speaks of as past, so nothing lives longer than was asked for.
    pub fn log_time(&self, wall: WallMillis) -> LogMillis {
        let Some(note) = self.clock else {
            return wall.max(self.latest);
        };
        // Two notes in a row may be missing, if that is where the log is damaged; more is no time
        // that was ever now.
        let latest_max = note.at.saturating_add(2 * ClockNote::INTERVAL_MILLIS);
        note.resume(wall).max(self.latest.min(latest_max))
    }

    /// Milliseconds by which a wall clock that shows this is ahead of the log's time.
    pub fn wall_ahead(&self, wall: WallMillis) -> i64 {
        let signed = |millis: u64| i64::try_from(millis).unwrap_or(i64::MAX);
        signed(wall) - signed(self.log_time(wall))
    }

    /// With all times as a wall clock shows them that shows `wall` now: for people to read.
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

/// What could not be given back because the record it rests on is damaged or was never
/// acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orphans {
    /// Sessions whose own record is missing: the client identifier is not known.
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
    /// Session expiry in seconds; `u32::MAX` is never.
    pub expiry_secs: u32,
    /// Since when it has no connection; `None` if it had one when the broker ended.
    pub away_since: Option<LogMillis>,
    /// As [`Session::packet_id_hint`](crate::Session::packet_id_hint).
    pub packet_id_hint: u16,
    /// Whose it is.
    pub owner: Owner<Box<str>>,
    /// By filter.
    pub subscriptions: Vec<RecoveredSubscription>,
    /// In their order: what was sent, and what waits behind it.
    pub deliveries: Vec<RecoveredDelivery>,
    /// Packet identifiers of `QoS` 2 messages taken over whose PUBREL has not come, ascending.
    pub received: Vec<PacketId>,
    /// Its will.
    pub will: Option<RecoveredWill>,
    /// Highest number of a delivery seen; new ones go on behind it.
    pub seq_max: Seq,
}

impl RecoveredSession {
    /// The node's own, and no client's: it holds what was on its way within the node. Client
    /// identifiers do not contain U+0000, and those of such sessions begin with it.
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
    /// Subscription identifier; 0 is none.
    pub identifier: u32,
    /// As [`Subscription::owed`](crate::Subscription::owed).
    pub owed: Option<Box<[u8]>>,
}

/// A delivery.
#[derive(Debug, PartialEq, Eq)]
pub struct RecoveredDelivery {
    /// Its place in the session.
    pub seq: Seq,
    /// Place in [`Recovered::messages`]; none if only PUBCOMP is awaited.
    pub message: Option<usize>,
    /// With which identifier it was sent and what the client has to answer; none while it is
    /// queued.
    pub inflight: Option<(PacketId, Awaiting)>,
    /// Quality of service; [`QoS::ExactlyOnce`] if only PUBCOMP is awaited.
    pub qos: QoS,
    /// Retain flag.
    pub retain: bool,
    /// Subscription identifiers.
    pub identifiers: Box<[u32]>,
    /// The shared subscription it was chosen for.
    pub group: Option<Box<str>>,
}

/// A message.
#[derive(Debug, PartialEq, Eq)]
pub struct RecoveredMessage {
    /// Its number.
    pub id: MessageId,
    /// Session that published it; 0 is the node.
    pub publisher: SessionId,
    /// When it came.
    pub published_at: LogMillis,
    /// When it is no longer to be delivered.
    pub expires_at: Option<LogMillis>,
    /// Quality of service as published.
    pub qos: QoS,
    /// Retain flag as published.
    pub retain: bool,
    /// Bytes its record takes in the log.
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
    /// Place in [`Recovered::messages`].
    pub message: usize,
    /// As [`Retained::source`](crate::Retained::source); those of one client share theirs.
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
        // These bytes were a `str` when it was made.
        std::str::from_utf8(topic).unwrap_or_default()
    }

    /// Properties as the owner gave them.
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
