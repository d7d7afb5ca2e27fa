//! State that survives a connection, and state that does not.

use core::num::NonZeroU16;

use super::*;

const VERSIONS: [Version; 2] = [Version::V311, Version::V5];

/// A client that sent three messages and released the one with QoS 2.
fn interrupted(options: ClientOptions) -> Peer {
    let mut peer = Peer::connected(options);
    peer.publish(QoS::ExactlyOnce, "a").unwrap();
    peer.publish(QoS::AtLeastOnce, "b").unwrap();
    peer.publish(QoS::ExactlyOnce, "c").unwrap();
    peer.receive(Packet::PubRec(ack(1))).unwrap();
    peer.sent();
    peer.client.connection_lost();
    peer
}

// [MQTT-4.4.0-1] [MQTT-3.3.1-1] [MQTT-4.6.0-1] [MQTT-4.3.3-6] [MQTT-3.1.2-23] [MQTT-4.1.0-1]
// [MQTT3-4.4.0-1]
// [MQTT3-3.3.1-1] [MQTT3-2.3.1-3] [MQTT3-4.6.0-1] [MQTT3-4.1.0-1] [MQTT-3.1.3-2] [MQTT3-3.1.3-2]
#[test]
fn a_resumed_session_retransmits_unacknowledged_messages_in_order() {
    for version in VERSIONS {
        let mut peer = interrupted(persistent(version));
        assert_eq!(peer.client.inflight(), 3);
        assert_eq!(peer.reconnect(&accept(true)), "connected, session true");
        assert_eq!(
            peer.sent(),
            ["PUBREL #1", "PUBLISH dup q1 #2 b", "PUBLISH dup q2 #3 c"]
        );
        assert_eq!(peer.publish(QoS::AtLeastOnce, "d"), Ok(4));
        assert_eq!(
            peer.receive(Packet::PubComp(ack(1))).unwrap(),
            "acknowledged #1"
        );
        assert_eq!(
            peer.receive(Packet::PubAck(ack(2))).unwrap(),
            "acknowledged #2"
        );
        peer.receive(Packet::PubRec(ack(3))).unwrap();
        peer.client.connection_lost();
        peer.reconnect(&accept(true));
        assert_eq!(peer.sent(), ["PUBREL #3", "PUBLISH dup q1 #4 d"]);
    }
}

#[test]
fn a_session_of_a_3_1_server_is_resumed_without_session_present() {
    let mut peer = interrupted(persistent(Version::V31));
    peer.reconnect(&accept(false));
    assert_eq!(
        peer.sent(),
        ["PUBREL #1", "PUBLISH dup q1 #2 b", "PUBLISH dup q2 #3 c"]
    );
}

// [MQTT-3.2.2-5]
#[test]
fn without_session_present_the_state_is_discarded() {
    for version in VERSIONS {
        let mut peer = interrupted(persistent(version));
        peer.receive_before_loss();
        assert_eq!(peer.reconnect(&accept(false)), "connected, session false");
        assert!(peer.sent().is_empty());
        assert_eq!(peer.client.inflight(), 0);
        let delivery = delivery(QoS::ExactlyOnce, 9, "new");
        assert_eq!(peer.receive(delivery).unwrap(), "message new");
    }
}

impl Peer {
    /// Receives a QoS 2 message that the server has not released when the connection is lost.
    fn receive_before_loss(&mut self) {
        self.reconnect(&accept(true));
        self.receive(delivery(QoS::ExactlyOnce, 9, "old")).unwrap();
        self.client.connection_lost();
    }
}

// [MQTT-4.3.3-10] [MQTT3-4.3.3-2] [MQTT-4.1.0-1]
#[test]
fn qos2_message_is_delivered_once_across_connections() {
    for version in VERSIONS {
        let mut peer = interrupted(persistent(version));
        peer.receive_before_loss();
        peer.reconnect(&accept(true));
        peer.sent();
        assert_eq!(
            peer.receive(delivery(QoS::ExactlyOnce, 9, "old")).unwrap(),
            ""
        );
        peer.receive(Packet::PubRel(ack(9))).unwrap();
        assert_eq!(peer.sent(), ["PUBREC #9", "PUBCOMP #9"]);
    }
}

// [MQTT-3.1.2-4] [MQTT3-3.1.2-6]
#[test]
fn a_clean_session_ends_with_its_connection() {
    for version in VERSIONS {
        let mut peer = interrupted(clean(version));
        assert_eq!(peer.client.inflight(), 0);
        peer.reconnect(&accept(false));
        assert!(peer.sent().is_empty());
    }
    let expiring = ClientOptions {
        session_expiry: 300,
        ..clean(Version::V5)
    };
    assert_eq!(interrupted(expiring).client.inflight(), 0);
}

