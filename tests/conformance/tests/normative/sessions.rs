//! The state of a session, and retransmission when its client returns.

use std::time::Duration;

use thrum_conformance::bytes::{four, frame, join};
use thrum_conformance::packets::{Connect, DISCONNECT, Version, ack, first, subscribe, unique};
use thrum_conformance::{Wire, clock};

use crate::{broker, client, message, resume, send};

/// A session with a subscription, whose client has disconnected.
fn leave_subscribed(version: Version, topic: &str, qos: u8) -> String {
    let id = unique("s");
    let (mut wire, _) = resume(version, &id);
    wire.subscribe(topic, qos);
    wire.send(&DISCONNECT);
    assert_eq!(wire.closed(Duration::from_secs(5)), []);
    id
}

// [MQTT-4.5.0-1] [MQTT-4.6.0-5] [MQTT-4.6.0-6] [MQTT3-4.5.0-1] [MQTT3-4.6.0-5] [MQTT3-4.6.0-6]
// [MQTT3-3.1.2-5] [MQTT-3.1.2-23] [MQTT-4.1.0-1] [MQTT3-4.1.0-1]
#[test]
fn messages_wait_in_order_for_a_client_that_is_away() {
    for version in Version::STANDARD {
        let topic = unique("t/");
        let id = leave_subscribed(version, &topic, 2);
        let mut publisher = client(version);
        for number in 0..50 {
            let message = message(version, &topic, 1 + number % 2, &number.to_string());
            publisher.deliver(&message.packet_id(u16::from(number) + 1));
        }
        let (mut wire, present) = resume(version, &id);
        assert!(present);
        // The order is promised within a topic and a quality of service.
        let received: Vec<_> = (0..50).map(|_| wire.take()).collect();
        for qos in [1, 2] {
            let of_qos: Vec<_> = received
                .iter()
                .filter(|publish| publish.qos == qos)
                .map(|publish| String::from_utf8_lossy(&publish.payload).into_owned())
                .collect();
            let expected: Vec<_> = (0..50_u8)
                .filter(|n| 1 + n % 2 == qos)
                .map(|n| n.to_string())
                .collect();
            assert_eq!(of_qos, expected);
        }
        assert!(
            received.iter().all(|publish| !publish.dup),
            "none was sent before"
        );
    }
}

// [MQTT-4.4.0-1] [MQTT-3.3.1-1] [MQTT-2.2.1-4] [MQTT-4.3.2-3] [MQTT3-4.4.0-1] [MQTT3-3.3.1-1]
// [MQTT3-4.3.2-1]
#[test]
fn unacknowledged_messages_are_sent_again_in_order_with_dup_and_their_identifiers() {
    for version in Version::STANDARD {
        for qos in [1, 2] {
            let topic = unique("t/");
            let id = unique("s");
            let (mut wire, _) = resume(version, &id);
            wire.subscribe(&topic, qos);
            for payload in ["1", "2", "3"] {
                send(&message(version, &topic, qos, payload));
            }
            let first_time: Vec<_> = (0..3).map(|_| wire.publish()).collect();
            assert!(
                first_time
                    .iter()
                    .all(|publish| !publish.dup && publish.packet_id != 0)
            );
            wire.abandon();

            let (mut wire, present) = resume(version, &id);
            assert!(present);
            for before in first_time {
                let again = wire.take();
                assert!(again.dup, "it was sent before");
                assert_eq!(
                    (again.packet_id, again.payload),
                    (before.packet_id, before.payload)
                );
            }
            wire.expect_nothing_before_pingresp();
        }
    }
}

// [MQTT-4.4.0-1] [MQTT-4.3.3-4] [MQTT-4.3.3-5] [MQTT-4.3.3-6] [MQTT3-4.3.3-1]
#[test]
fn pubrel_is_sent_again_and_publish_is_not() {
    for version in Version::STANDARD {
        let topic = unique("t/");
        let id = unique("s");
        let (mut wire, _) = resume(version, &id);
        wire.subscribe(&topic, 2);
        send(&message(version, &topic, 2, "x"));
        let publish = wire.publish();
        wire.send(&ack(first::PUBREC, publish.packet_id));
        wire.expect_ack(0x62, publish.packet_id, &[0]);
        wire.abandon();

        let (mut wire, _) = resume(version, &id);
        wire.expect_ack(0x62, publish.packet_id, &[0]);
        wire.send(&ack(first::PUBCOMP, publish.packet_id));
        wire.expect_nothing_before_pingresp();
        wire.abandon();
        let (mut wire, _) = resume(version, &id);
        wire.expect_nothing_before_pingresp();
    }
}

// [MQTT-4.4.0-1] Nothing is sent again while the connection lasts.
#[test]
fn nothing_is_sent_again_on_the_same_connection() {
    for version in Version::STANDARD {
        let topic = unique("t/");
        let mut wire = client(version);
        wire.subscribe(&topic, 1);
        send(&message(version, &topic, 1, "x"));
        let publish = wire.publish();
        clock::sleep(Duration::from_millis(1_200));
        wire.expect_nothing_before_pingresp();
        wire.send(&ack(first::PUBACK, publish.packet_id));
        wire.expect_nothing_before_pingresp();
    }
}

