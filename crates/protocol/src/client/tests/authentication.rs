//! Enhanced authentication before CONNACK, and re-authentication.

use thrum_codec::packet::{Auth, Connect};
use thrum_codec::properties::AuthProperties;

use super::*;

const METHOD: &str = "plain";

fn options() -> ClientOptions {
    ClientOptions {
        authentication_method: Some(METHOD.to_string()),
        authentication_data: Some(b"from the options".to_vec()),
        ..clean(Version::V5)
    }
}

fn auth(reason: ReasonCode, method: &str) -> Packet<'_> {
    Packet::Auth(Auth {
        reason,
        properties: AuthProperties {
            authentication_method: Some(method),
            ..AuthProperties::default()
        },
    })
}

fn step(method: &str) -> Packet<'_> {
    auth(ReasonCode::ContinueAuthentication, method)
}

fn accept_method(method: Option<&str>) -> ConnAck<'_> {
    let properties = ConnAckProperties {
        authentication_method: method,
        ..ConnAckProperties::default()
    };
    accept_with(false, properties)
}

fn connecting(options: ClientOptions) -> Peer {
    let mut peer = Peer::new(options);
    peer.client.connect(peer.now, &mut peer.out).unwrap();
    assert_eq!(peer.sent(), ["CONNECT"]);
    peer
}

fn accepted() -> Peer {
    let mut peer = Peer::new(options());
    peer.reconnect(&accept_method(Some(METHOD)));
    peer
}

fn authenticate(peer: &mut Peer) -> bool {
    peer.client.authenticate(b"data", peer.now, &mut peer.out)
}

fn reauthenticate(peer: &mut Peer) -> bool {
    peer.client.reauthenticate(b"data", peer.now, &mut peer.out)
}

