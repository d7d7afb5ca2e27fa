//! Single facts about an engine: what waits for the disk, what a crash brings back, and what is
//! promised.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use thrum_codec::packet::{
    Packet, Subscribe, SubscriptionOptions, SubscriptionRequest, SubscriptionRequests,
    TopicFilters, Unsubscribe,
};
use thrum_codec::properties::{SubscribeProperties, UserProperties};
use thrum_codec::{PacketId, QoS, ReasonCode, TopicFilter};
use thrum_engine::Engine;
use thrum_engine::ids::Slot;
use thrum_engine::interest::{Interest, SessionRef};
use thrum_engine::node::metrics::Counter;
use thrum_engine::queue_room::{QueueRoom, Shortage};
use thrum_engine::workers::WorkerId;
use thrum_protection::MemoryLevel;
use thrum_protocol::limits::QueuePolicy;
use thrum_routing::shared::Strategy;

use crate::node::{Answer, Node, connect, publish};
use crate::queues::short_and_waited_for;

const Q0: QoS = QoS::AtMostOnce;
const Q1: QoS = QoS::AtLeastOnce;
const TAKEN: Answer = Answer::Puback(ReasonCode::Success);
const REFUSED: Answer = Answer::Puback(ReasonCode::QuotaExceeded);

/// A SUBSCRIBE without the turns that follow it.
fn post_subscribe(node: &mut Node, peer: usize, filter: &str) {
    let requests = [SubscriptionRequest {
        filter: TopicFilter::parse(filter).expect("it is valid"),
        options: SubscriptionOptions::default(),
    }];
    let subscribe = Subscribe {
        packet_id: PacketId::new(1_000).expect("it is not 0"),
        properties: SubscribeProperties::default(),
        requests: SubscriptionRequests::Listed(&requests),
    };
    node.send(peer, &Packet::Subscribe(subscribe));
}

fn post_unsubscribe(node: &mut Node, peer: usize, filter: &str) {
    let filters = [TopicFilter::parse(filter).expect("it is valid")];
    let unsubscribe = Unsubscribe {
        packet_id: PacketId::new(1_001).expect("it is not 0"),
        user: UserProperties::default(),
        filters: TopicFilters::Listed(&filters),
    };
    node.send(peer, &Packet::Unsubscribe(unsubscribe));
}

#[test]
fn the_answer_about_a_subscription_of_a_durable_session_waits_for_the_disk() {
    let mut node = Node::durable(1, |_| ());
    let peer = node.join(0, "peer");
    node.answers(peer);
    let expected = [
        Answer::Suback(vec![ReasonCode::Success], false),
        Answer::Unsuback(vec![ReasonCode::Success]),
    ];
    for (post, answer) in [post_subscribe, post_unsubscribe].into_iter().zip(expected) {
        post(&mut node, peer, "t");
        node.shell.turn(0);
        node.shell.turn(0);
        assert_eq!(node.read(peer), [], "{answer:?}");
        assert!(node.shell.commit());
        node.shell.turn(0);
        assert_eq!(node.read(peer), [answer]);
    }
}

#[test]
fn a_session_without_durable_state_waits_only_for_what_its_packet_changes() {
    let mut node = Node::durable(1, |_| ());
    node.subscriber(0, "kept", "kept");
    let mut short = connect("short");
    short.properties.session_expiry = None;
    let short = node.join_as(0, &short);
    node.answers(short);
    post_subscribe(&mut node, short, "t");
    node.shell.turn(0);
    let suback = Answer::Suback(vec![ReasonCode::Success], false);
    assert_eq!(node.read(short), [suback]);
    node.post(short, publish("nobody", "x", Q1));
    node.shell.turn(0);
    let nobody = Answer::Puback(ReasonCode::NoMatchingSubscribers);
    assert_eq!(node.read(short), [nobody]);
    node.post(short, publish("kept", "x", Q1));
    node.shell.turn(0);
    assert_eq!(node.read(short), []);
    assert!(node.shell.commit());
    node.shell.turn(0);
    assert_eq!(node.read(short), [TAKEN]);
}

