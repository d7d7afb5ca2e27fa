//! An application message: borrowed while it passes through, owned once something must keep it.

mod outgoing;
mod properties;

use alloc::boxed::Box;
use alloc::vec::Vec;

use thrum_codec::QoS;
use thrum_codec::properties::PublishProperties;

pub(crate) use outgoing::Form;
pub use outgoing::{FrameCache, Outgoing};

use crate::output::SHARED_PAYLOAD_BYTES_MIN;
use crate::time::Time;

/// Number of a session that published a message, unique on the node; 0 is the node itself.
pub type PublisherId = u64;

/// A message on its way, borrowed from a read buffer or from a [`Message`].
#[derive(Clone, Copy, Debug)]
pub struct Publication<'a> {
    /// Topic name; never empty.
    pub topic: &'a str,
    /// Payload.
    pub payload: &'a [u8],
    /// As published, without topic alias, subscription identifiers and message expiry.
    pub properties: PublishProperties<'a>,
    /// Quality of service as published.
    pub qos: QoS,
    /// Retain flag as published.
    pub retain: bool,
    /// When the message is no longer to be delivered.
    pub expires_at: Option<Time>,
    /// Who published it (for no local).
    pub publisher: PublisherId,
}

impl Publication<'_> {
    /// Whether the message's expiry has passed.
    pub fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// Whether its receivers share one copy of the payload.
    #[inline]
    pub(crate) fn is_large(&self) -> bool {
        self.payload.len() >= SHARED_PAYLOAD_BYTES_MIN
    }
}

/// A message that is kept: queued, inflight, retained or on its way to another worker. One allocation for all its text.
#[derive(Debug)]
pub struct Message {
    /// Topic, property block, payload.
    bytes: Box<[u8]>,
    topic_len: usize,
    properties_len: usize,
    publisher: PublisherId,
    expires_at: Option<Time>,
    qos: QoS,
    retain: bool,
}

impl Message {
    /// Copies a publication; topic alias, subscription identifiers and message expiry are left behind.
    pub fn new(publication: &Publication<'_>) -> Self {
        let Publication { topic, payload, .. } = *publication;
        let properties_len = properties::block_len(&publication.properties);
        let mut bytes = Vec::with_capacity(topic.len() + properties_len + payload.len());
        bytes.extend_from_slice(topic.as_bytes());
        properties::write(&publication.properties, &mut bytes);
        bytes.extend_from_slice(payload);
        Self {
            bytes: bytes.into_boxed_slice(),
            topic_len: topic.len(),
            properties_len,
            publisher: publication.publisher,
            expires_at: publication.expires_at,
            qos: publication.qos,
            retain: publication.retain,
        }
    }

    /// Borrows it again.
    pub fn publication(&self) -> Publication<'_> {
        let (_, behind_topic) = self.bytes.split_at(self.topic_len);
        let (block, payload) = behind_topic.split_at(self.properties_len);
        Publication {
            topic: self.topic(),
            payload,
            properties: properties::read(block),
            qos: self.qos,
            retain: self.retain,
            expires_at: self.expires_at,
            publisher: self.publisher,
        }
    }

    /// Topic name.
    pub fn topic(&self) -> &str {
        let (topic, _) = self.bytes.split_at(self.topic_len);
        // These bytes were a `str` when the message was made.
        core::str::from_utf8(topic).unwrap_or_default()
    }

    /// Payload.
    pub fn payload(&self) -> &[u8] {
        let (_, payload) = self.bytes.split_at(self.topic_len + self.properties_len);
        payload
    }

    /// Bytes that count against queue limits: topic, properties and payload.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the message's expiry has passed.
    pub fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// Says who publishes it and until when it is to be delivered, which a will learns only when it is due.
    pub(crate) fn publish_as(&mut self, publisher: PublisherId, expires_at: Option<Time>) {
        self.publisher = publisher;
        self.expires_at = expires_at;
    }
}

#[cfg(test)]
mod tests {
    use thrum_codec::properties::UserProperties;

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
    }

    // [MQTT-3.3.2-4] [MQTT-3.3.2-15] [MQTT-3.3.2-16] [MQTT-3.3.2-17] [MQTT-3.3.2-18] [MQTT-3.3.2-20]
    #[test]
    fn a_kept_message_is_what_was_published() {
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
