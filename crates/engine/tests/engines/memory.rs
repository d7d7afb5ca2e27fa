//! What is refused while memory is short, and what is not.

use std::time::Duration;

use thrum_codec::{QoS, ReasonCode, TopicFilter, Version};
use thrum_engine::node::metrics::Counter;
use thrum_protection::MemoryLevel;

use crate::node::{Answer, Node, connect, publish};
use crate::shell::Plan;

const Q0: QoS = QoS::AtMostOnce;
const Q1: QoS = QoS::AtLeastOnce;
const TAKEN: Answer = Answer::Puback(ReasonCode::Success);
const REFUSED: Answer = Answer::Puback(ReasonCode::QuotaExceeded);

fn limited(plan: &mut Plan) {
    plan.settings.memory_bytes = 1 << 30;
    plan.limits().inflight_max = 100;
}

/// So many hundredths of the limit are in use.
pub(crate) fn use_memory(node: &mut Node, hundredths: u64) -> MemoryLevel {
    node.shell.set_resident((1 << 30) / 100 * hundredths);
    node.advance_time(Duration::from_millis(20));
    node.settle();
    node.shell.node.memory.level()
}

/// The publisher at the second worker learns with each message what became of the one before.
pub(crate) fn publish_until_told(node: &mut Node, publisher: usize) {
    let has_queued = [0; 3].map(|_| {
        node.shell.engine(1).core.memory.has_queued = false;
        node.publish(publisher, "t", "x", Q1);
        node.shell.engine(1).core.memory.has_queued
    });
    assert_eq!(has_queued, [false, true, true], "of the one before");
}

#[test]
fn a_disconnected_session_queues_messages_until_memory_is_short() {
    for workers in [1, 2] {
        let mut node = Node::planned(workers, limited);
        let away = node.subscriber(0, "away", "t");
        node.cut(away);
        let publisher = node.join(workers - 1, "publisher");
        node.answers(publisher);
        let big = "x".repeat(40_000);
        assert_eq!(use_memory(&mut node, 91), MemoryLevel::Short);
        assert_eq!(node.count(Counter::OverloadMemory), 1);
        for _ in 0..3 {
            node.publish(publisher, "t", &big, Q1);
            // What other workers have answered holds for so long.
            node.advance_time(Duration::from_millis(10));
        }
        // The queue is short up to 64 KiB.
        let answers = node.answers(publisher);
        assert_eq!(answers, [TAKEN, TAKEN, REFUSED], "{workers} workers");
        assert_eq!(use_memory(&mut node, 101), MemoryLevel::Full);
        let receiver = node.join(0, "receiver");
        node.subscribe(receiver, "u", Q1);
        node.publish(publisher, "u", "1", Q1);
        node.publish(publisher, "u", "0", Q0);
        assert_eq!(node.answers(publisher), [TAKEN]);
        assert_eq!(node.payloads(receiver), ["1", "0"]);
        node.cut(receiver);
        node.advance_time(Duration::from_millis(10));
        node.publish(publisher, "u", "2", Q1);
        assert_eq!(node.answers(publisher), [REFUSED], "{workers} workers");
        assert!(node.count(Counter::DroppedMemoryShort) >= 2);
        assert_eq!(use_memory(&mut node, 50), MemoryLevel::Ample);
        node.publish(publisher, "u", "3", Q1);
        assert_eq!(node.answers(publisher), [TAKEN], "{workers} workers");
        let receiver = node.join(0, "receiver");
        assert_eq!(node.payloads(receiver), ["3"]);
        assert_eq!(node.count(Counter::OverloadMemory), 1);
    }
}

