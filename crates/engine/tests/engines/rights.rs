//! What clients may do: rules at a PUBLISH, a SUBSCRIBE and a message, and their review.

use std::sync::Arc;

use thrum_access::Rules;
use thrum_codec::packet::SubscriptionOptions;
use thrum_codec::{QoS, ReasonCode};
use thrum_engine::access::{Access, Policy, Shared};
use thrum_engine::node::metrics::Counter;
use thrum_engine::review::{Progress, Review, review_units};

use crate::node::{Answer, Node, Peer};

const Q1: QoS = QoS::AtLeastOnce;
const TAKEN: Answer = Answer::Puback(ReasonCode::Success);
const DENIED: Answer = Answer::Puback(ReasonCode::NotAuthorized);

/// Rules, and what else applies to clients.
pub(crate) fn shared(rules: &str, change: impl FnOnce(&mut Policy)) -> Arc<Shared> {
    let mut policy = Policy {
        rules: Arc::new(Rules::parse(rules, "test").expect("they are valid")),
        allows_by_default: false,
        ..Policy::default()
    };
    change(&mut policy);
    let access = Access {
        gatekeeper: None,
        policy,
    };
    Arc::new(Shared {
        access,
        generation: 1,
    })
}

fn node_with(workers: usize, rules: &str) -> Node {
    Node::planned(workers, |plan| {
        plan.settings.access = shared(rules, |_| ());
        plan.limits().inflight_max = 1;
    })
}

/// Puts other rules in force on a worker, and reviews the session of a client.
fn review(node: &mut Node, client_id: &str, rules: &str) -> (Review, Progress) {
    let (worker, slot) = node.shell.find(client_id).expect("it is there");
    let engine = node.shell.engine(worker);
    let mut settings = engine.core.settings.own_copy();
    settings.access = shared(rules, |_| ());
    engine.core.settings = Arc::new(settings);
    let shared = Arc::clone(&engine.core.settings.access);
    let access = engine.core.sessions[slot].access.as_deref_mut();
    access.expect("it has some").resolve_current(&shared);
    let mut review = Review::new(engine, slot, false);
    let mut steps = 0;
    let progress = loop {
        match review.advance(engine, |_| true) {
            Progress::Continues => steps += 1,
            over => break over,
        }
        assert!(steps < 1_000);
    };
    assert!(steps > 0, "one step is a portion");
    engine.send_room_notices();
    node.settle();
    (review, progress)
}

fn suback(node: &mut Node, peer: Peer, filters: &[&str]) -> Vec<Answer> {
    let options = SubscriptionOptions {
        qos: Q1,
        ..SubscriptionOptions::default()
    };
    node.answers(peer);
    node.subscribe_with(peer, filters, options, Some(9));
    node.answers(peer)
}

#[test]
fn a_client_publishes_and_gets_what_the_rules_allow() {
    for workers in [1, 2] {
        let mut node = node_with(
            workers,
            "allow all pub open/#\nallow all sub open/+/x\nallow all sub whole/#",
        );
        let receiver = node.join(0, "receiver");
        let granted = ReasonCode::GrantedQoS1;
        let denied = ReasonCode::NotAuthorized;
        let received = suback(&mut node, receiver, &["open/#", "whole/1", "other"]);
        let codes = vec![granted, granted, denied];
        assert_eq!(
            received,
            [Answer::Suback(codes, true)],
            "the first one in part"
        );
        let received = suback(
            &mut node,
            receiver,
            &["$share/g/open/#", "$share/g/whole/#"],
        );
        assert_eq!(received, [Answer::Suback(vec![denied, granted], false)]);
        assert_eq!(node.count(Counter::SubscribeDenied), 2);
        let publisher = node.join(workers - 1, "publisher");
        node.answers(publisher);
        node.set_acknowledges(receiver, true);
        for topic in ["open/1/x", "open/1/y", "other"] {
            node.publish(publisher, topic, topic, Q1);
        }
        let second = if workers == 1 {
            ReasonCode::NoMatchingSubscribers
        } else {
            ReasonCode::Success
        };
        assert_eq!(
            node.answers(publisher),
            [TAKEN, Answer::Puback(second), DENIED]
        );
        assert_eq!(node.count(Counter::PublishDenied), 1);
        let messages = node.messages(receiver);
        assert_eq!(messages.len(), 1);
        assert_eq!(messages[0].payload, "open/1/x");
        assert_eq!(messages[0].identifiers, [9]);
    }
}

#[test]
fn retained_messages_are_checked_like_others() {
    let mut node = node_with(1, "allow all pub #\nallow all sub open/+/x");
    let peer = node.join(0, "peer");
    node.retain(peer, "open/1/x", "1");
    node.retain(peer, "open/1/y", "2");
    suback(&mut node, peer, &["open/#"]);
    assert_eq!(node.payloads(peer), ["1"]);
}

