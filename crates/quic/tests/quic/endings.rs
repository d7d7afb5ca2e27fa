//! Every way in which a connection ends.

use std::io::Write as _;
use std::net::Shutdown;
use std::time::Duration;

use quinn::VarInt;

use crate::fixture::{Fixture, NAME, failure, read, read_to_end};
use crate::plain::Plain;
use thrum_quic::{DialError, DialOptions, QuicDialer};

#[test]
fn last_words_of_a_client_arrive_before_its_end() {
    let fixture = Fixture::new();
    let (mut client, mut server, dialing) = fixture.pair();
    client.write_all(b"disconnect").unwrap();
    drop(client);
    assert_eq!(read_to_end(&mut server), b"disconnect");
    drop(server);
    fixture.wait_for(|metrics| metrics.connections == 0);
    assert_eq!(dialing.failure(), None);
}

#[test]
fn last_words_of_the_server_arrive_before_its_end() {
    let fixture = Fixture::new();
    let (mut client, mut server, dialing) = fixture.pair();
    let words = vec![7; 1_000_000];
    std::thread::scope(|scope| {
        scope.spawn(move || {
            server.write_all(&words).unwrap();
            drop(server);
        });
        assert_eq!(read_to_end(&mut client).len(), 1_000_000);
    });
    assert_eq!(dialing.failure(), None);
    drop(client);
    fixture.wait_for(|metrics| metrics.connections == 0);
}

#[test]
fn a_client_that_stops_writing_can_still_read() {
    let fixture = Fixture::new();
    let (mut client, mut server, _) = fixture.pair();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut server), b"");
    server.write_all(b"answer").unwrap();
    assert_eq!(read(&mut client, 6), b"answer");
    drop(server);
    assert_eq!(read_to_end(&mut client), b"");
    fixture.wait_for(|metrics| metrics.connections == 0);
}

#[test]
fn bytes_before_a_client_cut_the_connection_are_read_first() {
    let fixture = Fixture::new();
    let plain = Plain::new(&fixture);
    plain.run(async {
        let (connection, mut send, _receive) = plain.open().await;
        send.write_all(b"disconnect").await.unwrap();
        send.finish().unwrap();
        // The server has it; its broker need not have read it.
        send.stopped().await.unwrap();
        connection.close(VarInt::from_u32(0), b"");
    });
    let (mut server, _) = fixture.arrival();
    assert_eq!(read_to_end(&mut server), b"disconnect");
}

#[test]
fn a_reset_stream_ends_the_connection() {
    let fixture = Fixture::new();
    let plain = Plain::new(&fixture);
    plain.run(async {
        let (connection, mut send, _receive) = plain.open().await;
        send.write_all(b"!").await.unwrap();
        send.reset(VarInt::from_u32(9)).unwrap();
        let (mut server, _) = fixture.arrival();
        // The reset may be there before the byte was read.
        read_to_end(&mut server);
        connection.closed().await;
    });
    fixture.wait_for(|metrics| metrics.connections == 0);
}

#[test]
fn a_client_that_stops_reading_for_good_ends_the_connection() {
    let fixture = Fixture::new();
    let plain = Plain::new(&fixture);
    plain.run(async {
        let (connection, mut send, mut receive) = plain.open().await;
        send.write_all(b"!").await.unwrap();
        let (mut server, _) = fixture.arrival();
        assert_eq!(read(&mut server, 1), b"!");
        receive.stop(VarInt::from_u32(9)).unwrap();
        // The error shows once there are bytes to send: the first ones may leave before the reset
        // arrives.
        while server.write_all(&[b'?'; 4096]).is_ok() {}
        connection.closed().await;
    });
}

#[test]
fn last_words_arrive_at_a_client_that_is_still_writing() {
    let fixture = Fixture::new();
    let (client, mut server, dialing) = fixture.pair();
    let mut reader = client.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // Until the broker is gone.
            let mut client = client;
            while client.write_all(&[1; 4096]).is_ok() {}
        });
        read(&mut server, 100_000);
        server.write_all(b"disconnect").unwrap();
        drop(server);
        assert_eq!(read_to_end(&mut reader), b"disconnect");
        reader.shutdown(Shutdown::Both).ok();
    });
    assert_eq!(dialing.failure(), None);
}

