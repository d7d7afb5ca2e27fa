//! The index, change by change: new changes, current records, live bytes.

use thrum_codec::packet::SubscriptionOptions;
use thrum_codec::{PacketId, QoS, Version};

use super::index::Index;
use super::replay::Replay;
use crate::record::{
    Awaiting, Batch, Change, ClockNote, Identifiers, Inflight, Message, Owner, Queued, Retained,
    Session, Subscription, Will, decode,
};

/// The frame of a record, in bytes.
const FRAME: u64 = 8;
/// A delivery, on average.
const DELIVERY: u64 = 46;

/// The record of a change.
pub(super) fn record(change: &Change<'_>) -> Vec<u8> {
    let mut batch = Batch::default();
    batch.push(change);
    batch.end_unit();
    let record = batch.units().map(|(payload, _)| payload.to_vec()).next();
    record.unwrap()
}

/// Bytes that the record of a change takes in the log.
fn len(change: &Change<'_>) -> u64 {
    record(change).len() as u64 + FRAME
}

fn apply(index: &mut Index, change: &Change<'_>) -> bool {
    index.apply(change, &record(change))
}

fn is_current(index: &mut Index, change: &Change<'_>) -> bool {
    index.is_current(change, &record(change))
}

/// Applies a new change that adds so many live bytes.
#[track_caller]
fn adds(index: &mut Index, change: &Change<'_>, bytes: u64) {
    let before = index.live_bytes();
    assert!(apply(index, change), "{change:?}");
    assert_eq!(index.live_bytes() - before, bytes, "{change:?}");
}

/// Applies a new change that frees so many live bytes.
#[track_caller]
fn frees(index: &mut Index, change: &Change<'_>, bytes: u64) {
    let before = index.live_bytes();
    assert!(apply(index, change), "{change:?}");
    assert_eq!(before - index.live_bytes(), bytes, "{change:?}");
}

/// Applies a change that changes nothing.
#[track_caller]
fn is_known(index: &mut Index, change: &Change<'_>) {
    let before = index.live_bytes();
    assert!(!apply(index, change), "{change:?}");
    assert_eq!(index.live_bytes(), before, "{change:?}");
}

pub(super) fn session(id: u64, client_id: &str) -> Change<'_> {
    Change::Session(Session {
        id,
        client_id,
        version: Version::V5,
        expiry_secs: 60,
        away_since: None,
        packet_id_hint: 0,
        owner: Owner::Unknown,
    })
}

pub(super) fn subscription(session: u64, filter: &str, identifier: u32) -> Change<'_> {
    Change::Subscription(Subscription {
        session,
        filter,
        options: SubscriptionOptions::default(),
        identifier,
        owed: None,
    })
}

pub(super) fn will(session: u64, topic: &str) -> Change<'_> {
    Change::Will(Will {
        session,
        delay_secs: 1,
        message_expiry_secs: None,
        qos: QoS::AtLeastOnce,
        retain: false,
        topic,
        properties: b"p",
        payload: b"will",
    })
}

pub(super) fn message(id: u64) -> Change<'static> {
    Change::Message(Message {
        id,
        publisher: 0,
        published_at: 0,
        expires_at: None,
        qos: QoS::ExactlyOnce,
        retain: false,
        topic: "t",
        properties: b"",
        payload: b"payload",
    })
}

pub(super) fn queued(session: u64, seq: u64, message: u64) -> Change<'static> {
    Change::Queued(Queued {
        session,
        seq,
        message,
        qos: QoS::ExactlyOnce,
        retain: false,
        identifiers: Identifiers::NONE,
        group: "",
    })
}

pub(super) fn inflight(session: u64, seq: u64, awaiting: Awaiting) -> Change<'static> {
    Change::Inflight(Inflight {
        session,
        seq,
        packet_id: packet_id(7),
        awaiting,
    })
}

pub(super) fn packet_id(number: u16) -> PacketId {
    PacketId::new(number).unwrap()
}

pub(super) fn received(session: u64, number: u16) -> Change<'static> {
    Change::Received {
        session,
        packet_id: packet_id(number),
    }
}

pub(super) fn retained(change: u64, topic: &str, message: u64) -> Change<'_> {
    Change::Retained(Retained {
        change,
        topic,
        message,
        source: None,
    })
}

