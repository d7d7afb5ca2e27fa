//! The inputs of a listener: its files, its names, its versions.

use std::path::PathBuf;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use thrum_transport::{
    Acceptor, ClientCertificate, KeyPairFiles, ServerTlsOptions, TlsVersion, WebSocketOptions,
};

use crate::authority::{Authority, Identity, pem, write};
use crate::duplex::{acceptor, serving};
use crate::raw_client::RawClient;

fn files(identity: &Identity) -> KeyPairFiles {
    KeyPairFiles {
        cert_file: identity.cert_file(),
        key_file: identity.key_file(),
    }
}

#[track_caller]
fn refused(options: &ServerTlsOptions, expected: &[&str]) {
    let message = Acceptor::new(Some(options), None).unwrap_err().to_string();
    for words in expected {
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn plain_tcp_has_no_layers() {
    assert!(Acceptor::new(None, None).unwrap().layers().is_none());
}

#[test]
fn the_certificate_is_chosen_by_the_name() {
    let authority = Authority::new();
    let default = authority.sign("localhost");
    let (one, star) = (
        authority.sign("one.example"),
        authority.sign("*.many.example"),
    );
    let options = ServerTlsOptions {
        sni: vec![files(&one), files(&star)],
        ..serving(&default)
    };
    let acceptor = acceptor(&options);
    assert_eq!(acceptor.warnings(), [""; 0]);
    for is_1_3 in [false, true] {
        for (name, expected) in [
            ("localhost", &default),
            ("one.example", &one),
            ("a.many.example", &star),
            ("ONE.example", &one),
        ] {
            let client = RawClient::new(&authority, is_1_3, None);
            let mut connection = client.connect(&acceptor, name);
            connection.exchange();
            let shown = connection.tls.peer_certificates().unwrap();
            assert!(shown == [expected.certificate.clone()], "{name}");
            let told = connection.server.tls().unwrap().server_name.unwrap();
            assert_eq!(&*told, name.to_lowercase());
        }
        // These names are unknown, and the client sees that the default certificate has not got
        // them either.
        for name in ["two.example", "a.b.many.example", "many.example"] {
            let client = RawClient::new(&authority, is_1_3, None);
            let fault = client.connect(&acceptor, name).fault.unwrap().to_string();
            assert!(fault.contains("alert BadCertificate"), "{fault}");
        }
        // An address is not a name.
        let client = RawClient::new(&authority, is_1_3, None);
        let connection = client.connect(&acceptor, "127.0.0.1");
        assert_eq!(
            connection
                .fault
                .unwrap()
                .to_string()
                .matches("alert")
                .count(),
            1
        );
    }
}

#[test]
fn versions_below_the_least_are_refused() {
    let authority = Authority::new();
    let mut options = serving(&authority.sign("localhost"));
    let (old, new) = (
        RawClient::new(&authority, false, None),
        RawClient::new(&authority, true, None),
    );
    let both = acceptor(&options);
    let tls = old.connect(&both, "localhost").server.tls().unwrap();
    assert_eq!(tls.version, "TLSv1.2");
    // Ephemeral keys and authenticated encryption: neither RSA key exchange nor CBC is supported.
    assert!(tls.cipher_suite.starts_with("TLS_ECDHE_"), "{tls:?}");
    assert!(!tls.cipher_suite.contains("CBC"), "{tls:?}");
    assert_eq!(
        new.connect(&both, "localhost")
            .server
            .tls()
            .unwrap()
            .version,
        "TLSv1.3"
    );
    options.min_version = TlsVersion::V1_3;
    let strict = acceptor(&options);
    let fault = old.connect(&strict, "localhost").fault.unwrap().to_string();
    assert!(
        fault.contains("no TLS version or cipher suite in common"),
        "{fault}"
    );
    assert!(new.connect(&strict, "localhost").server.is_open());
}

#[test]
fn a_client_may_ask_for_new_keys() {
    let authority = Authority::new();
    let acceptor = acceptor(&serving(&authority.sign("localhost")));
    let mut connection = RawClient::new(&authority, true, None).connect(&acceptor, "localhost");
    for _ in 0..3 {
        // The answer, under the old keys, goes before the next output.
        connection.tls.refresh_traffic_keys().unwrap();
        connection.exchange();
        connection.exchange();
    }
}

#[test]
fn files_are_refused_with_name_and_fix() {
    let authority = Authority::new();
    let (one, other) = (authority.sign("one"), authority.sign("other"));
    let with = |cert_file: PathBuf, key_file: PathBuf| ServerTlsOptions::new(cert_file, key_file);
    let missing = with("no-such-cert".into(), one.key_file());
    refused(&missing, &["cannot use 'no-such-cert': No such file"]);
    let no_pem = with(write("hello"), one.key_file());
    refused(&no_pem, &["holds no '-----BEGIN CERTIFICATE-----'"]);
    let no_key = with(one.cert_file(), one.cert_file());
    refused(&no_key, &["holds no private key"]);
    let wrong_key = with(one.cert_file(), other.key_file());
    refused(
        &wrong_key,
        &["with the key", "the key of another certificate"],
    );
    let encrypted = write(&pem("ENCRYPTED PRIVATE KEY", b"secret"));
    refused(
        &with(one.cert_file(), encrypted),
        &["is encrypted", "openssl pkey"],
    );
    let old = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n";
    refused(&with(one.cert_file(), write(old)), &["is encrypted"]);
    let mut sni = serving(&one);
    sni.sni = vec![KeyPairFiles {
        cert_file: other.cert_file(),
        key_file: "no-such-key".into(),
    }];
    refused(&sni, &["cannot use 'no-such-key'"]);
}

#[test]
fn authorities_and_lists_are_refused_with_name_and_fix() {
    let authority = Authority::new();
    let mut options = serving(&authority.sign("localhost"));
    options.client_certificate = ClientCertificate::Required;
    refused(&options, &["no ca is given"]);
    options.ca_file = Some(write(""));
    refused(&options, &["holds no '-----BEGIN CERTIFICATE-----'"]);
    options.ca_file = Some(authority.file());
    options.crl_files = vec![authority.file()];
    refused(&options, &["holds no '-----BEGIN X509 CRL-----'"]);
    options.crl_files = vec![write(&pem("X509 CRL", &[0x30, 0]))];
    refused(
        &options,
        &["cannot use '", "a revocation list that cannot be read"],
    );
}

#[test]
fn revocation_lists_may_be_der() {
    let authority = Authority::new();
    let mut options = serving(&authority.sign("localhost"));
    options.client_certificate = ClientCertificate::Optional;
    options.ca_file = Some(authority.file());
    let text = std::fs::read(authority.revocation_list(&[1], 2999)).unwrap();
    let list = rustls::pki_types::CertificateRevocationListDer::from_pem_slice(&text).unwrap();
    let path = write("");
    std::fs::write(&path, list).unwrap();
    options.crl_files = vec![path];
    assert_eq!(acceptor(&options).warnings(), [""; 0]);
}

#[test]
fn certificates_that_clients_will_refuse_are_warnings() {
    let authority = Authority::new();
    let old = authority.sign_with("localhost", |params| {
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    });
    let nameless = authority.sign_with("x", |params| params.subject_alt_names.clear());
    let options = ServerTlsOptions {
        sni: vec![files(&nameless)],
        ca_file: Some(authority.file()),
        ..serving(&old)
    };
    let acceptor = acceptor(&options);
    let warnings = acceptor.warnings();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    let expired = "it has expired on 2002-01-01 00:00 UTC; renew it";
    assert!(warnings[0].contains(expired), "{warnings:?}");
    assert!(warnings[1].contains("is never chosen"), "{warnings:?}");
    assert!(
        warnings[2].contains("ca and crl mean nothing"),
        "{warnings:?}"
    );
}

#[test]
fn a_chain_in_the_certificate_file_is_sent() {
    let root = Authority::new();
    let server = root.sign("localhost");
    let chain = [
        std::fs::read_to_string(server.cert_file()).unwrap(),
        std::fs::read_to_string(root.file()).unwrap(),
    ];
    let options = ServerTlsOptions::new(write(&chain.concat()), server.key_file());
    let client = RawClient::new(&root, true, None);
    let connection = client.connect(&acceptor(&options), "localhost");
    let shown: &[CertificateDer<'_>] = connection.tls.peer_certificates().unwrap();
    assert_eq!(shown.len(), 2);
}

#[test]
fn paths_and_origins_are_looked_through() {
    let message =
        |options: &WebSocketOptions| Acceptor::new(None, Some(options)).unwrap_err().to_string();
    for path in ["", "mqtt", "/a b", "/a?b", "/a#b", "/ä"] {
        let path = path.to_owned();
        let options = WebSocketOptions {
            path,
            ..WebSocketOptions::default()
        };
        assert!(message(&options).contains("is not a WebSocket path"));
    }
    for origin in ["app.example.org", "null", "https://app/x"] {
        let origins = vec![origin.to_owned()];
        let options = WebSocketOptions {
            origins,
            ..WebSocketOptions::default()
        };
        assert!(message(&options).contains("is not an origin: write it as browsers do"));
    }
}
