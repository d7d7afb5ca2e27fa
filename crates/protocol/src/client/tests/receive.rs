//! Messages from the server.

use core::num::NonZeroU16;

use super::*;

// [MQTT-3.3.4-1] [MQTT3-3.3.4-1] [MQTT-4.5.0-2] [MQTT3-4.5.0-2] [MQTT-4.6.0-2] [MQTT-4.6.0-3]
// [MQTT3-4.6.0-2]
// [MQTT3-4.6.0-3] [MQTT-4.3.2-4] [MQTT-4.3.3-8] [MQTT3-2.3.1-6] [MQTT-3.4.2-1] [MQTT-3.5.2-1]
#[test]
fn every_message_is_acknowledged_by_its_qos_and_in_order() {
    for version in [Version::V311, Version::V5] {
        let mut peer = Peer::connected(clean(version));
        assert_eq!(
            peer.receive(delivery(QoS::AtMostOnce, 0, "a")).unwrap(),
            "message a"
        );
        assert_eq!(
            peer.receive(delivery(QoS::AtLeastOnce, 9, "b")).unwrap(),
            "message b"
        );
        assert_eq!(
            peer.receive(delivery(QoS::ExactlyOnce, 7, "c")).unwrap(),
            "message c"
        );
        assert_eq!(
            peer.receive(delivery(QoS::AtLeastOnce, 8, "d")).unwrap(),
            "message d"
        );
        assert_eq!(
            peer.receive(delivery(QoS::ExactlyOnce, 6, "e")).unwrap(),
            "message e"
        );
        assert_eq!(
            peer.sent(),
            ["PUBACK #9", "PUBREC #7", "PUBACK #8", "PUBREC #6"]
        );
    }
}

// [MQTT-4.3.2-5] [MQTT3-4.3.2-2]
#[test]
fn qos1_with_the_same_identifier_is_a_new_message() {
    let mut peer = Peer::connected(clean(Version::V5));
    for _ in 0..2 {
        assert_eq!(
            peer.receive(delivery(QoS::AtLeastOnce, 3, "a")).unwrap(),
            "message a"
        );
    }
    assert_eq!(peer.sent(), ["PUBACK #3", "PUBACK #3"]);
}

// [MQTT-4.3.3-10] [MQTT-4.3.3-11] [MQTT-4.3.3-12] [MQTT3-4.3.3-2] [MQTT-3.7.2-1]
#[test]
fn qos2_is_delivered_once_until_it_is_released() {
    let mut peer = Peer::connected(clean(Version::V5));
    for (packet_id, event) in [(4, "message a"), (2, "message a"), (4, ""), (2, "")] {
        assert_eq!(
            peer.receive(delivery(QoS::ExactlyOnce, packet_id, "a"))
                .unwrap(),
            event
        );
    }
    assert_eq!(
        peer.sent(),
        ["PUBREC #4", "PUBREC #2", "PUBREC #4", "PUBREC #2"]
    );
    peer.receive(Packet::PubRel(ack(4))).unwrap();
    peer.receive(Packet::PubRel(ack(4))).unwrap();
    assert_eq!(peer.sent(), ["PUBCOMP #4", "PUBCOMP #4 0x92"]);
    assert_eq!(
        peer.receive(delivery(QoS::ExactlyOnce, 4, "b")).unwrap(),
        "message b"
    );
    assert_eq!(
        peer.receive(delivery(QoS::ExactlyOnce, 2, "b")).unwrap(),
        ""
    );
}

#[test]
fn more_messages_than_the_receive_maximum_are_a_violation() {
    let options = ClientOptions {
        receive_maximum: 2,
        ..clean(Version::V5)
    };
    let mut peer = Peer::connected(options.clone());
    for packet_id in [1, 2, 1] {
        peer.receive(delivery(QoS::ExactlyOnce, packet_id, "a"))
            .unwrap();
    }
    let violation = peer
        .receive(delivery(QoS::ExactlyOnce, 3, "a"))
        .unwrap_err();
    assert_eq!(violation.reason, ReasonCode::ReceiveMaximumExceeded);
    let mut peer = Peer::connected(ClientOptions {
        version: Version::V311,
        ..options
    });
    for packet_id in 1..=3 {
        peer.receive(delivery(QoS::ExactlyOnce, packet_id, "a"))
            .unwrap();
    }
}

fn aliased(topic: &str, alias: u16) -> Packet<'_> {
    let mut publish = message(QoS::AtMostOnce, topic);
    publish.properties.topic_alias = NonZeroU16::new(alias);
    Packet::Publish(publish)
}

// [MQTT-3.3.2-10] [MQTT-3.3.2-7]
#[test]
fn every_topic_alias_up_to_the_maximum_is_known_until_the_connection_ends() {
    let mut peer = Peer::connected(ClientOptions {
        topic_alias_maximum: 2,
        ..clean(Version::V5)
    });
    assert_eq!(peer.receive(aliased("one", 1)).unwrap(), "message one");
    assert_eq!(peer.receive(aliased("two", 2)).unwrap(), "message two");
    assert_eq!(peer.receive(aliased("", 1)).unwrap(), "message one");
    assert_eq!(peer.receive(aliased("other", 1)).unwrap(), "message other");
    assert_eq!(peer.receive(aliased("", 1)).unwrap(), "message other");
    assert_eq!(peer.receive(aliased("", 2)).unwrap(), "message two");
    let violation = peer.receive(aliased("three", 3)).unwrap_err();
    assert_eq!(violation.reason, ReasonCode::TopicAliasInvalid);
    peer.reconnect(&accept(false));
    assert_eq!(
        peer.receive(aliased("", 2)).unwrap_err().reason,
        ReasonCode::ProtocolError
    );
}

#[test]
fn a_message_without_topic_is_a_violation() {
    let mut peer = Peer::connected(clean(Version::V5));
    assert!(peer.receive(delivery(QoS::AtMostOnce, 0, "")).is_err());
    assert!(
        peer.receive(delivery(QoS::AtLeastOnce, 0, "t")).is_err(),
        "no identifier"
    );
}
