//! Parts of an engine on their own: timers, turns, outputs, outboxes, sets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proptest::prelude::*;
use thrum_codec::QoS;
use thrum_codec::packet::Packet;
use thrum_engine::interest::{Interest, Route};
use thrum_engine::node::Capacity;
use thrum_engine::node::metrics::Counter;
use thrum_engine::retained::{RetainedLimits, RetainedStore};
use thrum_engine::timer::TimerWheel;
use thrum_engine::workers::{SharedWorkerSet, WorkerId, WorkerSet};
use thrum_protocol::Time;
use thrum_routing::shared;

use thrum_protocol::limits::QueuePolicy;

use crate::node::{Node, publish};
use crate::queues::short_and_waited_for;

/// Length of a tick.
const TICK: u64 = 64;

fn a_deadline() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..200_u64,
        0..TICK * 64,
        0..TICK * 64 * 64 * 2,
        0..TICK * 64 * 64 * 64 * 2,
        0..TICK * 64 * 64 * 64 * 64 * 2,
    ]
}

proptest! {
    /// Entries fire at their deadlines, or within a tick after them; one whose deadline is over
    /// fires with the next tick. The wheel has to be polled in time for all of them.
    #[test]
    fn a_timer_fires_within_a_tick_behind_its_deadline(
        start in 0..TICK * 5_000,
        steps in prop::collection::vec((a_deadline(), any::<bool>(), a_deadline()), 1..60),
    ) {
        let mut now = start;
        let mut wheel = TimerWheel::new(Time::from_millis(now));
        let mut armed: BTreeMap<usize, u64> = BTreeMap::new();
        for (number, (ahead, is_over, step)) in steps.into_iter().enumerate() {
            let deadline = if is_over && ahead < 200 {
                now.saturating_sub(ahead)
            } else {
                now + ahead
            };
            wheel.insert(Time::from_millis(deadline), number);
            armed.insert(number, deadline.div_ceil(TICK).max(now / TICK + 1));
            prop_assert_eq!(wheel.len(), armed.len());
            let wait = wheel.next_wait(Time::from_millis(now)).expect("one is armed");
            let first = armed.values().min().expect("one is armed") * TICK;
            prop_assert!(wait <= Duration::from_millis(first - now));
            // It makes progress.
            prop_assert!(!wait.is_zero());
            now += step;
            let mut fired = Vec::new();
            wheel.advance(Time::from_millis(now), &mut fired);
            fired.sort_unstable();
            let due = armed.iter().filter(|(_, tick)| **tick <= now / TICK);
            let due: Vec<usize> = due.map(|(number, _)| *number).collect();
            prop_assert_eq!(&fired, &due);
            armed.retain(|number, _| !due.contains(number));
        }
        prop_assert_eq!(wheel.next_wait(Time::from_millis(now)).is_some(), !armed.is_empty());
    }
}

#[test]
fn a_portion_of_a_turn_ends_with_its_units_or_its_time() {
    let mut node = Node::new(1);
    let turn = &mut node.shell.engine(0).core.turn;
    turn.limits_mut().portion_units = 10;
    turn.limits_mut().reading_units = 20;
    assert_eq!(turn.limits().portion_units, 10);
    turn.begin(Time::from_millis(1));
    turn.begin_read_portion();
    turn.work += 9;
    assert!(!turn.is_portion_over() && !turn.is_reading_over());
    turn.work += 1;
    assert!(turn.is_portion_over() && !turn.is_reading_over());
    assert!(turn.is_portion_over(), "it stays so");
    turn.begin_portion_of(4);
    turn.work += 3;
    assert!(!turn.is_portion_over());
    turn.work += 1;
    assert!(turn.is_portion_over());
    turn.begin_portion_of(100);
    turn.work += 6;
    assert!(!turn.is_portion_over() && turn.is_reading_over());
    turn.work += 4;
    assert!(turn.is_portion_over());
    turn.begin_resuming();
    turn.work += 9;
    assert!(!turn.is_resuming_over());
    turn.work += 1;
    assert!(turn.is_resuming_over());
}

