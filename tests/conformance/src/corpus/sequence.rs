//! Packets that only a server sends, AUTH without a method, types that do not exist.

use crate::bytes::{block, frame, join, text};
use crate::case::{Case, Expect};
use crate::corpus::{MALFORMED, MALFORMED_OR_PROTOCOL, PROTOCOL};
use crate::packets::{DISCONNECT, PINGREQ, Publish, Version, first};

/// All cases about packets at the wrong time or from the wrong side.
pub fn sequence() -> Vec<Case> {
    let mut cases: Vec<_> = Version::ALL.into_iter().flat_map(of_servers).collect();
    cases.extend(Version::ALL.into_iter().flat_map(reserved_types));
    cases.extend(authentication());
    cases.extend(Version::ALL.into_iter().flat_map(after_the_end));
    cases
}

fn of_servers(version: Version) -> Vec<Case> {
    let properties = version.properties(&[]);
    let packets = [
        ("CONNACK", 0x20, join(&[&[0, 0], &properties])),
        ("SUBACK", 0x90, join(&[&[0, 7], &properties, &[0]])),
        (
            "UNSUBACK",
            0xB0,
            if version == Version::V5 {
                vec![0, 7, 0, 0]
            } else {
                vec![0, 7]
            },
        ),
        ("PINGRESP", 0xD0, Vec::new()),
    ];
    packets
        .map(|(name, first_byte, body)| {
            let name = format!("{name} from a client");
            Case::connected(
                name,
                version,
                frame(first_byte, &body),
                Expect::Refused(PROTOCOL),
            )
        })
        .into()
}

fn reserved_types(version: Version) -> Vec<Case> {
    let mut cases = Vec::new();
    for flags in 0..16 {
        for body in [&[][..], b"body"] {
            cases.push(Case::connected(
                format!("type 0 with flags {flags:04b} and {} bytes", body.len()),
                version,
                frame(flags, body),
                Expect::Refused(MALFORMED_OR_PROTOCOL),
            ));
        }
    }
    if version != Version::V5 {
        for flags in 0..16 {
            cases.push(Case::connected(
                format!("type 15 with flags {flags:04b}"),
                version,
                frame(0xF0 | flags, &[]),
                Expect::Refused(MALFORMED),
            ));
        }
    }
    cases
}

fn authentication() -> Vec<Case> {
    let method = join(&[&[0x15], &text("method")]);
    let mut cases = Vec::new();
    // 4.12.1: only a client that named a method in CONNECT authenticates again
    for (name, body) in [
        ("an empty AUTH", Vec::new()),
        ("AUTH that continues", join(&[&[0x18], &block(&method)])),
        ("AUTH that starts again", join(&[&[0x19], &block(&method)])),
        ("AUTH that succeeds", join(&[&[0x00], &block(&method)])),
    ] {
        let bytes = frame(first::AUTH, &body);
        cases.push(Case::connected(
            name,
            Version::V5,
            bytes,
            Expect::Refused(PROTOCOL),
        ));
    }
    for code in [0x01, 0x17, 0x1A, 0x80, 0x8C, 0xFF] {
        let name = format!("AUTH with reason code {code:#04x}");
        let bytes = frame(first::AUTH, &join(&[&[code], &block(&method)]));
        let expect = Expect::Refused(MALFORMED_OR_PROTOCOL);
        cases.push(Case::connected(name, Version::V5, bytes, expect));
    }
    let without_method = frame(first::AUTH, &[0x19, 0]);
    let expect = Expect::Refused(PROTOCOL);
    cases.push(Case::connected(
        "AUTH without method",
        Version::V5,
        without_method,
        expect,
    ));
    cases
}

/// [MQTT-3.14.4-1] [MQTT3-3.14.4-2] after DISCONNECT nothing is read any more.
fn after_the_end(version: Version) -> Vec<Case> {
    let message = Publish::new(version, "spoiled/late", 1, b"x").bytes();
    vec![
        Case::connected("DISCONNECT", version, DISCONNECT.to_vec(), Expect::Closed),
        Case::connected(
            "PUBLISH after DISCONNECT",
            version,
            join(&[&DISCONNECT, &message]),
            Expect::Closed,
        ),
        Case::connected(
            "PINGREQ after DISCONNECT",
            version,
            join(&[&DISCONNECT, &PINGREQ]),
            Expect::Closed,
        ),
        Case::connected(
            "garbage after DISCONNECT",
            version,
            join(&[&DISCONNECT, &[0xFF; 64]]),
            Expect::Closed,
        ),
    ]
}
