//! The retain flag and retained messages.

use thrum_conformance::broker::is_mosquitto;
use thrum_conformance::packets::{Connect, Version, first, unique};
use thrum_conformance::{Broker, Wire};

use crate::{client, message, send};

/// Retain available.
const RETAIN_AVAILABLE: u8 = 0x25;

// [MQTT-3.3.1-5] [MQTT-3.3.1-9] [MQTT3-3.3.1-5] [MQTT3-3.3.1-6] [MQTT3-3.3.1-7] [MQTT3-3.3.1-8]
#[test]
fn last_retained_message_is_sent_with_the_flag_to_a_new_subscription() {
    for version in Version::ALL {
        let topic = unique("r/");
        send(&message(version, &topic, 1, "first").retain());
        send(&message(version, &topic, 0, "second").retain());
        let mut subscriber = client(version);
        subscriber.subscribe(&topic, 2);
        let publish = subscriber.take();
        assert!(publish.retain);
        assert_eq!(
            (publish.payload.as_slice(), publish.qos),
            (&b"second"[..], 0)
        );
        subscriber.expect_nothing_before_pingresp();
        send(&message(version, &topic, 1, "").retain());
    }
}

// [MQTT-3.3.1-12] [MQTT3-3.3.1-9]
#[test]
fn established_subscription_gets_the_message_without_the_flag() {
    for version in Version::ALL {
        let topic = unique("r/");
        let mut subscriber = client(version);
        subscriber.subscribe(&topic, 1);
        send(&message(version, &topic, 1, "x").retain());
        assert!(!subscriber.take().retain);
        send(&message(version, &topic, 1, "").retain());
    }
}

// [MQTT-3.3.1-13]
#[test]
fn retain_as_published_keeps_the_flag_of_the_publisher() {
    let topic = unique("r/");
    let mut subscriber = client(Version::V5);
    subscriber.subscribe(&topic, 0x09);
    for version in Version::STANDARD {
        send(&message(version, &topic, 1, "kept").retain());
        assert!(subscriber.take().retain);
        send(&message(version, &topic, 1, "plain"));
        assert!(!subscriber.take().retain);
    }
    send(&message(Version::V5, &topic, 1, "").retain());
}

// [MQTT-3.3.1-6] [MQTT-3.3.1-7] [MQTT3-3.3.1-10] [MQTT3-3.3.1-11]
#[test]
fn empty_retained_message_is_delivered_and_clears_the_topic() {
    for version in Version::ALL {
        let topic = unique("r/");
        let mut established = client(version);
        established.subscribe(&topic, 1);
        send(&message(version, &topic, 1, "x").retain());
        assert_eq!(established.take().payload, b"x");
        send(&message(version, &topic, 1, "").retain());
        assert_eq!(established.take().payload, b"");
        let mut late = client(version);
        late.subscribe(&topic, 1);
        late.expect_nothing_before_pingresp();
    }
}

// [MQTT-3.3.1-8] [MQTT3-3.3.1-12]
#[test]
fn message_without_the_flag_changes_nothing_retained() {
    for version in Version::ALL {
        let topic = unique("r/");
        send(&message(version, &topic, 1, "kept").retain());
        send(&message(version, &topic, 1, "passing"));
        send(&message(version, &topic, 1, ""));
        let mut late = client(version);
        late.subscribe(&topic, 1);
        assert_eq!(late.take().payload, b"kept");
        send(&message(version, &topic, 1, "").retain());
    }
}

// [MQTT-3.3.1-9] [MQTT-3.3.1-10] [MQTT-3.3.1-11] [MQTT-3.8.4-4] [MQTT3-3.8.4-3]
#[test]
fn retain_handling_decides_at_each_subscribe() {
    let topic = unique("r/");
    send(&message(Version::V5, &topic, 1, "x").retain());
    let mut subscriber = client(Version::V5);
    // Handling 1 for a new subscription, then for one that exists, then 2, then 0.
    for (options, replayed) in [(0x11, true), (0x11, false), (0x21, false), (0x01, true)] {
        subscriber.subscribe(&topic, options);
        if replayed {
            assert!(subscriber.take().retain, "{options:#04x}");
        }
        subscriber.expect_nothing_before_pingresp();
    }
    for version in [Version::V31, Version::V311] {
        let mut old = client(version);
        for _ in 0..2 {
            old.subscribe(&topic, 1);
            assert!(old.take().retain);
        }
    }
    send(&message(Version::V5, &topic, 1, "").retain());
}

