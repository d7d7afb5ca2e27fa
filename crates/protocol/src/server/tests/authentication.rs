//! Enhanced authentication: challenges before CONNACK, and re-authentication.

use thrum_codec::packet::Auth;
use thrum_codec::properties::AuthProperties;

use super::*;

const METHOD: &str = "SCRAM-SHA-256";

fn with_method(method: &str) -> Connect<'_> {
    let mut connect = persistent(Version::V5);
    connect.properties.authentication_method = Some(method);
    connect.properties.authentication_data = Some(b"first");
    connect
}

fn handshake_of(connect: &Connect<'_>) -> Handshake {
    Handshake::new(connect, "assigned-1", &Limits::default()).unwrap()
}

fn auth<'a>(reason: ReasonCode, method: &'a str, step: &'a [u8]) -> Packet<'a> {
    Packet::Auth(Auth {
        reason,
        properties: AuthProperties {
            authentication_method: Some(method),
            authentication_data: Some(step),
            ..AuthProperties::default()
        },
    })
}

fn answer(step: &[u8]) -> Packet<'_> {
    auth(ReasonCode::ContinueAuthentication, METHOD, step)
}

fn challenged(handshake: &mut Handshake, step: &[u8]) -> Vec<String> {
    let mut out = Output::new();
    handshake.challenge(step, &mut out).unwrap();
    lines(&out.to_vec(), Version::V5)
}

// [MQTT-4.12.0-2] [MQTT-4.12.0-5] [MQTT-3.2.0-1] [MQTT-3.15.2-1]
#[test]
fn a_client_is_challenged_until_authenticated_and_then_accepted() {
    let connect = with_method(METHOD);
    let mut handshake = handshake_of(&connect);
    assert_eq!(handshake.authentication_method(), Some(METHOD));
    for step in [&b"one"[..], b"", b"three"] {
        let text = String::from_utf8_lossy(step);
        let expected = format!("AUTH 0x18 {METHOD} {text}");
        assert_eq!(challenged(&mut handshake, step), [expected]);
        assert_eq!(
            handshake.authentication_step(&answer(step)),
            Ok(AuthenticationStep::Data(step))
        );
    }
    let limits = Arc::new(Limits::default());
    let mut session = Session::new(1, &handshake, &limits);
    let parts = ConnAckParts {
        authentication_data: Some(b"last"),
        ..ConnAckParts::default()
    };
    let mut out = Output::new();
    session.connect(handshake, parts, Time::default(), &mut out);
    let out = out.to_vec();
    let [Packet::ConnAck(connack)] = packets(&out, Version::V5)[..] else {
        panic!("one CONNACK expected");
    };
    assert_eq!(connack.properties.authentication_method, Some(METHOD));
    assert_eq!(connack.properties.authentication_data, Some(&b"last"[..]));
    assert_eq!(session.link().authentication_method(), Some(METHOD));
}

// [MQTT-4.12.0-6]
#[test]
fn a_client_without_method_gets_neither_challenge_nor_method() {
    let mut handshake = handshake_of(&persistent(Version::V5));
    assert_eq!(handshake.authentication_method(), None);
    assert!(challenged(&mut handshake, b"step").is_empty());
    // [MQTT-4.12.0-7]
    let step = handshake.authentication_step(&answer(b""));
    assert_eq!(reason(step), ReasonCode::ProtocolError);
    let limits = Arc::new(Limits::default());
    let mut session = Session::new(1, &handshake, &limits);
    let parts = ConnAckParts {
        authentication_data: Some(b"last"),
        ..ConnAckParts::default()
    };
    let mut out = Output::new();
    session.connect(handshake, parts, Time::default(), &mut out);
    let out = out.to_vec();
    let [Packet::ConnAck(connack)] = packets(&out, Version::V5)[..] else {
        panic!("one CONNACK expected");
    };
    assert_eq!(connack.properties.authentication_method, None);
    assert_eq!(connack.properties.authentication_data, None);
}

