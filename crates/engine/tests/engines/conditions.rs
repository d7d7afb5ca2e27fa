//! Conditions of two facts, each of which alone decides otherwise.

use std::sync::Arc;
use std::time::Duration;

use thrum_access::{Admission, Identity};
use thrum_codec::packet::{Publish, SubscriptionOptions};
use thrum_codec::{QoS, ReasonCode, Version};
use thrum_engine::access::{ClientAccess, Shared};
use thrum_engine::ids::ConnectionKey;
use thrum_engine::node::metrics::Counter;
use thrum_engine::outputs::Outputs;
use thrum_engine::queue_room::Shortage;
use thrum_engine::retained::{
    RetainedLimits, RetainedSource, RetainedStore, ReviewStep, SourceReview,
};
use thrum_engine::sinks::{QueueLimits, SinkSet, WhenFull};
use thrum_engine::workers::{WorkerId, WorkerSet};
use thrum_protocol::limits::QueuePolicy;
use thrum_protocol::server::refuse;
use thrum_protocol::{Message, Publication, Time, Violation};

use crate::node::{Answer, Node, connect, publish, publish_expiring};
use crate::shell::{Plan, SinkPlan};

const Q0: QoS = QoS::AtMostOnce;
const Q1: QoS = QoS::AtLeastOnce;
const Q2: QoS = QoS::ExactlyOnce;
const TAKEN: Answer = Answer::Puback(ReasonCode::Success);
const REFUSED: Answer = Answer::Puback(ReasonCode::QuotaExceeded);

fn short(policy: QueuePolicy) -> impl FnOnce(&mut Plan) {
    move |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 2;
        plan.limits().queue.policy = policy;
        plan.settings.queue_hold = Duration::from_mins(5);
    }
}

/// The CONNECT of a client whose session ends with its connection.
fn brief(client_id: &str) -> thrum_codec::packet::Connect<'_> {
    let mut connect = connect(client_id);
    connect.properties.session_expiry = None;
    connect
}

fn sink(plan: &mut Plan, filter: &'static str, when_full: WhenFull) {
    plan.sinks.push(SinkPlan {
        name: filter,
        filter,
        limits: QueueLimits {
            messages: 1,
            when_full,
            ..QueueLimits::default()
        },
    });
}

#[test]
fn a_sink_refuses_only_messages_of_its_topics_and_writes_only_if_it_is_durable() {
    let mut node = Node::durable(1, |plan| {
        sink(plan, "t", WhenFull::Refuse);
        sink(plan, "u", WhenFull::Refuse);
    });
    let publisher = node.join_as(0, &brief("publisher"));
    node.answers(publisher);
    node.post(publisher, publish("t", "x", Q1));
    node.shell.read_inputs(0);
    assert!(!node.shell.engine(0).core.durable.has_changes());
    node.settle();
    node.publish(publisher, "t", "x", Q1);
    node.publish(publisher, "u", "x", Q1);
    node.publish(publisher, "u", "x", Q1);
    assert_eq!(node.answers(publisher), [TAKEN, REFUSED, TAKEN, REFUSED]);
    let engine = node.shell.engine(0);
    assert!(engine.is_refused_by_sinks("t") && !engine.is_refused_by_sinks("v"));
}

#[test]
fn sets_of_sinks_join() {
    let node = Node::planned(1, |plan| {
        sink(plan, "a", WhenFull::Drop);
        sink(plan, "b", WhenFull::Drop);
    });
    let ids = ["a", "b"].map(|name| node.shell.node.sinks.find(name).unwrap().id);
    let [a, b] = ids.map(|id| SinkSet::from_iter([id]));
    assert_eq!(a.joined(b), SinkSet::from_iter(ids));
    assert_eq!(a.joined(a), a);
    let set = WorkerSet::of(WorkerId::new(3));
    assert!(set.contains(WorkerId::new(3)) && !set.contains(WorkerId::new(4)));
}

#[test]
fn messages_that_nothing_durable_receives_are_not_written() {
    let mut node = Node::durable(2, |_| ());
    let receiver = node.join_as(0, &brief("receiver"));
    node.subscribe(receiver, "brief", Q1);
    node.subscriber(0, "kept", "kept");
    let publisher = node.join_as(1, &brief("publisher"));
    let writes =
        |node: &mut Node, topic: &str, qos| node.writes(1, publisher, publish(topic, "x", qos));
    assert!(!writes(&mut node, "brief", Q1));
    assert!(!writes(&mut node, "brief", Q0));
    assert!(!writes(&mut node, "kept", Q0));
    assert!(writes(&mut node, "kept", Q1));
    assert!(!writes(&mut node, "brief", Q2));
}

