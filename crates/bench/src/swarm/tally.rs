//! Counts and latencies of the messages that this thread sends and receives.

use std::sync::Arc;

use thrum_codec::QoS;
use thrum_figures::{SECOND_NS, as_index, nanos};
use thrum_load::delivered::{Delivered, PublishedTopics, QosRange, Subscription, resembles_any};
use thrum_load::floors::begins_ns;
use thrum_load::histogram::{enter, enter_many};
use thrum_load::ledger::{Arrival, PairLedger, SharedLedger};
use thrum_load::mark::{MARK_BYTES, Mark};
use thrum_load::pacing::Warp;
use thrum_load::plan::{Due, Expectation, Plan};
use thrum_load::thread_report::{Counts, SubscriberState};

use super::carriers::Carriers;
use super::control::Timeline;
use super::pages::{Handover, SliceSender, page};
use super::peer::Awaited;
use super::samples::{Floor, Sample, Samples};
use super::times::{Read, Sending, Write};
use crate::record::Slice;

/// A subscriber and whether its latencies count: a responder's do not, the requester's include
/// them.
#[derive(Clone, Debug)]
pub(super) struct Subscriber {
    pub(super) state: SubscriberState,
    /// When something arrived last.
    pub(super) heard_ns: u64,
    measures: bool,
    subscription: Subscription,
}

/// Messages that are recognised without being read again: 512 bytes.
const RECOGNISED: usize = 8;

/// A message of this run with a binary mark.
#[derive(Clone, Copy, Debug)]
struct Recognised {
    bytes: [u8; MARK_BYTES],
    mark: Mark,
    intended_ns: u64,
}

/// Measurements of one thread.
#[derive(Debug)]
pub(super) struct Tally {
    plan: Arc<Plan>,
    pub(super) handover: Handover,
    /// The second under way.
    pub(super) slice: Box<Slice>,
    slice_end_ns: u64,
    /// Of the second under way, but not yet in it.
    samples: Samples,
    pub(super) counts: Counts,
    pub(super) subscribers: Vec<Subscriber>,
    pub(super) pairs: Vec<PairLedger>,
    pub(super) shared: Vec<SharedLedger>,
    /// Longest time from when a message was due until it arrived.
    pub(super) slowest_ns: u64,
    /// The threads of QUIC; none without it.
    pub(super) carriers: Carriers,
    /// The last messages that were recognised, by the last bits of their publishers: of a fan-out
    /// the next delivery is mostly one of them.
    recognised: [Option<Recognised>; RECOGNISED],
    /// Known once a message has come that may have been altered.
    topics: Option<PublishedTopics>,
    ramp_start_ns: u64,
    drain_ns: u64,
    timeline: Option<Timeline>,
    warp: Arc<Warp>,
    is_warped: bool,
    generation: u64,
}

impl Tally {
    pub(super) fn new(
        plan: Arc<Plan>,
        thread: u32,
        ramp_start_ns: u64,
        slice_sender: SliceSender,
    ) -> Self {
        let shared = plan.shared().iter();
        let shared = shared
            .map(|sources| SharedLedger::new(sources.len()))
            .collect();
        Self {
            slice: Box::new(Slice {
                start_ns: ramp_start_ns,
                thread,
                ..Slice::default()
            }),
            slice_end_ns: ramp_start_ns + SECOND_NS,
            samples: Samples::default(),
            counts: Counts::default(),
            subscribers: Vec::new(),
            pairs: Vec::new(),
            shared,
            slowest_ns: 0,
            carriers: Carriers::new(std::iter::empty()),
            recognised: [None; RECOGNISED],
            topics: None,
            ramp_start_ns,
            drain_ns: nanos(plan.scenario.stages.drain),
            timeline: None,
            warp: Arc::default(),
            is_warped: false,
            generation: 0,
            handover: Handover::new(slice_sender),
            plan,
        }
    }

