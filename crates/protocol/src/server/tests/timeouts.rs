//! Keep alive, the time limit of a connection, and session expiry.

use super::*;

fn peer(keep_alive: u16) -> Peer {
    Peer::new(&Connect {
        keep_alive,
        ..persistent(Version::V5)
    })
}

fn timeout(peer: &mut Peer) -> Timeout {
    peer.session.handle_timeout(peer.now)
}

// [MQTT-3.1.2-22] [MQTT3-3.1.2-24]
#[test]
fn silence_for_one_and_a_half_keep_alives_ends_the_connection() {
    for version in VERSIONS {
        let mut peer = Peer::new(&Connect {
            keep_alive: 3,
            ..connect(version)
        });
        let deadline = peer.session.next_deadline().unwrap();
        assert_eq!(deadline.since(peer.now).as_millis(), 4500);
        peer.advance_millis(4499);
        assert!(matches!(timeout(&mut peer), Timeout::Pending));
        peer.advance_millis(1);
        assert!(matches!(timeout(&mut peer), Timeout::KeepAlive));
    }
}

#[test]
fn every_packet_of_the_client_restarts_the_keep_alive() {
    let mut peer = peer(2);
    peer.sent(QOS1, "a");
    let packets = [
        Packet::PingReq,
        Packet::Publish(publish(QOS0, 0, "t", "")),
        Packet::Publish(publish(QOS2, 1, "t", "")),
        pubrel(1),
        puback(1),
    ];
    for packet in packets {
        peer.advance_millis(2999);
        assert!(matches!(timeout(&mut peer), Timeout::Pending));
        peer.send(&packet).unwrap();
        assert_eq!(peer.session.next_deadline(), Some(peer.now.plus_secs(3)));
    }
    // Packets of the server do not.
    peer.advance_millis(1000);
    peer.sent(QOS0, "b");
    assert_eq!(peer.session.next_deadline(), Some(peer.now.plus_secs(2)));
}

#[test]
fn keep_alive_0_is_no_limit() {
    let mut peer = peer(0);
    assert_eq!(peer.session.next_deadline(), None);
    peer.advance_millis(u64::from(u32::MAX));
    assert!(matches!(timeout(&mut peer), Timeout::Pending));
}

#[test]
fn no_deadline_is_left_after_disconnect() {
    let mut peer = peer(2);
    peer.send(&client_disconnect(ReasonCode::Success)).unwrap();
    assert_eq!(peer.session.next_deadline(), None);
    peer.advance_millis(10_000);
    assert!(matches!(timeout(&mut peer), Timeout::Pending));
}

// [MQTT-4.1.0-2] [MQTT-3.1.2-23]
#[test]
fn a_session_expires_after_its_interval_without_connection() {
    let mut peer = peer(60);
    peer.advance_millis(30_000);
    let end = peer.lose();
    assert!(!end.session_ended && end.will.is_none());
    assert_eq!(peer.session.next_deadline(), Some(peer.now.plus_secs(3600)));
    peer.advance_millis(3_599_999);
    assert!(matches!(timeout(&mut peer), Timeout::Pending));
    peer.advance_millis(1);
    assert!(matches!(timeout(&mut peer), Timeout::Expired(None)));
}

#[test]
fn a_connection_stops_the_expiry() {
    let mut peer = peer(60);
    peer.lose();
    peer.advance_millis(3_599_999);
    peer.reconnect(&persistent(Version::V5));
    peer.advance_millis(1);
    assert!(matches!(timeout(&mut peer), Timeout::Pending));
    peer.lose();
    assert_eq!(peer.session.next_deadline(), Some(peer.now.plus_secs(3600)));
}

// [MQTT-3.1.2-23] [MQTT3-3.1.2-6]
#[test]
fn a_session_without_expiry_ends_with_its_connection() {
    for version in VERSIONS {
        let mut peer = Peer::new(&connect(version));
        // [MQTT3-4.1.0-2]
        assert!(peer.session.link.is_connected());
        assert!(peer.lose().session_ended);
        assert!(!peer.session.link.is_connected());
        assert!(!peer.lose().session_ended, "the end is reported once");
    }
}

#[test]
fn the_longest_interval_never_ends() {
    let limits = Limits {
        session_expiry_max: u32::MAX,
        ..Limits::default()
    };
    let mut connect = persistent(Version::V5);
    connect.properties.session_expiry = Some(u32::MAX);
    let (mut peer, _) = Peer::with(limits, &connect);
    assert!(!peer.lose().session_ended);
    assert_eq!(peer.session.next_deadline(), None);
    peer.advance_millis(u64::MAX / 2);
    assert!(matches!(timeout(&mut peer), Timeout::Pending));
}

