//! Client and server together: enhanced authentication before CONNACK, and re-authentication.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use thrum_codec::{Packet, ReasonCode, Version, decode, frame};
use thrum_protocol::client::{Client, ClientOptions, Event};
use thrum_protocol::server::{Action, AuthenticationStep, ConnAckParts, Handshake, Session};
use thrum_protocol::{Limits, Output, Time};

const NOW: Time = Time::from_millis(1_000);
const METHOD: &str = "echo";

/// The only packet in the bytes.
fn packet(bytes: &[u8]) -> Packet<'_> {
    let frame = frame::split(bytes, u32::MAX).unwrap().unwrap();
    assert_eq!(frame.len, bytes.len());
    decode(frame, Version::V5).unwrap()
}

/// The client's answer to a step of the server.
fn echo(client: &mut Client, from_server: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let event = client.handle_packet(packet(from_server), NOW, &mut out);
    let Event::Authenticate(auth) = event.unwrap() else {
        panic!("a challenge expected");
    };
    let step = auth.properties.authentication_data.unwrap();
    assert!(client.authenticate(step, NOW, &mut out));
    out
}

/// Both ends of a connection that took two challenges.
fn connected() -> (Client, Session) {
    let options = ClientOptions {
        authentication_method: Some(METHOD.to_owned()),
        ..ClientOptions::default()
    };
    let mut client = Client::new(Arc::new(options), "me");
    let mut from_client = Vec::new();
    client
        .connect_with(Some(b"hello"), NOW, &mut from_client)
        .unwrap();
    let Packet::Connect(connect) = packet(&from_client) else {
        panic!("CONNECT expected");
    };
    let limits = Arc::new(Limits::default());
    let mut handshake = Handshake::new(&connect, "", &limits).unwrap();
    let first = connect.properties.authentication_data;
    assert_eq!(first, Some(&b"hello"[..]));
    for step in [&b"one"[..], b"two"] {
        let mut out = Output::new();
        handshake.challenge(step, &mut out).unwrap();
        let answer = echo(&mut client, &out.to_vec());
        assert_eq!(
            handshake.authentication_step(&packet(&answer)),
            Ok(AuthenticationStep::Data(step))
        );
    }
    let mut session = Session::new(1, &handshake, &limits);
    let parts = ConnAckParts {
        authentication_data: Some(b"parts"),
        ..ConnAckParts::default()
    };
    let mut out = Output::new();
    session.connect(handshake, parts, NOW, &mut out);
    let out = out.to_vec();
    let event = client.handle_packet(packet(&out), NOW, &mut Vec::new());
    let Event::Connected(connack) = event.unwrap() else {
        panic!("CONNACK expected");
    };
    let last = connack.properties.authentication_data;
    assert_eq!(last, Some(&b"parts"[..]));
    (client, session)
}

/// The data of the step that the session passes to the node.
fn step_of(session: &mut Session, from_client: &[u8]) -> Vec<u8> {
    let action = session.handle_packet(packet(from_client), NOW, &mut Output::new());
    let Action::Authenticate(auth) = action.unwrap() else {
        panic!("an authentication expected");
    };
    auth.properties.authentication_data.unwrap().to_vec()
}

// [MQTT-4.12.0-2] [MQTT-4.12.0-3] [MQTT-4.12.0-5] [MQTT-4.12.1-1]
#[test]
fn both_ends_agree_on_the_next_step() {
    let (mut client, mut session) = connected();
    for _ in 0..2 {
        let mut from_client = Vec::new();
        assert!(client.reauthenticate(b"again", NOW, &mut from_client));
        assert_eq!(step_of(&mut session, &from_client), b"again");
        let mut out = Output::new();
        session
            .link_mut()
            .authenticate_continue(b"three", &mut out)
            .unwrap();
        let answer = echo(&mut client, &out.to_vec());
        assert_eq!(step_of(&mut session, &answer), b"three");
        let mut out = Output::new();
        session
            .link_mut()
            .authenticate_done(None, &mut out)
            .unwrap();
        let out = out.to_vec();
        let event = client.handle_packet(packet(&out), NOW, &mut Vec::new());
        assert!(
            matches!(event, Ok(Event::Authenticate(auth)) if auth.reason == ReasonCode::Success)
        );
    }
}

// [MQTT-4.12.1-2]
#[test]
fn a_client_that_fails_reauthentication_gets_the_reason() {
    let (mut client, mut session) = connected();
    let mut from_client = Vec::new();
    assert!(client.reauthenticate(b"again", NOW, &mut from_client));
    step_of(&mut session, &from_client);
    let mut out = Output::new();
    session.disconnect(ReasonCode::NotAuthorized, Some("no"), &mut out);
    let out = out.to_vec();
    let event = client.handle_packet(packet(&out), NOW, &mut Vec::new());
    assert!(
        matches!(event, Ok(Event::Disconnected(why)) if why.reason == ReasonCode::NotAuthorized)
    );
}