pub(super) fn clock(at: u64) -> Change<'static> {
    Change::Clock(ClockNote {
        at,
        wall: at,
        latest_at: at,
        latest_wall: at,
    })
}

/// The last of several records of one thing is current, and its bytes are live.
#[track_caller]
fn check_written_again(first: &Change<'_>, second: &Change<'_>) {
    let mut index = Index::default();
    assert!(!is_current(&mut index, first));
    adds(&mut index, first, len(first));
    is_known(&mut index, first);
    assert!(is_current(&mut index, first));
    assert!(!is_current(&mut index, second));
    assert!(apply(&mut index, second));
    assert_eq!(index.live_bytes(), len(second));
    assert!(is_current(&mut index, second));
    assert!(!is_current(&mut index, first));
}

#[test]
fn the_last_of_several_records_of_one_state_is_current() {
    check_written_again(&session(1, "client"), &session(1, "c"));
    check_written_again(&subscription(1, "a/+", 1), &subscription(1, "a/+", 2));
    check_written_again(&will(1, "topic"), &will(1, "t"));
    check_written_again(&clock(1), &clock(2));
    let reclaimed = |segment| Change::Reclaimed { segment };
    check_written_again(&reclaimed(1), &reclaimed(2));
}

#[test]
fn a_will_and_a_subscription_end_once() {
    let mut index = Index::default();
    let (of_will, of_filter) = (will(1, "t"), subscription(1, "a", 0));
    let will_removed = Change::WillRemoved { session: 1 };
    let unsubscribed = |session, filter| Change::SubscriptionRemoved { session, filter };
    is_known(&mut index, &will_removed);
    is_known(&mut index, &unsubscribed(1, "a"));
    adds(&mut index, &of_will, len(&of_will));
    adds(&mut index, &of_filter, len(&of_filter));
    is_known(&mut index, &unsubscribed(1, "b"));
    is_known(&mut index, &unsubscribed(2, "a"));
    frees(&mut index, &will_removed, len(&of_will));
    is_known(&mut index, &will_removed);
    frees(&mut index, &unsubscribed(1, "a"), len(&of_filter));
    is_known(&mut index, &unsubscribed(1, "a"));
    assert!(!is_current(&mut index, &of_will));
    assert!(!is_current(&mut index, &of_filter));
}

#[test]
fn many_subscriptions_of_a_session_are_distinguished() {
    let mut index = Index::default();
    let filters: Vec<String> = (0..100).map(|number| format!("a/{number}")).collect();
    for filter in &filters {
        let change = subscription(1, filter, 0);
        adds(&mut index, &change, len(&change));
    }
    for filter in filters.iter().step_by(3) {
        let removed = Change::SubscriptionRemoved { session: 1, filter };
        frees(&mut index, &removed, len(&subscription(1, filter, 0)));
    }
    for (number, filter) in filters.iter().enumerate() {
        let change = subscription(1, filter, 0);
        assert_eq!(is_current(&mut index, &change), number % 3 != 0, "{filter}");
    }
}

#[test]
fn a_received_packet_identifier_is_current_until_it_is_released() {
    let mut index = Index::default();
    let removed = |session, number| Change::ReceivedRemoved {
        session,
        packet_id: packet_id(number),
    };
    is_known(&mut index, &removed(1, 5));
    for number in [5, 3, 9] {
        adds(&mut index, &received(1, number), 0);
        is_known(&mut index, &received(1, number));
    }
    is_known(&mut index, &removed(1, 4));
    frees(&mut index, &removed(1, 5), 0);
    is_known(&mut index, &removed(1, 5));
    let current = [3, 5, 9].map(|number| is_current(&mut index, &received(1, number)));
    assert_eq!(current, [true, false, true]);
    assert!(!is_current(&mut index, &received(2, 3)));
}

