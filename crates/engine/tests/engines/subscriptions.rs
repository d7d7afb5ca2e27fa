//! Subscriptions: their options, their limits, and the retained messages that they bring.

use std::time::Duration;

use thrum_codec::packet::{Publish, RetainHandling, SubscriptionOptions};
use thrum_codec::properties::PublishProperties;
use thrum_codec::{QoS, ReasonCode, Version};
use thrum_engine::node::metrics::Counter;
use thrum_routing::retained::Allowance;

use crate::node::{Answer, Node, connect, publish};

const Q0: QoS = QoS::AtMostOnce;
const Q1: QoS = QoS::AtLeastOnce;
const Q2: QoS = QoS::ExactlyOnce;
const QUOTA: ReasonCode = ReasonCode::QuotaExceeded;

fn options(qos: QoS) -> SubscriptionOptions {
    SubscriptionOptions {
        qos,
        ..SubscriptionOptions::default()
    }
}

fn suback(codes: &[ReasonCode]) -> [Answer; 1] {
    [Answer::Suback(codes.to_vec(), false)]
}

#[test]
fn a_session_with_several_matching_filters_gets_a_message_once() {
    for workers in [1, 2] {
        let mut node = Node::new(workers);
        let receiver = node.join(0, "receiver");
        node.subscribe_with(receiver, &["t/#"], options(Q0), Some(7));
        node.subscribe_with(receiver, &["t/+"], options(Q2), Some(3));
        node.subscribe_with(receiver, &["t/1"], options(Q1), None);
        let publisher = node.join(workers - 1, "publisher");
        node.publish(publisher, "t/1", "1", Q2);
        node.publish(publisher, "t/2", "2", Q1);
        let messages = node.messages(receiver);
        assert_eq!(messages.len(), 2);
        assert_eq!(messages[0].identifiers, [3, 7]);
        assert_eq!((messages[0].qos, messages[1].qos), (Q2, Q1));
        let expected = [
            Answer::Connected {
                session_present: false,
            },
            Answer::Pubrec(ReasonCode::Success),
            Answer::Pubcomp,
            Answer::Puback(ReasonCode::Success),
        ];
        assert_eq!(node.answers(publisher), expected);
        assert_eq!(node.count(Counter::Subscriptions), 3);
        assert_eq!(node.count(Counter::PublishReceived), 2);
        assert_eq!(node.count(Counter::PublishBytesReceived), 2);
        assert_eq!(node.count(Counter::PublishSent), 2);
    }
}

#[test]
fn more_identifiers_than_a_message_may_have_lead_to_several_messages() {
    let mut node = Node::planned(1, |plan| {
        plan.settings.subscriptions.message_identifiers = 2;
    });
    let receiver = node.join(0, "receiver");
    for (filter, identifier) in [("t", 1), ("+", 2), ("#", 3), ("t/#", 3)] {
        node.subscribe_with(receiver, &[filter], options(Q1), Some(identifier));
    }
    node.publish(receiver, "t", "1", Q1);
    let messages = node.messages(receiver).into_iter();
    let identifiers: Vec<Vec<u32>> = messages.map(|message| message.identifiers).collect();
    assert_eq!(identifiers, [vec![1, 2], vec![3]]);
    assert_eq!(node.count(Counter::LimitMessageIdentifiers), 1);
    node.unsubscribe(receiver, &["#"]);
    node.unsubscribe(receiver, &["t/#"]);
    node.publish(receiver, "t", "2", Q1);
    assert_eq!(node.messages(receiver).len(), 1);
    assert_eq!(node.count(Counter::LimitMessageIdentifiers), 1);
}

#[test]
fn a_client_with_no_local_receives_the_messages_of_others() {
    let mut node = Node::new(1);
    let receiver = node.join(0, "receiver");
    let no_local = SubscriptionOptions {
        no_local: true,
        ..options(Q1)
    };
    node.subscribe_with(receiver, &["t"], no_local, None);
    let other = node.join(0, "other");
    node.answers(receiver);
    node.publish(receiver, "t", "own", Q1);
    node.publish(other, "t", "foreign", Q1);
    assert_eq!(node.payloads(receiver), ["foreign"]);
    let no_subscribers = Answer::Puback(ReasonCode::NoMatchingSubscribers);
    assert_eq!(node.answers(receiver), [no_subscribers]);
}

