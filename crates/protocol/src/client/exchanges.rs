//! What is under way between a client and its server: absent while there is nothing, so that an
//! idle client is small.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use thrum_codec::{PacketId, QoS};

use super::aliases::Aliases;

/// A message sent with QoS 1 or 2 and neither acknowledged nor received (PUBREC) yet.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) packet_id: PacketId,
    pub(super) qos: QoS,
    /// The packet to send again, without topic alias; kept only for sessions that can be resumed.
    pub(super) frame: Option<Box<[u8]>>,
}

/// A SUBSCRIBE or UNSUBSCRIBE without its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) packet_id: PacketId,
    pub(super) kind: RequestKind,
    pub(super) filters: usize,
}

/// Which answer a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Subscribe,
    Unsubscribe,
}

/// Exchanges that are not finished; bounded by the windows of both sides and by the packet
/// identifiers.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    /// In the order they were sent first.
    pub(super) publishes: VecDeque<Flight>,
    /// How many at the end of `publishes` are still to be sent again on this connection.
    pub(super) unsent: usize,
    /// PUBREL sent, PUBCOMP awaited; in the order of the PUBRECs.
    pub(super) releases: VecDeque<PacketId>,
    /// QoS 2 messages of the server between PUBREC and PUBREL, ascending.
    pub(super) received: VecDeque<PacketId>,
    pub(super) requests: Vec<Request>,
    pub(super) inbound_aliases: Aliases,
    pub(super) outbound_aliases: Aliases,
}

impl Exchanges {
    /// Every packet identifier that this client has in use.
    pub(super) fn packet_ids(&self) -> impl Iterator<Item = PacketId> + Clone {
        let publishes = self.publishes.iter().map(|flight| flight.packet_id);
        let requests = self.requests.iter().map(|request| request.packet_id);
        publishes
            .chain(self.releases.iter().copied())
            .chain(requests)
    }

    /// Messages that count against the server's receive maximum.
    pub(super) fn inflight(&self) -> usize {
        self.publishes.len() - self.unsent + self.releases.len()
    }

    /// Messages not yet acknowledged, sent on this connection or not.
    pub(super) fn unacknowledged(&self) -> usize {
        self.publishes.len() + self.releases.len()
    }

    /// Forgets what ends with the connection.
    pub(super) fn end_connection(&mut self) {
        // [MQTT-3.3.2-7]
        self.inbound_aliases.clear();
        self.outbound_aliases.clear();
        self.requests = Vec::new();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unacknowledged() == 0
            && self.received.is_empty()
            && self.requests.is_empty()
            && self.inbound_aliases.is_empty()
            && self.outbound_aliases.is_empty()
    }
}