#[test]
fn a_client_that_publishes_without_permission_is_disconnected_by_that_policy() {
    let mut node = Node::planned(1, |plan| {
        plan.settings.access = shared("allow all pub open", |policy| {
            policy.disconnects_denied = true;
            policy.filters_partial = false;
        });
    });
    let peer = node.join(0, "peer");
    node.publish(peer, "open", "1", Q1);
    node.answers(peer);
    node.publish(peer, "closed", "1", Q1);
    assert_eq!(
        node.answers(peer),
        [Answer::Disconnected(ReasonCode::NotAuthorized)]
    );
    assert_eq!(node.count(Counter::PublishReceived), 2);
}

#[test]
fn a_filter_that_is_allowed_in_part_is_refused_by_that_policy() {
    let mut node = Node::planned(1, |plan| {
        plan.settings.access = shared("allow all sub open/+/x", |policy| {
            policy.filters_partial = false;
        });
    });
    let peer = node.join(0, "peer");
    let received = suback(&mut node, peer, &["open/#", "open/1/x"]);
    let codes = vec![ReasonCode::NotAuthorized, ReasonCode::GrantedQoS1];
    assert_eq!(received, [Answer::Suback(codes, false)]);
}

#[test]
fn other_rules_end_subscriptions_and_drop_their_queued_messages() {
    let mut node = node_with(2, "allow all pubsub #");
    let receiver = node.join(0, "receiver");
    node.set_acknowledges(receiver, false);
    suback(
        &mut node,
        receiver,
        &["first", "a/#", "b/+", "c", "$share/g/d/#"],
    );
    let publisher = node.join(1, "publisher");
    for topic in ["first", "a/1", "a/2", "b/1", "c", "d/1"] {
        node.publish(publisher, topic, topic, Q1);
    }
    let (worker, slot) = node.shell.find("receiver").unwrap();
    let units = review_units(&node.shell.engine(worker).core, slot);
    // Five filters and five messages that wait, with one rule.
    assert_eq!(units, 5 * (32 + 1) + 5);
    let rules = "allow all pub #\nallow all sub first\nallow all sub a/1\nallow all sub b/#";
    let (review, progress) = review(&mut node, "receiver", rules);
    assert_eq!(progress, Progress::Done);
    assert!(review.is_revoked);
    assert_eq!(node.count(Counter::SubscriptionsRevoked), 2);
    assert_eq!(node.count(Counter::Subscriptions), 3);
    assert_eq!(node.count(Counter::SharedSubscriptions), 0);
    assert_eq!(node.count(Counter::DroppedNotAllowed), 2);
    assert_eq!(node.drain(receiver), ["first", "a/1", "b/1"]);
    for topic in ["a/1", "a/2", "c"] {
        node.publish(publisher, topic, topic, Q1);
    }
    assert_eq!(node.drain(receiver), ["a/1"], "each message is checked");
}

#[test]
fn a_review_that_changes_nothing_drops_nothing() {
    let mut node = node_with(1, "allow all pubsub #");
    let receiver = node.join(0, "receiver");
    node.set_acknowledges(receiver, false);
    suback(&mut node, receiver, &["a/#", "$share/g/a/#"]);
    for payload in ["1", "2"] {
        node.publish(receiver, "a/x", payload, Q1);
    }
    let (review, progress) = review(&mut node, "receiver", "allow all pubsub a/#");
    assert_eq!(progress, Progress::Done);
    assert!(!review.is_revoked);
    assert_eq!(node.count(Counter::DroppedNotAllowed), 0);
    assert_eq!(node.drain(receiver), ["1", "1", "2", "2"]);
}

#[test]
fn a_client_that_loses_a_subscription_is_disconnected_first() {
    let mut node = node_with(1, "allow all pubsub #");
    let peer = node.join(0, "peer");
    suback(&mut node, peer, &["a", "b"]);
    let (_, slot) = node.shell.find("peer").unwrap();
    let engine = node.shell.engine(0);
    let rules = shared("allow all pubsub a", |_| ());
    let access = engine.core.sessions[slot].access.as_deref_mut().unwrap();
    assert!(access.resolve_current(&rules));
    assert!(!access.resolve_current(&rules));
    let mut review = Review::new(engine, slot, true);
    assert_eq!(review.advance(engine, |_| false), Progress::Disconnect);
    assert_eq!(review.advance(engine, |_| false), Progress::Done);
    engine.end_session(slot);
    assert_eq!(review.advance(engine, |_| false), Progress::Done);
}
