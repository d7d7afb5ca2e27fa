//! The format on disk, byte by byte: a change of this file is a change of the format.

use thrum_codec::packet::{RetainHandling, SubscriptionOptions};
use thrum_codec::{PacketId, QoS, Version};

use super::encode::encode;
use super::{
    Awaiting, Change, ClockNote, Identifiers, Inflight, MESSAGE_ID_MAX, Message, Owner, Queued,
    Retained, Session, Subscription, Will, decode,
};

/// Checks that the change encodes to exactly these bytes and back, and that no shorter prefix
/// decodes to the same.
fn check(change: &Change<'_>, parts: &[&[u8]]) {
    let mut bytes = Vec::new();
    encode(change, &mut bytes);
    assert_eq!(bytes, parts.concat(), "{change:?}");
    assert_eq!(decode(&bytes).as_ref(), Ok(change));
    for len in 0..bytes.len() {
        assert_ne!(decode(&bytes[..len]).as_ref(), Ok(change));
    }
}

const NINE: [u8; 8] = [9, 0, 0, 0, 0, 0, 0, 0];
const BIG: [u8; 8] = [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11];
const BIG_NUMBER: u64 = 0x1122_3344_5566_7788;

fn packet_id(value: u16) -> PacketId {
    PacketId::new(value).unwrap()
}

#[test]
fn sessions() {
    let mut session = Session {
        id: 9,
        client_id: "c\u{fc}",
        version: Version::V5,
        expiry_secs: 0x0102_0304,
        away_since: None,
        packet_id_hint: 0x0506,
        owner: Owner::Unknown,
    };
    let rest = [&[6, 5], "c\u{fc}".as_bytes()].concat();
    let expiry = [4, 3, 2, 1];
    check(
        &Change::Session(session),
        &[&[1], &NINE, &[5], &expiry, &[255; 8], &rest],
    );
    session.away_since = Some(BIG_NUMBER);
    session.version = Version::V31;
    check(
        &Change::Session(session),
        &[&[1], &NINE, &[3], &expiry, &BIG, &rest],
    );
    check(&Change::SessionRemoved { session: 9 }, &[&[2], &NINE]);
}

#[test]
fn sessions_with_an_owner() {
    let mut session = Session {
        id: 9,
        client_id: "c",
        version: Version::V5,
        expiry_secs: 7,
        away_since: None,
        packet_id_hint: 0x0506,
        owner: Owner::Anonymous,
    };
    let fixed = [&[15][..], &NINE, &[5], &[7, 0, 0, 0], &[255; 8], &[6, 5]].concat();
    check(&Change::Session(session), &[&fixed, &[0, 0, 0, 0, 0], b"c"]);
    session.owner = Owner::User("");
    check(&Change::Session(session), &[&fixed, &[1, 0, 0, 0, 0], b"c"]);
    session.owner = Owner::User("fl\u{fc}");
    let user = [&[1, 4, 0, 0, 0], "fl\u{fc}".as_bytes()].concat();
    check(&Change::Session(session), &[&fixed, &user, b"c"]);
    for malformed in [[2, 0, 0, 0, 0], [0, 1, 0, 0, 0], [1, 9, 0, 0, 0]] {
        let bytes = [&fixed, &malformed[..], b"c"].concat();
        assert!(decode(&bytes).is_err(), "{malformed:?}");
    }
}

#[test]
fn subscriptions() {
    let options = SubscriptionOptions {
        qos: QoS::ExactlyOnce,
        no_local: true,
        retain_as_published: false,
        retain_handling: RetainHandling::Never,
    };
    let subscription = Subscription {
        session: 9,
        filter: "$share/g/a/+",
        options,
        identifier: 7,
        owed: None,
    };
    check(
        &Change::Subscription(subscription),
        &[&[3], &NINE, &[0b10_0110], &[7, 0, 0, 0], b"$share/g/a/+"],
    );
    let options = SubscriptionOptions {
        retain_as_published: true,
        retain_handling: RetainHandling::SendIfNew,
        ..SubscriptionOptions::default()
    };
    let subscription = Subscription {
        filter: "#",
        options,
        ..subscription
    };
    check(
        &Change::Subscription(subscription),
        &[&[3], &NINE, &[0b01_1000], &[7, 0, 0, 0], b"#"],
    );
    for owed in [&b"place"[..], b""] {
        let len = [u8::try_from(owed.len()).unwrap(), 0, 0, 0];
        let subscription = Subscription {
            owed: Some(owed),
            ..subscription
        };
        check(
            &Change::Subscription(subscription),
            &[&[20], &NINE, &[0b01_1000], &[7, 0, 0, 0], &len, owed, b"#"],
        );
    }
    let removed = Change::SubscriptionRemoved {
        session: 9,
        filter: "#",
    };
    check(&removed, &[&[4], &NINE, b"#"]);
}

