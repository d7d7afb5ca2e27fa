//! The server's limits, and checks of the client's requests against them.

use thrum_codec::packet::{Publish, SubscriptionRequest};
use thrum_codec::properties::{ConnAckProperties, SubscribeProperties};
use thrum_codec::{QoS, Version};

use super::{ClientOptions, PublishError, SubscribeError};

/// The server's limits for this connection, from the CONNACK.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one per property of CONNACK, not states"
)]
pub(super) struct ServerLimits {
    pub(super) packet_bytes_max: u32,
    pub(super) receive_maximum: u16,
    pub(super) topic_alias_maximum: u16,
    pub(super) keep_alive: u16,
    pub(super) maximum_qos: QoS,
    pub(super) retain_available: bool,
    pub(super) wildcard_available: bool,
    pub(super) shared_available: bool,
    pub(super) identifiers_available: bool,
    /// Whether the session outlives the connection, so that the next connect resumes it.
    pub(super) resumable: bool,
}

impl ServerLimits {
    pub(super) fn new(
        properties: &ConnAckProperties<'_>,
        options: &ClientOptions,
        client_id: &str,
    ) -> Self {
        let expiry = properties.session_expiry.unwrap_or(options.session_expiry);
        let outlives = options.version != Version::V5 || expiry != 0;
        Self {
            packet_bytes_max: properties.maximum_packet_size.unwrap_or(u32::MAX),
            receive_maximum: properties.receive_maximum.map_or(u16::MAX, Into::into),
            // [MQTT-3.2.2-18]
            topic_alias_maximum: properties.topic_alias_maximum.unwrap_or(0),
            keep_alive: properties.server_keep_alive.unwrap_or(options.keep_alive),
            maximum_qos: properties.maximum_qos.unwrap_or(QoS::ExactlyOnce),
            retain_available: properties.retain_available.unwrap_or(true),
            wildcard_available: properties.wildcard_subscription_available.unwrap_or(true),
            shared_available: properties.shared_subscription_available.unwrap_or(true),
            identifiers_available: properties
                .subscription_identifiers_available
                .unwrap_or(true),
            resumable: outlives && !options.starts_clean(client_id),
        }
    }

    /// Whether the server accepts a packet of this many bytes.
    pub(super) fn fits(&self, bytes: usize) -> bool {
        u32::try_from(bytes).is_ok_and(|bytes| bytes <= self.packet_bytes_max)
    }

    /// Checks that the server accepts the message.
    pub(super) fn check_publish(&self, publish: &Publish<'_>) -> Result<(), PublishError> {
        // [MQTT-3.2.2-11]
        if publish.qos > self.maximum_qos {
            return Err(PublishError::QoSNotSupported);
        }
        // [MQTT-3.2.2-14]
        if publish.retain && !self.retain_available {
            return Err(PublishError::RetainNotSupported);
        }
        let alias = publish.properties.topic_alias;
        // [MQTT-3.2.2-17] [MQTT-3.2.2-18] [MQTT-3.3.2-9]
        if alias.is_some_and(|alias| alias.get() > self.topic_alias_maximum) {
            return Err(PublishError::TopicAliasInvalid);
        }
        Ok(())
    }

    /// Checks that the specification and the server allow these requests.
    pub(super) fn check_subscribe(
        &self,
        properties: &SubscribeProperties<'_>,
        requests: &[SubscriptionRequest<'_>],
    ) -> Result<(), SubscribeError> {
        // [MQTT-3.8.3-2] [MQTT3-3.8.3-3]
        if requests.is_empty() {
            return Err(SubscribeError::NoFilter);
        }
        if properties.subscription_identifier.is_some() && !self.identifiers_available {
            return Err(SubscribeError::IdentifiersNotSupported);
        }
        for request in requests {
            let shared = request.filter.shared().is_some();
            // [MQTT-3.8.3-4]
            if shared && request.options.no_local {
                return Err(SubscribeError::SharedNoLocal);
            }
            if shared && !self.shared_available {
                return Err(SubscribeError::SharedNotSupported);
            }
            if request.filter.has_wildcard() && !self.wildcard_available {
                return Err(SubscribeError::WildcardNotSupported);
            }
        }
        Ok(())
    }
}
