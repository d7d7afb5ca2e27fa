//! CONNECT: names and levels, flags, identifiers, other packets in its place, and repeated ones.

use crate::bytes::{frame, join, text, two};
use crate::case::{Case, Expect};
use crate::corpus::{MALFORMED, PROTOCOL};
use crate::packets::{Connect, PINGREQ, Publish, Version, Will, ack, first, subscribe, unique};

/// All cases about the handshake.
pub fn handshake() -> Vec<Case> {
    let mut cases = protocols();
    cases.extend(Version::STANDARD.into_iter().flat_map(flags));
    cases.extend(client_identifiers());
    cases.extend(wills());
    cases.extend(Version::ALL.into_iter().flat_map(second_connect));
    cases.extend(other_first_packets());
    cases
}

fn raw_connect(protocol: &[u8], flags: u8, properties: &[u8], payload: &[u8]) -> Vec<u8> {
    frame(
        first::CONNECT,
        &join(&[protocol, &[flags], &two(0), properties, payload]),
    )
}

fn protocols() -> Vec<Case> {
    let mut cases = Vec::new();
    // [MQTT-3.1.2-2] [MQTT3-3.1.2-2] an unknown level is refused with its own code
    for level in [0, 1, 2, 3, 6, 7, 63, 127, 128, 131, 133, 255] {
        let protocol = join(&[&text("MQTT"), &[level]]);
        for (form, properties) in [("3.x", &[][..]), ("5.0", &[0])] {
            let bytes = raw_connect(&protocol, 2, properties, &text(&unique("h")));
            let name = format!("MQTT with level {level} in the form of {form}");
            cases.push(Case::first(
                name,
                Version::V311,
                bytes,
                Expect::VersionRefused,
            ));
        }
    }
    for level in [0, 1, 2, 4, 5, 255] {
        let protocol = join(&[&text("MQIsdp"), &[level]]);
        let bytes = raw_connect(&protocol, 2, &[], &text(&unique("h")));
        let name = format!("MQIsdp with level {level}");
        cases.push(Case::first(
            name,
            Version::V31,
            bytes,
            Expect::ClosedSomehow,
        ));
    }
    // [MQTT-3.1.2-1] [MQTT3-3.1.2-1] another name is refused, with or without an answer
    for name in [
        "",
        "M",
        "MQT",
        "mqtt",
        "MQTT ",
        "MQTTT",
        "MQisdp",
        "AMQP",
        "MQTT\u{0}",
        "ＭＱＴＴ",
    ] {
        for level in [3, 4, 5] {
            let protocol = join(&[&text(name), &[level]]);
            let bytes = raw_connect(&protocol, 2, &[], &text(&unique("h")));
            let name = format!("protocol name {name:?} with level {level}");
            cases.push(Case::first(
                name,
                Version::V311,
                bytes,
                Expect::ClosedSomehow,
            ));
        }
    }
    let protocol = join(&[&two(65_535), b"MQTT", &[4]]);
    let bytes = raw_connect(&protocol, 2, &[], &text("x"));
    let name = "protocol name that says it has 65,535 bytes";
    cases.push(Case::first(
        name,
        Version::V311,
        bytes,
        Expect::ClosedSomehow,
    ));
    cases
}

fn flags(version: Version) -> Vec<Case> {
    let refused = || match version {
        Version::V5 => Expect::Refused(MALFORMED),
        _ => Expect::Closed,
    };
    let properties = version.properties(&[]);
    let mut cases = Vec::new();
    let mut push = |name: &str, flags: u8, payload: Vec<u8>, expect: Expect| {
        let bytes = raw_connect(&version.protocol(), flags, &properties, &payload);
        cases.push(Case::first(name, version, bytes, expect));
    };
    let id = || text(&unique("h"));
    let will = || {
        join(&[
            &id(),
            &version.properties(&[]),
            &text("spoiled/w"),
            &text("w"),
        ])
    };
    // [MQTT-3.1.2-3] [MQTT3-3.1.2-3] the reserved flag is zero
    push("reserved flag", 0x03, id(), refused());
    // [MQTT-3.1.2-11] [MQTT3-3.1.2-13] no will, no QoS of a will
    push("will QoS 1 without will", 0x0A, id(), refused());
    push("will QoS 2 without will", 0x12, id(), refused());
    push("will QoS 3 without will", 0x1A, id(), refused());
    // [MQTT-3.1.2-13] [MQTT3-3.1.2-15] no will, no retain of a will
    push("will retain without will", 0x22, id(), refused());
    // [MQTT-3.1.2-12] [MQTT3-3.1.2-14] QoS 3 does not exist
    push("will QoS 3", 0x1E, will(), refused());
    push("will flag without will", 0x06, id(), refused());
    push("user name flag without user name", 0x82, id(), refused());
    // [MQTT-3.1.2-17] [MQTT-3.1.2-19] fields without their flags
    push(
        "user name without flag",
        0x02,
        join(&[&id(), &text("user")]),
        refused(),
    );
    let name_only = join(&[&id(), &text("user")]);
    push("password flag without password", 0xC2, name_only, refused());
    // [MQTT3-3.1.2-22] 3.1.1 forbids a password without a user name, 5.0 allows it
    let alone = join(&[&id(), &text("password")]);
    let expect = if version == Version::V5 {
        Expect::Lives
    } else {
        Expect::Closed
    };
    push("password without user name", 0x42, alone, expect);
    cases
}

