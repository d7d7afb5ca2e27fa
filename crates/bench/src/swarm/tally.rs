//! Counts and latencies of the messages that this thread sends and receives.

use std::sync::Arc;

use thrum_codec::QoS;
use thrum_figures::{SECOND_NS, as_index, nanos};
use thrum_load::delivered::{Delivered, QosRange, Subscription};
use thrum_load::floors::begins_ns;
use thrum_load::histogram::{enter, enter_many};
use thrum_load::ledger::{Arrival, PairLedger, SharedLedger};
use thrum_load::mark::Mark;
use thrum_load::pacing::Warp;
use thrum_load::plan::{Due, Expectation, Plan};
use thrum_load::thread_report::{Counts, SubscriberState};

use super::control::Timeline;
use super::pages::{Handover, SliceSender, page};
use super::peer::Awaited;
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

/// Measurements of one thread.
#[derive(Debug)]
pub(super) struct Tally {
    plan: Arc<Plan>,
    handover: Handover,
    /// The second under way.
    pub(super) slice: Box<Slice>,
    slice_end_ns: u64,
    pub(super) counts: Counts,
    pub(super) subscribers: Vec<Subscriber>,
    pub(super) pairs: Vec<PairLedger>,
    pub(super) shared: Vec<SharedLedger>,
    /// Longest time from when a message was due until it arrived.
    pub(super) slowest_ns: u64,
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
            counts: Counts::default(),
            subscribers: Vec::new(),
            pairs: Vec::new(),
            shared,
            slowest_ns: 0,
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
        self.handover.give_rest(std::mem::take(&mut self.slice));
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
            enter_many(&mut self.slice.latencies.receive_lag, waited_ns, messages);
            self.slice.delays.reading.add(waited_ns, messages);
        }
    }

    /// Counts a message that was read.
    pub(super) fn receive(&mut self, subscriber: u32, delivered: &Delivered<'_>, read: Read) {
        let now_ns = read.at_ns;
        self.counts.received += 1;
        let Some((timeline, mark, intended_ns)) = self.recognise(delivered.payload, now_ns) else {
            self.counts.wrong.foreign += 1;
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
        if measures && self.counts_now(timeline, intended_ns) {
            self.measure(&mark, intended_ns, read);
        }
    }

    /// Enters the latencies of a delivery.
    fn measure(&mut self, mark: &Mark, intended_ns: u64, read: Read) {
        let latencies = &mut self.slice.latencies;
        let since = |from_ns: u64| read.at_ns.saturating_sub(from_ns);
        let from_ns = if mark.was_held_back {
            intended_ns
        } else {
            begins_ns(intended_ns, mark.sent_ns)
        };
        enter(&mut latencies.response, since(from_ns));
        enter(&mut latencies.service, since(mark.sent_ns));
        let floors = &mut latencies.floors;
        let unread_since = |from_ns: u64| read.unread_since_ns.saturating_sub(from_ns);
        if mark.was_held_back {
            enter(&mut floors.held_response, unread_since(intended_ns));
            enter(&mut floors.held_service, unread_since(mark.sent_ns));
        } else {
            enter(&mut floors.delivery, unread_since(mark.sent_ns));
        }
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

    /// Counts answers of responders, which may have had the requests since then.
    pub(super) fn answered(&mut self, held_ns: u64, answers: u64) {
        // Requests of the hold are answered in the drain, too.
        let counts = |timeline: Timeline| timeline.hold_start_ns <= self.slice.start_ns;
        if self.timeline.is_some_and(counts) {
            enter_many(&mut self.slice.latencies.floors.answering, held_ns, answers);
        }
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
    fn recognise(&self, payload: &[u8], now_ns: u64) -> Option<(Timeline, Mark, u64)> {
        let timeline = self.timeline?;
        let mut mark = Mark::read(payload)?;
        mark.sent_ns = self.plan.sent_ns(mark.sent_ns, now_ns)?;
        let intended_ns = match self.plan.due(mark.publisher, mark.sequence)? {
            Due::At(offset_ns) => self.real_ns(timeline, offset_ns),
            Due::WhenAllowed => mark.sent_ns,
        };
        // No message of this run leaves before it is due, nor (clocks of machines apart) after it
        // arrives.
        let is_ours = intended_ns <= mark.sent_ns && timeline.start_ns <= mark.sent_ns;
        let has_left = mark.sent_ns <= now_ns + CLOCK_ERROR_NS_MAX;
        (is_ours && has_left).then_some((timeline, mark, intended_ns))
    }
}

/// Largest apparent negative latency of a message between two machines.
const CLOCK_ERROR_NS_MAX: u64 = SECOND_NS / 10;

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

#[cfg(test)]
mod tests {
    use thrum_codec::PacketId;
    use thrum_load::scenario::{Overrides, find};

    use super::*;

    const START: u64 = 1_000_000_000_000;

    fn tally(publishers: u32) -> Tally {
        let overrides = Overrides {
            publishers: Some(publishers),
            warm_up: Some(std::time::Duration::from_secs(1)),
            hold: Some(std::time::Duration::from_secs(2)),
            ..Overrides::default()
        };
        let scenario = find("p2p-1K").unwrap().with(&overrides).unwrap();
        let plan = Arc::new(crate::plan(scenario, "t").unwrap());
        let mut tally = Tally::new(plan, 0, START - SECOND_NS, slice_sender());
        for subscriber in 0..publishers {
            tally.add_subscriber(subscriber, 0, true);
        }
        let timeline = Timeline {
            start_ns: START,
            hold_start_ns: START + SECOND_NS,
            hold_end_ns: START + 3 * SECOND_NS,
        };
        tally.set_timeline(Some(timeline), Arc::default(), 1);
        tally.turn_the_page(START + SECOND_NS);
        tally
    }

    /// A read of what had just arrived.
    const fn read(at_ns: u64) -> Read {
        Read {
            at_ns,
            unread_since_ns: at_ns,
        }
    }

    /// A message of QoS 0 on the topic of its publisher.
    fn receive(tally: &mut Tally, subscriber: u32, payload: &[u8], read: Read) {
        let publisher = Mark::read(payload).map_or(0, |mark| mark.publisher);
        let topic = format!("test/t/{}", publisher + 1);
        let delivered = Delivered {
            topic: &topic,
            qos: QoS::AtMostOnce,
            retain: false,
            payload,
        };
        tally.receive(subscriber, &delivered, read);
    }

    const fn sent(sequence: u32, sent_ns: u64, was_held_back: bool) -> Sending {
        Sending {
            publisher: 0,
            sequence,
            sent_ns,
            ready_ns: sent_ns,
            was_held_back,
        }
    }

    fn payload(publisher: u32, sequence: u32, sent_ns: u64) -> [u8; 16] {
        let mut payload = [0; 16];
        Mark {
            publisher,
            sequence,
            sent_ns,
            was_held_back: false,
        }
        .write(&mut payload);
        payload
    }

    fn slice_sender() -> SliceSender {
        let (slices, taken) = std::sync::mpsc::sync_channel(100);
        let (_, recycled) = std::sync::mpsc::sync_channel(1);
        // The test takes none: the channel is big enough.
        std::mem::forget(taken);
        SliceSender { slices, recycled }
    }

    #[test]
    fn latency_counts_from_the_intended_time_and_only_within_the_hold() {
        let mut tally = tally(1);
        let (due, sent, arrived) = (
            START + SECOND_NS,
            START + SECOND_NS + 3_000_000,
            START + SECOND_NS + 5_000_000,
        );
        receive(&mut tally, 0, &payload(0, 0, START), read(START + 7));
        receive(&mut tally, 0, &payload(0, 1, sent), read(arrived));
        assert_eq!(tally.slice.latencies.response.len(), 1);
        assert!(tally.slice.latencies.response.max().abs_diff(arrived - due) < 5_000);
        assert!(tally.slice.latencies.service.max().abs_diff(arrived - sent) < 5_000);
        assert_eq!(
            (tally.counts.distinct, tally.counts.received_in_hold),
            (2, 1)
        );
    }

    #[test]
    fn a_duplicate_adds_no_latency() {
        let mut tally = tally(1);
        let message = payload(0, 1, START + SECOND_NS);
        receive(&mut tally, 0, &message, read(START + SECOND_NS + 10));
        receive(
            &mut tally,
            0,
            &message,
            read(START + SECOND_NS + 900_000_000),
        );
        assert_eq!((tally.counts.received, tally.counts.distinct), (2, 1));
        assert_eq!(tally.slice.latencies.response.len(), 1);
        assert_eq!(tally.pairs[0].duplicates(), 1);
    }

    #[test]
    fn a_message_for_another_subscriber_is_misdelivered() {
        let mut tally = tally(2);
        receive(&mut tally, 1, &payload(0, 0, START + 5), read(START + 10));
        assert_eq!(
            (tally.counts.wrong.misdelivered, tally.counts.distinct),
            (1, 0)
        );
    }

    #[test]
    fn messages_of_other_runs_are_foreign() {
        let mut tally = tally(1);
        receive(&mut tally, 0, b"retained by someone", read(START + 10));
        receive(&mut tally, 0, b"short", read(START + 10));
        receive(&mut tally, 0, &payload(0, 0, START - 1), read(START + 10));
        receive(
            &mut tally,
            0,
            &payload(0, 0, START + SECOND_NS),
            read(START + 10),
        );
        assert_eq!((tally.counts.wrong.foreign, tally.counts.distinct), (4, 0));
    }

    #[test]
    fn a_floor_has_neither_the_late_send_nor_the_late_read() {
        let mut tally = tally(1);
        let due_ns = START + SECOND_NS;
        // Sent 3 ms late, read 5 ms after the thread looked last, 9 ms after it was due.
        let message = payload(0, 1, due_ns + 3_000_000);
        let late = Read {
            at_ns: due_ns + 9_000_000,
            unread_since_ns: due_ns + 4_000_000,
        };
        receive(&mut tally, 0, &message, late);
        tally.note_read(late, 1);
        let latencies = &tally.slice.latencies;
        assert!(latencies.response.max().abs_diff(9_000_000) < 9_000);
        assert!(latencies.floors.delivery.max().abs_diff(1_000_000) < 1_000);
        assert_eq!(tally.slice.delays.reading.max_ns, 5_000_000);
    }

    #[test]
    fn a_message_that_the_broker_held_back_is_the_brokers_since_it_was_due() {
        let mut tally = tally(1);
        let due_ns = START + SECOND_NS;
        let mut message = [0; 16];
        let mark = Mark {
            publisher: 0,
            sequence: 1,
            sent_ns: due_ns + 300_000_000,
            was_held_back: true,
        };
        mark.write(&mut message);
        let arrived_ns = due_ns + 301_000_000;
        receive(&mut tally, 0, &message, read(arrived_ns));
        let floors = &tally.slice.latencies.floors;
        assert!(floors.held_response.max().abs_diff(301_000_000) < 300_000);
        assert!(floors.held_service.max().abs_diff(1_000_000) < 1_000);
        assert_eq!(floors.delivery.len(), 0);
    }

    #[test]
    fn lag_is_counted_only_for_messages_that_the_broker_did_not_hold_back() {
        let mut tally = tally(1);
        let write = |called_ns, takes_ns| Write {
            called_ns,
            returned_ns: called_ns + takes_ns,
        };
        tally.send(
            &sent(1, START + SECOND_NS, false),
            write(START + SECOND_NS, 1_000),
        );
        let late_ns = START + 2 * SECOND_NS + 900_000_000;
        tally.send(&sent(2, late_ns, true), write(late_ns + 7_000, 1_000));
        assert_eq!(tally.slice.latencies.lag.len(), 1);
        assert_eq!(tally.slice.delays.sending.max_ns, 1_000);
        // Of both is known how long the kernel took.
        let handing_over = &tally.slice.latencies.floors.handing_over;
        assert_eq!((handing_over.len(), handing_over.max()), (2, 7_003));
        assert_eq!((tally.counts.sent, tally.counts.expected), (2, 2));
    }

    #[test]
    fn an_acknowledgement_counts_if_its_message_was_due_in_the_hold_however_late_it_left() {
        let mut tally = tally(1);
        let end_ns = START + 3 * SECOND_NS;
        tally.turn_the_page(end_ns);
        // Message 2 is due a second before the end of the hold, message 3 at its end.
        for sequence in [2, 3] {
            let awaited = Awaited {
                packet_id: PacketId(std::num::NonZeroU16::MIN),
                sequence,
                sent_ns: end_ns + 1_000,
                was_held_back: false,
            };
            tally.acknowledge(0, &awaited, read(end_ns + 501_000), false);
        }
        assert_eq!(tally.slice.latencies.publish_ack.len(), 1);
        assert!(tally.slice.latencies.publish_ack.max().abs_diff(500_000) < 500);
        assert_eq!(tally.counts.acknowledged, 2);
    }

    #[test]
    fn a_page_that_is_not_taken_is_filled_further() {
        let mut tally = tally(1);
        let (slices, _taken) = std::sync::mpsc::sync_channel(1);
        tally.handover.send_to(slices);
        tally.slice.counts.sent = 1;
        tally.turn_the_page(START + 3 * SECOND_NS);
        tally.slice.counts.sent = 7;
        tally.turn_the_page(START + 4 * SECOND_NS);
        assert_eq!(
            (tally.slice.counts.sent, tally.slice.start_ns),
            (7, START + 3 * SECOND_NS)
        );
    }
}
