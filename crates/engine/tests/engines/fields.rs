//! Fields that a message, an event or a client's access carries on.

use std::sync::Arc;
use std::time::Duration;

use thrum_access::{Admission, Answer, Gatekeeper, Identity, Login, Reply, Rules};
use thrum_codec::packet::{Packet, Publish, SubscriptionOptions};
use thrum_codec::properties::PublishProperties;
use thrum_codec::{QoS, TopicFilter, Version, decode, frame};
use thrum_engine::access::{ClientAccess, OwnRules, RuleSource, Shared, publish_rights};
use thrum_engine::client::Written;
use thrum_engine::node::metrics::Counter;
use thrum_engine::outputs::Outputs;
use thrum_protocol::limits::QueuePolicy;
use thrum_routing::shared::Strategy;

use crate::node::{Node, publish};
use crate::queues::short_and_waited_for;

const Q0: QoS = QoS::AtMostOnce;
const Q1: QoS = QoS::AtLeastOnce;
const Q2: QoS = QoS::ExactlyOnce;

#[test]
fn the_admission_of_a_client_has_its_identity_and_its_own_rules() {
    let rules = Arc::new(Rules::parse("allow all pub own", "test").unwrap());
    let admission = Admission {
        identity: Identity {
            client_id: "client".into(),
            username: Some("user".into()),
            ..Identity::default()
        },
        rules: Some(Arc::clone(&rules)),
        ..Admission::default()
    };
    let mut shared = Shared::default();
    shared.access.policy.allows_by_default = false;
    let access = ClientAccess::new(admission, &shared);
    let again = access.admission();
    assert_eq!(again.identity, *access.identity);
    assert!(again.rules.is_some_and(|own| Arc::ptr_eq(&own, &rules)));
    let current = access.with_current_rules(&shared);
    assert!(current.allows_the_same(&access));
    assert_eq!(current.identity, access.identity);
}

#[test]
fn a_topic_alias_and_an_expiry_are_not_passed_on_as_they_came() {
    let mut node = Node::new(1);
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "t", Q0);
    let publisher = node.join(0, "publisher");
    node.post(
        publisher,
        Publish {
            properties: PublishProperties {
                topic_alias: std::num::NonZeroU16::new(1),
                message_expiry: Some(90),
                ..PublishProperties::default()
            },
            ..publish("t", "x", Q0)
        },
    );
    node.shell.turn(0);
    let link = node.link(receiver);
    let bytes = node.shell.receive(link);
    let found = frame::split(&bytes, u32::MAX).unwrap().unwrap();
    let Ok(Packet::Publish(message)) = decode(found, Version::V5) else {
        panic!("it is a message");
    };
    assert_eq!(message.topic, "t");
    assert_eq!(message.properties.topic_alias, None);
    assert_eq!(message.properties.message_expiry, Some(90));
    assert_eq!(found.len, bytes.len());
    // Header, topic, properties of an expiry alone, payload.
    assert_eq!(bytes.len(), 2 + 3 + 6 + 1);
}

#[test]
fn events_of_messages_have_the_terms_of_their_delivery() {
    for is_queued in [false, true] {
        let mut node = Node::planned(1, |plan| plan.limits().inflight_max = 1);
        let watcher = node.join(0, "watcher");
        node.subscribe(watcher, "$events/message/delivered", Q0);
        let receiver = node.join(0, "receiver");
        let options = SubscriptionOptions {
            qos: Q1,
            ..SubscriptionOptions::default()
        };
        node.subscribe_with(receiver, &["t"], options, None);
        let publisher = node.join(0, "publisher");
        if is_queued {
            node.cut(receiver);
        }
        let retained = Publish {
            retain: true,
            ..publish("t", "x", Q2)
        };
        node.post(publisher, retained);
        node.settle();
        if is_queued {
            node.join(0, "receiver");
        }
        let events = node.payloads(watcher);
        assert_eq!(events.len(), 1, "{events:?}");
        assert!(events[0].contains("\"qos\":1"), "{}", events[0]);
        // The flag of the event that is recorded is that of the delivery.
        assert_eq!(
            events[0].contains("\"retain\":false"),
            is_queued,
            "{}",
            events[0]
        );
    }
}

#[test]
fn a_replay_that_goes_on_outdates_what_is_written_of_it() {
    assert_eq!(Written::Nothing.outdated(), Written::Nothing);
    assert_eq!(Written::Earlier.outdated(), Written::Earlier);
    assert_eq!(Written::Place.outdated(), Written::Earlier);
}

#[test]
fn a_connection_whose_session_has_ended_has_none() {
    let mut outputs = Outputs::default();
    let connection = outputs.open();
    assert_eq!(outputs.session(connection), None);
    let slot = thrum_engine::ids::Slot::FIRST;
    outputs[connection.key].begin_session(slot);
    assert_eq!(outputs.session(connection), Some(slot));
    outputs[connection.key].end_session();
    assert_eq!(outputs.session(connection), None);
    assert!(outputs.contains(connection));
}

#[test]
fn members_of_the_worker_of_a_publisher_come_first_by_that_strategy() {
    let mut node = Node::planned(2, |plan| plan.strategy = Strategy::Local);
    let members = [0, 1].map(|worker| {
        let member = node.join(worker, &format!("m{worker}"));
        node.subscribe(member, "$share/g/t", Q1);
        member
    });
    for (worker, expected) in [(0, [4, 0]), (1, [0, 4])] {
        let publisher = node.join(worker, &format!("p{worker}"));
        for _ in 0..4 {
            node.publish(publisher, "t", "x", Q1);
        }
        assert_eq!(members.map(|member| node.messages(member).len()), expected);
    }
}

