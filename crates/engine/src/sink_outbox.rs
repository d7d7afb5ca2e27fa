//! Messages for sinks, collected during a turn: they leave once their places are with the storage.

use std::sync::Arc;

use thrum_protocol::Outgoing;

use super::core::Core;
use super::reach::Reach;
use crate::node::NodeState;
use crate::sinks::{Offer, Sink, SinkId, SinkRoom, SinkSet, Sinks};

/// What leaves for the sinks at the end of the turn.
#[derive(Debug, Default)]
pub struct SinkOutboxes {
    /// By the number of the sink; as many as were needed so far.
    boxes: Vec<SinkOutbox>,
    /// Sinks with something in their box.
    filled: SinkSet,
    /// Sinks that hold their publishers back, with what the connection at hand published.
    full: SinkSet,
    /// A sink that refuses publishers gets no more in this turn.
    are_any_refusing: bool,
}

/// What leaves for one sink.
#[derive(Debug, Default)]
struct SinkOutbox {
    offers: Vec<Offer>,
    /// What the queue has left beside this.
    room: SinkRoom,
}

impl SinkOutboxes {
    /// Another connection is at hand.
    #[inline]
    pub(super) const fn begin_connection(&mut self) {
        self.full = SinkSet::NONE;
    }

    /// Sinks that hold the connection at hand back since the last call.
    #[inline]
    pub(super) const fn take_full(&mut self) -> SinkSet {
        std::mem::replace(&mut self.full, SinkSet::NONE)
    }

    /// Whether a sink gets nothing more, with what this turn has for it.
    fn is_full(&self, sink: &Sink) -> bool {
        let outbox = self.boxes.get(sink.id.index());
        let outbox = outbox.filter(|outbox| !outbox.offers.is_empty());
        if sink.queue.holds() {
            return sink
                .queue
                .is_overfull(outbox.map_or(0, |outbox| outbox.offers.len()));
        }
        let room = outbox.map_or_else(|| sink.queue.room(), |outbox| outbox.room);
        room.is_used_up()
    }

    fn push(&mut self, sink: &Sink, offer: Offer) {
        let number = sink.id.index();
        if self.boxes.len() <= number {
            self.boxes.resize_with(number + 1, SinkOutbox::default);
        }
        let outbox = &mut self.boxes[number];
        if outbox.offers.is_empty() {
            outbox.room = sink.queue.room();
            self.filled.insert(sink.id);
        }
        outbox.room.take(offer.message.bytes_len());
        outbox.offers.push(offer);
        if outbox.room.is_used_up() {
            if sink.queue.holds() {
                self.full.insert(sink.id);
            }
            self.are_any_refusing |= sink.queue.refuses() || sink.queue.holds();
        }
    }

    /// Hands everything over.
    pub(super) fn empty(&mut self, sinks: &Sinks) {
        self.are_any_refusing = false;
        for id in std::mem::replace(&mut self.filled, SinkSet::NONE) {
            if let Some(sink) = sinks.get(id) {
                sink.queue.push_all(&mut self.boxes[id.index()].offers);
            }
        }
    }
}

/// Whether there may be a sink that refuses publishers now.
#[inline]
pub(super) fn are_any_refusing(core: &Core) -> bool {
    core.node.sinks.are_any_refusing() || core.outboxes.sinks.are_any_refusing
}

/// Whether a sink that wants a message refuses its publisher.
#[cold]
pub(super) fn is_refused(core: &Core, sinks: SinkSet) -> bool {
    sinks.into_iter().any(|id| {
        let sink = core.node.sinks.get(id);
        sink.is_some_and(|sink| {
            let makes_wait = sink.queue.refuses() || sink.queue.holds();
            makes_wait && core.outboxes.sinks.is_full(sink)
        })
    })
}

/// Whether a message of that kind gets a place on the disk for one of these sinks.
pub(super) fn is_any_durable(node: &NodeState, sinks: SinkSet) -> bool {
    let is_durable = |id: SinkId| {
        node.sinks
            .get(id)
            .is_some_and(|sink| sink.queue.is_durable())
    };
    sinks.into_iter().any(is_durable)
}

/// Offers a message to the sinks that want it.
#[cold]
pub(super) fn offer_to_sinks(
    core: &mut Core,
    sinks: SinkSet,
    outgoing: &mut Outgoing<'_>,
    reach: &mut Reach<'_>,
) {
    let is_kept = core.is_kept(outgoing.publication().qos);
    for id in sinks {
        let Core {
            node,
            durable,
            outboxes,
            turn,
            id: worker,
            ..
        } = core;
        let Some(sink) = node.sinks.get(id) else {
            continue;
        };
        turn.work += 1;
        if outboxes.sinks.is_full(sink) {
            sink.queue.count_dropped();
            reach.refuse(1);
            continue;
        }
        let message = outgoing.message();
        let place = (is_kept && sink.queue.is_durable()).then(|| {
            let lane = || node.next_session_id(*worker);
            durable.place_for_sink(sink, message, lane)
        });
        let offer = Offer {
            message: Arc::clone(message),
            received_at: turn.now,
            place: place.flatten(),
        };
        outboxes.sinks.push(sink, offer);
        reach.take_one();
    }
}
