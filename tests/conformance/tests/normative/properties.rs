//! Properties of 5.0 that travel with a message.

use std::time::Duration;

use thrum_conformance::bytes::{binary, four, join, text, two, user_property};
use thrum_conformance::clock;
use thrum_conformance::packets::{DISCONNECT, Version, unique};

use crate::{client, message, resume, send};

// [MQTT-3.3.2-4] [MQTT-3.3.2-15] [MQTT-3.3.2-16] [MQTT-3.3.2-17] [MQTT-3.3.2-18] [MQTT-3.3.2-20]
#[test]
fn properties_are_forwarded_unaltered_and_in_order() {
    let topic = unique("p/");
    let mut subscriber = client(Version::V5);
    subscriber.subscribe(&topic, 2);
    let properties = join(&[
        &user_property("b", "1"),
        &[0x01, 0],
        &join(&[&[0x03], &text("")]),
        &user_property("a", "ü"),
        &join(&[&[0x08], &text("answer/to/me")]),
        &join(&[&[0x09], &binary(&[0, 255, 0])]),
        &user_property("b", "1"),
        &user_property("", ""),
    ]);
    for qos in 0..=2 {
        send(&message(Version::V5, &topic, qos, "x").properties(&properties));
        let found = subscriber.take().properties;
        assert_eq!(found.number(0x01), Some(0));
        assert_eq!(found.bytes(0x03), Some(&b""[..]));
        assert_eq!(found.bytes(0x08), Some(&b"answer/to/me"[..]));
        assert_eq!(found.bytes(0x09), Some(&[0, 255, 0][..]));
        let pairs = [("b", "1"), ("a", "ü"), ("b", "1"), ("", "")];
        assert_eq!(
            found.user(),
            pairs.map(|(key, value)| (key.to_owned(), value.to_owned()))
        );
        assert_eq!(found.number(0x02), None, "no expiry was set");
    }
}

// 3.3.2.3: the server adds no property that the publisher omitted.
#[test]
fn message_without_properties_has_none() {
    let topic = unique("p/");
    let mut subscriber = client(Version::V5);
    subscriber.subscribe(&topic, 1);
    for version in Version::ALL {
        send(&message(version, &topic, 1, "x"));
        assert_eq!(subscriber.take().properties.0, []);
    }
}

// A message of 5.0 reaches older clients as one of theirs.
#[test]
fn properties_do_not_reach_older_versions() {
    let topic = unique("p/");
    let mut subscribers = [client(Version::V31), client(Version::V311)];
    for subscriber in &mut subscribers {
        subscriber.subscribe(&topic, 2);
    }
    let properties = user_property("key", "value");
    for qos in 0..=2 {
        send(&message(Version::V5, &topic, qos, "plain").properties(&properties));
        for subscriber in &mut subscribers {
            assert_eq!(subscriber.take().payload, b"plain");
        }
    }
}

// [MQTT-3.3.2-6]
#[test]
fn expiry_is_forwarded_less_the_time_spent_in_the_server() {
    let topic = unique("p/");
    let id = unique("s");
    let (mut wire, _) = resume(Version::V5, &id);
    wire.subscribe(&topic, 1);
    let expiry = join(&[&[0x02], &four(100)]);
    send(&message(Version::V5, &topic, 1, "now").properties(&expiry));
    assert!(matches!(
        wire.take().properties.number(0x02),
        Some(99..=100)
    ));
    wire.send(&DISCONNECT);
    wire.closed(Duration::from_secs(5));
    send(&message(Version::V5, &topic, 1, "later").properties(&expiry));
    clock::sleep(Duration::from_millis(2_100));
    let (mut wire, _) = resume(Version::V5, &id);
    assert!(matches!(wire.take().properties.number(0x02), Some(97..=98)));
}

// [MQTT-3.3.2-5] Also for a retained message.
#[test]
fn expired_message_is_not_delivered() {
    let (queued, retained) = (unique("p/"), unique("p/"));
    let id = unique("s");
    let (mut wire, _) = resume(Version::V5, &id);
    wire.subscribe(&queued, 1);
    wire.send(&DISCONNECT);
    wire.closed(Duration::from_secs(5));
    let expiry = join(&[&[0x02], &four(1)]);
    send(&message(Version::V5, &queued, 1, "x").properties(&expiry));
    send(
        &message(Version::V5, &retained, 1, "x")
            .properties(&expiry)
            .retain(),
    );
    clock::sleep(Duration::from_millis(2_100));
    let (mut wire, _) = resume(Version::V5, &id);
    wire.subscribe(&retained, 1);
    wire.expect_nothing_before_pingresp();
}

