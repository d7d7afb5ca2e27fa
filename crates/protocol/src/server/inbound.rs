//! What the client sends: which packet means what, its acknowledgements, its requests and its
//! goodbye.

use thrum_codec::packet::{Ack, Disconnect, Packet, ReasonCodes, SubAck};
use thrum_codec::properties::AckProperties;
use thrum_codec::{PacketId, ReasonCode, Version};

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
            Packet::Auth(auth) => return self.handle_auth(auth),
            Packet::ConnAck(_) | Packet::SubAck(_) | Packet::UnsubAck(_) | Packet::PingResp => {
                return Err(protocol_error("packet that only a server sends"));
            }
        }
        Ok(Action::None)
    }

    /// SUBACK, with words for the client (5.0) if it wants any.
    pub fn suback(
        &mut self,
        packet_id: PacketId,
        codes: &[ReasonCode],
        what: Option<&str>,
        out: &mut Output,
    ) {
        let plain = answer(packet_id, codes);
        // [MQTT-3.1.2-29]
        if let Some(what) = what
            && self.link == Link::Up
            && self.version == Version::V5
            && self.wants_words
        {
            let mut told = plain;
            told.properties.reason_string = Some(what);
            // [MQTT-3.9.2-1]
            if self.append(&Packet::SubAck(told), out) {
                return;
            }
        }
        // [MQTT-3.8.4-1] [MQTT-3.8.4-2] [MQTT-2.2.1-6] [MQTT3-3.8.4-1] [MQTT3-3.8.4-2]
        // [MQTT3-2.3.1-7]
        self.append_answer(&Packet::SubAck(plain), out);
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

    /// An answer with the packet identifier of what it answers. [MQTT-2.2.1-5] [MQTT3-2.3.1-6]
    pub(super) fn append_ack(
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
        // A client counts every PUBCOMP as room in its window, also for an exchange of an earlier
        // connection, so the number may fall below 0: nobody who keeps the rules is refused for
        // such a one.
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

pub(super) fn protocol_error(what: &'static str) -> Violation {
    Violation::new(ReasonCode::ProtocolError, what)
}
