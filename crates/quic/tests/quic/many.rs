//! A thousand connections over one UDP socket at each end.

use std::io::Write as _;

use thrum_quic::{DialOptions, Limits};

use crate::fixture::{Fixture, read};

const CLIENTS: u32 = 1_000;

#[test]
fn a_thousand_clients_are_served_at_the_same_time() {
    serves_all(&Fixture::new());
}

#[test]
fn a_thousand_clients_that_have_to_prove_their_addresses_are_served_at_the_same_time() {
    let limits = Limits {
        handshakes_unproven_max: 0,
        ..Limits::default()
    };
    let fixture = Fixture::with(limits, DialOptions::default());
    serves_all(&fixture);
    assert!(fixture.listener.metrics().retried >= u64::from(CLIENTS));
}

fn serves_all(fixture: &Fixture) {
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (mut client, _) = fixture.dial();
            client.write_all(&number.to_be_bytes()).unwrap();
            client
        })
        .collect();
    let mut servers: Vec<_> = clients
        .iter()
        .map(|_| {
            let (mut server, _) = fixture.arrival();
            let number = read(&mut server, 4);
            (server, number)
        })
        .collect();
    for (server, number) in &mut servers {
        server.write_all(number).unwrap();
    }
    for (number, mut client) in (0..CLIENTS).zip(clients) {
        assert_eq!(read(&mut client, 4), number.to_be_bytes());
    }
    drop(servers);
    fixture.wait_for(|metrics| metrics.connections == 0 && metrics.accepted == u64::from(CLIENTS));
}
