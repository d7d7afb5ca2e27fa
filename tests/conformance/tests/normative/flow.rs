//! Receive maximum and maximum packet size, in both directions.

use std::collections::VecDeque;

use thrum_conformance::bytes::{four, join, two, user_property};
use thrum_conformance::packets::{
    Connect, PINGREQ, Publish, Version, ack, first, subscribe, unique, unsubscribe,
};
use thrum_conformance::{Event, Wire, received};

use crate::{broker, client, message, send};

fn with_receive_maximum(maximum: u16) -> Wire {
    let connect = Connect::new(Version::V5).properties(&join(&[&[0x21], &two(maximum)]));
    Wire::connect(broker(), &connect).0
}

/// Acknowledges to the end; for QoS 2 it shows on the way that PUBREC alone makes no room.
fn acknowledge(wire: &mut Wire, publish: &received::Publish) {
    if publish.qos == 1 {
        wire.send(&ack(first::PUBACK, publish.packet_id));
        return;
    }
    wire.send(&ack(first::PUBREC, publish.packet_id));
    wire.expect_ack(0x62, publish.packet_id, &[0]);
    wire.expect_nothing_before_pingresp();
    wire.send(&ack(first::PUBCOMP, publish.packet_id));
}

// [MQTT-3.3.4-9] [MQTT-3.3.4-10] [MQTT-4.9.0-1] [MQTT-4.9.0-2] [MQTT-4.9.0-3]
#[test]
fn no_more_than_the_receive_maximum_is_in_flight() {
    const MESSAGES: u16 = 9;
    for (maximum, qos) in [(1, 1), (1, 2), (3, 1), (3, 2)] {
        let topic = unique("f/");
        let mut wire = with_receive_maximum(maximum);
        wire.subscribe(&topic, qos);
        for number in 0..MESSAGES {
            send(&message(Version::V5, &topic, qos, &number.to_string()));
        }
        let mut open: VecDeque<_> = (0..maximum).map(|_| wire.publish()).collect();
        for number in 0..MESSAGES {
            // No more messages arrive, but everything else is still answered.
            wire.expect_nothing_before_pingresp();
            let publish = open.pop_front().expect("the window is full until the end");
            assert_eq!(publish.payload, number.to_string().as_bytes());
            acknowledge(&mut wire, &publish);
            if number + maximum < MESSAGES {
                open.push_back(wire.publish());
            }
        }
        wire.expect_nothing_before_pingresp();
    }
}

// [MQTT-3.3.4-10] QoS 0 passes a full window.
#[test]
fn full_window_does_not_hold_messages_of_qos_0() {
    let topic = unique("f/");
    let mut wire = with_receive_maximum(1);
    wire.subscribe(&topic, 1);
    send(&message(Version::V5, &topic, 1, "window"));
    assert_eq!(wire.publish().payload, b"window");
    send(&message(Version::V5, &topic, 0, "passes"));
    assert_eq!(wire.publish().payload, b"passes");
}

// [MQTT-4.9.0-2] The window counts after a reconnect as well.
#[test]
fn redelivery_respects_the_receive_maximum() {
    let topic = unique("f/");
    let id = unique("s");
    let connect = Connect::new(Version::V5).client_id(&id).persistent();
    let (mut wire, _) = Wire::connect(broker(), &connect);
    wire.subscribe(&topic, 1);
    for payload in ["1", "2", "3"] {
        send(&message(Version::V5, &topic, 1, payload));
    }
    let before: Vec<_> = (0..3).map(|_| wire.publish().packet_id).collect();
    wire.abandon();
    let narrow = connect.properties(&join(&[&[0x21], &two(1)]));
    let (mut wire, _) = Wire::connect(broker(), &narrow);
    for packet_id in before {
        let again = wire.publish();
        assert_eq!((again.packet_id, again.dup), (packet_id, true));
        wire.expect_nothing_before_pingresp();
        wire.send(&ack(first::PUBACK, packet_id));
    }
    wire.expect_nothing_before_pingresp();
}