#[test]
fn messages_and_wills() {
    let message = Message {
        id: 9,
        publisher: 0,
        published_at: BIG_NUMBER,
        expires_at: Some(9),
        qos: QoS::AtLeastOnce,
        retain: true,
        topic: "t/1",
        properties: b"\x01",
        payload: b"\x00pay",
    };
    let content = b"\x03\0\0\0\x01\0\0\0t/1\x01\0pay";
    check(
        &Change::Message(message),
        &[&[5], &NINE, &[0; 8], &BIG, &[0b1101], &NINE, content],
    );
    let message = Message {
        expires_at: None,
        retain: false,
        qos: QoS::AtMostOnce,
        ..message
    };
    check(
        &Change::Message(message),
        &[&[5], &NINE, &[0; 8], &BIG, &[0], content],
    );
    let will = Will {
        session: 9,
        delay_secs: 5,
        message_expiry_secs: Some(6),
        qos: QoS::ExactlyOnce,
        retain: false,
        topic: "t/1",
        properties: b"\x01",
        payload: b"\x00pay",
    };
    let delay = [5, 0, 0, 0];
    check(
        &Change::Will(will),
        &[&[11], &NINE, &delay, &[0b1010], &[6, 0, 0, 0], content],
    );
    let will = Will {
        message_expiry_secs: None,
        ..will
    };
    check(
        &Change::Will(will),
        &[&[11], &NINE, &delay, &[0b10], content],
    );
    check(&Change::WillRemoved { session: 9 }, &[&[12], &NINE]);
}

#[test]
fn deliveries() {
    let queued = Queued {
        session: 9,
        seq: BIG_NUMBER,
        message: 9,
        qos: QoS::AtLeastOnce,
        retain: true,
        identifiers: Identifiers::Listed(&[1, 0x0102]),
        group: "$share/g/#",
    };
    let identifiers = [2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 0, 0];
    check(
        &Change::Queued(queued),
        &[
            &[6],
            &NINE,
            &BIG,
            &NINE,
            &[0b101],
            &identifiers,
            b"$share/g/#",
        ],
    );
    let inflight = Inflight {
        session: 9,
        seq: BIG_NUMBER,
        packet_id: packet_id(0x0102),
        awaiting: Awaiting::PubComp,
    };
    check(
        &Change::Inflight(inflight),
        &[&[7], &NINE, &BIG, &[2, 1, 3]],
    );
    let removed = Change::DeliveryRemoved {
        session: 9,
        seq: BIG_NUMBER,
    };
    check(&removed, &[&[8], &NINE, &BIG]);
    let (session, id) = (9, packet_id(65_535));
    let received = Change::Received {
        session,
        packet_id: id,
    };
    check(&received, &[&[9], &NINE, &[255, 255]]);
    let removed = Change::ReceivedRemoved {
        session,
        packet_id: id,
    };
    check(&removed, &[&[10], &NINE, &[255, 255]]);
}

#[test]
fn retained_messages() {
    let retained = Retained {
        change: BIG_NUMBER,
        topic: "a",
        message: 9,
        source: None,
    };
    check(&Change::Retained(retained), &[&[13], &BIG, &NINE, b"a"]);
    for source in [&b"who"[..], b""] {
        let len = [u8::try_from(source.len()).unwrap(), 0, 0, 0];
        let retained = Retained {
            source: Some(source),
            ..retained
        };
        check(
            &Change::Retained(retained),
            &[&[26], &BIG, &NINE, &len, source, b"a"],
        );
    }
    let removed = Change::RetainedRemoved {
        change: BIG_NUMBER,
        topic: "a",
    };
    check(&removed, &[&[14], &BIG, b"a"]);
}

#[test]
fn notes_of_the_clock() {
    let note = ClockNote {
        at: 9,
        wall: BIG_NUMBER,
        latest_at: 1,
        latest_wall: 9,
    };
    let one = [1, 0, 0, 0, 0, 0, 0, 0];
    check(&Change::Clock(note), &[&[24], &NINE, &BIG, &one, &NINE]);
}

#[test]
fn segments_given_back() {
    check(&Change::Reclaimed { segment: 9 }, &[&[25], &NINE]);
}

#[test]
fn invalid_bytes_are_refused() {
    for bytes in [
        &b""[..],
        &[0],
        &[15, 0, 0],
        &[2, 1, 2, 3],
        // Invalid UTF-8.
        &[&[14][..], &NINE, &[0xFF]].concat(),
        // Message number 0.
        &[&[13][..], &NINE, &[0; 8]].concat(),
        // Packet identifier 0.
        &[&[9][..], &NINE, &[0, 0]].concat(),
        // Quality of service 3.
        &[&[3][..], &NINE, &[3, 0, 0, 0, 0]].concat(),
        // A source longer than the record.
        &[&[26][..], &NINE, &NINE, &[4, 0, 0, 0], b"who"].concat(),
        // More identifiers than bytes.
        &[&[6][..], &NINE, &NINE, &NINE, &[0, 255, 255, 255, 255]].concat(),
        // Trailing bytes.
        &[&[2][..], &NINE, &[0]].concat(),
    ] {
        assert!(decode(bytes).is_err(), "{bytes:?}");
    }
}

