//! Queues of sessions: their limits and policies, and the notification of publishers that they are
//! full.

use std::sync::atomic::Ordering;
use std::time::Duration;

use thrum_codec::{QoS, ReasonCode, Version};
use thrum_engine::node::metrics::Counter;
use thrum_protocol::limits::{QueuePolicy, TopicPriority};

use crate::node::{Answer, Node, connect, publish, publish_expiring};
use crate::shell::Plan;

const Q1: QoS = QoS::AtLeastOnce;
const TAKEN: Answer = Answer::Puback(ReasonCode::Success);
const REFUSED: Answer = Answer::Puback(ReasonCode::QuotaExceeded);

/// Queues of two messages behind a window of one.
pub(crate) fn short(policy: QueuePolicy) -> impl FnOnce(&mut Plan) {
    move |plan| {
        let limits = plan.limits();
        limits.inflight_max = 1;
        limits.queue.messages_max = 2;
        limits.queue.policy = policy;
    }
}

/// The same queues; publishers wait for room for five seconds.
pub(crate) fn short_and_waited_for(policy: QueuePolicy) -> impl FnOnce(&mut Plan) {
    move |plan| {
        short(policy)(plan);
        plan.settings.queue_hold = Duration::from_secs(5);
    }
}

/// A publisher at the last worker.
fn join_publisher(node: &mut Node, workers: usize) -> usize {
    let publisher = node.join(workers - 1, "publisher");
    node.answers(publisher);
    publisher
}

fn publish_four(node: &mut Node, publisher: usize) -> Vec<Answer> {
    for payload in ["1", "2", "3", "4"] {
        node.publish(publisher, "t", payload, Q1);
    }
    node.answers(publisher)
}

#[test]
fn a_full_queue_refuses_new_messages_and_their_publishers_on_every_worker() {
    for workers in [1, 2] {
        let mut node = Node::planned(workers, short(QueuePolicy::RejectNew));
        let receiver = node.subscriber(0, "receiver", "t");
        let publisher = join_publisher(&mut node, workers);
        let answers = publish_four(&mut node, publisher);
        assert_eq!(answers, [TAKEN, TAKEN, TAKEN, REFUSED], "{workers} workers");
        assert_eq!(node.count(Counter::DroppedQueueFull), 1);
        assert_eq!(node.count(Counter::Queued), 2);
        assert_eq!(node.drain(receiver), ["1", "2", "3"]);
        node.publish(publisher, "t", "5", Q1);
        assert_eq!(node.answers(publisher), [TAKEN]);
        assert_eq!(node.drain(receiver), ["5"]);
        assert_eq!(node.count(Counter::PublishSent), 4);
        assert_eq!(node.count(Counter::PublishBytesSent), 4);
        let (worker, slot) = node.shell.find("receiver").unwrap();
        let client = &node.shell.engine(worker).core.sessions[slot];
        let dropped: u64 = client.dropped().map(|(_, count)| count).sum();
        assert_eq!(dropped, 1, "{workers} workers");
    }
}

#[test]
fn a_publisher_is_not_refused_while_another_subscriber_has_room() {
    for (first, second, publisher) in [(0, 0, 0), (1, 1, 0), (1, 0, 0), (0, 1, 0), (1, 2, 0)] {
        let mut node = Node::planned(3, short(QueuePolicy::RejectNew));
        node.subscriber(first, "full", "t");
        let publisher = node.join(publisher, "publisher");
        publish_four(&mut node, publisher);
        let other = node.subscriber(second, "other", "t");
        node.publish(publisher, "t", "5", Q1);
        assert_eq!(node.answers(publisher), [TAKEN], "{first} {second}");
        assert_eq!(node.drain(other), ["5"]);
    }
}

#[test]
fn a_queue_that_drops_its_oldest_messages_keeps_the_newest() {
    for workers in [1, 2] {
        let mut node = Node::planned(workers, short(QueuePolicy::DropOldest));
        let receiver = node.subscriber(0, "receiver", "t");
        let publisher = join_publisher(&mut node, workers);
        assert_eq!(publish_four(&mut node, publisher), [TAKEN; 4]);
        assert_eq!(node.count(Counter::DroppedQueueOldest), 1);
        assert_eq!(node.drain(receiver), ["1", "3", "4"]);
    }
}