#[test]
fn the_clock_is_read_after_some_units_only() {
    let mut process = None;
    let mut node = Node::planned(1, |plan| process = Some(Arc::clone(&plan.process)));
    let process = process.expect("it was planned");
    process.micros_of_look.store(1_000, Ordering::Relaxed);
    let looks = || process.micros.load(Ordering::Relaxed) / 1_000;
    let turn = &mut node.shell.engine(0).core.turn;
    turn.begin(Time::from_millis(1));
    let before = looks();
    turn.begin_portion();
    turn.work += 255;
    assert!(!turn.is_portion_over());
    assert_eq!(looks(), before);
    // The portion ends three milliseconds behind the first look.
    for number in 0..4 {
        turn.work += 1;
        assert_eq!(turn.is_portion_over(), number == 3, "{number}");
        assert_eq!(looks(), before + number + 1);
        turn.work += 255;
    }
    assert!(!turn.is_reading_over());
}

#[test]
fn resumed_publishers_have_one_portion_of_a_turn() {
    let mut node = Node::planned(1, short_and_waited_for(QueuePolicy::Hold));
    node.subscriber(0, "receiver", "t");
    let peers: Vec<usize> = (0..9).map(|one| node.join(0, &format!("p{one}"))).collect();
    for peer in &peers {
        node.publish(*peer, "t", "x", QoS::AtLeastOnce);
    }
    let held = |node: &Node| peers.iter().filter(|peer| node.is_held(**peer)).count();
    assert_eq!(held(&node), 6);
    assert_eq!(node.count(Counter::PublishersHeld), 6);
    node.shell.engine(0).core.turn.limits_mut().portion_units = 2;
    node.shell.advance_time(Duration::from_secs(6));
    node.shell.turn(0);
    assert!((1..6).contains(&held(&node)), "{}", held(&node));
    assert!(node.shell.engine(0).held.are_listed());
    node.settle();
    assert_eq!(held(&node), 0);
    assert_eq!(node.count(Counter::LimitQueueHold), 6);
    assert_eq!(node.count(Counter::BytesHeld), 0);
}

#[test]
fn a_publisher_that_is_cut_while_it_is_held_is_forgotten() {
    let mut node = Node::planned(1, |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 1;
        plan.limits().queue.policy = QueuePolicy::Hold;
        plan.settings.queue_hold = Duration::from_secs(5);
    });
    let receiver = node.subscriber(0, "receiver", "t");
    let one = node.join(0, "one");
    let two = node.join(0, "two");
    for payload in ["1", "2", "gone"] {
        node.publish(one, "t", payload, QoS::AtLeastOnce);
    }
    node.publish(two, "t", "3", QoS::AtLeastOnce);
    assert_eq!(node.count(Counter::PublishersHeld), 2);
    node.cut(one);
    node.advance_time(Duration::from_millis(200));
    assert_eq!(node.count(Counter::PublishersHeld), 1);
    assert_eq!(node.drain(receiver), ["1", "2", "3"]);
    assert_eq!(node.count(Counter::PublishersHeld), 0);
    node.advance_time(Duration::from_secs(1));
    let timers = node.shell.engine(0).core.timers.len();
    assert_eq!(timers, 1, "of the session of which the client is away");
}

#[test]
fn mail_that_fills_a_mailbox_is_known_by_the_worker() {
    for (messages, bytes) in [(3, usize::MAX), (usize::MAX, 1_000)] {
        let mut node = Node::planned(2, |plan| plan.mailbox = Capacity { messages, bytes });
        node.subscriber(0, "receiver", "t");
        let publisher = node.join(1, "publisher");
        let link = node.link(publisher);
        let payload = "x".repeat(300);
        for _ in 0..2 {
            node.post(publisher, publish("t", &payload, QoS::AtMostOnce));
        }
        node.shell.turn(1);
        assert!(!node.shell.take_full(link));
        node.post(publisher, publish("t", &payload, QoS::AtMostOnce));
        node.post(publisher, publish("t", &payload, QoS::AtMostOnce));
        node.shell.turn(1);
        assert!(node.shell.take_full(link), "{messages} {bytes}");
        let there = node.shell.node.mailbox_level(WorkerId::new(0));
        let (waiting, waiting_bytes) = there.waiting();
        assert!(waiting == 4 && waiting_bytes > 1_200, "{waiting_bytes}");
        node.settle();
        let there = node.shell.node.mailbox_level(WorkerId::new(0));
        assert_eq!(there.waiting(), (0, 0));
        node.publish(publisher, "t", "x", QoS::AtMostOnce);
        assert!(!node.shell.take_full(link));
    }
}

