//! A session that the node restores from the storage at its start.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::{PacketId, QoS, Version};

use super::held::Held;
use super::journal::UNRECORDED;
use super::outbound::Outbound;
use super::{Awaiting, GroupId, Seq, SessionJournal, Step};
use crate::{Limits, Message, Time};

/// The part of a session that survives a crash.
#[derive(Debug)]
pub struct Stored {
    /// Number on the node.
    pub id: u64,
    /// Client identifier.
    pub client_id: Box<str>,
    /// Protocol version of the last connection.
    pub version: Version,
    /// Seconds; `u32::MAX` means never.
    pub session_expiry: u32,
    /// End of the last connection; expiry and will delay count from this time.
    pub away_since: Time,
    /// [`Outbound::last_packet_id`](super::Outbound::last_packet_id) at an earlier time; packet
    /// identifiers continue after it.
    pub last_packet_id: u16,
    /// Highest sequence number of a delivery; sequence numbers continue after it.
    pub seq_max: Seq,
    /// Deliveries in the order of their sequence numbers.
    pub deliveries: Vec<StoredDelivery>,
    /// `QoS` 2 messages of the client that were accepted and not released.
    pub received: Vec<PacketId>,
    /// The will.
    pub will: Option<StoredWill>,
}

/// A delivery that is queued or in flight.
#[derive(Debug)]
pub struct StoredDelivery {
    /// Its sequence number.
    pub seq: Seq,
    /// Time at which it was queued, for the age limit; the arrival time of its message will do.
    pub queued_at: Time,
    /// The message; `None` if only a PUBCOMP is expected.
    pub message: Option<Arc<Message>>,
    /// Its packet identifier and the expected acknowledgement; `None` while it is queued.
    pub inflight: Option<(PacketId, Awaiting)>,
    /// Quality of service of the delivery.
    pub qos: QoS,
    /// Retain flag of the delivery.
    pub retain: bool,
    /// Subscription identifiers.
    pub identifiers: Box<[u32]>,
    /// Shared subscription that the session was chosen for.
    pub group: Option<GroupId>,
}

/// A will that may still have to be published.
#[derive(Debug)]
pub struct StoredWill {
    /// Its message.
    pub message: Message,
    /// Seconds from the end of the connection until it is due.
    pub delay_secs: u32,
    /// Message expiry in seconds, counted from its publication.
    pub message_expiry: Option<u32>,
}

/// A will in the form to be persisted.
#[derive(Clone, Copy, Debug)]
pub struct WillView<'a> {
    /// Its message.
    pub message: &'a Message,
    /// Seconds from the end of the connection until it is due.
    pub delay_secs: u32,
    /// Message expiry in seconds, counted from its publication.
    pub message_expiry: Option<u32>,
}

impl Outbound {
    /// Restores the deliveries in the order of their sequence numbers. Packet identifiers continue
    /// after the last.
    pub(super) fn restore(
        deliveries: Vec<StoredDelivery>,
        last_packet_id: u16,
        limits: &Limits,
        journal: &mut SessionJournal,
    ) -> Self {
        let mut outbound = Self::after(last_packet_id);
        let replaced = replaced(&deliveries);
        for delivery in deliveries {
            let seq = delivery.seq;
            if replaced.contains(&seq) || outbound.restore_delivery(delivery, limits).is_none() {
                journal.record(Step::Removed { seq });
            }
        }
        outbound
    }

    /// Restores one delivery; `None` if it cannot be completed.
    fn restore_delivery(&mut self, delivery: StoredDelivery, limits: &Limits) -> Option<()> {
        let StoredDelivery { seq, qos, .. } = delivery;
        match delivery.inflight {
            None => {
                let held = Held::restore(delivery, qos)?;
                let priority = limits.queue.priority(held.message.topic());
                self.queue.push(held, priority);
            }
            Some((packet_id, Awaiting::PubComp)) => self.inflight.push_released(packet_id, seq),
            Some((packet_id, Awaiting::PubRec)) => {
                let held = Held::restore(delivery, QoS::ExactlyOnce)?;
                self.inflight.push(packet_id, held);
            }
            Some((packet_id, Awaiting::PubAck)) => {
                let held = Held::restore(delivery, QoS::AtLeastOnce)?;
                self.inflight.push(packet_id, held);
            }
        }
        Some(())
    }
}

impl SessionJournal {
    /// Creates a journal that continues after these deliveries, which are in the order of their
    /// sequence numbers, and after the highest sequence number ever assigned.
    pub(super) fn after(deliveries: &[StoredDelivery], seq_max: Seq) -> Self {
        let seq_last = deliveries.last().map_or(UNRECORDED, |last| last.seq);
        let sent = deliveries
            .iter()
            .filter(|delivery| delivery.inflight.is_some());
        let sent_last = sent.map(|delivery| delivery.seq).max();
        Self::continue_after(seq_last.max(seq_max), sent_last.unwrap_or(UNRECORDED))
    }
}

/// Sequence numbers of the deliveries whose packet identifier a later one has: they were
/// acknowledged, but the record of the acknowledgement is damaged.
fn replaced(deliveries: &[StoredDelivery]) -> Vec<Seq> {
    let ids = deliveries
        .iter()
        .filter_map(|delivery| Some((delivery.inflight?.0, delivery.seq)));
    let mut ids: Vec<(PacketId, Seq)> = ids.collect();
    ids.sort_unstable();
    let pairs = ids.iter().zip(ids.iter().skip(1));
    pairs
        .filter(|((earlier, _), (later, _))| earlier == later)
        .map(|((_, seq), _)| *seq)
        .collect()
}