#[test]
fn an_engine_without_sessions_and_timers_is_empty() {
    let mut node = Node::new(1);
    let are_empty = |node: &mut Node| {
        let core = &node.shell.engine(0).core;
        let is_node_empty = core.node.registry.is_empty() && core.node.interest.is_empty();
        (
            core.sessions.is_empty(),
            core.timers.is_empty(),
            is_node_empty,
        )
    };
    assert_eq!(are_empty(&mut node), (true, true, true));
    let peer = node.join(0, "peer");
    assert_eq!(are_empty(&mut node), (false, true, true));
    node.cut(peer);
    assert_eq!(are_empty(&mut node), (false, false, true));
    node.advance_time(Duration::from_secs(100_001));
    assert!(are_empty(&mut node).0);
    let mut node = Node::new(2);
    let peer = node.join(0, "peer");
    assert!(!node.shell.node.registry.is_empty());
    node.subscribe(peer, "t", Q0);
    assert!(!node.shell.node.interest.is_empty());
}

#[test]
fn the_end_of_a_session_that_is_not_stored_changes_nothing_on_the_disk() {
    let mut node = Node::durable(1, |_| ());
    for (expiry, changes) in [(None, false), (Some(100), true)] {
        let mut connect = connect("peer");
        connect.properties.session_expiry = expiry;
        node.join_as(0, &connect);
        let slot = node.shell.find("peer").unwrap().1;
        let engine = node.shell.engine(0);
        assert!(!engine.core.sessions[slot].is_kept_for_will());
        let key = engine.core.sessions[slot]
            .connection
            .take()
            .expect("it has one");
        engine.core.outputs[key].end_session();
        engine.end_session(slot);
        assert_eq!(engine.core.durable.has_changes(), changes);
        assert_eq!(engine.core.is_unsettled(), changes);
        node.settle();
    }
}

#[test]
fn a_message_on_its_way_to_another_worker_comes_back_for_that_worker_alone() {
    let mut node = Node::durable(2, |_| ());
    let near = node.subscriber(0, "near", "t");
    node.subscriber(1, "far", "t");
    let publisher = node.join(0, "publisher");
    node.post(publisher, publish("t", "x", Q1));
    node.shell.turn(0);
    node.read(near);
    let message = node.messages(near).remove(0);
    node.confirm(near, &message);
    node.shell.turn(0);
    assert!(node.shell.commit());
    let mut node = node.crash();
    assert!(node.shell.engine(0).core.is_unsettled(), "a lane is left");
    node.settle();
    assert!(!node.shell.engine(0).core.is_unsettled());
    for worker in [0, 1] {
        let near = node.join(worker, "near");
        assert_eq!(node.payloads(near), Vec::<String>::new(), "it has it");
        let far = node.join(worker, "far");
        let expected: &[&str] = if worker == 0 { &["x"] } else { &[] };
        assert_eq!(node.payloads(far), expected, "once");
        node = node.crash();
    }
}

#[test]
fn a_place_that_is_promised_holds_though_memory_becomes_short() {
    let mut node = Node::planned(2, |plan| {
        plan.settings.memory_bytes = 1 << 30;
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 10;
    });
    let far = node.subscriber(0, "far", "t");
    let near = node.join(1, "near");
    node.subscribe(near, "t", Q1);
    let publisher = node.join(1, "publisher");
    node.publish(publisher, "t", "1", Q1);
    node.post(publisher, publish("t", "2", Q1));
    node.shell.turn(1);
    // The message is in the mailbox of the other worker.
    node.shell.set_resident(2 << 30);
    node.shell.engine(1).core.read_memory();
    assert_eq!(node.shell.node.memory.level(), MemoryLevel::Exhausted);
    node.settle();
    assert_eq!(node.count(Counter::DroppedMemoryShort), 0);
    assert_eq!(node.drain(far), ["1", "2"]);
    assert_eq!(node.payloads(near), ["1", "2"]);
}