#[test]
fn a_message_is_live_while_it_has_references() {
    let mut index = Index::default();
    let needed = len(&message(1));
    adds(&mut index, &message(1), 0);
    is_known(&mut index, &message(1));
    adds(&mut index, &queued(1, 1, 1), DELIVERY + needed);
    adds(&mut index, &queued(2, 1, 1), DELIVERY);
    adds(&mut index, &queued(2, 2, 1), DELIVERY);
    is_known(&mut index, &queued(2, 2, 1));
    assert_eq!(index.counts(), (2, 1));
    assert!(is_current(&mut index, &message(1)));
    let over = |session, seq| Change::DeliveryRemoved { session, seq };
    frees(&mut index, &over(2, 1), DELIVERY);
    is_known(&mut index, &over(2, 1));
    is_known(&mut index, &over(9, 1));
    frees(&mut index, &over(1, 1), DELIVERY);
    assert!(is_current(&mut index, &message(1)));
    frees(&mut index, &over(2, 2), DELIVERY + needed);
    assert!(!is_current(&mut index, &message(1)));
    assert_eq!((index.live_bytes(), index.counts()), (0, (2, 0)));
}

#[test]
fn a_message_may_come_after_its_first_reference() {
    let mut index = Index::default();
    adds(&mut index, &queued(1, 1, 1), DELIVERY);
    adds(&mut index, &message(1), len(&message(1)));
    is_known(&mut index, &message(1));
    assert!(is_current(&mut index, &message(1)));
}

#[test]
fn a_message_without_references_is_forgotten_when_its_record_is_reclaimed() {
    let mut index = Index::default();
    adds(&mut index, &message(1), 0);
    assert_eq!(index.counts(), (0, 1));
    assert!(!is_current(&mut index, &message(2)));
    assert!(!is_current(&mut index, &message(1)));
    assert_eq!(index.counts(), (0, 0));
}

#[test]
fn the_last_step_of_a_delivery_is_current() {
    let mut index = Index::default();
    let steps = [Awaiting::PubRec, Awaiting::PubComp].map(|step| inflight(1, 1, step));
    is_known(&mut index, &steps[0]);
    adds(&mut index, &message(1), 0);
    let needed = len(&message(1));
    adds(&mut index, &queued(1, 1, 1), DELIVERY + needed);
    is_known(&mut index, &inflight(1, 2, Awaiting::PubRec));
    assert!(is_current(&mut index, &queued(1, 1, 1)));
    adds(&mut index, &steps[0], 0);
    is_known(&mut index, &steps[0]);
    assert!(is_current(&mut index, &queued(1, 1, 1)));
    assert!(is_current(&mut index, &steps[0]) && !is_current(&mut index, &steps[1]));
    // The last step does not need the message.
    frees(&mut index, &steps[1], needed);
    is_known(&mut index, &steps[0]);
    assert!(!is_current(&mut index, &queued(1, 1, 1)));
    assert!(!is_current(&mut index, &steps[0]) && is_current(&mut index, &steps[1]));
    let over = Change::DeliveryRemoved { session: 1, seq: 1 };
    frees(&mut index, &over, DELIVERY);
    assert!(!is_current(&mut index, &steps[1]));
}

#[test]
fn the_end_of_a_session_frees_all_its_records() {
    let mut index = Index::default();
    let other = session(2, "other");
    adds(&mut index, &other, len(&other));
    adds(&mut index, &message(1), 0);
    adds(&mut index, &message(2), 0);
    assert!(apply(&mut index, &queued(2, 1, 1)));
    let others = index.live_bytes();
    for change in [
        session(1, "client"),
        will(1, "t"),
        subscription(1, "a", 0),
        subscription(1, "b", 0),
        queued(1, 1, 1),
        queued(1, 2, 2),
        received(1, 3),
    ] {
        assert!(apply(&mut index, &change), "{change:?}");
    }
    let removed = Change::SessionRemoved { session: 1 };
    assert!(apply(&mut index, &removed));
    assert_eq!((index.live_bytes(), index.counts()), (others, (1, 1)));
    is_known(&mut index, &removed);
    assert!(!is_current(&mut index, &session(1, "client")));
}

#[test]
fn the_highest_change_of_a_topic_is_current() {
    let mut index = Index::default();
    adds(&mut index, &message(1), 0);
    adds(&mut index, &message(2), 0);
    let (first, second) = (retained(5, "t", 1), retained(7, "t", 2));
    let needed = len(&message(1));
    assert!(!is_current(&mut index, &first));
    adds(&mut index, &first, len(&first) + needed);
    is_known(&mut index, &first);
    is_known(&mut index, &retained(4, "t", 2));
    assert!(is_current(&mut index, &first));
    assert!(!is_current(&mut index, &retained(6, "t", 1)));
    assert!(apply(&mut index, &second));
    assert_eq!(index.live_bytes(), len(&second) + needed);
    assert_eq!(index.counts(), (0, 1), "the first message is not needed");
    assert!(is_current(&mut index, &second) && !is_current(&mut index, &first));
}