// [MQTT-4.3.3-8] [MQTT-4.3.3-10] [MQTT-4.3.3-11] [MQTT3-4.3.3-2]
#[test]
fn qos_2_message_of_a_publisher_that_reconnects_is_delivered_once() {
    for version in Version::STANDARD {
        let topic = unique("t/");
        let mut subscriber = client(version);
        subscriber.subscribe(&topic, 2);
        let id = unique("s");
        let (mut publisher, _) = resume(version, &id);
        let publish = message(version, &topic, 2, "once").packet_id(5);
        publisher.send(&publish.bytes());
        assert_eq!(publisher.packet("PUBREC").ack(version).packet_id, 5);
        publisher.abandon();

        let (mut publisher, present) = resume(version, &id);
        assert!(present);
        publisher.deliver(&publish.dup());
        assert_eq!(subscriber.take().payload, b"once");
        send(&message(version, &topic, 2, "end"));
        assert_eq!(subscriber.take().payload, b"end", "not twice");
    }
}

// [MQTT-4.3.3-12] [MQTT-4.3.2-5] [MQTT3-4.3.2-2]
#[test]
fn identifier_means_a_new_message_after_its_flow_is_over() {
    for version in Version::STANDARD {
        let topic = unique("t/");
        let mut subscriber = client(version);
        subscriber.subscribe(&topic, 2);
        let mut publisher = client(version);
        for (number, qos) in [(1, 1), (2, 1), (3, 2), (4, 2)] {
            let message = message(version, &topic, qos, &number.to_string()).packet_id(5);
            publisher.deliver(&if number % 2 == 0 {
                message.dup()
            } else {
                message
            });
        }
        for number in 1..=4 {
            let publish = subscriber.take();
            assert_eq!(publish.payload, number.to_string().as_bytes());
            // [MQTT-3.3.1-3] [MQTT3-3.3.1-3] the flag of the publisher is not passed on
            assert!(!publish.dup);
        }
    }
}

// [MQTT-4.1.0-2] [MQTT-3.1.2-23]
#[test]
fn session_ends_when_its_expiry_has_passed() {
    let id = unique("s");
    let short = Connect {
        clean: false,
        ..Connect::new(Version::V5).client_id(&id)
    }
    .properties(&join(&[&[0x11], &four(1)]));
    Wire::connect(broker(), &short).0.abandon();
    let (wire, connack) = Wire::connect(broker(), &short);
    assert!(connack.session_present, "it has not passed yet");
    wire.abandon();
    clock::sleep(Duration::from_millis(2_500));
    assert!(!Wire::connect(broker(), &short).1.session_present);
}

// [MQTT-3.1.2-23] DISCONNECT may change the expiry that CONNECT set, down to zero.
#[test]
fn disconnect_changes_the_session_expiry() {
    let id = unique("s");
    let (mut wire, _) = resume(Version::V5, &id);
    wire.send(&frame(first::DISCONNECT, &join(&[&[0, 5, 0x11], &four(0)])));
    assert_eq!(wire.closed(Duration::from_secs(5)), []);
    assert!(!resume(Version::V5, &id).1);
}

// [MQTT3-3.1.2-6] [MQTT-3.1.2-4]
#[test]
fn clean_start_forgets_queued_messages_and_subscriptions() {
    for version in Version::STANDARD {
        let topic = unique("t/");
        let id = leave_subscribed(version, &topic, 1);
        send(&message(version, &topic, 1, "queued"));
        let clean = Connect::new(version).client_id(&id);
        let (mut wire, _) = Wire::connect(broker(), &clean);
        send(&message(version, &topic, 1, "unsubscribed"));
        wire.expect_nothing_before_pingresp();
    }
}

// [MQTT3-3.1.2-7] Retained messages are not part of a session.
#[test]
fn retained_messages_outlive_the_session_of_their_publisher() {
    for version in Version::STANDARD {
        let topic = unique("t/");
        let mut publisher = client(version);
        publisher.deliver(&message(version, &topic, 1, "kept").retain());
        publisher.send(&DISCONNECT);
        publisher.closed(Duration::from_secs(5));
        let mut late = client(version);
        late.subscribe(&topic, 0);
        assert_eq!(late.publish().payload, b"kept");
        send(&message(version, &topic, 1, "").retain());
    }
}

// [MQTT-3.1.3-2] [MQTT3-3.1.3-2]
#[test]
fn takeover_hands_the_session_to_the_new_connection() {
    for version in Version::STANDARD {
        let topic = unique("t/");
        let id = unique("s");
        let (mut old, _) = resume(version, &id);
        old.subscribe(&topic, 1);
        send(&message(version, &topic, 1, "unacknowledged"));
        let before = old.publish();
        let (mut new, present) = resume(version, &id);
        assert!(present);
        old.expect_end(0x8E);
        let again = new.take();
        assert!(again.dup);
        assert_eq!(again.packet_id, before.packet_id);
        send(&message(version, &topic, 1, "next"));
        assert_eq!(new.take().payload, b"next");
    }
}

// [MQTT-4.4.0-2]
#[test]
fn message_that_the_client_refused_is_not_sent_again() {
    let topic = unique("t/");
    let id = unique("s");
    let (mut wire, _) = resume(Version::V5, &id);
    wire.send(&subscribe(Version::V5, 1, &[(&topic, 2)]));
    wire.expect_ack(0x90, 1, &[2]);
    for (qos, kind) in [(1, first::PUBACK), (2, first::PUBREC)] {
        send(&message(Version::V5, &topic, qos, "x"));
        let [high, low] = wire.publish().packet_id.to_be_bytes();
        wire.send(&frame(kind, &[high, low, 0x80]));
    }
    wire.expect_nothing_before_pingresp();
    wire.abandon();
    let (mut wire, present) = resume(Version::V5, &id);
    assert!(present);
    wire.expect_nothing_before_pingresp();
}
