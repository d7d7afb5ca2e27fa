//! Fixed headers: packet types, flags and lengths.

use thrum_codec::Version::{V5, V31, V311};
use thrum_codec::{DecodeError, frame};

use super::{EVERY, FIVE, THREE, TRAILING, accept, malformed, read, refuse};

/// A body for each packet type that all three versions accept, with its flags.
const SAMPLES: [(u8, &[u8]); 4] = [
    (0x10, b"\x00\x04MQTT\x04\x02\x00\x00\x00\x00"),
    (0xC0, b""),
    (0xD0, b""),
    (0xE0, b""),
];

const ACKS: [(u8, &[u8]); 4] = [
    (0x40, b"\x00\x01"),
    (0x50, b"\x00\x01"),
    (0x62, b"\x00\x01"),
    (0x70, b"\x00\x01"),
];

const OF_3: [(u8, &[u8]); 5] = [
    (0x20, b"\x00\x00"),
    (0x82, b"\x00\x01\x00\x01a\x00"),
    (0x90, b"\x00\x01\x00"),
    (0xA2, b"\x00\x01\x00\x01a"),
    (0xB0, b"\x00\x01"),
];

const OF_5: [(u8, &[u8]); 6] = [
    (0x20, b"\x00\x00\x00"),
    (0x82, b"\x00\x01\x00\x00\x01a\x00"),
    (0x90, b"\x00\x01\x00\x00"),
    (0xA2, b"\x00\x01\x00\x00\x01a"),
    (0xB0, b"\x00\x01\x00\x00"),
    (0xF0, b""),
];

/// [MQTT-2.1.3-1] [MQTT-3.6.1-1] [MQTT-3.8.1-1] [MQTT-3.10.1-1] [MQTT-3.14.1-1] [MQTT-3.15.1-1]
/// [MQTT3-2.2.2-1] [MQTT3-2.2.2-2] [MQTT3-3.6.1-1] [MQTT3-3.8.1-1] [MQTT3-3.10.1-1]
/// [MQTT3-3.14.1-1]
#[test]
fn flags_other_than_the_fixed_ones() {
    let error = malformed("reserved flags of the fixed header");
    for version in [V31, V311, V5] {
        let own: &[(u8, &[u8])] = if version == V5 { &OF_5 } else { &OF_3 };
        for &(first, body) in SAMPLES.iter().chain(&ACKS).chain(own) {
            accept(&[version], first, body);
            // 3.1 has DUP on packets with QoS 1.
            let may_repeat = version == V31 && first & 0x0F == 2;
            let refused =
                (0..16).filter(|flags| first & 0x0F != *flags && !(may_repeat && *flags == 0x0A));
            for flags in refused {
                refuse(&[version], &[(first & 0xF0 | flags, body, error)]);
            }
        }
    }
}

#[test]
fn packet_types_that_do_not_exist() {
    let error = malformed("reserved packet type");
    for flags in 0..16 {
        refuse(EVERY, &[(flags, b"", error), (flags, b"\x00\x01", error)]);
        refuse(
            THREE,
            &[
                (0xF0 | flags, b"", error),
                (0xF0 | flags, b"\x18\x00", error),
            ],
        );
    }
}

#[test]
fn bodies_of_packets_without_body() {
    refuse(
        EVERY,
        &[(0xC0, b"\x00", TRAILING), (0xD0, b"\x00", TRAILING)],
    );
    refuse(THREE, &[(0xE0, b"\x00", TRAILING)]);
    refuse(THREE, &[(0xB0, b"\x00\x01\x00", TRAILING)]);
    for first in [0x40, 0x50, 0x62, 0x70] {
        refuse(THREE, &[(first, b"\x00\x01\x00", TRAILING)]);
    }
}

