//! The room in the queue of a session, as other workers see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use thrum_codec::QoS;
use thrum_engine::ids::Slot;
use thrum_engine::interest::SessionRef;
use thrum_engine::queue_room::{
    Promise, QueueRoom, RoomNotice, Shortage, is_nearly_full, is_short,
};
use thrum_engine::workers::WorkerId;
use thrum_protection::MemoryLevel;
use thrum_protocol::limits::QueuePolicy;

use crate::node::Node;
use crate::shell::Plan;

/// The room of the queue of a member that acknowledges nothing.
fn room_with(change: impl FnOnce(&mut Plan)) -> (Node, Arc<QueueRoom>) {
    let mut node = Node::planned(1, change);
    node.subscriber(0, "member", "$share/g/t");
    let room = own_room(&mut node).expect("a member has one");
    (node, room)
}

fn own_room(node: &mut Node) -> Option<Arc<QueueRoom>> {
    let (worker, slot) = node.shell.find("member").expect("it is there");
    let client = &node.shell.engine(worker).core.sessions[slot];
    client.room().map(Arc::clone)
}

fn promises(room: &Arc<QueueRoom>, bytes: &[usize]) -> Vec<Option<Promise>> {
    bytes.iter().map(|bytes| room.try_promise(*bytes)).collect()
}

fn waiters(notices: Vec<RoomNotice>) -> Vec<usize> {
    notices
        .into_iter()
        .map(|notice| notice.waiter.0.index())
        .collect()
}

fn a_room(node: &Node, level: &Arc<AtomicU8>) -> Arc<QueueRoom> {
    let slot: Slot = node.shell.find("member").expect("it is there").1;
    let worker = WorkerId::new(0);
    let session = SessionRef {
        worker,
        slot,
        id: 1,
    };
    Arc::new(QueueRoom::new(session, Arc::clone(level)))
}

#[test]
fn a_place_in_the_queue_is_promised_once() {
    let (_node, room) = room_with(|plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 2;
    });
    assert!(room.is_nearly_full() && !room.is_open() && room.has_room(0));
    // One of them is sent at once.
    let mut given = promises(&room, &[10; 4]);
    assert_eq!(given.iter().flatten().count(), 3);
    assert!(!room.has_room(0));
    let beyond = room.promise(10);
    assert_eq!(beyond.worker(), WorkerId::new(0));
    assert_eq!(beyond.session(), room.session.id);
    drop(given.remove(0));
    assert!(!room.has_room(0), "one is beyond the limit");
    assert!(beyond.end().is_none(), "there is no waiter");
    assert!(room.has_room(0));
    room.wait((WorkerId::new(3), Shortage::Session(1)));
    let notice = given.remove(0).unwrap().end().unwrap();
    assert_eq!(notice.waiter.0, WorkerId::new(3));
    assert!(room.try_promise(0).is_some());
}

#[test]
fn bytes_of_the_queue_are_promised_up_to_the_limit() {
    let (_node, room) = room_with(|plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.bytes_max = 1000;
    });
    assert!(room.is_nearly_full());
    assert!(room.has_room(10_000), "it is sent at once");
    let sent = room.try_promise(10_000).unwrap();
    assert!(room.try_promise(0).is_none() && !room.has_room(0));
    drop(sent);
    let first = room.try_promise(100).unwrap();
    assert!(room.try_promise(389).is_none() && !room.has_room(389));
    assert!(room.has_room(388));
    let second = room.try_promise(388).unwrap();
    assert!(!room.has_room(0));
    drop((first, second));
    assert!(room.has_room(744));
}

#[test]
fn a_queue_is_nearly_full_from_a_half_on_and_down_to_a_quarter() {
    let (mut node, room) = room_with(|plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 1000;
    });
    let publisher = node.join(0, "publisher");
    assert!(room.is_open() && room.has_room(1 << 40));
    for number in 0..=501 {
        assert!(!room.is_nearly_full(), "{number}");
        node.publish(publisher, "t", "x", QoS::AtLeastOnce);
    }
    assert!(room.is_nearly_full() && room.has_room(0));
    let peer = 0;
    let mut waits = 501;
    while room.is_nearly_full() {
        let message = node.messages(peer).remove(0);
        node.acknowledge(peer, &message);
        waits -= 1;
    }
    assert_eq!(waits, 250);
}