// [MQTT-4.12.0-3] [MQTT-4.12.0-5]
#[test]
fn a_packet_without_a_challenge_is_refused_before_connack() {
    let connect = with_method(METHOD);
    let refused = |packet: &Packet<'_>| {
        let mut handshake = handshake_of(&connect);
        challenged(&mut handshake, b"step");
        reason(handshake.authentication_step(packet))
    };
    let other_method = auth(ReasonCode::ContinueAuthentication, "SCRAM-SHA-1", b"");
    assert_eq!(refused(&other_method), ReasonCode::BadAuthenticationMethod);
    for packet in [
        auth(ReasonCode::ReAuthenticate, METHOD, b""),
        auth(ReasonCode::Success, METHOD, b""),
        Packet::PingReq,
        Packet::Connect(connect),
        Packet::Publish(publish(QOS0, 0, "t", "")),
    ] {
        assert_eq!(refused(&packet), ReasonCode::ProtocolError);
    }
    // No challenge was sent, or none since the last answer.
    let mut handshake = handshake_of(&connect);
    let step = handshake.authentication_step(&answer(b"early"));
    assert_eq!(reason(step), ReasonCode::ProtocolError);
    challenged(&mut handshake, b"step");
    assert!(handshake.authentication_step(&answer(b"once")).is_ok());
    let step = handshake.authentication_step(&answer(b"twice"));
    assert_eq!(reason(step), ReasonCode::ProtocolError);
}

// [MQTT-3.15.2-2] [MQTT-3.15.2-3] [MQTT-3.1.2-29]
#[test]
fn a_challenge_has_neither_reason_string_nor_user_properties() {
    let mut out = Output::new();
    let mut handshake = handshake_of(&with_method(METHOD));
    handshake.challenge(b"step", &mut out).unwrap();
    let out = out.to_vec();
    let expected = auth(ReasonCode::ContinueAuthentication, METHOD, b"step");
    assert_eq!(packets(&out, Version::V5), [expected]);
}

// [MQTT-3.1.2-30]
#[test]
fn a_client_may_disconnect_before_connack() {
    let mut handshake = handshake_of(&with_method(METHOD));
    assert_eq!(
        handshake.authentication_step(&client_disconnect(ReasonCode::Success)),
        Ok(AuthenticationStep::Disconnected)
    );
}

#[test]
fn an_answer_without_data_is_empty() {
    let mut handshake = handshake_of(&with_method(METHOD));
    challenged(&mut handshake, b"step");
    let bare = Packet::Auth(Auth {
        reason: ReasonCode::ContinueAuthentication,
        properties: AuthProperties {
            authentication_method: Some(METHOD),
            ..AuthProperties::default()
        },
    });
    assert_eq!(
        handshake.authentication_step(&bare),
        Ok(AuthenticationStep::Data(b""))
    );
}

// [MQTT-4.12.0-1] [MQTT-4.12.0-4] [MQTT-3.1.4-2] [MQTT-3.2.2-19]
#[test]
fn a_client_that_fails_authentication_gets_a_connack() {
    let mut connect = with_method(METHOD);
    let told = |connect: &Connect<'_>, reason, what| {
        let mut out = Output::new();
        handshake_of(connect).refuse(&Violation::new(reason, what), &mut out);
        let out = out.to_vec();
        let [Packet::ConnAck(connack)] = packets(&out, Version::V5)[..] else {
            panic!("one CONNACK expected");
        };
        assert_eq!(connack.properties.authentication_method, None);
        let words = connack.properties.reason_string.map(ToString::to_string);
        (connack.reason, words)
    };
    for reason in [
        ReasonCode::NotAuthorized,
        ReasonCode::BadAuthenticationMethod,
        ReasonCode::BadUserNameOrPassword,
    ] {
        let (found, words) = told(&connect, reason, "wrong proof");
        assert_eq!((found, words.as_deref()), (reason, Some("wrong proof")));
        assert_eq!(told(&connect, reason, ""), (reason, None));
    }
    connect.properties.maximum_packet_size = Some(50);
    let long = "a reason that exceeds the maximum packet size of this client";
    let (_, words) = told(&connect, ReasonCode::NotAuthorized, long);
    assert_eq!(words, None);
}

