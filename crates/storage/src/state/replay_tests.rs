//! From records to the state: the effective record of each thing, and the effect of missing ones.

use thrum_codec::QoS;

use super::index_tests::{
    clock, inflight, message, queued, received, record, retained, session, subscription, will,
};
use super::recovered::{Orphans, Recovered};
use super::replay::Replay;
use crate::record::{
    Awaiting, Change, ClockNote, Identifiers, LogMillis, Message, Queued, Retained, Session,
};

fn replayed(changes: &[Change<'_>]) -> Recovered {
    let mut replay = Replay::default();
    for change in changes {
        replay.apply(change, &record(change));
    }
    replay.finish().1
}

fn over(session: u64, seq: u64) -> Change<'static> {
    Change::DeliveryRemoved { session, seq }
}

#[test]
fn the_highest_numbers_include_those_of_removed_state() {
    let changes = [
        session(4, "c"),
        Change::SessionRemoved { session: 9 },
        message(3),
        queued(4, 6, 8),
        over(4, 11),
        retained(5, "t", 7),
        Change::RetainedRemoved {
            change: 12,
            topic: "u",
        },
    ];
    let recovered = replayed(&changes);
    assert_eq!(recovered.session_id_max, 9);
    assert_eq!(recovered.message_id_max, 8);
    assert_eq!(recovered.retained_change_max, 12);
    assert_eq!(recovered.sessions[0].seq_max, 11);
    assert_eq!(replayed(&changes[..1]).session_id_max, 4);
    assert_eq!(replayed(&[message(3)]).message_id_max, 3);
    assert_eq!(replayed(&[retained(5, "t", 7)]).message_id_max, 7);
}

#[test]
fn publishers_and_past_times_are_noted() {
    let published = |publisher, published_at| {
        let Change::Message(message) = message(1) else {
            panic!("the change is a message")
        };
        Change::Message(Message {
            publisher,
            published_at,
            ..message
        })
    };
    let recovered = replayed(&[published(6, 500)]);
    assert_eq!((recovered.session_id_max, recovered.latest), (6, 500));
    assert_eq!(
        replayed(&[published(0, 500)]).latest,
        0,
        "the message was imported"
    );
    let away = |away_since: Option<LogMillis>| {
        let Change::Session(own) = session(1, "c") else {
            panic!("the change is a session")
        };
        Change::Session(Session { away_since, ..own })
    };
    let recovered = replayed(&[published(6, 500), away(Some(700)), away(None)]);
    assert_eq!(recovered.latest, 700);
    assert_eq!(recovered.sessions[0].away_since, None);
}

#[test]
fn the_last_record_of_a_session_a_will_and_a_subscription_counts() {
    let recovered = replayed(&[
        session(2, "two"),
        session(1, "old"),
        session(1, "one"),
        will(1, "old"),
        will(1, "w"),
        subscription(1, "b", 1),
        subscription(1, "a", 2),
        subscription(1, "b", 3),
        subscription(1, "c", 4),
        Change::SubscriptionRemoved {
            session: 1,
            filter: "c",
        },
        will(2, "w"),
        Change::WillRemoved { session: 2 },
        session(3, "three"),
        Change::SessionRemoved { session: 3 },
    ]);
    let names: Vec<_> = recovered
        .sessions
        .iter()
        .map(|one| (one.id, &*one.client_id))
        .collect();
    assert_eq!(names, [(1, "one"), (2, "two")]);
    let [one, two] = &recovered.sessions[..] else {
        panic!("there are two")
    };
    assert_eq!(one.will.as_ref().unwrap().content.topic(), "w");
    assert_eq!(two.will, None);
    let filters: Vec<_> = one
        .subscriptions
        .iter()
        .map(|subscription| (&*subscription.filter, subscription.identifier))
        .collect();
    assert_eq!(filters, [("a", 2), ("b", 3)]);
}

#[test]
fn received_packet_identifiers_are_recovered_once_and_in_order() {
    let removed = |number| Change::ReceivedRemoved {
        session: 1,
        packet_id: super::index_tests::packet_id(number),
    };
    let recovered = replayed(&[
        session(1, "c"),
        received(1, 9),
        received(1, 4),
        received(1, 9),
        received(1, 6),
        removed(4),
        removed(5),
    ]);
    let numbers: Vec<u16> = recovered.sessions[0]
        .received
        .iter()
        .map(|packet_id| packet_id.as_u16())
        .collect();
    assert_eq!(numbers, [6, 9]);
}

