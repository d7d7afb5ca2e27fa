//! A session as the node finds it written down when it starts.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::{PacketId, QoS, Version};

use super::held::Held;
use super::journal::{Journal, UNNOTED};
use super::session::Link;
use super::will::Will;
use super::{Awaiting, DeliveryOptions, GroupId, Seq, Session, Step};
use crate::packet_ids::PacketIds;
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

impl StoredWill {
    /// The message to publish at this moment, by nobody: its session is gone.
    pub fn into_message(self, now: Time) -> Message {
        let mut message = self.message;
        let expires_at = self.message_expiry.map(|seconds| now.plus_secs(seconds));
        message.publish_as(0, expires_at);
        message
    }
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

impl Session {
    /// A session that was written down: away and durable.
    ///
    /// What cannot be true any more is left out and noted as [`Step::Removed`]: a delivery without its message, and one
    /// whose packet identifier a later delivery has.
    pub fn restore(stored: Stored, limits: &Arc<Limits>) -> Self {
        let mut session = Self::empty(stored.id, stored.client_id, limits);
        session.version = stored.version;
        session.session_expiry = stored.session_expiry;
        session.link = Link::Away;
        session.seen = stored.away_since;
        session.packet_ids = PacketIds::behind(stored.last_packet_id);
        session.received.restore(stored.received);
        session.will = stored.will.map(|will| Box::new(Will::restore(will)));
        let mut deliveries = stored.deliveries;
        deliveries.sort_by_key(|delivery| delivery.seq);
        let seq_last = deliveries.last().map_or(UNNOTED, |last| last.seq);
        session.journal = Some(Journal::behind(seq_last.max(stored.seq_max)));
        let replaced = replaced(&deliveries);
        for delivery in deliveries {
            let seq = delivery.seq;
            if replaced.contains(&seq) || session.restore_delivery(delivery).is_none() {
                session.note(Step::Removed { seq });
            }
        }
        session
    }

    /// None if it cannot be completed.
    fn restore_delivery(&mut self, delivery: StoredDelivery) -> Option<()> {
        let StoredDelivery { seq, inflight, .. } = delivery;
        let hold = |qos: QoS| {
            let options = DeliveryOptions {
                qos,
                retain: delivery.retain,
                identifiers: &delivery.identifiers,
                group: delivery.group,
            };
            Some(Held::new(delivery.message.as_ref()?, &options, seq))
        };
        match inflight {
            None => self.queue.push(hold(delivery.qos)?),
            Some((id, Awaiting::PubAck)) => self.inflight.push(id, hold(QoS::AtLeastOnce)?),
            Some((id, Awaiting::PubRec)) => self.inflight.push(id, hold(QoS::ExactlyOnce)?),
            Some((id, Awaiting::PubComp)) => self.inflight.push_released(id, seq),
        }
        Some(())
    }
}

/// Places of the deliveries whose packet identifier a later one has: they were answered, but the record of that is
/// damaged.
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