#[test]
fn a_client_that_does_not_acknowledge_has_a_small_window_while_memory_is_full() {
    for workers in [1, 2] {
        let mut node = Node::planned(workers, limited);
        let receiver = node.subscriber(0, "receiver", "t");
        let publisher = node.join(workers - 1, "publisher");
        node.answers(publisher);
        use_memory(&mut node, 101);
        for _ in 0..20 {
            node.publish(publisher, "t", "x", Q1);
            node.advance_time(Duration::from_millis(10));
        }
        let mut expected = vec![TAKEN; 16];
        expected.extend([REFUSED; 4]);
        assert_eq!(node.answers(publisher), expected, "{workers} workers");
        assert_eq!(node.drain(receiver).len(), 16);
        node.publish(publisher, "t", "x", Q1);
        assert_eq!(node.answers(publisher), [TAKEN]);
    }
}

#[test]
fn a_member_of_a_group_receives_messages_for_which_others_have_no_memory() {
    for workers in [1, 2] {
        let mut node = Node::planned(workers, limited);
        let away = node.subscriber(0, "away", "$share/g/t");
        let here = node.subscriber(workers - 1, "here", "$share/g/t");
        node.set_acknowledges(here, true);
        node.cut(away);
        let publisher = node.join(0, "publisher");
        node.answers(publisher);
        use_memory(&mut node, 101);
        // The first one finds that the members were not checked since memory is full.
        node.publish(publisher, "t", "x", Q1);
        node.publish(publisher, "t", "x", Q1);
        node.answers(publisher);
        node.messages(here);
        for _ in 0..10 {
            node.publish(publisher, "t", "x", Q1);
        }
        assert_eq!(node.answers(publisher), vec![TAKEN; 10]);
        assert_eq!(node.messages(here).len(), 10);
        node.cut(here);
        node.publish(publisher, "t", "x", Q1);
        assert_eq!(node.answers(publisher), [REFUSED]);
    }
}

#[test]
fn nothing_new_is_retained_and_no_large_set_of_filters_grows_while_memory_is_full() {
    let mut node = Node::planned(1, limited);
    let peer = node.join(0, "peer");
    node.retain(peer, "t", "12345");
    use_memory(&mut node, 101);
    node.answers(peer);
    node.retain(peer, "t", "123");
    node.retain(peer, "u", "123");
    node.retain(peer, "t", "1234567");
    node.retain(peer, "t", "");
    let no_subscribers = Answer::Puback(ReasonCode::NoMatchingSubscribers);
    let answers = [no_subscribers.clone(), REFUSED, REFUSED, no_subscribers];
    assert_eq!(node.answers(peer), answers);
    assert_eq!(node.shell.node.retained.size().0, 0);
    let long = "x".repeat(2_000);
    let filters: Vec<String> = (0..20).map(|number| format!("{long}{number}")).collect();
    for filter in &filters {
        node.subscribe(peer, filter, Q0);
    }
    let refused = node.count(Counter::LimitMemorySubscriptions);
    assert!((10..15).contains(&refused), "{refused}");
}

#[test]
fn memory_is_checked_when_queues_grow_within_a_turn() {
    let mut node = Node::planned(1, limited);
    let away = node.subscriber(0, "away", "t");
    node.cut(away);
    let publisher = node.join(0, "publisher");
    node.shell.set_resident(1 << 30);
    let big = "x".repeat(900_000);
    for number in 0..12 {
        node.publish(publisher, "t", &big, Q1);
        let is_full = node.shell.node.memory.level() == MemoryLevel::Full;
        // A step is a 128th of the limit.
        assert_eq!(is_full, number >= 9, "{number}");
    }
}

#[test]
fn a_new_limit_applies_at_once() {
    let mut node = Node::new(1);
    node.shell.set_resident(1000);
    let core = &mut node.shell.engine(0).core;
    core.set_memory_limit();
    assert_eq!(core.memory.level, MemoryLevel::Ample);
    let mut settings = core.settings.own_copy();
    settings.memory_bytes = 1000;
    core.settings = std::sync::Arc::new(settings);
    core.set_memory_limit();
    assert_eq!(core.memory.level, MemoryLevel::Full);
    assert_eq!(core.memory.limit(), 1000);
}