#[test]
fn few_free_places_or_bytes_make_a_queue_nearly_full() {
    for (messages, bytes, packet, expected) in [
        (256, 1_000_000, 1_000_000, false),
        (255, 1_000_000, 1_000_000, true),
        (256, 1_000_000, 1_000_001, true),
    ] {
        let mut node = Node::planned(1, |plan| {
            plan.limits().queue.messages_max = messages;
            plan.limits().queue.bytes_max = bytes;
            plan.limits().packet_bytes_max = packet;
        });
        node.subscriber(0, "member", "t");
        let slot = node.shell.find("member").unwrap().1;
        let session = &node.shell.engine(0).core.sessions[slot].session;
        assert_eq!(is_nearly_full(session, false), expected);
        assert_eq!(is_short(session.limits()), expected);
        let mut limits = session.limits().clone();
        limits.queue.policy = QueuePolicy::DropOldest;
        assert!(!is_short(&limits), "it always takes the newest");
    }
}

#[test]
fn bytes_from_a_half_of_the_limit_on_make_a_queue_nearly_full() {
    let (mut node, _) = room_with(|plan| {
        plan.limits().inflight_max = 1;
        plan.limits().packet_bytes_max = 10_000;
        plan.limits().queue.bytes_max = 100_000;
    });
    let publisher = node.join(0, "publisher");
    let payload = "x".repeat(1_000);
    for _ in 0..70 {
        node.publish(publisher, "t", &payload, QoS::AtLeastOnce);
        let slot = node.shell.find("member").unwrap().1;
        let session = &node.shell.engine(0).core.sessions[slot].session;
        let bytes = session.outbound().qos1_and_2_backlog().1;
        assert_eq!(is_nearly_full(session, false), bytes > 50_000, "{bytes}");
        assert_eq!(is_nearly_full(session, true), bytes > 25_000, "{bytes}");
    }
}

#[test]
fn waiters_for_room_are_notified_once_and_in_order() {
    let (node, _) = room_with(|_| ());
    let room = a_room(&node, &Arc::default());
    assert!(room.take_waiters().is_empty());
    let wait = |worker: usize| room.wait((WorkerId::new(worker), Shortage::Group(7)));
    for worker in [2, 1, 2, 5] {
        wait(worker);
    }
    let next = room.next_with_room().unwrap();
    assert_eq!(next.waiter, (WorkerId::new(2), Shortage::Group(7)));
    assert!(Arc::ptr_eq(&next.room, &room));
    wait(2);
    assert_eq!(waiters(room.take_waiters()), [1, 5, 2]);
    assert!(room.next_with_room().is_none());
    wait(4);
    assert_eq!(waiters(room.close(&node.shell.node.holding)), [4]);
    assert!(room.take_waiters().is_empty());
}

#[test]
fn messages_refused_by_other_workers_are_counted_by_the_owner() {
    let (node, _) = room_with(|_| ());
    let room = a_room(&node, &Arc::default());
    assert!(room.refuse(), "its worker has to be notified");
    assert!(!room.refuse() && !room.refuse());
    assert_eq!(room.take_refused(), 3);
    assert_eq!(room.take_refused(), 0);
    assert!(room.refuse());
}

#[test]
fn a_queue_takes_messages_up_to_the_level_of_memory_that_it_shows() {
    let (node, _) = room_with(|_| ());
    let level = Arc::new(AtomicU8::new(0));
    let room = a_room(&node, &level);
    let taken = |room: &QueueRoom| -> Vec<bool> {
        let levels = MemoryLevel::ALL.into_iter();
        levels
            .map(|now| {
                level.store(now as u8, Ordering::Relaxed);
                assert_eq!(room.has_memory(), room.has_room(1));
                assert_eq!(room.has_memory(), room.is_open());
                room.has_memory()
            })
            .collect()
    };
    assert_eq!(taken(&room), [true, true, true, false, false]);
    assert!(!room.show_memory(MemoryLevel::Low));
    assert_eq!(taken(&room), [true, true, false, false, false]);
    assert!(room.show_memory(MemoryLevel::Exhausted));
    assert!(!room.show_memory(MemoryLevel::Exhausted));
    assert_eq!(taken(&room), [true; 5]);
}

