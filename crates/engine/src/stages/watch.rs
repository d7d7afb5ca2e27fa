//! Watching the routing of a stamped message. Routing is compiled twice, for stamped messages and
//! for all others, so that the others have no branch for each receiver.

use std::num::NonZeroU64;
use std::sync::Arc;

use thrum_codec::{PacketId, QoS};
use thrum_protocol::server::Delivered;
use thrum_protocol::{Message, Outgoing};

use super::figures::{Fate, MessageStage};
use super::now_ns;
use super::table::{DeliveryTimes, Followed, Kind, Place, count, follow};
use crate::core::Core;
use crate::ids::{ConnectionId, Slot};
use crate::spans::{TraceContext, Traced};

/// The times of a stamped message so far, in nanoseconds since the start of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub(super) read_ns: NonZeroU64,
    pub(super) handled_ns: u64,
    pub(super) authorized_ns: u64,
    pub(super) routed_ns: u64,
    /// False if the message is traced only.
    pub(super) is_stamped: bool,
    /// The span of a traced message.
    pub(super) trace: Option<TraceContext>,
}

/// What the routing of a message tells about it.
pub(crate) trait Watch {
    /// The receivers are known.
    fn matched(&mut self, core: &Core);
    /// A session of this worker was offered the message.
    fn delivered(&mut self, core: &mut Core, slot: Slot, qos: QoS, delivered: Delivered);
    /// The times for mail to another worker, in a box, as almost all mail has none.
    fn stamp(&mut self) -> Option<Box<Stamp>>;
    /// All sessions of this worker were offered the message.
    fn finish(self, core: &mut Core, outgoing: &mut Outgoing<'_>);
}

/// Nobody watches.
#[derive(Debug)]
pub(crate) struct Unwatched;

impl Watch for Unwatched {
    #[inline]
    fn matched(&mut self, _core: &Core) {}

    #[inline]
    fn delivered(&mut self, _core: &mut Core, _slot: Slot, _qos: QoS, _delivered: Delivered) {}

    #[inline]
    fn stamp(&mut self) -> Option<Box<Stamp>> {
        None
    }

    #[inline]
    fn finish(self, _core: &mut Core, _outgoing: &mut Outgoing<'_>) {}
}

/// A stamped message while it is routed.
#[derive(Debug)]
pub(crate) struct Stamped {
    stamp: Stamp,
    /// When it arrived from another worker; 0 if it is from this one.
    arrived_ns: u64,
    /// Sessions of this worker that took the message so far.
    receivers: u32,
    /// One of them; each with the same probability.
    chosen: Option<Chosen>,
    is_with_others: bool,
    /// None if the message is not traced.
    traced: Option<Box<Traced>>,
}

/// The receiver that is followed.
#[derive(Clone, Copy, Debug)]
struct Chosen {
    slot: Slot,
    queued_ns: u64,
    /// None for a message in the queue of the session.
    sent: Option<Sent>,
}

/// Where the last byte of the message stands.
#[derive(Clone, Copy, Debug)]
struct Sent {
    connection: ConnectionId,
    behind: usize,
    packet_id: Option<PacketId>,
}

impl Watch for Stamped {
    fn matched(&mut self, core: &Core) {
        if self.stamp.routed_ns == 0 {
            self.stamp.routed_ns = now_ns(core);
        }
        if let Some(traced) = &mut self.traced {
            traced.set_routed(self.stamp.routed_ns);
        }
    }

    fn delivered(&mut self, core: &mut Core, slot: Slot, qos: QoS, delivered: Delivered) {
        if let Some(traced) = &mut self.traced {
            traced.delivered(core, slot, qos, delivered);
        }
        if !self.stamp.is_stamped || matches!(delivered, Delivered::Dropped(_)) {
            return;
        }
        self.receivers = self.receivers.saturating_add(1);
        if !core.random().is_multiple_of(self.receivers.into()) {
            return;
        }
        let client = &core.sessions[slot];
        let sent = match (delivered, client.connection) {
            (Delivered::Sent, Some(key)) => Some(Sent {
                connection: core.outputs.id(key),
                behind: core.outputs[key].waiting(),
                packet_id: match qos {
                    QoS::AtMostOnce => None,
                    QoS::AtLeastOnce | QoS::ExactlyOnce => {
                        PacketId::new(client.session.outbound().last_packet_id())
                    }
                },
            }),
            _ => None,
        };
        self.chosen = Some(Chosen {
            slot,
            queued_ns: now_ns(core),
            sent,
        });
    }

