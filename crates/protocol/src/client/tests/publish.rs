//! Messages to the server within one connection.

use core::num::NonZeroU16;

use thrum_codec::properties::SubscriptionIdentifiers;

use super::*;

// [MQTT-2.2.1-2] [MQTT3-2.3.1-5] [MQTT-4.3.1-1] [MQTT3-4.3.1-1] [MQTT-3.3.1-2] [MQTT3-3.3.1-2]
#[test]
fn qos0_has_no_identifier_and_is_done_at_once() {
    let mut peer = Peer::connected(clean(Version::V5));
    let asked = Publish {
        dup: true,
        packet_id: PacketId::new(9),
        ..message(QoS::AtMostOnce, "t")
    };
    assert_eq!(
        peer.client.publish(&asked, peer.now, &mut peer.out),
        Ok(None)
    );
    assert_eq!(peer.sent(), ["PUBLISH q0 t"]);
    assert_eq!(peer.client.inflight(), 0);
}

// [MQTT-4.3.2-1] [MQTT-4.3.2-2] [MQTT-4.3.2-3] [MQTT3-4.3.2-1] [MQTT3-2.3.1-1] [MQTT3-2.3.1-2]
// [MQTT-2.2.1-3]
#[test]
fn qos1_is_unacknowledged_until_puback() {
    for version in [Version::V311, Version::V5] {
        let mut peer = Peer::connected(clean(version));
        assert_eq!(peer.publish(QoS::AtLeastOnce, "a"), Ok(1));
        assert_eq!(peer.publish(QoS::AtLeastOnce, "b"), Ok(2));
        assert_eq!(peer.sent(), ["PUBLISH q1 #1 a", "PUBLISH q1 #2 b"]);
        assert_eq!(peer.client.inflight(), 2);
        assert_eq!(
            peer.receive(Packet::PubAck(ack(1))).unwrap(),
            "acknowledged #1"
        );
        assert_eq!(peer.client.inflight(), 1);
        assert!(peer.receive(Packet::PubAck(ack(1))).is_err(), "only once");
    }
}

// [MQTT-4.3.3-1] [MQTT-4.3.3-2] [MQTT-4.3.3-3] [MQTT-4.3.3-4] [MQTT-4.3.3-5] [MQTT3-4.3.3-1]
// [MQTT-2.2.1-5]
// [MQTT3-2.3.1-6] [MQTT-4.6.0-4] [MQTT3-4.6.0-4]
#[test]
fn qos2_is_released_after_pubrec_and_done_after_pubcomp() {
    for version in [Version::V311, Version::V5] {
        let mut peer = Peer::connected(clean(version));
        assert_eq!(peer.publish(QoS::ExactlyOnce, "a"), Ok(1));
        assert_eq!(peer.publish(QoS::ExactlyOnce, "b"), Ok(2));
        peer.sent();
        assert_eq!(peer.receive(Packet::PubRec(ack(2))).unwrap(), "");
        assert_eq!(peer.receive(Packet::PubRec(ack(1))).unwrap(), "");
        assert_eq!(peer.sent(), ["PUBREL #2", "PUBREL #1"]);
        assert_eq!(peer.client.inflight(), 2);
        assert_eq!(peer.receive(Packet::PubRec(ack(1))).unwrap(), "");
        assert_eq!(
            peer.sent(),
            ["PUBREL #1"],
            "repeated while it is not complete"
        );
        assert_eq!(
            peer.receive(Packet::PubComp(ack(1))).unwrap(),
            "acknowledged #1"
        );
        assert_eq!(
            peer.receive(Packet::PubComp(ack(2))).unwrap(),
            "acknowledged #2"
        );
        assert_eq!(peer.client.inflight(), 0);
    }
}

// [MQTT-4.4.0-2]
#[test]
fn an_error_in_puback_or_pubrec_ends_the_exchange() {
    let mut peer = Peer::connected(clean(Version::V5));
    peer.publish(QoS::AtLeastOnce, "a").unwrap();
    peer.publish(QoS::ExactlyOnce, "b").unwrap();
    peer.sent();
    let refused = Packet::PubAck(ack_with(1, ReasonCode::QuotaExceeded));
    assert_eq!(peer.receive(refused).unwrap(), "acknowledged #1 0x97");
    let refused = Packet::PubRec(ack_with(2, ReasonCode::NotAuthorized));
    assert_eq!(peer.receive(refused).unwrap(), "acknowledged #2 0x87");
    assert!(peer.sent().is_empty(), "no PUBREL");
    assert_eq!(peer.client.inflight(), 0);
}

