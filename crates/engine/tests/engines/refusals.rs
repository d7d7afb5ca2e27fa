//! Messages that are refused to their publisher are counted by reason, client and topic, and apart
//! from those that a client did not get.

use thrum_codec::QoS;
use thrum_engine::node::metrics::Counter;
use thrum_engine::refusals::PublishRefusal;
use thrum_engine::sinks::{QueueLimits, WhenFull};
use thrum_protection::MemoryLevel;
use thrum_protocol::limits::QueuePolicy;

use crate::memory::use_memory;
use crate::node::Node;
use crate::rights::shared;
use crate::shell::{Plan, SinkPlan};

const Q0: QoS = QoS::AtMostOnce;
const Q1: QoS = QoS::AtLeastOnce;

/// Reason, publisher, topic and number of the refused messages of a worker, in order, and whether
/// the publisher was told.
fn refused(node: &mut Node, worker: usize) -> Vec<String> {
    let refused = node.shell.engine(worker).core.undelivered.refused.iter();
    let mut lines: Vec<_> = refused
        .map(|entry| {
            let key = &entry.key;
            let topic = key.topic.as_deref().unwrap_or("-");
            let told = if key.reason.is_told { "told" } else { "untold" };
            let reason = key.reason.reason.name();
            format!("{reason} {} {topic} {} {told}", key.client, entry.count)
        })
        .collect();
    lines.sort();
    lines
}

