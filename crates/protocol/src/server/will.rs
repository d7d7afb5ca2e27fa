//! The will: received with CONNECT, kept with the session, published by the node when it is due.

use alloc::boxed::Box;
use alloc::string::String;
use core::time::Duration;

use thrum_codec::packet::Will as WillPacket;
use thrum_codec::properties::PublishProperties;

use super::{SessionJournal, Step, StoredWill, WillView};
use crate::message::PublisherId;
use crate::{Message, MountPoint, Publication, Time};

/// The will of a session until it is published or deleted; both are recorded in the journal.
#[derive(Debug, Default)]
pub(super) struct PendingWill(Option<Box<Will>>);

impl PendingWill {
    pub(super) fn new(will: Option<Box<Will>>) -> Self {
        Self(will)
    }

    pub(super) fn restore(stored: Option<StoredWill>) -> Self {
        Self(stored.map(|will| Box::new(Will::restore(will))))
    }

    /// The will in the form to be persisted.
    pub(super) fn view(&self) -> Option<WillView<'_>> {
        self.0.as_deref().map(Will::view)
    }

    /// Time at which it is to be published if the connection ended at the given time and the
    /// session continues.
    pub(super) fn due(&self, away_since: Time) -> Option<Time> {
        Some(away_since.plus(self.0.as_ref()?.delay()))
    }

    /// Removes it for publication or deletion.
    pub(super) fn take(&mut self, journal: &mut SessionJournal) -> Option<Box<Will>> {
        let will = self.0.take()?;
        journal.record(Step::WillRemoved);
        Some(will)
    }

    /// Removes it for publication, if it has no delay after the end of the connection.
    pub(super) fn take_undelayed(&mut self, journal: &mut SessionJournal) -> Option<Box<Will>> {
        let is_undelayed = self.0.as_ref()?.delay().is_zero();
        is_undelayed.then(|| self.take(journal)).flatten()
    }
}

/// A will that may still have to be published.
#[derive(Debug)]
pub(super) struct Will {
    message: Message,
    delay_secs: u32,
    message_expiry: Option<u32>,
}

impl Will {
    pub(super) fn new(will: &WillPacket<'_>) -> Self {
        let properties = PublishProperties {
            payload_format_indicator: will.properties.payload_format_indicator,
            response_topic: will.properties.response_topic,
            correlation_data: will.properties.correlation_data,
            content_type: will.properties.content_type,
            // [MQTT-3.1.3-10]
            user: will.properties.user,
            ..PublishProperties::default()
        };
        let message = Message::new(&Publication {
            topic: will.topic,
            payload: will.payload,
            properties,
            qos: will.qos,
            // [MQTT-3.1.2-14] [MQTT-3.1.2-15] [MQTT3-3.1.2-16] [MQTT3-3.1.2-17]
            retain: will.retain,
            expires_at: None,
            publisher: 0,
            publisher_hash: 0,
        });
        Self {
            message,
            delay_secs: will.properties.will_delay.unwrap_or(0),
            message_expiry: will.properties.message_expiry,
        }
    }

    /// Adds the prefix to its topic; `None` if the result is too long for a topic.
    pub(super) fn mount(&mut self, mount: &MountPoint) -> Option<()> {
        let mut scratch = String::new();
        let topic = mount.mounted_topic(self.message.topic(), &mut scratch)?;
        self.message = Message::new(&Publication {
            topic,
            ..self.message.publication()
        });
        Some(())
    }

    fn restore(stored: StoredWill) -> Self {
        Self {
            message: stored.message,
            delay_secs: stored.delay_secs,
            message_expiry: stored.message_expiry,
        }
    }

    pub(super) fn view(&self) -> WillView<'_> {
        WillView {
            message: &self.message,
            delay_secs: self.delay_secs,
            message_expiry: self.message_expiry,
        }
    }

    /// Its delay after the end of the connection, if the session lasts that long.
    fn delay(&self) -> Duration {
        Duration::from_secs(u64::from(self.delay_secs))
    }

    /// The message to publish now, from which its expiry counts.
    pub(super) fn into_message(self, publisher: PublisherId, now: Time) -> Message {
        let mut message = self.message;
        let expires_at = self.message_expiry.map(|seconds| now.plus_secs(seconds));
        message.publish_as(publisher, expires_at);
        message
    }
}