#[test]
fn a_remaining_length_of_five_bytes() {
    let error = Err(malformed("variable byte integer over four bytes"));
    for bytes in [
        b"\xC0\x80\x80\x80\x80\x00".as_slice(),
        b"\x30\xFF\xFF\xFF\xFF",
        b"\x00\x80\x80\x80\x80",
    ] {
        assert_eq!(frame::split(bytes, u32::MAX).map(|_| ()), error);
        assert_eq!(frame::announced_len(bytes), None);
    }
    assert_eq!(frame::split(b"\xC0\x80\x80\x80", u32::MAX), Ok(None));
}

/// [MQTT-1.5.5-1]
#[test]
fn a_remaining_length_with_leading_zeros_in_5() {
    let error = Err(malformed("remaining length not in its shortest form"));
    for bytes in [
        b"\xC0\x80\x00".as_slice(),
        b"\xC0\x80\x80\x80\x00",
        b"\x40\x82\x00\x00\x01",
        b"\x30\x84\x80\x00\x00\x01t\x00",
        b"\x90\x84\x80\x00\x00\x01\x00\x00",
        b"\xE0\x80\x00",
        b"\xF0\x80\x00",
    ] {
        assert_eq!(read(V5, bytes), error, "{}", bytes.escape_ascii());
    }
    let connect = b"\x10\x8D\x00\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x00";
    for version in [V31, V311, V5] {
        assert_eq!(read(version, connect), error);
    }
}

#[test]
fn packets_over_the_limit_are_refused_before_they_arrive() {
    assert_eq!(
        frame::split(b"\x30\x80\x01", 130),
        Err(DecodeError::TooLarge)
    );
    assert_eq!(frame::split(b"\x30\x80\x01", 131), Ok(None));
    assert_eq!(frame::announced_len(b"\x30\x80\x01"), Some(131));
    assert_eq!(
        frame::split(b"\x30\xFF\xFF\xFF\x7F", 268_435_459),
        Err(DecodeError::TooLarge)
    );
    assert_eq!(frame::split(b"\x30\xFF\xFF\xFF\x7F", 268_435_460), Ok(None));
    assert_eq!(frame::split(b"\xC0\x00", 1), Err(DecodeError::TooLarge));
    assert!(matches!(frame::split(b"\xC0\x00", 2), Ok(Some(_))));
    for part in [b"".as_slice(), b"\x30", b"\x30\x80"] {
        assert_eq!(
            frame::split(part, 0),
            Ok(None),
            "the length is not known yet"
        );
        assert_eq!(frame::announced_len(part), None);
    }
}

/// [MQTT-2.2.1-3] [MQTT-2.2.1-4] [MQTT3-2.3.1-1]
#[test]
fn packet_identifier_0() {
    let error = protocol_zero();
    for (first, body) in ACKS {
        refuse(
            EVERY,
            &[(first, &[b"\x00\x00", &body[2..]].concat(), error)],
        );
    }
    for (first, body) in OF_3.iter().skip(1) {
        refuse(
            THREE,
            &[(*first, &[b"\x00\x00", &body[2..]].concat(), error)],
        );
    }
    for (first, body) in OF_5.iter().skip(1).take(4) {
        refuse(
            FIVE,
            &[(*first, &[b"\x00\x00", &body[2..]].concat(), error)],
        );
    }
    for first in [0x32, 0x34, 0x3A, 0x3C] {
        refuse(EVERY, &[(first, b"\x00\x01t\x00\x00\x00", error)]);
    }
}

const fn protocol_zero() -> DecodeError {
    super::protocol("packet identifier 0")
}

#[test]
fn every_refusal_has_its_reason_code() {
    use thrum_codec::ReasonCode;
    assert_eq!(malformed("x").reason(), ReasonCode::MalformedPacket);
    assert_eq!(super::protocol("x").reason(), ReasonCode::ProtocolError);
    assert_eq!(DecodeError::TooLarge.reason(), ReasonCode::PacketTooLarge);
    assert_eq!(
        DecodeError::UnsupportedVersion.reason(),
        ReasonCode::UnsupportedProtocolVersion
    );
}
