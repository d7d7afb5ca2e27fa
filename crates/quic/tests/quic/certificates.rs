//! Trust in both directions, and new certificates while connections are open.

use std::io::Write as _;

use crate::fixture::{Authority, Fixture, NAME, failure, read};
use thrum_quic::{DialError, DialOptions, Limits, QuicDialer};

/// The error of a client that connects with this configuration.
fn refusal(fixture: &Fixture, client: &rustls::ClientConfig, name: &str) -> DialError {
    let dialer = QuicDialer::new(client, DialOptions::default()).unwrap();
    let (mut socket, dialing) = dialer.dial(&[fixture.address()], name).unwrap();
    crate::fixture::wait_in(&socket);
    // It may be refused before that.
    socket.write_all(b"!").ok();
    failure(&mut socket, &dialing).unwrap()
}

#[test]
fn a_server_with_an_untrusted_certificate_is_refused() {
    let fixture = Fixture::new();
    let other = Authority::new().client(None);
    assert_eq!(refusal(&fixture, &other, NAME), DialError::Untrusted);
    fixture.wait_for(|metrics| metrics.handshakes_failed == 1 && metrics.connections == 0);
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let fixture = Fixture::new();
    let client = fixture.authority.client(None);
    match refusal(&fixture, &client, "other.test") {
        DialError::Certificate(why) => assert!(why.contains("other.test"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_of_another_protocol_is_distinguished() {
    let fixture = Fixture::new();
    let mut client = fixture.authority.client(None);
    client.alpn_protocols = vec![b"h3".to_vec()];
    assert_eq!(refusal(&fixture, &client, NAME), DialError::NoMqtt);
}

#[test]
fn a_client_certificate_is_wanted_checked_and_passed_on() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let server = authority.sign().server(Some(&clients));
    let identity = clients.sign();
    let client = authority.client(Some(&identity));
    let fixture = Fixture::of(
        authority,
        &server,
        &client,
        Limits::default(),
        DialOptions::default(),
    );
    let (mut socket, _) = fixture.dial();
    socket.write_all(b"!").unwrap();
    let (_server, peer) = fixture.arrival();
    assert_eq!(peer.certificates, [identity.certificate]);

    let without = fixture.authority.client(None);
    assert_eq!(
        refusal(&fixture, &without, NAME),
        DialError::ClientCertificateMissing
    );
    let stranger = Authority::new().sign();
    let stranger = fixture.authority.client(Some(&stranger));
    let refused = refusal(&fixture, &stranger, NAME);
    assert!(
        matches!(refused, DialError::ClientCertificateRefused(_)),
        "{refused:?}"
    );
}

#[test]
fn new_certificates_are_for_new_connections_and_end_none() {
    let mut fixture = Fixture::new();
    let (mut old_client, mut old_server, dialing) = fixture.pair();
    let next = Authority::new();
    fixture.listener.set_tls(&next.sign().server(None)).unwrap();

    let before = fixture.authority.client(None);
    assert_eq!(refusal(&fixture, &before, NAME), DialError::Untrusted);
    let dialer = QuicDialer::new(&next.client(None), DialOptions::default()).unwrap();
    // The previous one stays, because its connection does.
    let _before = std::mem::replace(&mut fixture.dialer, dialer);
    let (mut client, mut server, _) = fixture.pair();
    server.write_all(b"new").unwrap();
    assert_eq!(read(&mut client, 3), b"new");
    old_server.write_all(b"old").unwrap();
    assert_eq!(read(&mut old_client, 3), b"old");
    assert_eq!(dialing.failure(), None);
}

#[test]
fn tls_without_version_1_3_is_refused_at_the_start_and_at_a_change() {
    let fixture = Fixture::new();
    let identity = fixture.authority.sign();
    let only_1_2 = identity.server_of(&[&rustls::version::TLS12], None);
    let refused = fixture.listener.set_tls(&only_1_2).unwrap_err().to_string();
    assert!(refused.contains("1.3"), "{refused}");
    // The previous certificates are still in use.
    fixture.pair();
}
