//! What a limit, a level or a state decides at its border.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thrum_access::{Admission, Rules};
use thrum_codec::packet::Packet;
use thrum_codec::{QoS, ReasonCode, TopicFilter, Version};
use thrum_engine::access::{ClientAccess, Grant, Shared};
use thrum_engine::interest::Route;
use thrum_engine::node::metrics::Counter;
use thrum_engine::outputs::Outputs;
use thrum_engine::retained::{RetainedLimits, RetainedStore};
use thrum_engine::subscription_cost::subscription_bytes;
use thrum_protocol::limits::QueuePolicy;
use thrum_protocol::server::refuse;
use thrum_protocol::{Message, Publication, Time, Violation};
use thrum_storage::disk::sim::SimStorage;

use crate::memory::{publish_until_told, use_memory};
use crate::node::{Answer, Node, connect, connect_with_will, publish};
use crate::queues::short_and_waited_for;

const Q0: QoS = QoS::AtMostOnce;
const Q1: QoS = QoS::AtLeastOnce;
const Q2: QoS = QoS::ExactlyOnce;
const TAKEN: Answer = Answer::Puback(ReasonCode::Success);
const REFUSED: Answer = Answer::Puback(ReasonCode::QuotaExceeded);

fn write(outputs: &mut Outputs, key: thrum_engine::ids::ConnectionKey) {
    let violation = Violation::new(ReasonCode::NotAuthorized, "");
    refuse(Version::V311, &violation, outputs.buffer(Some(key)));
    outputs.wrote(key);
}

#[test]
fn what_the_socket_has_left_is_sent_before_what_waits_for_the_disk() {
    let mut outputs = Outputs::default();
    let connection = outputs.open();
    let key = connection.key;
    write(&mut outputs, key);
    assert_eq!(outputs[key].sendable().unwrap().len(), 4);
    outputs[key].was_sent();
    write(&mut outputs, key);
    outputs.depend(key);
    outputs.settle(Some(1));
    assert_eq!(
        outputs[key].sendable().unwrap().len(),
        4,
        "of the turn before"
    );
    assert_eq!(outputs[key].waiting(), 8);
    outputs[key].drop_held();
    assert_eq!(outputs[key].waiting(), 4);
    outputs[key].discard();
    assert_eq!(outputs[key].waiting(), 0);
    write(&mut outputs, key);
    assert_eq!(outputs[key].sendable().unwrap().len(), 4);
}

#[test]
fn a_connack_is_lost_with_a_connection_until_its_turn_is_durable() {
    for released in [false, true] {
        let mut outputs = Outputs::default();
        let connection = outputs.open();
        let key = connection.key;
        outputs[key].begin_session(thrum_engine::ids::Slot::FIRST);
        write(&mut outputs, key);
        outputs.depend(key);
        outputs.settle(Some(1));
        if released {
            outputs.release(connection, 1);
        }
        write(&mut outputs, key);
        outputs.depend(key);
        outputs.settle(Some(2));
        assert_eq!(outputs[key].drop_held(), !released);
    }
}

#[test]
fn a_ping_of_a_durable_session_does_not_wait_for_the_changes_of_others() {
    let mut node = Node::durable(1, |_| ());
    let away = node.subscriber(0, "away", "t");
    node.cut(away);
    let peer = node.join(0, "peer");
    let publisher = node.join(0, "publisher");
    node.answers(peer);
    node.post(publisher, publish("t", "x", Q1));
    node.send(peer, &Packet::PingReq);
    node.shell.turn(0);
    assert_eq!(node.read(peer), [Answer::Pong]);
    node.shell.turn(0);
    node.send(peer, &Packet::PingReq);
    node.shell.turn(0);
    assert_eq!(node.read(peer), [Answer::Pong]);
    assert_eq!(node.read(publisher).len(), 1, "its CONNACK alone");
}

#[test]
fn an_output_is_congested_above_its_limit() {
    let mut node = Node::planned(1, |plan| plan.settings.output_bytes = 14);
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "t", Q0);
    let publisher = node.join(0, "publisher");
    node.set_slow(receiver, true);
    for (payload, expected) in [("1", 0), ("2", 0), ("3", 1)] {
        // Each PUBLISH has seven bytes.
        node.publish(publisher, "t", payload, Q0);
        assert_eq!(node.count(Counter::LimitOutput), expected, "{payload}");
    }
}