// [MQTT-3.1.2-24] [MQTT-3.1.2-25]
#[test]
fn message_over_the_clients_maximum_counts_as_delivered() {
    let topic = unique("f/");
    let size = 200_usize;
    let maximum = four(u32::try_from(size).unwrap());
    let connect = Connect::new(Version::V5).properties(&join(&[&[0x27], &maximum, &[0x21, 0, 1]]));
    let (mut wire, _) = Wire::connect(broker(), &connect);
    wire.subscribe(&topic, 1);
    // Fixed header, topic, packet identifier, property length.
    let overhead = 3 + 2 + topic.len() + 2 + 1;
    let exact = "x".repeat(size - overhead);
    for payload in [&*"y".repeat(1_000), &exact, &format!("{exact}z"), "end"] {
        send(&message(Version::V5, &topic, 1, payload));
    }
    assert_eq!(
        wire.take().payload,
        exact.as_bytes(),
        "the largest that fits"
    );
    assert_eq!(wire.take().payload, b"end", "the window is free again");
    wire.expect_nothing_before_pingresp();
}

// [MQTT-3.4.2-2] [MQTT-3.4.2-3] [MQTT-3.5.2-2] [MQTT-3.5.2-3] [MQTT-3.6.2-2] [MQTT-3.6.2-3]
// [MQTT-3.7.2-2] [MQTT-3.7.2-3] [MQTT-3.9.2-1] [MQTT-3.9.2-2] [MQTT-3.11.2-1] [MQTT-3.11.2-2]
#[test]
fn acknowledgements_stay_within_the_clients_maximum() {
    // The CONNACK fits, and each acknowledgement without a reason string.
    let connect = Connect::new(Version::V5).properties(&join(&[&[0x27], &four(20)]));
    let (mut wire, _) = Wire::connect(broker(), &connect);
    let topic = unique("f/");
    for (sent, kind) in [
        (message(Version::V5, &topic, 1, "x").packet_id(1).bytes(), 4),
        (message(Version::V5, &topic, 2, "x").packet_id(2).bytes(), 5),
        (ack(first::PUBREC, 9), 6),
        (ack(first::PUBREL, 9), 7),
        (subscribe(Version::V5, 7, &[("a/#/b", 1)]), 9),
        (unsubscribe(Version::V5, 8, &[&topic]), 11),
    ] {
        wire.send(&sent);
        let packet = wire.packet("an acknowledgement");
        if packet.kind() == 14 {
            assert_eq!(
                kind, 9,
                "only a filter that is no filter may end the connection"
            );
            assert!(packet.body.len() <= 18, "{packet:?}");
            wire = Wire::connect(broker(), &connect).0;
            continue;
        }
        assert_eq!(packet.kind(), kind, "{packet:?}");
        assert!(packet.body.len() <= 18, "{packet:?}");
    }
}

// 3.3.4: 0x93 when the client sends more than the server's receive maximum.
#[test]
fn client_that_exceeds_the_receive_maximum_is_disconnected() {
    let (mut wire, connack) = Wire::connect(broker(), &Connect::new(Version::V5));
    let maximum = connack.properties.number(0x21).unwrap_or(65_535);
    assert!(
        maximum < 65_535,
        "the server bounds what one client keeps open"
    );
    let topic = unique("f/");
    for id in 1..=maximum {
        let id = u16::try_from(id).unwrap();
        wire.send(&message(Version::V5, &topic, 2, "x").packet_id(id).bytes());
    }
    for _ in 1..=maximum {
        assert_eq!(wire.packet("PUBREC").kind(), 5);
    }
    let id = u16::try_from(maximum + 1).unwrap();
    wire.send(&message(Version::V5, &topic, 2, "x").packet_id(id).bytes());
    wire.expect_end(0x93);
}

// 3.3.4: the window is free again after PUBCOMP.
#[test]
fn receive_maximum_counts_only_unacknowledged_messages() {
    let (mut wire, connack) = Wire::connect(broker(), &Connect::new(Version::V5));
    let maximum = u16::try_from(connack.properties.number(0x21).unwrap_or(65_535)).unwrap();
    let topic = unique("f/");
    for round in 0..u32::from(maximum.min(2_000)) + 10 {
        let id = u16::try_from(1 + round % 100).unwrap();
        wire.deliver(&message(Version::V5, &topic, 2, "x").packet_id(id));
    }
}

