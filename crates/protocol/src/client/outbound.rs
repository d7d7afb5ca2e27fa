//! Requests of the application: messages, subscriptions and authentication steps.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::packet::{
    Auth, Packet, Publish, Subscribe, SubscriptionRequest, SubscriptionRequests, TopicFilters,
    Unsubscribe,
};
use thrum_codec::properties::{
    AuthProperties, PublishProperties, SubscribeProperties, SubscriptionIdentifiers, UserProperties,
};
use thrum_codec::topic::is_valid_name;
use thrum_codec::{PacketId, QoS, ReasonCode, TopicFilter, encode_publish};

use super::exchanges::{Flight, RequestKind};
use super::link::{Phase, SendError};
use super::machine::Turn;
use super::{Client, PublishError, SubscribeError};
use crate::Time;

/// Topic filters that a client puts into one SUBSCRIBE or UNSUBSCRIBE; servers limit the number,
/// and all known ones accept this many.
pub const FILTERS_PER_PACKET: usize = 100;

impl Client {
    /// Writes a PUBLISH; its packet identifier, DUP flag and subscription identifiers are ignored.
    ///
    /// A topic alias is used as given: with a topic it is set, with an empty topic it must have
    /// been set on this connection. Returns the packet identifier that [`Event::Acknowledged`] will
    /// have; `None` with QoS 0.
    ///
    /// # Errors
    /// Nothing was written: the server does not allow the message, or not at present.
    ///
    /// [`Event::Acknowledged`]: super::Event::Acknowledged
    pub fn publish(
        &mut self,
        publish: &Publish<'_>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<Option<PacketId>, PublishError> {
        // [MQTT-3.1.2-30]
        if !self.link.is_connected() {
            return Err(PublishError::NotConnected);
        }
        self.link.limits().check_publish(publish)?;
        self.check_topic(publish)?;
        let packet_id = match publish.qos {
            QoS::AtMostOnce => None,
            // Only PUBLISH with QoS 1 or 2 depends on the window. [MQTT-3.3.4-7] [MQTT-3.3.4-8]
            // [MQTT-4.9.0-2]
            QoS::AtLeastOnce | QoS::ExactlyOnce if self.window() == 0 => {
                return Err(PublishError::WindowFull);
            }
            // [MQTT-4.3.2-1] [MQTT-4.3.3-1] [MQTT3-4.3.2-1] [MQTT3-4.3.3-1]
            QoS::AtLeastOnce | QoS::ExactlyOnce => {
                Some(self.next_packet_id().ok_or(PublishError::WindowFull)?)
            }
        };
        let packet = Publish {
            // [MQTT-4.3.1-1] [MQTT-4.3.2-2] [MQTT-4.3.3-2] [MQTT-3.3.1-2] [MQTT3-3.3.1-2]
            // [MQTT3-4.3.1-1]
            dup: false,
            packet_id,
            properties: PublishProperties {
                // [MQTT-3.3.4-6]
                subscription_identifiers: SubscriptionIdentifiers::default(),
                ..publish.properties
            },
            ..*publish
        };
        let start = out.len();
        encode_publish(&packet, self.options.version, out).map_err(PublishError::Encode)?;
        self.link.check_size(start, out)?;
        if let Some(packet_id) = packet_id {
            let frame = self.kept_frame(&packet, &out[start..])?;
            let exchanges = self.exchanges.get_or_insert_default();
            // [MQTT-4.3.2-3] [MQTT-4.3.3-3]
            exchanges.push(Flight {
                packet_id,
                qos: packet.qos,
                frame,
            });
        }
        if let Some(alias) = packet.properties.topic_alias
            && !packet.topic.is_empty()
        {
            let exchanges = self.exchanges.get_or_insert_default();
            exchanges.set_outbound_alias(alias, packet.topic);
        }
        self.link.mark_sent(now);
        Ok(packet_id)
    }

