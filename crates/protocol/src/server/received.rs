//! `QoS` 2 messages of the client between PUBLISH and PUBREL.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use thrum_codec::PacketId;

/// Entries that stay allocated while no exchange is in progress; the memory of a larger burst is
/// freed.
const IDLE_CAPACITY_MAX: usize = 64;

/// One message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    packet_id: PacketId,
    /// Whether the node has reported the outcome, so that PUBREC may be sent.
    pub(super) routed: bool,
    /// Whether its PUBLISH arrived on this connection: it counts against the receive maximum, and
    /// its PUBREC is expected here.
    pub(super) on_connection: bool,
}

/// The messages by packet identifier; at most as many as there are identifiers.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// Ascending by identifier: clients allocate identifiers in ascending order, so most changes
    /// are at the ends.
    #[expect(
        clippy::box_collection,
        reason = "absent for most clients, so it is one pointer"
    )]
    exchanges: Option<Box<VecDeque<Exchange>>>,
}

impl Received {
    pub(super) fn contains(&self, packet_id: PacketId) -> bool {
        self.exchanges
            .as_ref()
            .is_some_and(|list| search(list, packet_id).is_ok())
    }

    pub(super) fn len(&self) -> usize {
        self.exchanges.as_ref().map_or(0, |list| list.len())
    }

    pub(super) fn find(&mut self, packet_id: PacketId) -> Option<&mut Exchange> {
        let list = self.exchanges.as_mut()?;
        let place = search(list, packet_id).ok()?;
        list.get_mut(place)
    }

    /// Records a message that is passed to the node now.
    pub(super) fn insert(&mut self, packet_id: PacketId) {
        let list = self.exchanges.get_or_insert_default();
        let exchange = Exchange {
            packet_id,
            routed: false,
            on_connection: true,
        };
        match search(list, packet_id) {
            Ok(_) => {}
            Err(place) if place == list.len() => list.push_back(exchange),
            Err(place) => list.insert(place, exchange),
        }
    }

    pub(super) fn remove(&mut self, packet_id: PacketId) -> Option<Exchange> {
        let list = self.exchanges.as_mut()?;
        let place = search(list, packet_id).ok()?;
        let removed = list.remove(place);
        if list.is_empty() && list.capacity() > IDLE_CAPACITY_MAX {
            self.exchanges = None;
        }
        removed
    }

    /// Restores the messages that were received before the node started: they were routed, on
    /// another connection.
    pub(super) fn restore(mut packet_ids: Vec<PacketId>) -> Self {
        packet_ids.sort_unstable();
        packet_ids.dedup();
        let exchange = |packet_id| Exchange {
            packet_id,
            routed: true,
            on_connection: false,
        };
        let list: VecDeque<_> = packet_ids.into_iter().map(exchange).collect();
        Self {
            exchanges: (!list.is_empty()).then(|| Box::new(list)),
        }
    }

    /// Every packet identifier, in ascending order.
    #[cfg(test)]
    pub(super) fn packet_ids(&self) -> impl Iterator<Item = PacketId> {
        let exchanges = self.exchanges.iter().flat_map(|list| list.iter());
        exchanges.map(|exchange| exchange.packet_id)
    }

    /// Discards the state that ends with the connection.
    pub(super) fn end_connection(&mut self) {
        if self.exchanges.as_ref().is_some_and(|list| list.is_empty()) {
            self.exchanges = None;
        }
        for exchange in self.exchanges.iter_mut().flat_map(|list| list.iter_mut()) {
            exchange.on_connection = false;
        }
    }
}

fn search(list: &VecDeque<Exchange>, packet_id: PacketId) -> Result<usize, usize> {
    match list.front() {
        Some(front) if front.packet_id == packet_id => Ok(0),
        _ => match list.back() {
            Some(back) if back.packet_id < packet_id => Err(list.len()),
            _ => list.binary_search_by_key(&packet_id, |exchange| exchange.packet_id),
        },
    }
}
