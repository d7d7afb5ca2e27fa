//! PUBLISH and its acknowledgements, byte by byte.

use super::{EVERY, FIVE, PAIRS, THREE, check, check_read, check_written, id, read};
use thrum_codec::Version::{V5, V31, V311};
use thrum_codec::packet::{Ack, Publish};
use thrum_codec::properties::{AckProperties, PublishProperties, SubscriptionIdentifiers};
use thrum_codec::{Packet, QoS, ReasonCode};

pub(super) fn bare_publish() -> Publish<'static> {
    Publish {
        dup: false,
        qos: QoS::AtMostOnce,
        retain: false,
        topic: "a/b",
        packet_id: None,
        properties: PublishProperties::default(),
        payload: b"hi",
    }
}

/// [MQTT-3.3.2-1] [MQTT3-3.3.2-1] [MQTT-2.2.2-1]
#[test]
fn publish_has_topic_then_packet_identifier_then_payload() {
    let at_most_once = bare_publish();
    check(
        THREE,
        b"\x30\x07\x00\x03a/bhi",
        Packet::Publish(at_most_once),
    );
    check(
        FIVE,
        b"\x30\x08\x00\x03a/b\x00hi",
        Packet::Publish(at_most_once),
    );
    let at_least_once = Publish {
        qos: QoS::AtLeastOnce,
        packet_id: Some(id(0x0102)),
        ..at_most_once
    };
    check(
        THREE,
        b"\x32\x09\x00\x03a/b\x01\x02hi",
        Packet::Publish(at_least_once),
    );
    check(
        FIVE,
        b"\x32\x0A\x00\x03a/b\x01\x02\x00hi",
        Packet::Publish(at_least_once),
    );
    let everything = Publish {
        dup: true,
        qos: QoS::ExactlyOnce,
        retain: true,
        packet_id: Some(id(0xFFFF)),
        payload: b"",
        ..at_most_once
    };
    check(
        THREE,
        b"\x3D\x07\x00\x03a/b\xFF\xFF",
        Packet::Publish(everything),
    );
    check(
        FIVE,
        b"\x3D\x08\x00\x03a/b\xFF\xFF\x00",
        Packet::Publish(everything),
    );
}

/// [MQTT-2.2.1-2] [MQTT-3.3.1-2] [MQTT3-2.3.1-5] [MQTT3-3.3.1-2]
#[test]
fn publish_at_qos_0_is_written_without_packet_identifier_and_dup() {
    let muddled = Publish {
        dup: true,
        packet_id: Some(id(7)),
        ..bare_publish()
    };
    check_written(V311, Packet::Publish(muddled), b"\x30\x07\x00\x03a/bhi");
    check_written(V5, Packet::Publish(muddled), b"\x30\x08\x00\x03a/b\x00hi");
}

#[test]
fn publish_with_every_property() {
    let properties = PublishProperties {
        payload_format_indicator: Some(true),
        message_expiry: Some(1),
        topic_alias: core::num::NonZeroU16::new(2),
        response_topic: Some("r"),
        correlation_data: Some(b"\x00\xFF"),
        subscription_identifiers: SubscriptionIdentifiers::Listed(&[1, 128, 268_435_455]),
        content_type: Some("c"),
        user: PAIRS,
    };
    let packet = Packet::Publish(Publish {
        properties,
        ..bare_publish()
    });
    let bytes = b"\x30\x36\x00\x03a/b\x2E\x01\x01\x02\x00\x00\x00\x01\x23\x00\x02\x08\x00\x01r\
        \x09\x00\x02\x00\xFF\x0B\x01\x0B\x80\x01\x0B\xFF\xFF\xFF\x7F\x03\x00\x01c\
        \x26\x00\x01k\x00\x01v\x26\x00\x01k\x00\x00hi";
    check(FIVE, bytes, packet);
}

#[test]
fn publish_with_alias_needs_no_topic() {
    let topic_alias = core::num::NonZeroU16::new(9);
    let properties = PublishProperties {
        topic_alias,
        ..PublishProperties::default()
    };
    let packet = Publish {
        topic: "",
        properties,
        ..bare_publish()
    };
    check(
        FIVE,
        b"\x30\x08\x00\x00\x03\x23\x00\x09hi",
        Packet::Publish(packet),
    );
}

