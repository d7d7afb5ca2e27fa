//! An application message: borrowed while it is forwarded, owned once a part of the node has to
//! keep it.

mod outgoing;
mod properties;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use thrum_codec::QoS;
use thrum_codec::properties::{PublishProperties, UserProperties};

pub(crate) use outgoing::Form;
pub use outgoing::{FrameCache, Outgoing};

use crate::output::SHARED_PAYLOAD_BYTES_MIN;
use crate::time::Time;

/// Number of the session that published a message, unique on the node; 0 is the node itself.
pub type PublisherId = u64;

/// A message to be forwarded, borrowed from a read buffer or from a [`Message`].
#[derive(Clone, Copy, Debug)]
pub struct Publication<'a> {
    /// Topic name; never empty.
    pub topic: &'a str,
    /// Payload.
    pub payload: &'a [u8],
    /// Properties as published, without topic alias, subscription identifiers and message expiry.
    pub properties: PublishProperties<'a>,
    /// Quality of service as published.
    pub qos: QoS,
    /// Retain flag as published.
    pub retain: bool,
    /// Time after which the message must not be delivered.
    pub expires_at: Option<Time>,
    /// Session that published the message (for no local).
    pub publisher: PublisherId,
    /// Hash of the publisher's client identifier, for shared subscriptions that choose members by
    /// it; 0 if none does.
    pub publisher_hash: u32,
}

impl<'a> Publication<'a> {
    /// A message of the node itself: without properties, and neither retained nor expiring.
    pub fn new(topic: &'a str, payload: &'a [u8], qos: QoS) -> Self {
        Self {
            topic,
            payload,
            properties: PublishProperties::default(),
            qos,
            retain: false,
            expires_at: None,
            publisher: 0,
            publisher_hash: 0,
        }
    }

    /// Whether the message's expiry has passed.
    pub fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// The value of [`Message::bytes_len`] for the owned message.
    pub fn bytes_len(&self) -> usize {
        Message::bytes_of(self.topic, &self.properties, self.payload)
    }

    /// Whether the receivers share one copy of the payload.
    #[inline]
    pub(crate) fn is_large(&self) -> bool {
        self.payload.len() >= SHARED_PAYLOAD_BYTES_MIN
    }
}

/// An owned message: queued, in flight, retained or sent to another worker. One allocation contains
/// all its text.
#[derive(Debug)]
pub struct Message {
    /// Topic, property block, payload.
    bytes: Box<[u8]>,
    topic_len: u32,
    properties_len: u32,
    publisher_hash: u32,
    publisher: PublisherId,
    /// [`NEVER`] without an expiry.
    expires_at: Time,
    /// Number of its persisted text; 0 if the text is not persisted.
    stored_id: AtomicU64,
    qos: QoS,
    retain: bool,
}

/// The parts of a persisted [`Message`].
#[derive(Debug)]
pub struct MessageParts {
    /// Topic, property block ([`Message::properties_block`]) and payload.
    pub bytes: Box<[u8]>,
    /// Length of the topic in bytes.
    pub topic_len: usize,
    /// Length of the property block in bytes.
    pub properties_len: usize,
    /// As [`Publication::publisher`].
    pub publisher: PublisherId,
    /// As [`Publication::expires_at`].
    pub expires_at: Option<Time>,
    /// As [`Publication::qos`].
    pub qos: QoS,
    /// As [`Publication::retain`].
    pub retain: bool,
}

/// The expiry of a message that never expires.
const NEVER: Time = Time::from_millis(u64::MAX);

impl Message {
    /// Copies a publication without topic alias, subscription identifiers and message expiry.
    pub fn new(publication: &Publication<'_>) -> Self {
        let Publication { topic, payload, .. } = *publication;
        let properties_len = properties::block_len(&publication.properties);
        let mut bytes = Vec::with_capacity(topic.len() + properties_len + payload.len());
        bytes.extend_from_slice(topic.as_bytes());
        properties::write(&publication.properties, &mut bytes);
        bytes.extend_from_slice(payload);
        Self {
            bytes: bytes.into_boxed_slice(),
            topic_len: short(topic.len()),
            properties_len: short(properties_len),
            publisher: publication.publisher,
            publisher_hash: publication.publisher_hash,
            expires_at: publication.expires_at.unwrap_or(NEVER),
            stored_id: AtomicU64::new(0),
            qos: publication.qos,
            retain: publication.retain,
        }
    }

    /// The same, with the mark that the node has added the last user property: a receiver whose
    /// Maximum Packet Size leaves no room for it gets the message without.
    #[must_use]
    pub fn with_last_property_added(mut self) -> Self {
        let block = self.topic_end()..self.payload_start();
        properties::mark_last_as_added(&mut self.bytes[block]);
        self
    }