    /// Adds a subscriber of the plan, which is in a group; returns this thread's number of it.
    pub(super) fn add_subscriber(&mut self, subscriber: u32, group: usize, measures: bool) -> u32 {
        let state = match self.plan.expectation(subscriber) {
            Expectation::Each(sources) => {
                let first_pair = self.pairs.len();
                let pairs = first_pair + as_index(sources.len());
                self.pairs.resize_with(pairs, PairLedger::default);
                SubscriberState::Each {
                    first_pair,
                    sources: sources.clone(),
                }
            }
            Expectation::Shared(group) => SubscriberState::Shared(*group),
        };
        self.subscribers.push(Subscriber {
            state,
            heard_ns: 0,
            measures,
            subscription: Subscription {
                group,
                granted: QosRange::up_to(QoS::ExactlyOnce),
            },
        });
        u32::try_from(self.subscribers.len() - 1).unwrap_or(super::peer::NONE)
    }

    /// The quality of service that a subscriber's messages may have has changed.
    pub(super) fn set_granted(&mut self, subscriber: u32, granted: QosRange) {
        if let Some(subscriber) = self.subscribers.get_mut(as_index(subscriber)) {
            subscriber.subscription.granted = granted;
        }
    }

    /// A subscriber has lost its connection.
    pub(super) fn interrupt(&mut self, subscriber: u32) {
        let of = self.subscribers.get(as_index(subscriber));
        let Some(SubscriberState::Each {
            first_pair,
            sources,
        }) = of.map(|of| &of.state)
        else {
            return;
        };
        let pairs = self.pairs.iter_mut().skip(*first_pair);
        for pair in pairs.take(as_index(sources.len())) {
            pair.interrupt();
        }
    }

    pub(super) fn set_timeline(
        &mut self,
        timeline: Option<Timeline>,
        warp: Arc<Warp>,
        generation: u64,
    ) {
        self.is_warped = !warp.is_identity();
        (self.timeline, self.warp, self.generation) = (timeline, warp, generation);
        self.recognised = [None; RECOGNISED];
        // The pages are others now: where this one ends is found with the next look at the clock.
        self.slice_end_ns = 0;
    }

    pub(super) const fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn warp(&self) -> &Warp {
        &self.warp
    }

    /// When a message is due, given its offset from the start in the schedule.
    pub(super) fn real_ns(&self, timeline: Timeline, offset_ns: u64) -> u64 {
        let real_ns = if self.is_warped {
            self.warp.real_ns(offset_ns)
        } else {
            offset_ns
        };
        timeline.start_ns.saturating_add(real_ns)
    }

    /// Whether the load is not paused.
    pub(super) fn runs_at(&self, timeline: Timeline, now_ns: u64) -> bool {
        let real_ns = now_ns.saturating_sub(timeline.start_ns);
        !self.is_warped || self.warp.factor_ppm(real_ns) > 0
    }

    /// When the rate of the load changes next; never if no change is known.
    pub(super) fn next_change_ns(&self, timeline: Timeline, now_ns: u64) -> u64 {
        let real_ns = now_ns.saturating_sub(timeline.start_ns);
        let change_ns = self.warp.next_change_ns(real_ns);
        timeline.start_ns.saturating_add(change_ns)
    }

    /// Hands over the current second when it is over. If the channel is full, the thread continues
    /// to fill it, but not with what belongs to another stage.
    pub(super) fn turn_the_page(&mut self, now_ns: u64) {
        if now_ns < self.slice_end_ns {
            return;
        }
        let (start_ns, end_ns) = page(self.ramp_start_ns, self.timeline, now_ns);
        self.slice_end_ns = end_ns;
        if start_ns == self.slice.start_ns {
            return;
        }
        self.enter_samples();
        let mut next = self.handover.recycled();
        next.restart(start_ns);
        next.thread = self.slice.thread;
        let full = std::mem::replace(&mut self.slice, next);
        if let Some(full) = self.handover.give(full, self.timeline, start_ns) {
            self.slice = full;
        }
    }

    /// Hands over the last second.
    pub(super) fn hand_over_rest(&mut self) {
        self.enter_samples();
        self.handover.give_rest(std::mem::take(&mut self.slice));
    }

    /// Enters the latencies of deliveries that wait for it.
    pub(super) fn enter_samples(&mut self) {
        self.samples.enter_all(&mut self.slice.latencies);
    }

