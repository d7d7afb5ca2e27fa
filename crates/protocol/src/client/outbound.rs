//! Messages to the server: window, acknowledgement, and redelivery when a session is resumed.

use alloc::boxed::Box;
use alloc::vec::Vec;

use thrum_codec::packet::{Ack, Packet, Publish};
use thrum_codec::properties::{PublishProperties, SubscriptionIdentifiers};
use thrum_codec::topic::is_valid_name;
use thrum_codec::{PacketId, QoS, ReasonCode, encode_publish};

use super::exchanges::{Exchanges, Flight};
use super::handshake::ServerLimits;
use super::inbound::success;
use super::machine::{Phase, SendError, protocol_error};
use super::{Client, Event, PublishError};
use crate::{Time, Violation};

/// The DUP flag in the first byte of a PUBLISH.
const DUP: u8 = 0b1000;
/// The RETAIN flag in the first byte of a PUBLISH.
const RETAIN: u8 = 0b0001;

impl Client {
    /// Writes a PUBLISH; its packet identifier and DUP flag are ignored, and so are subscription
    /// identifiers.
    ///
    /// A topic alias is used as given: with a topic it is set, with an empty topic it must have
    /// been set on this connection. Returns the identifier that [`Event::Acknowledged`] will name;
    /// none with QoS 0.
    ///
    /// # Errors
    /// Nothing was written: the server does not allow the message, or not now.
    pub fn publish(
        &mut self,
        publish: &Publish<'_>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<Option<PacketId>, PublishError> {
        self.check_publish(publish)?;
        let packet_id = match publish.qos {
            QoS::AtMostOnce => None,
            // Only PUBLISH above QoS 0 waits for the window. [MQTT-3.3.4-7] [MQTT-3.3.4-8]
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
        self.check_size(start, out)?;
        if let Some(packet_id) = packet_id {
            let frame = self.kept_frame(&packet, &out[start..])?;
            let publishes = &mut self.exchanges.get_or_insert_default().publishes;
            // [MQTT-4.3.2-3] [MQTT-4.3.3-3]
            publishes.push_back(Flight {
                packet_id,
                qos: packet.qos,
                frame,
            });
        }
        if let Some(alias) = packet.properties.topic_alias
            && !packet.topic.is_empty()
        {
            self.exchanges
                .get_or_insert_default()
                .outbound_aliases
                .set(alias, packet.topic);
        }
        self.mark_sent(now);
        Ok(packet_id)
    }

    /// How many QoS 1 and 2 messages the server would take now.
    pub fn window(&self) -> usize {
        if self.phase != Phase::Connected {
            return 0;
        }
        let Some(exchanges) = &self.exchanges else {
            return self.window_max();
        };
        // While messages are still to be sent again the window is full, so nothing new overtakes
        // them.
        self.window_max().saturating_sub(exchanges.inflight())
    }

    /// Messages sent with QoS 1 or 2 that are not acknowledged.
    pub fn inflight(&self) -> usize {
        self.exchanges
            .as_ref()
            .map_or(0, |exchanges| exchanges.unacknowledged())
    }

    pub(super) fn next_packet_id(&mut self) -> Option<PacketId> {
        let exchanges = self.exchanges.get_or_insert_default();
        // [MQTT-2.2.1-3] [MQTT3-2.3.1-2]
        self.packet_ids.next(|| exchanges.packet_ids())
    }

    pub(super) fn handle_puback<'p>(
        &mut self,
        ack: &Ack<'p>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<Event<'p>, Violation> {
        let exchanges = self.exchanges.get_or_insert_default();
        let at = exchanges.sent_at(ack.packet_id, QoS::AtLeastOnce)?;
        // [MQTT-4.4.0-2]
        if at.and_then(|at| exchanges.publishes.remove(at)).is_none() {
            return Err(protocol_error("PUBACK for no PUBLISH"));
        }
        self.send_again(now, out);
        Ok(Event::Acknowledged {
            packet_id: ack.packet_id,
            reason: ack.reason,
        })
    }

    pub(super) fn handle_pubrec<'p>(
        &mut self,
        ack: &Ack<'p>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<Event<'p>, Violation> {
        let packet_id = ack.packet_id;
        let exchanges = self.exchanges.get_or_insert_default();
        let at = exchanges.sent_at(packet_id, QoS::ExactlyOnce)?;
        let known = at.and_then(|at| exchanges.publishes.remove(at)).is_some();
        if known && ack.reason.is_error() {
            // [MQTT-4.4.0-2]
            self.send_again(now, out);
            return Ok(Event::Acknowledged {
                packet_id,
                reason: ack.reason,
            });
        }
        let reason = if known {
            // From here on only PUBREL is sent again. [MQTT-4.3.3-5] [MQTT-4.3.3-6]
            exchanges.releases.push_back(packet_id);
            ReasonCode::Success
        } else if ack.reason.is_error() {
            return Err(protocol_error("failed PUBREC for no PUBLISH"));
        } else if exchanges.releases.contains(&packet_id) {
            ReasonCode::Success
        } else {
            // [MQTT-3.6.2-1]
            ReasonCode::PacketIdentifierNotFound
        };
        // [MQTT-4.3.3-4] [MQTT-4.6.0-4] [MQTT3-4.6.0-4]
        self.reply(
            &Packet::PubRel(Ack {
                reason,
                ..success(packet_id)
            }),
            now,
            out,
        )?;
        Ok(Event::None)
    }

    pub(super) fn handle_pubcomp<'p>(
        &mut self,
        ack: &Ack<'p>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<Event<'p>, Violation> {
        let packet_id = ack.packet_id;
        let exchanges = self.exchanges.get_or_insert_default();
        let at = exchanges.releases.iter().position(|id| *id == packet_id);
        if at.and_then(|at| exchanges.releases.remove(at)).is_some() {
            self.send_again(now, out);
            // The server took the message with its PUBREC, also if it has forgotten the identifier
            // since.
            return Ok(Event::Acknowledged {
                packet_id,
                reason: ReasonCode::Success,
            });
        }
        if exchanges
            .publishes
            .iter()
            .any(|flight| flight.packet_id == packet_id)
        {
            return Err(protocol_error("PUBCOMP before PUBREC"));
        }
        // Answers the PUBREL to a PUBREC that was not expected either.
        Ok(Event::None)
    }

    /// The session goes on: sends again what the server has not acknowledged, as far as its window
    /// allows.
    pub(super) fn resume(&mut self, now: Time, out: &mut Vec<u8>) -> Result<(), Violation> {
        let server = self.server;
        let Some(exchanges) = &mut self.exchanges else {
            return Ok(());
        };
        exchanges
            .publishes
            .retain(|flight| flight.is_allowed(&server));
        exchanges.unsent = exchanges.publishes.len();
        let releases: Vec<PacketId> = exchanges.releases.iter().copied().collect();
        // [MQTT-4.4.0-1] [MQTT-4.6.0-4] [MQTT3-4.4.0-1] [MQTT3-4.6.0-4]
        for packet_id in releases {
            self.reply(&Packet::PubRel(success(packet_id)), now, out)?;
        }
        self.send_again(now, out);
        self.release_exchanges();
        Ok(())
    }

    /// Sends messages of the resumed session again while the window is open.
    fn send_again(&mut self, now: Time, out: &mut Vec<u8>) {
        let window = self.window_max();
        let Some(exchanges) = &mut self.exchanges else {
            return;
        };
        if exchanges.unsent == 0 {
            return;
        }
        while exchanges.unsent != 0 && exchanges.inflight() < window {
            // In the order they were sent first. [MQTT-4.6.0-1] [MQTT3-4.6.0-1]
            let at = exchanges.publishes.len() - exchanges.unsent;
            exchanges.unsent -= 1;
            if let Some([first, rest @ ..]) = exchanges.publishes[at].frame.as_deref() {
                // [MQTT-3.3.1-1] [MQTT3-3.3.1-1] [MQTT3-2.3.1-3]
                out.push(first | DUP);
                out.extend_from_slice(rest);
            }
        }
        self.mark_sent(now);
    }

    fn check_publish(&self, publish: &Publish<'_>) -> Result<(), PublishError> {
        // [MQTT-3.1.2-30]
        if self.phase != Phase::Connected {
            return Err(PublishError::NotConnected);
        }
        // [MQTT-3.2.2-11]
        if publish.qos > self.server.maximum_qos {
            return Err(PublishError::QoSNotSupported);
        }
        // [MQTT-3.2.2-14]
        if publish.retain && !self.server.retain_available {
            return Err(PublishError::RetainNotSupported);
        }
        let alias = publish.properties.topic_alias;
        // [MQTT-3.2.2-17] [MQTT-3.2.2-18] [MQTT-3.3.2-9]
        if alias.is_some_and(|alias| alias.get() > self.server.topic_alias_maximum) {
            return Err(PublishError::TopicAliasInvalid);
        }
        match alias {
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
        let aliases = &self.exchanges.as_ref()?.outbound_aliases;
        aliases
            .topic(publish.properties.topic_alias?)
            .map(|topic| &**topic)
    }

    /// The packet to send again in a later connection, where this connection's aliases mean
    /// nothing.
    fn kept_frame(
        &self,
        packet: &Publish<'_>,
        written: &[u8],
    ) -> Result<Option<Box<[u8]>>, PublishError> {
        if !self.server.resumable {
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

    fn window_max(&self) -> usize {
        // [MQTT-4.9.0-1]
        usize::from(
            self.server
                .receive_maximum
                .min(self.options.inflight_max.max(1)),
        )
    }
}

impl Exchanges {
    /// Where the message with this identifier stands, if it was sent on this connection.
    fn sent_at(&self, packet_id: PacketId, qos: QoS) -> Result<Option<usize>, Violation> {
        let sent = self.publishes.len() - self.unsent;
        let at = self
            .publishes
            .iter()
            .take(sent)
            .position(|flight| flight.packet_id == packet_id);
        match at.and_then(|at| self.publishes.get(at)) {
            Some(flight) if flight.qos != qos => Err(protocol_error(
                "acknowledgement of another quality of service",
            )),
            Some(_) | None => Ok(at),
        }
    }
}

impl Flight {
    /// The server of the new connection still takes this message.
    fn is_allowed(&self, server: &ServerLimits) -> bool {
        self.frame.as_deref().is_some_and(|frame| {
            let retained = frame.first().is_some_and(|first| first & RETAIN != 0);
            self.qos <= server.maximum_qos
                && server.fits(frame.len())
                && (server.retain_available || !retained)
        })
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
