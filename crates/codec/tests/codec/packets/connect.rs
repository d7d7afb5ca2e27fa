//! CONNECT and CONNACK, byte by byte.

use super::{EVERY, FIVE, PAIRS, THREE, check, check_read, check_written};
use thrum_codec::Version::{V5, V31, V311};
use thrum_codec::packet::{ConnAck, Connect, Will};
use thrum_codec::properties::{ConnAckProperties, ConnectProperties, WillProperties};
use thrum_codec::{Packet, QoS, ReasonCode, Version, encode};

pub(super) fn bare_connect(version: Version) -> Connect<'static> {
    Connect {
        version,
        is_bridge: false,
        clean_start: true,
        keep_alive: 60,
        client_id: "ab",
        will: None,
        username: None,
        password: None,
        properties: ConnectProperties::default(),
    }
}

fn bare_will() -> Will<'static> {
    Will {
        topic: "w",
        payload: b"\x00\xFF",
        qos: QoS::AtLeastOnce,
        retain: true,
        properties: WillProperties::default(),
    }
}

/// [MQTT-3.1.2-1] [MQTT-3.1.3-1] [MQTT-3.1.3-3] [MQTT-2.2.2-1]
/// [MQTT3-3.1.2-1] [MQTT3-3.1.3-1] [MQTT3-3.1.3-3]
#[test]
fn connect_names_its_version() {
    // The version argument is ignored for CONNECT.
    let bytes = b"\x10\x10\x00\x06MQIsdp\x03\x02\x00\x3C\x00\x02ab";
    check(EVERY, bytes, Packet::Connect(bare_connect(V31)));
    let bytes = b"\x10\x0E\x00\x04MQTT\x04\x02\x00\x3C\x00\x02ab";
    check(EVERY, bytes, Packet::Connect(bare_connect(V311)));
    let bytes = b"\x10\x0F\x00\x04MQTT\x05\x02\x00\x3C\x00\x00\x02ab";
    check(EVERY, bytes, Packet::Connect(bare_connect(V5)));
}

#[test]
fn bridge_sets_the_highest_bit_of_the_level() {
    let bridge = |version| {
        Packet::Connect(Connect {
            is_bridge: true,
            ..bare_connect(version)
        })
    };
    let bytes = b"\x10\x10\x00\x06MQIsdp\x83\x02\x00\x3C\x00\x02ab";
    check(EVERY, bytes, bridge(V31));
    let bytes = b"\x10\x0E\x00\x04MQTT\x84\x02\x00\x3C\x00\x02ab";
    check(EVERY, bytes, bridge(V311));
}

/// [MQTT-3.1.2-9] [MQTT-3.1.2-17] [MQTT-3.1.2-19] [MQTT-3.1.3-1]
/// [MQTT3-3.1.2-9] [MQTT3-3.1.2-19] [MQTT3-3.1.2-21] [MQTT3-3.1.3-1]
#[test]
fn connect_with_will_user_name_and_password() {
    let full = |version| {
        Packet::Connect(Connect {
            clean_start: false,
            keep_alive: 0,
            client_id: "",
            will: Some(bare_will()),
            username: Some("u"),
            password: Some(b"\xFF\x00"),
            ..bare_connect(version)
        })
    };
    let tail = b"\x00\x01w\x00\x02\x00\xFF\x00\x01u\x00\x02\xFF\x00";
    check(
        EVERY,
        &[b"\x10\x1C\x00\x06MQIsdp\x03\xEC\x00\x00\x00\x00", &tail[..]].concat(),
        full(V31),
    );
    check(
        EVERY,
        &[b"\x10\x1A\x00\x04MQTT\x04\xEC\x00\x00\x00\x00", &tail[..]].concat(),
        full(V311),
    );
    let head = b"\x10\x1C\x00\x04MQTT\x05\xEC\x00\x00\x00\x00\x00\x00";
    check(EVERY, &[head, &tail[..]].concat(), full(V5));
}