// [MQTT-3.1.2-24]
#[test]
fn a_challenge_over_the_clients_packet_size_is_not_sent() {
    let mut connect = with_method("M");
    connect.properties.maximum_packet_size = Some(40);
    let mut out = Output::new();
    let fits = [7; 40 - 11];
    assert_eq!(handshake_of(&connect).challenge(&fits, &mut out), Ok(()));
    assert_eq!(out.len(), 40);
    out.clear();
    let result = handshake_of(&connect).challenge(&[7; 40 - 10], &mut out);
    assert_eq!(reason(result), ReasonCode::PacketTooLarge);
    assert!(out.is_empty());
    // Longer than any property.
    let long = [7].repeat(65_536);
    let result = handshake_of(&with_method("M")).challenge(&long, &mut out);
    assert_eq!(reason(result), ReasonCode::PacketTooLarge);
    assert!(out.is_empty());
}

#[test]
fn a_last_step_over_the_clients_packet_size_is_omitted_from_connack() {
    let mut connect = with_method("M");
    connect.properties.maximum_packet_size = Some(40);
    let last = [7; 100];
    let limits = Arc::new(Limits::default());
    let handshake = handshake_of(&connect);
    let mut session = Session::new(1, &handshake, &limits);
    let parts = ConnAckParts {
        authentication_data: Some(&last),
        ..ConnAckParts::default()
    };
    let mut out = Output::new();
    session.connect(handshake, parts, Time::default(), &mut out);
    let out = out.to_vec();
    let [Packet::ConnAck(connack)] = packets(&out, Version::V5)[..] else {
        panic!("one CONNACK expected");
    };
    assert_eq!(connack.properties.authentication_method, Some("M"));
    assert_eq!(connack.properties.authentication_data, None);
}

// [MQTT-3.1.2-24]
#[test]
fn a_method_that_makes_connack_too_large_is_refused_at_once() {
    let name = "m".repeat(100);
    let mut connect = with_method(&name);
    connect.properties.maximum_packet_size = Some(100);
    let handshake = Handshake::new(&connect, "", &Limits::default());
    assert_eq!(reason(handshake), ReasonCode::PacketTooLarge);
}

/// A connection that was authenticated.
fn peer() -> Peer {
    Peer::new(&with_method(METHOD))
}

fn continue_authentication(peer: &mut Peer, step: &[u8]) -> Vec<String> {
    let mut out = Output::new();
    peer.session
        .link_mut()
        .authenticate_continue(step, &mut out)
        .unwrap();
    lines(&out.to_vec(), Version::V5)
}

fn done(peer: &mut Peer, step: Option<&[u8]>) -> Vec<String> {
    let mut out = Output::new();
    peer.session
        .link_mut()
        .authenticate_done(step, &mut out)
        .unwrap();
    lines(&out.to_vec(), Version::V5)
}

fn again() -> Packet<'static> {
    auth(ReasonCode::ReAuthenticate, METHOD, b"again")
}

// [MQTT-4.12.1-1] [MQTT-4.12.0-2] [MQTT-4.12.0-3] [MQTT-4.12.0-5] [MQTT-3.15.2-1]
#[test]
fn a_client_can_reauthenticate_while_it_publishes() {
    let mut peer = peer();
    for _ in 0..2 {
        assert!(peer.send(&again()).unwrap().is_empty());
        assert_eq!(peer.authentications(), ["again"]);
        // Its permissions do not change meanwhile.
        let sent = peer.send(&Packet::Publish(publish(QOS1, 1, "t", "x")));
        assert_eq!(sent.unwrap(), ["PUBACK #1"]);
        assert_eq!(peer.sent(QOS0, "y"), "PUBLISH 0 t=y");
        assert_eq!(
            continue_authentication(&mut peer, b"prove it"),
            ["AUTH 0x18 SCRAM-SHA-256 prove it"]
        );
        assert_eq!(peer.send(&Packet::PingReq).unwrap(), ["PINGRESP"]);
        peer.send(&answer(b"proof")).unwrap();
        assert_eq!(peer.authentications(), ["proof"]);
        assert_eq!(
            done(&mut peer, Some(b"well")),
            ["AUTH 0x00 SCRAM-SHA-256 well"]
        );
    }
    peer.send(&again()).unwrap();
    assert_eq!(done(&mut peer, None), ["AUTH 0x00 SCRAM-SHA-256 "]);
}

