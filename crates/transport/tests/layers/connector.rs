//! Options that cannot be used are refused before anything is connected.

use std::path::PathBuf;

use thrum_transport::{Connector, Endpoint, TlsOptions};

use crate::authority::{Authority, write};

fn connector(endpoint: &str, options: &TlsOptions) -> Result<Connector, String> {
    let endpoint = Endpoint::parse(endpoint).unwrap();
    Connector::new(&endpoint, options).map_err(|error| error.to_string())
}

#[track_caller]
fn refused(endpoint: &str, options: &TlsOptions, expected: &str) {
    let message = connector(endpoint, options).err().unwrap();
    assert!(message.contains(expected), "{message}");
}

#[test]
fn plain_tcp_has_no_layers() {
    let connector = connector("mqtt://localhost", &TlsOptions::default()).unwrap();
    assert!(connector.layers().is_none());
}

#[test]
fn quic_has_its_trust_and_server_name_and_no_layers() {
    let options = TlsOptions {
        insecure: true,
        server_name: Some("broker".to_owned()),
        ..TlsOptions::default()
    };
    let over_quic = connector("quic://10.0.0.1", &options).unwrap();
    assert!(over_quic.layers().is_none());
    let (_, name) = over_quic.quic().unwrap();
    assert_eq!(name.to_str(), "broker");
    let over_tcp = connector("mqtts://10.0.0.1", &options).unwrap();
    assert!(over_tcp.quic().is_none() && over_tcp.layers().is_some());
}

#[test]
fn tls_options_without_tls_are_refused() {
    let options = TlsOptions {
        insecure: true,
        ..TlsOptions::default()
    };
    refused(
        "mqtt://user:secret@host",
        &options,
        "mqtt://host:1883 has no TLS",
    );
    refused("ws://host", &options, "use mqtts://, wss:// or quic://");
}

#[test]
fn files_that_hold_nothing_useful_are_refused() {
    let with_ca = |path: PathBuf| TlsOptions {
        ca_file: Some(path),
        ..TlsOptions::default()
    };
    refused(
        "wss://host",
        &with_ca("no-such-file".into()),
        "cannot use 'no-such-file': No such file",
    );
    refused(
        "wss://host",
        &with_ca(write("hello")),
        "holds no '-----BEGIN CERTIFICATE-----'",
    );
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    refused(
        "wss://host",
        &with_ca(write(broken)),
        "invalid peer certificate",
    );
}

#[test]
fn certificate_and_key_come_together_and_fit() {
    let authority = Authority::new();
    let (one, other) = (authority.sign("one"), authority.sign("other"));
    let mut options = TlsOptions {
        insecure: true,
        cert_file: Some(one.cert_file()),
        ..TlsOptions::default()
    };
    refused("mqtts://host", &options, "the key file is missing");
    options.key_file = Some(one.cert_file());
    refused("mqtts://host", &options, "holds no private key");
    options.key_file = Some(other.key_file());
    refused(
        "mqtts://host",
        &options,
        "it is the key of another certificate",
    );
    options.key_file = Some(one.key_file());
    assert!(connector("mqtts://host", &options).is_ok());
    options.cert_file = None;
    refused("mqtts://host", &options, "the certificate file is missing");
}

#[test]
fn a_host_that_is_no_name_in_tls_is_refused() {
    let options = TlsOptions {
        insecure: true,
        ..TlsOptions::default()
    };
    refused(
        "mqtts://a_b..c",
        &options,
        "'a_b..c' cannot be the name of a TLS server",
    );
}