#[test]
fn the_bytes_of_subscriptions_are_allowed_up_to_the_limit() {
    let bytes = subscription_bytes(TopicFilter::parse("t").unwrap());
    let mut node = Node::planned(1, |plan| plan.settings.subscriptions.bytes_max = bytes);
    let peer = node.join(0, "peer");
    node.answers(peer);
    node.subscribe(peer, "t", Q0);
    node.subscribe(peer, "u", Q0);
    let codes = [ReasonCode::Success, ReasonCode::QuotaExceeded];
    assert_eq!(
        node.answers(peer),
        codes.map(|code| Answer::Suback(vec![code], false))
    );
}

#[test]
fn a_publisher_that_waits_drops_nothing() {
    let mut node = Node::planned(1, short_and_waited_for(QueuePolicy::Hold));
    node.subscriber(0, "receiver", "t");
    let publisher = node.join(0, "publisher");
    for payload in ["1", "2", "3", "4"] {
        node.publish(publisher, "t", payload, Q1);
    }
    assert!(node.is_held(publisher));
    let slot = node.shell.find("receiver").unwrap().1;
    let sessions = &mut node.shell.engine(0).core.sessions;
    assert_eq!(sessions[slot].dropped().count(), 0);
    assert!(sessions.get_mut(slot).is_some() && sessions.get(slot).is_some());
}

#[test]
fn nobody_waits_for_a_group_whose_members_are_away() {
    let mut node = Node::planned(1, |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 2;
        plan.settings.queue_hold = Duration::from_secs(5);
    });
    let member = node.subscriber(0, "member", "$share/g/t");
    // A queue that is nearly full makes the worker look.
    node.subscriber(0, "other", "$share/h/u");
    node.cut(member);
    assert_eq!(node.shell.node.holding.load(Ordering::Relaxed), 1);
    let publisher = node.join(0, "publisher");
    node.answers(publisher);
    for payload in ["1", "2", "3"] {
        node.publish(publisher, "t", payload, Q1);
    }
    assert!(!node.is_held(publisher));
    assert_eq!(node.answers(publisher), [TAKEN, TAKEN, REFUSED]);
}

#[test]
fn a_nearly_full_queue_stays_known_when_the_quality_of_service_changes() {
    let mut node = Node::planned(2, |plan| plan.limits().queue.messages_max = 10);
    let peer = node.join(0, "peer");
    for (qos, expected) in [(Q1, 1), (Q2, 1), (Q0, 0), (Q0, 0), (Q1, 1)] {
        node.subscribe(peer, "t", qos);
        let mut route = Route::default();
        let interest = &node.shell.node.interest;
        interest.route("t", &mut Vec::new(), &mut route);
        assert_eq!(route.nearly_full.len(), expected, "{qos:?}");
    }
}

#[test]
fn sessions_have_room_and_owners_after_a_crash_only_if_they_need_them() {
    let mut shared = Shared::default();
    shared.access.policy.rules = Arc::new(Rules::parse("allow all pubsub #", "test").unwrap());
    let mut node = Node::durable(1, |plan| plan.settings.access = Arc::new(shared));
    let mut named = connect("named");
    named.username = Some("user");
    node.join_as(0, &named);
    let member = node.join(0, "member");
    node.subscribe(member, "$share/g/t", Q1);
    node.join(0, "plain");
    let mut node = node.crash();
    assert!(node.shell.node.registry.is_empty(), "one worker needs none");
    for (client_id, has_room) in [("named", false), ("member", true), ("plain", false)] {
        let slot = node.shell.find(client_id).unwrap().1;
        let client = &node.shell.engine(0).core.sessions[slot];
        assert_eq!(client.own_room().is_some(), has_room, "{client_id}");
        assert_eq!(client.rare.is_some(), client_id != "plain");
    }
}

