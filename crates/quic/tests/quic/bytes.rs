//! Bytes in both directions, large and held back.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use crate::fixture::{Fixture, NAME, PATIENCE, read, wait_for};
use thrum_quic::{DialOptions, Limits, Peer};

/// Bytes that differ from their neighbours, so that a lost, doubled or moved one is seen.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|at| u8::try_from(at * 31 % 251).unwrap())
        .collect()
}

#[test]
fn small_packets_go_both_ways() {
    let fixture = Fixture::new();
    let (mut client, dialing) = fixture.dial();
    client.write_all(b"connect").unwrap();
    let (mut server, peer) = fixture.arrival();
    assert_eq!(read(&mut server, 7), b"connect");
    server.write_all(b"connack").unwrap();
    assert_eq!(read(&mut client, 7), b"connack");
    assert_eq!(dialing.failure(), None);
    assert_eq!(peer.address.ip(), IpAddr::from(Ipv4Addr::LOCALHOST));
    assert_eq!(peer.local, fixture.address());
    assert_eq!(peer.server_name.as_deref(), Some(NAME));
    assert!(peer.certificates.is_empty());
}

#[test]
fn big_payloads_go_both_ways_at_the_same_time() {
    const BYTES: usize = 8 * 1024 * 1024;
    let fixture = Fixture::new();
    let (client, server, _) = fixture.pair();
    let sent = pattern(BYTES);
    let send = |mut socket: &UnixStream| socket.write_all(&sent).unwrap();
    let check = |mut socket: &UnixStream| {
        let mut received = vec![0; BYTES];
        socket.read_exact(&mut received).unwrap();
        assert!(received == sent);
    };
    thread::scope(|scope| {
        scope.spawn(|| send(&client));
        scope.spawn(|| send(&server));
        scope.spawn(|| check(&client));
        scope.spawn(|| check(&server));
    });
}

/// Writes until no more is accepted for a while; returns how much was accepted.
fn fill(socket: &mut UnixStream) -> usize {
    let chunk = pattern(251 * 16);
    let mut written = 0;
    socket
        .set_write_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    loop {
        let at = written % chunk.len();
        match socket.write(&chunk[at..]) {
            Ok(more) => written += more,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                return written;
            }
        }
    }
}

#[test]
fn a_reader_that_does_not_read_stops_the_writer_at_the_limits() {
    let limits = Limits {
        window_bytes: 64 * 1024,
        pipe_bytes: 32 * 1024,
        ..Limits::default()
    };
    let options = DialOptions {
        window_bytes: limits.window_bytes,
        pipe_bytes: limits.pipe_bytes,
        ..DialOptions::default()
    };
    let fixture = Fixture::with(limits, options);
    let (client, server, _) = fixture.pair();
    for (mut writer, mut reader) in [(&client, &server), (&server, &client)]
        .map(|(writer, reader)| (writer.try_clone().unwrap(), reader.try_clone().unwrap()))
    {
        let written = fill(&mut writer);
        // Two windows, two sockets of twice that size as the kernel counts, and the bytes that a
        // bridge holds at each end.
        assert!(written < 600_000, "{written}");
        let expected: Vec<u8> = pattern(251 * 16)
            .into_iter()
            .cycle()
            .take(written)
            .collect();
        assert!(read(&mut reader, written) == expected);
    }
}

#[test]
fn one_that_does_not_read_does_not_hold_up_another() {
    let fixture = Fixture::new();
    let (_deaf, mut to_deaf, _) = fixture.pair();
    let (mut client, mut server, _) = fixture.pair();
    fill(&mut to_deaf);
    server.write_all(b"news").unwrap();
    assert_eq!(read(&mut client, 4), b"news");
}

#[test]
fn a_client_uses_the_source_addresses_it_is_given() {
    let sources: Vec<IpAddr> = vec![[127, 0, 0, 3].into(), [127, 0, 0, 4].into()];
    let options = DialOptions {
        sources: sources.clone(),
        ..DialOptions::default()
    };
    let fixture = Fixture::with(Limits::default(), options);
    let mut seen = Vec::new();
    for _ in 0..4 {
        let (mut client, _) = fixture.dial();
        client.write_all(b"!").unwrap();
        seen.push(fixture.arrival().1.address.ip());
    }
    assert_eq!(seen, [sources.clone(), sources].concat());
}

#[test]
fn ipv6_works_where_the_machine_has_it() {
    let Ok(_) = std::net::UdpSocket::bind("[::1]:0") else {
        return;
    };
    let fixture = Fixture::new();
    let server = fixture.authority.sign().server(None);
    let (sender, arrivals) = std::sync::mpsc::sync_channel(1);
    let addresses = ["[::1]:0".parse().unwrap(), "127.0.0.1:0".parse().unwrap()];
    let listener = thrum_quic::QuicListener::bind(
        &addresses,
        &server,
        Limits::default(),
        move |socket: UnixStream, peer: Peer| {
            sender.try_send((socket, peer)).ok();
        },
    );
    let listener = listener.unwrap();
    for address in listener.addresses() {
        let (mut client, _) = fixture.dialer.dial(&[*address], NAME).unwrap();
        client.write_all(b"!").unwrap();
        let (_server, peer) = arrivals.recv_timeout(PATIENCE).unwrap();
        assert_eq!((peer.local, peer.address.ip()), (*address, address.ip()));
    }
    wait_for(
        || listener.metrics().accepted == 2,
        || format!("{:?}", listener.metrics()),
    );
}