#[test]
fn the_retain_flag_stays_where_the_subscription_asks_for_it() {
    for workers in [1, 2] {
        let mut node = Node::new(workers);
        let plain = node.join(0, "plain");
        node.subscribe(plain, "t", Q1);
        let published = node.join(0, "published");
        let as_published = SubscriptionOptions {
            retain_as_published: true,
            ..options(Q1)
        };
        node.subscribe_with(published, &["t", "$share/g/t"], as_published, None);
        let publisher = node.join(workers - 1, "publisher");
        node.retain(publisher, "t", "1");
        node.publish(publisher, "t", "2", Q1);
        let flags = |node: &mut Node, peer| -> Vec<bool> {
            let messages = node.messages(peer).into_iter();
            messages.map(|message| message.retain).collect()
        };
        assert_eq!(flags(&mut node, plain), [false, false]);
        assert_eq!(flags(&mut node, published), [true, true, false, false]);
    }
}

#[test]
fn retained_messages_are_sent_by_the_retain_handling_of_the_subscription() {
    let mut node = Node::new(2);
    let publisher = node.join(1, "publisher");
    node.retain(publisher, "t/1", "1");
    node.retain(publisher, "t/2", "2");
    node.retain(publisher, "t/2", "");
    let receiver = node.join(0, "receiver");
    let handling = |retain_handling| SubscriptionOptions {
        retain_handling,
        ..options(Q0)
    };
    let mut received_after = |filter: &str, retain_handling| {
        node.subscribe_with(receiver, &[filter], handling(retain_handling), Some(4));
        let messages = node.messages(receiver);
        let is_marked = |message: &crate::node::ReceivedMessage| {
            message.retain && message.qos == Q0 && message.identifiers == [4]
        };
        assert!(messages.iter().all(is_marked), "{messages:?}");
        messages.len()
    };
    assert_eq!(received_after("t/#", RetainHandling::Never), 0);
    assert_eq!(received_after("t/#", RetainHandling::SendIfNew), 0);
    assert_eq!(received_after("t/#", RetainHandling::Send), 1);
    assert_eq!(received_after("t/#", RetainHandling::Send), 1);
    assert_eq!(received_after("t/+", RetainHandling::SendIfNew), 1);
    assert_eq!(received_after("$share/g/t/+", RetainHandling::Send), 0);
    assert_eq!(received_after("u/#", RetainHandling::Send), 0);
    assert_eq!(received_after("t/1", RetainHandling::Send), 1);
}

#[test]
fn many_retained_messages_arrive_as_the_client_reads_them_and_each_once() {
    for workers in [1, 3] {
        let mut node = Node::planned(workers, |plan| {
            plan.limits().queue.messages_max = 10;
            plan.limits().inflight_max = 2;
        });
        let publisher = node.join(0, "publisher");
        let mut expected = Vec::new();
        for number in 0..200 {
            let payload = format!("{number:03}");
            node.retain(publisher, &format!("t/{number}"), &payload);
            expected.push(payload);
        }
        assert_eq!(node.shell.node.retained.size().0, 200);
        let receiver = node.join(workers - 1, "receiver");
        node.set_acknowledges(receiver, false);
        node.subscribe(receiver, "t/#", Q1);
        let (worker, slot) = node.shell.find("receiver").unwrap();
        let session = &node.shell.engine(worker).core.sessions[slot].session;
        let (queued, _, inflight) = session.outbound().backlog();
        assert!(queued <= 5 && inflight == 2, "{queued} {inflight}");
        let mut received = node.drain(receiver);
        received.sort_unstable();
        assert_eq!(received, expected, "{workers} workers");
        let client = &node.shell.engine(worker).core.sessions[slot];
        let rare = client.rare.as_deref();
        assert!(rare.is_none_or(|rare| rare.replays.is_empty()));
    }
}

#[test]
fn replays_of_a_turn_visit_a_part_of_the_topics_and_continue_in_the_next_one() {
    let mut node = Node::planned(1, |plan| {
        plan.settings.retained.message_count = 10_000;
        plan.settings.retained.bytes = 1 << 30;
    });
    let publisher = node.join(0, "publisher");
    for number in 0..5_000 {
        let topic = format!("t/{number}");
        node.post(
            publisher,
            Publish {
                retain: true,
                ..publish(&topic, "x", Q0)
            },
        );
    }
    node.settle();
    let one = node.join(0, "one");
    let two = node.join(0, "two");
    node.shell.turn(0);
    for peer in [one, two] {
        let filters = [thrum_codec::TopicFilter::parse("+/4999").unwrap()];
        let requests = filters.map(|filter| thrum_codec::packet::SubscriptionRequest {
            filter,
            options: options(Q0),
        });
        let subscribe = thrum_codec::packet::Subscribe {
            packet_id: thrum_codec::PacketId::new(1).unwrap(),
            properties: thrum_codec::properties::SubscribeProperties::default(),
            requests: thrum_codec::packet::SubscriptionRequests::Listed(&requests),
        };
        node.send(peer, &thrum_codec::packet::Packet::Subscribe(subscribe));
    }
    node.shell.turn(0);
    node.settle();
    assert_eq!(node.payloads(one), ["x"]);
    assert_eq!(node.payloads(two), ["x"]);
    assert!(!node.shell.engine(0).replays.is_waiting());
}