// [MQTT3-3.3.1-6] [MQTT-3.3.1-9]
#[test]
fn every_matching_topic_is_replayed_once() {
    for version in Version::STANDARD {
        let name = unique("r");
        let topics: Vec<_> = (0..30).map(|number| format!("{name}/{number}")).collect();
        for topic in &topics {
            send(&message(version, topic, 1, "x").retain());
        }
        send(&message(version, &format!("{name}x/other"), 1, "x").retain());
        let mut subscriber = client(version);
        subscriber.subscribe(&format!("{name}/+"), 1);
        let mut replayed: Vec<_> = topics.iter().map(|_| subscriber.take().topic).collect();
        subscriber.expect_nothing_before_pingresp();
        replayed.sort();
        let mut expected = topics.clone();
        expected.sort();
        assert_eq!(replayed, expected);
        for topic in topics.iter().chain([&format!("{name}x/other")]) {
            send(&message(version, topic, 1, "").retain());
        }
    }
}

// 4.8.2: retained messages are not sent to shared subscriptions.
#[test]
fn shared_subscription_replays_nothing() {
    let topic = unique("r/");
    send(&message(Version::V5, &topic, 1, "x").retain());
    let mut member = client(Version::V5);
    member.subscribe(&format!("$share/g/{topic}"), 1);
    member.expect_nothing_before_pingresp();
    send(&message(Version::V5, &topic, 1, "").retain());
}

// [MQTT-3.3.1-5] [MQTT3-3.3.1-5] The limit is the broker's own.
#[test]
fn a_message_over_the_limit_is_refused_as_a_whole_or_takes_the_place_of_the_old_one() {
    if is_mosquitto() {
        return;
    }
    let broker = Broker::start_with(&[("THRUM_LIMITS__RETAINED_PAYLOAD", "10")]);
    let fresh = |version| Wire::fresh(broker.address(), version);
    for version in Version::ALL {
        for qos in [0, 1] {
            let topic = unique("r/");
            let mut publisher = fresh(version);
            publisher.deliver(&message(version, &topic, 1, "old").retain());
            let mut live = fresh(version);
            live.subscribe(&topic, 0);
            assert_eq!(live.publish().payload, b"old");
            let long = message(version, &topic, qos, "longer than the limit").retain();
            let is_refused = version == Version::V5 && qos == 1;
            if is_refused {
                publisher.send(&long.bytes());
                publisher.expect_ack(first::PUBACK, long.packet_id, &[0x97]);
            } else {
                publisher.deliver(&long);
                assert_eq!(live.publish().payload, b"longer than the limit");
            }
            publisher.expect_nothing_before_pingresp();
            live.expect_nothing_before_pingresp();
            let mut late = fresh(version);
            late.subscribe(&topic, 0);
            if is_refused {
                assert_eq!(late.publish().payload, b"old");
            }
            late.expect_nothing_before_pingresp();
        }
    }
}

// [MQTT-3.2.2-13] [MQTT-3.2.2-14]
#[test]
fn a_broker_without_retained_messages_announces_it_and_refuses_them() {
    if is_mosquitto() {
        return;
    }
    for setting in [
        ("THRUM_LIMITS__RETAINED_MESSAGES", "0"),
        ("THRUM_LIMITS__RETAIN_AVAILABLE", "false"),
    ] {
        let broker = Broker::start_with(&[setting]);
        let connect = Connect::new(Version::V5);
        let (mut wire, connack) = Wire::connect(broker.address(), &connect);
        assert_eq!(connack.properties.number(RETAIN_AVAILABLE), Some(0));
        wire.send(&message(Version::V5, "t", 1, "x").retain().bytes());
        wire.expect_end(0x9A);
        // 3.x has no such option: the message is delivered like others.
        for version in [Version::V31, Version::V311] {
            let mut live = Wire::fresh(broker.address(), version);
            live.subscribe("t", 0);
            let mut publisher = Wire::fresh(broker.address(), version);
            publisher.deliver(&message(version, "t", 1, "x").retain());
            assert_eq!(live.publish().payload, b"x");
            let mut late = Wire::fresh(broker.address(), version);
            late.subscribe("t", 0);
            late.expect_nothing_before_pingresp();
        }
    }
}
