//! PUBLISH and its acknowledgements: topics, identifiers, aliases, codes.

use crate::bytes::{block, frame, join, text, two};
use crate::case::{Case, Expect};
use crate::corpus::{MALFORMED, MALFORMED_OR_PROTOCOL, PROTOCOL};
use crate::packets::{Publish, Version, ack, first, unique};

/// A topic name with wildcards: the specification names no reason code.
const TOPIC: &[u8] = &[0x81, 0x82, 0x90];
/// Alias 0, for which none is named either.
const ZERO: &[u8] = &[0x81, 0x82, 0x94];

/// All cases about messages.
pub fn messages() -> Vec<Case> {
    let mut cases: Vec<_> = Version::ALL.into_iter().flat_map(topics).collect();
    cases.extend(Version::ALL.into_iter().flat_map(packet_ids));
    cases.extend(aliases());
    cases.extend(Version::ALL.into_iter().flat_map(flows));
    cases.extend(acknowledgement_codes());
    cases
}

fn topics(version: Version) -> Vec<Case> {
    let mut cases = Vec::new();
    // [MQTT-3.3.2-2] [MQTT3-3.3.2-2] [MQTT-4.7.1-1] [MQTT3-4.7.1-1]
    for topic in [
        "#",
        "+",
        "a/#",
        "a/+/b",
        "a#",
        "+a",
        "a/b+",
        "/#",
        "$share/g/#",
    ] {
        for qos in [0, 1, 2] {
            let bytes = Publish::new(version, topic, qos, b"x").bytes();
            let name = format!("PUBLISH QoS {qos} to {topic:?}");
            cases.push(Case::connected(
                name,
                version,
                bytes,
                Expect::Refused(TOPIC),
            ));
        }
    }
    // [MQTT-4.7.3-1] [MQTT3-4.7.3-1] a topic has at least one character
    for qos in [0, 1, 2] {
        let bytes = Publish::new(version, "", qos, b"x").bytes();
        let name = format!("PUBLISH QoS {qos} without topic and alias");
        let expect = Expect::Refused(PROTOCOL);
        cases.push(Case::connected(name, version, bytes, expect));
    }
    for topic in ["/", "//", " ", "$", "$x/y", "a b/ü", "\u{FEFF}bom"] {
        let topic = if topic.starts_with('$') {
            topic.to_owned()
        } else {
            unique("m") + topic
        };
        let bytes = Publish::new(version, &topic, 1, b"x").bytes();
        let name = format!("PUBLISH to {topic:?}");
        cases.push(Case::connected(name, version, bytes, Expect::Lives));
    }
    cases
}

fn packet_ids(version: Version) -> Vec<Case> {
    let zero = |name: &str, bytes: Vec<u8>| {
        let name = format!("{name} with packet identifier 0");
        Case::connected(name, version, bytes, Expect::Refused(MALFORMED_OR_PROTOCOL))
    };
    // [MQTT-2.2.1-3] [MQTT-2.2.1-4] [MQTT3-2.3.1-1]
    vec![
        zero(
            "PUBLISH QoS 1",
            Publish::new(version, "spoiled/p", 1, b"x")
                .packet_id(0)
                .bytes(),
        ),
        zero(
            "PUBLISH QoS 2",
            Publish::new(version, "spoiled/p", 2, b"x")
                .packet_id(0)
                .bytes(),
        ),
        zero("PUBACK", ack(first::PUBACK, 0)),
        zero("PUBREC", ack(first::PUBREC, 0)),
        zero("PUBREL", ack(first::PUBREL, 0)),
        zero("PUBCOMP", ack(first::PUBCOMP, 0)),
    ]
}

fn with_alias(topic: &str, alias: u16) -> Vec<u8> {
    let property = join(&[&[0x23], &two(alias)]);
    Publish::new(Version::V5, topic, 0, b"x")
        .properties(&property)
        .bytes()
}

fn aliases() -> Vec<Case> {
    let v5 = Version::V5;
    // [MQTT-3.3.2-8] an alias is not zero
    vec![
        Case::connected(
            "alias 0 with topic",
            v5,
            with_alias("spoiled/p", 0),
            Expect::Refused(ZERO),
        ),
        Case::connected(
            "alias 0 without topic",
            v5,
            with_alias("", 0),
            Expect::Refused(ZERO),
        ),
        // [MQTT-3.3.2-9] the maximum of the server is below that
        Case::connected(
            "alias 65,535 with topic",
            v5,
            with_alias("spoiled/p", 65_535),
            Expect::Refused(&[0x94]),
        ),
        Case::connected(
            "unknown alias",
            v5,
            with_alias("", 1),
            Expect::Refused(PROTOCOL),
        ),
        // [MQTT-3.3.2-10] an alias of another connection means nothing here
        Case::connected(
            "alias that was set, then one that was not",
            v5,
            join(&[
                &with_alias("spoiled/p", 1),
                &with_alias("", 1),
                &with_alias("", 2),
            ]),
            Expect::Refused(PROTOCOL),
        ),
        Case::connected(
            "alias that was set",
            v5,
            join(&[&with_alias("spoiled/p", 1), &with_alias("", 1)]),
            Expect::Lives,
        ),
        Case::connected(
            "alias with a topic with a wildcard",
            v5,
            with_alias("spoiled/+", 1),
            Expect::Refused(TOPIC),
        ),
    ]
}