#[test]
fn the_answer_about_a_retained_message_waits_for_the_disk() {
    let mut node = Node::durable(1, |_| ());
    let peer = node.join_as(0, &brief("peer"));
    node.answers(peer);
    node.post(
        peer,
        Publish {
            retain: true,
            ..publish("t", "x", Q1)
        },
    );
    node.shell.turn(0);
    assert_eq!(node.read(peer), []);
    assert!(node.shell.commit());
    node.shell.turn(0);
    let nobody = Answer::Puback(ReasonCode::NoMatchingSubscribers);
    assert_eq!(node.read(peer), [nobody]);
    let journal = node
        .shell
        .engine(0)
        .core
        .durable
        .journal
        .as_deref()
        .unwrap();
    assert_eq!(journal.submitted(), journal.durable());
    assert!(journal.submitted() > 0 && journal.mark() > 0);
    assert_eq!(journal.failure(), None);
}

#[test]
fn output_that_depends_on_changes_is_written_once_they_are_submitted() {
    let mut outputs = Outputs::default();
    let key: ConnectionKey = outputs.open().key;
    let write = |outputs: &mut Outputs| {
        let violation = Violation::new(ReasonCode::NotAuthorized, "");
        refuse(Version::V311, &violation, outputs.buffer(Some(key)));
        outputs.wrote(key);
    };
    write(&mut outputs);
    assert_eq!(outputs.take_listed(), [key]);
    assert!(outputs.take_turn(key) && !outputs.take_turn(key), "once");
    write(&mut outputs);
    outputs.depend(key);
    assert!(outputs.are_depending() && outputs[key].depends());
    assert_eq!(outputs.take_listed(), [key]);
    assert!(!outputs.take_turn(key), "it depends on changes");
    assert!(outputs.settle(None).is_empty());
    assert!(!outputs.are_depending() && !outputs[key].depends());
    assert_eq!(outputs.take_listed(), [key]);
    assert!(outputs.take_turn(key));
    assert_eq!(outputs[key].waiting(), 8);
    outputs.depend(key);
    let held = outputs.settle(Some(7));
    assert_eq!(held.len(), 1);
    write(&mut outputs);
    assert_eq!(outputs[key].waiting(), 12);
    outputs.release(held[0], 6);
    assert!(outputs[key].sendable().unwrap().is_empty());
    outputs.release(held[0], 7);
    assert_eq!(outputs[key].sendable().unwrap().len(), 12);
}

#[test]
fn messages_that_were_sent_before_a_queue_became_nearly_full_are_taken_beyond_its_limit() {
    let mut node = Node::planned(2, |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 300;
    });
    let receiver = node.subscriber(0, "receiver", "t");
    let publisher = node.join(1, "publisher");
    node.answers(publisher);
    for _ in 0..100 {
        node.post(publisher, publish("t", "x", Q1));
    }
    node.shell.turn(1);
    for _ in 0..300 {
        node.post(publisher, publish("t", "x", Q1));
    }
    node.shell.read_inputs(1);
    // Now the queue is announced, and the other messages are under way.
    node.shell.read_inputs(0);
    node.settle();
    assert_eq!(node.answers(publisher), vec![TAKEN; 400]);
    node.publish(publisher, "t", "no", Q1);
    assert_eq!(node.answers(publisher), [REFUSED]);
    assert_eq!(node.drain(receiver).len(), 400);
}

#[test]
fn expired_messages_of_a_full_queue_make_room_for_publishers_that_wait() {
    let mut node = Node::planned(2, short(QueuePolicy::Hold));
    let receiver = node.subscriber(0, "receiver", "t");
    let publisher = node.join(1, "publisher");
    for payload in ["1", "2", "3"] {
        node.post(publisher, publish_expiring("t", payload, 4));
    }
    node.settle();
    node.publish(publisher, "t", "waits", Q1);
    assert!(node.is_held(publisher));
    node.advance_time(Duration::from_secs(2));
    assert!(node.is_held(publisher));
    node.advance_time(Duration::from_secs(4));
    assert!(!node.is_held(publisher), "the queue is looked at again");
    assert_eq!(node.drain(receiver), ["1", "waits"]);
    assert_eq!(node.count(Counter::DroppedExpired), 2);
}