#[test]
fn changes_of_the_retained_store_are_numbered_one_by_one() {
    let limits = RetainedLimits {
        message_count: 9,
        bytes: 9_000,
        payload_bytes: 9,
    };
    let store = RetainedStore::new(limits, 1);
    let put = |topic: &str, payload: &[u8]| {
        let message = Message::new(&Publication::new(topic, payload, Q1));
        store
            .store(&Arc::new(message), None, Time::default())
            .change
    };
    assert_eq!(put("a", b"1"), Some(1));
    assert_eq!(put("a", b"2"), Some(2));
    assert_eq!(put("a", b"too many bytes"), None);
    store.count_changes_from(10);
    store.count_changes_from(5);
    assert_eq!(put("b", b"1"), Some(11));
    assert_eq!(put("b", b""), Some(12));
    assert_eq!(put("b", b""), None);
    assert_eq!(store.remove("a"), Some(13));
}

#[test]
fn a_message_of_an_old_publisher_is_dropped_where_memory_is_short() {
    let mut node = Node::planned(2, |plan| plan.settings.memory_bytes = 1 << 30);
    let away = node.subscriber(0, "away", "t");
    node.cut(away);
    let old = node.join_old(1, "old");
    let big = "x".repeat(70_000);
    node.publish(old, "t", &big, Q1);
    assert_eq!(node.count(Counter::DroppedMemoryShort), 0);
    use_memory(&mut node, 82);
    node.publish(old, "t", &big, Q1);
    assert_eq!(node.count(Counter::DroppedMemoryShort), 0);
    use_memory(&mut node, 91);
    node.publish(old, "t", &big, Q1);
    assert_eq!(node.count(Counter::DroppedMemoryShort), 1);
}

#[test]
fn members_take_turns_for_qos_0_though_a_queue_is_full() {
    let mut node = Node::planned(1, |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 1;
    });
    let full = node.subscriber(0, "full", "$share/g/t");
    let publisher = node.join(0, "publisher");
    for payload in ["1", "2"] {
        node.publish(publisher, "t", payload, Q1);
    }
    node.messages(full);
    let other = node.subscriber(0, "other", "$share/g/t");
    for _ in 0..6 {
        node.publish(publisher, "t", "x", Q0);
    }
    assert_eq!(node.messages(full).len(), 3);
    assert_eq!(node.messages(other).len(), 3);
}

#[test]
fn messages_of_groups_are_written_only_for_durable_members_and_qos_1() {
    let mut node = Node::durable(2, |_| ());
    let mut brief = connect("brief");
    brief.properties.session_expiry = None;
    let brief = node.join_as(0, &brief);
    node.subscribe(brief, "$share/g/brief", Q1);
    let kept = node.join(0, "kept");
    node.subscribe(kept, "$share/g/kept", Q1);
    node.subscribe(kept, "$share/g/low", Q0);
    let mut publisher = connect("publisher");
    publisher.properties.session_expiry = None;
    let publisher = node.join_as(1, &publisher);
    let writes =
        |node: &mut Node, topic: &str, qos| node.writes(1, publisher, publish(topic, "x", qos));
    assert!(!writes(&mut node, "brief", Q1));
    assert!(!writes(&mut node, "kept", Q0));
    assert!(!writes(&mut node, "low", Q1));
    assert!(writes(&mut node, "kept", Q1));
}

#[test]
fn publishers_hear_of_members_of_groups_whose_messages_wait() {
    let mut node = Node::planned(2, |plan| plan.settings.memory_bytes = 1 << 30);
    let away = node.subscriber(0, "away", "$share/g/t");
    node.cut(away);
    let publisher = node.join(1, "publisher");
    use_memory(&mut node, 82);
    publish_until_told(&mut node, publisher);
    // What is known already does not end with a message for others.
    node.shell.engine(1).core.memory.has_queued = true;
    let here = node.join(0, "here");
    node.subscribe(here, "$share/h/u", Q1);
    node.publish(publisher, "u", "x", Q1);
    node.publish(publisher, "u", "x", Q1);
    assert!(node.shell.engine(1).core.memory.has_queued);
}

#[test]
fn reading_ends_with_its_time_though_units_are_left() {
    let mut process = None;
    let mut node = Node::planned(1, |plan| process = Some(Arc::clone(&plan.process)));
    let process = process.expect("the plan has one");
    let now = node.shell.now;
    let turn = &mut node.shell.engine(0).core.turn;
    turn.begin(now);
    turn.begin_read_portion();
    turn.work += 256;
    assert!(!turn.is_portion_over() && !turn.is_reading_over());
    process.micros.fetch_add(6_000, Ordering::Relaxed);
    turn.work += 256;
    assert!(turn.is_portion_over() && turn.is_reading_over());
    turn.begin(now);
    assert!(!turn.is_reading_over());
    turn.limits_mut().reading_units = 10;
    turn.begin(now);
    turn.work += 10;
    assert!(turn.is_reading_over(), "by its units");
}

