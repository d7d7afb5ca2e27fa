//! The stop of a worker: what still leaves.

use std::io::{Read, Write};

use thrum_transport::{Acceptor, WebSocketOptions};

use super::{connect, messages, publish, settle, subscriber, two_workers, two_workers_with};
use crate::mailbox::Mail;

const UPGRADE: &[u8] = b"GET /mqtt HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Version: 13\r\n\r\n";
/// A frame with binary data of less than 126 bytes, masked with zeros.
const BINARY: [u8; 2] = [0x82, 0x80];
const CONNACK: &[u8] = b"\x82\x04\x20\x02\x00\x00";
/// A Close frame and its status: going away.
const CLOSE: u8 = 0x88;

#[test]
fn a_client_over_websocket_is_sent_a_close_frame() {
    let mut workers = two_workers_with(|parts| {
        parts.acceptor = Acceptor::new(None, Some(&WebSocketOptions::default())).unwrap();
    });
    let mut client = workers[0].accepted();
    client.write_all(UPGRADE).unwrap();
    settle(&mut workers);
    let packet = connect("a", None);
    let len = u8::try_from(packet.len()).unwrap();
    let frame = [&[BINARY[0], BINARY[1] | len, 0, 0, 0, 0], &packet[..]].concat();
    client.write_all(&frame).unwrap();
    settle(&mut workers);
    let id = workers[0].traffic.engine.core.id;
    workers[0].node.mailbox(id).push(Mail::Stop);
    workers[0].run_turn();
    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).unwrap();
    let connack = bytes.windows(CONNACK.len()).position(|at| at == CONNACK);
    let behind = &bytes[connack.expect("it is in") + CONNACK.len()..];
    assert_eq!(behind.first(), Some(&CLOSE), "{behind:x?}");
}

#[test]
fn messages_published_in_the_turn_of_the_stop_reach_another_worker() {
    let mut workers = two_workers();
    let mut subscriber = subscriber(&mut workers, 1);
    let mut publisher = workers[0].accepted();
    publisher.write_all(&connect("publisher", None)).unwrap();
    settle(&mut workers);
    publisher.write_all(&publish(b"last")).unwrap();
    let id = workers[0].traffic.engine.core.id;
    workers[0].node.mailbox(id).push(Mail::Stop);
    workers[0].run_turn();
    workers[1].run_turn();
    assert_eq!(messages(&mut subscriber), [b"last"]);
}
