//! CONNECT and CONNACK.

use thrum_codec::DecodeError::UnsupportedVersion;
use thrum_codec::Version::{V31, V311};

use super::{
    EVERY, FIVE, Row, STRICT, THREE, TRAILING, TRUNCATED, accept, malformed, protocol, refuse,
};

const OF_3_1: &[u8] = b"\x00\x06MQIsdp\x03";
const OF_3_1_1: &[u8] = b"\x00\x04MQTT\x04";
const OF_5: &[u8] = b"\x00\x04MQTT\x05";

/// Checks that a CONNECT is refused for every version argument, which is ignored.
#[track_caller]
fn refuse_connect(head: &[u8], rows: &[(&[u8], thrum_codec::DecodeError)]) {
    for &(tail, error) in rows {
        refuse(EVERY, &[(0x10, &[head, tail].concat(), error)]);
    }
}

/// [MQTT-3.1.2-1] [MQTT-3.1.2-2] [MQTT3-3.1.2-1] [MQTT3-3.1.2-2]
#[test]
fn unknown_protocol_name_or_level() {
    let tail = b"\x02\x00\x00\x00\x00";
    let names: [&[u8]; 9] = [
        b"MQTT",
        b"MQIsdp",
        b"mqtt",
        b"MQTTX",
        b"MQT",
        b"",
        b"HTTP",
        b"MQISDP",
        b"\xFF\xFE",
    ];
    for name in names {
        for level in 0..=u8::MAX {
            let is_known = matches!(
                (name, level),
                (b"MQTT", 4 | 5 | 0x84) | (b"MQIsdp", 3 | 0x83)
            );
            let len = u8::try_from(name.len()).expect("short");
            let body = [&[0, len], name, &[level], &tail[..]].concat();
            if !is_known {
                refuse(EVERY, &[(0x10, &body, UnsupportedVersion)]);
            }
        }
    }
    // A later version may have any bytes after its level, and other flags before it.
    refuse(EVERY, &[(0x10, b"\x00\x04MQTT\x06", UnsupportedVersion)]);
    refuse(
        EVERY,
        &[(0x1F, b"\x00\x04MQTT\x06\xFF", UnsupportedVersion)],
    );
    refuse(
        EVERY,
        &[(0x10, b"", TRUNCATED), (0x10, b"\x00\x04MQT", TRUNCATED)],
    );
    refuse(EVERY, &[(0x10, b"\x00\x04MQTT", TRUNCATED)]);
}

/// [MQTT-3.1.2-3] [MQTT3-3.1.2-3]
#[test]
fn reserved_connect_flag() {
    let error = malformed("reserved connect flag");
    refuse_connect(
        OF_3_1_1,
        &[
            (b"\x03\x00\x00\x00\x00", error),
            (b"\x01\x00\x00\x00\x00", error),
        ],
    );
    refuse_connect(
        OF_5,
        &[
            (b"\x03\x00\x00\x00\x00\x00", error),
            (b"\xFF\x00\x00\x00\x00\x00", error),
        ],
    );
}

/// [MQTT-3.1.2-11] [MQTT-3.1.2-13] [MQTT3-3.1.2-11] [MQTT3-3.1.2-13] [MQTT3-3.1.2-15]
#[test]
fn will_flags_without_will() {
    let error = malformed("will QoS or will retain without will flag");
    for flags in [0x08, 0x10, 0x18, 0x20, 0x28, 0x38, 0x0A, 0xF2] {
        refuse_connect(OF_3_1_1, &[(&[flags, 0, 0, 0, 0], error)]);
        refuse_connect(OF_5, &[(&[flags, 0, 0, 0, 0, 0], error)]);
    }
}

/// [MQTT-3.1.2-12] [MQTT3-3.1.2-14]
#[test]
fn will_qos_3() {
    let error = malformed("will QoS 3");
    for head in [OF_3_1, OF_3_1_1, OF_5] {
        for flags in [0x1C, 0x3C, 0xFE & !0x01] {
            refuse_connect(head, &[(&[flags, 0, 0, 0, 0, 0, 0, 0], error)]);
        }
    }
}

/// [MQTT3-3.1.2-22]
#[test]
fn password_without_user_name_before_5() {
    let error = malformed("password without user name");
    refuse_connect(OF_3_1, &[(b"\x42\x00\x00\x00\x00\x00\x01p", error)]);
    refuse_connect(OF_3_1_1, &[(b"\x42\x00\x00\x00\x00\x00\x01p", error)]);
    accept(
        EVERY,
        0x10,
        &[OF_5, b"\x42\x00\x00\x00\x00\x00\x00\x01p"].concat(),
    );
}

