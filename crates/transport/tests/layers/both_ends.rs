//! Client and server of this crate against each other, over TLS, WebSocket, and one over the other.

use thrum_transport::LayerError;

use crate::duplex::{duplex, opened};

const STACKS: [&str; 3] = ["mqtts", "ws", "wss"];
const WHOLE: usize = usize::MAX;

/// Bytes without a period that a mask or a record has.
fn pattern(bytes: usize) -> Vec<u8> {
    (0_u8..251).cycle().take(bytes).collect()
}

#[test]
fn mqtt_travels_both_ways_in_pieces_of_any_size() {
    for scheme in STACKS {
        for piece_bytes in [1, 2, 7, 1000, WHOLE] {
            let mut duplex = opened(scheme, piece_bytes);
            duplex.client_sends(b"connect");
            duplex.server_sends(&[b"conn", b"", b"ack"]);
            duplex.client_sends(b", subscribe");
            duplex.server_sends(&[b", suback"]);
            assert_eq!(duplex.to_server, b"connect, subscribe", "{scheme}");
            assert_eq!(duplex.to_client, b"connack, suback", "{scheme}");
        }
    }
}

#[test]
fn a_mebibyte_travels_both_ways() {
    // [MQTT-6.0.0-2] [MQTT3-6.0.0-2]
    let large = pattern(1 << 20);
    for scheme in STACKS {
        for piece_bytes in [997, 65_536] {
            let mut duplex = opened(scheme, piece_bytes);
            duplex.client_sends(&large);
            assert!(duplex.to_server == large, "{scheme}");
            let (front, back) = large.split_at(300_001);
            duplex.server_sends(&[b"", &front[..5], &front[5..], back]);
            assert!(duplex.to_client == large, "{scheme}");
        }
    }
}

#[test]
fn every_length_travels_both_ways() {
    for scheme in STACKS {
        let mut duplex = opened(scheme, WHOLE);
        let lengths = (0..300).chain(16_300..16_400).chain(65_500..65_560);
        for length in lengths {
            let bytes = pattern(length);
            duplex.client_sends(&bytes);
            assert!(duplex.to_server == bytes, "{scheme} {length}");
            let (front, back) = bytes.split_at(length / 3);
            duplex.server_sends(&[front, back]);
            assert!(duplex.to_client == bytes, "{scheme} {length}");
            duplex.to_server.clear();
            duplex.to_client.clear();
        }
    }
}

/// How many bytes the pieces take on the wire in addition to their own.
fn overhead(scheme: &str, pieces: &[&[u8]]) -> usize {
    let mut duplex = opened(scheme, WHOLE);
    let mut out = Vec::new();
    duplex
        .server
        .send(pieces.iter().copied(), &mut out)
        .unwrap();
    out.len() - pieces.iter().map(|piece| piece.len()).sum::<usize>()
}

#[test]
fn small_pieces_leave_as_one_frame_in_one_record() {
    // Header, type and tag of a record of TLS 1.3.
    let record = 5 + 1 + 16;
    let pieces = [b"ab".as_slice(), b"c", b"", &[7; 200]];
    for (scheme, expected) in [("mqtts", record), ("ws", 4), ("wss", record + 4)] {
        assert_eq!(overhead(scheme, &pieces), expected, "{scheme}");
        assert_eq!(overhead(scheme, &[&[7; 203]]), expected, "{scheme}");
        assert_eq!(overhead(scheme, &[]), 0);
        assert_eq!(overhead(scheme, &[b"", b""]), 0);
    }
    let large = vec![0; 65_528];
    assert_eq!(overhead("ws", &[&large[..9], &large[9..]]), 4);
    assert_eq!(overhead("wss", &[&large[..9], &large[9..]]), 4 + 4 * record);
    assert_eq!(overhead("mqtts", &[&large[..16_384]]), record);
}