#[test]
fn all_replays_of_a_subscribe_survive_a_crash() {
    let mut node = Node::durable(1, |plan| {
        plan.limits().inflight_max = 2;
        plan.limits().queue.messages_max = 4;
    });
    let publisher = node.join(0, "publisher");
    for filter in ["a", "b", "c"] {
        for number in 0..10 {
            node.retain(publisher, &format!("{filter}/{number}"), "x");
        }
    }
    let receiver = node.join(0, "receiver");
    node.set_acknowledges(receiver, false);
    let options = SubscriptionOptions {
        qos: Q1,
        ..SubscriptionOptions::default()
    };
    node.subscribe_with(receiver, &["a/#", "b/+", "c/#"], options, Some(5));
    let mut node = node.crash();
    let receiver = node.join(0, "receiver");
    let messages = node.messages(receiver);
    let mut topics: Vec<&str> = messages.iter().map(|one| one.topic.as_str()).collect();
    topics.sort_unstable();
    topics.dedup();
    assert_eq!(topics.len(), 30);
    assert!(messages.iter().all(|one| one.identifiers == [5]));
}

#[test]
fn members_of_a_group_have_their_identifiers_after_a_crash() {
    let mut node = Node::durable(1, |_| ());
    for (client_id, identifier) in [("one", Some(9)), ("two", None)] {
        let peer = node.join(0, client_id);
        let options = SubscriptionOptions {
            qos: Q1,
            ..SubscriptionOptions::default()
        };
        node.subscribe_with(peer, &["$share/g/t"], options, identifier);
    }
    let mut node = node.crash();
    let peers = ["one", "two"].map(|client_id| node.join(0, client_id));
    let publisher = node.join(0, "publisher");
    for _ in 0..4 {
        node.publish(publisher, "t", "x", Q1);
    }
    let identifiers = peers.map(|peer| {
        let messages = node.messages(peer);
        assert_eq!(messages.len(), 2);
        messages[0].identifiers.clone()
    });
    assert_eq!(identifiers, [vec![9], vec![]]);
}

#[test]
fn a_message_on_its_way_to_a_group_that_is_gone_is_counted_and_forgotten() {
    let mut node = Node::durable(2, |_| ());
    let mut member = connect("member");
    member.properties.session_expiry = Some(5);
    let member = node.join_as(1, &member);
    node.subscribe(member, "$share/g/t", Q1);
    node.cut(member);
    let publisher = node.join(0, "publisher");
    node.post(publisher, publish("t", "x", Q1));
    node.shell.turn(0);
    assert!(node.shell.commit());
    node.shell.advance_time(Duration::from_secs(6));
    let mut node = node.crash();
    node.settle();
    assert_eq!(node.count(Counter::DroppedNoSharedMember), 1);
    let mut node = node.crash();
    node.settle();
    assert_eq!(node.count(Counter::DroppedNoSharedMember), 0);
}

#[test]
fn a_retained_message_of_the_same_size_replaces_the_other_one_while_memory_is_full() {
    let mut node = Node::planned(1, |plan| plan.settings.memory_bytes = 1 << 30);
    let peer = node.join(0, "peer");
    node.retain(peer, "t", "12345");
    node.shell.set_resident((1 << 30) / 100 * 101);
    node.advance_time(Duration::from_millis(20));
    node.answers(peer);
    node.retain(peer, "t", "abcde");
    node.retain(peer, "t", "abcdef");
    let nobody = Answer::Puback(ReasonCode::NoMatchingSubscribers);
    assert_eq!(node.answers(peer), [nobody, REFUSED]);
}

fn no_limits() -> RetainedStore {
    let limits = RetainedLimits {
        message_count: usize::MAX,
        bytes: usize::MAX,
        payload_bytes: usize::MAX,
    };
    RetainedStore::new(limits, 1)
}

fn message(topic: &str, payload: &[u8]) -> Arc<Message> {
    Arc::new(Message::new(&Publication::new(topic, payload, Q1)))
}