// 3.2.2.3.6: 0x95 as soon as the remaining length is known.
#[test]
fn packet_over_the_servers_maximum_is_refused_by_its_announcement() {
    let (mut wire, connack) = Wire::connect(broker(), &Connect::new(Version::V5));
    let maximum = connack
        .properties
        .number(0x27)
        .expect("the server has a maximum packet size");
    assert!(maximum < 268_435_460);
    for over in [maximum + 1, 268_435_455] {
        let mut wire = client(Version::V5);
        // A frame of `over` bytes in all: one byte, the length, the rest.
        let length_bytes = if over > 2_097_155 { 4 } else { 3 };
        let remaining = u64::from(over).min(268_435_455 + 5) - 1 - length_bytes;
        wire.send(&join(&[
            &[first::PUBLISH],
            &thrum_conformance::bytes::variable(remaining),
        ]));
        wire.expect_end(0x95);
    }
    // Exactly the maximum is allowed.
    let topic = unique("f/");
    let overhead = if maximum > 2_097_155 { 5 } else { 4 } + 2 + topic.len() + 2 + 1;
    let payload = vec![b'x'; usize::try_from(maximum).unwrap() - overhead];
    wire.send(&Publish::new(Version::V5, &topic, 1, &payload).bytes());
    assert_eq!(wire.packet("PUBACK").kind(), 4);
}

// [MQTT-3.14.2-3] [MQTT-3.14.2-4] The server's DISCONNECT is no larger than the client accepts.
#[test]
fn disconnect_stays_within_the_clients_maximum() {
    let connect = Connect::new(Version::V5).properties(&join(&[&[0x27], &four(20)]));
    let (mut wire, _) = Wire::connect(broker(), &connect);
    wire.send(&frame_of_qos_3());
    let packets = wire.closed(thrum_conformance::wire::DEADLINE);
    assert!(
        packets.iter().all(|packet| packet.body.len() <= 18),
        "{packets:?}"
    );
}

fn frame_of_qos_3() -> [u8; 4] {
    [0x36, 0x02, 0x00, 0x00]
}

// [MQTT-3.2.2-19] [MQTT-3.2.2-20] CONNACK too.
#[test]
fn connack_stays_within_the_clients_maximum() {
    let mut wire = Wire::open(broker(), Version::V5);
    let properties = join(&[&[0x27], &four(60), &user_property("k", "v"), &[0x21, 0, 0]]);
    wire.send(&Connect::new(Version::V5).properties(&properties).bytes());
    let packets = wire.closed(thrum_conformance::wire::DEADLINE);
    assert!(
        packets.iter().all(|packet| packet.body.len() <= 58),
        "{packets:?}"
    );
}

// 3.x has no receive maximum: the server accepts all messages, or slows the client down.
#[test]
fn older_publisher_may_have_many_messages_open() {
    let topic = unique("f/");
    let mut subscriber = client(Version::V311);
    subscriber.subscribe(&topic, 0);
    let mut publisher = client(Version::V311);
    let messages: Vec<_> = (1..=2_000)
        .flat_map(|id| message(Version::V311, &topic, 1, "x").packet_id(id).bytes())
        .collect();
    publisher.send(&join(&[&messages, &PINGREQ]));
    for id in 1..=2_000 {
        publisher.expect_ack(0x40, id, &[0]);
    }
    publisher.expect(0xD0, &[]);
    for _ in 0..2_000 {
        assert_eq!(subscriber.publish().payload, b"x");
    }
}

// [MQTT-3.1.2-24] The server closes the connection if the CONNACK exceeds the client's limit.
#[test]
fn client_with_too_little_room_for_connack_is_not_left_waiting() {
    for maximum in [1, 4, 5, 8] {
        let properties = join(&[&[0x27], &four(maximum)]);
        let mut wire = Wire::open(broker(), Version::V5);
        wire.send(&Connect::new(Version::V5).properties(&properties).bytes());
        match wire.next(thrum_conformance::wire::DEADLINE) {
            Event::Packet(packet) => {
                let size = packet.body.len() + 2;
                assert!(
                    size <= usize::try_from(maximum).unwrap(),
                    "{packet:?} for {maximum}"
                );
            }
            Event::Closed => {}
            Event::Silence => panic!("maximum packet size {maximum}: neither answer nor end"),
        }
    }
}