fn client_disconnect_with(expiry: u32) -> Packet<'static> {
    let properties = DisconnectProperties {
        session_expiry: Some(expiry),
        ..DisconnectProperties::default()
    };
    Packet::Disconnect(Disconnect {
        reason: ReasonCode::Success,
        properties,
    })
}

#[test]
fn a_disconnect_can_change_the_expiry_within_the_limit() {
    let max = Limits::default().session_expiry_max;
    for (asked, expected) in [(10, 10), (max, max), (max + 1, max), (u32::MAX, max)] {
        let mut peer = peer(60);
        peer.send(&client_disconnect_with(asked)).unwrap();
        assert!(!peer.lose().session_ended);
        assert_eq!(
            peer.session.next_deadline(),
            Some(peer.now.plus_secs(expected))
        );
    }
    let mut peer = peer(60);
    peer.send(&client_disconnect_with(0)).unwrap();
    assert!(peer.lose().session_ended);
}

#[test]
fn a_disconnect_cannot_make_a_clean_session_persistent() {
    let mut peer = Peer::new(&connect(Version::V5));
    assert_eq!(
        reason(peer.send(&client_disconnect_with(1))),
        ReasonCode::ProtocolError
    );
    let mut peer = Peer::new(&connect(Version::V5));
    peer.send(&client_disconnect_with(0)).unwrap();
    assert!(peer.lose().session_ended);
}

#[test]
fn a_time_limit_is_reported_when_it_is_reached() {
    let mut peer = peer(60);
    let end = peer.now.plus_secs(20);
    peer.session.link_mut().set_valid_until(Some(end));
    assert_eq!(peer.session.next_deadline(), Some(end));
    peer.advance_millis(19_999);
    // Packets extend the keep alive, not the time limit.
    peer.send(&Packet::PingReq).unwrap();
    assert_eq!(peer.session.next_deadline(), Some(end));
    assert!(matches!(timeout(&mut peer), Timeout::Pending));
    peer.advance_millis(1);
    assert!(matches!(timeout(&mut peer), Timeout::NotAuthorized));
    let told = peer.disconnect(ReasonCode::NotAuthorized, Some("token expired"));
    assert_eq!(told, ["DISCONNECT 0x87 token expired"]);
    assert_eq!(peer.session.next_deadline(), None);
    assert!(matches!(timeout(&mut peer), Timeout::Pending));
}

#[test]
fn a_time_limit_can_be_extended_or_removed() {
    let mut peer = peer(0);
    peer.session
        .link_mut()
        .set_valid_until(Some(peer.now.plus_secs(20)));
    let later = peer.now.plus_secs(90);
    peer.session.link_mut().set_valid_until(Some(later));
    assert_eq!(peer.session.next_deadline(), Some(later));
    peer.advance_millis(20_000);
    assert!(matches!(timeout(&mut peer), Timeout::Pending));
    peer.session.link_mut().set_valid_until(None);
    assert_eq!(peer.session.next_deadline(), None);
    peer.advance_millis(u64::from(u32::MAX));
    assert!(matches!(timeout(&mut peer), Timeout::Pending));
}

#[test]
fn the_earlier_of_keep_alive_and_time_limit_is_reported() {
    let mut peer = peer(2);
    peer.session
        .link_mut()
        .set_valid_until(Some(peer.now.plus_secs(20)));
    assert_eq!(peer.session.next_deadline(), Some(peer.now.plus_secs(3)));
    peer.advance_millis(3000);
    assert!(matches!(timeout(&mut peer), Timeout::KeepAlive));
}

#[test]
fn a_time_limit_belongs_to_its_connection() {
    let mut peer = peer(0);
    peer.session
        .link_mut()
        .set_valid_until(Some(peer.now.plus_secs(20)));
    peer.lose();
    // The session expiry is unchanged.
    assert_eq!(peer.session.next_deadline(), Some(peer.now.plus_secs(3600)));
    // Without a connection the time limit has no effect.
    peer.session
        .link_mut()
        .set_valid_until(Some(peer.now.plus_secs(20)));
    assert_eq!(peer.session.next_deadline(), Some(peer.now.plus_secs(3600)));
    peer.reconnect(&Connect {
        keep_alive: 0,
        ..persistent(Version::V5)
    });
    assert_eq!(peer.session.next_deadline(), None);
    peer.advance_millis(20_000);
    assert!(matches!(timeout(&mut peer), Timeout::Pending));
}