// [MQTT-3.1.2-23]
#[test]
fn a_session_without_expiry_ends_with_its_connection() {
    let options = ClientOptions {
        session_expiry: 0,
        ..persistent(Version::V5)
    };
    assert_eq!(interrupted(options).client.inflight(), 0);

    let mut peer = Peer::new(persistent(Version::V5));
    let shortened = ConnAckProperties {
        session_expiry: Some(0),
        ..Default::default()
    };
    peer.reconnect(&accept_with(false, shortened));
    peer.publish(QoS::AtLeastOnce, "a").unwrap();
    peer.client.connection_lost();
    assert_eq!(peer.client.inflight(), 0);

    let mut peer = Peer::connected(persistent(Version::V5));
    peer.publish(QoS::AtLeastOnce, "a").unwrap();
    peer.client
        .disconnect(ReasonCode::Success, Some(0), &mut peer.out);
    peer.client.connection_lost();
    assert_eq!(peer.client.inflight(), 0);
}

#[test]
fn a_disconnect_with_an_expiry_keeps_only_a_session_that_the_next_connect_resumes() {
    let starts_clean = ClientOptions {
        session_expiry: 300,
        ..clean(Version::V5)
    };
    for (options, kept) in [(persistent(Version::V5), 1), (starts_clean, 0)] {
        let mut peer = Peer::connected(options);
        peer.publish(QoS::AtLeastOnce, "a").unwrap();
        peer.client
            .disconnect(ReasonCode::Success, Some(60), &mut peer.out);
        peer.client.connection_lost();
        assert_eq!(peer.client.inflight(), kept);
    }
}

// [MQTT-3.3.4-7] [MQTT-4.9.0-1]
#[test]
fn retransmission_stays_within_the_window() {
    let mut peer = Peer::connected(persistent(Version::V5));
    for topic in ["a", "b", "c", "d"] {
        peer.publish(QoS::AtLeastOnce, topic).unwrap();
    }
    let narrow = ConnAckProperties {
        receive_maximum: NonZeroU16::new(2),
        ..Default::default()
    };
    peer.reconnect(&accept_with(true, narrow));
    assert_eq!(peer.sent(), ["PUBLISH dup q1 #1 a", "PUBLISH dup q1 #2 b"]);
    assert!(
        peer.receive(Packet::PubAck(ack(3))).is_err(),
        "not sent on this connection"
    );
    peer.receive(Packet::PubAck(ack(1))).unwrap();
    assert_eq!(
        peer.publish(QoS::AtLeastOnce, "e"),
        Err(PublishError::WindowFull)
    );
    peer.receive(Packet::PubAck(ack(2))).unwrap();
    assert_eq!(peer.sent(), ["PUBLISH dup q1 #3 c", "PUBLISH dup q1 #4 d"]);
    peer.receive(Packet::PubAck(ack(3))).unwrap();
    assert_eq!(peer.publish(QoS::AtLeastOnce, "e"), Ok(5));
}

// [MQTT-3.2.2-11] [MQTT-3.2.2-14] [MQTT-3.2.2-15]
#[test]
fn messages_that_the_server_no_longer_accepts_are_discarded() {
    let mut peer = Peer::connected(persistent(Version::V5));
    peer.publish(QoS::ExactlyOnce, "a").unwrap();
    peer.publish(QoS::AtLeastOnce, "b").unwrap();
    let retained = Publish {
        retain: true,
        ..message(QoS::AtLeastOnce, "c")
    };
    peer.client
        .publish(&retained, peer.now, &mut peer.out)
        .unwrap();
    peer.publish(QoS::AtLeastOnce, "a topic that is too long")
        .unwrap();
    let poorer = ConnAckProperties {
        maximum_qos: Some(QoS::AtLeastOnce),
        retain_available: Some(false),
        maximum_packet_size: Some(30),
        ..Default::default()
    };
    peer.reconnect(&accept_with(true, poorer));
    assert_eq!(peer.sent(), ["PUBLISH dup q1 #2 b"]);
    assert_eq!(peer.client.inflight(), 1);
}

// [MQTT-3.3.2-7]
#[test]
fn a_message_with_topic_alias_is_retransmitted_with_its_topic() {
    let allowing = ConnAckProperties {
        topic_alias_maximum: Some(5),
        ..Default::default()
    };
    let mut peer = Peer::new(persistent(Version::V5));
    peer.reconnect(&accept_with(false, allowing));
    for topic in ["long/topic", ""] {
        let mut publish = message(QoS::AtLeastOnce, topic);
        publish.properties.topic_alias = NonZeroU16::new(5);
        peer.client
            .publish(&publish, peer.now, &mut peer.out)
            .unwrap();
    }
    assert_eq!(
        peer.sent(),
        ["PUBLISH q1 #1 long/topic alias 5", "PUBLISH q1 #2  alias 5"]
    );
    peer.reconnect(&accept_with(true, allowing));
    assert_eq!(
        peer.sent(),
        [
            "PUBLISH dup q1 #1 long/topic",
            "PUBLISH dup q1 #2 long/topic"
        ]
    );
}