#[test]
fn lists_between_other_properties_keep_their_order() {
    let bytes = b"\x30\x1D\x00\x01t\x19\x26\x00\x01b\x00\x012\x0B\x05\x02\x00\x00\x00\x09\
        \x26\x00\x01a\x00\x011\x0B\x04\x01\x00";
    let Packet::Publish(publish) = read(V5, bytes) else {
        panic!("a PUBLISH")
    };
    let pairs: Vec<_> = publish.properties.user.iter().collect();
    assert_eq!(pairs, [("b", "2"), ("a", "1")]);
    assert_eq!(publish.properties.user.len(), 2);
    let identifiers = publish.properties.subscription_identifiers;
    assert_eq!(identifiers.iter().collect::<Vec<_>>(), [5, 4]);
    assert!(!identifiers.is_empty());
    assert_eq!(publish.properties.message_expiry, Some(9));
}

/// [MQTT-2.2.1-5] [MQTT-3.6.1-1] [MQTT3-2.3.1-6] [MQTT3-3.6.1-1]
#[test]
fn acks_are_four_bytes_after_success() {
    let properties = AckProperties::default();
    let ack = Ack {
        packet_id: id(0x0102),
        reason: ReasonCode::Success,
        properties,
    };
    check(EVERY, b"\x40\x02\x01\x02", Packet::PubAck(ack));
    check(EVERY, b"\x50\x02\x01\x02", Packet::PubRec(ack));
    check(EVERY, b"\x62\x02\x01\x02", Packet::PubRel(ack));
    check(EVERY, b"\x70\x02\x01\x02", Packet::PubComp(ack));
    // The longer forms of the same packet.
    check_read(FIVE, b"\x40\x03\x01\x02\x00", Packet::PubAck(ack));
    check_read(FIVE, b"\x40\x04\x01\x02\x00\x00", Packet::PubAck(ack));
}

#[test]
fn acks_with_reason_and_properties() {
    let bare = AckProperties::default();
    let refused = Ack {
        packet_id: id(1),
        reason: ReasonCode::QuotaExceeded,
        properties: bare,
    };
    check(FIVE, b"\x40\x03\x00\x01\x97", Packet::PubAck(refused));
    check(FIVE, b"\x50\x03\x00\x01\x97", Packet::PubRec(refused));
    check_read(FIVE, b"\x50\x04\x00\x01\x97\x00", Packet::PubRec(refused));
    let unknown = Ack {
        reason: ReasonCode::PacketIdentifierNotFound,
        ..refused
    };
    check(FIVE, b"\x62\x03\x00\x01\x92", Packet::PubRel(unknown));
    check(FIVE, b"\x70\x03\x00\x01\x92", Packet::PubComp(unknown));
    let explained = Ack {
        packet_id: id(1),
        reason: ReasonCode::Success,
        properties: AckProperties {
            reason_string: Some("s"),
            user: PAIRS,
        },
    };
    let body = b"\x00\x01\x00\x11\x1F\x00\x01s\x26\x00\x01k\x00\x01v\x26\x00\x01k\x00\x00";
    check(
        FIVE,
        &[b"\x40\x15", &body[..]].concat(),
        Packet::PubAck(explained),
    );
    check(
        FIVE,
        &[b"\x50\x15", &body[..]].concat(),
        Packet::PubRec(explained),
    );
    check(
        FIVE,
        &[b"\x62\x15", &body[..]].concat(),
        Packet::PubRel(explained),
    );
    check(
        FIVE,
        &[b"\x70\x15", &body[..]].concat(),
        Packet::PubComp(explained),
    );
    // 3.x has no reason codes.
    for version in [V31, V311] {
        check_written(version, Packet::PubAck(refused), b"\x40\x02\x00\x01");
        check_written(version, Packet::PubRel(explained), b"\x62\x02\x00\x01");
    }
}