#[test]
fn the_size_of_a_store_follows_each_message_that_is_replaced() {
    let store = no_limits();
    let put = |payload: &[u8]| {
        let before = store.size().1;
        assert!(
            store
                .store(&message("t", payload), None, Time::default())
                .kept
        );
        store.size().1.cast_signed() - before.cast_signed()
    };
    assert!(put(b"12345") > 5);
    assert_eq!(put(b"1234567"), 2);
    assert_eq!(put(b"1234"), -3);
    assert_eq!(put(b"abcd"), 0);
    assert!(store.remove("t").is_some());
    assert_eq!(store.size(), (0, 0));
    assert_eq!(store.reviews_requested(), 0);
    store.request_review();
    store.request_review();
    assert_eq!(store.reviews_requested(), 2);
}

#[test]
fn a_message_that_is_replaced_during_a_review_is_not_judged_by_it() {
    let source = || {
        let identity = Identity {
            client_id: "evil".into(),
            ..Identity::default()
        };
        RetainedSource::new(&identity, None, false).unwrap()
    };
    let rules = thrum_access::Rules::parse("deny client:evil pub #", "test").unwrap();
    let mut shared = Shared::default();
    shared.access.policy.rules = Arc::new(rules);
    shared.access.policy.checks_retained_source = true;
    for (same_source, is_withheld) in [(true, 0), (false, 0)] {
        let store = no_limits();
        let first = source();
        let old = message("t", b"old");
        assert!(
            store
                .store(&old, Some(Arc::clone(&first)), Time::default())
                .kept
        );
        let mut review = SourceReview::new();
        let ask = |_, _| unreachable!("there is no gatekeeper");
        assert_eq!(review.step(&store, &shared, ask), ReviewStep::Worked(256));
        // The same source with another message, or the same message with another source.
        let (kept, by) = if same_source {
            (message("t", b"new"), first)
        } else {
            (old, source())
        };
        assert!(store.store(&kept, Some(by), Time::default()).kept);
        while review.step(&store, &shared, |_, _| ()) != ReviewStep::Done {}
        assert_eq!(store.withheld(), is_withheld, "{same_source}");
        let mut again = SourceReview::new();
        while again.step(&store, &shared, |_, _| ()) != ReviewStep::Done {}
        assert_eq!(store.withheld(), 1, "the next review judges it");
    }
}

#[test]
fn a_session_without_memory_gets_nothing_while_another_one_of_its_worker_has_memory() {
    let mut node = Node::planned(2, |plan| plan.settings.memory_bytes = 1 << 30);
    let away = node.subscriber(0, "away", "t");
    node.cut(away);
    let here = node.join(0, "here");
    node.subscribe(here, "t", Q1);
    let publisher = node.join(1, "publisher");
    node.answers(publisher);
    node.shell.set_resident((1 << 30) / 100 * 101);
    node.advance_time(Duration::from_millis(20));
    node.publish(publisher, "t", "x", Q1);
    assert_eq!(node.answers(publisher), [TAKEN]);
    assert_eq!(node.payloads(here), ["x"]);
    assert_eq!(node.count(Counter::DroppedMemoryShort), 1);
    node.shell.set_resident(0);
    node.advance_time(Duration::from_millis(20));
    let away = node.join(0, "away");
    assert_eq!(node.payloads(away), Vec::<String>::new());
}

#[test]
fn a_message_that_another_receiver_took_is_dropped_where_memory_is_short() {
    let mut node = Node::planned(2, |plan| {
        plan.settings.memory_bytes = 1 << 30;
        plan.limits().inflight_max = 1;
    });
    let far = node.subscriber(0, "far", "t");
    let near = node.join(1, "near");
    node.subscribe(near, "t", Q1);
    let publisher = node.join(1, "publisher");
    node.publish(publisher, "t", "1", Q1);
    node.answers(publisher);
    node.post(publisher, publish("t", "2", Q1));
    node.shell.turn(1);
    node.shell.set_resident(2 << 30);
    node.shell.engine(1).core.read_memory();
    node.settle();
    assert_eq!(node.answers(publisher), [TAKEN]);
    assert_eq!(node.count(Counter::DroppedMemoryShort), 1);
    assert_eq!(node.payloads(near), ["1", "2"]);
    assert_eq!(node.drain(far), ["1"]);
}

