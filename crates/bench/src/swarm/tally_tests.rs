//! What a thread counts of messages that it sends and receives, and in which second.

use std::sync::Arc;

use thrum_codec::{PacketId, QoS};
use thrum_figures::SECOND_NS;
use thrum_load::delivered::Delivered;
use thrum_load::mark::Mark;
use thrum_load::scenario::{Overrides, PayloadSpec, find};

use super::control::Timeline;
use super::pages::SliceSender;
use super::peer::Awaited;
use super::tally::Tally;
use super::times::{Read, Sending, Write};

const START: u64 = 1_000_000_000_000;

fn tally(publishers: u32) -> Tally {
    let mut tally = warming_up(publishers, None);
    tally.turn_the_page(START + SECOND_NS);
    tally
}

/// In the second before the hold; a window makes a closed loop.
fn warming_up(publishers: u32, window: Option<u16>) -> Tally {
    let overrides = Overrides {
        publishers: Some(publishers),
        warm_up: Some(std::time::Duration::from_secs(1)),
        hold: Some(std::time::Duration::from_secs(2)),
        ..Overrides::default()
    };
    let mut scenario = find("p2p-1K").unwrap().with(&overrides).unwrap();
    let publishing = scenario.groups.iter_mut();
    for publish in publishing.filter_map(|group| group.publish.as_mut()) {
        publish.window = window;
        publish.payload = PayloadSpec::Size(16);
    }
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
    tally.turn_the_page(START);
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
    receive_only(tally, subscriber, payload, read);
    tally.enter_samples();
}

/// The same, but its latencies wait to be entered.
fn receive_only(tally: &mut Tally, subscriber: u32, payload: &[u8], read: Read) {
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
        &payload(0, 0, START + 7_200 * SECOND_NS),
        read(START + 10),
    );
    assert_eq!((tally.counts.wrong.foreign, tally.counts.distinct), (4, 0));
    assert_eq!(tally.counts.wrong.payload, 0);
}

#[test]
fn a_message_of_which_a_byte_of_the_mark_was_changed_was_altered() {
    let mut tally = tally(1);
    let message = payload(0, 0, START);
    for at in 0..16 {
        let mut altered = message;
        altered[at] ^= 0x81;
        receive(&mut tally, 0, &altered, read(START + 10));
        // The same on a topic that nobody of this run publishes on.
        let delivered = Delivered {
            topic: "test/other",
            qos: QoS::AtMostOnce,
            retain: false,
            payload: &altered,
        };
        tally.receive(0, &delivered, read(START + 10));
    }
    let wrong = tally.counts.wrong;
    assert_eq!(
        (wrong.payload, wrong.foreign, wrong.misdelivered),
        (16, 16, 0)
    );
}