#[test]
fn a_message_that_cannot_be_retained_is_refused_where_a_reason_code_exists() {
    let mut node = Node::planned(1, |plan| plan.settings.retained.message_count = 1);
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "#", Q1);
    let mut old = connect("old");
    old.version = Version::V311;
    old.properties.session_expiry = None;
    let old = node.join_as(0, &old);
    let new = node.join(0, "new");
    node.answers(new);
    node.retain(new, "one", "1");
    node.retain(new, "two", "2");
    let refused = Answer::Puback(QUOTA);
    assert_eq!(
        node.answers(new),
        [Answer::Puback(ReasonCode::Success), refused]
    );
    let counts = [Counter::RetainedRefused, Counter::RetainedLost];
    assert_eq!(counts.map(|one| node.count(one)), [1, 0], "it was told");
    node.retain(old, "three", "3");
    assert_eq!(node.payloads(receiver), ["1", "3"]);
    assert_eq!(counts.map(|one| node.count(one)), [2, 1]);
    assert_eq!(node.shell.node.retained.size().0, 1);
}

#[test]
fn a_topic_whose_message_cannot_be_retained_shows_no_older_one() {
    let mut node = Node::planned(1, |plan| plan.settings.retained.payload_bytes = 3);
    let publisher = node.join(0, "publisher");
    node.retain(publisher, "t", "old");
    let big = publish("t", "newer", Q0);
    node.post(
        publisher,
        Publish {
            retain: true,
            ..big
        },
    );
    node.settle();
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "t", Q1);
    assert_eq!(node.payloads(receiver), Vec::<String>::new());
    assert_eq!(node.shell.node.retained.size(), (0, 0));
}

#[test]
fn retained_messages_that_have_expired_are_not_shown_and_are_swept() {
    let mut node = Node::new(3);
    let publisher = node.join(0, "publisher");
    for number in 0..10 {
        let topic = format!("t/{number}");
        let properties = PublishProperties {
            message_expiry: (number < 7).then_some(10),
            ..PublishProperties::default()
        };
        let publish = publish(&topic, "x", Q1);
        node.post(
            publisher,
            Publish {
                retain: true,
                properties,
                ..publish
            },
        );
    }
    node.settle();
    node.advance_time(Duration::from_secs(11));
    let receiver = node.join(0, "receiver");
    node.subscribe(receiver, "t/#", Q1);
    assert_eq!(node.messages(receiver).len(), 3);
    let core = &mut node.shell.engine(0).core;
    core.durable
        .sweep_retained(&core.node.retained, core.turn.now);
    let store = &node.shell.node.retained;
    assert_eq!(store.size().0, 3);
    let mut listed = Vec::new();
    let mut allowance = Allowance {
        messages: 100,
        visits: 1_000,
    };
    let end = store.list("t/#", None, &mut allowance, &mut listed);
    assert!(end.is_none());
    assert_eq!(listed.len(), 3);
    assert_eq!(allowance.messages, 97);
    let is_plain = |one: &thrum_engine::retained::Listed| {
        !one.is_withheld && one.source.is_none() && one.message.payload() == b"x"
    };
    assert!(listed.iter().all(is_plain));
}

