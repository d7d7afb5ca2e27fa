//! Packets from the server: their meaning, and the replies to them.

use alloc::vec::Vec;

use thrum_codec::packet::{Ack, Auth, ConnAck, Disconnect, Packet, Publish, SubAck};
use thrum_codec::properties::AckProperties;
use thrum_codec::{PacketId, QoS, ReasonCode, Version};

use super::exchanges::{PubRecAnswer, RequestKind};
use super::link::Phase;
use super::machine::{Turn, protocol_error};
use super::server_limits::ServerLimits;
use super::{Client, Event, Incoming};
use crate::{Time, Violation};

impl Client {
    /// Handles one packet from the server. Any packet counts as activity.
    ///
    /// # Errors
    /// The server violated the protocol: call [`Client::disconnect`] with the reason and close the
    /// connection.
    pub fn handle_packet<'p>(
        &mut self,
        packet: Packet<'p>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<Event<'p>, Violation> {
        match self.link.phase() {
            Phase::Disconnected => return Err(protocol_error("packet after the connection ended")),
            Phase::Connecting => {
                return match packet {
                    Packet::ConnAck(ack) => self.handle_connack(ack, now, out),
                    Packet::Auth(auth) => self.handle_auth(auth, now),
                    _ => Err(protocol_error("packet before CONNACK")),
                };
            }
            Phase::Connected => {}
        }
        // The PINGRESP may still be queued behind the messages that arrive now.
        self.link.record_activity(now);
        match packet {
            Packet::Publish(publish) => Ok(match self.handle_publish(&publish, now, out)? {
                Incoming::Message { alias } => Event::Message { publish, alias },
                Incoming::Repeated => Event::None,
            }),
            Packet::PubAck(ack) => self.handle_puback(&ack, now, out),
            Packet::PubRec(ack) => self.handle_pubrec(&ack, now, out),
            Packet::PubRel(ack) => self.handle_pubrel(&ack, now, out),
            Packet::PubComp(ack) => self.handle_pubcomp(&ack, now, out),
            Packet::SubAck(ack) => self.handle_suback(ack),
            Packet::UnsubAck(ack) => self.handle_unsuback(ack),
            Packet::PingResp => {
                self.link.answered();
                Ok(Event::Pong)
            }
            Packet::Disconnect(disconnect) => self.handle_disconnect(disconnect),
            Packet::Auth(auth) => self.handle_auth(auth, now),
            Packet::ConnAck(_) => Err(protocol_error("second CONNACK")),
            Packet::Connect(_) => Err(protocol_error("CONNECT from a server")),
            Packet::Subscribe(_) => Err(protocol_error("SUBSCRIBE from a server")),
            Packet::Unsubscribe(_) => Err(protocol_error("UNSUBSCRIBE from a server")),
            Packet::PingReq => Err(protocol_error("PINGREQ from a server")),
        }
    }

    /// Handles a PUBLISH as [`Client::handle_packet`] does, without moving it.
    ///
    /// # Errors
    /// As [`Client::handle_packet`].
    pub fn handle_publish(
        &mut self,
        publish: &Publish<'_>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<Incoming, Violation> {
        match self.link.phase() {
            Phase::Disconnected => return Err(protocol_error("packet after the connection ended")),
            Phase::Connecting => return Err(protocol_error("packet before CONNACK")),
            Phase::Connected => {}
        }
        self.link.record_activity(now);
        let alias = match publish.properties.topic_alias {
            None if publish.topic.is_empty() => {
                return Err(protocol_error("PUBLISH without topic and topic alias"));
            }
            None => None,
            // [MQTT-3.3.2-10]
            Some(alias) if alias.get() > self.options.topic_alias_maximum => {
                return Err(Violation::new(
                    ReasonCode::TopicAliasInvalid,
                    "topic alias over the topic alias maximum",
                ));
            }
            Some(alias) => {
                let exchanges = self.exchanges.get_or_insert_default();
                exchanges.resolve_alias(alias, publish.topic)?
            }
        };
        // [MQTT-3.3.4-1] [MQTT-4.5.0-2] [MQTT3-3.3.4-1] [MQTT3-4.5.0-2]
        match (publish.qos, publish.packet_id) {
            (QoS::AtMostOnce, _) => {}
            (QoS::AtLeastOnce, Some(packet_id)) => {
                // Replies are written in the order of the packets. [MQTT-4.6.0-2] [MQTT3-4.6.0-2]
                // [MQTT-4.3.2-4] [MQTT-4.3.2-5] [MQTT3-4.3.2-2]
                self.link
                    .reply(&Packet::PubAck(success(packet_id)), now, out)?;
            }
            (QoS::ExactlyOnce, Some(packet_id)) => {
                let window = usize::from(self.options.window_announced());
                let exchanges = self.exchanges.get_or_insert_default();
                let new = exchanges.record_received(packet_id, window)?;
                // [MQTT-4.3.3-8] [MQTT-4.6.0-3] [MQTT3-4.3.3-2] [MQTT3-4.6.0-3]
                self.link
                    .reply(&Packet::PubRec(success(packet_id)), now, out)?;
                // [MQTT-4.3.3-10]
                if !new {
                    return Ok(Incoming::Repeated);
                }
            }
            (QoS::AtLeastOnce | QoS::ExactlyOnce, None) => {
                return Err(protocol_error(
                    "PUBLISH above QoS 0 without packet identifier",
                ));
            }
        }
        Ok(Incoming::Message { alias })
    }