// [MQTT-3.6.2-1]
#[test]
fn an_unexpected_pubrec_is_answered_with_packet_identifier_not_found() {
    let mut peer = Peer::connected(clean(Version::V5));
    peer.receive(Packet::PubRec(ack(7))).unwrap();
    assert_eq!(peer.sent(), ["PUBREL #7 0x92"]);
    let answer = Packet::PubComp(ack_with(7, ReasonCode::PacketIdentifierNotFound));
    assert_eq!(peer.receive(answer).unwrap(), "");
    let mut peer = Peer::connected(clean(Version::V311));
    peer.receive(Packet::PubRec(ack(7))).unwrap();
    assert_eq!(peer.sent(), ["PUBREL #7"]);
}

#[test]
fn an_acknowledgement_of_the_wrong_kind_is_a_violation() {
    let check = |packet: Packet<'_>| {
        let mut peer = Peer::connected(clean(Version::V5));
        peer.publish(QoS::AtLeastOnce, "a").unwrap();
        peer.publish(QoS::ExactlyOnce, "b").unwrap();
        assert_eq!(
            peer.receive(packet).unwrap_err().reason,
            ReasonCode::ProtocolError
        );
    };
    check(Packet::PubRec(ack(1)));
    check(Packet::PubComp(ack(1)));
    check(Packet::PubAck(ack(2)));
    check(Packet::PubComp(ack(2)));
    check(Packet::PubAck(ack(3)));
    check(Packet::PubRec(ack_with(3, ReasonCode::QuotaExceeded)));
}

fn limited(properties: ConnAckProperties<'static>) -> Peer {
    let mut peer = Peer::new(clean(Version::V5));
    peer.reconnect(&accept_with(false, properties));
    peer
}

// [MQTT-3.3.4-7] [MQTT-4.9.0-1] [MQTT-4.9.0-2] [MQTT-3.3.4-8] [MQTT-4.9.0-3]
#[test]
fn a_full_window_stops_qos1_and_qos2_and_nothing_else() {
    let mut peer = limited(ConnAckProperties {
        receive_maximum: NonZeroU16::new(2),
        ..ConnAckProperties::default()
    });
    assert_eq!(peer.client.window(), 2);
    peer.publish(QoS::ExactlyOnce, "a").unwrap();
    peer.publish(QoS::AtLeastOnce, "b").unwrap();
    assert_eq!(peer.client.window(), 0);
    assert_eq!(
        peer.publish(QoS::AtLeastOnce, "c"),
        Err(PublishError::WindowFull)
    );
    peer.receive(Packet::PubRec(ack(1))).unwrap();
    assert_eq!(
        peer.publish(QoS::ExactlyOnce, "c"),
        Err(PublishError::WindowFull),
        "until PUBCOMP"
    );
    peer.publish(QoS::AtMostOnce, "d").unwrap();
    peer.receive(delivery(QoS::AtLeastOnce, 5, "e")).unwrap();
    assert_eq!(
        peer.sent(),
        [
            "PUBLISH q2 #1 a",
            "PUBLISH q1 #2 b",
            "PUBREL #1",
            "PUBLISH q0 d",
            "PUBACK #5"
        ]
    );
    peer.receive(Packet::PubComp(ack(1))).unwrap();
    assert_eq!(peer.publish(QoS::AtLeastOnce, "c"), Ok(3));
}

#[test]
fn the_limit_of_the_client_applies_if_the_server_has_none() {
    let mut peer = Peer::connected(ClientOptions {
        inflight_max: 1,
        ..clean(Version::V311)
    });
    peer.publish(QoS::AtLeastOnce, "a").unwrap();
    assert_eq!(
        peer.publish(QoS::AtLeastOnce, "b"),
        Err(PublishError::WindowFull)
    );
}

// [MQTT-3.2.2-11] [MQTT-3.2.2-14] [MQTT-3.2.2-15]
#[test]
fn messages_that_the_server_does_not_support_are_not_sent() {
    let mut peer = limited(ConnAckProperties {
        maximum_qos: Some(QoS::AtLeastOnce),
        retain_available: Some(false),
        maximum_packet_size: Some(20),
        ..ConnAckProperties::default()
    });
    assert_eq!(
        peer.publish(QoS::ExactlyOnce, "t"),
        Err(PublishError::QoSNotSupported)
    );
    let retained = Publish {
        retain: true,
        ..message(QoS::AtMostOnce, "t")
    };
    let result = peer.client.publish(&retained, peer.now, &mut peer.out);
    assert_eq!(result, Err(PublishError::RetainNotSupported));
    // Two bytes of header, two of length, seven of topic, one of properties, two of identifier,
    // seven of payload.
    assert_eq!(
        peer.publish(QoS::AtLeastOnce, "1234567"),
        Err(PublishError::TooLarge)
    );
    assert!(peer.out.is_empty());
    assert_eq!(peer.client.inflight(), 0);
    peer.publish(QoS::AtMostOnce, "12345678").unwrap();
    assert_eq!(peer.out.len(), 20);
}