#[test]
fn sets_of_workers_are_united_and_subtracted() {
    let set = |numbers: &[usize]| -> WorkerSet {
        numbers
            .iter()
            .map(|number| WorkerId::new(*number))
            .collect()
    };
    let (one, two) = (set(&[0, 63, 64, 130]), set(&[63, 130, 200]));
    let numbers = |set: WorkerSet| -> Vec<usize> { set.into_iter().map(WorkerId::index).collect() };
    assert_eq!(numbers(one | two), [0, 63, 64, 130, 200]);
    assert_eq!(numbers(one & two), [63, 130]);
    assert_eq!(numbers(one - two), [0, 64]);
    assert_eq!(numbers(one.without(WorkerId::new(64))), [0, 63, 130]);
    let mut joined = one;
    joined |= two;
    assert_eq!(joined, one | two);
    assert_eq!((one.len(), WorkerSet::NONE.len()), (4, 0));
    assert!(WorkerSet::NONE.is_empty() && !one.is_empty());
    assert!(WorkerSet::ALL.contains(WorkerId::new(255)));
    let shared = SharedWorkerSet::default();
    shared.store(one, Ordering::Relaxed);
    shared.put(WorkerId::new(5), true, Ordering::Relaxed);
    shared.put(WorkerId::new(64), false, Ordering::Relaxed);
    assert_eq!(numbers(shared.load(Ordering::Relaxed)), [0, 5, 63, 130]);
}

#[test]
fn the_registry_knows_the_sessions_of_the_node() {
    let mut node = Node::new(3);
    let peers: Vec<usize> = (0..6)
        .map(|one| node.join(one % 3, &format!("p{one}")))
        .collect();
    assert_eq!(node.shell.node.registry.len(), 6);
    node.cut(peers[0]);
    assert_eq!(node.shell.node.registry.len(), 6);
    node.advance_time(Duration::from_secs(100_001));
    assert_eq!(node.shell.node.registry.len(), 5);
    assert!(!node.shell.node.registry.has("p0") && node.shell.node.registry.has("p1"));
}

#[test]
fn room_of_removed_sessions_is_released() {
    let mut node = Node::new(1);
    let peers: Vec<usize> = (0..100)
        .map(|one| node.join(0, &format!("p{one}")))
        .collect();
    let core = &node.shell.engine(0).core;
    assert_eq!((core.sessions.len(), core.outputs.len()), (100, 100));
    assert!(core.sessions.capacity() >= 100);
    for peer in &peers[1..] {
        node.cut(*peer);
    }
    node.advance_time(Duration::from_secs(100_001));
    let engine = node.shell.engine(0);
    engine.shrink();
    let core = &engine.core;
    assert_eq!((core.sessions.len(), core.outputs.len()), (1, 1));
    assert!(core.sessions.capacity() < 10);
    assert!(core.sessions.find("p0").is_some() && core.sessions.find("p1").is_none());
    assert_eq!(core.sessions.iter().count(), 1);
    node.subscribe(peers[0], "t", QoS::AtLeastOnce);
    node.publish(peers[0], "t", "x", QoS::AtLeastOnce);
    assert_eq!(node.payloads(peers[0]), ["x"]);
}

