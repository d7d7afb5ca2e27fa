//! Reason codes in packets that cannot have them.

use super::{FIVE, THREE, accept, protocol, refuse};

/// First byte, the bytes before and after the reason code, and the codes of the specification.
type Carrier<'a> = (u8, &'a [u8], &'a [u8], &'a [u8]);

const OF_PUBLISH: &[u8] = &[0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99];
const OF_RELEASE: &[u8] = &[0x00, 0x92];
const OF_SUBSCRIBE: &[u8] = &[
    0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2,
];
const OF_UNSUBSCRIBE: &[u8] = &[0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91];
const OF_CONNECT: &[u8] = &[
    0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90, 0x95, 0x97,
    0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F,
];
// Table 2-6 lists 0x8C for DISCONNECT; the table in the DISCONNECT section does not.
const OF_DISCONNECT: &[u8] = &[
    0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8B, 0x8C, 0x8D, 0x8E, 0x8F, 0x90, 0x93, 0x94,
    0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1, 0xA2,
];
const OF_AUTH: &[u8] = &[0x00, 0x18, 0x19];

const CARRIERS: [Carrier<'_>; 12] = [
    (0x20, b"\x00", b"\x00", OF_CONNECT),
    (0x40, b"\x00\x01", b"", OF_PUBLISH),
    (0x40, b"\x00\x01", b"\x00", OF_PUBLISH),
    (0x50, b"\x00\x01", b"", OF_PUBLISH),
    (0x62, b"\x00\x01", b"", OF_RELEASE),
    (0x70, b"\x00\x01", b"\x00", OF_RELEASE),
    (0x90, b"\x00\x01\x00", b"", OF_SUBSCRIBE),
    (0x90, b"\x00\x01\x00\x01", b"\x02", OF_SUBSCRIBE),
    (0xB0, b"\x00\x01\x00\x11", b"\x00", OF_UNSUBSCRIBE),
    (0xE0, b"", b"", OF_DISCONNECT),
    (0xE0, b"", b"\x00", OF_DISCONNECT),
    (0xF0, b"", b"\x04\x15\x00\x01m", OF_AUTH),
];

/// [MQTT-3.2.2-8] [MQTT-3.4.2-1] [MQTT-3.5.2-1] [MQTT-3.6.2-1] [MQTT-3.7.2-1] [MQTT-3.9.3-2]
/// [MQTT-3.11.3-2] [MQTT-3.14.2-1] [MQTT-3.15.2-1]
#[test]
fn only_the_listed_reason_codes_are_accepted() {
    let error = protocol("reason code that this packet cannot have");
    for (first, before, after, listed) in CARRIERS {
        for code in 0..=u8::MAX {
            let body = [before, &[code], after].concat();
            if listed.contains(&code) {
                accept(FIVE, first, &body);
            } else {
                refuse(FIVE, &[(first, &body, error)]);
            }
        }
    }
}

/// [MQTT3-3.9.3-2]
#[test]
fn only_the_listed_return_codes_of_suback_are_accepted() {
    let error = protocol("reserved SUBACK return code");
    for code in 0..=u8::MAX {
        let body = [0, 1, 0, code];
        if [0, 1, 2, 0x80].contains(&code) {
            accept(THREE, 0x90, &body);
        } else {
            refuse(THREE, &[(0x90, &body, error)]);
        }
    }
}
