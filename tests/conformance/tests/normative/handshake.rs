//! CONNECT and CONNACK.

use std::time::Duration;

use thrum_conformance::bytes::{join, text};
use thrum_conformance::packets::{
    Connect, PINGREQ, Publish, Version, Will, ack, first, subscribe, unique,
};
use thrum_conformance::wire::DEADLINE;
use thrum_conformance::{Wire, clock};

use crate::{broker, client, message, resume, send};

// [MQTT-3.1.4-5] [MQTT-3.2.0-1] [MQTT-3.2.2-1] [MQTT3-3.1.4-4] [MQTT3-3.2.0-1]
#[test]
fn connack_is_the_first_packet_and_has_the_form_of_its_version() {
    for version in Version::ALL {
        let mut wire = Wire::open(broker(), version);
        wire.send(&Connect::new(version).bytes());
        let packet = wire.packet("CONNACK");
        assert_eq!(packet.first, 0x20);
        if version == Version::V5 {
            assert_eq!(packet.body.get(..2), Some(&[0, 0][..]));
        } else {
            assert_eq!(packet.body, [0, 0]);
        }
    }
}

// [MQTT-3.2.0-2]
#[test]
fn connack_comes_once() {
    for version in Version::STANDARD {
        client(version).expect_nothing_before_pingresp();
    }
}

// [MQTT-3.2.2-8] [MQTT-3.2.2-22] [MQTT-4.12.0-6]
#[test]
fn connack_of_5_0_contains_only_non_default_values() {
    let (_, connack) = Wire::connect(broker(), &Connect::new(Version::V5).keep_alive(60));
    let properties = connack.properties;
    assert_eq!(
        properties.number(0x24),
        None,
        "an absent maximum QoS means 2"
    );
    assert_ne!(properties.number(0x21), Some(0), "receive maximum");
    assert_ne!(properties.number(0x27), Some(0), "maximum packet size");
    for (identifier, name) in [
        (0x25, "retain"),
        (0x28, "wildcard subscriptions"),
        (0x29, "subscription identifiers"),
        (0x2A, "shared subscriptions"),
    ] {
        assert_ne!(
            properties.number(identifier),
            Some(0),
            "{name} are available"
        );
    }
    assert_eq!(
        properties.bytes(0x12),
        None,
        "no identifier is assigned to a client that has one"
    );
    assert_eq!(properties.bytes(0x15), None, "no method without a method");
    assert_eq!(
        properties.bytes(0x1A),
        None,
        "response information was not requested"
    );
    let mut identifiers: Vec<_> = properties
        .0
        .iter()
        .map(|(identifier, _)| *identifier)
        .collect();
    identifiers.retain(|identifier| *identifier != 0x26);
    let count = identifiers.len();
    identifiers.sort_unstable();
    identifiers.dedup();
    assert_eq!(identifiers.len(), count, "no property comes twice");
}

// [MQTT-3.1.3-6] [MQTT-3.1.3-7] [MQTT-3.2.2-16]
#[test]
fn assigned_client_identifier_is_unique_and_can_be_used() {
    let connect = Connect::new(Version::V5).client_id("").persistent();
    let mut assigned = Vec::new();
    for _ in 0..3 {
        let (_, connack) = Wire::connect(broker(), &connect);
        let identifier = connack
            .properties
            .bytes(0x12)
            .expect("an identifier is assigned");
        assigned.push(String::from_utf8(identifier.to_vec()).expect("it is text"));
    }
    let (one, two, three) = (&assigned[0], &assigned[1], &assigned[2]);
    assert!(one != two && two != three && one != three && !one.is_empty());
    let (_, present) = resume(Version::V5, one);
    assert!(present, "the session has the assigned identifier");
}

// [MQTT3-3.1.3-6]
#[test]
fn clients_without_identifier_do_not_take_each_other_over() {
    let connect = Connect::new(Version::V311).client_id("");
    let (mut first, _) = Wire::connect(broker(), &connect);
    let (mut second, _) = Wire::connect(broker(), &connect);
    first.expect_nothing_before_pingresp();
    second.expect_nothing_before_pingresp();
}

// [MQTT-3.2.2-2] [MQTT-3.2.2-3] [MQTT-3.1.2-4] [MQTT-3.1.2-5] [MQTT-3.1.2-6] [MQTT-3.1.4-4]
// [MQTT3-3.2.2-1] [MQTT3-3.2.2-2] [MQTT3-3.2.2-3] [MQTT3-3.1.2-4] [MQTT3-3.1.2-6] [MQTT3-3.1.4-3]
#[test]
fn session_present_tells_whether_there_is_a_session() {
    for version in Version::STANDARD {
        let id = unique("s");
        assert!(!resume(version, &id).1, "the first time");
        assert!(resume(version, &id).1, "the session was kept");
        let clean = Connect::new(version).client_id(&id);
        assert!(
            !Wire::connect(broker(), &clean).1.session_present,
            "clean start"
        );
        assert!(
            !resume(version, &id).1,
            "the clean session ended with its connection"
        );
    }
}