#[test]
fn a_client_may_have_as_many_subscriptions_as_the_limits_say() {
    let mut node = Node::planned(1, |plan| {
        plan.limits().subscriptions_max = 3;
        plan.limits().topic_bytes_max = 10;
        plan.limits().topic_levels_max = 3;
        plan.settings.subscriptions.shared_max = 1;
        plan.settings.subscriptions.packet_filters_max = 3;
    });
    let peer = node.join(0, "peer");
    node.answers(peer);
    let invalid = ReasonCode::TopicFilterInvalid;
    node.subscribe_with(
        peer,
        &["a/a/a/a", "12345678901", "$share"],
        options(Q0),
        None,
    );
    assert_eq!(node.answers(peer), suback(&[invalid; 3]));
    assert_eq!(node.count(Counter::LimitTopic), 2);
    let filters = ["$share/a/a", "$share/a/b", "12345678", "a/a/a"];
    node.subscribe_with(peer, &filters, options(Q2), None);
    let granted = ReasonCode::GrantedQoS2;
    assert_eq!(
        node.answers(peer),
        suback(&[granted, QUOTA, granted, QUOTA])
    );
    assert_eq!(node.count(Counter::LimitPacketFilters), 1);
    assert_eq!(node.count(Counter::LimitSharedSubscriptions), 1);
    node.subscribe_with(peer, &["a/a/a", "b", "$share/a/a"], options(Q1), None);
    let codes = [ReasonCode::GrantedQoS1, QUOTA, ReasonCode::GrantedQoS1];
    assert_eq!(node.answers(peer), suback(&codes));
    assert_eq!(node.count(Counter::LimitSubscriptions), 1);
    assert_eq!(node.count(Counter::Subscriptions), 3);
    assert_eq!(node.count(Counter::SharedSubscriptions), 1);
    node.unsubscribe(peer, &["$share/a/a", "$share/a/b", "b", "12345678"]);
    let none = ReasonCode::NoSubscriptionExisted;
    let left_out = ReasonCode::ImplementationSpecificError;
    let codes = vec![ReasonCode::Success, none, none, left_out];
    assert_eq!(node.answers(peer), [Answer::Unsuback(codes)]);
    assert_eq!(node.count(Counter::LimitPacketFilters), 2);
    assert_eq!(node.count(Counter::Subscriptions), 2);
    assert_eq!(node.count(Counter::SharedSubscriptions), 0);
    node.cut(peer);
    node.advance_time(Duration::from_secs(100_001));
    assert_eq!(node.count(Counter::Subscriptions), 0);
    assert_eq!(node.count(Counter::SessionsExpired), 1);
    assert_eq!(node.shell.engine(0).core.sessions.len(), 0);
}

#[test]
fn features_that_are_off_are_refused_by_their_own_codes() {
    let mut node = Node::planned(1, |plan| {
        plan.limits().wildcard_available = false;
        plan.limits().shared_available = false;
        plan.limits().maximum_qos = Q1;
        plan.settings.subscriptions.bytes_max = 200;
    });
    let peer = node.join(0, "peer");
    node.answers(peer);
    let long = "x".repeat(300);
    node.subscribe_with(peer, &["+", "$share/g/t", "t", &long], options(Q2), None);
    let codes = [
        ReasonCode::WildcardSubscriptionsNotSupported,
        ReasonCode::SharedSubscriptionsNotSupported,
        ReasonCode::GrantedQoS1,
        QUOTA,
    ];
    assert_eq!(node.answers(peer), suback(&codes));
    assert_eq!(node.count(Counter::LimitSubscriptionBytes), 1);
    node.publish(peer, "t", "1", Q1);
    assert_eq!(node.messages(peer)[0].qos, Q1);
}

#[test]
fn a_client_of_version_3_with_too_many_filters_in_unsubscribe_is_disconnected() {
    let mut node = Node::planned(1, |plan| plan.settings.subscriptions.packet_filters_max = 1);
    let mut old = connect("old");
    old.version = Version::V311;
    old.properties.session_expiry = None;
    let old = node.join_as(0, &old);
    node.subscribe(old, "a", Q1);
    node.unsubscribe(old, &["a"]);
    assert_eq!(node.count(Counter::ClientsConnected), 1);
    assert_eq!(node.count(Counter::Subscriptions), 0);
    node.unsubscribe(old, &["a", "b"]);
    assert_eq!(node.count(Counter::ClientsConnected), 0);
}

#[test]
fn a_mount_point_keeps_the_topics_of_clients_apart() {
    for workers in [1, 2] {
        let mut node = Node::planned(workers, |plan| {
            plan.mounts.insert("inside", "house/");
        });
        let outside = node.join(0, "outside");
        node.subscribe(outside, "house/#", Q1);
        let inside = node.join(workers - 1, "inside");
        node.subscribe(inside, "t", Q1);
        node.publish(inside, "t", "1", Q1);
        node.publish(outside, "t", "2", Q1);
        node.publish(outside, "house/t", "3", Q1);
        assert_eq!(node.payloads(outside), ["1", "3"]);
        let messages = node.messages(inside);
        let seen: Vec<&str> = messages.iter().map(|one| one.topic.as_str()).collect();
        assert_eq!(seen, ["t", "t"]);
        node.unsubscribe(inside, &["t"]);
        node.publish(outside, "house/t", "4", Q1);
        assert_eq!(node.payloads(inside), Vec::<String>::new());
    }
}

