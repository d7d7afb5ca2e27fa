//! Packets from the client: their meaning, and the replies to the node's outcome.

use thrum_codec::packet::{Packet, Publish};
use thrum_codec::{PacketId, QoS, ReasonCode, Version};

use super::deliver::burst_end;
use super::handshake::{check_qos, check_retain, check_topic};
use super::inbound::PublishAction;
use super::outbound::AfterPubRec;
use super::{Action, Session};
use crate::{Output, Time, Violation};

impl Session {
    /// Handles one packet from the client. Any packet counts as activity.
    ///
    /// # Errors
    /// The client violated the protocol: call [`Session::disconnect`] and close the connection.
    // [MQTT-4.13.1-1] [MQTT3-4.8.0-1]
    pub fn handle_packet<'p>(
        &mut self,
        packet: Packet<'p>,
        now: Time,
        out: &mut Output,
    ) -> Result<Action<'p>, Violation> {
        if !self.link.is_up() {
            return Ok(Action::None);
        }
        self.lifetime.record_activity(now);
        let is_exchange_over = match packet {
            Packet::Publish(publish) => return self.handle_publish(publish, out),
            Packet::PubAck(ack) => self.outbound.puback(ack.packet_id, &mut self.journal)?,
            Packet::PubRec(ack) => match self.outbound.pubrec(&ack, &mut self.journal)? {
                AfterPubRec::Nothing => false,
                AfterPubRec::Release(reason) => {
                    self.link
                        .append_ack(Packet::PubRel, ack.packet_id, reason, out);
                    false
                }
                AfterPubRec::Over => true,
            },
            Packet::PubRel(ack) => {
                let reason = self.inbound.pubrel(ack.packet_id, &mut self.journal)?;
                // [MQTT-4.3.3-11] [MQTT3-4.3.3-2]
                self.link
                    .append_ack(Packet::PubComp, ack.packet_id, reason, out);
                false
            }
            Packet::PubComp(ack) => self.outbound.pubcomp(ack.packet_id, &mut self.journal)?,
            Packet::Subscribe(subscribe) => return Ok(Action::Subscribe(subscribe)),
            Packet::Unsubscribe(unsubscribe) => return Ok(Action::Unsubscribe(unsubscribe)),
            // [MQTT-3.12.4-1] [MQTT3-3.12.4-1]
            Packet::PingReq => {
                self.link.append(&Packet::PingResp, out);
                false
            }
            Packet::Disconnect(disconnect) => {
                if disconnect.properties.server_reference.is_some() {
                    return Err(protocol_error("server reference from a client"));
                }
                self.lifetime.handle_disconnect(&disconnect, &self.limits)?;
                self.link.close();
                // [MQTT-3.1.2-10] [MQTT-3.14.4-3] [MQTT3-3.1.2-10] [MQTT3-3.14.4-3]
                if disconnect.reason == ReasonCode::Success {
                    self.will.take(&mut self.journal);
                }
                return Ok(Action::Disconnected);
            }
            // [MQTT-3.1.0-2] [MQTT-3.2.0-2] [MQTT3-3.1.0-2]
            Packet::Connect(_) => return Err(protocol_error("second CONNECT")),
            Packet::Auth(auth) => return self.link.handle_auth(auth),
            Packet::ConnAck(_) | Packet::SubAck(_) | Packet::UnsubAck(_) | Packet::PingResp => {
                return Err(protocol_error("packet that only a server sends"));
            }
        };
        // There may be room for another message.
        if is_exchange_over {
            self.pump(now, burst_end(out), out);
        }
        Ok(Action::None)
    }

    /// Reports the outcome of [`Action::Publish`]: writes PUBACK or PUBREC with it (nothing for
    /// `QoS` 0).
    ///
    /// Call it once for every [`Action::Publish`], in order, even if the connection is lost by
    /// then: the session uses these calls to determine which acknowledgements belong to the current
    /// connection.
    pub fn publish_done(
        &mut self,
        qos: QoS,
        packet_id: Option<PacketId>,
        outcome: ReasonCode,
        out: &mut Output,
    ) {
        let Some(packet_id) = packet_id else { return };
        match qos {
            QoS::AtMostOnce => {}
            QoS::AtLeastOnce => {
                if self.inbound.qos1_done() {
                    // [MQTT-3.3.4-1] [MQTT-4.3.2-4] [MQTT3-3.3.4-1] [MQTT3-4.3.2-2]
                    self.link
                        .answer_publish(Packet::PubAck, packet_id, outcome, out);
                }
            }
            QoS::ExactlyOnce => {
                // In 3.x a refused message is acknowledged like any other. [MQTT3-3.3.5-2]
                // [MQTT-4.3.3-9]
                let is_over = self.link.version() == Version::V5 && outcome.is_error();
                let journal = &mut self.journal;
                if self.inbound.qos2_done(packet_id, is_over, journal) {
                    // [MQTT-3.3.4-1] [MQTT-4.3.3-8] [MQTT3-3.3.4-1] [MQTT3-4.3.3-2]
                    self.link
                        .answer_publish(Packet::PubRec, packet_id, outcome, out);
                }
            }
        }
    }

    /// Replaces [`Session::publish_done`] if the node refuses the message and the connection must
    /// end for it, because the client's version has no reason code for it or the client is not
    /// allowed to publish it. Nothing is written and the exchange is discarded, so that the client
    /// may start it again; the caller ends the connection.
    pub fn publish_withdrawn(&mut self, qos: QoS, packet_id: Option<PacketId>) {
        let Some(packet_id) = packet_id else { return };
        match qos {
            QoS::AtMostOnce => {}
            QoS::AtLeastOnce => {
                self.inbound.qos1_done();
            }
            QoS::ExactlyOnce => self.inbound.forget(packet_id, &mut self.journal),
        }
    }

    fn handle_publish<'p>(
        &mut self,
        publish: Publish<'p>,
        out: &mut Output,
    ) -> Result<Action<'p>, Violation> {
        let version = self.link.version();
        let retain_available = self.link.retain_available();
        check_qos(publish.qos, &self.limits)?;
        if version == Version::V5 {
            // [MQTT-3.2.2-14]
            check_retain(publish.retain, retain_available)?;
        }
        check_topic(publish.topic, &self.limits)?;
        // [MQTT-3.3.4-6]
        if !publish.properties.subscription_identifiers.is_empty() {
            return Err(protocol_error("subscription identifier from a client"));
        }
        let alias = self
            .inbound
            .resolve_alias(&publish, self.limits.topic_alias_maximum)?;
        let (link, journal) = (&mut self.link, &mut self.journal);
        match self
            .inbound
            .begin(&publish, version, &self.limits, journal)?
        {
            PublishAction::New => {
                link.count_received();
                // 3.x has no way to announce that retained messages are unavailable.
                let retain = publish.retain && retain_available;
                let publish = Publish { retain, ..publish };
                return Ok(Action::Publish { publish, alias });
            }
            PublishAction::InUse(packet_id) => {
                let reason = ReasonCode::PacketIdentifierInUse;
                link.answer_publish(Packet::PubAck, packet_id, reason, out);
            }
            PublishAction::Routed(packet_id) => {
                link.answer_publish(Packet::PubRec, packet_id, ReasonCode::Success, out);
            }
            PublishAction::Routing => {}
        }
        Ok(Action::None)
    }
}

pub(super) fn protocol_error(what: &'static str) -> Violation {
    Violation::new(ReasonCode::ProtocolError, what)
}