    fn stamp(&mut self) -> Option<Box<Stamp>> {
        self.is_with_others = true;
        Some(Box::new(self.stamp))
    }

    /// Follows the message to one of its receivers on this worker.
    fn finish(mut self, core: &mut Core, outgoing: &mut Outgoing<'_>) {
        if let Some(traced) = self.traced.take() {
            traced.finish(core);
        }
        let Some(chosen) = self.chosen else {
            if self.stamp.is_stamped && !self.is_with_others {
                count(core, Fate::Unreceived);
            }
            return;
        };
        let fanned_out_ns = now_ns(core).saturating_sub(self.stamp.routed_ns);
        if let Some(figures) = core.node.stages.of(core.id) {
            figures.enter(MessageStage::FannedOut, fanned_out_ns, 1);
        }
        let place = match chosen.sent {
            Some(Sent {
                connection,
                behind,
                packet_id,
            }) => Some((connection, Place::Output { behind, packet_id })),
            None => in_queue(core, chosen.slot, outgoing),
        };
        let Some((connection, place)) = place else {
            // The client is away.
            count(core, Fate::Unfinished);
            return;
        };
        let Stamp {
            handled_ns,
            authorized_ns,
            routed_ns,
            ..
        } = self.stamp;
        let queued_ns = chosen.queued_ns;
        let followed = Followed {
            connection,
            deliveries: self.receivers,
            read_ns: self.read_ns(),
            kind: Kind::Delivery(DeliveryTimes {
                handled_ns,
                authorized_ns,
                routed_ns,
                arrived_ns: self.arrived_ns,
                queued_ns,
            }),
            output_ns: match place {
                Place::Queue { .. } => 0,
                _ => queued_ns,
            },
            place,
            held_ns: 0,
            ready_ns: 0,
            since: core.turn.now,
        };
        follow(core, followed);
    }
}

impl Stamped {
    /// A message of a publisher of this worker.
    pub(super) const fn new(stamp: Stamp) -> Self {
        Self {
            stamp,
            arrived_ns: 0,
            receivers: 0,
            chosen: None,
            is_with_others: false,
            traced: None,
        }
    }

    /// A message that is traced as well.
    pub(crate) fn with_trace(mut self, traced: Traced) -> Self {
        self.stamp.trace = Some(traced.context());
        self.traced = Some(Box::new(traced));
        self
    }

    /// A message that another worker has stamped, and that arrives now.
    pub(crate) fn from_worker(core: &Core, stamp: Stamp, message: &Message) -> Self {
        let traced = |context| {
            let mut traced = Traced::from_worker(context, message.topic(), message.payload());
            // The way to this worker is part of its deliveries.
            traced.set_routed(stamp.routed_ns);
            Box::new(traced)
        };
        Self {
            arrived_ns: now_ns(core),
            // Whoever stamped it tells whether it has receivers.
            is_with_others: true,
            traced: stamp.trace.map(traced),
            ..Self::new(stamp)
        }
    }

    pub(super) const fn read_ns(&self) -> u64 {
        self.stamp.read_ns.get()
    }
}

/// The place of a message in the queue of a connected session, which reports what becomes of it.
fn in_queue(
    core: &mut Core,
    slot: Slot,
    outgoing: &mut Outgoing<'_>,
) -> Option<(ConnectionId, Place)> {
    let client = &mut core.sessions[slot];
    let key = client.connection?;
    client.session.outbound_mut().record_events();
    let place = Place::Queue {
        slot,
        session: client.session.id(),
        message: Arc::clone(outgoing.message()),
    };
    Some((core.outputs.id(key), place))
}