#[test]
fn publishers_wait_for_members_that_memory_is_too_short_for() {
    let mut node = Node::planned(1, |plan| {
        plan.settings.memory_bytes = 1 << 30;
        plan.settings.queue_hold = Duration::from_secs(5);
        plan.limits().inflight_max = 100;
    });
    let member = node.subscriber(0, "member", "$share/g/t");
    let publisher = node.join(0, "publisher");
    node.answers(publisher);
    node.shell.set_resident((1 << 30) / 100 * 101);
    node.advance_time(Duration::from_millis(20));
    assert_eq!(node.shell.node.memory.level(), MemoryLevel::Full);
    // While memory is full, a client has 16 messages that it has not acknowledged.
    for _ in 0..16 {
        node.publish(publisher, "t", "x", Q1);
    }
    assert_eq!(node.answers(publisher), [TAKEN; 16]);
    node.publish(publisher, "t", "x", Q1);
    assert!(node.is_held(publisher));
    assert_eq!(node.shell.node.holding.load(Ordering::Relaxed), 0);
    node.advance_time(Duration::from_secs(5));
    assert_eq!(node.answers(publisher), [REFUSED]);
    assert_eq!(node.drain(member).len(), 16);
}

#[test]
fn each_change_of_the_interest_has_a_later_generation() {
    let interest = Interest::new(Strategy::RoundRobin, 2);
    let mut last = interest.generation();
    let mut is_later = |change: &dyn Fn()| {
        change();
        let now = interest.generation();
        now > std::mem::replace(&mut last, now)
    };
    let worker = WorkerId::new(1);
    assert!(!is_later(&|| ()));
    for filter in ["t", "t/+", "#"] {
        assert!(is_later(&|| interest.add_worker(filter, worker)));
        assert!(is_later(&|| interest.add_durable(filter, worker)));
        assert!(is_later(
            &|| interest.set_all_nearly_full(filter, worker, true)
        ));
        assert!(is_later(
            &|| interest.set_all_nearly_full(filter, worker, false)
        ));
        assert!(is_later(&|| interest.remove_durable(filter, worker)));
        assert!(is_later(&|| interest.remove_worker(filter, worker)));
    }
    assert!(interest.is_empty());
}

#[test]
fn a_queue_has_shrunk_if_either_its_messages_or_its_bytes_are_fewer() {
    let mut node = Node::planned(1, |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 9;
    });
    let member = node.subscriber(0, "member", "t");
    let publisher = node.join(0, "publisher");
    let slot: Slot = node.shell.find("member").unwrap().1;
    let worker = WorkerId::new(0);
    let id = 1;
    let session = SessionRef { worker, slot, id };
    let room = Arc::new(QueueRoom::new(session, Arc::default()));
    let holding = AtomicUsize::new(0);
    let told = |node: &mut Node| {
        let session = &node.shell.engine(0).core.sessions[slot].session;
        let shown = room.show(session, true, &holding);
        shown.notices.len()
    };
    let small = "x";
    let big = "x".repeat(1_000);
    for payload in [small, &big, small, small, small, small] {
        node.publish(publisher, "t", payload, Q1);
    }
    told(&mut node);
    room.wait((WorkerId::new(1), Shortage::Session(1)));
    room.wait((WorkerId::new(2), Shortage::Session(1)));
    room.wait((WorkerId::new(3), Shortage::Session(1)));
    let acknowledge = |node: &mut Node| {
        let message = node.messages(member).remove(0);
        node.acknowledge(member, &message);
    };
    // The big message leaves the queue for the window, and a small one comes.
    acknowledge(&mut node);
    node.publish(publisher, "t", small, Q1);
    assert_eq!(told(&mut node), 1, "as many messages, fewer bytes");
    // Two small messages leave, and a big one comes.
    acknowledge(&mut node);
    acknowledge(&mut node);
    node.publish(publisher, "t", &big, Q1);
    assert_eq!(told(&mut node), 1, "fewer messages, more bytes");
    acknowledge(&mut node);
    node.publish(publisher, "t", small, Q1);
    assert_eq!(told(&mut node), 0, "it is as it was");
    node.publish(publisher, "t", small, Q1);
    assert_eq!(told(&mut node), 0, "it has grown");
}

