//! PINGREQ, and missing replies.

use alloc::vec;

use super::*;

fn keep_alive(seconds: u16) -> ClientOptions {
    ClientOptions {
        keep_alive: seconds,
        ..clean(Version::V5)
    }
}

// [MQTT-3.1.2-20] [MQTT3-3.1.2-23]
#[test]
fn a_silent_client_pings_before_the_keep_alive_ends() {
    let mut peer = Peer::connected(keep_alive(10));
    assert_eq!(peer.client.next_deadline(), Some(Time::from_millis(14_000)));
    assert_eq!(peer.timeout_at(13_999), Ok(vec![]));
    assert_eq!(peer.timeout_at(14_000).unwrap(), ["PINGREQ"]);
    assert_eq!(peer.receive(Packet::PingResp).unwrap(), "pong");
    assert_eq!(peer.client.next_deadline(), Some(Time::from_millis(23_000)));
}

#[test]
fn every_packet_sent_delays_the_ping() {
    let mut peer = Peer::connected(keep_alive(10));
    peer.now = Time::from_millis(12_000);
    peer.publish(QoS::AtMostOnce, "t").unwrap();
    assert_eq!(peer.client.next_deadline(), Some(Time::from_millis(21_000)));
}

#[test]
fn without_keep_alive_there_is_no_ping() {
    let peer = Peer::connected(keep_alive(0));
    assert_eq!(peer.client.next_deadline(), None);
}

// [MQTT-3.1.2-21] [MQTT-3.2.2-21]
#[test]
fn the_keep_alive_of_the_server_replaces_the_clients() {
    for wanted in [0, 100] {
        let mut peer = Peer::new(keep_alive(wanted));
        let properties = ConnAckProperties {
            server_keep_alive: Some(5),
            ..ConnAckProperties::default()
        };
        peer.reconnect(&accept_with(false, properties));
        assert_eq!(peer.client.keep_alive(), 5);
        assert_eq!(peer.timeout_at(9_000).unwrap(), ["PINGREQ"]);
    }
}

#[test]
fn a_ping_without_reply_is_an_error_unless_packets_still_arrive() {
    let mut peer = Peer::connected(keep_alive(10));
    assert_eq!(peer.timeout_at(14_000).unwrap(), ["PINGREQ"]);
    peer.now = Time::from_millis(20_000);
    peer.receive(delivery(QoS::AtMostOnce, 0, "t")).unwrap();
    assert_eq!(
        peer.timeout_at(34_000).unwrap(),
        ["PINGREQ"],
        "still silent, still connected"
    );
    assert_eq!(peer.client.next_deadline(), Some(Time::from_millis(40_000)));
    assert!(peer.timeout_at(40_000).is_err());
}

#[test]
fn a_missing_connack_is_an_error() {
    let mut peer = Peer::new(keep_alive(10));
    peer.client.connect(peer.now, &mut peer.out).unwrap();
    peer.out.clear();
    assert_eq!(peer.timeout_at(24_999), Ok(vec![]));
    assert!(peer.timeout_at(25_000).is_err());
}
