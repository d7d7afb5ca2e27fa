//! Trust: verification of server and client, and the error texts.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ServerConfig, ServerConnection};
use thrum_transport::{Connector, Endpoint, LayerError, TlsOptions, TlsVersion};

use crate::authority::{Authority, Identity, write};
use crate::pair::{Pair, layers, trusting};
use crate::server::Server;

/// A connection to a server at `localhost`.
fn open(config: ServerConfig, options: &TlsOptions) -> (Result<(), LayerError>, Pair) {
    let client = layers("mqtts://localhost", options);
    let mut pair = Pair::new(client, Server::default().with_tls(config), usize::MAX);
    let result = pair.open();
    pair.flush();
    (result, pair)
}

#[track_caller]
fn refused(config: ServerConfig, options: &TlsOptions, expected: &str) -> Pair {
    let (result, pair) = open(config, options);
    let message = result.unwrap_err().to_string();
    assert!(message.contains(expected), "{message}");
    assert!(!pair.client.is_open());
    pair
}

#[track_caller]
fn accepted(config: ServerConfig, options: &TlsOptions) -> Pair {
    let (result, pair) = open(config, options);
    result.unwrap();
    assert!(pair.client.is_open());
    pair
}

fn identity(authority: &Authority, options: &mut TlsOptions) -> Identity {
    let identity = authority.sign("a client");
    options.cert_file = Some(identity.cert_file());
    options.key_file = Some(identity.key_file());
    identity
}

#[test]
fn an_untrusted_server_is_refused_with_an_alert() {
    let authority = Authority::new();
    // Another authority may have the same name.
    for (name, alert) in [
        ("a stranger", "UnknownCA"),
        ("an authority", "DecryptError"),
    ] {
        let server = Authority::named(name).sign("localhost").server(None);
        let pair = refused(
            server,
            &trusting(&authority),
            "give the authority's certificate",
        );
        let told = pair.server.failure.unwrap().to_string();
        assert_eq!(told, format!("received fatal alert: {alert}"));
    }
}

#[test]
fn an_untrusted_server_is_accepted_if_nothing_is_checked() {
    let insecure = TlsOptions {
        insecure: true,
        ..TlsOptions::default()
    };
    let stranger = Authority::new();
    accepted(stranger.sign("elsewhere").server(None), &insecure);
}

#[test]
fn the_name_must_be_one_of_the_certificate() {
    let authority = Authority::new();
    let server = || authority.sign("broker.example").server(None);
    let mut options = trusting(&authority);
    refused(
        server(),
        &options,
        "is not for 'localhost' but for broker.example: connect by",
    );
    options.server_name = Some("broker.example".to_owned());
    accepted(server(), &options);
}

#[test]
fn an_address_is_a_name_too() {
    let authority = Authority::new();
    for (endpoint, name) in [("mqtts://127.0.0.1", "127.0.0.1"), ("mqtts://[::1]", "::1")] {
        let server = Server::default().with_tls(authority.sign(name).server(None));
        let mut pair = Pair::new(layers(endpoint, &trusting(&authority)), server, 100);
        pair.open().unwrap();
        assert!(pair.client.is_open());
    }
}

#[test]
fn a_certificate_out_of_date_is_refused() {
    let authority = Authority::new();
    let old = authority.sign_with("localhost", |params| {
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    });
    refused(
        old.server(None),
        &trusting(&authority),
        "set the clock of this machine",
    );
}

/// A certificate of version 1 for `localhost` in DER and base64, made with openssl; its key is
/// gone.
const VERSION_ONE: &str = "\
    MIIBJDCBywIUce3PhZ5qizFtFLk7oX7mw0KmDHUwCgYIKoZIzj0EAwIwFDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2\
    MTEyMTIyMzE1NloYDzIxMjYxMDI4MjIzMTU2WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO\
    PQMBBwNCAASu7Tjf5/vGp5wLiDrZyBoD6B+hMoyvtgsVtEOCnq2m7iVK251H37IfPI40dK0ethcFk4MjRqPswwMc/bFV\
    ucuiMAoGCCqGSM49BAMCA0gAMEUCIGD/T7WvegBgx+yQz9RysvvdBO+O4rrTiS18zylfDRucAiEA+Cp6XYyupIOFjLtJ\
    8rcztR9sY5/gVPZ3wJe/8U1UVcY=";