#[test]
fn a_removed_topic_rejects_older_changes_until_its_record_is_reclaimed() {
    let mut index = Index::default();
    adds(&mut index, &message(1), 0);
    let kept = retained(5, "t", 1);
    assert!(apply(&mut index, &kept));
    let removed = |change| Change::RetainedRemoved { change, topic: "t" };
    is_known(&mut index, &removed(5));
    assert!(!is_current(&mut index, &removed(5)));
    assert!(
        is_current(&mut index, &kept),
        "the retained message was not removed"
    );
    assert!(apply(&mut index, &removed(6)));
    assert_eq!(index.live_bytes(), len(&removed(6)));
    assert!(!is_current(&mut index, &kept));
    assert!(!is_current(&mut index, &removed(4)));
    is_known(&mut index, &retained(5, "t", 1));
    assert!(!is_current(&mut index, &retained(6, "t", 1)));
    assert!(!is_current(&mut index, &removed(6)));
    assert_eq!(index.live_bytes(), 0);
    adds(&mut index, &retained(5, "t", 1), len(&kept));
}

#[test]
fn the_record_of_a_removal_is_never_current() {
    let mut index = Index::default();
    assert!(apply(&mut index, &session(1, "c")));
    let removals = [
        Change::SessionRemoved { session: 1 },
        Change::SubscriptionRemoved {
            session: 1,
            filter: "a",
        },
        Change::DeliveryRemoved { session: 1, seq: 1 },
        Change::ReceivedRemoved {
            session: 1,
            packet_id: packet_id(1),
        },
        Change::WillRemoved { session: 1 },
    ];
    for removal in &removals {
        assert!(!is_current(&mut index, removal), "{removal:?}");
    }
}

#[test]
fn an_index_is_the_same_from_changes_and_from_a_replay_of_their_records() {
    let all = [
        session(1, "one"),
        session(2, "two"),
        subscription(1, "a/+", 1),
        subscription(1, "b", 1),
        subscription(1, "c/#", 1),
        will(1, "w"),
        received(1, 4),
        received(1, 2),
        message(1),
        message(2),
        message(3),
        message(4),
        queued(1, 1, 1),
        queued(1, 2, 2),
        queued(2, 1, 1),
        queued(2, 2, 3),
        inflight(1, 1, Awaiting::PubRec),
        inflight(2, 2, Awaiting::PubRec),
        inflight(2, 2, Awaiting::PubComp),
        retained(1, "t", 1),
        retained(2, "u", 4),
        Change::RetainedRemoved {
            change: 3,
            topic: "v",
        },
        clock(5),
        Change::Reclaimed { segment: 3 },
    ];
    let (mut index, mut replay) = (Index::default(), Replay::default());
    for change in &all {
        assert!(apply(&mut index, change), "{change:?}");
        replay.apply(change, &record(change));
    }
    let (mut replayed, recovered) = replay.finish();
    assert_eq!(replayed.live_bytes(), index.live_bytes());
    assert_eq!((replayed.counts(), index.counts()), ((2, 3), (2, 3)));
    assert_eq!(recovered.messages.len(), 3);
    let expected = all.each_ref().map(|change| is_current(&mut index, change));
    let after = all.each_ref().map(|change| {
        let payload = record(change);
        replayed.is_current(&decode(&payload).unwrap(), &payload)
    });
    assert_eq!(after, expected);
    assert_eq!(after.iter().filter(|&&is_current| is_current).count(), 20);
    // Both free the same bytes afterwards.
    for change in [
        Change::SessionRemoved { session: 1 },
        Change::SessionRemoved { session: 2 },
    ] {
        assert!(apply(&mut index, &change) && apply(&mut replayed, &change));
        assert_eq!(replayed.live_bytes(), index.live_bytes());
        assert_eq!(replayed.counts(), index.counts());
    }
}