// [MQTT-3.1.2-5] [MQTT3-3.1.2-4] A session has no version: a client that returns with another one
// keeps it.
#[test]
fn session_is_resumed_by_another_version() {
    let id = unique("s");
    let (mut old, _) = resume(Version::V311, &id);
    let topic = unique("t/");
    old.subscribe(&topic, 1);
    old.abandon();
    let (mut new, present) = resume(Version::V5, &id);
    assert!(present);
    send(&message(Version::V311, &topic, 1, "x"));
    assert_eq!(new.take().payload, b"x");
}

// [MQTT-3.2.2-6] [MQTT-3.2.2-7] [MQTT3-3.2.2-4] [MQTT3-3.2.2-5] [MQTT3-3.1.2-2] [MQTT3-3.1.3-8]
#[test]
fn refusal_has_no_session_present_and_closes() {
    let mut wire = Wire::open(broker(), Version::V311);
    wire.send(
        &Connect::new(Version::V311)
            .client_id("")
            .persistent()
            .bytes(),
    );
    let packets = wire.closed(DEADLINE);
    assert_eq!(
        packets.first().map(|packet| packet.body.as_slice()),
        Some(&[0, 2][..])
    );
    assert_eq!(packets.len(), 1);

    let mut wire = Wire::open(broker(), Version::V5);
    wire.send(&Connect::new(Version::V5).properties(&[0x21, 0, 0]).bytes());
    let packets = wire.closed(DEADLINE);
    assert_eq!(
        packets.first().map(|packet| &packet.body[..2]),
        Some(&[0, 0x82][..])
    );
    assert_eq!(packets.len(), 1);
}

// [MQTT-3.1.4-6] [MQTT3-3.1.4-5]
#[test]
fn nothing_behind_a_refused_connect_is_handled() {
    for version in Version::STANDARD {
        let topic = unique("t/");
        let mut watcher = client(version);
        watcher.subscribe(&topic, 1);
        let refused = match version {
            Version::V5 => Connect::new(version).properties(&[0x21, 0, 0]).bytes(),
            _ => Connect::new(version).client_id("").persistent().bytes(),
        };
        let mut wire = Wire::open(broker(), version);
        wire.send(&join(&[
            &refused,
            &message(version, &topic, 1, "late").bytes(),
        ]));
        assert_eq!(wire.closed(DEADLINE).len(), 1);
        send(&message(version, &topic, 1, "end"));
        assert_eq!(watcher.take().payload, b"end");
    }
}

// A client may send on without waiting for CONNACK; everything is answered in order.
#[test]
fn packets_right_behind_connect_are_handled_in_order() {
    for version in Version::ALL {
        let topic = unique("t/");
        let mut wire = Wire::open(broker(), version);
        wire.send(&join(&[
            &Connect::new(version).bytes(),
            &subscribe(version, 9, &[(&topic, 0)]),
            &Publish::new(version, &topic, 0, b"own").bytes(),
            &PINGREQ,
        ]));
        assert_eq!(wire.packet("CONNACK").connack(version).code, 0);
        wire.expect_ack(0x90, 9, &[0]);
        let mut kinds = vec![
            wire.packet("PUBLISH").kind(),
            wire.packet("PINGRESP").kind(),
        ];
        // The message goes through the router, the answer does not.
        kinds.sort_unstable();
        assert_eq!(kinds, [3, 13]);
    }
}

// [MQTT-4.2.0-1] [MQTT3-7.1.1-1] The stream has no packets: any cut is the same input.
#[test]
fn bytes_that_come_one_by_one_are_the_same_packets() {
    for version in Version::ALL {
        let topic = unique("t/");
        let mut wire = Wire::open(broker(), version);
        let bytes = join(&[
            &Connect::new(version).bytes(),
            &subscribe(version, 9, &[(&topic, 1)]),
            &message(version, &topic, 1, "x").bytes(),
        ]);
        for byte in bytes {
            wire.send(&[byte]);
            clock::sleep(Duration::from_micros(300));
        }
        assert_eq!(wire.packet("CONNACK").connack(version).code, 0);
        wire.expect_ack(0x90, 9, &[1]);
        let mut kinds = vec![wire.packet("PUBLISH").kind(), wire.packet("PUBACK").kind()];
        kinds.sort_unstable();
        assert_eq!(kinds, [3, 4]);
    }
}

// [MQTT-3.1.4-3] [MQTT3-3.1.4-2]
#[test]
fn second_connection_ends_the_first() {
    for old in Version::STANDARD {
        for new in Version::STANDARD {
            let id = unique("s");
            let (mut first, _) = Wire::connect(broker(), &Connect::new(old).client_id(&id));
            let (mut second, _) = Wire::connect(broker(), &Connect::new(new).client_id(&id));
            first.expect_end(0x8E);
            second.expect_nothing_before_pingresp();
        }
    }
}