/// Reason, receiver, topic and number of the drops on a worker, in order.
fn drops(node: &mut Node, worker: usize) -> Vec<String> {
    let drops = node.shell.engine(worker).core.undelivered.dropped.iter();
    let mut lines: Vec<_> = drops
        .map(|entry| {
            let topic = entry.key.topic.as_deref().unwrap_or("-");
            let (reason, client) = (entry.key.reason, &entry.key.client);
            format!("{reason} {client} {topic} {}", entry.count)
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn drops_are_kept_by_reason_client_and_topic() {
    for (policy, expected) in [
        (QueuePolicy::RejectNew, "queue_full receiver t 1"),
        (QueuePolicy::DropOldest, "queue_oldest receiver t 1"),
    ] {
        let mut node = Node::planned(1, short(policy));
        node.subscriber(0, "receiver", "t");
        let publisher = node.join(0, "publisher");
        publish_four(&mut node, publisher);
        assert_eq!(drops(&mut node, 0), [expected]);
    }
    // The worker of the publisher knows that the queue is full; the session's own worker counts it.
    let mut node = Node::planned(2, short(QueuePolicy::RejectNew));
    node.subscriber(0, "receiver", "t");
    let publisher = join_publisher(&mut node, 2);
    publish_four(&mut node, publisher);
    assert_eq!(drops(&mut node, 0), ["queue_full receiver - 1"]);
    assert!(drops(&mut node, 1).is_empty());
}

#[test]
fn a_message_that_no_member_of_a_group_takes_is_kept_with_the_group() {
    let mut node = Node::planned(1, short(QueuePolicy::RejectNew));
    node.subscriber(0, "member", "$share/g/t");
    let publisher = node.join(0, "publisher");
    publish_four(&mut node, publisher);
    let found = drops(&mut node, 0);
    assert!(
        found
            .iter()
            .any(|line| line == "no_shared_member $share/g/t t 1"),
        "{found:?}"
    );
}

#[test]
fn a_qos0_message_for_a_client_that_is_away_is_not_kept() {
    let mut node = Node::planned(1, short(QueuePolicy::RejectNew));
    let mut away = connect("receiver");
    away.properties.session_expiry = Some(5);
    let receiver = node.join_as(0, &away);
    node.subscribe(receiver, "t", Q1);
    node.cut(receiver);
    let publisher = node.join(0, "publisher");
    node.publish(publisher, "t", "x", QoS::AtMostOnce);
    assert_eq!(node.count(Counter::DroppedOffline), 1);
    assert!(drops(&mut node, 0).is_empty());
}

#[test]
fn messages_of_a_high_priority_leave_the_queue_first() {
    let mut node = Node::planned(1, |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.priorities = vec![TopicPriority {
            filter: "urgent".into(),
            priority: 9,
        }];
    });
    let receiver = node.subscriber(0, "receiver", "#");
    let publisher = node.join(0, "publisher");
    node.publish(publisher, "t", "1", Q1);
    node.publish(publisher, "t", "2", Q1);
    node.publish(publisher, "urgent", "3", Q1);
    assert_eq!(node.drain(receiver), ["1", "3", "2"]);
}

#[test]
fn a_full_queue_holds_a_publisher_until_there_is_room_or_its_time_is_over() {
    for workers in [1, 2] {
        let mut node = Node::planned(workers, short_and_waited_for(QueuePolicy::Hold));
        let receiver = node.subscriber(0, "receiver", "t");
        let publisher = join_publisher(&mut node, workers);
        assert_eq!(publish_four(&mut node, publisher), [TAKEN; 3]);
        node.post(publisher, publish("t", "5", Q1));
        node.settle();
        assert!(node.is_held(publisher), "{workers} workers");
        assert_eq!(node.count(Counter::PublishersHeld), 1);
        assert_eq!(node.count(Counter::PublishesHeld), 1);
        assert!(node.count(Counter::BytesHeld) > 0);
        // One message is acknowledged, so that there is room for one.
        let first = node.messages(receiver).remove(0);
        node.acknowledge(receiver, &first);
        assert_eq!(node.answers(publisher), [TAKEN], "{workers} workers");
        assert!(node.is_held(publisher), "the next one waits");
        assert_eq!(node.count(Counter::PublishesHeld), 2);
        node.advance_time(Duration::from_secs(4));
        assert_eq!(node.answers(publisher), []);
        node.advance_time(Duration::from_secs(1));
        assert_eq!(node.answers(publisher), [REFUSED], "{workers} workers");
        assert_eq!(node.count(Counter::LimitQueueHold), 1);
        let held = [Counter::PublishersHeld, Counter::BytesHeld];
        assert_eq!(held.map(|counter| node.count(counter)), [0, 0]);
        assert_eq!(node.drain(receiver), ["2", "3", "4"]);
        let holding = |node: &Node| node.shell.node.holding.load(Ordering::Relaxed);
        assert_eq!(holding(&node), 1, "so short a queue may always hold");
        node.cut(receiver);
        assert_eq!(holding(&node), 0);
    }
}

#[test]
fn held_publishers_resume_in_the_order_of_their_arrival() {
    for workers in [1, 3] {
        let mut node = Node::planned(workers, short_and_waited_for(QueuePolicy::Hold));
        let receiver = node.subscriber(0, "receiver", "t");
        let one = node.join(workers - 1, "one");
        let two = node.join(workers / 2, "two");
        publish_four(&mut node, one);
        node.advance_time(Duration::from_millis(10));
        node.publish(two, "t", "two", Q1);
        assert!(node.is_held(one) && node.is_held(two));
        assert_eq!(node.drain(receiver), ["1", "2", "3", "4", "two"]);
        assert!(!node.is_held(one) && !node.is_held(two));
        assert_eq!(node.count(Counter::PublishersHeld), 0);
    }
}

#[test]
fn a_held_publisher_resumes_when_its_receiver_disconnects() {
    for workers in [1, 2] {
        let mut node = Node::planned(workers, short_and_waited_for(QueuePolicy::Hold));
        let receiver = node.subscriber(0, "receiver", "t");
        let publisher = node.join(workers - 1, "publisher");
        publish_four(&mut node, publisher);
        assert!(node.is_held(publisher));
        node.cut(receiver);
        assert!(
            !node.is_held(publisher),
            "no publisher waits for a disconnected client"
        );
        assert_eq!(node.answers(publisher), [REFUSED]);
    }
}

#[test]
fn a_held_publisher_may_disconnect_after_its_messages() {
    let mut node = Node::planned(1, |plan| {
        short(QueuePolicy::Hold)(plan);
        plan.settings.queue_hold = Duration::from_secs(5);
    });
    node.subscriber(0, "receiver", "t");
    let publisher = node.join(0, "publisher");
    publish_four(&mut node, publisher);
    assert!(node.is_held(publisher));
    let connection = node.shell.connection(node.link(publisher)).unwrap();
    let engine = node.shell.engine(0);
    engine.held.release_leaving(&mut engine.core, connection);
    node.shell.release(node.link(publisher));
    node.settle();
    assert_eq!(node.answers(publisher), [REFUSED]);
    node.cut(publisher);
    node.advance_time(Duration::from_secs(1));
    assert_eq!(node.count(Counter::PublishersHeld), 0);
}

#[test]
fn a_member_with_room_receives_messages_for_which_another_one_has_none() {
    for workers in [1, 2] {
        let mut node = Node::planned(workers, short(QueuePolicy::RejectNew));
        let full = node.subscriber(0, "full", "$share/g/t");
        let publisher = node.join(0, "publisher");
        node.answers(publisher);
        assert_eq!(
            publish_four(&mut node, publisher),
            [TAKEN, TAKEN, TAKEN, REFUSED]
        );
        assert_eq!(node.count(Counter::DroppedNoSharedMember), 1);
        let other = node.subscriber(workers - 1, "other", "$share/g/t");
        for payload in ["5", "6", "7"] {
            node.publish(publisher, "t", payload, Q1);
        }
        assert_eq!(node.answers(publisher), [TAKEN; 3]);
        assert_eq!(node.drain(other), ["5", "6", "7"]);
        assert_eq!(node.drain(full), ["1", "2", "3"]);
    }
}

#[test]
fn a_publisher_waits_for_a_group_whose_members_are_all_full() {
    for workers in [1, 2] {
        let mut node = Node::planned(workers, short_and_waited_for(QueuePolicy::RejectNew));
        let member = node.subscriber(0, "member", "$share/g/t");
        let publisher = join_publisher(&mut node, workers);
        assert_eq!(publish_four(&mut node, publisher), [TAKEN; 3]);
        assert!(node.is_held(publisher), "{workers} workers");
        assert_eq!(node.drain(member), ["1", "2", "3", "4"]);
        assert_eq!(node.answers(publisher), [TAKEN]);
    }
}

#[test]
fn unacknowledged_messages_of_a_leaving_member_go_to_another_one() {
    for workers in [1, 2] {
        let mut node = Node::new(workers);
        let one = node.subscriber(0, "one", "$share/g/t");
        let publisher = node.join(0, "publisher");
        node.publish(publisher, "t", "1", Q1);
        node.publish(publisher, "t", "2", Q1);
        let two = node.subscriber(workers - 1, "two", "$share/g/t");
        assert_eq!(node.payloads(one), ["1", "2"]);
        node.cut(one);
        assert_eq!(node.count(Counter::SharedRedispatched), 2);
        assert_eq!(node.drain(two), ["1", "2"]);
    }
}

#[test]
fn a_message_expires_in_the_queue_and_is_sent_with_its_remaining_expiry() {
    let mut node = Node::new(2);
    let receiver = node.subscriber(0, "receiver", "t");
    let publisher = node.join(1, "publisher");
    node.cut(receiver);
    for (payload, seconds) in [("short", 10), ("long", 100)] {
        node.post(publisher, publish_expiring("t", payload, seconds));
        node.settle();
    }
    node.advance_time(Duration::from_secs(30));
    let receiver = node.join(0, "receiver");
    let messages = node.messages(receiver);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(messages[0].payload, "long");
    assert_eq!(messages[0].message_expiry, Some(70));
    assert_eq!(node.count(Counter::DroppedExpired), 1);
}

#[test]
fn messages_that_a_client_cannot_get_are_dropped_for_their_own_reasons() {
    let mut node = Node::planned(1, |plan| plan.limits().queue.age_max = Some(5));
    let mut small = connect("small");
    small.properties.maximum_packet_size = Some(50);
    let small = node.join_as(0, &small);
    node.subscribe(small, "t", Q1);
    let publisher = node.join(0, "publisher");
    node.publish(publisher, "t", &"x".repeat(100), Q1);
    assert_eq!(node.count(Counter::DroppedTooLarge), 1);
    node.cut(small);
    node.publish(publisher, "t", "0", QoS::AtMostOnce);
    assert_eq!(node.count(Counter::DroppedOffline), 1);
    node.publish(publisher, "t", "1", Q1);
    node.advance_time(Duration::from_mins(1));
    let small = node.join(0, "small");
    assert_eq!(node.payloads(small), Vec::<String>::new());
    assert_eq!(node.count(Counter::DroppedQueueAge), 1);
}

#[test]
fn a_client_that_reads_nothing_gets_its_queue_once_it_reads() {
    let mut node = Node::planned(1, |plan| plan.settings.output_bytes = 100);
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "t", Q1);
    let publisher = node.join(0, "publisher");
    node.set_slow(receiver, true);
    let payloads: Vec<String> = (0..20).map(|number| format!("{number:020}")).collect();
    for payload in &payloads {
        node.publish(publisher, "t", payload, Q1);
    }
    node.publish(publisher, "t", "0", QoS::AtMostOnce);
    assert_eq!(node.count(Counter::LimitOutput), 1);
    assert_eq!(node.count(Counter::DroppedSlowConsumer), 1);
    assert_eq!(node.count(Counter::PublishSent), 4, "up to the limit");
    assert_eq!(node.count(Counter::Queued), 16);
    node.set_slow(receiver, false);
    assert_eq!(node.payloads(receiver), payloads);
    assert_eq!(node.count(Counter::PublishSent), 20);
    assert_eq!(node.count(Counter::PublishBytesSent), 400);
}

#[test]
fn a_publisher_of_version_3_is_acknowledged_whatever_the_outcome() {
    let mut node = Node::planned(1, short(QueuePolicy::RejectNew));
    node.subscriber(0, "receiver", "t");
    let mut old = connect("publisher");
    old.version = Version::V311;
    old.properties.session_expiry = None;
    let publisher = node.join_as(0, &old);
    node.answers(publisher);
    assert_eq!(publish_four(&mut node, publisher), [TAKEN; 4]);
    assert_eq!(node.count(Counter::DroppedQueueFull), 1);
}
