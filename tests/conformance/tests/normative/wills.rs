//! When a will is published, how, and when never.

use std::time::Duration;

use thrum_conformance::bytes::{four, frame, join, text, user_property};
use thrum_conformance::packets::{Connect, DISCONNECT, Version, Will, first, unique};
use thrum_conformance::{Wire, clock};

use crate::{broker, client, message, send};

fn watcher(version: Version, topic: &str) -> Wire {
    let mut wire = client(version);
    wire.subscribe(topic, 2);
    wire
}

fn with_will(version: Version, will: Will) -> Wire {
    Wire::connect(broker(), &Connect::new(version).will(will)).0
}

// [MQTT-3.1.2-7] [MQTT-3.1.2-8] [MQTT-3.1.2-14] [MQTT3-3.1.2-8] [MQTT3-3.1.2-16]
#[test]
fn will_is_published_when_the_connection_breaks() {
    for version in Version::ALL {
        for qos in 0..=2 {
            let topic = unique("w/");
            let mut watcher = watcher(version, &topic);
            with_will(
                version,
                Will {
                    qos,
                    ..Will::new(&topic)
                },
            )
            .abandon();
            let publish = watcher.take();
            assert_eq!(
                (publish.payload.as_slice(), publish.qos),
                (&b"will"[..], qos)
            );
            assert!(!publish.retain && !publish.dup);
            // Nothing of it is retained.
            let mut late = client(version);
            late.subscribe(&topic, 1);
            late.expect_nothing_before_pingresp();
        }
    }
}

// [MQTT-3.1.2-10] [MQTT-3.14.4-3] [MQTT-3.14.4-2] [MQTT3-3.1.2-10] [MQTT3-3.14.4-3]
#[test]
fn will_is_dropped_by_a_normal_disconnect() {
    for version in Version::ALL {
        let topic = unique("w/");
        let mut watcher = watcher(version, &topic);
        let forms: &[&[u8]] = match version {
            Version::V5 => &[&[], &[0x00], &[0x00, 0x00]],
            _ => &[&[]],
        };
        for body in forms {
            let mut wire = with_will(version, Will::new(&topic));
            wire.send(&frame(first::DISCONNECT, body));
            assert_eq!(wire.closed(Duration::from_secs(5)), []);
        }
        send(&message(version, &topic, 1, "end"));
        assert_eq!(watcher.take().payload, b"end");
        watcher.expect_nothing_before_pingresp();
    }
}

// [MQTT-3.1.2-8] Any reason except normal disconnection publishes the will.
#[test]
fn will_is_published_after_a_disconnect_with_another_reason() {
    for reason in [
        0x04, 0x80, 0x81, 0x82, 0x83, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99,
    ] {
        let topic = unique("w/");
        let mut watcher = watcher(Version::V5, &topic);
        let mut wire = with_will(Version::V5, Will::new(&topic));
        wire.send(&frame(first::DISCONNECT, &[reason]));
        assert_eq!(watcher.take().payload, b"will", "{reason:#04x}");
    }
}

// [MQTT-3.1.2-8] [MQTT3-3.1.2-8] A connection that the server ends is not a normal one.
#[test]
fn will_is_published_when_the_server_ends_the_connection() {
    for version in Version::STANDARD {
        let topic = unique("w/");
        let mut watcher = watcher(version, &topic);
        let mut wire = with_will(version, Will::new(&topic));
        wire.send(&[0x36, 0x02, 0x00, 0x00]);
        wire.expect_end(0x81);
        assert_eq!(watcher.take().payload, b"will", "malformed packet");

        let connect = Connect::new(version).will(Will::new(&topic)).keep_alive(1);
        let (_silent, _) = Wire::connect(broker(), &connect);
        assert_eq!(watcher.take().payload, b"will", "keep alive");

        let connect = Connect::new(version).will(Will::new(&topic));
        let (_first, _) = Wire::connect(broker(), &connect);
        let (_second, _) = Wire::connect(
            broker(),
            &Connect {
                will: None,
                ..connect
            },
        );
        assert_eq!(watcher.take().payload, b"will", "takeover");
    }
}

// [MQTT-3.1.2-15] [MQTT3-3.1.2-17]
#[test]
fn retained_will_is_retained() {
    for version in Version::ALL {
        let topic = unique("w/");
        let mut watcher = watcher(version, &topic);
        with_will(
            version,
            Will {
                retain: true,
                ..Will::new(&topic)
            },
        )
        .abandon();
        assert!(!watcher.take().retain);
        let mut late = client(version);
        late.subscribe(&topic, 1);
        assert!(late.take().retain);
        send(&message(version, &topic, 1, "").retain());
    }
}

