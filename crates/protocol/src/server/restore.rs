//! A session as the node finds it written down when it starts.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::{PacketId, QoS, Version};

use super::held::Held;
use super::journal::UNNOTED;
use super::outbound::Outbound;
use super::{Awaiting, GroupId, Seq, SessionJournal, Step};
use crate::{Limits, Message, Time};

/// All of a session that survives a crash.
#[derive(Debug)]
pub struct Stored {
    /// Number on the node.
    pub id: u64,
    /// Client identifier.
    pub client_id: Box<str>,
    /// Protocol version of the last connection.
    pub version: Version,
    /// Seconds; `u32::MAX` is never.
    pub session_expiry: u32,
    /// End of the last connection: expiry and will delay count from it.
    pub away_since: Time,
    /// [`Session::last_packet_id`] at some time before; identifiers go on behind it.
    pub last_packet_id: u16,
    /// Highest place that a delivery had; places go on behind it.
    pub seq_max: Seq,
    /// Deliveries in the order of their places.
    pub deliveries: Vec<StoredDelivery>,
    /// `QoS` 2 messages of the client that were taken over and have had no PUBREL.
    pub received: Vec<PacketId>,
    /// The will.
    pub will: Option<StoredWill>,
}

/// A delivery that waits or is under way.
#[derive(Debug)]
pub struct StoredDelivery {
    /// Its place.
    pub seq: Seq,
    /// When it was queued, for the limit of age; the time at which its message came is as good.
    pub queued_at: Time,
    /// What; none if only PUBCOMP is awaited.
    pub message: Option<Arc<Message>>,
    /// With which identifier it was sent and what is awaited; none while it waits.
    pub inflight: Option<(PacketId, Awaiting)>,
    /// Quality of service of the delivery.
    pub qos: QoS,
    /// Retain flag of the delivery.
    pub retain: bool,
    /// Subscription identifiers.
    pub identifiers: Box<[u32]>,
    /// Shared group it was chosen for.
    pub group: Option<GroupId>,
}

/// A will that may still have to be published.
#[derive(Debug)]
pub struct StoredWill {
    /// Its message.
    pub message: Message,
    /// Seconds from the end of the connection until it is due.
    pub delay_secs: u32,
    /// Message expiry in seconds, counted from when it is published.
    pub message_expiry: Option<u32>,
}

/// A will as it is to be written down.
#[derive(Clone, Copy, Debug)]
pub struct WillView<'a> {
    /// Its message.
    pub message: &'a Message,
    /// Seconds from the end of the connection until it is due.
    pub delay_secs: u32,
    /// Message expiry in seconds, counted from when it is published.
    pub message_expiry: Option<u32>,
}

impl Outbound {
    /// What was written down, in the order of its places. Packet identifiers go on behind the last.
    pub(super) fn restore(
        deliveries: Vec<StoredDelivery>,
        last_packet_id: u16,
        limits: &Limits,
        journal: &mut SessionJournal,
    ) -> Self {
        let mut outbound = Self::behind(last_packet_id);
        let replaced = replaced(&deliveries);
        for delivery in deliveries {
            let seq = delivery.seq;
            if replaced.contains(&seq) || outbound.restore_delivery(delivery, limits).is_none() {
                journal.note(Step::Removed { seq });
            }
        }
        outbound
    }

    /// None if it cannot be completed.
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
    /// Behind these deliveries, which are in the order of their places, and the highest place that
    /// there was.
    pub(super) fn behind(deliveries: &[StoredDelivery], seq_max: Seq) -> Self {
        let seq_last = deliveries.last().map_or(UNNOTED, |last| last.seq);
        let sent = deliveries
            .iter()
            .filter(|delivery| delivery.inflight.is_some());
        let sent_last = sent.map(|delivery| delivery.seq).max();
        Self::behind_places(seq_last.max(seq_max), sent_last.unwrap_or(UNNOTED))
    }
}

/// Places of the deliveries whose packet identifier a later one has: they were answered, but the
/// record of that is damaged.
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