fn client_identifiers() -> Vec<Case> {
    let connect = |version: Version, flags: u8| {
        raw_connect(
            &version.protocol(),
            flags,
            &version.properties(&[]),
            &text(""),
        )
    };
    let long = "i".repeat(23);
    vec![
        // [MQTT3-3.1.3-7] [MQTT3-3.1.3-8] [MQTT3-3.1.3-9]
        Case::first(
            "empty client identifier without clean session",
            Version::V311,
            connect(Version::V311, 0),
            Expect::ReturnCode(2),
        ),
        // [MQTT3-3.1.3-6]
        Case::first(
            "empty client identifier with clean session",
            Version::V311,
            connect(Version::V311, 2),
            Expect::Lives,
        ),
        Case::first(
            "empty client identifier",
            Version::V31,
            connect(Version::V31, 2),
            Expect::ReturnCode(2),
        ),
        // [MQTT-3.1.3-6] [MQTT-3.1.3-7]
        Case::first(
            "empty client identifier without clean start",
            Version::V5,
            connect(Version::V5, 0),
            Expect::Lives,
        ),
        // [MQTT-3.1.3-5] [MQTT3-3.1.3-5]
        Case::first(
            "client identifier of 23 bytes",
            Version::V311,
            Connect::new(Version::V311).client_id(&long).bytes(),
            Expect::Lives,
        ),
        Case::first(
            "client identifier of 65,535 bytes",
            Version::V5,
            Connect::new(Version::V5)
                .client_id(&"i".repeat(65_535))
                .bytes(),
            Expect::LivesOrRefused(&[0x85, 0x97]),
        ),
    ]
}

fn wills() -> Vec<Case> {
    let mut cases = Vec::new();
    for version in Version::ALL {
        for topic in ["", "#", "a/+", "a/#/b"] {
            let bytes = Connect::new(version).will(Will::new(topic)).bytes();
            let expect = match version {
                Version::V5 => Expect::Refused(&[0x81, 0x82, 0x90]),
                _ => Expect::ClosedSomehow,
            };
            cases.push(Case::first(
                format!("will topic {topic:?}"),
                version,
                bytes,
                expect,
            ));
        }
    }
    cases
}

fn second_connect(version: Version) -> Vec<Case> {
    // [MQTT-3.1.0-2] [MQTT3-3.1.0-2]
    let again = |other: Version| {
        Case::connected(
            format!("second CONNECT, of {other:?}"),
            version,
            Connect::new(other).bytes(),
            Expect::Refused(PROTOCOL),
        )
    };
    let mut cases: Vec<_> = Version::ALL.map(again).into();
    let both = join(&[
        &Connect::new(version).bytes(),
        &PINGREQ,
        &Connect::new(version).bytes(),
    ]);
    let at_once = Case::first(
        "second CONNECT in the same segment",
        version,
        both,
        Expect::ClosedSomehow,
    );
    cases.push(at_once);
    cases
}

/// [MQTT-3.1.0-1] [MQTT3-3.1.0-1] the first packet is a CONNECT; others get no answer.
fn other_first_packets() -> Vec<Case> {
    let mut cases = Vec::new();
    for version in Version::STANDARD {
        let packets = [
            ("CONNACK", frame(0x20, &[0, 0])),
            (
                "PUBLISH",
                Publish::new(version, "spoiled/p", 0, b"x").bytes(),
            ),
            (
                "PUBLISH QoS 1",
                Publish::new(version, "spoiled/p", 1, b"x").bytes(),
            ),
            ("PUBACK", ack(first::PUBACK, 1)),
            ("PUBREC", ack(first::PUBREC, 1)),
            ("PUBREL", ack(first::PUBREL, 1)),
            ("PUBCOMP", ack(first::PUBCOMP, 1)),
            ("SUBSCRIBE", subscribe(version, 1, &[("#", 0)])),
            ("SUBACK", frame(0x90, &[0, 1, 0])),
            (
                "UNSUBSCRIBE",
                crate::packets::unsubscribe(version, 1, &["#"]),
            ),
            ("UNSUBACK", frame(0xB0, &[0, 1])),
            ("PINGREQ", PINGREQ.to_vec()),
            ("PINGRESP", frame(0xD0, &[])),
            ("DISCONNECT", crate::packets::DISCONNECT.to_vec()),
            ("AUTH", frame(first::AUTH, &[])),
            ("reserved type 0", frame(0x00, &[])),
            ("reserved type 0 with a body", frame(0x0F, b"body")),
        ];
        for (name, bytes) in packets {
            let name = format!("{name} instead of CONNECT");
            cases.push(Case::first(name, version, bytes, Expect::Closed));
        }
    }
    for (name, bytes) in [
        (
            "a request of HTTP",
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        ),
        (
            "the first record of TLS",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        ),
        ("zeros", vec![0; 64]),
        ("ones", vec![0xFF; 64]),
    ] {
        cases.push(Case::first(
            name,
            Version::V311,
            bytes,
            Expect::ClosedSomehow,
        ));
    }
    cases
}