// [MQTT-4.3.3-7] [MQTT-4.3.3-13]
#[test]
fn message_that_was_sent_no_longer_expires() {
    let topic = unique("p/");
    let id = unique("s");
    let (mut wire, _) = resume(Version::V5, &id);
    wire.subscribe(&topic, 2);
    let expiry = join(&[&[0x02], &four(1)]);
    send(&message(Version::V5, &topic, 2, "x").properties(&expiry));
    let publish = wire.publish();
    wire.abandon();
    clock::sleep(Duration::from_millis(2_100));
    let (mut wire, _) = resume(Version::V5, &id);
    let again = wire.take();
    assert_eq!((again.packet_id, again.dup), (publish.packet_id, true));
}

// [MQTT-3.3.2-12] [MQTT-3.3.2-7]
#[test]
fn every_alias_up_to_the_maximum_is_understood_until_the_connection_ends() {
    let topic = unique("p/");
    let mut subscriber = client(Version::V5);
    subscriber.subscribe(&format!("{topic}/+"), 1);
    let id = unique("s");
    let connect = thrum_conformance::packets::Connect::new(Version::V5)
        .client_id(&id)
        .persistent();
    let (mut publisher, connack) = thrum_conformance::Wire::connect(crate::broker(), &connect);
    let maximum = connack.properties.number(0x22).unwrap_or(0);
    assert!(maximum >= 1, "the server takes aliases");
    let maximum = u16::try_from(maximum).unwrap();
    let alias = |number: u16| join(&[&[0x23], &two(number)]);
    for number in 1..=maximum.min(200) {
        let name = format!("{topic}/{number}");
        publisher.deliver(&message(Version::V5, &name, 1, "full").properties(&alias(number)));
        publisher.deliver(&message(Version::V5, "", 1, "alias").properties(&alias(number)));
        for payload in [&b"full"[..], b"alias"] {
            let publish = subscriber.take();
            assert_eq!(
                (publish.topic.as_str(), &*publish.payload),
                (name.as_str(), payload)
            );
            assert_eq!(
                publish.properties.number(0x23),
                None,
                "it is the publisher's alias"
            );
        }
    }
    // The highest one counts too.
    let last = message(Version::V5, &format!("{topic}/last"), 1, "x").properties(&alias(maximum));
    publisher.deliver(&last);
    subscriber.take();
    publisher.abandon();
    let (mut publisher, present) = resume(Version::V5, &id);
    assert!(present);
    publisher.send(
        &message(Version::V5, "", 1, "x")
            .properties(&alias(1))
            .bytes(),
    );
    publisher.expect_end(0x82);
}

// [MQTT-3.1.2-26] [MQTT-3.1.2-27] [MQTT-3.3.2-8] [MQTT-3.3.2-11]
#[test]
fn aliases_towards_a_client_stay_within_its_maximum() {
    for maximum in [None, Some(0), Some(1), Some(3)] {
        let name = unique("a");
        let mut connect = thrum_conformance::packets::Connect::new(Version::V5);
        if let Some(maximum) = maximum {
            connect = connect.properties(&join(&[&[0x22], &two(maximum)]));
        }
        let (mut subscriber, _) = thrum_conformance::Wire::connect(crate::broker(), &connect);
        subscriber.subscribe(&format!("{name}/+"), 1);
        let mut known = std::collections::BTreeMap::new();
        for number in 0..40 {
            let wanted = format!("{name}/{}", number % 5);
            send(&message(Version::V5, &wanted, 1, "x"));
            let publish = subscriber.take();
            let alias = publish.properties.number(0x23);
            if let Some(alias) = alias {
                let most = u32::from(maximum.unwrap_or(0));
                assert!(
                    (1..=most).contains(&alias),
                    "{alias} with a maximum of {maximum:?}"
                );
            }
            let topic = match alias {
                Some(alias) if publish.topic.is_empty() => known.get(&alias).cloned(),
                Some(alias) => {
                    known.insert(alias, publish.topic.clone());
                    Some(publish.topic)
                }
                None => Some(publish.topic),
            };
            assert_eq!(topic, Some(wanted));
        }
    }
}
