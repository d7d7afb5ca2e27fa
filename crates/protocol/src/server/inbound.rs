//! Messages that the client publishes: its topic aliases, and its incomplete exchanges.

use alloc::rc::Rc;

use thrum_codec::packet::Publish;
use thrum_codec::{PacketId, QoS, ReasonCode, Version};

use super::packets::protocol_error;
use super::received::Received;
use super::topic_aliases::InboundAliases;
use super::{SessionJournal, Step};
use crate::{Limits, Violation};

/// Topic aliases that the client set, and the exchanges of its messages with `QoS` 1 and 2.
#[derive(Debug, Default)]
pub struct Inbound {
    received: Received,
    aliases: InboundAliases,
    /// Number of `QoS` 1 and 2 messages of this connection minus the number of exchanges that ended
    /// on it: the client's count against the receive maximum.
    unacknowledged: i32,
    /// `QoS` 1 messages of this connection for which the node has not reported an outcome yet.
    routing: u16,
    /// The same for earlier connections: their PUBACK must not be sent on this one.
    routing_before: u16,
}

/// The action that a PUBLISH requires.
#[derive(Clone, Copy, Debug)]
pub(super) enum PublishAction {
    /// Pass the message to the node.
    New,
    /// A `QoS` 2 exchange uses the packet identifier: answer with PUBACK and that reason code.
    InUse(PacketId),
    /// The node has the message and reported the outcome: send PUBREC again.
    Routed(PacketId),
    /// The node has the message and will report the outcome: PUBREC follows.
    Routing,
}

impl Inbound {
    /// Restores the messages that were received before the node started.
    pub(super) fn restore(received: Received) -> Self {
        Self {
            received,
            ..Self::default()
        }
    }

    /// The topic of a PUBLISH before its call to [`Session::handle_packet`]: its own, or the one
    /// assigned to its alias. `None` if the alias is unknown, so that the packet is a protocol
    /// error. Changes nothing.
    ///
    /// [`Session::handle_packet`]: super::Session::handle_packet
    pub fn topic_of<'a>(&'a self, publish: &Publish<'a>) -> Option<&'a str> {
        if !publish.topic.is_empty() {
            return Some(publish.topic);
        }
        self.aliases.topic(publish.properties.topic_alias?)
    }

    /// Whether a PUBLISH, before its call to [`Session::handle_packet`], repeats one that the node
    /// has: the session answers it without the node. Changes nothing.
    ///
    /// [`Session::handle_packet`]: super::Session::handle_packet
    pub fn is_repeated(&self, publish: &Publish<'_>) -> bool {
        publish.qos == QoS::ExactlyOnce
            && publish
                .packet_id
                .is_some_and(|packet_id| self.received.contains(packet_id))
    }

    /// Messages of the client with `QoS` 1 and 2 whose exchange is not over.
    pub fn under_way(&self) -> usize {
        let routing = usize::from(self.routing) + usize::from(self.routing_before);
        self.received.len() + routing
    }

    /// The topic assigned to the alias of a PUBLISH, if it has one; the PUBLISH may set the alias.
    pub(super) fn resolve_alias(
        &mut self,
        publish: &Publish<'_>,
        topic_alias_maximum: u16,
    ) -> Result<Option<Rc<str>>, Violation> {
        match publish.properties.topic_alias {
            Some(alias) => self
                .aliases
                .resolve(alias, publish.topic, topic_alias_maximum),
            None if publish.topic.is_empty() => Err(protocol_error("empty topic name")),
            None => Ok(None),
        }
    }

    /// Starts the exchange of a PUBLISH, or finds the one that it repeats.
    pub(super) fn begin(
        &mut self,
        publish: &Publish<'_>,
        version: Version,
        limits: &Limits,
        journal: &mut SessionJournal,
    ) -> Result<PublishAction, Violation> {
        match (publish.qos, publish.packet_id) {
            (QoS::AtMostOnce, _) => Ok(PublishAction::New),
            (QoS::AtLeastOnce, Some(packet_id)) => self.begin_qos1(packet_id, version, limits),
            (QoS::ExactlyOnce, Some(packet_id)) => {
                self.begin_qos2(packet_id, version, limits, journal)
            }
            (_, None) => Err(protocol_error("PUBLISH without packet identifier")),
        }
    }

    /// Records the outcome of the oldest `QoS` 1 message; returns whether it was received on this
    /// connection, which expects its PUBACK.
    ///
    /// After a reconnect the client retransmits the message; a PUBACK for the earlier transmission
    /// could be taken for that of a later message with the same identifier.
    pub(super) fn qos1_done(&mut self) -> bool {
        if self.routing_before > 0 {
            self.routing_before -= 1;
            return false;
        }
        self.routing = self.routing.saturating_sub(1);
        self.unacknowledged -= 1;
        true
    }