#[test]
fn a_certificate_without_names_is_explained_or_not_looked_at() {
    let authority = Authority::new();
    let identity = authority.sign("localhost");
    let shown = CertificateDer::from(STANDARD.decode(VERSION_ONE).unwrap());
    let server = || {
        let key = PrivateKeyDer::try_from(identity.key.serialize_der()).unwrap();
        let key = default_provider()
            .key_provider
            .load_private_key(key)
            .unwrap();
        let resolver = SingleCertAndKey::from(CertifiedKey::new(vec![shown.clone()], key));
        let mut config = identity.server(None);
        config.cert_resolver = Arc::new(resolver);
        config
    };
    refused(server(), &trusting(&authority), "is of X.509 version 1");
    let insecure = TlsOptions {
        insecure: true,
        ..TlsOptions::default()
    };
    accepted(server(), &insecure);
}

#[test]
fn a_client_certificate_of_version_1_is_left_to_the_server() {
    let authority = Authority::new();
    let mut options = trusting(&authority);
    identity(&authority, &mut options);
    let text = format!("-----BEGIN CERTIFICATE-----\n{VERSION_ONE}\n-----END CERTIFICATE-----\n");
    options.cert_file = Some(write(&text));
    let server = authority.sign("localhost").server(Some(&authority));
    refused(
        server,
        &options,
        "the server refuses the client certificate",
    );
}

#[test]
fn an_authority_is_no_server() {
    let authority = Authority::new();
    let sub = authority.sign_with("localhost", |params| {
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    });
    refused(
        sub.server(None),
        &trusting(&authority),
        "that of an authority, not one of a server",
    );
}

#[test]
fn a_client_shows_its_certificate_when_asked() {
    let authority = Authority::new();
    let mut options = trusting(&authority);
    let shown = identity(&authority, &mut options);
    let server = authority.sign("localhost").server(Some(&authority));
    let pair = accepted(server, &options);
    assert_eq!(
        pair.server.tls.unwrap().peer_certificates(),
        Some([shown.certificate].as_slice())
    );
}

#[test]
fn a_client_without_certificate_learns_that_it_needs_one() {
    let authority = Authority::new();
    let server = authority.sign("localhost").server(Some(&authority));
    refused(
        server,
        &trusting(&authority),
        "give certificate file and key file",
    );
}

#[test]
fn a_client_that_the_server_does_not_trust_learns_the_alert() {
    let (authority, stranger) = (Authority::new(), Authority::named("a stranger"));
    let mut options = trusting(&authority);
    identity(&stranger, &mut options);
    let server = authority.sign("localhost").server(Some(&authority));
    let words =
        "refuses the client certificate (alert UnknownCA): no authority that the server trusts";
    refused(server, &options, words);
}

#[test]
fn a_server_without_tls_is_named_so() {
    for answer in [
        b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(),
        &[0x20, 0x02, 0x00, 0x01, 0x00],
    ] {
        let mut client = layers("mqtts://localhost", &trusting(&Authority::new()));
        client.start(&mut Vec::new()).unwrap();
        let (mut plain, mut alert) = (Vec::new(), Vec::new());
        let result = client.receive(&mut answer.to_vec(), &mut plain, &mut alert);
        assert_eq!(result, Err(LayerError::NotTls));
        assert_eq!(alert, [0x15, 3, 3, 0, 2, 2, 50]);
        let again = client.receive(&mut answer.to_vec(), &mut plain, &mut alert);
        assert_eq!(again, Err(LayerError::NotOpen));
    }
}

#[test]
fn version_and_cipher_suite_are_reported() {
    let authority = Authority::new();
    let identity = authority.sign("localhost");
    let summary = accepted(identity.server(None), &trusting(&authority))
        .client
        .tls()
        .unwrap();
    assert_eq!(summary.version, "TLSv1.3");
    assert!(
        summary.cipher_suite.starts_with("TLS13_AES_"),
        "{summary:?}"
    );
    assert!(summary.key_exchange.is_some());
    assert!(!summary.resumed);
}

/// A server that supports nothing newer.
fn server_of_1_2(authority: &Authority) -> ServerConfig {
    let identity = authority.sign("localhost");
    let key = PrivateKeyDer::try_from(identity.key.serialize_der()).unwrap();
    ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate.clone()], key)
        .unwrap()
}

