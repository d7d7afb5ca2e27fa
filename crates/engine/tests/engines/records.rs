//! Records of an engine about its clients beside their sessions, and its events and log lines.

use std::sync::Arc;
use std::time::Duration;

use thrum_codec::properties::PublishProperties;
use thrum_codec::{QoS, ReasonCode, TopicFilter, Version};
use thrum_engine::node::metrics::Counter;
use thrum_engine::node::session_counts::{Full, SessionLimits};
use thrum_engine::sinks::QueueLimits;
use thrum_engine::subscription_cost::subscription_bytes;
use thrum_engine::timers::Target;
use thrum_protocol::limits::QueuePolicy;
use thrum_protocol::{Message, Publication};

use crate::node::{Node, connect, publish};
use crate::shell::SinkPlan;

const Q0: QoS = QoS::AtMostOnce;
const Q1: QoS = QoS::AtLeastOnce;

#[test]
fn subscriptions_are_counted_with_their_memory_until_they_end() {
    let mut node = Node::new(1);
    let peer = node.join(0, "peer");
    let slot = node.shell.find("peer").unwrap().1;
    let counted = |node: &mut Node| {
        let client = &node.shell.engine(0).core.sessions[slot];
        (client.subscription_count(), client.subscription_bytes)
    };
    let bytes = |filter: &str| subscription_bytes(TopicFilter::parse(filter).unwrap());
    assert_eq!(counted(&mut node), (0, 0));
    node.subscribe(peer, "t", Q1);
    node.subscribe(peer, "t", Q0);
    node.subscribe(peer, "$share/g/t", Q1);
    assert_eq!(counted(&mut node), (2, bytes("t") + bytes("$share/g/t")));
    let engine = node.shell.engine(0);
    let standing = engine.router.topics.list_subscriptions(&engine.core, slot);
    let mut known: Vec<(&str, QoS)> = standing
        .iter()
        .map(|one| (&*one.filter, one.terms.options.qos))
        .collect();
    known.sort_unstable();
    assert_eq!(known, [("$share/g/t", Q1), ("t", Q0)]);
    node.unsubscribe(peer, &["$share/g/t"]);
    assert_eq!(counted(&mut node), (1, bytes("t")));
    node.unsubscribe(peer, &["t"]);
    assert_eq!(counted(&mut node), (0, 0));
    let client = &node.shell.engine(0).core.sessions[slot];
    assert!(client.rare.is_none() && client.groups().is_empty());
}

#[test]
fn a_user_has_as_many_sessions_as_the_limit_says() {
    let limits = SessionLimits {
        node: 100,
        user: 2,
        address: 0,
    };
    let mut node = Node::planned(1, |plan| plan.settings.sessions = limits);
    let counts = |node: &Node| {
        let counts = &node.shell.node.session_counts;
        let holder = counts.holder(Some("user"), None, &limits);
        matches!(counts.full(holder, &limits), Some(Full::User))
    };
    let mut named = connect("one");
    named.username = Some("user");
    let one = node.join_as(0, &named);
    assert!(!counts(&node));
    named.client_id = "two";
    node.join_as(0, &named);
    assert!(counts(&node));
    node.cut(one);
    assert!(counts(&node), "it outlives its connection");
    named.client_id = "one";
    named.properties.session_expiry = None;
    let one = node.join_as(0, &named);
    assert!(!counts(&node));
    named.properties.session_expiry = Some(10);
    node.cut(one);
    let one = node.join_as(0, &named);
    assert!(counts(&node));
    node.cut(one);
    node.advance_time(Duration::from_secs(11));
    assert!(!counts(&node));
}

#[test]
fn drops_are_counted_by_client_and_the_first_of_a_series_is_logged() {
    let mut node = Node::planned(1, |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 1;
        plan.limits().queue.policy = QueuePolicy::RejectNew;
    });
    let receiver = node.subscriber(0, "receiver", "t");
    let publisher = node.join(0, "publisher");
    let slot = node.shell.find("receiver").unwrap().1;
    let seen = |node: &mut Node| {
        let client = &node.shell.engine(0).core.sessions[slot];
        let counts: Vec<u64> = client.dropped().map(|(_, count)| count).collect();
        let rare = client.rare.as_deref();
        (counts, rare.is_some_and(|rare| rare.drops_logged))
    };
    for _ in 0..2 {
        node.publish(publisher, "t", "x", Q1);
    }
    assert_eq!(seen(&mut node), (vec![], false));
    for _ in 0..2 {
        node.publish(publisher, "t", "x", Q1);
    }
    assert_eq!(seen(&mut node), (vec![2], true));
    node.drain(receiver);
    assert_eq!(seen(&mut node), (vec![2], false), "it took some");
    node.cut(receiver);
    node.publish(publisher, "t", "x", Q0);
    assert_eq!(seen(&mut node), (vec![2], false));
    assert_eq!(node.count(Counter::DroppedOffline), 1);
}