    /// Counts sent bytes.
    pub(super) fn count_bytes_out(&mut self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(0);
        self.counts.bytes_out += bytes;
        self.slice.counts.bytes_out += bytes;
    }

    /// Counts received bytes.
    pub(super) fn count_bytes_in(&mut self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(0);
        self.counts.bytes_in += bytes;
        self.slice.counts.bytes_in += bytes;
    }

    /// Notes messages that may have waited in their socket.
    pub(super) fn note_read(&mut self, read: Read, messages: u64) {
        if messages > 0
            && self
                .timeline
                .is_some_and(|timeline| timeline.holds(self.slice.start_ns))
        {
            let waited_ns = read.waited_ns();
            let latencies = &mut self.slice.latencies;
            self.samples.add_read(waited_ns, messages, latencies);
            self.slice.delays.reading.add(waited_ns, messages);
        }
    }

    /// Counts a message that was read.
    pub(super) fn receive(&mut self, subscriber: u32, delivered: &Delivered<'_>, read: Read) {
        let now_ns = read.at_ns;
        self.counts.received += 1;
        let Some((timeline, mark, intended_ns)) = self.recognise(delivered.payload, now_ns) else {
            self.count_unknown(subscriber, delivered);
            return;
        };
        self.slice.counts.received += 1;
        self.counts.received_in_hold += u64::from(timeline.holds(now_ns));
        let arrival = self.enter_in_ledger(subscriber, &mark);
        let of = self.subscribers.get_mut(as_index(subscriber));
        let (Some(arrival), Some(of)) = (arrival, of) else {
            self.counts.wrong.misdelivered += 1;
            return;
        };
        if arrival == Arrival::Impossible {
            self.counts.wrong.misdelivered += 1;
            return;
        }
        of.heard_ns = now_ns;
        let wrong = &mut self.counts.wrong;
        of.subscription
            .compare(&self.plan, mark.publisher, delivered, wrong);
        if arrival == Arrival::Duplicate {
            self.counts.duplicated += 1;
            return;
        }
        self.counts.distinct += 1;
        let waited_ns = now_ns.saturating_sub(intended_ns);
        self.counts.late += u64::from(waited_ns > self.drain_ns);
        self.slowest_ns = self.slowest_ns.max(waited_ns);
        let measures = of.measures;
        if timeline.holds(intended_ns) {
            // By the clock of another machine the hold may have begun already.
            self.turn_the_page(intended_ns);
        }
        if measures && self.counts_now(timeline, intended_ns) {
            self.measure(&mark, intended_ns, read);
        }
    }

    /// Counts a message that is none of this run, or was one before the broker altered its mark.
    fn count_unknown(&mut self, subscriber: u32, delivered: &Delivered<'_>) {
        let may_be_ours = self.timeline.is_some()
            && Mark::read(delivered.payload).is_none()
            && resembles_any(&self.plan, delivered.payload);
        let of = self.subscribers.get(as_index(subscriber));
        let is_altered = of.filter(|_| may_be_ours).is_some_and(|of| {
            let topics = self
                .topics
                .get_or_insert_with(|| PublishedTopics::new(&self.plan));
            of.subscription
                .is_altered(&self.plan, topics, delivered.topic)
        });
        let wrong = &mut self.counts.wrong;
        if is_altered {
            wrong.payload += 1;
        } else {
            wrong.foreign += 1;
        }
    }

    /// Measures a delivery.
    fn measure(&mut self, mark: &Mark, intended_ns: u64, read: Read) {
        let since = |from_ns: u64| read.at_ns.saturating_sub(from_ns);
        let carried_ns = self.carriers.waited_since_ns(mark.sent_ns);
        let unread_since = |from_ns: u64| {
            let floor_ns = read.unread_since_ns.saturating_sub(from_ns);
            floor_ns.saturating_sub(carried_ns)
        };
        let service_floor_ns = unread_since(mark.sent_ns);
        let (from_ns, floor) = if mark.was_held_back {
            let floor = Floor::HeldBack {
                response_ns: unread_since(intended_ns),
                service_ns: service_floor_ns,
            };
            (intended_ns, floor)
        } else {
            let floor = Floor::Both {
                ns: service_floor_ns,
            };
            (begins_ns(intended_ns, mark.sent_ns), floor)
        };
        let sample = Sample {
            response_ns: since(from_ns),
            service_ns: since(mark.sent_ns),
            floor,
        };
        self.samples.add(sample, &mut self.slice.latencies);
    }