#[test]
fn a_connection_in_the_place_of_another_one_is_not_taken_for_it() {
    let mut node = Node::new(1);
    let peer = node.join(0, "peer");
    let first = node.shell.connection(node.link(peer)).unwrap();
    let slot = node.shell.find("peer").unwrap().1;
    assert_eq!(node.shell.engine(0).core.outputs.session(first), Some(slot));
    node.cut(peer);
    let peer = node.join(0, "peer");
    let second = node.shell.connection(node.link(peer)).unwrap();
    assert_eq!(first.key, second.key);
    let outputs = &mut node.shell.engine(0).core.outputs;
    assert!(!outputs.contains(first) && outputs.contains(second));
    assert_eq!(outputs.session(first), None);
    assert_eq!(outputs.session(second), Some(slot));
    assert_eq!(outputs.id(second.key).serial, second.serial);
    let id = node.shell.engine(0).core.sessions[slot].session.id();
    let sessions = &node.shell.engine(0).core.sessions;
    assert!(sessions.is(slot, id) && !sessions.is(slot, id + 1));
    assert!(sessions.is_connected(slot, id));
    node.cut(peer);
    let sessions = &node.shell.engine(0).core.sessions;
    assert!(!sessions.is_connected(slot, id) && sessions.is(slot, id));
}

#[test]
fn random_numbers_of_workers_differ() {
    let mut node = Node::new(2);
    let mut numbers: Vec<u64> = (0..200)
        .map(|one| node.shell.engine(one % 2).core.random())
        .collect();
    let ones: u32 = numbers.iter().map(|number| number.count_ones()).sum();
    assert!((6_000..6_800).contains(&ones), "{ones} of 12800 bits");
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 200);
    let identity = [0, 1].map(|worker| node.shell.engine(worker).core.id.index());
    assert_eq!(identity, [0, 1]);
}

#[test]
fn answers_are_counted_each_once() {
    let mut node = Node::new(1);
    let peer = node.join(0, "peer");
    let mut last = 0;
    let mut more = |node: &Node| {
        let all = node.count(Counter::AnswersSent);
        all - std::mem::replace(&mut last, all)
    };
    assert_eq!(more(&node), 1, "CONNACK");
    node.send(peer, &Packet::PingReq);
    node.settle();
    assert_eq!(more(&node), 1, "PINGRESP");
    node.subscribe(peer, "t", QoS::ExactlyOnce);
    assert_eq!(more(&node), 1, "SUBACK");
    node.publish(peer, "u", "x", QoS::ExactlyOnce);
    assert_eq!(more(&node), 2, "PUBREC and PUBCOMP");
    node.publish(peer, "u", "x", QoS::AtLeastOnce);
    assert_eq!(more(&node), 1, "PUBACK");
    node.publish(peer, "t", "x", QoS::ExactlyOnce);
    assert_eq!(more(&node), 3, "PUBREL too");
    node.publish(peer, "t", "x", QoS::AtMostOnce);
    assert_eq!(more(&node), 0);
    node.unsubscribe(peer, &["t"]);
    assert_eq!(more(&node), 1, "UNSUBACK");
}

#[test]
fn a_position_in_a_replay_is_decoded_as_it_was_encoded() {
    let limits = RetainedLimits {
        message_count: 100,
        bytes: 1 << 20,
        payload_bytes: 100,
    };
    let store = RetainedStore::new(limits, 2);
    assert_eq!(store.write_place(None), Vec::<u8>::new());
    assert!(store.read_place("#", &[]).is_none());
    let place = store.behind("a/b");
    let bytes = store.write_place(Some(&place));
    let read = store.read_place("#", &bytes).expect("it is of this store");
    assert_eq!(store.write_place(Some(&read)), bytes);
    assert_eq!(bytes[..2], [4, 0], "shards");
    let mut beyond = bytes.clone();
    beyond[2] = 4;
    assert!(store.read_place("#", &beyond).is_none());
    let other = RetainedStore::new(limits, 3);
    assert!(
        other.read_place("#", &bytes).is_none(),
        "it has other shards"
    );
    let mut start = bytes[..5].to_vec();
    start[4] = 0;
    let read = store.read_place("#", &start).expect("it begins a shard");
    assert_eq!(store.write_place(Some(&read)), start);
}