    /// The user properties without the one that the node has added; none if it has added none.
    pub(crate) fn user_properties_without_added(&self) -> Option<UserProperties<'_>> {
        properties::without_added(self.properties_block())
    }

    /// Builds a message from its persisted parts. A length that exceeds the bytes is truncated to
    /// them.
    pub fn from_parts(parts: MessageParts) -> Self {
        let topic_len = parts.topic_len.min(parts.bytes.len());
        let properties_len = parts.properties_len.min(parts.bytes.len() - topic_len);
        Self {
            topic_len: short(topic_len),
            properties_len: short(properties_len),
            bytes: parts.bytes,
            publisher: parts.publisher,
            publisher_hash: 0,
            expires_at: parts.expires_at.unwrap_or(NEVER),
            stored_id: AtomicU64::new(0),
            qos: parts.qos,
            retain: parts.retain,
        }
    }

    /// A copy with the same content that is not persisted.
    #[must_use]
    pub fn copy_unstored(&self) -> Self {
        Self {
            bytes: self.bytes.clone(),
            stored_id: AtomicU64::new(0),
            ..*self
        }
    }

    /// Borrows the message as a publication.
    pub fn publication(&self) -> Publication<'_> {
        Publication {
            topic: self.topic(),
            payload: self.payload(),
            properties: properties::read(self.properties_block()),
            qos: self.qos,
            retain: self.retain,
            expires_at: self.expires_at(),
            publisher: self.publisher,
            publisher_hash: self.publisher_hash,
        }
    }

    /// Topic name.
    pub fn topic(&self) -> &str {
        let (topic, _) = self.bytes.split_at(self.topic_end());
        // These bytes were a `str` when the message was made.
        core::str::from_utf8(topic).unwrap_or_default()
    }

    /// The properties in the form to be persisted, which [`Message::from_parts`] reads.
    pub fn properties_block(&self) -> &[u8] {
        &self.bytes[self.topic_end()..self.payload_start()]
    }

    /// Payload.
    pub fn payload(&self) -> &[u8] {
        let (_, payload) = self.bytes.split_at(self.payload_start());
        payload
    }

    /// Quality of service as published.
    pub fn qos(&self) -> QoS {
        self.qos
    }

    /// Retain flag as published.
    pub fn retain(&self) -> bool {
        self.retain
    }

    /// Session that published the message.
    pub fn publisher(&self) -> PublisherId {
        self.publisher
    }

    /// Time after which the message must not be delivered.
    pub fn expires_at(&self) -> Option<Time> {
        Some(self.expires_at).filter(|at| *at != NEVER)
    }

    /// Number of its persisted text; 0 if the text is not persisted.
    pub fn stored_id(&self) -> u64 {
        // A thread that received the message from another also sees the value set by that thread.
        self.stored_id.load(Ordering::Relaxed)
    }

    /// Records the number of its persisted text.
    pub fn set_stored_id(&self, id: u64) {
        self.stored_id.store(id, Ordering::Relaxed);
    }

    /// The value of [`Message::bytes_len`] for a message with these parts.
    pub fn bytes_of(topic: &str, properties: &PublishProperties<'_>, payload: &[u8]) -> usize {
        topic.len() + properties::block_len(properties) + payload.len()
    }

    /// Bytes that count against queue limits: topic, properties and payload.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the message's expiry has passed.
    pub fn is_expired(&self, now: Time) -> bool {
        self.expires_at <= now
    }

    /// Sets the hash of the publisher, as [`Publication::publisher_hash`].
    pub fn set_publisher_hash(&mut self, hash: u32) {
        self.publisher_hash = hash;
    }

    /// Sets the publisher and the expiry time, which are known for a will only when it is due.
    pub(crate) fn publish_as(&mut self, publisher: PublisherId, expires_at: Option<Time>) {
        self.publisher = publisher;
        self.expires_at = expires_at.unwrap_or(NEVER);
    }

    fn topic_end(&self) -> usize {
        self.topic_len as usize
    }

    fn payload_start(&self) -> usize {
        self.topic_len as usize + self.properties_len as usize
    }
}