#[test]
fn a_bridge_gets_retain_flags_and_none_of_its_own_messages() {
    let mut node = Node::new(1);
    let mut bridge = connect("bridge");
    bridge.version = Version::V311;
    bridge.is_bridge = true;
    bridge.properties.session_expiry = None;
    let bridge = node.join_as(0, &bridge);
    node.subscribe(bridge, "t", Q1);
    let publisher = node.join(0, "publisher");
    node.retain(bridge, "t", "own");
    node.retain(publisher, "t", "foreign");
    let messages = node.messages(bridge);
    assert_eq!(messages.len(), 1);
    assert!(messages[0].retain);
}

#[test]
fn topics_of_the_server_are_closed_to_clients() {
    let mut node = Node::new(1);
    let peer = node.join(0, "peer");
    node.subscribe(peer, "$SYS/#", Q1);
    node.subscribe(peer, "$other/#", Q1);
    node.answers(peer);
    for topic in ["$SYS/x", "$share/x", "$queue", "$events/x", "$other/x"] {
        node.publish(peer, topic, "1", Q1);
    }
    let denied = Answer::Puback(ReasonCode::NotAuthorized);
    let mut expected = vec![denied; 4];
    expected.push(Answer::Puback(ReasonCode::Success));
    assert_eq!(node.answers(peer), expected);
    assert_eq!(node.messages(peer).len(), 1);
}

#[test]
fn a_payload_over_the_limit_is_not_delivered() {
    let mut node = Node::planned(1, |plan| plan.limits().payload_bytes_max = 3);
    let peer = node.subscriber(0, "peer", "t");
    node.publish(peer, "t", "123", Q1);
    node.publish(peer, "t", "1234", Q1);
    node.publish(peer, "t", "1234", Q0);
    let answers = [ReasonCode::Success, QUOTA].map(Answer::Puback);
    assert_eq!(node.answers(peer), answers);
    assert_eq!(node.payloads(peer), ["123"]);
    assert_eq!(node.count(Counter::LimitPayload), 2);
    assert_eq!(node.count(Counter::PublishReceived), 3);
}

#[test]
fn messages_are_upgraded_to_the_least_quality_of_service_in_force() {
    for workers in [1, 2] {
        let mut node = Node::planned(workers, |plan| plan.settings.published_qos_min = Q1);
        let receiver = node.subscriber(0, "receiver", "t");
        let zero = node.join(0, "zero");
        node.subscribe(zero, "t", Q0);
        let publisher = node.join(workers - 1, "publisher");
        node.publish(publisher, "t", "1", Q0);
        assert_eq!(node.messages(receiver)[0].qos, Q1);
        assert_eq!(node.messages(zero)[0].qos, Q0);
    }
}

#[test]
fn a_message_is_routed_by_the_subscriptions_of_its_moment() {
    let mut node = Node::new(3);
    let publisher = node.join(0, "publisher");
    let here = node.join(0, "here");
    let there = node.join(2, "there");
    for round in 0..3 {
        node.answers(publisher);
        node.publish(publisher, "t/x", "none", Q1);
        let no_subscribers = Answer::Puback(ReasonCode::NoMatchingSubscribers);
        assert_eq!(node.answers(publisher), [no_subscribers], "round {round}");
        for filter in ["t/x", "t/+", "#"] {
            node.subscribe(here, filter, Q1);
            node.publish(publisher, "t/x", filter, Q1);
            node.subscribe(there, filter, Q1);
            node.publish(publisher, "t/x", filter, Q1);
            node.unsubscribe(here, &[filter]);
            node.publish(publisher, "t/x", filter, Q1);
            node.unsubscribe(there, &[filter]);
        }
        assert_eq!(node.messages(here).len(), 6, "round {round}");
        assert_eq!(node.messages(there).len(), 6, "round {round}");
    }
}

#[test]
fn retained_messages_wait_for_a_client_that_reads_nothing() {
    for qos in [Q0, Q1] {
        let mut node = Node::planned(1, |plan| plan.settings.output_bytes = 200);
        let publisher = node.join(0, "publisher");
        for number in 0..150 {
            node.retain(publisher, &format!("t/{number}"), "x");
        }
        let receiver = node.join(0, "receiver");
        node.set_slow(receiver, true);
        node.subscribe(receiver, "t/#", qos);
        assert_eq!(node.count(Counter::DroppedSlowConsumer), 0);
        assert!(node.count(Counter::PublishSent) < 40);
        node.set_slow(receiver, false);
        assert_eq!(node.messages(receiver).len(), 150, "{qos:?}");
        assert_eq!(node.count(Counter::DroppedSlowConsumer), 0);
    }
}
