//! Connections with layers: their end in one read with earlier packets, and the limit of their
//! answers.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use thrum_access::Gatekeeper;
use thrum_codec::packet::{Disconnect, Packet, Will};
use thrum_codec::properties::{DisconnectProperties, WillProperties};
use thrum_codec::{QoS, ReasonCode};
use thrum_engine::node::metrics::Counter;
use thrum_engine::workers::WorkerId;
use thrum_transport::{Acceptor, WebSocketOptions};

use super::late_answers::{self, Hesitant};
use super::{Parts, bytes, connect, publish, settle, two_workers_with};
use crate::read_gate::PauseReason;
use crate::worker::Worker;
use crate::worker::simulation::websocket::{CLOSE, PING, PONG, WebSocket};

/// A frame of a client that no client may send.
const BROKEN: [u8; 2] = [0x83, 0x80];

/// Two workers behind WebSocket.
fn workers_with(change: impl FnOnce(&mut Parts)) -> [Worker; 2] {
    two_workers_with(|parts| {
        parts.acceptor = Acceptor::new(None, Some(&WebSocketOptions::default())).unwrap();
        change(parts);
    })
}

fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    WebSocket::frame(first, payload, &mut wire);
    wire
}

fn mqtt(packets: &[&[u8]]) -> Vec<u8> {
    let mut wire = Vec::new();
    WebSocket::wrap(&packets.concat(), &mut wire);
    wire
}

fn disconnect() -> Vec<u8> {
    bytes(&Packet::Disconnect(Disconnect {
        reason: ReasonCode::Success,
        properties: DisconnectProperties::default(),
    }))
}

fn will() -> Will<'static> {
    Will {
        topic: "t",
        payload: b"will",
        qos: QoS::AtMostOnce,
        retain: false,
        properties: WillProperties::default(),
    }
}

/// A client behind its handshake.
fn upgraded(worker: &mut Worker) -> UnixStream {
    let mut client = worker.accepted();
    client.write_all(&WebSocket::request()).unwrap();
    worker.run_turn();
    client
}

/// A subscriber behind WebSocket, at this worker.
fn subscriber(workers: &mut [Worker; 2], number: usize) -> UnixStream {
    let mut subscriber = upgraded(&mut workers[number]);
    let connect = connect("subscriber", None);
    let hello = mqtt(&[&connect, &super::subscribe()]);
    subscriber.write_all(&hello).unwrap();
    settle(workers);
    assert_eq!(read(&mut subscriber), Vec::<u8>::new());
    subscriber
}

/// The arrived packets without CONNACK and SUBACK: the payloads, which are one byte or a will.
fn read(client: &mut UnixStream) -> Vec<u8> {
    let mut wire = Vec::new();
    match client.read_to_end(&mut wire) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
    }
    let mut plain = Vec::new();
    let start = wire.windows(4).position(|four| four == b"\r\n\r\n");
    let start = start.map_or(0, |end| end + 4);
    let mut web_socket = WebSocket::opened();
    web_socket.unwrap(&wire[start..], &mut plain).unwrap();
    let mut payloads = Vec::new();
    let mut at = 0;
    while let Some(frame) = thrum_codec::frame::split(&plain[at..], u32::MAX).unwrap() {
        at += frame.len;
        let packet = thrum_codec::decode(frame, super::VERSION).unwrap();
        if let Packet::Publish(publish) = packet {
            payloads.extend_from_slice(publish.payload);
        }
    }
    payloads
}

/// The messages that a subscriber receives from a client whose last packets arrive in one read: ten
/// messages, a DISCONNECT and this frame.
fn received_before(end: &[u8]) -> Vec<u8> {
    let mut workers = workers_with(|_| ());
    let mut subscriber = subscriber(&mut workers, 1);
    let mut client = upgraded(&mut workers[0]);
    let hello = mqtt(&[&connect("client", Some(will()))]);
    client.write_all(&hello).unwrap();
    settle(&mut workers);
    // A packet or two in each turn.
    workers[0]
        .traffic
        .engine
        .core
        .turn
        .limits_mut()
        .portion_units = 3;
    let messages = publish(b"x").repeat(10);
    let last = mqtt(&[&messages, &disconnect()]);
    client.write_all(&[&last, end].concat()).unwrap();
    for _ in 0..10 {
        settle(&mut workers);
    }
    assert_eq!(workers[0].traffic.edge.connections.len(), 0);
    assert!(
        workers[0]
            .traffic
            .engine
            .core
            .sessions
            .find("client")
            .is_none()
    );
    read(&mut subscriber)
}

#[test]
fn packets_before_the_end_of_a_web_socket_are_handled_in_portions() {
    assert_eq!(received_before(&frame(CLOSE, &[])), b"x".repeat(10));
}

#[test]
fn packets_before_a_fault_in_a_web_socket_are_handled_in_portions() {
    assert_eq!(received_before(&BROKEN), b"x".repeat(10));
}