// [MQTT-4.12.1-1] [MQTT-4.12.0-5]
#[test]
fn authentication_out_of_turn_is_a_violation() {
    type Prepare = fn(&mut Peer);
    let asked: Prepare = |peer| {
        peer.send(&again()).unwrap();
    };
    let challenged: Prepare = |peer| {
        peer.send(&again()).unwrap();
        continue_authentication(peer, b"step");
    };
    let other = |reason| auth(reason, "PLAIN", b"");
    let cases: [(Prepare, Packet<'_>); 8] = [
        (|_| (), answer(b"")),
        (|_| (), auth(ReasonCode::Success, METHOD, b"")),
        (|_| (), other(ReasonCode::ReAuthenticate)),
        (asked, again()),
        (asked, answer(b"")),
        (challenged, again()),
        (challenged, auth(ReasonCode::Success, METHOD, b"")),
        (challenged, other(ReasonCode::ContinueAuthentication)),
    ];
    for (prepare, packet) in cases {
        let mut peer = peer();
        prepare(&mut peer);
        assert_eq!(reason(peer.send(&packet)), ReasonCode::ProtocolError);
    }
}

// [MQTT-4.12.0-7] [MQTT-4.12.0-6]
#[test]
fn a_client_without_method_may_send_no_auth() {
    let mut peer = Peer::new(&persistent(Version::V5));
    assert_eq!(peer.session.link().authentication_method(), None);
    assert_eq!(reason(peer.send(&again())), ReasonCode::ProtocolError);
    let bare = Packet::Auth(Auth {
        reason: ReasonCode::Success,
        properties: AuthProperties::default(),
    });
    assert_eq!(reason(peer.send(&bare)), ReasonCode::ProtocolError);
}

// [MQTT-4.12.1-2]
#[test]
fn a_client_that_fails_reauthentication_is_disconnected_with_a_reason() {
    let mut peer = peer();
    peer.send(&again()).unwrap();
    let told = peer.disconnect(ReasonCode::NotAuthorized, Some("wrong proof"));
    assert_eq!(told, ["DISCONNECT 0x87 wrong proof"]);
    // A later result of the authenticator is discarded.
    assert!(continue_authentication(&mut peer, b"late").is_empty());
    assert!(done(&mut peer, None).is_empty());
}

#[test]
fn nothing_is_sent_without_a_step_of_the_client() {
    let mut peer = peer();
    assert!(continue_authentication(&mut peer, b"step").is_empty());
    assert!(done(&mut peer, None).is_empty());
    peer.send(&again()).unwrap();
    continue_authentication(&mut peer, b"step");
    assert!(done(&mut peer, None).is_empty(), "it is the client's turn");
    peer.lose();
    assert_eq!(peer.session.link().authentication_method(), None);
    peer.reconnect(&with_method(METHOD));
    assert!(
        done(&mut peer, None).is_empty(),
        "the step belongs to another connection"
    );
}

// [MQTT-3.1.2-24]
#[test]
fn a_step_over_the_clients_packet_size_is_not_sent() {
    let mut connect = with_method("M");
    connect.properties.maximum_packet_size = Some(40);
    let mut peer = Peer::new(&connect);
    peer.send(&auth(ReasonCode::ReAuthenticate, "M", b""))
        .unwrap();
    let mut out = Output::new();
    let step = [7; 40 - 10];
    let result = peer
        .session
        .link_mut()
        .authenticate_continue(&step, &mut out);
    assert_eq!(reason(result), ReasonCode::PacketTooLarge);
    let result = peer
        .session
        .link_mut()
        .authenticate_done(Some(&step), &mut out);
    assert_eq!(reason(result), ReasonCode::PacketTooLarge);
    assert!(out.is_empty());
    peer.session
        .link_mut()
        .authenticate_done(None, &mut out)
        .unwrap();
    assert_eq!(lines(&out.to_vec(), Version::V5), ["AUTH 0x00 M "]);
}
