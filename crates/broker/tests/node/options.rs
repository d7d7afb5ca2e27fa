//! Options that a broker rarely needs: versions of a listener, identifiers, sizes of payloads,
//! quality of service.

use thrum_broker::config::ProtocolVersion;
use thrum_codec::packet::Connect;
use thrum_codec::{QoS, ReasonCode, Version};

use crate::peer::{Peer, connect_packet, start, will};

fn answer(address: std::net::SocketAddr, version: Version, client_id: &str) -> ReasonCode {
    let mut peer = Peer::open(address, version);
    peer.handshake(&connect_packet(version, client_id)).0
}

// [MQTT-3.1.2-2] [MQTT3-3.1.2-2]
#[test]
fn a_listener_refuses_the_versions_that_it_does_not_accept() {
    let (broker, address) = start(1, |config| {
        let listener = config.listeners.get_mut("mqtt").expect("there is one");
        listener.accept_protocol_versions = vec![ProtocolVersion::V311];
    });
    assert_eq!(answer(address, Version::V311, "a"), ReasonCode::Success);
    for version in [Version::V31, Version::V5] {
        let refusal = ReasonCode::UnsupportedProtocolVersion;
        assert_eq!(answer(address, version, "a"), refusal, "{version:?}");
    }
    broker.stop();
}

// [MQTT-3.1.3-8] [MQTT3-3.1.3-8]
#[test]
fn a_client_without_identifier_is_refused_where_it_is_not_given_one() {
    let (broker, address) = start(1, |config| {
        config.limits.packet.allow_zero_length_clientid = false;
    });
    for version in [Version::V311, Version::V5] {
        let refusal = ReasonCode::ClientIdentifierNotValid;
        assert_eq!(answer(address, version, ""), refusal, "{version:?}");
        assert_eq!(answer(address, version, "a"), ReasonCode::Success);
    }
    broker.stop();
}

#[test]
fn a_payload_over_the_limit_is_not_delivered_and_its_publisher_stays() {
    let (broker, address) = start(1, |config| config.limits.packet.max_payload = 4);
    let mut subscriber = Peer::connect(address, "s");
    subscriber.subscribe("t", QoS::AtLeastOnce);
    let mut publisher = Peer::connect(address, "p");
    let refusal = publisher.publish_acknowledged("t", b"12345");
    assert_eq!(refusal, ReasonCode::QuotaExceeded);
    publisher.publish("t", b"12345", QoS::AtMostOnce, false);
    assert_eq!(
        publisher.publish_acknowledged("t", b"1234"),
        ReasonCode::Success
    );
    assert_eq!(subscriber.message().payload, b"1234");
    let mut with_will = Peer::open(address, Version::V5);
    let connect = Connect {
        will: Some(will("t", b"12345")),
        ..connect_packet(Version::V5, "w")
    };
    assert_eq!(with_will.handshake(&connect).0, ReasonCode::QuotaExceeded);
    broker.stop();
}

#[test]
fn messages_are_delivered_with_the_quality_of_the_subscription_where_that_is_asked_for() {
    for (upgrades, expected) in [(false, QoS::AtMostOnce), (true, QoS::AtLeastOnce)] {
        let (broker, address) = start(4, |config| {
            config.limits.client.upgrade_outgoing_qos = upgrades;
        });
        let mut publisher = Peer::connect(address, "p");
        publisher.publish("retained", b"r", QoS::AtMostOnce, true);
        // Behind it.
        publisher.publish_acknowledged("other", b"");
        for number in 0..8 {
            let mut subscriber = Peer::connect(address, &format!("s{number}"));
            subscriber.subscribe("retained", QoS::AtLeastOnce);
            assert_eq!(subscriber.message().qos, expected);
            subscriber.subscribe("t", QoS::AtLeastOnce);
            subscriber.subscribe(&format!("$share/g{number}/t"), QoS::AtLeastOnce);
            publisher.publish("t", b"m", QoS::AtMostOnce, false);
            for _ in 0..2 {
                assert_eq!(subscriber.message().qos, expected);
            }
        }
        broker.stop();
    }
}

// [MQTT-4.8.2-1]
#[test]
fn the_prefix_of_shared_subscriptions_alone_is_no_filter() {
    let (broker, address) = start(1, |_| {});
    let mut peer = Peer::connect(address, "s");
    let refusal = peer.subscribe("$share", QoS::AtMostOnce);
    assert_eq!(refusal, ReasonCode::TopicFilterInvalid);
    broker.stop();
}