    fn handle_connack<'p>(
        &mut self,
        ack: ConnAck<'p>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<Event<'p>, Violation> {
        self.link.answered();
        self.turn = Turn::Over;
        if ack.reason != ReasonCode::Success {
            // [MQTT-4.13.2-1]
            self.link.close();
            return Ok(Event::Refused(ack));
        }
        let method = ack.properties.authentication_method;
        // Some servers do not repeat the method. A server that names another method has not
        // authenticated this client. [MQTT-4.12.0-5] [MQTT-4.12.0-6]
        if method.is_some() && method != self.options.authentication_method.as_deref() {
            return Err(protocol_error(
                "CONNACK with a method the client did not ask for",
            ));
        }
        let clean = self.options.starts_clean(&self.id);
        if ack.session_present && clean {
            // [MQTT-3.2.2-4]
            return Err(protocol_error("session present after a clean start"));
        }
        if let Some(assigned) = ack.properties.assigned_client_id {
            self.id = assigned.into();
        }
        // [MQTT-3.1.2-21] [MQTT-3.2.2-21]
        let limits = ServerLimits::new(&ack.properties, &self.options, &self.id);
        self.link.accept(limits);
        // 3.1 servers have no session present flag; they keep the session of a client that does not
        // clean it.
        if ack.session_present || (self.options.version == Version::V31 && !clean) {
            self.resume(now, out)?;
        } else {
            // [MQTT-3.2.2-5]
            self.discard_session();
        }
        Ok(Event::Connected(ack))
    }