    /// Number of QoS 1 and 2 messages that the server accepts at present.
    pub fn window(&self) -> usize {
        if !self.link.is_connected() {
            return 0;
        }
        let Some(exchanges) = &self.exchanges else {
            return self.window_max();
        };
        // While messages are still to be retransmitted the window is full, so no new message
        // overtakes them.
        self.window_max().saturating_sub(exchanges.inflight())
    }

    /// Number of unacknowledged messages with QoS 1 or 2.
    pub fn inflight(&self) -> usize {
        self.exchanges
            .as_ref()
            .map_or(0, |exchanges| exchanges.unacknowledged())
    }

    /// Writes a SUBSCRIBE; [`Event::Subscribed`] returns one reason code per request.
    ///
    /// # Errors
    /// Nothing was written: the server does not allow one of the requests.
    ///
    /// [`Event::Subscribed`]: super::Event::Subscribed
    pub fn subscribe(
        &mut self,
        properties: SubscribeProperties<'_>,
        requests: &[SubscriptionRequest<'_>],
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<PacketId, SubscribeError> {
        if !self.link.is_connected() {
            return Err(SubscribeError::NotConnected);
        }
        self.link.limits().check_subscribe(&properties, requests)?;
        let packet_id = self.next_packet_id().ok_or(SubscribeError::NoPacketId)?;
        let requests_listed = SubscriptionRequests::Listed(requests);
        let subscribe = Subscribe {
            packet_id,
            properties,
            requests: requests_listed,
        };
        self.link.write(&Packet::Subscribe(subscribe), now, out)?;
        let exchanges = self.exchanges.get_or_insert_default();
        exchanges.expect_answer(packet_id, RequestKind::Subscribe, requests.len());
        Ok(packet_id)
    }

    /// Writes an UNSUBSCRIBE; [`Event::Unsubscribed`] returns one reason code per filter (none in
    /// 3.x).
    ///
    /// # Errors
    /// Nothing was written: there is no connection or no filter.
    ///
    /// [`Event::Unsubscribed`]: super::Event::Unsubscribed
    pub fn unsubscribe(
        &mut self,
        user: UserProperties<'_>,
        filters: &[TopicFilter<'_>],
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<PacketId, SubscribeError> {
        if !self.link.is_connected() {
            return Err(SubscribeError::NotConnected);
        }
        // [MQTT-3.10.3-2] [MQTT3-3.10.3-2]
        if filters.is_empty() {
            return Err(SubscribeError::NoFilter);
        }
        let packet_id = self.next_packet_id().ok_or(SubscribeError::NoPacketId)?;
        let unsubscribe = Unsubscribe {
            packet_id,
            user,
            filters: TopicFilters::Listed(filters),
        };
        self.link
            .write(&Packet::Unsubscribe(unsubscribe), now, out)?;
        let exchanges = self.exchanges.get_or_insert_default();
        exchanges.expect_answer(packet_id, RequestKind::Unsubscribe, filters.len());
        Ok(packet_id)
    }

    /// Answers [`Event::Authenticate`] with the next step of the method in the options. Returns
    /// `false`, and writes nothing, if the server did not ask for a step or does not accept a
    /// packet of that size.
    ///
    /// [`Event::Authenticate`]: super::Event::Authenticate
    pub fn authenticate(&mut self, step: &[u8], now: Time, out: &mut Vec<u8>) -> bool {
        // [MQTT-4.12.0-3]
        let reason = ReasonCode::ContinueAuthentication;
        self.turn == Turn::Client && self.write_auth(reason, step, now, out)
    }

    /// Starts a re-authentication on an accepted connection, with the method in the options.
    /// Returns `false`, and writes nothing, if there is no method, if a re-authentication is in
    /// progress, or if the connection is not accepted.
    ///
    /// [`Event::Authenticate`] carries the server's steps; the last one has
    /// [`ReasonCode::Success`]. A server that refuses ends the connection. All other packets
    /// continue meanwhile. [MQTT-4.12.1-2]
    ///
    /// [`Event::Authenticate`]: super::Event::Authenticate
    pub fn reauthenticate(&mut self, step: &[u8], now: Time, out: &mut Vec<u8>) -> bool {
        // [MQTT-4.12.1-1]
        let reason = ReasonCode::ReAuthenticate;
        self.link.is_connected()
            && self.turn == Turn::Over
            && self.write_auth(reason, step, now, out)
    }

    fn write_auth(
        &mut self,
        reason: ReasonCode,
        step: &[u8],
        now: Time,
        out: &mut Vec<u8>,
    ) -> bool {
        let options = Arc::clone(&self.options);
        // [MQTT-4.12.0-7]
        let Some(method) = options.authentication_method.as_deref() else {
            return false;
        };
        if self.link.phase() == Phase::Disconnected {
            return false;
        }
        // [MQTT-4.12.0-5] [MQTT-3.15.2-1] [MQTT-3.15.2-2] [MQTT-3.15.2-3]
        let auth = Auth {
            reason,
            properties: AuthProperties {
                authentication_method: Some(method),
                authentication_data: Some(step),
                ..AuthProperties::default()
            },
        };
        let is_written = self.link.write(&Packet::Auth(auth), now, out).is_ok();
        if is_written {
            self.turn = Turn::Server;
        }
        is_written
    }

    fn next_packet_id(&mut self) -> Option<PacketId> {
        let exchanges = self.exchanges.get_or_insert_default();
        // [MQTT-2.2.1-3] [MQTT3-2.3.1-2]
        self.packet_ids.next(|| exchanges.packet_ids())
    }

    /// Checks that the topic is valid, or has an alias that was set on this connection.
    fn check_topic(&self, publish: &Publish<'_>) -> Result<(), PublishError> {
        match publish.properties.topic_alias {
            Some(_) if publish.topic.is_empty() => match self.aliased_topic(publish) {
                Some(_) => Ok(()),
                None => Err(PublishError::TopicAliasInvalid),
            },
            // [MQTT-3.3.2-2] [MQTT-4.7.0-1] [MQTT3-3.3.2-2]
            Some(_) | None if !is_valid_name(publish.topic) => Err(PublishError::TopicInvalid),
            Some(_) | None => Ok(()),
        }
    }

    fn aliased_topic(&self, publish: &Publish<'_>) -> Option<&str> {
        let exchanges = self.exchanges.as_ref()?;
        exchanges.outbound_topic(publish.properties.topic_alias?)
    }

    /// The packet to retransmit on a later connection, on which the aliases of this connection are
    /// unknown.
    fn kept_frame(
        &self,
        packet: &Publish<'_>,
        written: &[u8],
    ) -> Result<Option<Box<[u8]>>, PublishError> {
        if !self.link.limits().resumable {
            return Ok(None);
        }
        if packet.properties.topic_alias.is_none() {
            return Ok(Some(written.into()));
        }
        let topic = if packet.topic.is_empty() {
            self.aliased_topic(packet)
                .ok_or(PublishError::TopicAliasInvalid)?
        } else {
            packet.topic
        };
        let properties = PublishProperties {
            topic_alias: None,
            ..packet.properties
        };
        let mut frame = Vec::new();
        encode_publish(
            &Publish {
                topic,
                properties,
                ..*packet
            },
            self.options.version,
            &mut frame,
        )
        .map_err(PublishError::Encode)?;
        Ok(Some(frame.into()))
    }

    /// Highest number of QoS 1 and 2 messages in flight at once.
    pub(super) fn window_max(&self) -> usize {
        // [MQTT-4.9.0-1]
        usize::from(
            self.link
                .limits()
                .receive_maximum
                .min(self.options.inflight_max.max(1)),
        )
    }
}

impl From<SendError> for PublishError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::TooLarge => Self::TooLarge,
            SendError::Encode(error) => Self::Encode(error),
        }
    }
}

impl From<SendError> for SubscribeError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::TooLarge => Self::TooLarge,
            SendError::Encode(error) => Self::Encode(error),
        }
    }
}