// [MQTT-3.1.2-22] [MQTT3-3.1.2-24]
#[test]
fn silence_of_one_and_a_half_keep_alives_ends_the_connection() {
    for version in Version::ALL {
        let (mut wire, _) = Wire::connect(broker(), &Connect::new(version).keep_alive(1));
        let start = clock::now();
        wire.expect_end(0x8D);
        let silence = start.elapsed();
        assert!(
            silence >= Duration::from_millis(1_400),
            "{version:?} after {silence:?}"
        );
        assert!(
            silence <= Duration::from_millis(2_500),
            "{version:?} after {silence:?}"
        );
    }
}

// [MQTT-3.1.2-22] Any packet restarts the keep alive timer, and 0 turns it off.
#[test]
fn any_packet_is_a_sign_of_life() {
    for version in Version::STANDARD {
        let (mut alive, _) = Wire::connect(broker(), &Connect::new(version).keep_alive(1));
        let mut off = client(version);
        for _ in 0..4 {
            clock::sleep(Duration::from_millis(800));
            alive.send(&ack(first::PUBREL, 9));
            assert_eq!(alive.packet("PUBCOMP").kind(), 7);
        }
        off.expect_nothing_before_pingresp();
    }
}

// [MQTT-3.12.4-1] [MQTT3-3.12.4-1]
#[test]
fn every_pingreq_is_answered() {
    for version in Version::ALL {
        let mut wire = client(version);
        wire.send(&PINGREQ.repeat(100));
        for _ in 0..100 {
            wire.expect(0xD0, &[]);
        }
    }
}

// [MQTT-3.1.2-28]
#[test]
fn response_information_is_sent_only_on_request() {
    for wanted in [0, 1] {
        let connect = Connect::new(Version::V5).properties(&[0x19, wanted]);
        let (_, connack) = Wire::connect(broker(), &connect);
        assert!(wanted == 1 || connack.properties.bytes(0x1A).is_none());
    }
}

// [MQTT-3.1.2-29]
#[test]
fn client_that_wants_no_problem_information_gets_bare_acknowledgements() {
    let connect = Connect::new(Version::V5).properties(&[0x17, 0]);
    let (mut wire, _) = Wire::connect(broker(), &connect);
    wire.send(&ack(first::PUBREL, 9));
    let pubcomp = wire.packet("PUBCOMP");
    assert_eq!(pubcomp.first, 0x70);
    assert!(
        matches!(pubcomp.body.as_slice(), [0, 9, 0x92] | [0, 9, 0x92, 0]),
        "{pubcomp:?}"
    );
    wire.send(&subscribe(
        Version::V5,
        7,
        &[("a/#/b", 0), (&unique("t/"), 0)],
    ));
    let answer = wire.packet("SUBACK or DISCONNECT");
    if answer.kind() == 9 {
        assert_eq!(answer.body.get(2), Some(&0), "no properties: {answer:?}");
    }
}

// [MQTT-3.1.4-2] [MQTT-4.12.0-1] [MQTT-3.2.2-8]
#[test]
fn unknown_authentication_method_is_refused() {
    let mut wire = Wire::open(broker(), Version::V5);
    let method = join(&[&[0x15], &text("SCRAM-SHA-256")]);
    wire.send(&Connect::new(Version::V5).properties(&method).bytes());
    let packets = wire.closed(DEADLINE);
    let code = packets
        .first()
        .and_then(thrum_conformance::received::Packet::reason);
    assert!(matches!(code, Some(0x8C | 0x87)), "{packets:?}");
}

// [MQTT-3.1.0-2] [MQTT3-3.1.0-2] The connection that broke the rule ends like any other: with its
// will.
#[test]
fn second_connect_is_a_protocol_error_and_publishes_the_will() {
    for version in Version::STANDARD {
        let topic = unique("t/");
        let mut watcher = client(version);
        watcher.subscribe(&topic, 1);
        let connect = Connect::new(version).will(Will::new(&topic));
        let (mut wire, _) = Wire::connect(broker(), &connect);
        wire.send(&Connect::new(version).bytes());
        wire.expect_end(0x82);
        assert_eq!(watcher.take().payload, b"will");
    }
}

/// The connection may be accepted only with its first bytes, but not lost for their lateness.
#[test]
fn client_that_is_silent_at_first_is_served_afterwards() {
    for version in Version::ALL {
        let mut wire = Wire::open(broker(), version);
        clock::sleep(Duration::from_millis(2500));
        wire.send(&Connect::new(version).bytes());
        assert_eq!(wire.packet("CONNACK").connack(version).code, 0);
        wire.expect_nothing_before_pingresp();
    }
}