    /// Records the outcome of a `QoS` 2 message, which may complete its exchange; returns whether
    /// this connection expects its PUBREC.
    pub(super) fn qos2_done(
        &mut self,
        packet_id: PacketId,
        is_over: bool,
        journal: &mut SessionJournal,
    ) -> bool {
        let Some(exchange) = self.received.find(packet_id) else {
            return false;
        };
        if exchange.routed {
            return false;
        }
        exchange.routed = true;
        let on_connection = exchange.on_connection;
        if is_over {
            self.forget(packet_id, journal);
        }
        on_connection
    }

    /// Ends a `QoS` 2 exchange without PUBREL.
    pub(super) fn forget(&mut self, packet_id: PacketId, journal: &mut SessionJournal) {
        if let Some(exchange) = self.received.remove(packet_id) {
            journal.record(Step::ReceivedRemoved { packet_id });
            self.unacknowledged -= i32::from(exchange.on_connection);
        }
    }

    /// Completes the exchange of a PUBREL and returns the reason code for its PUBCOMP.
    pub(super) fn pubrel(
        &mut self,
        packet_id: PacketId,
        journal: &mut SessionJournal,
    ) -> Result<ReasonCode, Violation> {
        let reason = match self.received.find(packet_id) {
            Some(exchange) if !exchange.routed => {
                return Err(protocol_error("PUBREL before PUBREC"));
            }
            Some(_) => {
                // [MQTT-4.3.3-12]
                self.received.remove(packet_id);
                journal.record(Step::ReceivedRemoved { packet_id });
                ReasonCode::Success
            }
            None => ReasonCode::PacketIdentifierNotFound,
        };
        // A client counts every PUBCOMP as room in its window, also for an exchange of an earlier
        // connection. The number may therefore fall below 0, so that no client that conforms is
        // refused.
        self.unacknowledged = self.unacknowledged.saturating_sub(1);
        Ok(reason)
    }

    /// Discards the state that ends with the connection.
    pub(super) fn end_connection(&mut self) {
        self.received.end_connection();
        self.routing_before = self.routing_before.saturating_add(self.routing);
        self.routing = 0;
        self.unacknowledged = 0;
        // [MQTT-3.3.2-7]
        self.aliases.clear();
    }

    /// Every packet identifier of a `QoS` 2 exchange, in ascending order.
    #[cfg(test)]
    pub(super) fn packet_ids(&self) -> impl Iterator<Item = PacketId> {
        self.received.packet_ids()
    }

    fn begin_qos1(
        &mut self,
        packet_id: PacketId,
        version: Version,
        limits: &Limits,
    ) -> Result<PublishAction, Violation> {
        // 3.x has no reason code for this case, so the two kinds of exchange are kept apart there.
        if version == Version::V5 && self.received.contains(packet_id) {
            return Ok(PublishAction::InUse(packet_id));
        }
        // [MQTT-4.3.2-5] [MQTT3-4.3.2-2]
        self.count_unacknowledged(version, limits)?;
        self.routing = self.routing.saturating_add(1);
        Ok(PublishAction::New)
    }

    // Inlining would slow down messages with another quality of service.
    #[inline(never)]
    fn begin_qos2(
        &mut self,
        packet_id: PacketId,
        version: Version,
        limits: &Limits,
        journal: &mut SessionJournal,
    ) -> Result<PublishAction, Violation> {
        let Some(exchange) = self.received.find(packet_id) else {
            self.count_unacknowledged(version, limits)?;
            self.received.insert(packet_id);
            journal.record(Step::Received { packet_id });
            return Ok(PublishAction::New);
        };
        // An exchange that has started ignores the message expiry. [MQTT-4.3.3-13] [MQTT-4.3.3-10]
        // [MQTT3-4.3.3-2]
        let is_routed = exchange.routed;
        if !exchange.on_connection {
            exchange.on_connection = true;
            self.count_unacknowledged(version, limits)?;
        }
        Ok(if is_routed {
            PublishAction::Routed(packet_id)
        } else {
            PublishAction::Routing
        })
    }

    fn count_unacknowledged(&mut self, version: Version, limits: &Limits) -> Result<(), Violation> {
        let is_full = self.unacknowledged >= i32::from(limits.receive_maximum.max(1));
        // [MQTT-3.3.4-7]
        if is_full && version == Version::V5 {
            return Err(Violation::new(
                ReasonCode::ReceiveMaximumExceeded,
                "more unacknowledged messages than the receive maximum",
            ));
        }
        self.unacknowledged = self.unacknowledged.saturating_add(1);
        Ok(())
    }
}
