//! Messages for sinks, collected during a turn and passed on once their places are submitted to the
//! storage.

use std::sync::Arc;

use thrum_codec::QoS;
use thrum_protocol::Outgoing;

use super::core::Core;
use super::reach::{Reach, Source};
use crate::node::NodeState;
use crate::sinks::{Offer, Sink, SinkId, SinkRoom, SinkSet, Sinks};

/// Messages that are passed to the sinks at the end of the turn.
#[derive(Debug, Default)]
pub(crate) struct SinkOutboxes {
    /// Outboxes by sink number, as many as were needed so far.
    boxes: Vec<SinkOutbox>,
    /// Sinks with messages in their outbox.
    filled: SinkSet,
    /// Sinks with the policy `hold` whose queues the messages of the current connection have
    /// filled.
    full: SinkSet,
    /// A sink that makes publishers wait or refuses them is full in this turn.
    are_any_refusing: bool,
}

/// Messages that are passed to one sink.
#[derive(Debug, Default)]
struct SinkOutbox {
    offers: Vec<Offer>,
    /// Sum of the bytes of these messages.
    bytes: usize,
    /// Capacity that remains in the queue after these messages.
    room: SinkRoom,
}

impl SinkOutboxes {
    /// Begins the packets of another connection.
    #[inline]
    pub(super) const fn begin_connection(&mut self) {
        self.full = SinkSet::NONE;
    }

    /// Returns the sinks that the current connection has found full since the last call.
    #[inline]
    pub(super) const fn take_full(&mut self) -> SinkSet {
        std::mem::replace(&mut self.full, SinkSet::NONE)
    }

    /// Whether a sink accepts no further message, including the messages of this turn.
    fn is_full(&self, sink: &Sink) -> bool {
        let outbox = self.boxes.get(sink.id.index());
        let outbox = outbox.filter(|outbox| !outbox.offers.is_empty());
        if sink.queue.holds() {
            let messages = outbox.map_or(0, |outbox| outbox.offers.len());
            let bytes = outbox.map_or(0, |outbox| outbox.bytes);
            return sink.queue.is_overfull(messages, bytes);
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
            outbox.bytes = 0;
            outbox.room = sink.queue.room();
            self.filled.insert(sink.id);
        }
        let bytes = offer.message.bytes_len();
        outbox.bytes += bytes;
        outbox.room.take(bytes);
        outbox.offers.push(offer);
        if outbox.room.is_used_up() {
            if sink.queue.holds() {
                self.full.insert(sink.id);
            }
            self.are_any_refusing |= delays_publishers(sink);
        }
    }

    /// Passes all messages to the queues of the sinks.
    pub(super) fn empty(&mut self, sinks: &Sinks) {
        self.are_any_refusing = false;
        for id in std::mem::replace(&mut self.filled, SinkSet::NONE) {
            if let Some(sink) = sinks.get(id) {
                sink.queue.push_all(&mut self.boxes[id.index()].offers);
            }
        }
    }
}

/// Whether a sink may refuse publishers now.
#[inline]
pub(super) fn are_any_refusing(core: &Core) -> bool {
    core.node.sinks.are_any_refusing() || core.outboxes.sinks.are_any_refusing
}

/// Whether one of these sinks refuses the publisher of a message.
#[cold]
pub(super) fn is_refused(core: &Core, sinks: SinkSet) -> bool {
    sinks.into_iter().any(|id| {
        let sink = core.node.sinks.get(id);
        sink.is_some_and(|sink| delays_publishers(sink) && core.outboxes.sinks.is_full(sink))
    })
}

/// Whether the sink refuses or holds back publishers of QoS 1 and 2 while its queue is full.
fn delays_publishers(sink: &Sink) -> bool {
    sink.queue.refuses() || sink.queue.holds()
}

/// Whether one of these sinks stores its messages.
pub(super) fn is_any_durable(node: &NodeState, sinks: SinkSet) -> bool {
    let is_durable = |id: SinkId| {
        node.sinks
            .get(id)
            .is_some_and(|sink| sink.queue.is_durable())
    };
    sinks.into_iter().any(is_durable)
}