#[test]
fn a_round_of_held_publishers_ends_with_its_portion() {
    let mut node = Node::planned(1, short_and_waited_for(QueuePolicy::Hold));
    node.subscriber(0, "receiver", "t");
    let peers: Vec<usize> = (0..6).map(|one| node.join(0, &format!("p{one}"))).collect();
    for peer in &peers {
        node.publish(*peer, "t", "x", Q1);
    }
    assert_eq!(node.count(Counter::PublishersHeld), 3);
    node.shell.advance_time(Duration::from_secs(6));
    let now = node.shell.now;
    let Engine { core, held, .. } = node.shell.engine(0);
    core.turn.limits_mut().portion_units = 10;
    core.turn.begin(now);
    assert!(!held.are_listed());
    held.are_due(core);
    assert!(held.are_listed());
    held.begin_resuming(core);
    assert!(held.next_resumed(core).is_some());
    assert!(held.may_resume(core), "the portion is not used up");
    assert!(held.next_resumed(core).is_some());
    core.turn.work += 10;
    // The shortage is listed again, for the next turn.
    assert!(!held.may_resume(core) && held.are_listed());
    assert!(held.next_resumed(core).is_none());
    assert!(!held.may_resume(core) && held.are_listed());
    core.turn.begin(now);
    held.begin_resuming(core);
    assert!(held.next_resumed(core).is_some());
    assert!(held.next_resumed(core).is_none(), "nobody is left");
    assert!(!held.are_listed());
    assert_eq!(node.count(Counter::PublishersHeld), 0);
}

#[test]
fn an_outbox_has_mail_until_it_is_taken() {
    let mut node = Node::new(3);
    node.subscriber(2, "receiver", "t");
    let publisher = node.join(1, "publisher");
    let workers = [0, 1, 2].map(WorkerId::new);
    let has_mail = |node: &mut Node| {
        let outboxes = &node.shell.engine(1).core.outboxes;
        workers.map(|worker| outboxes.has_mail(worker))
    };
    assert_eq!(has_mail(&mut node), [false; 3]);
    node.post(publisher, publish("t", "x", Q1));
    node.shell.read_inputs(1);
    assert_eq!(has_mail(&mut node), [false, false, true]);
    let outboxes = &mut node.shell.engine(1).core.outboxes;
    assert_eq!(outboxes.send_beside(workers[2], 0), 1, "behind the message");
    assert_eq!(outboxes.send_beside(workers[0], 0), 0);
    assert_eq!(has_mail(&mut node), [true, false, true]);
    for worker in workers {
        let mail = node.shell.engine(1).core.outboxes.take(worker);
        assert_eq!(mail.len(), usize::from(worker == workers[2]));
    }
    assert_eq!(has_mail(&mut node), [false; 3]);
}

#[test]
fn random_numbers_follow_from_the_node_and_the_worker() {
    let mut node = Node::new(2);
    // SplitMix64 of the node 1, with a state for each worker.
    let expected = [
        [
            0xe99f_f867_dbf6_82c9,
            0x382f_f84c_b272_81e9,
            0x6d1d_b36c_cba9_82d2,
        ],
        [
            0xf893_a2ee_fb32_555e,
            0x71c1_8690_ee42_c90b,
            0x71bb_54d8_d101_b5b9,
        ],
    ];
    for (worker, expected) in expected.into_iter().enumerate() {
        let core = &mut node.shell.engine(worker).core;
        assert_eq!([(); 3].map(|()| core.random()), expected);
    }
}

#[test]
fn a_session_has_one_timer_for_its_next_deadline() {
    let mut node = Node::new(1);
    let mut silent = connect("silent");
    silent.keep_alive = 10;
    node.join_as(0, &silent);
    let slot = node.shell.find("silent").unwrap().1;
    let core = &mut node.shell.engine(0).core;
    assert_eq!(core.timers.len(), 1);
    let (armed, now) = (core.sessions[slot].armed, core.turn.now);
    assert_eq!(armed, now.plus(Duration::from_secs(15)));
    core.arm(slot);
    assert_eq!(core.timers.len(), 1, "it is armed");
    core.arm_at(slot, now.plus(Duration::from_secs(16)));
    core.arm(slot);
    assert_eq!((core.timers.len(), core.sessions[slot].armed), (3, armed));
    // A deadline that is far away is looked at again after ten minutes.
    let away = node.join(0, "away");
    node.cut(away);
    let slot = node.shell.find("away").unwrap().1;
    let core = &node.shell.engine(0).core;
    assert_eq!(core.sessions[slot].armed, now.plus(Duration::from_mins(10)));
}