/// Checks that one byte of a record has only these values.
#[track_caller]
fn check_byte(before: &[&[u8]], after: &[u8], valid: &[u8]) {
    for byte in 0..=255 {
        let bytes = [&before.concat(), &[byte][..], after].concat();
        assert_eq!(decode(&bytes).is_ok(), valid.contains(&byte), "{byte}");
    }
}

#[test]
fn a_record_with_an_unknown_value_of_an_enumeration_is_malformed() {
    // Protocol versions.
    check_byte(&[&[1], &NINE], &[&[0; 14][..], b"c"].concat(), &[3, 4, 5]);
    // The owner of a session, without and with a name.
    let owned = [&[15][..], &NINE, &[5], &[0; 14]].concat();
    check_byte(&[&owned], &[0, 0, 0, 0, b'c'], &[0, 1]);
    check_byte(&[&owned], &[1, 0, 0, 0, b'u', b'c'], &[1]);
    // Steps of a delivery.
    check_byte(&[&[7], &NINE, &NINE, &[1, 0]], &[], &[1, 2, 3]);
    // Quality of service, retain flag and expiry.
    let (times, lengths) = ([0; 8], [0; 8]);
    let message = [&[5][..], &NINE, &NINE, &NINE].concat();
    let content = [&times[..], &lengths].concat();
    check_byte(
        &[&message],
        &content,
        &[0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14],
    );
    // A delivery has no expiry of its own.
    let queued = [&[6][..], &NINE, &NINE, &NINE].concat();
    check_byte(&[&queued], &[0; 4], &[0, 1, 2, 4, 5, 6]);
}

#[test]
fn every_combination_of_subscription_options_is_decoded_as_encoded() {
    let (mut qualities, mut bits) = (0, Vec::new());
    for qos in [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce] {
        for handling in 0..3 {
            for flags in 0..4 {
                bits.push(qualities | (flags << 2) | (handling << 4));
                let options = SubscriptionOptions {
                    qos,
                    no_local: flags & 1 != 0,
                    retain_as_published: flags & 2 != 0,
                    retain_handling: [
                        RetainHandling::Send,
                        RetainHandling::SendIfNew,
                        RetainHandling::Never,
                    ][usize::from(handling)],
                };
                let subscription = Subscription {
                    session: 9,
                    filter: "a",
                    options,
                    identifier: 0,
                    owed: None,
                };
                let byte = [*bits.last().unwrap()];
                check(
                    &Change::Subscription(subscription),
                    &[&[3], &NINE, &byte, &[0; 4], b"a"],
                );
            }
        }
        qualities += 1;
    }
    check_byte(&[&[3], &NINE], &[0, 0, 0, 0, b'a'], &bits);
}

#[test]
fn sessions_of_every_version_and_steps_of_every_kind_are_decoded_as_encoded() {
    for (version, level) in [(Version::V31, 3), (Version::V311, 4), (Version::V5, 5)] {
        let session = Session {
            id: 9,
            client_id: "c",
            version,
            expiry_secs: 0,
            away_since: Some(0),
            packet_id_hint: 0,
            owner: Owner::Unknown,
        };
        check(
            &Change::Session(session),
            &[&[1], &NINE, &[level], &[0; 14], b"c"],
        );
    }
    let steps = [
        (Awaiting::PubAck, 1),
        (Awaiting::PubRec, 2),
        (Awaiting::PubComp, 3),
    ];
    for (awaiting, byte) in steps {
        let inflight = Inflight {
            session: 9,
            seq: 9,
            packet_id: packet_id(1),
            awaiting,
        };
        check(
            &Change::Inflight(inflight),
            &[&[7], &NINE, &NINE, &[1, 0, byte]],
        );
    }
}

#[test]
fn messages_are_numbered_from_1_to_the_highest_of_62_bits() {
    let decoded = |id: u64| decode(&[&[13][..], &NINE, &id.to_le_bytes(), b"a"].concat()).is_ok();
    assert_eq!(MESSAGE_ID_MAX, u64::MAX >> 2);
    let valid = [0, 1, MESSAGE_ID_MAX, MESSAGE_ID_MAX + 1].map(decoded);
    assert_eq!(valid, [false, true, true, false]);
}

#[test]
fn a_boxed_owner_equals_the_borrowed_one() {
    let owners = [Owner::Unknown, Owner::Anonymous, Owner::User("u")];
    for owner in owners {
        assert_eq!(owner.boxed().as_deref(), owner);
    }
    assert_eq!(owners.map(Owner::user), [None, None, Some("u")]);
}

#[test]
fn listed_and_stored_identifiers_are_equal() {
    let listed = Identifiers::Listed(&[1, 0x0102]);
    let stored = Identifiers::Stored(&[1, 0, 0, 0, 2, 1, 0, 0]);
    assert_eq!(listed, stored);
    assert_ne!(listed, Identifiers::Listed(&[1]));
    assert_ne!(stored, Identifiers::NONE);
    assert_eq!(stored.iter().collect::<Vec<_>>(), [1, 0x0102]);
}