#[test]
fn members_that_are_nearly_full_and_connected_may_hold_publishers() {
    let (mut node, room) = room_with(|plan| plan.limits().queue.messages_max = 2);
    let holding = |node: &Node| node.shell.node.holding.load(Ordering::Relaxed);
    assert_eq!(holding(&node), 1);
    assert!(!room.holds(), "that is another policy");
    node.cut(0);
    assert_eq!(holding(&node), 0);
    let again = node.join(0, "member");
    assert_eq!(holding(&node), 1);
    node.unsubscribe(again, &["$share/g/t"]);
    assert_eq!(holding(&node), 0);
    node.subscribe(again, "$share/g/t", QoS::AtLeastOnce);
    assert_eq!(holding(&node), 1);
    node.cut(again);
    node.join(0, "member");
    let slot = node.shell.find("member").unwrap().1;
    node.shell.engine(0).core.sessions[slot].connection.unwrap();
    assert_eq!(holding(&node), 1);
}

#[test]
fn a_room_is_released_with_its_last_user() {
    let (mut node, _) = room_with(|_| ());
    node.unsubscribe(0, &["$share/g/t"]);
    assert!(own_room(&mut node).is_none());
}

#[test]
fn a_filter_is_nearly_full_where_all_its_subscribers_are() {
    let mut node = Node::planned(2, |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 2;
    });
    let counts = |node: &mut Node| node.shell.engine(0).router.topics.counts();
    let one = node.subscriber(0, "one", "t");
    assert_eq!(counts(&mut node), [1, 1], "a short queue is from the start");
    node.subscribe(one, "u", QoS::AtMostOnce);
    node.subscribe(one, "t", QoS::AtMostOnce);
    assert_eq!(counts(&mut node), [2, 2]);
    node.unsubscribe(one, &["t"]);
    node.unsubscribe(one, &["u"]);
    assert_eq!(counts(&mut node), [0, 0]);
    assert_eq!(node.shell.node.interest.len(), 0);
    node.subscribe(one, "t", QoS::AtLeastOnce);
    node.cut(one);
    node.advance_time(std::time::Duration::from_secs(100_001));
    assert_eq!(counts(&mut node), [0, 0]);
    assert_eq!(node.shell.node.interest.len(), 0);
}

#[test]
fn a_queue_that_shrinks_notifies_the_first_waiter() {
    let mut node = Node::planned(1, |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 3;
    });
    let member = node.subscriber(0, "member", "t");
    let publisher = node.join(0, "publisher");
    for _ in 0..3 {
        node.publish(publisher, "t", "x", QoS::AtLeastOnce);
    }
    let room = a_room(&node, &Arc::default());
    let holding = std::sync::atomic::AtomicUsize::new(0);
    let show = |node: &mut Node| -> (bool, Vec<usize>) {
        let slot = node.shell.find("member").unwrap().1;
        let session = &node.shell.engine(0).core.sessions[slot].session;
        let shown = room.show(session, true, &holding);
        (shown.has_changed, waiters(shown.notices))
    };
    assert_eq!(show(&mut node), (true, vec![]));
    for worker in 1..5 {
        room.wait((WorkerId::new(worker), Shortage::Session(1)));
    }
    assert_eq!(show(&mut node), (false, vec![]), "it is as it was");
    for expected in [1, 2, 3] {
        // The last one makes room in the window alone.
        let message = node.messages(member).remove(0);
        node.acknowledge(member, &message);
        assert_eq!(show(&mut node), (false, vec![expected]));
    }
    let slot = node.shell.find("member").unwrap().1;
    let session = &node.shell.engine(0).core.sessions[slot].session;
    let shown = room.show(session, false, &holding);
    assert_eq!(
        waiters(shown.notices),
        [4],
        "there is no waiter for a removed room"
    );
}
