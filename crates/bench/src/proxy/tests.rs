//! A proxy between sockets of this machine. Times are only checked from below.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::*;
use crate::clock;

/// Longest wait for an answer that must come.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that echoes its input until the client has finished, and then closes.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            thread::spawn(move || send_back(stream));
        }
    });
    address
}

fn send_back(mut stream: TcpStream) {
    let mut buffer = [0; 8192];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
    stream.write_all(b"bye").ok();
}

fn start(network: Network) -> Proxy {
    Proxy::start(echo(), network, 1).unwrap()
}

fn connect(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(proxy.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[track_caller]
fn assert_echo(stream: &mut TcpStream, text: &[u8]) {
    stream.write_all(text).unwrap();
    assert_answer(stream, text);
}

#[track_caller]
fn assert_answer(stream: &mut TcpStream, text: &[u8]) {
    let mut answer = vec![0; text.len()];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, text);
}

fn delay(ms: u64) -> Network {
    Network {
        delay: Duration::from_millis(ms),
        ..Network::default()
    }
}

#[test]
fn both_ways_take_the_delay() {
    let proxy = start(delay(30));
    let mut client = connect(&proxy);
    let start_ns = clock::monotonic_ns();
    assert_echo(&mut client, b"hello");
    assert!(clock::monotonic_ns() - start_ns >= 60_000_000);
    assert_echo(&mut client, b"again");
    let stats = proxy.stats();
    assert_eq!((stats.connections, stats.open), (1, 1));
    // The bytes that the client has read may not be counted yet.
    assert_eq!(stats.bytes_to_broker, 10);
    assert!((5..=10).contains(&stats.bytes_to_clients));
}

#[test]
fn much_arrives_unchanged_whatever_the_jitter() {
    let network = Network {
        delay: Duration::from_millis(2),
        jitter: Duration::from_millis(2),
        ..Network::default()
    };
    let proxy = start(network);
    let mut client = connect(&proxy);
    let sent: Vec<u8> = (0..3_000_000_u32)
        .map(|index| index.to_le_bytes()[index as usize % 3])
        .collect();
    let mut sender = client.try_clone().unwrap();
    let bytes = sent.clone();
    let thread = thread::spawn(move || {
        sender.write_all(&bytes).unwrap();
        sender.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    thread.join().unwrap();
    assert_eq!(received.len(), sent.len() + 3);
    assert!(received.starts_with(&sent) && received.ends_with(b"bye"));
}

#[test]
fn bandwidth_limits_each_way() {
    let network = Network {
        bandwidth: Some(100_000),
        ..Network::default()
    };
    let proxy = start(network);
    let mut client = connect(&proxy);
    let start_ns = clock::monotonic_ns();
    assert_echo(&mut client, &vec![9; 25_000]);
    // 250 ms but for the burst of 50 ms.
    assert!(clock::monotonic_ns() - start_ns >= 190_000_000);
}

#[test]
fn a_client_that_has_finished_still_gets_its_answer() {
    let proxy = start(delay(5));
    let mut client = connect(&proxy);
    client.write_all(b"last").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "lastbye");
}

#[test]
fn a_connection_is_cut_with_a_reset() {
    let network = Network {
        cut_after: Some(Duration::from_millis(1)),
        ..Network::default()
    };
    let proxy = start(network);
    let error = connect(&proxy).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(proxy.stats().cut, 1);
    proxy.set_network(Network::default());
    assert_echo(&mut connect(&proxy), b"stays");
}

#[test]
fn a_broker_that_accepts_no_connection_is_a_reset_for_the_client() {
    // Bound, so that no other process listens there.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    socket.bind(&any_port.into()).unwrap();
    let upstream = socket.local_addr().unwrap().as_socket().unwrap();
    let proxy = Proxy::start(upstream, Network::default(), 1).unwrap();
    let error = connect(&proxy).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let stats = proxy.stats();
    assert_eq!((stats.failed, stats.cut), (1, 0));
}

#[test]
fn bytes_sent_before_the_broker_closed_arrive() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::start(listener.local_addr().unwrap(), delay(20), 1).unwrap();
    let mut client = connect(&proxy);
    let (mut broker, _) = listener.accept().unwrap();
    client.write_all(b"unread").unwrap();
    broker.write_all(b"go away").unwrap();
    drop(broker);
    assert_answer(&mut client, b"go away");
}

#[test]
fn many_connections_share_one_thread() {
    let proxy = start(delay(1));
    let mut clients: Vec<TcpStream> = (0..200).map(|_| connect(&proxy)).collect();
    for client in &mut clients {
        client.write_all(b"hello").unwrap();
    }
    for client in &mut clients {
        assert_answer(client, b"hello");
    }
    assert_eq!(proxy.stats().open, 200);
}

#[test]
fn a_dropped_proxy_is_gone() {
    let proxy = start(Network::default());
    let mut client = connect(&proxy);
    assert_echo(&mut client, b"hello");
    drop(proxy);
    match client.read(&mut [0]) {
        Ok(length) => assert_eq!(length, 0),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}
