//! Limits of the memory and work for one client: each limit is reported to the client.

use thrum_codec::packet::SubscriptionOptions;
use thrum_codec::{QoS, ReasonCode, Version};

use crate::peer::{Peer, start};

const QOS1: QoS = QoS::AtLeastOnce;

// [MQTT-3.3.4-3] [MQTT-3.3.4-5]
#[test]
fn a_message_with_too_many_identifiers_is_sent_several_times_with_some_of_them() {
    let (broker, address) = start(1, |config| config.limits.client.message_identifiers = 2);
    let mut peer = Peer::connect(address, "overlap");
    for (filter, identifier) in [("#", 1), ("a/#", 2), ("+/b", 3), ("a/+", 4), ("a/b", 5)] {
        let options = SubscriptionOptions {
            qos: QOS1,
            ..SubscriptionOptions::default()
        };
        peer.subscribe_with(filter, options, Some(identifier));
    }
    let mut publisher = Peer::connect(address, "p");
    assert_eq!(
        publisher.publish_acknowledged("a/b", b"x"),
        ReasonCode::Success
    );
    let mut identifiers = Vec::new();
    for expected in [2, 2, 1] {
        let message = peer.message();
        assert_eq!(message.payload, b"x");
        assert_eq!(message.identifiers.len(), expected);
        identifiers.extend(message.identifiers);
        peer.acknowledge(message.id);
    }
    identifiers.sort_unstable();
    assert_eq!(identifiers, [1, 2, 3, 4, 5]);
    peer.assert_silent();
    broker.stop();
}

#[test]
fn a_client_has_a_limit_of_memory_for_its_filters_and_gets_it_back() {
    for version in [Version::V5, Version::V311] {
        let (broker, address) = start(2, |config| config.limits.client.subscription_bytes = 20_000);
        let mut peer = Peer::open(address, version);
        peer.handshake(&crate::connect_packet(version, "greedy"));
        let filter = |number: u32| {
            let either = |bit| if number >> bit & 1 == 0 { "a" } else { "+" };
            let levels: Vec<_> = (0..20_u32).map(either).collect();
            format!("+/{}", levels.join("/"))
        };
        let refused = match version {
            Version::V5 => ReasonCode::QuotaExceeded,
            Version::V31 | Version::V311 => ReasonCode::UnspecifiedError,
        };
        let mut numbers = 0..1000;
        let granted = numbers.by_ref().take_while(|number| {
            let answer = peer.subscribe(&filter(*number), QOS1);
            assert!(
                [ReasonCode::GrantedQoS1, refused].contains(&answer),
                "{answer:?}"
            );
            answer == ReasonCode::GrantedQoS1
        });
        // 2.3 kB each.
        assert_eq!(granted.count(), 8);
        // What it has may be subscribed to again.
        assert_eq!(peer.subscribe(&filter(0), QOS1), ReasonCode::GrantedQoS1);
        assert_eq!(peer.subscribe("plain", QOS1), ReasonCode::GrantedQoS1);
        let mut other = Peer::connect(address, "modest");
        assert_eq!(other.subscribe(&filter(500), QOS1), ReasonCode::GrantedQoS1);
        peer.unsubscribe(&filter(3));
        assert_eq!(peer.subscribe(&filter(501), QOS1), ReasonCode::GrantedQoS1);
        assert_eq!(peer.subscribe(&filter(502), QOS1), refused);
        broker.stop();
    }
}

#[test]
fn a_client_has_a_limit_of_shared_groups() {
    let (broker, address) = start(2, |config| config.limits.client.shared_subscriptions = 3);
    let mut peer = Peer::connect(address, "everywhere");
    let answers = [1, 2, 3, 4, 1].map(|group| peer.subscribe(&format!("$share/g{group}/t"), QOS1));
    let granted = ReasonCode::GrantedQoS1;
    assert_eq!(
        answers,
        [
            granted,
            granted,
            granted,
            ReasonCode::QuotaExceeded,
            granted
        ]
    );
    assert_eq!(peer.subscribe("t", QOS1), granted);
    peer.unsubscribe("$share/g2/t");
    assert_eq!(peer.subscribe("$share/g5/t", QOS1), granted);
    broker.stop();
}

fn connect_client(
    address: std::net::SocketAddr,
    client_id: &str,
    expiry: u32,
) -> (Peer, ReasonCode) {
    let mut peer = Peer::open(address, Version::V5);
    let mut connect = crate::connect_packet(Version::V5, client_id);
    connect.clean_start = false;
    connect.properties.session_expiry = Some(expiry);
    let (reason, _) = peer.handshake(&connect);
    (peer, reason)
}

// [MQTT-3.1.4-5]
#[test]
fn a_limit_of_lasting_sessions_refuses_no_client_that_has_one() {
    let full = ReasonCode::QuotaExceeded;
    for by_address in [false, true] {
        let (broker, address) = start(1, |config| {
            let limits = &mut config.limits;
            if by_address {
                limits.address.sessions = 2;
            } else {
                limits.sessions = 2;
            }
        });
        let (first, reason) = connect_client(address, "first", 300);
        assert_eq!(reason, ReasonCode::Success);
        first.leave();
        let (second, reason) = connect_client(address, "second", 300);
        assert_eq!(reason, ReasonCode::Success);
        assert_eq!(connect_client(address, "third", 300).1, full);
        // One that ends with its connection is none of them.
        let (clean, reason) = connect_client(address, "clean", 0);
        assert_eq!(reason, ReasonCode::Success);
        clean.leave();
        let (first, reason) = connect_client(address, "first", 300);
        assert_eq!(reason, ReasonCode::Success);
        first.leave();
        // A session is given up with an expiry of 0.
        let (first, reason) = connect_client(address, "first", 0);
        assert_eq!(reason, ReasonCode::Success);
        first.leave();
        let (third, reason) = connect_client(address, "third", 300);
        assert_eq!(reason, ReasonCode::Success);
        assert_eq!(connect_client(address, "fourth", 300).1, full);
        second.end_session();
        assert_eq!(
            connect_client(address, "fourth", 300).1,
            ReasonCode::Success
        );
        drop(third);
        broker.stop();
    }
}