/// [MQTT-3.1.2-16] [MQTT-3.1.2-17] [MQTT-3.1.2-18] [MQTT-3.1.2-19] [MQTT-3.1.3-3]
/// [MQTT3-3.1.2-18] [MQTT3-3.1.2-19] [MQTT3-3.1.2-20] [MQTT3-3.1.2-21] [MQTT3-3.1.3-3]
#[test]
fn payload_that_does_not_match_the_flags() {
    refuse_connect(
        OF_3_1_1,
        &[
            (b"\x02\x00\x00", TRUNCATED),
            (b"\x02\x00\x00\x00\x00\x00\x01u", TRAILING),
            (b"\x82\x00\x00\x00\x00", TRUNCATED),
            (b"\xC2\x00\x00\x00\x00\x00\x01u", TRUNCATED),
            (b"\x82\x00\x00\x00\x00\x00\x01u\x00\x01p", TRAILING),
        ],
    );
    refuse_connect(
        OF_5,
        &[
            (b"\x02\x00\x00\x00", TRUNCATED),
            (b"\x02\x00\x00\x00\x00\x00\x00\x01u", TRAILING),
            (b"\x82\x00\x00\x00\x00\x00", TRUNCATED),
            (b"\x42\x00\x00\x00\x00\x00", TRUNCATED),
            (b"\x82\x00\x00\x00\x00\x00\x00\x01u\x00\x01p", TRAILING),
        ],
    );
    // A string that has started is not missing.
    refuse_connect(OF_3_1, &[(b"\x82\x00\x00\x00\x00\x00", TRUNCATED)]);
    refuse_connect(OF_3_1, &[(b"\x02\x00\x00\x00\x00\x00\x01u", TRAILING)]);
}

/// [MQTT-3.1.2-9] [MQTT3-3.1.2-9]
#[test]
fn will_flag_without_will() {
    refuse_connect(
        OF_3_1_1,
        &[
            (b"\x06\x00\x00\x00\x00", TRUNCATED),
            (b"\x06\x00\x00\x00\x00\x00\x01w", TRUNCATED),
        ],
    );
    refuse_connect(
        OF_5,
        &[
            (b"\x06\x00\x00\x00\x00\x00", TRUNCATED),
            (b"\x06\x00\x00\x00\x00\x00\x00", TRUNCATED),
            (b"\x06\x00\x00\x00\x00\x00\x00\x00\x01w", TRUNCATED),
        ],
    );
}

/// [MQTT-4.7.0-1] [MQTT-4.7.3-1] [MQTT3-4.7.1-1] [MQTT3-4.7.3-1]
#[test]
fn will_topic_that_is_no_topic_name() {
    let error = malformed("will topic that is empty or has a wildcard");
    let topics: [&[u8]; 6] = [
        b"\x00\x00",
        b"\x00\x01#",
        b"\x00\x01+",
        b"\x00\x03a/+",
        b"\x00\x03a/#",
        b"\x00\x02a#",
    ];
    for topic in topics {
        let tail = [b"\x06\x00\x00\x00\x00", topic, b"\x00\x00"].concat();
        refuse_connect(OF_3_1, &[(&tail, error)]);
        refuse_connect(OF_3_1_1, &[(&tail, error)]);
        let tail = [b"\x06\x00\x00\x00\x00\x00\x00", topic, b"\x00\x00"].concat();
        refuse_connect(OF_5, &[(&tail, error)]);
    }
}

/// [MQTT-3.2.2-1]
#[test]
fn reserved_connect_acknowledge_flags() {
    let error = malformed("reserved connect acknowledge flags");
    for flags in 2..=u8::MAX {
        refuse(&[V311], &[(0x20, &[flags, 0], error)]);
        refuse(FIVE, &[(0x20, &[flags, 0, 0], error)]);
    }
    accept(&[V31], 0x20, b"\xFF\x00");
}

/// [MQTT-3.2.2-6] [MQTT3-3.2.2-4]
#[test]
fn session_present_in_a_refusal() {
    let error = protocol("session present although the connection is refused");
    refuse(
        &[V311],
        &[(0x20, b"\x01\x01", error), (0x20, b"\x01\x05", error)],
    );
    refuse(
        FIVE,
        &[
            (0x20, b"\x01\x80\x00", error),
            (0x20, b"\x01\x87\x00", error),
        ],
    );
}

#[test]
fn reserved_return_code() {
    let error = protocol("reserved connect return code");
    for code in 6..=u8::MAX {
        refuse(THREE, &[(0x20, &[0, code], error)]);
    }
}

#[test]
fn connack_of_another_length() {
    let rows: [Row<'_>; 2] = [(0x20, b"", TRUNCATED), (0x20, b"\x00", TRUNCATED)];
    refuse(EVERY, &rows);
    refuse(THREE, &[(0x20, b"\x00\x00\x00", TRAILING)]);
    refuse(
        FIVE,
        &[
            (0x20, b"\x00\x00", TRUNCATED),
            (0x20, b"\x00\x00\x00\x00", TRAILING),
        ],
    );
    refuse(STRICT, &[(0x20, b"", TRUNCATED)]);
}