    fn handle_auth<'p>(&mut self, auth: Auth<'p>, now: Time) -> Result<Event<'p>, Violation> {
        let method = self.options.authentication_method.as_deref();
        if method.is_none() || auth.properties.authentication_method != method {
            return Err(protocol_error(
                "AUTH with a method the client did not ask for",
            ));
        }
        self.turn = match (auth.reason, self.turn, self.link.phase()) {
            // [MQTT-4.12.0-2]
            (ReasonCode::ContinueAuthentication, Turn::Server, _) => Turn::Client,
            (ReasonCode::Success, Turn::Server, Phase::Connected) => Turn::Over,
            _ => return Err(protocol_error("AUTH out of turn")),
        };
        // The method may take many steps: each has the whole timeout.
        self.link.record_activity(now);
        Ok(Event::Authenticate(auth))
    }

    fn handle_puback<'p>(
        &mut self,
        ack: &Ack<'p>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<Event<'p>, Violation> {
        let exchanges = self.exchanges.get_or_insert_default();
        exchanges.puback(ack.packet_id)?;
        self.retransmit(now, out);
        Ok(Event::Acknowledged {
            packet_id: ack.packet_id,
            reason: ack.reason,
        })
    }

    fn handle_pubrec<'p>(
        &mut self,
        ack: &Ack<'p>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<Event<'p>, Violation> {
        let packet_id = ack.packet_id;
        let exchanges = self.exchanges.get_or_insert_default();
        match exchanges.pubrec(ack)? {
            PubRecAnswer::Over => {
                self.retransmit(now, out);
                Ok(Event::Acknowledged {
                    packet_id,
                    reason: ack.reason,
                })
            }
            PubRecAnswer::Release(reason) => {
                let release = Ack {
                    reason,
                    ..success(packet_id)
                };
                // [MQTT-4.3.3-4] [MQTT-4.6.0-4] [MQTT3-4.6.0-4]
                self.link.reply(&Packet::PubRel(release), now, out)?;
                Ok(Event::Released)
            }
        }
    }

    fn handle_pubrel<'p>(
        &mut self,
        ack: &Ack<'p>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<Event<'p>, Violation> {
        let exchanges = self.exchanges.as_mut();
        let is_known = exchanges.is_some_and(|exchanges| exchanges.pubrel(ack.packet_id));
        // After a lost PUBCOMP the server retransmits the PUBREL of an exchange that the client has
        // completed. [MQTT-3.7.2-1]
        let reason = if is_known {
            ReasonCode::Success
        } else {
            ReasonCode::PacketIdentifierNotFound
        };
        // [MQTT-4.3.3-11]
        let completed = Ack {
            reason,
            ..success(ack.packet_id)
        };
        self.link.reply(&Packet::PubComp(completed), now, out)?;
        Ok(Event::None)
    }

    fn handle_pubcomp<'p>(
        &mut self,
        ack: &Ack<'p>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<Event<'p>, Violation> {
        let packet_id = ack.packet_id;
        let exchanges = self.exchanges.get_or_insert_default();
        if !exchanges.pubcomp(packet_id)? {
            // This PUBCOMP answers the PUBREL to an unexpected PUBREC.
            return Ok(Event::None);
        }
        self.retransmit(now, out);
        // The server accepted the message with its PUBREC, even if it has discarded the identifier
        // since.
        Ok(Event::Acknowledged {
            packet_id,
            reason: ReasonCode::Success,
        })
    }

    fn handle_suback<'p>(&mut self, ack: SubAck<'p>) -> Result<Event<'p>, Violation> {
        let exchanges = self.exchanges.get_or_insert_default();
        let filters = exchanges.take_request(ack.packet_id, RequestKind::Subscribe)?;
        self.release_exchanges();
        if ack.codes.len() != filters {
            return Err(protocol_error("SUBACK without one reason code per filter"));
        }
        Ok(Event::Subscribed(ack))
    }

    fn handle_unsuback<'p>(&mut self, ack: SubAck<'p>) -> Result<Event<'p>, Violation> {
        let exchanges = self.exchanges.get_or_insert_default();
        let filters = exchanges.take_request(ack.packet_id, RequestKind::Unsubscribe)?;
        self.release_exchanges();
        if self.options.version == Version::V5 && ack.codes.len() != filters {
            return Err(protocol_error(
                "UNSUBACK without one reason code per filter",
            ));
        }
        Ok(Event::Unsubscribed(ack))
    }

    fn handle_disconnect<'p>(
        &mut self,
        disconnect: Disconnect<'p>,
    ) -> Result<Event<'p>, Violation> {
        if self.options.version != Version::V5 {
            return Err(protocol_error("DISCONNECT from a 3.x server"));
        }
        // [MQTT-4.13.2-1]
        self.link.close();
        Ok(Event::Disconnected(disconnect))
    }

    /// Resumes the session: retransmits unacknowledged messages as far as the server's window
    /// allows.
    fn resume(&mut self, now: Time, out: &mut Vec<u8>) -> Result<(), Violation> {
        let Some(exchanges) = &mut self.exchanges else {
            return Ok(());
        };
        exchanges.resume(self.link.limits());
        // [MQTT-4.4.0-1] [MQTT-4.6.0-4] [MQTT3-4.4.0-1] [MQTT3-4.6.0-4]
        for packet_id in exchanges.releases() {
            let release = Packet::PubRel(success(packet_id));
            self.link.reply(&release, now, out)?;
        }
        self.retransmit(now, out);
        self.release_exchanges();
        Ok(())
    }

    /// Retransmits messages of the resumed session while the window is open.
    fn retransmit(&mut self, now: Time, out: &mut Vec<u8>) {
        let window = self.window_max();
        if let Some(exchanges) = &mut self.exchanges
            && exchanges.retransmit(window, out)
        {
            self.link.mark_sent(now);
        }
    }
}

/// An acknowledgement with the reason code `Success` and without properties.
// [MQTT-2.2.1-5] [MQTT3-2.3.1-6]
fn success<'a>(packet_id: PacketId) -> Ack<'a> {
    Ack {
        packet_id,
        reason: ReasonCode::Success,
        properties: AckProperties::default(),
    }
}
