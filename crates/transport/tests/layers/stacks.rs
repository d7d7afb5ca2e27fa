//! Properties of TLS, of WebSocket, and of one over the other.

use thrum_transport::LayerError;

use crate::pair::{opened, pair};

const STACKS: [&str; 3] = ["mqtts", "ws", "wss"];
const WHOLE: usize = usize::MAX;

/// Bytes without a period that a mask or a record has.
fn pattern(bytes: usize) -> Vec<u8> {
    (0_u8..251).cycle().take(bytes).collect()
}

#[test]
fn mqtt_travels_both_ways_in_pieces_of_any_size() {
    for scheme in STACKS {
        for piece_bytes in [1, 7, WHOLE] {
            let mut pair = opened(scheme, piece_bytes);
            pair.client_sends(b"connect").unwrap();
            pair.server_sends(b"connack").unwrap();
            pair.client_sends(b", subscribe").unwrap();
            pair.server_sends(b", suback").unwrap();
            assert_eq!(pair.server.received, b"connect, subscribe", "{scheme}");
            assert_eq!(pair.received, b"connack, suback", "{scheme}");
        }
    }
}

#[test]
fn a_mebibyte_travels_both_ways() {
    let large = pattern(1 << 20);
    for scheme in STACKS {
        let mut pair = opened(scheme, 3000);
        pair.client_sends(&large).unwrap();
        assert!(pair.server.received == large, "{scheme}");
        pair.server_sends(&large).unwrap();
        assert!(pair.received == large, "{scheme}");
    }
}

#[test]
fn nothing_is_sent_before_the_handshakes_are_done() {
    for scheme in STACKS {
        let mut pair = pair(scheme, WHOLE);
        let mut out = Vec::new();
        assert_eq!(pair.client.send(b"x", &mut out), Err(LayerError::NotOpen));
        pair.client.start(&mut out).unwrap();
        assert!(!out.is_empty());
        out.clear();
        assert_eq!(pair.client.send(b"x", &mut out), Err(LayerError::NotOpen));
        assert_eq!(out, b"");
    }
}

#[test]
fn bytes_before_the_start_are_refused() {
    for scheme in STACKS {
        let mut pair = pair(scheme, WHOLE);
        assert_eq!(pair.deliver(b"x"), Err(LayerError::NotOpen));
    }
}

#[test]
fn an_empty_message_opens_nothing_and_breaks_nothing() {
    for scheme in STACKS {
        let mut pair = opened(scheme, WHOLE);
        pair.client_sends(b"").unwrap();
        pair.server_sends(b"after").unwrap();
        assert_eq!(pair.received, b"after");
    }
}

#[test]
fn after_its_close_a_client_sends_no_more() {
    for scheme in STACKS {
        let mut pair = opened(scheme, WHOLE);
        pair.client_closes();
        pair.client_closes();
        pair.carry().unwrap();
        assert!(!pair.client.is_open(), "{scheme}");
        assert_eq!(pair.client_sends(b"late"), Err(LayerError::NotOpen));
        assert_eq!(pair.server.received, b"");
        if let Some(websocket) = &pair.server.websocket {
            assert_eq!(
                websocket.controls,
                ["Close { code: Some(1000), reason: \"\" }"]
            );
        }
        if let Some(tls) = &mut pair.server.tls {
            assert!(tls.process_new_packets().unwrap().peer_has_closed());
        }
    }
}

#[test]
fn only_tls_has_a_summary() {
    for (scheme, expected) in [("mqtts", true), ("ws", false), ("wss", true)] {
        assert!(pair(scheme, WHOLE).client.tls().is_none());
        assert_eq!(opened(scheme, WHOLE).client.tls().is_some(), expected);
    }
}

#[test]
fn a_socket_that_ends_early_is_explained() {
    for (scheme, expected) in [("mqtts", "TLS"), ("ws", "WebSocket"), ("wss", "TLS")] {
        let mut early = pair(scheme, WHOLE);
        early.client.start(&mut Vec::new()).unwrap();
        let cause = early.client.cut_off().unwrap();
        assert_eq!(cause, LayerError::CutOff(expected));
        assert_eq!(opened(scheme, WHOLE).client.cut_off(), None);
    }
    // The server's answer to the request is still to come.
    let mut half = pair("wss", WHOLE);
    let mut to_server = Vec::new();
    half.client.start(&mut to_server).unwrap();
    let hello = half.server.receive(&to_server);
    half.deliver(&hello).unwrap();
    assert_eq!(half.client.cut_off(), Some(LayerError::CutOff("WebSocket")));
}