#[test]
fn work_is_counted_by_what_it_costs() {
    let mut node = Node::new(1);
    let peer = node.join(0, "peer");
    let mut last = node.shell.engine(0).core.turn.work;
    let mut more = |node: &mut Node| {
        let all = node.shell.engine(0).core.turn.work;
        all - std::mem::replace(&mut last, all)
    };
    node.subscribe(peer, "t/+", QoS::AtMostOnce);
    assert_eq!(more(&mut node), 32, "a filter");
    node.publish(peer, "t/1", "x", QoS::AtMostOnce);
    let first = more(&mut node);
    assert!((33..45).contains(&first), "{first} for a route anew");
    node.publish(peer, "t/1", "x", QoS::AtMostOnce);
    assert_eq!(more(&mut node), 1, "a delivery");
    node.publish(peer, "t/1", &"x".repeat(64 * 5), QoS::AtMostOnce);
    assert_eq!(more(&mut node), 6, "its payload too");
    node.subscribe(peer, "t/#", QoS::AtMostOnce);
    assert_eq!(more(&mut node), 32);
    node.publish(peer, "t/1", "x", QoS::AtMostOnce);
    more(&mut node);
    node.publish(peer, "t/1", "x", QoS::AtMostOnce);
    assert_eq!(more(&mut node), 3, "two filters and a delivery");
    node.unsubscribe(peer, &["t/+", "none"]);
    assert_eq!(more(&mut node), 64);
    let slot = node.shell.find("peer").unwrap().1;
    node.cut(peer);
    more(&mut node);
    node.shell.engine(0).end_session(slot);
    assert_eq!(more(&mut node), 32, "its subscription");
}

#[test]
fn filters_with_short_queues_are_known_as_nearly_full_while_they_have_subscribers() {
    let mut node = Node::planned(2, |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 2;
    });
    let route = |node: &Node, topic: &str| {
        let mut route = Route::default();
        let interest = &node.shell.node.interest;
        interest.route(topic, &mut Vec::new(), &mut route);
        (
            route.nearly_full.len(),
            route.workers.len(),
            route.certain.len(),
        )
    };
    let one = node.subscriber(0, "one", "a/b");
    let two = node.subscriber(0, "two", "a/+");
    assert_eq!(route(&node, "a/b"), (2, 1, 0));
    assert_eq!(route(&node, "a/c"), (1, 1, 0));
    node.subscribe(one, "a/+", QoS::AtMostOnce);
    assert_eq!(route(&node, "a/c"), (1, 1, 0));
    node.subscribe(two, "a/+", QoS::AtMostOnce);
    assert_eq!(
        route(&node, "a/c"),
        (0, 1, 0),
        "both are, and queue nothing there"
    );
    node.unsubscribe(one, &["a/b"]);
    assert_eq!(route(&node, "a/b"), (0, 1, 0));
    node.unsubscribe(one, &["a/+"]);
    node.unsubscribe(two, &["a/+"]);
    assert_eq!(route(&node, "a/b"), (0, 0, 0));
}

#[test]
fn a_look_up_costs_what_each_part_of_the_table_costs() {
    let cost = |filters: &[&str]| {
        let interest = Interest::new(shared::Strategy::RoundRobin, 2);
        for filter in filters {
            interest.add_worker(filter, WorkerId::new(1));
        }
        let mut route = Route::default();
        let (_, visits) = interest.route("a/b/c", &mut Vec::new(), &mut route);
        assert_eq!(route.workers.len(), u32::from(!filters.is_empty()));
        assert_eq!(route.workers, route.certain);
        visits
    };
    let parts = ["a/b/c", "a/b/#", "+/b/#"].map(|filter| cost(&[filter]));
    assert!(parts[1] > 0 && parts[2] > 0, "{parts:?}");
    assert_eq!(
        cost(&["a/b/c", "a/b/#", "+/b/#"]),
        parts.iter().sum::<usize>()
    );
    assert_eq!(cost(&[]), 0);
}