#[test]
fn a_filter_in_part_has_the_default_for_topics_without_a_rule() {
    for allows_by_default in [false, true] {
        let mut shared = Shared::default();
        let rules = "allow all sub a/1\ndeny all sub a/2";
        shared.access.policy.rules = Arc::new(Rules::parse(rules, "test").unwrap());
        shared.access.policy.allows_by_default = allows_by_default;
        let access = ClientAccess::new(Admission::default(), &shared);
        let grant = |filter| access.subscribe(filter, Q1, Time::default());
        let or_allowed = allows_by_default;
        assert_eq!(grant("a/+"), Grant::Checked { or_allowed });
        let others = if allows_by_default {
            Grant::Whole
        } else {
            Grant::Refused
        };
        assert_eq!(grant("b"), others);
    }
}

#[test]
fn the_numbers_of_the_storage_thread_are_known() {
    let mut node = Node::durable(1, |_| ());
    let metrics = |node: &mut Node| {
        let core = &node.shell.engine(0).core;
        let journal = core.durable.journal.as_deref().unwrap();
        format!("{:?}", journal.metrics())
    };
    let before = metrics(&mut node);
    let away = node.subscriber(0, "away", "t");
    node.cut(away);
    let publisher = node.join(0, "publisher");
    node.publish(publisher, "t", "x", Q1);
    assert_ne!(metrics(&mut node), before);
}

#[test]
fn the_node_retains_its_own_messages_and_removals_while_memory_is_full() {
    let mut node = Node::planned(1, |plan| plan.settings.memory_bytes = 1 << 30);
    let peer = node.join(0, "peer");
    use_memory(&mut node, 101);
    node.answers(peer);
    node.retain(peer, "t", "x");
    node.retain(peer, "t", "");
    let nobody = Answer::Puback(ReasonCode::NoMatchingSubscribers);
    assert_eq!(node.answers(peer), [REFUSED, nobody]);
    let mut retained = Publication::new("$SYS/x", b"x", Q1);
    retained.retain = true;
    let message = Arc::new(Message::new(&retained));
    let outcome = node.shell.engine(0).publish_order(&message);
    assert_eq!(outcome, Some(ReasonCode::NoMatchingSubscribers));
}

#[test]
fn no_place_on_the_disk_is_left_for_messages_that_have_arrived() {
    let disk = SimStorage::new(1);
    let mut node = Node::planned(2, |plan| plan.disk = Some(disk.clone()));
    let member = node.subscriber(1, "member", "$share/g/t");
    node.subscribe(member, "u", Q1);
    let publisher = node.join(0, "publisher");
    node.post(publisher, publish("t", "1", Q1));
    node.post(publisher, publish("u", "2", Q1));
    node.shell.turn(0);
    assert!(node.shell.commit());
    for _ in 0..2 {
        node = node.crash();
        node.settle();
    }
    let member = node.join(1, "member");
    assert_eq!(node.payloads(member).len(), 2);
    drop(node);
    let disk = disk.open().expect("nobody else has it");
    let options = thrum_storage::Options {
        segment_bytes: 16 * 1024,
        ..thrum_storage::Options::default()
    };
    let (_, recovered, _) = thrum_storage::Store::open(disk, options).expect("it opens");
    let sessions = recovered.sessions.iter().map(|one| &*one.client_id);
    let mut sessions: Vec<&str> = sessions.collect();
    sessions.sort_unstable();
    assert_eq!(sessions, ["member", "publisher"]);
}