#[test]
fn one_promise_of_a_message_holds_for_its_session_alone_when_memory_becomes_short() {
    let mut node = Node::planned(2, |plan| {
        plan.settings.memory_bytes = 1 << 30;
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 10;
        plan.limits().queue.policy = QueuePolicy::RejectNew;
    });
    let first = node.subscriber(0, "first", "t");
    let second = node.subscriber(0, "second", "t");
    let near = node.join(1, "near");
    node.subscribe(near, "t", Q1);
    let publisher = node.join(1, "publisher");
    node.publish(publisher, "t", "1", Q1);
    node.post(publisher, publish("t", "2", Q1));
    node.shell.turn(1);
    node.shell.set_resident(2 << 30);
    node.shell.engine(1).core.read_memory();
    node.settle();
    assert_eq!(node.count(Counter::DroppedMemoryShort), 1);
    let mut came = [node.drain(first).len(), node.drain(second).len()];
    came.sort_unstable();
    assert_eq!(came, [1, 2]);
}

#[test]
fn a_worker_that_said_it_has_memory_takes_a_message_unless_another_receiver_took_it() {
    for is_near in [false, true] {
        let mut node = Node::planned(2, |plan| {
            plan.settings.memory_bytes = 1 << 30;
            plan.limits().inflight_max = 1;
        });
        let far = node.subscriber(0, "far", "t");
        let publisher = node.join(1, "publisher");
        node.publish(publisher, "t", "1", Q1);
        if is_near {
            let near = node.join(1, "near");
            node.subscribe(near, "t", Q1);
        }
        node.shell.set_resident((1 << 30) / 100 * 91);
        node.advance_time(Duration::from_millis(20));
        node.answers(publisher);
        node.post(publisher, publish("t", "2", Q1));
        let link = node.link(publisher);
        node.shell.turn(1);
        assert!(node.shell.is_inquiring(link));
        node.shell.turn(0);
        node.shell.turn(1);
        node.shell.turn(1);
        assert_eq!(node.read(publisher).len(), 1, "it is acknowledged");
        // Memory becomes short while the message is under way.
        node.shell.set_resident(2 << 30);
        node.shell.engine(1).core.read_memory();
        node.settle();
        let dropped = node.count(Counter::DroppedMemoryShort);
        assert_eq!(dropped, u64::from(is_near));
        assert_eq!(node.drain(far).len(), if is_near { 1 } else { 2 });
    }
}

#[test]
fn all_that_a_leaving_client_has_sent_is_handled_without_waiting() {
    let mut node = Node::planned(1, short_and_waited_for(QueuePolicy::Hold));
    node.subscriber(0, "receiver", "t");
    let publisher = node.join(0, "publisher");
    for _ in 0..6 {
        node.post(publisher, publish("t", "x", Q1));
    }
    node.settle();
    assert!(node.is_held(publisher));
    node.answers(publisher);
    let connection = node.shell.connection(node.link(publisher)).unwrap();
    let engine = node.shell.engine(0);
    engine.held.release_leaving(&mut engine.core, connection);
    node.shell.release(node.link(publisher));
    node.settle();
    assert!(!node.is_held(publisher));
    assert_eq!(node.answers(publisher).len(), 3);
}

#[test]
fn a_place_that_a_message_did_not_take_goes_to_a_publisher_that_waits() {
    let mut node = Node::planned(3, |plan| {
        plan.limits().inflight_max = 1;
        plan.limits().queue.messages_max = 2;
        plan.limits().queue.policy = QueuePolicy::Hold;
        plan.settings.queue_hold = Duration::from_mins(5);
    });
    let receiver = node.subscriber(0, "receiver", "t");
    node.subscribe(receiver, "u", Q1);
    let one = node.join(1, "one");
    let two = node.join(2, "two");
    for payload in ["1", "2"] {
        node.publish(one, "t", payload, Q1);
    }
    node.post(one, publish("u", "gone", Q1));
    node.shell.turn(1);
    node.post(two, publish("t", "3", Q1));
    node.shell.turn(2);
    assert!(node.is_held(two), "the last place is promised");
    // The subscription ends while the message is under way.
    let slot = node.shell.find("receiver").unwrap().1;
    let filter = TopicFilter::parse("u").unwrap();
    assert!(node.shell.engine(0).subscribing().unsubscribe(slot, filter));
    node.settle();
    assert!(!node.is_held(two));
    assert_eq!(node.drain(receiver), ["1", "2", "3"]);
}

/// Is asked about topics.
#[derive(Debug)]
struct Asked;

impl Gatekeeper for Asked {
    fn login(&self, _login: Login, _reply: Reply<Answer>) {}

    fn has_authorizers(&self) -> bool {
        true
    }
}

#[test]
fn rules_behind_a_gatekeeper_that_is_asked_decide_nothing() {
    for has_gatekeeper in [false, true] {
        let mut shared = Shared::default();
        let rules = Rules::parse("deny all pub t", "test").unwrap();
        shared.access.policy.rules = Arc::new(rules);
        shared.access.policy.order = vec![RuleSource::Gatekeeper, RuleSource::AllClients];
        shared.access.gatekeeper = has_gatekeeper.then(|| Arc::new(Asked) as Arc<dyn Gatekeeper>);
        let rights = publish_rights(&Identity::default(), OwnRules::Known(None), &shared);
        let expected = (!has_gatekeeper).then_some(false);
        assert_eq!(rights.publish("t", Q1, true).allowed, expected);
    }
}