#[test]
fn a_delivery_is_the_sum_of_its_records_in_any_order() {
    let records = [
        queued(1, 1, 1),
        inflight(1, 1, Awaiting::PubRec),
        queued(1, 2, 2),
        queued(1, 3, 2),
        over(1, 3),
        inflight(1, 4, Awaiting::PubComp),
    ];
    let mut changes = vec![message(1), message(2), session(1, "c")];
    changes.extend(records);
    let forwards = replayed(&changes);
    changes[2..].reverse();
    let backwards = replayed(&changes);
    assert_eq!(
        forwards.sessions[0].deliveries,
        backwards.sessions[0].deliveries
    );
    assert_eq!(forwards.orphans, Orphans::default());
    let [first, second, released] = &forwards.sessions[0].deliveries[..] else {
        panic!("three are there: {forwards:?}")
    };
    let sent = Some((super::index_tests::packet_id(7), Awaiting::PubRec));
    assert_eq!((first.seq, first.inflight), (1, sent));
    assert_eq!((second.seq, second.inflight), (2, None));
    let id_of = |place: Option<usize>| place.map(|place| forwards.messages[place].id);
    assert_eq!(
        (id_of(first.message), id_of(second.message)),
        (Some(1), Some(2))
    );
    assert_eq!((released.seq, released.message), (4, None));
    assert_eq!(released.qos, QoS::ExactlyOnce);
}

#[test]
fn identifiers_and_group_of_a_delivery_are_recovered() {
    let with = |seq, identifiers: &'static [u32], group: &'static str| {
        Change::Queued(Queued {
            session: 1,
            seq,
            message: 1,
            qos: QoS::AtLeastOnce,
            retain: true,
            identifiers: Identifiers::Listed(identifiers),
            group,
        })
    };
    let recovered = replayed(&[
        session(1, "c"),
        message(1),
        with(1, &[], ""),
        with(2, &[5, 6], ""),
        with(3, &[], "$share/g/t"),
    ]);
    let extras: Vec<_> = recovered.sessions[0]
        .deliveries
        .iter()
        .map(|delivery| (&*delivery.identifiers, delivery.group.as_deref()))
        .collect();
    let expected: [(&[u32], _); 3] = [(&[], None), (&[5, 6], None), (&[], Some("$share/g/t"))];
    assert_eq!(extras, expected);
    let delivery = &recovered.sessions[0].deliveries[0];
    assert_eq!((delivery.qos, delivery.retain), (QoS::AtLeastOnce, true));
}

#[test]
fn records_without_the_record_they_refer_to_are_omitted_and_counted() {
    let recovered = replayed(&[
        subscription(1, "a", 0),
        will(2, "w"),
        session(3, "c"),
        queued(3, 1, 1),
        queued(3, 2, 5),
        queued(3, 3, 6),
        inflight(3, 4, Awaiting::PubRec),
        message(1),
        retained(1, "kept", 1),
        retained(2, "u", 7),
        retained(3, "v", 8),
        retained(4, "w", 9),
        Change::RetainedRemoved {
            change: 5,
            topic: "x",
        },
    ]);
    let orphans = Orphans {
        sessions: 2,
        deliveries: 3,
        retained: 3,
    };
    assert_eq!(recovered.orphans, orphans);
    assert_eq!(recovered.sessions.len(), 1);
    assert_eq!(recovered.sessions[0].deliveries.len(), 1);
    assert_eq!(recovered.retained.len(), 1);
}

#[test]
fn messages_with_references_are_recovered_once() {
    let recovered = replayed(&[
        session(1, "c"),
        message(1),
        message(2),
        message(3),
        message(2),
        message(4),
        queued(1, 1, 2),
        retained(1, "b", 4),
        retained(2, "a", 2),
        message(4),
    ]);
    let ids: Vec<_> = recovered.messages.iter().map(|one| one.id).collect();
    assert_eq!(ids, [2, 4]);
    let topics: Vec<_> = recovered
        .retained
        .iter()
        .map(|one| (&*one.topic, ids[one.message]))
        .collect();
    assert_eq!(topics, [("a", 2), ("b", 4)]);
    assert_eq!(recovered.sessions[0].deliveries[0].message, Some(0));
}