fn check_connect(bytes: &[u8], check: impl FnOnce(&Connect<'_>)) {
    let frame = frame::split(bytes, u32::MAX).unwrap().unwrap();
    match decode(frame, Version::V5).unwrap() {
        Packet::Connect(connect) => check(&connect),
        other => panic!("{other:?}"),
    }
}

// [MQTT-3.1.2-30] [MQTT-4.12.0-3]
#[test]
fn enhanced_authentication_allows_only_auth_before_connack() {
    let mut peer = connecting(options());
    assert_eq!(peer.receive(step(METHOD)).unwrap(), "authenticate 0x18");
    assert!(authenticate(&mut peer));
    assert_eq!(
        peer.publish(QoS::AtMostOnce, "t"),
        Err(PublishError::NotConnected)
    );
    assert_eq!(peer.sent(), ["AUTH 0x18"]);
    assert_eq!(peer.receive(step(METHOD)).unwrap(), "authenticate 0x18");
    assert!(authenticate(&mut peer));
    let accepted = Packet::ConnAck(accept_method(Some(METHOD)));
    assert_eq!(peer.receive(accepted).unwrap(), "connected, session false");
}

// [MQTT-4.12.0-7]
#[test]
fn a_client_without_method_sends_no_auth_and_accepts_none() {
    let mut peer = connecting(clean(Version::V5));
    assert!(!authenticate(&mut peer));
    assert!(peer.receive(step(METHOD)).is_err());
    let mut peer = Peer::connected(clean(Version::V5));
    assert!(!authenticate(&mut peer) && !reauthenticate(&mut peer));
    assert!(peer.sent().is_empty());
    assert!(peer.receive(step(METHOD)).is_err());
}

// [MQTT-4.12.0-5] [MQTT-4.12.0-6]
#[test]
fn a_method_other_than_that_of_connect_is_a_violation() {
    let mut peer = connecting(options());
    let violation = peer.receive(step("other")).unwrap_err();
    assert_eq!(violation.reason, ReasonCode::ProtocolError);
    for (options, method, is_fine) in [
        (options(), Some(METHOD), true),
        (options(), None, true),
        (options(), Some("other"), false),
        (clean(Version::V5), Some(METHOD), false),
    ] {
        let mut peer = connecting(options);
        let ack = Packet::ConnAck(accept_method(method));
        assert_eq!(peer.receive(ack).is_ok(), is_fine);
    }
}

#[test]
fn an_auth_of_the_server_out_of_turn_is_a_violation() {
    for reason in [ReasonCode::Success, ReasonCode::ReAuthenticate] {
        assert!(connecting(options()).receive(auth(reason, METHOD)).is_err());
        assert!(accepted().receive(auth(reason, METHOD)).is_err());
    }
    assert!(accepted().receive(step(METHOD)).is_err());
    let mut peer = connecting(options());
    peer.receive(step(METHOD)).unwrap();
    assert!(
        peer.receive(step(METHOD)).is_err(),
        "the client has to answer"
    );
}

#[test]
fn a_step_that_the_server_did_not_ask_for_is_not_sent() {
    let mut peer = connecting(options());
    assert!(!authenticate(&mut peer));
    assert!(!reauthenticate(&mut peer), "not accepted yet");
    let mut peer = accepted();
    assert!(!authenticate(&mut peer));
    assert!(reauthenticate(&mut peer));
    assert!(!authenticate(&mut peer) && !reauthenticate(&mut peer));
    assert_eq!(peer.sent(), ["AUTH 0x19"]);
    peer.client.connection_lost();
    assert!(!reauthenticate(&mut peer));
}

// [MQTT-4.12.1-1] [MQTT-4.12.0-3] [MQTT-4.12.0-5]
#[test]
fn an_accepted_client_can_reauthenticate_while_it_publishes() {
    let mut peer = accepted();
    for _ in 0..2 {
        assert!(reauthenticate(&mut peer));
        assert_eq!(peer.publish(QoS::AtMostOnce, "t"), Ok(0));
        assert_eq!(peer.receive(step(METHOD)).unwrap(), "authenticate 0x18");
        assert!(authenticate(&mut peer));
        assert_eq!(peer.sent(), ["AUTH 0x19", "PUBLISH q0 t", "AUTH 0x18"]);
        let done = auth(ReasonCode::Success, METHOD);
        assert_eq!(peer.receive(done).unwrap(), "authenticate");
    }
}

// [MQTT-4.12.1-2]
#[test]
fn a_client_that_fails_reauthentication_is_disconnected() {
    let mut peer = accepted();
    assert!(reauthenticate(&mut peer));
    let disconnect = Packet::Disconnect(thrum_codec::packet::Disconnect {
        reason: ReasonCode::NotAuthorized,
        properties: thrum_codec::properties::DisconnectProperties::default(),
    });
    assert_eq!(peer.receive(disconnect).unwrap(), "disconnected 0x87");
    assert!(!authenticate(&mut peer));
}

#[test]
fn every_connection_can_start_with_a_different_step() {
    let mut peer = Peer::new(options());
    for first in [&b"nonce 1"[..], b"nonce 2"] {
        peer.out.clear();
        let (now, out) = (peer.now, &mut peer.out);
        peer.client.connect_with(Some(first), now, out).unwrap();
        check_connect(&peer.out, |connect| {
            assert_eq!(connect.properties.authentication_method, Some(METHOD));
            assert_eq!(connect.properties.authentication_data, Some(first));
        });
    }
    peer.out.clear();
    peer.client.connect(peer.now, &mut peer.out).unwrap();
    check_connect(&peer.out, |connect| {
        let first = connect.properties.authentication_data;
        assert_eq!(first, Some(&b"from the options"[..]));
    });
}

// [MQTT-3.15.2-2] [MQTT-3.15.2-3]
#[test]
fn an_auth_over_the_servers_packet_size_is_not_sent() {
    let mut peer = Peer::new(options());
    let properties = ConnAckProperties {
        maximum_packet_size: Some(20),
        ..ConnAckProperties::default()
    };
    peer.reconnect(&accept_with(false, properties));
    let long = [7; 30];
    let (now, out) = (peer.now, &mut peer.out);
    assert!(!peer.client.reauthenticate(&long, now, out));
    assert!(out.is_empty());
    assert!(reauthenticate(&mut peer), "a shorter one is sent");
    assert_eq!(peer.sent(), ["AUTH 0x19"]);
}