fn flows(version: Version) -> Vec<Case> {
    let unknown = |code: u8| match version {
        Version::V5 => vec![0, 7, code],
        _ => vec![0, 7],
    };
    let mut cases = vec![
        // 3.6.2.1: 0x92, packet identifier not found
        Case::connected(
            "PUBREL of an unknown packet identifier",
            version,
            ack(first::PUBREL, 7),
            Expect::Answer(0x70, unknown(0x92)),
        ),
        Case::connected(
            "PUBCOMP of an unknown packet identifier",
            version,
            ack(first::PUBCOMP, 7),
            Expect::LivesOrRefused(PROTOCOL),
        ),
        Case::connected(
            "PUBACK of an unknown packet identifier",
            version,
            ack(first::PUBACK, 7),
            Expect::LivesOrRefused(PROTOCOL),
        ),
        Case::connected(
            "the same QoS 2 PUBLISH three times before its PUBREL",
            version,
            join(&[
                &Publish::new(version, "spoiled/p", 2, b"x").bytes(),
                &Publish::new(version, "spoiled/p", 2, b"x").dup().bytes(),
                &Publish::new(version, "spoiled/p", 2, b"x").dup().bytes(),
                &ack(first::PUBREL, 1),
                &ack(first::PUBREL, 1),
            ]),
            Expect::Lives,
        ),
    ];
    if version != Version::V31 {
        // [MQTT-3.6.1-1] [MQTT3-3.6.1-1]
        cases.push(Case::connected(
            "PUBREL with the flags of PUBREC",
            version,
            ack(0x60, 7),
            Expect::Refused(MALFORMED),
        ));
    }
    cases
}

/// Reason codes that a packet does not have, in packets of 5.0.
fn acknowledgement_codes() -> Vec<Case> {
    let publish_codes = [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99];
    let release_codes = [0x00, 0x92];
    let mut cases = Vec::new();
    for (name, first_byte, codes) in [
        ("PUBACK", first::PUBACK, &publish_codes[..]),
        ("PUBREC", first::PUBREC, &publish_codes),
        ("PUBREL", first::PUBREL, &release_codes),
        ("PUBCOMP", first::PUBCOMP, &release_codes),
    ] {
        for code in [
            0x01, 0x02, 0x04, 0x11, 0x18, 0x7F, 0x81, 0x8E, 0x9F, 0xA3, 0xFF,
        ] {
            if codes.contains(&code) {
                continue;
            }
            let bytes = frame(first_byte, &join(&[&two(7), &[code]]));
            let name = format!("{name} with reason code {code:#04x}");
            let expect = Expect::Refused(MALFORMED_OR_PROTOCOL);
            cases.push(Case::connected(name, Version::V5, bytes, expect));
        }
    }
    for code in [0x01, 0x02, 0x18, 0x7F, 0x84, 0x91, 0x9F, 0xA3, 0xFF] {
        let bytes = frame(first::DISCONNECT, &[code]);
        let name = format!("DISCONNECT with reason code {code:#04x}");
        cases.push(Case::connected(
            name,
            Version::V5,
            bytes,
            Expect::ClosedSomehow,
        ));
    }
    // [MQTT-3.14.2-2] no expiry may be set when CONNECT set none
    let raise = join(&[&[0x00], &block(&[0x11, 0, 0, 0, 60])]);
    cases.push(Case::connected(
        "DISCONNECT that raises the session expiry from zero",
        Version::V5,
        frame(first::DISCONNECT, &raise),
        Expect::Refused(PROTOCOL),
    ));
    // [MQTT-3.3.4-6]
    let with_identifier = frame(
        first::PUBLISH,
        &join(&[&text("spoiled/p"), &block(&[0x0B, 1]), b"x"]),
    );
    cases.push(Case::connected(
        "PUBLISH of a client with a subscription identifier",
        Version::V5,
        with_identifier,
        Expect::Refused(MALFORMED_OR_PROTOCOL),
    ));
    cases
}