#[test]
fn the_highest_change_of_a_topic_is_effective_in_any_order() {
    let sourced = |change, message, source: &'static [u8]| {
        Change::Retained(Retained {
            change,
            topic: "t",
            message,
            source: Some(source),
        })
    };
    let removed = |change| Change::RetainedRemoved { change, topic: "t" };
    let check = |changes: &[Change<'_>], expected: Option<(u64, &[u8])>| {
        let mut all = vec![message(1), message(2)];
        all.extend_from_slice(changes);
        let recovered = replayed(&all);
        let found = recovered.retained.first().map(|one| {
            let id = recovered.messages[one.message].id;
            (id, one.source.as_deref().unwrap_or_default())
        });
        assert_eq!(found, expected, "{changes:?}");
    };
    check(
        &[sourced(1, 1, b"one"), sourced(2, 2, b"two")],
        Some((2, b"two")),
    );
    check(
        &[sourced(2, 2, b"two"), sourced(1, 1, b"one")],
        Some((2, b"two")),
    );
    check(&[sourced(2, 2, b"two"), removed(1)], Some((2, b"two")));
    check(&[sourced(1, 1, b"one"), removed(2)], None);
    check(&[removed(2), sourced(1, 1, b"one")], None);
    check(&[removed(2), sourced(3, 1, b"one")], Some((1, b"one")));
}

#[test]
fn sources_of_one_client_are_shared() {
    let sourced = |change, topic: &'static str| {
        Change::Retained(Retained {
            change,
            topic,
            message: 1,
            source: Some(b"client"),
        })
    };
    let recovered = replayed(&[message(1), sourced(1, "a"), sourced(2, "b")]);
    let sources: Vec<_> = recovered
        .retained
        .iter()
        .map(|one| one.source.clone().unwrap())
        .collect();
    assert!(std::sync::Arc::ptr_eq(&sources[0], &sources[1]));
}

#[test]
fn the_latest_note_of_the_clock_and_the_last_of_reclaiming_count() {
    assert_eq!(replayed(&[]).clock, None);
    assert_eq!(replayed(&[]).reclaimed, None);
    let at = |changes: &[Change<'_>]| replayed(changes).clock.map(|note| note.at);
    assert_eq!(at(&[clock(1), clock(3), clock(2)]), Some(3));
    let wall = |wall| {
        Change::Clock(ClockNote {
            at: 3,
            wall,
            latest_at: 3,
            latest_wall: wall,
        })
    };
    let recovered = replayed(&[wall(1), wall(2)]);
    assert_eq!(recovered.clock.unwrap().wall, 2, "of one moment the last");
    let reclaimed = |segment| Change::Reclaimed { segment };
    assert_eq!(replayed(&[reclaimed(4), reclaimed(5)]).reclaimed, Some(5));
}

#[test]
fn times_are_shown_by_the_wall_clock() {
    let hour = ClockNote::INTERVAL_MILLIS;
    // Later than the first time that counts as set.
    let now = 2_000_000_000_000;
    let note = |at, wall| {
        Change::Clock(ClockNote {
            at,
            wall,
            latest_at: at,
            latest_wall: wall,
        })
    };
    let Change::Message(own) = message(1) else {
        panic!("the change is a message")
    };
    let published = Change::Message(Message {
        publisher: 1,
        published_at: now + hour,
        expires_at: Some(now + 2 * hour),
        ..own
    });
    let Change::Session(own) = session(1, "c") else {
        panic!("the change is a session")
    };
    let away = Change::Session(Session {
        away_since: Some(now + 10),
        ..own
    });
    // The wall clock is five seconds ahead of the log's time.
    let changes = [note(now, now + 5000), away, published, queued(1, 1, 1)];
    let recovered = replayed(&changes);
    assert_eq!(recovered.log_time(now + 2 * hour + 5000), now + 2 * hour);
    assert_eq!(
        recovered.log_time(now + 5000),
        now + hour,
        "never before a past moment"
    );
    assert_eq!(recovered.wall_ahead(now + 2 * hour + 5000), 5000);
    let shown = recovered.in_wall_time(now + 2 * hour + 5000);
    assert_eq!(shown.sessions[0].away_since, Some(now + 5010));
    assert_eq!(shown.messages[0].published_at, now + hour + 5000);
    assert_eq!(shown.messages[0].expires_at, Some(now + 2 * hour + 5000));
    // Of a moment far ahead of the last note no more than two intervals are believed.
    let Change::Message(own) = published else {
        panic!("the change is a message")
    };
    let far = Change::Message(Message {
        published_at: now + 9 * hour,
        ..own
    });
    let recovered = replayed(&[note(now, now), far]);
    assert_eq!(recovered.log_time(now), now + 2 * hour);
    assert_eq!(replayed(&[far]).log_time(now), now + 9 * hour);
    assert_eq!(replayed(&[]).log_time(now), now);
}
