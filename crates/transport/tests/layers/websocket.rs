//! Control frames, frames that violate the protocol, and refusals of the handshake.

use thrum_codec::websocket::{Opcode, encode_frame};
use thrum_transport::LayerError;

use crate::pair::{Pair, opened, pair};

const STACKS: [&str; 2] = ["ws", "wss"];

fn frame(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_frame(opcode, None, payload, &mut out);
    out
}

/// Frames of the server on their way to the client.
fn deliver(pair: &mut Pair, frames: &[u8]) -> Result<(), LayerError> {
    let bytes = pair.server.send_raw(frames);
    pair.deliver(&bytes)
}

fn controls(pair: &mut Pair) -> Vec<String> {
    pair.flush();
    pair.server.websocket.as_ref().unwrap().controls.clone()
}

#[test]
fn pings_are_answered_between_the_fragments_of_a_message() {
    for scheme in STACKS {
        for piece_bytes in [1, usize::MAX] {
            let mut pair = opened(scheme, piece_bytes);
            let mut first = frame(Opcode::Binary, b"one");
            first[0] &= 0x7F;
            let frames = [
                first,
                frame(Opcode::Ping, b"there?"),
                frame(Opcode::Continuation, b"two"),
                frame(Opcode::Pong, b"alive"),
            ];
            deliver(&mut pair, &frames.concat()).unwrap();
            assert_eq!(pair.received, b"onetwo");
            assert_eq!(controls(&mut pair), ["Pong"]);
        }
    }
}

#[test]
fn a_close_frame_is_answered_and_ends_the_connection() {
    for scheme in STACKS {
        let mut pair = opened(scheme, usize::MAX);
        let close = frame(Opcode::Close, b"\x03\xE9going away");
        deliver(&mut pair, &close).unwrap();
        assert!(pair.client.is_closed_by_peer());
        assert!(!pair.client.is_open());
        assert_eq!(
            controls(&mut pair),
            ["Close { code: Some(1001), reason: \"\" }"]
        );
    }
}

#[test]
fn a_protocol_violation_is_reported_to_the_server() {
    for scheme in STACKS {
        for (frames, code) in [
            (frame(Opcode::Text, b"hello"), 1003),
            (frame(Opcode::Continuation, b"x"), 1002),
            (vec![0x82, 127, 0, 0, 1, 0, 0, 0, 0, 0], 1009),
        ] {
            let mut pair = opened(scheme, usize::MAX);
            let error = deliver(&mut pair, &frames).unwrap_err();
            assert!(matches!(error, LayerError::Frame(_)), "{error}");
            let expected = format!("Close {{ code: Some({code}), reason: \"\" }}");
            assert_eq!(controls(&mut pair), [expected]);
        }
    }
}

#[test]
fn a_long_packet_goes_in_several_messages() {
    let mut pair = opened("ws", usize::MAX);
    let mut out = Vec::new();
    pair.client.send(&vec![7; 65_536], &mut out).unwrap();
    // Two headers, of a length of two bytes and of one.
    assert_eq!(out.len(), (4 + 4 + 65_528) + (2 + 4 + 8));
    pair.server.receive(&out);
    assert!(pair.server.received == vec![7; 65_536]);
}

#[test]
fn frames_right_behind_the_answer_are_read() {
    let mut pair = pair("ws", usize::MAX);
    let mut request = Vec::new();
    pair.client.start(&mut request).unwrap();
    let mut answer = pair.server.receive(&request);
    answer.extend(frame(Opcode::Binary, b"early"));
    pair.deliver(&answer).unwrap();
    assert!(pair.client.is_open());
    assert_eq!(pair.received, b"early");
}

#[test]
fn a_refusal_says_its_status() {
    let mut pair = pair("ws", 5);
    pair.client.start(&mut Vec::new()).unwrap();
    let error = pair
        .deliver(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "no WebSocket here, the server answered 404 Not Found: check port and path of the endpoint"
    );
}

#[test]
fn two_connections_differ_in_key_and_masks() {
    let (mut one, mut two) = (pair("ws", 1), pair("ws", 1));
    one.open().unwrap();
    two.open().unwrap();
    let head = |pair: &Pair| pair.server.websocket.as_ref().unwrap().head.clone();
    assert_ne!(head(&one), head(&two));
    let (mut first, mut second) = (Vec::new(), Vec::new());
    one.client.send(b"same", &mut first).unwrap();
    two.client.send(b"same", &mut second).unwrap();
    assert_ne!(first, second);
}