#[test]
fn other_workers_notify_publishers_that_their_messages_wait() {
    let mut node = Node::planned(2, limited);
    let away = node.subscriber(0, "away", "t");
    node.cut(away);
    let publisher = node.join(1, "publisher");
    use_memory(&mut node, 82);
    publish_until_told(&mut node, publisher);
    let here = node.join(0, "away");
    node.publish(publisher, "t", "x", Q1);
    node.shell.engine(1).core.memory.has_queued = false;
    node.publish(publisher, "t", "x", Q1);
    assert!(!node.shell.engine(1).core.memory.has_queued);
    assert_eq!(node.messages(here).len(), 5);
}

#[test]
fn other_workers_are_asked_for_memory_where_an_answer_is_missing_or_old() {
    let mut node = Node::planned(2, limited);
    for filter in ["t", "u"] {
        let receiver = node.join(0, filter);
        node.subscribe(receiver, filter, Q1);
    }
    let publisher = node.join(1, "publisher");
    let mut old = connect("old");
    old.version = Version::V311;
    old.properties.session_expiry = None;
    let old = node.join_as(1, &old);
    node.subscribe(publisher, "here", Q1);
    let asks = |node: &mut Node, peer: usize, topic: &str, qos: QoS| {
        node.post(peer, publish(topic, "x", qos));
        node.shell.turn(1);
        let link = node.link(peer);
        let is_inquiring = node.shell.is_inquiring(link);
        node.settle();
        assert!(!node.shell.is_inquiring(link), "it has its answer");
        is_inquiring
    };
    assert!(!asks(&mut node, publisher, "t", Q1), "there is enough");
    use_memory(&mut node, 91);
    assert!(asks(&mut node, publisher, "t", Q1));
    assert!(!asks(&mut node, publisher, "t", Q1), "it knows");
    assert!(asks(&mut node, publisher, "u", Q1), "that is another topic");
    assert!(!asks(&mut node, publisher, "u", Q1));
    assert!(!asks(&mut node, publisher, "t", Q0));
    assert!(!asks(&mut node, old, "t", Q1), "it cannot be refused");
    assert!(
        !asks(&mut node, publisher, "here", Q1),
        "there is no other worker"
    );
    assert!(!asks(&mut node, publisher, "$SYS/x", Q1));
    assert!(asks(&mut node, publisher, "t", Q1));
    node.advance_time(Duration::from_millis(9));
    assert!(!asks(&mut node, publisher, "t", Q1));
    node.advance_time(Duration::from_millis(1));
    assert!(asks(&mut node, publisher, "t", Q1), "the answer is old");
    use_memory(&mut node, 82);
    node.advance_time(Duration::from_secs(1));
    assert!(!asks(&mut node, publisher, "t", Q1), "it is not so short");
    node.shell.engine(1).router.publishers.forget_all();
    use_memory(&mut node, 91);
    assert!(asks(&mut node, publisher, "t", Q1));
    node.shell.engine(1).router.publishers.forget_all();
    assert!(asks(&mut node, publisher, "t", Q1), "all is forgotten");
}

#[test]
fn a_message_without_receivers_does_not_slow_its_publisher_down() {
    let mut node = Node::planned(2, limited);
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "t", Q1);
    let publisher = node.join(1, "publisher");
    use_memory(&mut node, 82);
    node.post(publisher, publish("t", "x", Q1));
    node.shell.turn(1);
    let slot = node.shell.find("receiver").unwrap().1;
    let filter = TopicFilter::parse("t").unwrap();
    assert!(node.shell.engine(0).subscribing().unsubscribe(slot, filter));
    assert!(!node.shell.engine(0).subscribing().unsubscribe(slot, filter));
    node.settle();
    node.subscribe(receiver, "t", Q1);
    node.shell.engine(1).core.memory.has_queued = false;
    node.publish(publisher, "t", "y", Q1);
    assert!(!node.shell.engine(1).core.memory.has_queued);
    assert_eq!(node.payloads(receiver), ["y"]);
}