#[test]
fn the_retain_flag_comes_if_one_of_several_filters_keeps_it() {
    let mut node = Node::new(1);
    for filters in [["t", "t/#"], ["t/#", "t"]] {
        let receiver = node.join(0, filters[0]);
        for (filter, retain_as_published) in filters.into_iter().zip([true, false]) {
            let options = SubscriptionOptions {
                qos: Q1,
                retain_as_published,
                ..SubscriptionOptions::default()
            };
            node.subscribe_with(receiver, &[filter], options, None);
        }
        let publisher = node.join(0, "publisher");
        node.messages(receiver);
        node.retain(publisher, "t", "x");
        let messages = node.messages(receiver);
        assert_eq!(messages.len(), 1);
        assert!(messages[0].retain, "{filters:?}");
    }
}

#[test]
fn messages_of_a_member_that_leaves_go_to_one_with_room_and_else_beyond_a_limit() {
    for others in [1, 2] {
        let mut node = Node::planned(1, short(QueuePolicy::RejectNew));
        let leaves = node.subscriber(0, "leaves", "$share/g/t");
        let publisher = node.join(0, "publisher");
        for payload in ["1", "2", "3"] {
            node.publish(publisher, "t", payload, Q1);
        }
        let full = node.subscriber(0, "full", "$share/g/t");
        for payload in ["4", "5", "6"] {
            node.publish(publisher, "t", payload, Q1);
        }
        let has_room = node.join(0, "has room");
        if others == 2 {
            node.subscribe(has_room, "$share/g/t", Q1);
            node.set_acknowledges(has_room, false);
        }
        node.cut(leaves);
        let came = [node.drain(full).len(), node.drain(has_room).len()];
        let expected = if others == 2 { [3, 3] } else { [6, 0] };
        assert_eq!(came, expected);
        assert_eq!(node.count(Counter::DroppedNoSharedMember), 0);
    }
}

#[test]
fn a_client_that_comes_back_after_a_crash_has_its_owner_from_its_access() {
    let mut shared = Shared::default();
    let rules = thrum_access::Rules::parse("allow all pubsub #", "test").unwrap();
    shared.access.policy.rules = Arc::new(rules);
    let mut node = Node::durable(1, |plan| plan.settings.access = Arc::new(shared));
    let mut named = connect("named");
    named.username = Some("user");
    node.join_as(0, &named);
    let mut node = node.crash();
    let slot = node.shell.find("named").unwrap().1;
    assert!(node.shell.engine(0).core.sessions[slot].rare.is_some());
    node.join_as(0, &named);
    let client = &node.shell.engine(0).core.sessions[slot];
    assert!(client.rare.is_none(), "the restored owner is forgotten");
    assert_eq!(client.owner().user(), Some("user"));
}

#[test]
fn the_source_of_retained_messages_is_kept_until_the_client_is_another_one() {
    let shared = Shared::default();
    let admission = |client_id: &str, has_rules: bool| Admission {
        identity: Identity {
            client_id: client_id.into(),
            ..Identity::default()
        },
        rules: has_rules.then(Arc::default),
        ..Admission::default()
    };
    let mut access = ClientAccess::new(admission("a", false), &shared);
    let mut last = access.source().unwrap();
    let mut is_kept = |client_id: &str, has_rules: bool| {
        access.renew(admission(client_id, has_rules), &shared);
        let now = access.source().unwrap();
        Arc::ptr_eq(&now, &std::mem::replace(&mut last, now.clone()))
    };
    assert!(is_kept("a", false));
    assert!(!is_kept("b", false), "another identity");
    assert!(is_kept("b", false));
    assert!(!is_kept("b", true), "rules of its own");
    assert!(is_kept("b", true));
}

#[test]
fn a_promise_beyond_the_limits_counts_the_bytes_of_its_message() {
    let mut node = Node::planned(1, |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.bytes_max = 1_000;
    });
    node.subscriber(0, "member", "$share/g/t");
    let slot = node.shell.find("member").unwrap().1;
    let client = &node.shell.engine(0).core.sessions[slot];
    let room = client.room().map(Arc::clone).unwrap();
    let first = room.promise(100);
    assert!(room.has_room(388) && !room.has_room(389));
    room.wait((WorkerId::new(2), Shortage::Session(1)));
    let second = room.promise(10_000);
    assert!(!room.has_room(0));
    assert!(first.end().is_none(), "there is no room yet");
    assert!(second.end().is_some());
    assert!(room.has_room(744) && room.has_room(10_000));
}
