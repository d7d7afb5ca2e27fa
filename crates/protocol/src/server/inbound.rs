//! What the client sends: its publishes, its acknowledgements, its requests and its goodbye.

use alloc::rc::Rc;

use thrum_codec::packet::{Ack, Disconnect, Packet, Publish, ReasonCodes, SubAck};
use thrum_codec::properties::AckProperties;
use thrum_codec::reason::Carrier;
use thrum_codec::{PacketId, QoS, ReasonCode, Version};

use super::handshake::{check_qos, check_retain, check_topic};
use super::session::Link;
use super::{Action, Awaiting, Session, Step};
use crate::{Output, Time, Violation};

impl Session {
    /// One packet from the client. Any packet counts as a sign of life.
    ///
    /// # Errors
    /// The client broke the protocol: call [`Session::disconnect`] and close.
    // [MQTT-4.13.1-1] [MQTT3-4.8.0-1]
    pub fn handle_packet<'p>(
        &mut self,
        packet: Packet<'p>,
        now: Time,
        out: &mut Output,
    ) -> Result<Action<'p>, Violation> {
        if self.link != Link::Up {
            return Ok(Action::None);
        }
        self.seen = now;
        match packet {
            Packet::Publish(publish) => return self.handle_publish(publish, out),
            Packet::PubAck(ack) => self.handle_puback(ack, now, out)?,
            Packet::PubRec(ack) => self.handle_pubrec(ack, now, out)?,
            Packet::PubRel(ack) => self.handle_pubrel(ack, out)?,
            Packet::PubComp(ack) => self.handle_pubcomp(ack, now, out)?,
            Packet::Subscribe(subscribe) => return Ok(Action::Subscribe(subscribe)),
            Packet::Unsubscribe(unsubscribe) => return Ok(Action::Unsubscribe(unsubscribe)),
            // [MQTT-3.12.4-1] [MQTT3-3.12.4-1]
            Packet::PingReq => {
                self.append(&Packet::PingResp, out);
            }
            Packet::Disconnect(disconnect) => return self.handle_disconnect(&disconnect),
            // [MQTT-3.1.0-2] [MQTT-3.2.0-2] [MQTT3-3.1.0-2]
            Packet::Connect(_) => return Err(protocol_error("second CONNECT")),
            // [MQTT-4.12.0-6]
            Packet::Auth(_) => return Err(protocol_error("AUTH without authentication method")),
            Packet::ConnAck(_) | Packet::SubAck(_) | Packet::UnsubAck(_) | Packet::PingResp => {
                return Err(protocol_error("packet that only a server sends"));
            }
        }
        Ok(Action::None)
    }

    /// Outcome of [`Action::Publish`]: PUBACK or PUBREC with it (nothing for `QoS` 0).
    ///
    /// To be called once for every [`Action::Publish`], in their order, and also if the connection is gone by
    /// then: it is how the session tells which acknowledgements belong to the connection it has now.
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
            QoS::AtLeastOnce => self.qos1_done(packet_id, outcome, out),
            QoS::ExactlyOnce => self.qos2_done(packet_id, outcome, out),
        }
    }

    /// In place of [`Session::publish_done`]: the node cannot take the message, and the client's version has no way to be
    /// told. Nothing is answered and the exchange is forgotten, so that the client may begin it again; the caller ends
    /// the connection.
    pub fn publish_withdrawn(&mut self, qos: QoS, packet_id: Option<PacketId>) {
        let Some(packet_id) = packet_id else { return };
        match qos {
            QoS::AtMostOnce => return,
            QoS::AtLeastOnce => self.routing = self.routing.saturating_sub(1),
            QoS::ExactlyOnce => {
                self.received.remove(packet_id);
                self.note(Step::ReceivedRemoved { packet_id });
            }
        }
        self.unacknowledged = self.unacknowledged.saturating_sub(1);
    }

    /// SUBACK.
    pub fn suback(&mut self, packet_id: PacketId, codes: &[ReasonCode], out: &mut Output) {
        // [MQTT-3.8.4-1] [MQTT-3.8.4-2] [MQTT-2.2.1-6] [MQTT3-3.8.4-1] [MQTT3-3.8.4-2] [MQTT3-2.3.1-7]
        self.append_answer(&Packet::SubAck(answer(packet_id, codes)), out);
    }

    /// UNSUBACK.
    pub fn unsuback(&mut self, packet_id: PacketId, codes: &[ReasonCode], out: &mut Output) {
        // [MQTT-3.10.4-4] [MQTT-3.10.4-5] [MQTT3-3.10.4-4] [MQTT3-3.10.4-5]
        self.append_answer(&Packet::UnsubAck(answer(packet_id, codes)), out);
    }

    /// Answers pass whatever the window and the congestion are. [MQTT-3.3.4-10] [MQTT-4.9.0-3]
    fn append_answer(&self, packet: &Packet<'_>, out: &mut Output) {
        if self.link == Link::Up {
            self.append(packet, out);
        }
    }

    fn handle_publish<'p>(
        &mut self,
        publish: Publish<'p>,
        out: &mut Output,
    ) -> Result<Action<'p>, Violation> {
        check_qos(publish.qos, &self.limits)?;
        // [MQTT-3.2.2-14]
        check_retain(publish.retain, &self.limits)?;
        check_topic(publish.topic, &self.limits)?;
        // [MQTT-3.3.4-6]
        if !publish.properties.subscription_identifiers.is_empty() {
            return Err(protocol_error("subscription identifier from a client"));
        }
        let alias = self.resolve_alias(&publish)?;
        let is_new = match (publish.qos, publish.packet_id) {
            (QoS::AtMostOnce, _) => true,
            (QoS::AtLeastOnce, Some(packet_id)) => self.begin_qos1(packet_id, out)?,
            (QoS::ExactlyOnce, Some(packet_id)) => self.begin_qos2(packet_id, out)?,
            (_, None) => return Err(protocol_error("PUBLISH without packet identifier")),
        };
        if is_new {
            Ok(Action::Publish { publish, alias })
        } else {
            Ok(Action::None)
        }
    }

    fn resolve_alias(&mut self, publish: &Publish<'_>) -> Result<Option<Rc<str>>, Violation> {
        match publish.properties.topic_alias {
            Some(alias) => {
                let maximum = self.limits.topic_alias_maximum;
                self.inbound_aliases.resolve(alias, publish.topic, maximum)
            }
            None if publish.topic.is_empty() => Err(protocol_error("empty topic name")),
            None => Ok(None),
        }
    }

    /// True if the message goes to the node.
    fn begin_qos1(&mut self, packet_id: PacketId, out: &mut Output) -> Result<bool, Violation> {
        // 3.x could only be told that all is well, so there the two kinds of exchange are kept apart.
        if self.version == Version::V5 && self.received.contains(packet_id) {
            self.answer_publish(
                Packet::PubAck,
                packet_id,
                ReasonCode::PacketIdentifierInUse,
                out,
            );
            return Ok(false);
        }
        // [MQTT-4.3.2-5] [MQTT3-4.3.2-2]
        self.count_unacknowledged()?;
        self.routing = self.routing.saturating_add(1);
        Ok(true)
    }

    /// True if the message goes to the node.
    fn begin_qos2(&mut self, packet_id: PacketId, out: &mut Output) -> Result<bool, Violation> {
        let Some(exchange) = self.received.find(packet_id) else {
            self.count_unacknowledged()?;
            self.received.insert(packet_id);
            self.note(Step::Received { packet_id });
            return Ok(true);
        };
        // Once begun, the exchange has nothing to do with the expiry of the message. [MQTT-4.3.3-13]
        // [MQTT-4.3.3-10] [MQTT3-4.3.3-2]
        let is_routed = exchange.routed;
        if !exchange.on_connection {
            exchange.on_connection = true;
            self.count_unacknowledged()?;
        }
        if is_routed {
            self.answer_publish(Packet::PubRec, packet_id, ReasonCode::Success, out);
        }
        Ok(false)
    }

    fn count_unacknowledged(&mut self) -> Result<(), Violation> {
        let is_full = self.unacknowledged >= i32::from(self.limits.receive_maximum.max(1));
        // [MQTT-3.3.4-7]
        if is_full && self.version == Version::V5 {
            return Err(Violation::new(
                ReasonCode::ReceiveMaximumExceeded,
                "more unacknowledged messages than the receive maximum",
            ));
        }
        self.unacknowledged = self.unacknowledged.saturating_add(1);
        Ok(())
    }

    fn qos1_done(&mut self, packet_id: PacketId, outcome: ReasonCode, out: &mut Output) {
        // The client sends the message again on its new connection; a PUBACK for the old one could be taken for
        // that of a later message with the same identifier.
        if self.routing_before > 0 {
            self.routing_before -= 1;
            return;
        }
        self.routing = self.routing.saturating_sub(1);
        self.unacknowledged -= 1;
        // [MQTT-3.3.4-1] [MQTT-4.3.2-4] [MQTT3-3.3.4-1] [MQTT3-4.3.2-2]
        self.answer_publish(Packet::PubAck, packet_id, outcome, out);
    }

    fn qos2_done(&mut self, packet_id: PacketId, outcome: ReasonCode, out: &mut Output) {
        let Some(exchange) = self.received.find(packet_id) else {
            return;
        };
        if exchange.routed {
            return;
        }
        exchange.routed = true;
        let on_connection = exchange.on_connection;
        // In 3.x a refused message is acknowledged like any other. [MQTT3-3.3.5-2]
        // [MQTT-4.3.3-9]
        if self.version == Version::V5 && outcome.is_error() {
            self.received.remove(packet_id);
            self.note(Step::ReceivedRemoved { packet_id });
            self.unacknowledged -= i32::from(on_connection);
        }
        if on_connection {
            // [MQTT-3.3.4-1] [MQTT-4.3.3-8] [MQTT3-3.3.4-1] [MQTT3-4.3.3-2]
            self.answer_publish(Packet::PubRec, packet_id, outcome, out);
        }
    }

    fn answer_publish(
        &self,
        kind: impl FnOnce(Ack<'static>) -> Packet<'static>,
        packet_id: PacketId,
        outcome: ReasonCode,
        out: &mut Output,
    ) {
        // [MQTT-3.4.2-1] [MQTT-3.5.2-1]
        let outcome = if outcome.may_be_in(Carrier::PubAck) {
            outcome
        } else {
            ReasonCode::UnspecifiedError
        };
        self.append_ack(kind, packet_id, outcome, out);
    }

    /// An answer with the packet identifier of what it answers. [MQTT-2.2.1-5] [MQTT3-2.3.1-6]
    fn append_ack(
        &self,
        kind: impl FnOnce(Ack<'static>) -> Packet<'static>,
        packet_id: PacketId,
        reason: ReasonCode,
        out: &mut Output,
    ) {
        let ack = Ack {
            packet_id,
            reason,
            // [MQTT-3.1.2-29] [MQTT-3.4.2-2] [MQTT-3.4.2-3] [MQTT-3.5.2-2] [MQTT-3.5.2-3]
            // [MQTT-3.6.2-2] [MQTT-3.6.2-3] [MQTT-3.7.2-2] [MQTT-3.7.2-3]
            properties: AckProperties::default(),
        };
        self.append_answer(&kind(ack), out);
    }

    fn handle_pubrel(&mut self, ack: Ack<'_>, out: &mut Output) -> Result<(), Violation> {
        let packet_id = ack.packet_id;
        let reason = match self.received.find(packet_id) {
            Some(exchange) if !exchange.routed => {
                return Err(protocol_error("PUBREL before PUBREC"));
            }
            Some(_) => {
                // [MQTT-4.3.3-12]
                self.received.remove(packet_id);
                self.note(Step::ReceivedRemoved { packet_id });
                ReasonCode::Success
            }
            None => ReasonCode::PacketIdentifierNotFound,
        };
        // A client counts every PUBCOMP as room in its window, also for an exchange of an earlier connection, so
        // the number may fall below 0: nobody who keeps the rules is refused for such a one.
        self.unacknowledged = self.unacknowledged.saturating_sub(1);
        // [MQTT-4.3.3-11] [MQTT3-4.3.3-2]
        self.append_ack(Packet::PubComp, packet_id, reason, out);
        Ok(())
    }

    fn handle_puback(
        &mut self,
        ack: Ack<'_>,
        now: Time,
        out: &mut Output,
    ) -> Result<(), Violation> {
        let Some(place) = self.inflight.find(ack.packet_id) else {
            return Ok(());
        };
        if self.inflight.awaiting(place) != Some(Awaiting::PubAck) {
            return Err(protocol_error("PUBACK for a message with QoS 2"));
        }
        // [MQTT-4.3.2-3] [MQTT-4.4.0-2] [MQTT-4.8.2-6] [MQTT3-4.3.2-1]
        self.finish(place);
        self.window_moved(now, out);
        Ok(())
    }

    fn handle_pubrec(
        &mut self,
        ack: Ack<'_>,
        now: Time,
        out: &mut Output,
    ) -> Result<(), Violation> {
        let Some(place) = self.inflight.find(ack.packet_id) else {
            if !ack.reason.is_error() {
                let reason = ReasonCode::PacketIdentifierNotFound;
                self.append_ack(Packet::PubRel, ack.packet_id, reason, out);
            }
            return Ok(());
        };
        if self.inflight.awaiting(place) == Some(Awaiting::PubAck) {
            return Err(protocol_error("PUBREC for a message with QoS 1"));
        }
        // [MQTT-4.4.0-2] [MQTT-4.8.2-6]
        if ack.reason.is_error() {
            self.finish(place);
            self.window_moved(now, out);
            return Ok(());
        }
        // [MQTT-4.3.3-3] [MQTT-4.3.3-4] [MQTT3-4.3.3-1]
        let seq = self.inflight.release(place);
        self.note_sent(seq, ack.packet_id, Awaiting::PubComp);
        self.append_ack(Packet::PubRel, ack.packet_id, ReasonCode::Success, out);
        Ok(())
    }

    fn handle_pubcomp(
        &mut self,
        ack: Ack<'_>,
        now: Time,
        out: &mut Output,
    ) -> Result<(), Violation> {
        let Some(place) = self.inflight.find(ack.packet_id) else {
            return Ok(());
        };
        if self.inflight.awaiting(place) != Some(Awaiting::PubComp) {
            return Err(protocol_error("PUBCOMP before PUBREL"));
        }
        // [MQTT-4.3.3-5] [MQTT3-4.3.3-1]
        self.finish(place);
        self.window_moved(now, out);
        Ok(())
    }

    fn handle_disconnect<'p>(
        &mut self,
        disconnect: &Disconnect<'_>,
    ) -> Result<Action<'p>, Violation> {
        if disconnect.properties.server_reference.is_some() {
            return Err(protocol_error("server reference from a client"));
        }
        if let Some(asked) = disconnect.properties.session_expiry {
            if self.session_expiry == 0 && asked > 0 {
                return Err(protocol_error(
                    "session expiry at DISCONNECT but none at CONNECT",
                ));
            }
            self.session_expiry = asked.min(self.limits.session_expiry_max);
        }
        self.link = Link::Closing;
        // [MQTT-3.1.2-10] [MQTT-3.14.4-3] [MQTT3-3.1.2-10] [MQTT3-3.14.4-3]
        if disconnect.reason == ReasonCode::Success {
            self.withdraw_will();
        }
        Ok(Action::Disconnected)
    }
}

fn answer(packet_id: PacketId, codes: &[ReasonCode]) -> SubAck<'_> {
    SubAck {
        packet_id,
        // [MQTT-3.1.2-29] [MQTT-3.9.2-1] [MQTT-3.9.2-2] [MQTT-3.11.2-1] [MQTT-3.11.2-2]
        properties: AckProperties::default(),
        // [MQTT-3.9.3-1] [MQTT-3.11.3-1] [MQTT3-3.9.3-1]
        codes: ReasonCodes::Listed(codes),
    }
}

fn protocol_error(what: &'static str) -> Violation {
    Violation::new(ReasonCode::ProtocolError, what)
}