#[test]
fn a_will_is_judged_by_the_rules_in_force_though_its_client_was_not_looked_at() {
    let shared = |rules: &str, generation: u64| {
        let mut shared = Shared::default();
        shared.access.policy.rules = Arc::new(Rules::parse(rules, "test").unwrap());
        shared.generation = generation;
        Arc::new(shared)
    };
    let mut node = Node::planned(1, |plan| {
        plan.settings.access = shared("allow all pubsub #", 1);
    });
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "wills", Q1);
    let mut gone = connect_with_will("gone");
    gone.properties.session_expiry = None;
    let first = node.join_as(0, &gone);
    node.cut(first);
    assert_eq!(node.payloads(receiver), ["gone"]);
    let second = node.join_as(0, &gone);
    let core = &mut node.shell.engine(0).core;
    let mut settings = core.settings.own_copy();
    settings.access = shared("deny all pub wills\nallow all pubsub #", 2);
    core.settings = Arc::new(settings);
    node.cut(second);
    assert_eq!(node.payloads(receiver), Vec::<String>::new());
    assert_eq!(node.count(Counter::WillsDenied), 1);
}

#[test]
fn a_publisher_that_leaves_is_known_until_its_connection_ends() {
    let mut node = Node::new(1);
    let publisher = node.join(0, "publisher");
    let connection = node.shell.connection(node.link(publisher)).unwrap();
    let holding = |node: &Node| node.shell.node.holding.load(Ordering::Relaxed);
    let engine = node.shell.engine(0);
    engine.held.release_leaving(&mut engine.core, connection);
    engine.held.release_leaving(&mut engine.core, connection);
    assert_eq!(holding(&node), 1, "once");
    let engine = node.shell.engine(0);
    engine.held.are_due(&mut engine.core);
    assert_eq!(holding(&node), 1);
    node.cut(publisher);
    let engine = node.shell.engine(0);
    engine.held.are_due(&mut engine.core);
    assert_eq!(holding(&node), 0);
}

#[test]
fn messages_of_a_member_that_leaves_are_taken_though_memory_is_full() {
    let mut node = Node::planned(1, |plan| {
        plan.settings.memory_bytes = 1 << 30;
        plan.limits().inflight_max = 1;
    });
    let leaves = node.subscriber(0, "leaves", "$share/g/t");
    let publisher = node.join(0, "publisher");
    for payload in ["1", "2", "3"] {
        node.publish(publisher, "t", payload, Q1);
    }
    let stays = node.subscriber(0, "stays", "u");
    node.publish(publisher, "u", "0", Q1);
    node.subscribe(stays, "$share/g/t", Q1);
    use_memory(&mut node, 101);
    node.cut(leaves);
    assert_eq!(node.count(Counter::DroppedMemoryShort), 0);
    assert_eq!(node.drain(stays), ["0", "1", "2", "3"]);
}

#[test]
fn a_message_with_qos_0_takes_no_place_from_one_with_qos_1() {
    let mut node = Node::planned(2, |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 1;
    });
    let member = node.subscriber(0, "member", "$share/g/t");
    let publisher = node.join(1, "publisher");
    node.publish(publisher, "t", "1", Q1);
    node.answers(publisher);
    node.post(publisher, publish("t", "0", Q0));
    node.post(publisher, publish("t", "2", Q1));
    node.post(publisher, publish("t", "3", Q1));
    node.settle();
    assert_eq!(node.answers(publisher), [TAKEN, REFUSED]);
    assert_eq!(node.drain(member), ["1", "0", "2"]);
}

#[test]
fn a_full_queue_that_its_publishers_know_of_takes_nothing_beyond_its_limit() {
    let mut node = Node::planned(2, |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 300;
    });
    let far = node.subscriber(0, "far", "t");
    let near = node.join(1, "near");
    node.subscribe(near, "t", Q1);
    let publisher = node.join(1, "publisher");
    node.answers(publisher);
    for _ in 0..303 {
        node.publish(publisher, "t", "x", Q1);
    }
    assert_eq!(node.answers(publisher), vec![TAKEN; 303]);
    assert_eq!(node.messages(near).len(), 303);
    assert_eq!(node.count(Counter::DroppedQueueFull), 2);
    assert_eq!(node.drain(far).len(), 301);
}

#[test]
fn output_that_waits_for_the_disk_is_congested_above_its_limit() {
    let mut node = Node::durable(1, |plan| plan.settings.output_bytes = 8);
    let old = node.join_old(0, "old");
    for (posts, expected) in [(2, 0), (1, 1)] {
        // Each PUBREC has four bytes.
        for _ in 0..posts {
            node.post(old, publish("t", "x", Q2));
        }
        node.shell.turn(0);
        assert_eq!(node.count(Counter::LimitOutput), expected);
    }
}
