//! Refused CONNECT packets, and the reply to the client.

use thrum_codec::packet::Will;
use thrum_codec::properties::WillProperties;

use super::*;

fn refused(limits: &Limits, connect: &Connect<'_>) -> ReasonCode {
    reason(Handshake::new(connect, "assigned-1", limits))
}

fn with_will(version: Version, topic: &str, qos: QoS, retain: bool) -> Connect<'_> {
    let properties = WillProperties::default();
    let will = Will {
        topic,
        payload: b"gone",
        qos,
        retain,
        properties,
    };
    Connect {
        will: Some(will),
        ..connect(version)
    }
}

fn refusal(version: Version, reason: ReasonCode) -> Vec<u8> {
    let mut out = Output::new();
    refuse(version, &Violation::new(reason, "a description"), &mut out);
    out.to_vec()
}

fn refusal_of(connect: &Connect<'_>, reason: ReasonCode) -> Vec<u8> {
    let mut out = Output::new();
    refuse_connect(connect, &Violation::new(reason, "a description"), &mut out);
    out.to_vec()
}

// [MQTT3-3.1.3-8]
#[test]
fn a_kept_session_of_311_needs_a_client_identifier() {
    let connect = Connect {
        client_id: "",
        ..persistent(Version::V311)
    };
    let reason = refused(&Limits::default(), &connect);
    assert_eq!(reason, ReasonCode::ClientIdentifierNotValid);
    assert_eq!(refusal(Version::V311, reason), [0x20, 2, 0, 2]);
}

#[test]
fn mqtt_31_needs_a_client_identifier() {
    for clean_start in [true, false] {
        let connect = Connect {
            client_id: "",
            clean_start,
            ..connect(Version::V31)
        };
        let reason = refused(&Limits::default(), &connect);
        assert_eq!(reason, ReasonCode::ClientIdentifierNotValid);
    }
}

// [MQTT-3.1.3-8] [MQTT3-3.1.3-9]
#[test]
fn a_client_identifier_over_the_limit_is_refused() {
    let limits = Limits {
        client_id_bytes_max: 30,
        ..Limits::default()
    };
    let long = "x".repeat(31);
    for version in VERSIONS {
        let connect = Connect {
            client_id: &long,
            ..connect(version)
        };
        assert_eq!(
            refused(&limits, &connect),
            ReasonCode::ClientIdentifierNotValid
        );
    }
    let reason = ReasonCode::ClientIdentifierNotValid;
    assert_eq!(refusal(Version::V311, reason), [0x20, 2, 0, 2]);
    assert_eq!(refusal(Version::V5, reason), [0x20, 3, 0, 0x85, 0]);
}

// [MQTT-3.2.2-12]
#[test]
fn a_will_above_the_maximum_qos_is_refused() {
    let limits = Limits {
        maximum_qos: QOS1,
        ..Limits::default()
    };
    for version in VERSIONS {
        let connect = with_will(version, "t", QOS2, false);
        assert_eq!(refused(&limits, &connect), ReasonCode::QoSNotSupported);
        assert!(Handshake::new(&with_will(version, "t", QOS1, false), "", &limits).is_ok());
    }
}

// [MQTT-3.2.2-13]
#[test]
fn a_retained_will_is_refused_if_retained_messages_are_not_available() {
    let limits = Limits {
        retain_available: false,
        ..Limits::default()
    };
    let connect = with_will(Version::V5, "t", QOS0, true);
    assert_eq!(refused(&limits, &connect), ReasonCode::RetainNotSupported);
    assert!(Handshake::new(&with_will(Version::V5, "t", QOS0, false), "", &limits).is_ok());
    // 3.x has no reason code for this refusal, so its will is published without the retain flag.
    let handshake = Handshake::new(&with_will(Version::V311, "t", QOS0, true), "", &limits);
    let handshake = handshake.unwrap();
    assert!(handshake.will().is_some_and(|(will, _)| !will.retain()));
}