    fn enter_in_ledger(&mut self, subscriber: u32, mark: &Mark) -> Option<Arrival> {
        match &self.subscribers.get(as_index(subscriber))?.state {
            SubscriberState::Each {
                first_pair,
                sources,
            } => {
                let position = sources.position(mark.publisher)?;
                let pair = self.pairs.get_mut(first_pair + as_index(position))?;
                Some(pair.receive(mark.sequence))
            }
            SubscriberState::Shared(group) => {
                let sources = self.plan.shared().get(as_index(*group))?;
                let position = sources.position(mark.publisher)?;
                Some(
                    self.shared
                        .get_mut(as_index(*group))?
                        .receive(position, mark.sequence),
                )
            }
        }
    }

    /// Counts a message that was written.
    pub(super) fn send(&mut self, sent: &Sending, write: Write) {
        let taken_ns = write.returned_ns;
        let (Some(timeline), Some(due)) =
            (self.timeline, self.plan.due(sent.publisher, sent.sequence))
        else {
            return;
        };
        // A closed loop's message may have left after the last look at the clock: it belongs to
        // the stage that it left in, as its latency will.
        self.turn_the_page(taken_ns);
        self.counts.sent += 1;
        self.counts.sent_in_hold += u64::from(timeline.holds(taken_ns));
        let planned = self.plan.publishers().get(as_index(sent.publisher));
        let fan_out = planned.map_or(0, |of| of.fan_out);
        self.counts.expected += u64::from(fan_out);
        self.slice.counts.sent += 1;
        let intended_ns = match due {
            Due::At(offset_ns) => self.real_ns(timeline, offset_ns),
            Due::WhenAllowed => sent.sent_ns,
        };
        if !self.counts_now(timeline, intended_ns) {
            return;
        }
        let measured = planned.map_or(0, |of| of.measured_fan_out);
        self.slice.delays.expected += u64::from(measured);
        enter_many(
            &mut self.slice.latencies.floors.handing_over,
            write.handed_over_ns(sent.ready_ns),
            u64::from(fan_out.max(1)),
        );
        if !sent.was_held_back && matches!(due, Due::At(_)) {
            let late_ns = taken_ns.saturating_sub(intended_ns);
            enter(&mut self.slice.latencies.lag, late_ns);
            self.slice.delays.sending.add(late_ns, 1);
        }
    }

    /// Counts answers of responders, which may have had the requests for this long.
    pub(super) fn answered(&mut self, held_ns: u64, answers: u64) {
        if self.has_hold_begun() {
            enter_many(&mut self.slice.latencies.floors.answering, held_ns, answers);
        }
    }

    /// Counts PUBRELs of publishers, which may have had the PUBRECs for this long.
    pub(super) fn released(&mut self, held_ns: u64, releases: u64) {
        if self.has_hold_begun() {
            enter_many(
                &mut self.slice.latencies.floors.releasing,
                held_ns,
                releases,
            );
        }
    }

    /// Counts deliveries, answers and exchanges whose messages a socket took only in part, and
    /// whose rest the thread may have had for this long after there was room.
    pub(super) fn finished(&mut self, late_ns: u64, events: u64) {
        if self.has_hold_begun() {
            enter_many(&mut self.slice.latencies.floors.finishing, late_ns, events);
        }
    }

    /// Whether times of the generator count: messages of the hold are under way in the drain, too.
    fn has_hold_begun(&self) -> bool {
        let has_begun = |timeline: Timeline| timeline.hold_start_ns <= self.slice.start_ns;
        self.timeline.is_some_and(has_begun)
    }