#[test]
fn a_message_that_left_after_it_arrived_by_a_clock_that_was_set_is_no_loss() {
    let mut tally = tally(1);
    let due_ns = START + SECOND_NS;
    let message = payload(0, 1, due_ns + 400_000_000);
    receive(&mut tally, 0, &message, read(due_ns + 1_000));
    assert_eq!((tally.counts.wrong.foreign, tally.counts.distinct), (0, 1));
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
    assert_eq!(tally.slice.latencies.lag.len(), 1);
    assert_eq!(tally.slice.delays.sending.max_ns, 1_000);
    assert_eq!(tally.slice.latencies.floors.handing_over.len(), 1);
    // In the next second.
    let late_ns = START + 2 * SECOND_NS + 900_000_000;
    tally.send(&sent(2, late_ns, true), write(late_ns + 7_000, 1_000));
    assert_eq!(tally.slice.latencies.lag.len(), 0);
    assert_eq!(tally.slice.delays.sending.max_ns, 0);
    // Of both is known how long the kernel took.
    let handing_over = &tally.slice.latencies.floors.handing_over;
    assert_eq!((handing_over.len(), handing_over.max()), (1, 7_003));
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
fn a_message_of_a_closed_loop_that_leaves_as_the_hold_begins_is_expected_in_it() {
    let mut tally = warming_up(1, Some(1));
    let hold_ns = START + SECOND_NS;
    let write = |at_ns| Write {
        called_ns: at_ns,
        returned_ns: at_ns + 1_000,
    };
    // The clock was looked at before the hold; the first message left before it, too.
    tally.send(&sent(0, hold_ns - 5_000, false), write(hold_ns - 4_000));
    assert_eq!(
        (tally.slice.start_ns, tally.slice.delays.expected),
        (START, 1)
    );
    tally.send(&sent(1, hold_ns + 5_000, false), write(hold_ns + 6_000));
    assert_eq!(
        (tally.slice.start_ns, tally.slice.delays.expected),
        (hold_ns, 1)
    );
    assert_eq!(tally.counts.sent_in_hold, 1);
    for sequence in [0, 1] {
        let sent_ns = hold_ns + 10_000 * u64::from(sequence) - 5_000;
        receive(
            &mut tally,
            0,
            &payload(0, sequence, sent_ns),
            read(hold_ns + 50_000),
        );
    }
    assert_eq!(tally.slice.latencies.response.len(), 1);
}

#[test]
fn a_message_of_the_hold_that_arrives_before_it_by_another_clock_counts_in_it() {
    let mut tally = warming_up(1, None);
    let hold_ns = START + SECOND_NS;
    let message = payload(0, 1, hold_ns + 1_000);
    receive(&mut tally, 0, &message, read(hold_ns - 50_000));
    assert_eq!(tally.slice.start_ns, hold_ns);
    assert_eq!(tally.slice.latencies.response.len(), 1);
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

#[test]
fn all_deliveries_of_a_second_are_in_its_page_however_many_wait_to_be_entered() {
    const DELIVERIES: u32 = 2_500;
    let mut tally = tally(DELIVERIES);
    let (slices, taken) = std::sync::mpsc::sync_channel(4);
    tally.handover.send_to(slices);
    let arrived = read(START + 2 * SECOND_NS - 1_000);
    for number in 0..DELIVERIES {
        let message = payload(number, 1, arrived.at_ns - 10_000);
        receive_only(&mut tally, number, &message, arrived);
        tally.note_read(arrived, 1);
    }
    let last = read(START + 2 * SECOND_NS + 2_000_000);
    tally.turn_the_page(last.at_ns);
    receive_only(
        &mut tally,
        0,
        &payload(0, 2, START + 2 * SECOND_NS + 1_000_000),
        last,
    );
    tally.hand_over_rest();
    let pages: Vec<_> = taken.try_iter().collect();
    let of_each = pages.iter().map(|page| {
        let latencies = &page.latencies;
        [
            latencies.response.len(),
            latencies.service.len(),
            latencies.floors.delivery.len(),
            latencies.receive_lag.len(),
        ]
    });
    let all = u64::from(DELIVERIES);
    assert_eq!(of_each.collect::<Vec<_>>(), [[all; 4], [1, 1, 1, 0]]);
}

#[test]
fn a_message_that_was_due_by_other_times_of_the_load_is_recognised_anew() {
    let mut tally = tally(2);
    let message = payload(0, 1, START + SECOND_NS);
    receive(&mut tally, 0, &message, read(START + SECOND_NS + 10));
    receive(&mut tally, 1, &message, read(START + SECOND_NS + 20));
    assert_eq!(
        tally.counts.wrong.misdelivered, 1,
        "it is no message of that subscriber"
    );
    // By the new times the load starts after the message was sent: it is none of this run.
    let later = Timeline {
        start_ns: START + 2 * SECOND_NS,
        hold_start_ns: START + 3 * SECOND_NS,
        hold_end_ns: START + 5 * SECOND_NS,
    };
    tally.set_timeline(Some(later), Arc::default(), 2);
    receive(&mut tally, 0, &message, read(START + SECOND_NS + 30));
    assert_eq!(tally.counts.wrong.foreign, 1);
}
