//! Limits of a listener.

use std::io::Write as _;
use std::time::Duration;

use crate::fixture::{Fixture, failure, read};
use crate::plain::Plain;
use thrum_quic::{DialError, DialOptions, Limits};

#[test]
fn connections_beyond_the_limit_are_refused_until_one_ends() {
    let limits = Limits {
        connections_max: 2,
        ..Limits::default()
    };
    let fixture = Fixture::with(limits, DialOptions::default());
    let (first, first_server, _) = fixture.pair();
    let _second = fixture.pair();
    let (mut third, dialing) = fixture.dial();
    assert_eq!(failure(&mut third, &dialing), Some(DialError::Refused));
    drop((first, first_server));
    fixture.wait_for(|metrics| metrics.connections == 1 && metrics.refused == 1);
    fixture.pair();
}

#[test]
fn other_limits_hold_for_the_connections_from_then_on() {
    let fixture = Fixture::new();
    let (mut client, mut server, _) = fixture.pair();
    let limits = Limits {
        connections_max: 1,
        ..Limits::default()
    };
    fixture.listener.set_limits(limits);
    let (mut late, dialing) = fixture.dial();
    assert_eq!(failure(&mut late, &dialing), Some(DialError::Refused));
    assert_eq!(fixture.refused(), 1);
    server.write_all(b"news").unwrap();
    assert_eq!(read(&mut client, 4), b"news");
    fixture.listener.set_limits(Limits::default());
    fixture.pair();
}

#[test]
fn under_load_a_client_proves_its_address_first() {
    let limits = Limits {
        handshakes_unproven_max: 0,
        ..Limits::default()
    };
    let fixture = Fixture::with(limits, DialOptions::default());
    fixture.pair();
    assert_eq!(fixture.listener.metrics().retried, 1);
}

#[test]
fn handshakes_beyond_the_limit_are_tried_again_by_their_clients() {
    let limits = Limits {
        handshakes_max: 1,
        ..Limits::default()
    };
    let fixture = Fixture::with(limits, DialOptions::default());
    let plain = Plain::new(&fixture);
    plain.run(async {
        // Without a stream it is still in its handshake.
        let connection = plain.connect().await;
        let (mut client, _) = fixture.dial();
        client.write_all(b"!").unwrap();
        fixture.wait_for(|metrics| metrics.ignored > 0);
        drop(connection);
        fixture.arrival();
    });
}

#[test]
fn a_client_that_never_opens_a_stream_is_ended() {
    let limits = Limits {
        handshake_time: Duration::from_millis(100),
        ..Limits::default()
    };
    let fixture = Fixture::with(limits, DialOptions::default());
    let plain = Plain::new(&fixture);
    plain.run(async {
        plain.connect().await.closed().await;
    });
    fixture.wait_for(|metrics| metrics.handshakes_late == 1 && metrics.connections == 0);
}

#[test]
fn early_data_is_off_even_if_the_configuration_allows_it() {
    let authority = crate::fixture::Authority::new();
    let mut server = authority.sign().server(None);
    server.max_early_data_size = u32::MAX;
    let client = authority.client(None);
    let fixture = Fixture::of(
        authority,
        &server,
        &client,
        Limits::default(),
        DialOptions::default(),
    );
    let plain = Plain::with_early_data(&fixture);
    plain.run(async {
        let (connection, mut send, mut receive) = plain.open().await;
        send.write_all(b"!").await.unwrap();
        fixture.arrival();
        // The ticket has arrived by the time that the server has ended the stream.
        receive.read(&mut [0]).await.ok();
        drop(connection);
        assert!(plain.connecting().into_0rtt().is_err());
    });
}
