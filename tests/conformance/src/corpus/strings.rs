//! Strings that are not UTF-8, in every field that is a string.

use crate::bytes::{binary, block, frame, join, text, two};
use crate::case::{Case, Expect};
use crate::corpus::{MALFORMED, MALFORMED_OR_PROTOCOL};
use crate::packets::{Version, first, unique};

/// Forbidden strings.
const BAD: [(&str, &[u8]); 17] = [
    ("U+0000", b"\0"),
    ("U+0000 inside", b"a\0b"),
    ("the first surrogate", b"\xED\xA0\x80"),
    ("the last surrogate", b"\xED\xBF\xBF"),
    ("a pair of surrogates", b"\xED\xA0\xBD\xED\xB8\x80"),
    ("an overlong NUL", b"\xC0\x80"),
    ("an overlong letter", b"\xC1\x81"),
    ("an overlong sequence of three", b"\xE0\x80\xAF"),
    ("an overlong sequence of four", b"\xF0\x80\x80\xAF"),
    ("a number past U+10FFFF", b"\xF4\x90\x80\x80"),
    ("a sequence of five", b"\xF8\x88\x80\x80\x80"),
    ("0xFF", b"\xFF"),
    ("0xFE inside", b"a\xFEb"),
    ("a lone continuation", b"\x80"),
    ("a sequence of two cut short", b"a\xC3"),
    ("a sequence of three cut short", b"a\xE2\x82"),
    ("a sequence of four cut short", b"a\xF0\x9F\x98"),
];

/// Builds a packet around the bytes of one string.
type Build = fn(Version, &[u8]) -> Vec<u8>;

struct Field {
    name: &'static str,
    connected: bool,
    versions: &'static [Version],
    build: Build,
    /// More reasons than the one for malformed packets.
    reasons: &'static [u8],
}

const EVERY: &[Version] = &Version::ALL;
const FIVE: &[Version] = &[Version::V5];

fn after(name: &'static str, versions: &'static [Version], build: Build) -> Field {
    Field {
        name,
        connected: true,
        versions,
        build,
        reasons: MALFORMED,
    }
}

fn before(name: &'static str, versions: &'static [Version], build: Build) -> Field {
    Field {
        name,
        connected: false,
        versions,
        build,
        reasons: MALFORMED,
    }
}

fn connect(version: Version, flags: u8, properties: &[u8], payload: &[&[u8]]) -> Vec<u8> {
    let head = join(&[
        &version.protocol(),
        &[flags],
        &two(0),
        &version.properties(properties),
    ]);
    frame(first::CONNECT, &join(&[&head, &payload.concat()]))
}

fn with_will(version: Version, topic: &[u8], properties: &[u8]) -> Vec<u8> {
    let properties = version.properties(properties);
    let fields: [&[u8]; 4] = [&text(&unique("u")), &properties, &binary(topic), &text("w")];
    connect(version, 6, &[], &fields)
}

fn publish(version: Version, topic: &[u8], properties: &[u8]) -> Vec<u8> {
    frame(
        first::PUBLISH,
        &join(&[&binary(topic), &version.properties(properties)]),
    )
}

fn property(identifier: u8, bad: &[u8]) -> Vec<u8> {
    join(&[&[identifier], &binary(bad)])
}

fn of_handshake() -> Vec<Field> {
    vec![
        // 0x85: client identifier not valid.
        Field {
            reasons: &[0x81, 0x85],
            ..before("client identifier", EVERY, |version, bad| {
                connect(version, 2, &[], &[&binary(bad)])
            })
        },
        before("will topic", EVERY, |version, bad| {
            with_will(version, bad, &[])
        }),
        before("user name", EVERY, |version, bad| {
            connect(version, 0x82, &[], &[&text(&unique("u")), &binary(bad)])
        }),
        Field {
            // Without configured methods the method itself is refused.
            reasons: &[0x81, 0x87, 0x8C],
            ..before("authentication method", FIVE, |version, bad| {
                connect(version, 2, &property(0x15, bad), &[&text(&unique("u"))])
            })
        },
        before("key of a user property of CONNECT", FIVE, |version, bad| {
            let pair = join(&[&property(0x26, bad), &text("v")]);
            connect(version, 2, &pair, &[&text(&unique("u"))])
        }),
        before("content type of a will", FIVE, |version, bad| {
            with_will(version, b"spoiled/w", &property(0x03, bad))
        }),
        before("response topic of a will", FIVE, |version, bad| {
            with_will(version, b"spoiled/w", &property(0x08, bad))
        }),
        before(
            "value of a user property of a will",
            FIVE,
            |version, bad| {
                with_will(
                    version,
                    b"spoiled/w",
                    &join(&[&[0x26], &text("k"), &binary(bad)]),
                )
            },
        ),
    ]
}