/// Converts the length of a topic or of properties: neither is longer than a packet, which is below
/// 4 GiB.
fn short(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publication<'a>(user: &'a [(&'a str, &'a str)]) -> Publication<'a> {
        Publication {
            topic: "sensors/\u{fc}ber/1",
            payload: b"\x00payload\xff",
            properties: PublishProperties {
                payload_format_indicator: Some(true),
                response_topic: Some("answers/1"),
                correlation_data: Some(b"\x01\x02"),
                content_type: Some("text/plain"),
                user: UserProperties::Listed(user),
                ..PublishProperties::default()
            },
            qos: QoS::ExactlyOnce,
            retain: true,
            expires_at: Some(Time::from_millis(5000)),
            publisher: 77,
            publisher_hash: 78,
        }
    }

    fn check(publication: &Publication<'_>) {
        let message = Message::new(publication);
        let again = message.publication();
        assert_eq!(again.topic, publication.topic);
        assert_eq!(again.payload, publication.payload);
        assert_eq!(again.properties, publication.properties);
        assert_eq!(
            (again.qos, again.retain),
            (publication.qos, publication.retain)
        );
        assert_eq!(again.expires_at, publication.expires_at);
        assert_eq!(again.publisher, publication.publisher);
        assert_eq!((message.qos(), message.retain()), (again.qos, again.retain));
        assert_eq!(again.publisher_hash, message.publisher_hash);
        let (topic, properties) = (publication.topic, &publication.properties);
        let bytes_of = Message::bytes_of(topic, properties, publication.payload);
        assert_eq!(bytes_of, message.bytes_len());
        assert_eq!(publication.bytes_len(), message.bytes_len());
        assert_eq!(
            (message.publisher(), message.expires_at()),
            (again.publisher, again.expires_at)
        );
    }

    #[test]
    fn a_property_that_the_node_has_added_can_be_left_out() {
        fn listed(user: UserProperties<'_>) -> Vec<(&str, &str)> {
            user.iter().collect()
        }
        let user = [("a", "1"), ("traceparent", "2")];
        for count in [1, 2] {
            let sent = &user[2 - count..];
            let plain = Message::new(&publication(sent));
            assert!(plain.user_properties_without_added().is_none());
            let added = plain.with_last_property_added();
            check(&added.publication());
            assert_eq!(listed(added.publication().properties.user).len(), count);
            let stored = Message::from_parts(MessageParts {
                bytes: added.bytes.clone(),
                topic_len: added.topic().len(),
                properties_len: added.properties_block().len(),
                publisher: 0,
                expires_at: None,
                qos: QoS::AtMostOnce,
                retain: false,
            });
            for message in [&added, &stored, &added.copy_unstored()] {
                let rest = message.user_properties_without_added().unwrap();
                assert_eq!(listed(rest), &[("a", "1")][..count - 1]);
            }
        }
    }

    #[test]
    fn a_message_is_small() {
        assert!(size_of::<Message>() <= 56, "{}", size_of::<Message>());
    }

    #[test]
    fn a_message_is_restored_from_its_parts() {
        let user = [("b", "2")];
        let message = Message::new(&publication(&user));
        let block = message.properties_block();
        let again = Message::from_parts(MessageParts {
            bytes: [message.topic().as_bytes(), block, message.payload()]
                .concat()
                .into_boxed_slice(),
            topic_len: message.topic().len(),
            properties_len: block.len(),
            publisher: message.publisher(),
            expires_at: message.expires_at(),
            qos: message.qos(),
            retain: message.retain(),
        });
        check(&again.publication());
        assert_eq!(again.bytes, message.bytes);
    }

    #[test]
    fn lengths_that_exceed_the_bytes_are_truncated() {
        for (topic_len, properties_len) in [(usize::MAX, usize::MAX), (3, usize::MAX), (4, 0)] {
            let message = Message::from_parts(MessageParts {
                bytes: Box::from(&b"a/b"[..]),
                topic_len,
                properties_len,
                publisher: 0,
                expires_at: None,
                qos: QoS::AtMostOnce,
                retain: false,
            });
            assert_eq!((message.topic(), message.payload()), ("a/b", &b""[..]));
            assert!(message.properties_block().is_empty());
        }
    }

    #[test]
    fn a_copy_is_not_stored() {
        let message = Message::new(&publication(&[]));
        assert_eq!(message.stored_id(), 0);
        message.set_stored_id(7);
        let copy = message.copy_unstored();
        assert_eq!((message.stored_id(), copy.stored_id()), (7, 0));
        assert_eq!(copy.bytes, message.bytes);
        check(&copy.publication());
    }

    #[test]
    fn a_message_without_expiry_never_expires() {
        let mut never = publication(&[]);
        never.expires_at = None;
        let message = Message::new(&never);
        assert_eq!(message.expires_at(), None);
        assert!(!message.is_expired(Time::from_millis(u64::MAX - 1)));
    }

    // [MQTT-3.3.2-4] [MQTT-3.3.2-15] [MQTT-3.3.2-16] [MQTT-3.3.2-17] [MQTT-3.3.2-18]
    // [MQTT-3.3.2-20]
    #[test]
    fn an_owned_message_equals_the_publication() {
        let user = [("b", "2"), ("a", "1"), ("b", "2"), ("", "")];
        check(&publication(&user));
        check(&publication(&[]));
    }

    #[test]
    fn every_single_property_survives_alone() {
        let full = publication(&[]);
        let mut bare = publication(&[]);
        bare.properties = PublishProperties::default();
        check(&bare);
        for pick in 0..5 {
            let mut one = bare;
            match pick {
                0 => one.properties.payload_format_indicator = Some(false),
                1 => one.properties.response_topic = full.properties.response_topic,
                2 => one.properties.correlation_data = Some(b""),
                3 => one.properties.content_type = full.properties.content_type,
                _ => one.properties.user = UserProperties::Listed(&[("k", "v")]),
            }
            check(&one);
        }
    }

    #[test]
    fn a_message_without_properties_costs_topic_and_payload() {
        let mut bare = publication(&[]);
        bare.properties = PublishProperties::default();
        assert_eq!(
            Message::new(&bare).bytes_len(),
            bare.topic.len() + bare.payload.len()
        );
    }
}