#[test]
fn a_will_topic_over_a_limit_is_refused() {
    let limits = Limits {
        topic_bytes_max: 20,
        topic_levels_max: 3,
        ..Limits::default()
    };
    let long = "x".repeat(21);
    for topic in [&*long, "a/b/c/d", "///"] {
        let connect = with_will(Version::V5, topic, QOS0, false);
        assert_eq!(refused(&limits, &connect), ReasonCode::TopicNameInvalid);
    }
    for topic in [&long[..20], "a/b/c", "//"] {
        assert!(Handshake::new(&with_will(Version::V5, topic, QOS0, false), "", &limits).is_ok());
    }
}

// [MQTT3-3.1.2-2] [MQTT-3.1.2-2]
#[test]
fn a_refusal_of_3x_uses_the_return_code_with_the_same_meaning() {
    let cases = [
        (ReasonCode::UnsupportedProtocolVersion, 1),
        (ReasonCode::ClientIdentifierNotValid, 2),
        (ReasonCode::ServerUnavailable, 3),
        (ReasonCode::ServerBusy, 3),
        (ReasonCode::ServerShuttingDown, 3),
        (ReasonCode::UseAnotherServer, 3),
        (ReasonCode::ServerMoved, 3),
        (ReasonCode::QuotaExceeded, 3),
        (ReasonCode::ConnectionRateExceeded, 3),
        (ReasonCode::BadUserNameOrPassword, 4),
        (ReasonCode::NotAuthorized, 5),
        (ReasonCode::Banned, 5),
    ];
    for (reason, code) in cases {
        for version in [Version::V31, Version::V311] {
            assert_eq!(refusal(version, reason), [0x20, 2, 0, code]);
            assert_eq!(refusal_of(&connect(version), reason), [0x20, 2, 0, code]);
        }
    }
}

// [MQTT3-3.2.2-6] [MQTT3-3.1.4-1]
#[test]
fn a_refusal_without_a_3x_return_code_sends_nothing() {
    let silent = [
        ReasonCode::MalformedPacket,
        ReasonCode::ProtocolError,
        ReasonCode::PacketTooLarge,
        ReasonCode::QoSNotSupported,
        ReasonCode::RetainNotSupported,
        ReasonCode::TopicNameInvalid,
        ReasonCode::UnspecifiedError,
    ];
    for reason in silent {
        assert!(refusal(Version::V311, reason).is_empty());
        assert!(refusal(Version::V31, reason).is_empty());
    }
}

// [MQTT-3.2.2-6] [MQTT3-3.2.2-4] [MQTT-3.2.2-8]
#[test]
fn every_refusal_of_5_is_a_connack_with_a_listed_error_and_no_session() {
    for byte in 0x80..=0xA2 {
        let Some(reason) = ReasonCode::from_u8(byte) else {
            continue;
        };
        let out = refusal(Version::V5, reason);
        let [Packet::ConnAck(connack)] = packets(&out, Version::V5)[..] else {
            panic!("one CONNACK expected");
        };
        assert!(!connack.session_present);
        let is_listed = reason.may_be_in(thrum_codec::reason::Carrier::ConnAck);
        let expected = match reason {
            _ if is_listed => reason,
            ReasonCode::ServerShuttingDown => ReasonCode::ServerUnavailable,
            _ => ReasonCode::UnspecifiedError,
        };
        assert_eq!(connack.reason, expected);
    }
    let no_error = refusal(Version::V5, ReasonCode::Success);
    assert_eq!(lines(&no_error, Version::V5), ["CONNACK 0x80"]);
}

// [MQTT-3.2.2-19] [MQTT-3.2.2-20]
#[test]
fn a_refusal_has_a_reason_string_if_the_client_accepts_its_size() {
    let mut connect = connect(Version::V5);
    let told = |connect: &Connect<'_>| {
        let out = refusal_of(connect, ReasonCode::NotAuthorized);
        let [Packet::ConnAck(connack)] = packets(&out, Version::V5)[..] else {
            panic!("one CONNACK expected");
        };
        assert!(connack.properties.user.is_empty());
        (out.len(), connack.properties.reason_string.is_some())
    };
    let (len, has_words) = told(&connect);
    assert!(has_words);
    connect.properties.maximum_packet_size = Some(u32::try_from(len).unwrap());
    assert_eq!(told(&connect), (len, true));
    connect.properties.maximum_packet_size = Some(u32::try_from(len).unwrap() - 1);
    assert_eq!(told(&connect), (5, false));
}