fn of_messages() -> Vec<Field> {
    vec![
        after("topic name", EVERY, |version, bad| {
            publish(version, bad, &[])
        }),
        after("content type", FIVE, |version, bad| {
            publish(version, b"spoiled/p", &property(0x03, bad))
        }),
        after("response topic", FIVE, |version, bad| {
            publish(version, b"spoiled/p", &property(0x08, bad))
        }),
        after("key of a user property", FIVE, |version, bad| {
            publish(
                version,
                b"spoiled/p",
                &join(&[&property(0x26, bad), &text("v")]),
            )
        }),
        after("value of a user property", FIVE, |version, bad| {
            publish(
                version,
                b"spoiled/p",
                &join(&[&[0x26], &text("k"), &binary(bad)]),
            )
        }),
        after("reason string of PUBACK", FIVE, |_, bad| {
            frame(
                first::PUBACK,
                &join(&[&two(7), &[0], &block(&property(0x1F, bad))]),
            )
        }),
        after("reason string of DISCONNECT", FIVE, |_, bad| {
            frame(
                first::DISCONNECT,
                &join(&[&[0], &block(&property(0x1F, bad))]),
            )
        }),
        Field {
            reasons: MALFORMED_OR_PROTOCOL,
            ..after("authentication method of AUTH", FIVE, |_, bad| {
                frame(first::AUTH, &join(&[&[0x19], &block(&property(0x15, bad))]))
            })
        },
    ]
}

fn of_subscriptions() -> Vec<Field> {
    vec![
        after("topic filter of SUBSCRIBE", EVERY, |version, bad| {
            let head = join(&[&two(7), &version.properties(&[])]);
            frame(
                first::SUBSCRIBE,
                &join(&[&head, &text("a"), &[0], &binary(bad), &[0]]),
            )
        }),
        after("topic filter of UNSUBSCRIBE", EVERY, |version, bad| {
            let head = join(&[&two(7), &version.properties(&[])]);
            frame(first::UNSUBSCRIBE, &join(&[&head, &binary(bad)]))
        }),
        after("share name", FIVE, |version, bad| {
            let head = join(&[&two(7), &version.properties(&[])]);
            let filter = join(&[b"$share/", bad, b"/a"]);
            frame(first::SUBSCRIBE, &join(&[&head, &binary(&filter), &[0]]))
        }),
    ]
}

/// Every bad string in every field.
///
/// Proves [MQTT-1.5.4-1] and [MQTT-1.5.4-2], [MQTT3-1.5.3-1] and [MQTT3-1.5.3-2].
pub fn strings() -> Vec<Case> {
    let mut cases = Vec::new();
    for field in of_handshake()
        .iter()
        .chain(&of_messages())
        .chain(&of_subscriptions())
    {
        for version in field.versions {
            for (name, bytes) in BAD {
                cases.push(Case {
                    name: format!("{} with {name}", field.name),
                    version: *version,
                    connected: field.connected,
                    bytes: (field.build)(*version, bytes),
                    expect: expected(field, *version),
                });
            }
        }
    }
    cases
}

fn expected(field: &Field, version: Version) -> Expect {
    match (version, field.connected) {
        // 3.1 has the modified UTF-8 of Java, and does not mention invalid UTF-8.
        (Version::V31, _) => Expect::Anything,
        (Version::V5, _) | (_, true) => Expect::Refused(field.reasons),
        // 3.x may refuse the identifier before it closes.
        _ => Expect::ClosedSomehow,
    }
}