/// The counters of the node that are not 0.
fn counters(node: &Node) -> Vec<(&'static str, u64)> {
    let counts = PublishRefusal::ALL.map(|reason| (reason.name(), node.count(reason.counter())));
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// What the session of a client has counted.
fn of_client(node: &mut Node, client_id: &str) -> Vec<(&'static str, u64)> {
    let (worker, slot) = node.shell.find(client_id).expect("it is there");
    let client = &node.shell.engine(worker).core.sessions[slot];
    let refused = client.refused();
    refused
        .map(|(reason, count)| (reason.name(), count))
        .collect()
}

fn one_place(plan: &mut Plan) {
    plan.limits().inflight_max = 1;
    plan.limits().queue.messages_max = 1;
    plan.limits().queue.policy = QueuePolicy::RejectNew;
}

fn full_sink(plan: &mut Plan) {
    plan.sinks.push(SinkPlan {
        name: "sink",
        filter: "t/#",
        limits: QueueLimits {
            messages: 1,
            when_full: WhenFull::Refuse,
            ..QueueLimits::default()
        },
    });
}

#[test]
fn a_message_that_no_receiver_has_room_for_is_refused_and_its_publisher_may_know_it() {
    for workers in [1, 2] {
        let mut node = Node::planned(workers, one_place);
        node.subscriber(0, "receiver", "t");
        let new = node.join(workers - 1, "new");
        let old = node.join_old(workers - 1, "old");
        for payload in ["1", "2"] {
            node.publish(new, "t", payload, Q1);
        }
        assert!(counters(&node).is_empty(), "both were taken");
        assert!(refused(&mut node, workers - 1).is_empty());
        for payload in ["3", "4"] {
            node.publish(new, "t", payload, Q1);
        }
        node.publish(old, "t", "5", Q1);
        assert_eq!(counters(&node), [("queues_full", 3)], "{workers} workers");
        assert_eq!(node.count(Counter::RefusedUntold), 1);
        assert_eq!(
            refused(&mut node, workers - 1),
            ["queues_full new t 2 told", "queues_full old t 1 untold"]
        );
        assert_eq!(of_client(&mut node, "new"), [("queues_full", 2)]);
        assert_eq!(of_client(&mut node, "old"), [("queues_full", 1)]);
        assert_eq!(of_client(&mut node, "receiver"), []);
    }
}

#[test]
fn a_message_that_one_of_two_receivers_takes_is_dropped_for_the_other_and_not_refused() {
    let mut node = Node::planned(1, one_place);
    node.subscriber(0, "full", "t");
    let publisher = node.join(0, "publisher");
    for payload in ["1", "2"] {
        node.publish(publisher, "t", payload, Q1);
    }
    node.subscriber(0, "other", "t");
    node.publish(publisher, "t", "3", Q1);
    node.publish(publisher, "nobody", "4", Q1);
    assert_eq!(node.count(Counter::DroppedQueueFull), 1);
    assert!(counters(&node).is_empty());
    assert!(refused(&mut node, 0).is_empty());
}

#[test]
fn what_the_limits_refuse_has_its_reason() {
    let mut node = Node::planned(1, |plan| {
        plan.limits().payload_bytes_max = 3;
        plan.settings.retained.message_count = 1;
    });
    let publisher = node.join(0, "p");
    node.publish(publisher, "t", "big!", Q1);
    node.publish(publisher, "t", "big!", Q0);
    node.publish(publisher, "$SYS/x", "1", Q1);
    node.retain(publisher, "one", "1");
    node.retain(publisher, "two", "2");
    node.settle();
    assert_eq!(
        refused(&mut node, 0),
        [
            "payload_too_large p t 1 told",
            "payload_too_large p t 1 untold",
            "reserved_topic p $SYS/x 1 told",
            "retained_limit p two 1 told",
        ]
    );
    let expected = [
        ("reserved_topic", 1),
        ("payload_too_large", 2),
        ("retained_limit", 1),
    ];
    assert_eq!(counters(&node), expected);
    assert_eq!(node.count(Counter::RefusedUntold), 1);
}

#[test]
fn a_publisher_that_a_denial_disconnects_is_told_by_that() {
    for disconnects in [false, true] {
        let mut node = Node::planned(1, |plan| {
            plan.settings.access = shared("allow all pub open", |policy| {
                policy.disconnects_denied = disconnects;
            });
        });
        let publisher = node.join(0, "p");
        node.publish(publisher, "open", "1", Q0);
        node.publish(publisher, "closed", "1", Q0);
        let told = if disconnects { "told" } else { "untold" };
        let expected = format!("not_allowed p closed 1 {told}");
        assert_eq!(refused(&mut node, 0), [expected]);
        assert_eq!(counters(&node), [("not_allowed", 1)]);
    }
}

#[test]
fn a_topic_that_is_too_long_behind_its_mount_point_is_refused() {
    let mut node = Node::planned(1, |plan| {
        plan.mounts.insert("p", "house/");
        plan.limits().topic_bytes_max = u16::MAX;
        plan.limits().packet_bytes_max = 1 << 20;
    });
    let publisher = node.join(0, "p");
    node.publish(publisher, &"x".repeat(65_535), "1", Q1);
    assert_eq!(counters(&node), [("topic_too_long", 1)]);
}

#[test]
fn a_full_sink_and_a_full_disk_are_reasons_and_end_the_connection_of_an_old_client() {
    let mut node = Node::planned(1, full_sink);
    let new = node.join(0, "new");
    let old = node.join_old(0, "old");
    for payload in ["1", "2"] {
        node.publish(new, "t/x", payload, Q1);
    }
    node.publish(old, "t/x", "3", Q1);
    assert_eq!(
        refused(&mut node, 0),
        ["sink_full new t/x 1 told", "sink_full old t/x 1 told"]
    );
    let mut node = Node::durable(1, |plan| plan.segments_max = 6);
    let away = node.subscriber(0, "away", "t");
    node.cut(away);
    let publisher = node.join(0, "p");
    let big = "x".repeat(3_000);
    for _ in 0..40 {
        node.publish(publisher, "t", &big, Q1);
    }
    let known = counters(&node);
    assert_eq!(known.len(), 1);
    assert_eq!(known[0].0, "disk_full");
    assert_eq!(known[0].1, node.count(Counter::StorageRefused));
}

#[test]
fn a_message_that_only_full_sinks_would_get_is_refused_for_them_and_ends_no_connection() {
    for when_full in [WhenFull::Drop, WhenFull::Refuse] {
        let mut node = Node::planned(1, |plan| {
            one_place(plan);
            full_sink(plan);
            plan.sinks[0].limits.when_full = when_full;
        });
        let (new, old) = (node.join(0, "new"), node.join_old(0, "old"));
        node.publish(new, "t/x", "1", Q1);
        node.publish(old, "t/x", "2", Q0);
        assert_eq!(refused(&mut node, 0), ["sink_full old t/x 1 untold"]);
        if when_full == WhenFull::Refuse {
            continue;
        }
        node.publish(new, "t/x", "3", Q1);
        node.publish(old, "t/x", "4", Q1);
        let refusals = refused(&mut node, 0);
        assert_eq!(
            refusals,
            ["sink_full new t/x 1 told", "sink_full old t/x 2 untold"]
        );
        node.subscriber(0, "receiver", "t/#");
        for payload in ["5", "6"] {
            node.publish(old, "t/x", payload, Q1);
        }
        assert_eq!(counters(&node), [("sink_full", 3)], "the receiver had room");
        node.publish(old, "t/x", "7", Q1);
        let expected = [("queues_full", 1), ("sink_full", 3)];
        assert_eq!(
            counters(&node),
            expected,
            "a receiver and the sink are full"
        );
    }
}

#[test]
fn a_message_that_nobody_has_memory_for_is_refused_for_that_reason() {
    let mut node = Node::planned(1, |plan| plan.settings.memory_bytes = 1 << 30);
    let away = node.subscriber(0, "away", "t");
    node.cut(away);
    let publisher = node.join(0, "p");
    assert_eq!(use_memory(&mut node, 101), MemoryLevel::Full);
    node.publish(publisher, "t", "1", Q1);
    assert_eq!(counters(&node), [("memory_short", 1)]);
}

#[test]
fn a_message_that_memory_is_too_short_to_retain_is_refused_for_that_reason() {
    let mut node = Node::planned(1, |plan| plan.settings.memory_bytes = 1 << 30);
    let (new, old) = (node.join(0, "new"), node.join_old(0, "old"));
    assert_eq!(use_memory(&mut node, 101), MemoryLevel::Full);
    node.retain(new, "t", "1");
    node.retain(old, "t", "2");
    assert_eq!(refused(&mut node, 0), ["memory_short new t 1 told"]);
    assert_eq!(counters(&node), [("memory_short", 1)]);
    assert_eq!(node.count(Counter::RetainedLost), 1, "it is delivered");
}
