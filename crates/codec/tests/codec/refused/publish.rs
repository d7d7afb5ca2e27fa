//! PUBLISH, its acknowledgements, DISCONNECT and AUTH.

use super::{EVERY, FIVE, THREE, TRAILING, TRUNCATED, accept, malformed, protocol, refuse};

/// [MQTT-3.3.1-4] [MQTT3-3.3.1-4]
#[test]
fn qos_3() {
    let error = malformed("QoS 3");
    for first in [0x36, 0x37, 0x3E, 0x3F] {
        refuse(
            EVERY,
            &[
                (first, b"\x00\x01t\x00\x01\x00", error),
                (first, b"", error),
            ],
        );
    }
}

/// [MQTT-3.3.1-2] [MQTT3-3.3.1-2]
#[test]
fn dup_with_qos_0() {
    let error = malformed("DUP with QoS 0");
    refuse(
        EVERY,
        &[
            (0x38, b"\x00\x01t\x00", error),
            (0x39, b"\x00\x01t\x00", error),
        ],
    );
}

/// [MQTT-3.3.2-2] [MQTT-4.7.0-1] [MQTT-4.7.3-2] [MQTT3-3.3.2-2] [MQTT3-4.7.1-1] [MQTT3-4.7.3-2]
#[test]
fn topic_name_with_wildcard_or_nul() {
    let error = malformed("topic name with a wildcard or U+0000");
    for topic in [
        &b"#"[..],
        b"+",
        b"a/#",
        b"a/+",
        b"+/a",
        b"a+",
        b"a#b",
        b"\0",
        b"a\0",
        b"\0a",
        b"a/b/c/d/e/f/g/h/i/+",
    ] {
        let len = u8::try_from(topic.len()).expect("short");
        let body = [&[0, len], topic, b"\x00\x01\x00"].concat();
        refuse(
            EVERY,
            &[
                (0x30, &body, error),
                (0x32, &body, error),
                (0x3D, &body, error),
            ],
        );
    }
}

/// [MQTT-4.7.3-1] [MQTT3-4.7.3-1]
#[test]
fn no_topic_name() {
    refuse(THREE, &[(0x30, b"\x00\x00", malformed("empty topic name"))]);
    let error = protocol("neither topic name nor topic alias");
    refuse(
        FIVE,
        &[
            (0x30, b"\x00\x00\x00", error),
            (0x30, b"\x00\x00\x02\x01\x00", error),
        ],
    );
    refuse(FIVE, &[(0x32, b"\x00\x00\x00\x01\x00", error)]);
}

/// [MQTT-3.3.2-1] [MQTT3-3.3.2-1]
#[test]
fn publish_that_ends_early() {
    for first in [0x30, 0x32, 0x34] {
        for body in [&b""[..], b"\x00", b"\x00\x02t", b"\xFF\xFFt"] {
            refuse(EVERY, &[(first, body, TRUNCATED)]);
        }
    }
    refuse(
        EVERY,
        &[
            (0x32, b"\x00\x01t", TRUNCATED),
            (0x34, b"\x00\x01t\x00", TRUNCATED),
        ],
    );
    refuse(
        FIVE,
        &[
            (0x30, b"\x00\x01t", TRUNCATED),
            (0x32, b"\x00\x01t\x00\x01", TRUNCATED),
        ],
    );
}

/// [MQTT-3.3.2-8]
#[test]
fn topic_alias_0() {
    let error = protocol("property that is 0");
    refuse(FIVE, &[(0x30, b"\x00\x00\x03\x23\x00\x00", error)]);
    refuse(FIVE, &[(0x30, b"\x00\x01t\x03\x23\x00\x00", error)]);
}

/// [MQTT-3.3.2-14]
#[test]
fn response_topic_that_is_no_topic_name() {
    let error = malformed("response topic that is empty or has a wildcard");
    for topic in [&b"\x00\x00"[..], b"\x00\x01#", b"\x00\x01+", b"\x00\x03a/#"] {
        let property = [&[0x08], topic].concat();
        let len = u8::try_from(property.len()).expect("short");
        let publish = [b"\x00\x01t", &[len][..], &property].concat();
        refuse(FIVE, &[(0x30, &publish, error)]);
        let head = b"\x00\x04MQTT\x05\x06\x00\x00\x00\x00\x00";
        let connect = [&head[..], &[len], &property, b"\x00\x01w\x00\x00"].concat();
        refuse(EVERY, &[(0x10, &connect, error)]);
    }
}

#[test]
fn acks_of_another_length() {
    for first in [0x40, 0x50, 0x62, 0x70] {
        refuse(
            EVERY,
            &[(first, b"", TRUNCATED), (first, b"\x01", TRUNCATED)],
        );
        refuse(FIVE, &[(first, b"\x00\x01\x00\x00\x00", TRAILING)]);
        refuse(FIVE, &[(first, b"\x00\x01\x00\x01", TRUNCATED)]);
        refuse(FIVE, &[(first, b"\x00\x01\x00\x80", TRUNCATED)]);
    }
}

#[test]
fn disconnect_and_auth_of_another_length() {
    refuse(
        FIVE,
        &[
            (0xE0, b"\x00\x00\x00", TRAILING),
            (0xE0, b"\x00\x01", TRUNCATED),
        ],
    );
    refuse(
        FIVE,
        &[(0xF0, b"\x00", TRUNCATED), (0xF0, b"\x18", TRUNCATED)],
    );
    refuse(FIVE, &[(0xF0, b"\x18\x04\x15\x00\x01m\x00", TRAILING)]);
}

#[test]
fn auth_without_method() {
    let error = protocol("AUTH without authentication method");
    refuse(
        FIVE,
        &[
            (0xF0, b"\x18\x00", error),
            (0xF0, b"\x19\x00", error),
            (0xF0, b"\x18\x04\x16\x00\x01d", error),
            (0xF0, b"\x00\x04\x1F\x00\x01s", error),
        ],
    );
    accept(FIVE, 0xF0, b"\x18\x03\x15\x00\x00");
}