#[test]
fn a_web_socket_that_ends_during_the_login_ends_after_its_packets() {
    for owner in [0, 1] {
        let gatekeeper = Arc::new(Hesitant::default());
        let mut workers = workers_with(|parts| {
            parts.access.gatekeeper = Some(Arc::clone(&gatekeeper) as Arc<dyn Gatekeeper>);
        });
        let registry = &workers[0].node.state.registry;
        registry.claim("client", WorkerId::new(owner));
        let mut subscriber = upgraded(&mut workers[1]);
        let connect = late_answers::connect("subscriber", None);
        let hello = mqtt(&[&connect, &super::subscribe()]);
        subscriber.write_all(&hello).unwrap();
        settle(&mut workers);
        gatekeeper.admit_all();
        settle(&mut workers);
        let mut client = upgraded(&mut workers[0]);
        let connect = late_answers::connect("client", Some(will()));
        let all = mqtt(&[&connect, &publish(b"x"), &publish(b"y"), &disconnect()]);
        let all = [all, frame(CLOSE, &[])].concat();
        client.write_all(&all).unwrap();
        settle(&mut workers);
        gatekeeper.admit_all();
        for _ in 0..4 {
            settle(&mut workers);
        }
        assert_eq!(read(&mut subscriber), b"xy", "session at worker {owner}");
        assert!(
            workers[owner]
                .traffic
                .engine
                .core
                .sessions
                .find("client")
                .is_none()
        );
        let left = workers
            .iter()
            .map(|worker| worker.traffic.edge.connections.len());
        assert_eq!(left.sum::<usize>(), 1, "the subscriber");
    }
}

#[test]
fn a_handshake_that_ends_at_once_is_counted_out_where_the_session_is_elsewhere() {
    for end in [frame(CLOSE, &[]), BROKEN.to_vec()] {
        let mut workers = workers_with(|_| ());
        let elsewhere = WorkerId::new(1);
        workers[0].node.state.registry.claim("client", elsewhere);
        let mut client = workers[0].accepted();
        let connect = mqtt(&[&connect("client", None)]);
        let all = [WebSocket::request(), connect, end].concat();
        client.write_all(&all).unwrap();
        assert_eq!(workers[0].traffic.edge.handshakes.open(), 1);
        settle(&mut workers);
        assert_eq!(workers[0].traffic.edge.handshakes.open(), 0);
        // The client sends no more, and keeps its socket open.
        settle(&mut workers);
        let connected = workers[0]
            .node
            .state
            .metrics
            .total(Counter::ClientsConnected);
        assert_eq!(
            connected, 0,
            "its new worker knows that the layers are over"
        );
    }
}

/// Sends pings and reads no answer until the broker takes no more; the bytes that were sent.
fn send_pings_until_full(client: &mut UnixStream, worker: &mut Worker) -> usize {
    let pings = frame(PING, &[7; 100]).repeat(2000);
    let mut sent = 0;
    for _ in 0..200 {
        // As much as fits.
        while let Ok(len) = client.write(&pings[sent % pings.len()..]) {
            sent += len;
        }
        worker.run_turn();
    }
    sent
}

/// While it waited, a broken connection was not read, and its will not published.
#[test]
fn the_output_in_the_layers_of_a_broken_connection_is_discarded() {
    let mut workers = workers_with(|_| ());
    let mut client = upgraded(&mut workers[0]);
    send_pings_until_full(&mut client, &mut workers[0]);
    let key = workers[0].traffic.edge.connections.keys().next().unwrap();
    let worker = &mut workers[0];
    let (connection, outputs) = (
        &mut worker.traffic.edge.connections[key],
        &mut worker.traffic.engine.core.outputs,
    );
    assert!(connection.waiting(&outputs[key]) > 0);
    connection.discard_layers();
    outputs[key].discard();
    assert_eq!(connection.waiting(&outputs[key]), 0);
}

#[test]
fn a_client_that_sends_pings_and_reads_nothing_is_not_read() {
    let mut workers = workers_with(|_| ());
    let mut client = upgraded(&mut workers[0]);
    let sent = send_pings_until_full(&mut client, &mut workers[0]);
    let (key, connection) = workers[0].traffic.edge.connections.iter().next().unwrap();
    let limit = workers[0].traffic.engine.core.settings.output_bytes;
    assert!(connection.reading.has(PauseReason::Output));
    let waiting = connection.waiting(&workers[0].traffic.engine.core.outputs[key]);
    assert!(waiting < 3 * limit, "{waiting}");
    let mut answers = Vec::new();
    for _ in 0..200 {
        let mut buffer = vec![0; 1 << 20];
        while let Ok(len @ 1..) = client.read(&mut buffer) {
            answers.extend_from_slice(&buffer[..len]);
        }
        workers[0].run_turn();
    }
    let start = answers.windows(4).position(|four| four == b"\r\n\r\n");
    let answers = &answers[start.unwrap() + 4..];
    let pong = [&[PONG, 100], &[7; 100][..]].concat();
    let whole = sent / frame(PING, &[7; 100]).len();
    assert_eq!(answers.len(), whole * pong.len());
    assert!(answers.chunks(pong.len()).all(|answer| answer == pong));
}

#[test]
fn handshakes_in_single_bytes_leave_other_connections_their_share() {
    let mut workers = workers_with(|_| ());
    let request = WebSocket::request();
    let mut slow: Vec<_> = (0..40).map(|_| workers[0].accepted()).collect();
    workers[0].run_turn();
    for byte in &request[..20] {
        for slow in &mut slow {
            slow.write_all(&[*byte]).unwrap();
        }
        let before = workers[0].traffic.engine.core.turn.work;
        workers[0].run_turn();
        let work = workers[0].traffic.engine.core.turn.work - before;
        assert!(work < 1000, "{work} units");
    }
}