// [MQTT-3.3.2-2] [MQTT3-3.3.2-2] [MQTT-4.7.0-1] [MQTT3-4.7.1-1] [MQTT-4.7.3-1]
#[test]
fn an_invalid_topic_is_not_sent() {
    let mut peer = Peer::connected(clean(Version::V5));
    for topic in ["", "a/+", "#", "nul\0"] {
        assert_eq!(
            peer.publish(QoS::AtMostOnce, topic),
            Err(PublishError::TopicInvalid)
        );
    }
    assert!(peer.out.is_empty());
}

// [MQTT-3.3.4-6]
#[test]
fn subscription_identifiers_are_omitted() {
    let mut peer = Peer::connected(clean(Version::V5));
    let mut publish = message(QoS::AtMostOnce, "t");
    publish.properties.subscription_identifiers = SubscriptionIdentifiers::Listed(&[5]);
    peer.client
        .publish(&publish, peer.now, &mut peer.out)
        .unwrap();
    let mut plain = Vec::new();
    let version = peer.version();
    thrum_codec::encode_publish(&message(QoS::AtMostOnce, "t"), version, &mut plain).unwrap();
    assert_eq!(peer.out, plain);
}

fn aliased(topic: &str, alias: u16) -> Publish<'_> {
    let mut publish = message(QoS::AtMostOnce, topic);
    publish.properties.topic_alias = NonZeroU16::new(alias);
    publish
}

// [MQTT-3.2.2-17] [MQTT-3.2.2-18] [MQTT-3.3.2-9] [MQTT-3.3.2-7]
#[test]
fn topic_aliases_stay_within_the_maximum_and_the_connection() {
    let allowing = ConnAckProperties {
        topic_alias_maximum: Some(2),
        ..Default::default()
    };
    let mut peer = limited(allowing);
    let publish = |peer: &mut Peer, topic: &str, alias: u16| {
        peer.client
            .publish(&aliased(topic, alias), peer.now, &mut peer.out)
            .map(|_| ())
    };
    let refused = Err(PublishError::TopicAliasInvalid);
    assert_eq!(publish(&mut peer, "t", 3), refused);
    assert_eq!(publish(&mut peer, "", 2), refused, "not set yet");
    assert_eq!(publish(&mut peer, "t", 2), Ok(()));
    assert_eq!(publish(&mut peer, "", 2), Ok(()));
    assert_eq!(peer.sent(), ["PUBLISH q0 t alias 2", "PUBLISH q0  alias 2"]);
    peer.reconnect(&accept_with(false, allowing));
    assert_eq!(
        publish(&mut peer, "", 2),
        refused,
        "the alias ended with the connection"
    );
    let mut peer = limited(ConnAckProperties::default());
    assert_eq!(publish(&mut peer, "t", 1), refused, "no maximum announced");
}

#[test]
fn the_first_transmission_is_never_marked_as_a_duplicate() {
    let mut peer = Peer::connected(clean(Version::V5));
    for qos in [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce] {
        let publish = Publish {
            dup: true,
            ..message(qos, "t")
        };
        let sent = peer.client.publish(&publish, peer.now, &mut peer.out);
        sent.unwrap();
    }
    assert_eq!(
        peer.sent(),
        ["PUBLISH q0 t", "PUBLISH q1 #1 t", "PUBLISH q2 #2 t"]
    );
}

#[test]
fn the_end_of_a_connection_frees_the_memory_of_exchanges_if_none_is_open() {
    for is_acknowledged in [true, false] {
        let mut peer = Peer::connected(persistent(Version::V5));
        peer.publish(QoS::AtLeastOnce, "t").unwrap();
        if is_acknowledged {
            peer.receive(Packet::PubAck(ack(1))).unwrap();
        }
        peer.client.connection_lost();
        assert_eq!(peer.client.exchanges.is_none(), is_acknowledged);
    }
}