/// [MQTT-3.1.2-16] [MQTT-3.1.2-18] [MQTT-3.1.2-11] [MQTT-3.1.2-13] [MQTT-3.1.2-12]
/// [MQTT3-3.1.2-18] [MQTT3-3.1.2-20] [MQTT3-3.1.2-11] [MQTT3-3.1.2-13] [MQTT3-3.1.2-14]
/// [MQTT3-3.1.2-15]
#[test]
fn connect_flags_announce_the_payload_fields() {
    let base = bare_connect(V5);
    let will = |qos, retain| {
        Some(Will {
            qos,
            retain,
            ..bare_will()
        })
    };
    let samples = [
        (0x02, base),
        (
            0x00,
            Connect {
                clean_start: false,
                ..base
            },
        ),
        (
            0x82,
            Connect {
                username: Some(""),
                ..base
            },
        ),
        (
            0x42,
            Connect {
                password: Some(b""),
                ..base
            },
        ),
        (
            0x06,
            Connect {
                will: will(QoS::AtMostOnce, false),
                ..base
            },
        ),
        (
            0x0E,
            Connect {
                will: will(QoS::AtLeastOnce, false),
                ..base
            },
        ),
        (
            0x16,
            Connect {
                will: will(QoS::ExactlyOnce, false),
                ..base
            },
        ),
        (
            0x36,
            Connect {
                will: will(QoS::ExactlyOnce, true),
                ..base
            },
        ),
    ];
    for (flags, connect) in samples {
        let mut bytes = Vec::new();
        encode(&Packet::Connect(connect), V5, &mut bytes).expect("valid");
        assert_eq!(bytes[9], flags);
        check(FIVE, &bytes, Packet::Connect(connect));
    }
}

#[test]
fn connect_with_every_property() {
    let properties = ConnectProperties {
        session_expiry: Some(0x0102_0304),
        receive_maximum: core::num::NonZeroU16::new(0x0506),
        maximum_packet_size: Some(0x0708_090A),
        topic_alias_maximum: Some(0x0B0C),
        request_response_information: Some(true),
        request_problem_information: Some(false),
        authentication_method: Some("m"),
        authentication_data: Some(b"\xFE"),
        user: PAIRS,
    };
    let packet = Packet::Connect(Connect {
        properties,
        ..bare_connect(V5)
    });
    let bytes = b"\x10\x38\x00\x04MQTT\x05\x02\x00\x3C\x29\
        \x11\x01\x02\x03\x04\x21\x05\x06\x27\x07\x08\x09\x0A\x22\x0B\x0C\x19\x01\x17\x00\
        \x15\x00\x01m\x16\x00\x01\xFE\x26\x00\x01k\x00\x01v\x26\x00\x01k\x00\x00\x00\x02ab";
    check(FIVE, bytes, packet);
}

#[test]
fn will_with_every_property() {
    let properties = WillProperties {
        will_delay: Some(1),
        payload_format_indicator: Some(true),
        message_expiry: Some(2),
        content_type: Some("c"),
        response_topic: Some("r"),
        correlation_data: Some(b"\x00"),
        user: PAIRS,
    };
    let will = Will {
        properties,
        ..bare_will()
    };
    let packet = Packet::Connect(Connect {
        will: Some(will),
        ..bare_connect(V5)
    });
    let bytes = b"\x10\x3C\x00\x04MQTT\x05\x2E\x00\x3C\x00\x00\x02ab\x25\
        \x18\x00\x00\x00\x01\x01\x01\x02\x00\x00\x00\x02\x03\x00\x01c\x08\x00\x01r\x09\x00\x01\x00\
        \x26\x00\x01k\x00\x01v\x26\x00\x01k\x00\x00\x00\x01w\x00\x02\x00\xFF";
    check(FIVE, bytes, packet);
}

#[test]
fn connect_of_3_1_may_lack_the_strings_its_flags_announce() {
    let head = b"\x00\x06MQIsdp\x03\xC2\x00\x3C\x00\x02ab";
    let both_missing = [b"\x10\x10", &head[..]].concat();
    check_read(EVERY, &both_missing, Packet::Connect(bare_connect(V31)));
    let no_password = [b"\x10\x13", &head[..], b"\x00\x01u"].concat();
    let with_name = Connect {
        username: Some("u"),
        ..bare_connect(V31)
    };
    check_read(EVERY, &no_password, Packet::Connect(with_name));
}

#[test]
fn connect_of_3_1_ignores_reserved_flags() {
    let bytes = b"\x10\x10\x00\x06MQIsdp\x03\x3B\x00\x3C\x00\x02ab";
    check_read(EVERY, bytes, Packet::Connect(bare_connect(V31)));
}

fn bare_connack(reason: ReasonCode) -> ConnAck<'static> {
    ConnAck {
        session_present: false,
        reason,
        properties: ConnAckProperties::default(),
    }
}