#[test]
fn tls_1_2_is_refused_if_it_is_too_old() {
    let authority = Authority::new();
    let options = TlsOptions {
        min_version: TlsVersion::V1_3,
        ..trusting(&authority)
    };
    let words = "no TLS version or cipher suite in common";
    refused(server_of_1_2(&authority), &options, words);
    let server = authority.sign("localhost").server(None);
    let summary = accepted(server, &options).client.tls().unwrap();
    assert_eq!(summary.version, "TLSv1.3");
}

#[test]
fn a_server_that_knows_no_such_application_protocol_is_named_so() {
    let authority = Authority::new();
    let mut options = trusting(&authority);
    options.alpn = Some("mqtt".to_owned());
    let mut server = authority.sign("localhost").server(None);
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    refused(server, &options, "knows no such application protocol");
}

#[test]
fn tls_1_2_is_supported() {
    let authority = Authority::new();
    let mut pair = accepted(server_of_1_2(&authority), &trusting(&authority));
    assert_eq!(pair.client.tls().unwrap().version, "TLSv1.2");
    pair.client_sends(b"to").unwrap();
    pair.server_sends(b"fro").unwrap();
    assert_eq!(
        (pair.server.received, pair.received),
        (b"to".to_vec(), b"fro".to_vec())
    );
}

#[test]
fn a_second_connection_resumes_the_session_of_the_first() {
    let authority = Authority::new();
    let config = Arc::new(authority.sign("localhost").server(None));
    let endpoint = Endpoint::parse("mqtts://localhost").unwrap();
    let connector = Connector::new(&endpoint, &trusting(&authority)).unwrap();
    let connect = || {
        let server = Server {
            tls: Some(ServerConnection::new(Arc::clone(&config)).unwrap()),
            ..Server::default()
        };
        let mut pair = Pair::new(connector.layers().unwrap(), server, usize::MAX);
        pair.open().unwrap();
        pair.client.tls().unwrap().resumed
    };
    assert_eq!([connect(), connect()], [false, true]);
}

#[test]
fn the_protocol_of_the_options_is_offered() {
    let authority = Authority::new();
    let mut options = trusting(&authority);
    options.alpn = Some("mqtt".to_owned());
    let mut server = authority.sign("localhost").server(None);
    server.alpn_protocols = vec![b"http/1.1".to_vec(), b"mqtt".to_vec()];
    let pair = accepted(server, &options);
    let tls = pair.server.tls.unwrap();
    assert_eq!(tls.alpn_protocol(), Some(b"mqtt".as_slice()));
}

#[test]
fn bytes_after_the_close_alert_of_the_server_are_ignored() {
    let authority = Authority::new();
    let mut pair = accepted(
        authority.sign("localhost").server(None),
        &trusting(&authority),
    );
    assert!(!pair.client.is_closed_by_peer());
    pair.server.tls.as_mut().unwrap().send_close_notify();
    pair.server_sends(b"").unwrap();
    assert!(pair.client.is_closed_by_peer());
    for _ in 0..3 {
        pair.deliver(&vec![0xFF; 50_000]).unwrap();
    }
    assert_eq!(pair.received, b"");
    // The other direction is open until the client closes it.
    pair.client_sends(b"bye").unwrap();
    assert_eq!(pair.server.received, b"bye");
}

/// A message of the server is half received when the client writes.
#[test]
fn sending_does_not_disturb_a_message_that_is_half_received() {
    let authority = Authority::new();
    let mut config = authority.sign("localhost").server(None);
    // The session tickets after the handshake take several records each.
    config.max_fragment_size = Some(64);
    let mut server = Server::default().with_tls(config);
    let mut client = layers("mqtts://localhost", &trusting(&authority));
    let (mut to_server, mut plain) = (Vec::new(), Vec::new());
    client.start(&mut to_server).unwrap();
    let mut hello = server.receive(&std::mem::take(&mut to_server));
    client
        .receive(&mut hello, &mut plain, &mut to_server)
        .unwrap();
    let mut tickets = server.receive(&std::mem::take(&mut to_server));
    assert!(tickets.len() > 200);
    for byte in tickets.chunks_mut(1) {
        client.receive(byte, &mut plain, &mut to_server).unwrap();
        client.send(b"x", &mut to_server).unwrap();
    }
    server.receive(&to_server);
    assert!(server.received == vec![b'x'; tickets.len()]);
    assert_eq!(plain, b"");
}
