//! Shared groups: which member gets a message, with which options.

use thrum_codec::QoS;
use thrum_codec::packet::SubscriptionOptions;
use thrum_engine::node::metrics::Counter;
use thrum_routing::shared::Strategy;

use crate::node::{Node, Peer};

const Q0: QoS = QoS::AtMostOnce;
const Q1: QoS = QoS::AtLeastOnce;

/// Members on all workers of a node, which acknowledge.
fn members(node: &mut Node, workers: usize) -> Vec<usize> {
    let join = |number: usize| {
        let member = node.join(number % workers, &format!("m{number}"));
        node.subscribe(member, "$share/g/t/#", Q1);
        member
    };
    (0..4).map(join).collect()
}

/// Messages that each member got.
fn counts(node: &mut Node, members: &[usize]) -> Vec<usize> {
    let of = |member: &usize| node.messages(*member).len();
    members.iter().map(of).collect()
}

#[test]
fn members_of_a_group_take_turns() {
    for workers in [1, 2] {
        let mut node = Node::new(workers);
        let members = members(&mut node, workers);
        let publisher = node.join(0, "publisher");
        for _ in 0..8 {
            node.publish(publisher, "t/1", "x", Q1);
            node.publish(publisher, "t/1", "x", Q0);
        }
        assert_eq!(counts(&mut node, &members), [4; 4], "{workers} workers");
        node.cut(members[0]);
        for _ in 0..6 {
            node.publish(publisher, "t/1", "x", Q1);
        }
        assert_eq!(counts(&mut node, &members), [0, 2, 2, 2]);
        for member in &members[1..] {
            node.cut(*member);
        }
        node.publish(publisher, "t/1", "kept", Q1);
        node.publish(publisher, "t/1", "lost", Q0);
        let back: Vec<usize> = (0..4).map(|one| node.join(0, &format!("m{one}"))).collect();
        let received = back
            .iter()
            .map(|member| node.payloads(*member))
            .collect::<Vec<_>>()
            .concat();
        assert_eq!(received, ["kept"]);
    }
}

#[test]
fn a_publisher_keeps_to_one_member_by_that_strategy() {
    for workers in [1, 2] {
        let mut node = Node::planned(workers, |plan| plan.strategy = Strategy::HashClientId);
        let members = members(&mut node, workers);
        let mut used = [0; 4];
        for number in 0..12 {
            let publisher = node.join(number % workers, &format!("p{number}"));
            for topic in ["t/1", "t/2", "t/3"] {
                node.publish(publisher, topic, "x", Q1);
            }
            let counts = counts(&mut node, &members);
            let member = counts.iter().position(|count| *count == 3);
            used[member.expect("one has all of them")] += 1;
            // Also on another worker.
            node.cut(publisher);
            let publisher = node.join((number + 1) % workers, &format!("p{number}"));
            node.publish(publisher, "t/4", "x", Q1);
            assert_eq!(self::counts(&mut node, &members)[member.unwrap()], 1);
        }
        assert!(
            used.iter().filter(|count| **count > 0).count() > 1,
            "{used:?}"
        );
    }
}

#[test]
fn a_topic_keeps_to_one_member_by_that_strategy() {
    let mut node = Node::planned(2, |plan| plan.strategy = Strategy::HashTopic);
    let members = members(&mut node, 2);
    let publishers = [node.join(0, "p0"), node.join(1, "p1")];
    let mut used = [0; 4];
    for number in 0..12 {
        for publisher in publishers {
            node.publish(publisher, &format!("t/{number}"), "x", Q1);
        }
        let counts = counts(&mut node, &members);
        let member = counts.iter().position(|count| *count == 2);
        used[member.expect("one has both")] += 1;
    }
    assert!(
        used.iter().filter(|count| **count > 0).count() > 1,
        "{used:?}"
    );
}

#[test]
fn a_member_receives_messages_by_its_own_options() {
    for workers in [1, 2] {
        let mut node = Node::new(workers);
        let member = node.join(workers - 1, "member");
        let options = SubscriptionOptions {
            qos: QoS::ExactlyOnce,
            retain_as_published: true,
            ..SubscriptionOptions::default()
        };
        node.subscribe_with(member, &["$share/g/t"], options, Some(5));
        let publisher = node.join(0, "publisher");
        node.publish(publisher, "t", "2", QoS::ExactlyOnce);
        node.retain(publisher, "t", "1");
        node.publish(publisher, "t", "0", Q0);
        let received: Vec<(QoS, bool, Vec<u32>)> = node
            .messages(member)
            .into_iter()
            .map(|one| (one.qos, one.retain, one.identifiers))
            .collect();
        let expected = [(QoS::ExactlyOnce, false), (Q1, true), (Q0, false)];
        assert_eq!(
            received,
            expected.map(|(qos, retain)| (qos, retain, vec![5]))
        );
        node.subscribe(member, "$share/g/t", Q0);
        node.publish(publisher, "t", "1", Q1);
        let message = node.messages(member).remove(0);
        assert_eq!((message.qos, message.identifiers), (Q0, Vec::new()));
        assert_eq!(node.count(Counter::SharedSubscriptions), 1);
    }
}

/// The session of the client `one` at the first worker ends while mail is on its way to it.
fn end_session_on_the_way(node: &mut Node, one: Peer) {
    let slot = node.shell.find("one").expect("it is there").1;
    node.cut_now(one);
    node.shell.engine(0).end_session(slot);
    node.settle();
}

#[test]
fn a_message_whose_last_member_ends_on_its_way_is_counted_as_lost() {
    let mut node = Node::new(2);
    let one = node.subscriber(0, "one", "$share/g/t");
    let publisher = node.join(1, "publisher");
    node.post(publisher, crate::node::publish("t", "x", Q1));
    node.shell.turn(1);
    end_session_on_the_way(&mut node, one);
    assert_eq!(node.count(Counter::DroppedNoSharedMember), 1);
    assert_eq!(node.count(Counter::Subscriptions), 0);
}

#[test]
fn a_message_whose_member_ends_on_its_way_goes_to_another_one() {
    let mut node = Node::new(2);
    let one = node.subscriber(0, "one", "$share/g/t");
    let two = node.subscriber(0, "two", "$share/g/t");
    let publisher = node.join(1, "publisher");
    for _ in 0..2 {
        node.post(publisher, crate::node::publish("t", "x", Q1));
    }
    // Each member is to get one of them.
    node.shell.turn(1);
    end_session_on_the_way(&mut node, one);
    assert_eq!(node.messages(two).len(), 2);
    assert_eq!(node.count(Counter::SharedRedispatched), 1);
    assert_eq!(node.count(Counter::DroppedNoSharedMember), 0);
}