/// [MQTT-3.2.2-1]
#[test]
fn connack_has_the_session_present_flag() {
    let accepted = bare_connack(ReasonCode::Success);
    let resumed = ConnAck {
        session_present: true,
        ..accepted
    };
    check(THREE, b"\x20\x02\x00\x00", Packet::ConnAck(accepted));
    check(&[V311], b"\x20\x02\x01\x00", Packet::ConnAck(resumed));
    check(FIVE, b"\x20\x03\x00\x00\x00", Packet::ConnAck(accepted));
    check(FIVE, b"\x20\x03\x01\x00\x00", Packet::ConnAck(resumed));
    // 3.1 has no session present flag.
    check_read(&[V31], b"\x20\x02\x01\x00", Packet::ConnAck(accepted));
    check_written(V31, Packet::ConnAck(resumed), b"\x20\x02\x00\x00");
}

/// [MQTT-3.2.2-6] [MQTT3-3.2.2-4]
#[test]
fn connack_of_a_refusal_never_has_session_present() {
    let refused = ConnAck {
        session_present: true,
        ..bare_connack(ReasonCode::NotAuthorized)
    };
    check_written(V311, Packet::ConnAck(refused), b"\x20\x02\x00\x05");
    check_written(V5, Packet::ConnAck(refused), b"\x20\x03\x00\x87\x00");
}

#[test]
fn connack_return_codes_of_3_x_are_reason_codes() {
    let codes = [
        ReasonCode::Success,
        ReasonCode::UnsupportedProtocolVersion,
        ReasonCode::ClientIdentifierNotValid,
        ReasonCode::ServerUnavailable,
        ReasonCode::BadUserNameOrPassword,
        ReasonCode::NotAuthorized,
    ];
    for (code, reason) in (0u8..).zip(codes) {
        check(
            THREE,
            &[0x20, 2, 0, code],
            Packet::ConnAck(bare_connack(reason)),
        );
    }
    for (reason, code) in [
        (ReasonCode::ServerBusy, 3),
        (ReasonCode::QuotaExceeded, 3),
        (ReasonCode::ConnectionRateExceeded, 3),
        (ReasonCode::ServerShuttingDown, 3),
        (ReasonCode::UseAnotherServer, 3),
        (ReasonCode::Banned, 5),
        (ReasonCode::BadAuthenticationMethod, 5),
        (ReasonCode::RetainNotSupported, 5),
    ] {
        check_written(
            V311,
            Packet::ConnAck(bare_connack(reason)),
            &[0x20, 2, 0, code],
        );
    }
    for reason in (0..=u8::MAX).filter_map(ReasonCode::from_u8) {
        let is_refused = reason.return_code() != 0;
        assert_eq!(is_refused, reason.is_error(), "{reason:?}");
        assert!(ReasonCode::from_return_code(reason.return_code()).is_some());
    }
}

#[test]
fn connack_with_every_property() {
    let properties = ConnAckProperties {
        session_expiry: Some(1),
        receive_maximum: core::num::NonZeroU16::new(2),
        maximum_qos: Some(QoS::AtLeastOnce),
        retain_available: Some(false),
        maximum_packet_size: Some(3),
        assigned_client_id: Some("i"),
        topic_alias_maximum: Some(4),
        reason_string: Some("s"),
        wildcard_subscription_available: Some(true),
        subscription_identifiers_available: Some(false),
        shared_subscription_available: Some(true),
        server_keep_alive: Some(5),
        response_information: Some("r"),
        server_reference: Some("o"),
        authentication_method: Some("m"),
        authentication_data: Some(b"d"),
        user: PAIRS,
    };
    let packet = Packet::ConnAck(ConnAck {
        properties,
        ..bare_connack(ReasonCode::Success)
    });
    let bytes = b"\x20\x45\x00\x00\x42\x11\x00\x00\x00\x01\x21\x00\x02\x24\x01\x25\x00\
        \x27\x00\x00\x00\x03\x12\x00\x01i\x22\x00\x04\x1F\x00\x01s\x28\x01\x29\x00\x2A\x01\
        \x13\x00\x05\x1A\x00\x01r\x1C\x00\x01o\x15\x00\x01m\x16\x00\x01d\
        \x26\x00\x01k\x00\x01v\x26\x00\x01k\x00\x00";
    check(FIVE, bytes, packet);
}

#[test]
fn connack_omits_a_maximum_qos_of_2() {
    let properties = ConnAckProperties {
        maximum_qos: Some(QoS::ExactlyOnce),
        ..ConnAckProperties::default()
    };
    let packet = Packet::ConnAck(ConnAck {
        properties,
        ..bare_connack(ReasonCode::Success)
    });
    check_written(V5, packet, b"\x20\x03\x00\x00\x00");
}