#[test]
fn a_timer_of_a_session_is_armed_for_the_moment_that_is_asked_for() {
    let mut node = Node::new(1);
    node.join(0, "peer");
    let slot = node.shell.find("peer").unwrap().1;
    let now = node.shell.now;
    let core = &mut node.shell.engine(0).core;
    assert_eq!(core.timers.len(), 0);
    core.arm_at(slot, now.plus(Duration::from_secs(1)));
    assert_eq!(core.sessions[slot].armed, now.plus(Duration::from_secs(1)));
    let mut fired = Vec::new();
    core.timers
        .advance(now.plus(Duration::from_secs(2)), &mut fired);
    assert!(matches!(fired[..], [Target::Session(_)]));
    let Target::Session(timed) = fired[0] else {
        unreachable!("it is one");
    };
    assert_eq!(core.sessions.slot_of(timed), Some(slot));
}

#[test]
fn an_order_of_the_operator_is_answered() {
    let mut node = Node::planned(1, |plan| plan.settings.retained.message_count = 1);
    let order = |node: &mut Node, topic: &str, retain| {
        let message = Message::new(&Publication {
            retain,
            ..Publication::new(topic, b"x", Q1)
        });
        let answer = node.shell.engine(0).publish_order(&Arc::new(message));
        node.settle();
        answer
    };
    let no_subscribers = Some(ReasonCode::NoMatchingSubscribers);
    assert_eq!(order(&mut node, "t", false), no_subscribers);
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "#", Q1);
    assert_eq!(order(&mut node, "t", true), Some(ReasonCode::Success));
    assert_eq!(order(&mut node, "u", true), None);
    assert_eq!(order(&mut node, "u", false), Some(ReasonCode::Success));
    assert_eq!(node.messages(receiver).len(), 2);
    let late = node.join(0, "late");
    node.subscribe(late, "#", Q1);
    assert_eq!(node.messages(late).len(), 1);
}

#[test]
fn a_removed_retained_message_is_not_restored_after_a_crash() {
    let mut node = Node::durable(2, |plan| plan.settings.retained.payload_bytes = 5);
    let mut old = connect("old");
    old.version = Version::V311;
    old.properties.session_expiry = None;
    let old = node.join_as(0, &old);
    for topic in ["kept", "forgotten"] {
        node.retain(old, topic, "short");
    }
    node.retain(old, "forgotten", "too long");
    let publisher = node.join(1, "publisher");
    let properties = PublishProperties {
        message_expiry: Some(10),
        ..PublishProperties::default()
    };
    let mut expiring = publish("expires", "x", Q1);
    (expiring.retain, expiring.properties) = (true, properties);
    node.post(publisher, expiring);
    node.settle();
    assert_eq!(node.shell.node.retained.size().0, 2);
    node.advance_time(Duration::from_secs(11));
    let before = node.shell.node.interest.generation();
    for worker in 0..2 {
        let core = &mut node.shell.engine(worker).core;
        core.durable
            .sweep_retained(&core.node.retained, core.turn.now);
    }
    assert_eq!(node.shell.node.interest.generation(), before);
    node.settle();
    let mut node = node.crash();
    assert_eq!(node.shell.node.retained.size().0, 1);
    let late = node.join(0, "late");
    node.subscribe(late, "#", Q1);
    assert!(node.shell.node.interest.generation() > 0);
    assert_eq!(node.payloads(late), ["short"]);
}

#[test]
fn a_removed_sink_receives_no_more_messages() {
    let mut node = Node::planned(2, |plan| {
        plan.sinks.push(SinkPlan {
            name: "sink",
            filter: "$events/message/dropped",
            limits: QueueLimits::default(),
        });
    });
    let publisher = node.join(1, "publisher");
    node.publish(publisher, "nobody", "x", Q1);
    let sink = Arc::clone(node.shell.node.sinks.find("sink").unwrap());
    assert_eq!(sink.queue.counts().offered, 1, "the event of it");
    let interest = &node.shell.node.interest;
    interest.remove_sink("$events/message/dropped", sink.id);
    node.publish(publisher, "nobody", "x", Q1);
    assert_eq!(sink.queue.counts().offered, 1);
    assert!(!node.shell.engine(1).core.events.are_waiting());
    assert_eq!(node.shell.node.interest.len(), 0);
}

#[test]
fn messages_found_for_a_sink_without_configuration_wait_for_it() {
    let mut node = Node::planned(1, |plan| {
        plan.sinks.push(SinkPlan {
            name: "first",
            filter: "t",
            limits: QueueLimits::default(),
        });
    });
    let publisher = node.join(0, "publisher");
    node.publish(publisher, "t", "x", Q1);
    let sinks = &node.shell.node.sinks;
    let first = sinks.find("first").unwrap();
    let offers = first.queue.take(5, 1 << 20, Duration::ZERO).unwrap();
    sinks.add_recovered("first".into(), offers.clone());
    assert_eq!(first.queue.counts().waiting, 2);
    sinks.add_recovered("later".into(), offers);
    let later = sinks.open("later", QueueLimits::default()).unwrap();
    assert_eq!(later.queue.counts().waiting, 0);
    sinks.enqueue_kept(later);
    sinks.enqueue_kept(later);
    assert_eq!(later.queue.counts().waiting, 1);
}