    /// The broker took or refused a message.
    pub(super) fn acknowledge(
        &mut self,
        publisher: u32,
        awaited: &Awaited,
        read: Read,
        refused: bool,
    ) {
        self.counts.acknowledged += 1;
        self.counts.refused += u64::from(refused);
        self.slice.counts.acknowledged += 1;
        let (Some(timeline), Some(due)) =
            (self.timeline, self.plan.due(publisher, awaited.sequence))
        else {
            return;
        };
        let due_ns = match due {
            Due::At(offset_ns) => self.real_ns(timeline, offset_ns),
            Due::WhenAllowed => awaited.sent_ns,
        };
        if !self.counts_now(timeline, due_ns) {
            return;
        }
        let Read {
            at_ns,
            unread_since_ns,
        } = read;
        let latencies = &mut self.slice.latencies;
        // The threads of QUIC may have had the message or its acknowledgement for a while.
        let carried_ns = self.carriers.waited_since_ns(awaited.sent_ns);
        let unread_since_ns = unread_since_ns.saturating_sub(carried_ns);
        let since_sent_ns = unread_since_ns.saturating_sub(awaited.sent_ns);
        enter(
            &mut latencies.publish_ack,
            at_ns.saturating_sub(awaited.sent_ns),
        );
        enter(&mut latencies.floors.publish_ack, since_sent_ns);
        if matches!(due, Due::At(_)) {
            let (from_ns, floor_ns) = if awaited.was_held_back {
                (due_ns, unread_since_ns.saturating_sub(due_ns))
            } else {
                (begins_ns(due_ns, awaited.sent_ns), since_sent_ns)
            };
            enter(
                &mut latencies.publish_response,
                at_ns.saturating_sub(from_ns),
            );
            enter(&mut latencies.floors.publish_response, floor_ns);
        }
    }

    /// Whether a message that was due then counts in the current slice: those of the hold do, and
    /// those of the warm-up during the warm-up.
    const fn counts_now(&self, timeline: Timeline, due_ns: u64) -> bool {
        timeline.holds(due_ns)
            || (due_ns < timeline.hold_start_ns && self.slice.start_ns < timeline.hold_start_ns)
    }

    /// The mark of a message of this run, with the time it was due; none for any other message.
    fn recognise(&mut self, payload: &[u8], now_ns: u64) -> Option<(Timeline, Mark, u64)> {
        let timeline = self.timeline?;
        let bytes = Mark::bytes_of(payload);
        // The fourth byte is the last of the publisher's number.
        let place = bytes.map_or(0, |bytes| usize::from(bytes[3]) % RECOGNISED);
        if let Some(known) = &self.recognised[place]
            && bytes == Some(known.bytes)
        {
            return Some((timeline, known.mark, known.intended_ns));
        }
        let mut mark = Mark::read(payload)?;
        mark.sent_ns = self.plan.sent_ns(mark.sent_ns, now_ns)?;
        let intended_ns = match self.plan.due(mark.publisher, mark.sequence)? {
            Due::At(offset_ns) => self.real_ns(timeline, offset_ns),
            Due::WhenAllowed => mark.sent_ns,
        };
        // No message of this run leaves before it is due. That it seems to leave after it arrived
        // is the fault of a clock, and of no broker.
        let is_ours = intended_ns <= mark.sent_ns && timeline.start_ns <= mark.sent_ns;
        let has_left = mark.sent_ns <= now_ns + CLOCK_ERROR_NS_MAX;
        if !is_ours || !has_left {
            return None;
        }
        self.recognised[place] = bytes.map(|bytes| Recognised {
            bytes,
            mark,
            intended_ns,
        });
        Some((timeline, mark, intended_ns))
    }
}

/// Largest apparent negative latency of a message between two machines: a clock that was set shows
/// in the error of all figures, and must not make losses of its messages.
const CLOCK_ERROR_NS_MAX: u64 = 3_600 * SECOND_NS;

impl Timeline {
    /// Length of warm-up and hold; nothing of a load that was ended before it started.
    pub(crate) const fn load_ns(&self) -> u64 {
        self.hold_end_ns.saturating_sub(self.start_ns)
    }

    /// Whether a time counts.
    pub(crate) const fn holds(&self, at_ns: u64) -> bool {
        self.hold_start_ns <= at_ns && at_ns < self.hold_end_ns
    }
}