#[test]
fn nothing_is_sent_before_the_handshakes_are_done() {
    for scheme in STACKS {
        let mut duplex = duplex(scheme, WHOLE);
        let mut out = Vec::new();
        let sent = duplex.server.send([b"x".as_slice()], &mut out);
        assert_eq!(sent, Err(LayerError::NotOpen));
        assert!(!duplex.server.is_open() && out.is_empty());
        duplex.server.close(&mut out);
        assert!(out.is_empty());
    }
}

#[test]
fn after_a_close_neither_end_sends_more() {
    for scheme in STACKS {
        for client_first in [true, false] {
            let mut duplex = opened(scheme, WHOLE);
            duplex.client_sends(b"last words");
            if client_first {
                duplex.client_closes();
            } else {
                duplex.server_closes();
            }
            duplex.carry().none();
            // A close frame is answered, a close alert need not be.
            if scheme == "mqtts" {
                duplex.client_closes();
                duplex.server_closes();
                duplex.carry().none();
            }
            assert!(duplex.server.is_closed_by_peer() && duplex.client.is_closed_by_peer());
            assert!(!duplex.server.is_open() && !duplex.client.is_open());
            let sent = duplex.server.send([b"late".as_slice()], &mut Vec::new());
            assert_eq!(sent, Err(LayerError::NotOpen));
            assert_eq!(duplex.to_server, b"last words");
        }
    }
}

#[test]
fn other_protocols_are_named() {
    let mqtt = b"\x10\x10\0\x04MQTT\x04\x02\0\x3C\0\x04test";
    let hello = b"\x16\x03\x01\x02\0\x01\0\x01\xFC\x03\x03";
    let http = b"GET / HTTP/1.1\r\n\r\n";
    let proxy = b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n";
    for (scheme, bytes, expected) in [
        (
            "mqtts",
            mqtt.as_slice(),
            "plain MQTT: give it mqtts:// or wss://",
        ),
        ("mqtts", http, "TLS but plain HTTP"),
        ("mqtts", proxy, "TLS but the PROXY protocol"),
        ("wss", mqtt, "TLS but plain MQTT"),
        ("ws", mqtt, "plain MQTT: give it ws:// or wss://"),
        ("ws", hello, "WebSocket but TLS"),
        ("ws", proxy, "WebSocket but the PROXY protocol"),
    ] {
        for piece_bytes in [1, WHOLE] {
            let mut server = duplex(scheme, WHOLE).server;
            let (mut plain, mut out) = (Vec::new(), Vec::new());
            let mut bytes = bytes.to_vec();
            let mut pieces = bytes.chunks_mut(piece_bytes);
            let fault = pieces.find_map(|piece| server.receive(piece, &mut plain, &mut out).err());
            let message = fault.unwrap().to_string();
            assert!(message.contains(expected), "{scheme}: {message}");
            assert_eq!(plain, b"");
        }
    }
}

/// An answer of WebSocket waits to be encrypted when TLS fails.
#[test]
fn an_altered_record_ends_the_connection() {
    for scheme in ["mqtts", "wss"] {
        let mut duplex = opened(scheme, WHOLE);
        let mut wire = Vec::new();
        duplex.client.send(b"good", &mut wire).unwrap();
        // In a WebSocket the close frame is answered, but TLS is over when the answer is there.
        duplex.client.close(&mut wire);
        *wire.last_mut().unwrap() ^= 1;
        let (mut plain, mut out) = (Vec::new(), Vec::new());
        let result = duplex.server.receive(&mut wire, &mut plain, &mut out);
        let message = result.unwrap_err().to_string();
        assert!(
            message.contains("cannot decrypt peer's message"),
            "{message}"
        );
        assert_eq!(plain, b"good");
        // An alert, encrypted.
        assert!(out.starts_with(&[23, 3, 3]));
        let sent = duplex.server.send([b"x".as_slice()], &mut out);
        assert_eq!(sent, Err(LayerError::NotOpen));
    }
}