// [MQTT3-3.1.2-12] [MQTT-3.1.2-10]
#[test]
fn will_of_an_earlier_connection_is_not_published() {
    for version in Version::STANDARD {
        let topic = unique("w/");
        let mut watcher = watcher(version, &topic);
        let connect = Connect::new(version).persistent().will(Will::new(&topic));
        let (mut wire, _) = Wire::connect(broker(), &connect);
        wire.send(&DISCONNECT);
        wire.closed(Duration::from_secs(5));
        Wire::connect(
            broker(),
            &Connect {
                will: None,
                ..connect
            },
        )
        .0
        .abandon();
        send(&message(version, &topic, 1, "end"));
        assert_eq!(watcher.take().payload, b"end");
        watcher.expect_nothing_before_pingresp();
    }
}

// [MQTT-3.1.3-10] [MQTT-3.3.2-4] [MQTT-3.3.2-15] [MQTT-3.3.2-16] [MQTT-3.3.2-20]
#[test]
fn properties_of_a_will_are_published_with_it() {
    let topic = unique("w/");
    let mut watcher = watcher(Version::V5, &topic);
    let properties = join(&[
        &[0x01, 1],
        &join(&[&[0x02], &four(600)]),
        &join(&[&[0x03], &text("type")]),
        &join(&[&[0x08], &text("answer")]),
        &join(&[&[0x09], &text("id")]),
        &user_property("b", "1"),
        &user_property("a", "2"),
        &user_property("b", "1"),
    ]);
    with_will(
        Version::V5,
        Will {
            properties,
            ..Will::new(&topic)
        },
    )
    .abandon();
    let found = watcher.take().properties;
    assert_eq!(found.number(0x01), Some(1));
    assert!(matches!(found.number(0x02), Some(598..=600)));
    assert_eq!(found.bytes(0x03), Some(&b"type"[..]));
    assert_eq!(found.bytes(0x08), Some(&b"answer"[..]));
    assert_eq!(found.bytes(0x09), Some(&b"id"[..]));
    let pairs = [("b", "1"), ("a", "2"), ("b", "1")];
    assert_eq!(
        found.user(),
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned()))
    );
    assert_eq!(found.number(0x18), None, "the delay is for the server");
}

fn delayed(id: &str, topic: &str, delay: u32, expiry: u32) -> Connect {
    let properties = join(&[&[0x18], &four(delay)]);
    Connect {
        clean: false,
        ..Connect::new(Version::V5).client_id(id)
    }
    .properties(&join(&[&[0x11], &four(expiry)]))
    .will(Will {
        properties,
        ..Will::new(topic)
    })
}

// [MQTT-3.1.2-8]
#[test]
fn will_waits_for_its_delay_or_the_end_of_the_session() {
    for (delay, expiry, least, most) in
        [(1, 60, 900, 2_500), (60, 1, 900, 2_500), (60, 0, 0, 1_000)]
    {
        let topic = unique("w/");
        let mut watcher = watcher(Version::V5, &topic);
        let (wire, _) = Wire::connect(broker(), &delayed(&unique("s"), &topic, delay, expiry));
        let start = clock::now();
        wire.abandon();
        assert_eq!(watcher.take().payload, b"will");
        let waited = start.elapsed();
        assert!(
            waited >= Duration::from_millis(least),
            "{delay} {expiry}: {waited:?}"
        );
        assert!(
            waited <= Duration::from_millis(most),
            "{delay} {expiry}: {waited:?}"
        );
    }
}

// [MQTT-3.1.3-9]
#[test]
fn will_that_waits_is_dropped_when_the_client_returns() {
    let topic = unique("w/");
    let mut watcher = watcher(Version::V5, &topic);
    let connect = delayed(&unique("s"), &topic, 1, 60);
    Wire::connect(broker(), &connect).0.abandon();
    let (_back, connack) = Wire::connect(
        broker(),
        &Connect {
            will: None,
            ..connect
        },
    );
    assert!(connack.session_present);
    clock::sleep(Duration::from_millis(1_800));
    send(&message(Version::V5, &topic, 1, "end"));
    assert_eq!(watcher.take().payload, b"end");
    watcher.expect_nothing_before_pingresp();
}

// [MQTT-3.1.2-8] A clean start ends the session that the will waits with.
#[test]
fn will_that_waits_is_published_when_a_clean_start_ends_the_session() {
    let topic = unique("w/");
    let mut watcher = watcher(Version::V5, &topic);
    let connect = delayed(&unique("s"), &topic, 60, 60);
    Wire::connect(broker(), &connect).0.abandon();
    let clean = Connect {
        will: None,
        clean: true,
        ..connect
    };
    let (_back, connack) = Wire::connect(broker(), &clean);
    assert!(!connack.session_present);
    assert_eq!(watcher.take().payload, b"will");
}
