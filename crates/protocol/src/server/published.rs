//! What the client publishes: checks, `QoS` 1 and 2 towards the node, and what the client is told
//! of the outcome.

use alloc::rc::Rc;

use thrum_codec::packet::{Ack, Packet, Publish};
use thrum_codec::reason::Carrier;
use thrum_codec::{PacketId, QoS, ReasonCode, Version};

use super::handshake::{check_qos, check_retain, check_topic};
use super::inbound::protocol_error;
use super::{Action, Session, Step};
use crate::{Output, Violation};

impl Session {
    /// The topic of a PUBLISH that [`Session::handle_packet`] has not seen yet, the one its alias
    /// stands for if it has none itself; none if that alias is not known, so that the packet breaks
    /// the protocol. Changes nothing.
    pub fn topic_of<'a>(&'a self, publish: &Publish<'a>) -> Option<&'a str> {
        if !publish.topic.is_empty() {
            return Some(publish.topic);
        }
        self.inbound_aliases.topic(publish.properties.topic_alias?)
    }

    /// Whether a PUBLISH that [`Session::handle_packet`] has not seen yet repeats one that the node
    /// has: it is answered without the node. Changes nothing.
    pub fn is_repeated(&self, publish: &Publish<'_>) -> bool {
        publish.qos == QoS::ExactlyOnce
            && publish
                .packet_id
                .is_some_and(|packet_id| self.received.contains(packet_id))
    }

    /// Outcome of [`Action::Publish`]: PUBACK or PUBREC with it (nothing for `QoS` 0).
    ///
    /// To be called once for every [`Action::Publish`], in their order, and also if the connection
    /// is gone by then: it is how the session tells which acknowledgements belong to the connection
    /// it has now.
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

    /// In place of [`Session::publish_done`]: the node does not take the message, and the
    /// connection is to end for it, because the client's version has no way to be told or because
    /// it is not allowed to publish it. Nothing is answered and the exchange is forgotten, so that
    /// the client may begin it again; the caller ends the connection.
    pub fn publish_withdrawn(&mut self, qos: QoS, packet_id: Option<PacketId>) {
        let Some(packet_id) = packet_id else { return };
        match qos {
            QoS::AtMostOnce => {}
            QoS::AtLeastOnce => {
                self.qos1_routed();
            }
            QoS::ExactlyOnce => {
                self.forget_received(packet_id);
            }
        }
    }

    pub(super) fn handle_publish<'p>(
        &mut self,
        publish: Publish<'p>,
        out: &mut Output,
    ) -> Result<Action<'p>, Violation> {
        check_qos(publish.qos, &self.limits)?;
        if self.version == Version::V5 {
            // [MQTT-3.2.2-14]
            check_retain(publish.retain, self.retain_available)?;
        }
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
            self.carried.received();
            // 3.x cannot be told that nothing is retained.
            let retain = publish.retain && self.retain_available;
            let publish = Publish { retain, ..publish };
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
        // 3.x could only be told that all is well, so there the two kinds of exchange are kept
        // apart.
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
        // Once begun, the exchange has nothing to do with the expiry of the message.
        // [MQTT-4.3.3-13]
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
        // The client sends the message again on its new connection; a PUBACK for the old one could
        // be taken for that of a later message with the same identifier.
        if self.qos1_routed() {
            // [MQTT-3.3.4-1] [MQTT-4.3.2-4] [MQTT3-3.3.4-1] [MQTT3-4.3.2-2]
            self.answer_publish(Packet::PubAck, packet_id, outcome, out);
        }
    }

    /// The node is done with the oldest `QoS` 1 message; true if it came on this connection.
    fn qos1_routed(&mut self) -> bool {
        if self.routing_before > 0 {
            self.routing_before -= 1;
            return false;
        }
        self.routing = self.routing.saturating_sub(1);
        self.unacknowledged -= 1;
        true
    }

    /// A `QoS` 2 exchange ends without PUBREL.
    fn forget_received(&mut self, packet_id: PacketId) {
        if let Some(exchange) = self.received.remove(packet_id) {
            self.note(Step::ReceivedRemoved { packet_id });
            self.unacknowledged -= i32::from(exchange.on_connection);
        }
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
            self.forget_received(packet_id);
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
}
