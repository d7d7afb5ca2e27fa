//! Strings that are not UTF-8 or hold U+0000, in every field that is a string.

use thrum_codec::Version::{V5, V311};
use thrum_codec::{DecodeError, Version};

use super::{framed, malformed, read};

/// Packets with `@@@@` in every string field and `%%%%` in every binary one.
const PACKETS: [(Version, u8, &[u8]); 12] = [
    (V311, 0x10, b"\x00\x04MQTT\x04\xC6\x00\x00\x00\x04@@@@\x00\x04@@@@\x00\x04%%%%\x00\x04@@@@\x00\x04%%%%"),
    (V5, 0x10, b"\x00\x04MQTT\x05\xC6\x00\x00\x19\x15\x00\x04@@@@\x16\x00\x04%%%%\x26\x00\x04@@@@\x00\x02kk\
        \x00\x04@@@@\x22\x03\x00\x04@@@@\x08\x00\x04@@@@\x09\x00\x04%%%%\x26\x00\x04@@@@\x00\x04@@@@\
        \x00\x04@@@@\x00\x04%%%%\x00\x04@@@@\x00\x04%%%%"),
    (V5, 0x20, b"\x00\x00\x38\x12\x00\x04@@@@\x1F\x00\x04@@@@\x1A\x00\x04@@@@\x1C\x00\x04@@@@\x15\x00\x04@@@@\
        \x16\x00\x04%%%%\x26\x00\x04@@@@\x00\x05@@@@k"),
    (V311, 0x30, b"\x00\x04@@@@payload"),
    (V5, 0x30, b"\x00\x04@@@@\x22\x08\x00\x04@@@@\x09\x00\x04%%%%\x03\x00\x04@@@@\x26\x00\x04@@@@\x00\x04@@@@payload"),
    (V5, 0x40, b"\x00\x01\x00\x14\x1F\x00\x04@@@@\x26\x00\x04@@@@\x00\x04@@@@"),
    (V311, 0x82, b"\x00\x01\x00\x04@@@@\x00\x00\x04@@@@\x01"),
    (V5, 0x82, b"\x00\x01\x0D\x26\x00\x04@@@@\x00\x04@@@@\x00\x04@@@@\x00"),
    (V311, 0xA2, b"\x00\x01\x00\x04@@@@\x00\x04@@@@"),
    (V5, 0xA2, b"\x00\x01\x0D\x26\x00\x04@@@@\x00\x04@@@@\x00\x04@@@@"),
    (V5, 0xE0, b"\x00\x1B\x1F\x00\x04@@@@\x1C\x00\x04@@@@\x26\x00\x04@@@@\x00\x04@@@@"),
    (V5, 0xF0, b"\x18\x22\x15\x00\x04@@@@\x16\x00\x04%%%%\x1F\x00\x04@@@@\x26\x00\x04@@@@\x00\x04@@@@"),
];

/// Four bytes each: surrogates, overlong forms, above U+10FFFF, truncated, stray, never valid.
const NOT_UTF8: [&[u8; 4]; 14] = [
    b"\xED\xA0\x80a",
    b"\xED\xBF\xBFa",
    b"\xED\xAF\xBF\xED",
    b"\xC0\x80ab",
    b"\xC1\xBFab",
    b"\xE0\x80\x80a",
    b"\xE0\x9F\xBFa",
    b"\xF0\x80\x80\x80",
    b"\xF0\x8F\xBF\xBF",
    b"\xF4\x90\x80\x80",
    b"ab\xE2\x82",
    b"\x80abc",
    b"\xFEabc",
    b"abc\xFF",
];

/// Unusual but valid text: control characters, noncharacters, a byte order mark, planes above 0.
const TEXT: [&[u8; 4]; 6] = [
    b"\x01\x02\x7Fa",
    b"\xC2\x80ab",
    b"\xEF\xBB\xBFa",
    b"\xEF\xBF\xBFa",
    b"\xF4\x8F\xBF\xBF",
    b"\xF0\x9F\x98\x80",
];

/// Every packet with one of its `marker` fields replaced.
fn with_field_replaced(marker: &[u8], by: &[u8], mut visit: impl FnMut(Version, &[u8])) {
    let mut count = 0;
    for (version, first, body) in PACKETS {
        for at in 0..body.len() - 3 {
            if &body[at..at + 4] == marker {
                let mut changed = body.to_vec();
                changed[at..at + 4].copy_from_slice(by);
                visit(version, &framed(first, &changed));
                count += 1;
            }
        }
    }
    assert!(count >= 9, "only {count} fields found");
}

#[track_caller]
fn refuse_in_every_string(text: &[u8], errors: &[DecodeError]) {
    with_field_replaced(b"@@@@", text, |version, bytes| {
        let error = read(version, bytes).expect_err("the string must be refused");
        assert!(errors.contains(&error), "{error}: {}", bytes.escape_ascii());
    });
}

#[test]
fn the_samples_are_valid() {
    for (version, first, body) in PACKETS {
        assert_eq!(
            read(version, &framed(first, body)),
            Ok(()),
            "{version:?} {first:02X}"
        );
    }
}

/// [MQTT-1.5.4-1] [MQTT-1.5.7-1] [MQTT-3.1.3-4] [MQTT-3.1.3-11] [MQTT-3.1.3-12] [MQTT-3.3.2-1]
/// [MQTT-3.3.2-13] [MQTT-3.3.2-19] [MQTT-3.8.3-1] [MQTT-3.10.3-1]
/// [MQTT3-1.5.3-1] [MQTT3-3.1.3-4] [MQTT3-3.1.3-10] [MQTT3-3.1.3-11] [MQTT3-3.3.2-1]
/// [MQTT3-3.8.3-1] [MQTT3-3.10.3-1]
#[test]
fn strings_that_are_not_utf8() {
    for text in NOT_UTF8 {
        refuse_in_every_string(text, &[malformed("string is not UTF-8")]);
    }
}

/// [MQTT-1.5.4-2] [MQTT-1.5.7-1] [MQTT-4.7.3-2] [MQTT3-1.5.3-2] [MQTT3-4.7.3-2]
#[test]
fn strings_with_nul() {
    let errors = [
        malformed("string with U+0000"),
        malformed("topic name with a wildcard or U+0000"),
    ];
    for text in [b"\0abc", b"ab\0c", b"abc\0", b"\0\0\0\0"] {
        refuse_in_every_string(text, &errors);
    }
}

/// [MQTT-1.5.4-3] [MQTT3-1.5.3-3]
#[test]
fn unusual_text_is_text() {
    for text in TEXT {
        with_field_replaced(b"@@@@", text, |version, bytes| {
            assert_eq!(read(version, bytes), Ok(()), "{}", bytes.escape_ascii());
        });
    }
}

#[test]
fn binary_fields_take_any_bytes() {
    for bytes in NOT_UTF8.into_iter().chain([b"\0\0\0\0"]) {
        with_field_replaced(b"%%%%", bytes, |version, packet| {
            assert_eq!(read(version, packet), Ok(()), "{}", packet.escape_ascii());
        });
    }
}