#[test]
fn further_streams_are_refused_and_the_first_continues() {
    let fixture = Fixture::new();
    let plain = Plain::new(&fixture);
    plain.run(async {
        let (connection, mut send, mut receive) = plain.open().await;
        send.write_all(b"!").await.unwrap();
        let (mut server, _) = fixture.arrival();
        // More than may be open at a time.
        for _ in 0..20 {
            let (mut send, mut receive) = connection.open_bi().await.unwrap();
            send.write_all(b"subscribe").await.unwrap();
            assert_eq!(
                receive.read(&mut [0]).await.unwrap_err(),
                quinn::ReadError::Reset(1_u32.into())
            );
            assert_eq!(send.stopped().await.unwrap(), Some(1_u32.into()));
        }
        server.write_all(b"news").unwrap();
        let mut news = [0; 4];
        receive.read_exact(&mut news).await.unwrap();
        assert_eq!(&news, b"news");
        assert_eq!(read(&mut server, 1), b"!");
    });
    fixture.wait_for(|metrics| metrics.streams_refused == 20);
}

#[test]
fn a_closing_listener_refuses_new_connections_and_keeps_the_others() {
    let fixture = Fixture::new();
    let (mut client, mut server, dialing) = fixture.pair();
    fixture.listener.close();
    let (mut late, late_dialing) = fixture.dial();
    assert_eq!(failure(&mut late, &late_dialing), Some(DialError::Refused));
    server.write_all(b"news").unwrap();
    assert_eq!(read(&mut client, 4), b"news");

    let Fixture {
        listener,
        dialer: _dialer,
        ..
    } = fixture;
    drop(server);
    assert_eq!(read_to_end(&mut client), b"");
    drop(client);
    assert_eq!(listener.drain(Duration::from_secs(30)), 0);
    assert_eq!(dialing.failure(), None);
}

#[test]
fn connections_open_at_the_deadline_are_ended() {
    let fixture = Fixture::new();
    let (mut client, mut server, dialing) = fixture.pair();
    let Fixture {
        listener,
        dialer: _dialer,
        ..
    } = fixture;
    assert_eq!(listener.drain(Duration::ZERO), 1);
    assert_eq!(read_to_end(&mut server), b"");
    match failure(&mut client, &dialing) {
        Some(DialError::Closed(why)) => assert!(why.contains("listener closed"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_port_is_free_when_a_listener_has_ended() {
    let fixture = Fixture::new();
    let (_client, _server, _) = fixture.pair();
    let address = fixture.address();
    let listener = fixture.listener;
    assert_eq!(listener.drain(Duration::ZERO), 1);
    std::net::UdpSocket::bind(address).unwrap();
}

#[test]
fn of_several_addresses_the_one_that_answers_is_used() {
    let fixture = Fixture::new();
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let addresses = [silent.local_addr().unwrap(), fixture.address()];
    let (mut client, dialing) = fixture.dialer.dial(&addresses, NAME).unwrap();
    client.write_all(b"!").unwrap();
    let (mut server, _) = fixture.arrival();
    assert_eq!(read(&mut server, 1), b"!");
    assert_eq!(dialing.failure(), None);
}

#[test]
fn silence_is_reported_with_what_to_check() {
    let fixture = Fixture::new();
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let options = DialOptions {
        handshake_time: Duration::from_millis(50),
        ..DialOptions::default()
    };
    let dialer = QuicDialer::new(&fixture.authority.client(None), options).unwrap();
    let (mut client, dialing) = dialer.dial(&[silent.local_addr().unwrap()], NAME).unwrap();
    crate::fixture::wait_in(&client);
    let error = failure(&mut client, &dialing).unwrap();
    assert_eq!(error, DialError::NoAnswer(Duration::from_millis(50)));
    assert!(error.to_string().contains("UDP port"), "{error}");
}