/// Offers a message to the sinks of its route.
#[cold]
pub(super) fn offer_to_sinks(
    core: &mut Core,
    sinks: SinkSet,
    outgoing: &mut Outgoing<'_>,
    reach: &mut Reach<'_>,
) {
    let qos = outgoing.publication().qos;
    let is_kept = core.is_kept(qos);
    // The publisher was not refused and gets an acknowledgement, even if other workers have filled
    // the queue since. The excess is at most one turn of each worker.
    let is_admitted = qos != QoS::AtMostOnce && matches!(reach.source, Source::Publisher(_));
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
        let is_taken = is_admitted && delays_publishers(sink);
        if !is_taken && outboxes.sinks.is_full(sink) {
            sink.queue.count_dropped();
            reach.refuse_by_sink();
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use thrum_codec::ReasonCode;
    use thrum_protocol::message::FrameCache;
    use thrum_protocol::{Message, Publication, Time};

    use super::*;
    use crate::access::Shared;
    use crate::host::{Host, Surroundings};
    use crate::node::session_counts::SessionLimits;
    use crate::reach::Clearance;
    use crate::refusals::PublishRefusal;
    use crate::retained::RetainedLimits;
    use crate::settings::{EngineSettings, SubscriptionLimits};
    use crate::sinks::{QueueLimits, WhenFull};
    use crate::workers::WorkerId;

    const CLIENT: Source<'static> = Source::Publisher(Clearance::NotAsked);

    #[derive(Debug)]
    struct Standstill;

    impl Host for Standstill {
        fn elapsed(&self) -> Duration {
            Duration::ZERO
        }

        fn no_earlier_than_now(&self, turn: Time) -> Time {
            turn
        }

        fn resident_bytes(&self) -> Option<u64> {
            None
        }
    }

    /// A worker without sessions.
    fn core() -> Core {
        let settings = EngineSettings {
            stamp_every: 0,
            spans: None,
            timeline_bytes: 0,
            session: Arc::default(),
            queue_hold: Duration::ZERO,
            access: Arc::new(Shared::default()),
            sessions: SessionLimits {
                node: 1,
                user: 0,
                address: 0,
            },
            subscriptions: SubscriptionLimits {
                shared_max: 1,
                bytes_max: 1,
                packet_filters_max: 1,
                message_identifiers: 1,
            },
            output_bytes: 1,
            memory_bytes: 0,
            retained: RetainedLimits {
                message_count: 0,
                bytes: 0,
                payload_bytes: 0,
            },
            keeps_all_wills: false,
            published_qos_min: QoS::AtMostOnce,
        };
        let surroundings = Surroundings {
            host: Arc::new(Standstill),
            now: Time::default(),
        };
        let node = Arc::new(crate::sinks::tests::node());
        Core::new(WorkerId::new(0), &node, Arc::new(settings), surroundings)
    }

    fn sink(core: &Core, limits: QueueLimits) -> Arc<Sink> {
        Arc::clone(core.node.sinks.open("sink", limits).expect("the first one"))
    }

    fn publication(qos: QoS, payload: &[u8]) -> Publication<'_> {
        Publication::new("a", payload, qos)
    }

    /// Another worker ends its turn with a message for the sink.
    fn other_worker_offers(sink: &Sink) {
        let message = Message::new(&publication(QoS::AtLeastOnce, b"other"));
        sink.queue.push_all(&mut vec![Offer {
            message: Arc::new(message),
            received_at: Time::default(),
            place: None,
        }]);
    }

    fn offer(
        core: &mut Core,
        sink: &Sink,
        source: Source<'_>,
        publication: Publication<'_>,
    ) -> Result<ReasonCode, PublishRefusal> {
        let mut frames = FrameCache::default();
        let mut outgoing = Outgoing::new(publication, &mut frames);
        let mut reach = Reach::of(source);
        offer_to_sinks(
            core,
            SinkSet::from_iter([sink.id]),
            &mut outgoing,
            &mut reach,
        );
        core.outboxes.empty_into_sinks();
        reach.outcome(core.memory.level)
    }

    #[test]
    fn a_message_that_was_not_refused_is_taken_though_another_worker_fills_the_queue() {
        let (taken, missed) = (Ok(ReasonCode::Success), Err(PublishRefusal::SinkFull));
        let cases = [
            (WhenFull::Refuse, 1, taken),
            (WhenFull::Hold, 2, taken),
            (WhenFull::Drop, 1, missed),
        ];
        for (when_full, others, outcome) in cases {
            let mut core = core();
            let sink = sink(
                &core,
                QueueLimits {
                    messages: 1,
                    when_full,
                    ..QueueLimits::default()
                },
            );
            let set = SinkSet::from_iter([sink.id]);
            assert!(!is_refused(&core, set), "{when_full:?}");
            (0..others).for_each(|_| other_worker_offers(&sink));
            let once = publication(QoS::AtLeastOnce, b"x");
            assert_eq!(
                offer(&mut core, &sink, CLIENT, once),
                outcome,
                "{when_full:?}"
            );
            // Nobody can be refused for these.
            let unsure = publication(QoS::AtMostOnce, b"x");
            assert_eq!(
                offer(&mut core, &sink, CLIENT, unsure),
                missed,
                "{when_full:?}"
            );
            assert_eq!(
                offer(&mut core, &sink, Source::Node, once),
                missed,
                "{when_full:?}"
            );
            let is_taken = outcome == taken;
            let counts = sink.queue.counts();
            assert_eq!(
                counts.waiting,
                others + u64::from(is_taken),
                "{when_full:?}"
            );
            assert_eq!(counts.dropped, 2 + u64::from(!is_taken), "{when_full:?}");
        }
    }

    #[test]
    fn bytes_of_the_turn_count_when_publishers_are_held() {
        let mut core = core();
        let limits = QueueLimits {
            bytes: 1000,
            when_full: WhenFull::Hold,
            ..QueueLimits::default()
        };
        let sink = sink(&core, limits);
        let set = SinkSet::from_iter([sink.id]);
        let payload = [0; 900];
        let mut frames = FrameCache::default();
        for number in 0..3 {
            assert!(!is_refused(&core, set), "{number}");
            let once = publication(QoS::AtLeastOnce, &payload);
            let mut outgoing = Outgoing::new(once, &mut frames);
            offer_to_sinks(&mut core, set, &mut outgoing, &mut Reach::of(CLIENT));
        }
        assert!(is_refused(&core, set));
    }

    #[test]
    fn a_full_sink_is_known_of_the_connection_that_has_filled_it() {
        let mut core = core();
        let limits = QueueLimits {
            messages: 1,
            when_full: WhenFull::Hold,
            ..QueueLimits::default()
        };
        let sink = sink(&core, limits);
        let set = SinkSet::from_iter([sink.id]);
        let mut frames = FrameCache::default();
        for is_another in [true, false] {
            let once = publication(QoS::AtLeastOnce, b"x");
            let mut outgoing = Outgoing::new(once, &mut frames);
            offer_to_sinks(&mut core, set, &mut outgoing, &mut Reach::of(CLIENT));
            if is_another {
                core.outboxes.begin_connection();
            }
            let full = core.outboxes.take_full();
            assert_eq!(full.sinks.is_empty(), is_another);
            assert_eq!(full.is_empty(), is_another);
        }
    }
}
