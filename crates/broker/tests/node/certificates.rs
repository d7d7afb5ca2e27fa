//! Certificates that are replaced on the disk while the broker runs.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use thrum_broker::config::{TlsConfig, Transport};
use thrum_broker::{Broker, Config, StartError};

use crate::peer::start;
use crate::protection::the_listener;

/// Of a client that leaves its identifier to the broker.
const CONNECT: &[u8] = b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00";
const CONNACK: &[u8] = b"\x20\x02\x00\x00";

/// Files of a certificate and its key, removed at the end of the test.
struct Files(PathBuf);

/// A certificate that signs itself, and its key, both in PEM.
struct Identity {
    certificate: CertificateDer<'static>,
    cert: String,
    key: String,
}

impl Identity {
    fn new() -> Self {
        let params = CertificateParams::new(["localhost".to_owned()]).expect("a host name");
        let key = KeyPair::generate().expect("random numbers");
        let certificate = params.self_signed(&key).expect("a certificate");
        Self {
            cert: pem("CERTIFICATE", certificate.der()),
            key: pem("PRIVATE KEY", key.serialized_der()),
            certificate: certificate.der().clone(),
        }
    }
}

impl Files {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("thrum-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the test");
        Self(folder)
    }

    fn cert(&self) -> PathBuf {
        self.0.join("cert.pem")
    }

    fn key(&self) -> PathBuf {
        self.0.join("key.pem")
    }

    /// As programs renew them: beside it, and then in its place.
    fn replace(path: &Path, text: &str) {
        let beside = path.with_extension("new");
        fs::write(&beside, text).expect("room on the disk");
        fs::rename(&beside, path).expect("the same folder");
    }

    fn hold(&self, identity: &Identity) {
        Self::replace(&self.cert(), &identity.cert);
        Self::replace(&self.key(), &identity.key);
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

fn start_tls(files: &Files, change: impl FnOnce(&mut Config)) -> (Broker, SocketAddr) {
    start(2, |config| {
        the_listener(config).tls = TlsConfig {
            cert: files.cert(),
            key: files.key(),
            ..TlsConfig::default()
        };
        change(config);
    })
}

/// Connects a client if the broker presents that certificate.
fn connect(
    address: SocketAddr,
    expected: &Identity,
) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots
        .add(expected.certificate.clone())
        .expect("a certificate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of the library's own")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a host name");
    let client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut stream = StreamOwned::new(client, socket);
    stream.write_all(CONNECT)?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer)?;
    assert_eq!(answer, CONNACK);
    Ok(stream)
}

#[test]
fn a_renewed_certificate_is_shown_to_the_next_clients() {
    let (old, new) = (Identity::new(), Identity::new());
    let files = Files::new("renewed");
    files.hold(&old);
    let (mut broker, address) = start_tls(&files, |_| {});
    let mut before = connect(address, &old).expect("the certificate of the start");
    broker.look_at_certificates();
    connect(address, &old).expect("nothing has changed");
    files.hold(&new);
    connect(address, &old).expect("the files are not read again yet");
    broker.look_at_certificates();
    connect(address, &new).expect("the renewed certificate");
    assert!(connect(address, &old).is_err());
    // An existing connection stays.
    before.write_all(b"\xc0\x00").expect("an open connection");
    let mut answer = [0; 2];
    before.read_exact(&mut answer).expect("PINGRESP");
    assert_eq!(answer, *b"\xd0\x00");
    broker.stop();
}

#[test]
fn files_that_cannot_be_used_leave_the_listener_what_it_has() {
    let (old, new) = (Identity::new(), Identity::new());
    let files = Files::new("unusable");
    files.hold(&old);
    let (mut broker, address) = start_tls(&files, |_| {});
    // The certificate is there before its key, as happens while a program renews them.
    Files::replace(&files.cert(), &new.cert);
    broker.look_at_certificates();
    connect(address, &old).expect("certificate and key do not belong together");
    fs::remove_file(files.key()).expect("the key");
    broker.look_at_certificates();
    connect(address, &old).expect("there is no key");
    Files::replace(&files.key(), &new.key);
    broker.look_at_certificates();
    connect(address, &new).expect("both are there");
    broker.stop();
}

#[test]
fn a_reload_reads_certificates_too_and_a_bad_one_is_refused_with_its_file() {
    let (old, new) = (Identity::new(), Identity::new());
    let files = Files::new("reload");
    files.hold(&old);
    let mut kept = Config::default();
    let (mut broker, address) = start_tls(&files, |config| kept = config.clone());
    files.hold(&new);
    broker.reload(&kept).expect("certificate and key fit");
    connect(address, &new).expect("the renewed certificate");
    Files::replace(&files.cert(), "no certificate");
    let refused = broker.reload(&kept).expect_err("it holds no certificate");
    assert!(matches!(refused, StartError::Listener { .. }));
    assert!(refused.to_string().contains("cert.pem"), "{refused}");
    connect(address, &new).expect("it stays in force");
    broker.stop();
}

#[test]
fn certificates_of_quic_are_read_again_without_a_fault() {
    let (old, new) = (Identity::new(), Identity::new());
    let files = Files::new("quic");
    files.hold(&old);
    let (mut broker, _) = start_tls(&files, |config| {
        let mut quic = the_listener(config).clone();
        quic.transport = Transport::Quic;
        config.listeners.insert("quic".to_owned(), quic);
    });
    files.hold(&new);
    broker.look_at_certificates();
    broker.stop();
}

#[test]
fn the_operator_reads_certificates_again_and_stops_a_listener_whatever_its_files_are_like() {
    let files = Files::new("operator");
    files.hold(&Identity::new());
    let (mut broker, _) = start_tls(&files, |_| {});
    let serial = |broker: &Broker| {
        let listeners = broker.queries().listeners();
        let certificate = listeners[0].certificates[0].clone();
        assert_eq!(certificate.identity.names, ["localhost"]);
        assert_eq!(certificate.identity.subject, certificate.identity.issuer);
        certificate.identity.serial
    };
    let first = serial(&broker);
    files.hold(&Identity::new());
    assert_eq!(serial(&broker), first, "nobody has looked yet");
    assert!(broker.renew_certificates().is_empty());
    let second = serial(&broker);
    assert_ne!(second, first);
    fs::write(files.cert(), "no certificate").expect("room on the disk");
    let failures = broker.renew_certificates();
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].to_string().contains("cert.pem"), "{failures:?}");
    assert_eq!(serial(&broker), second, "it keeps what it has");
    let name = broker.queries().listeners()[0].name.clone();
    let closed = broker.stop_listener(&name).expect("it is configured");
    let answered = closed.wait(Duration::from_secs(20));
    answered.expect("all workers answer");
    assert!(broker.addresses().is_empty());
    broker
        .start_listener(&name)
        .expect_err("its files cannot be used");
    assert!(broker.queries().listeners()[0].is_stopped);
    files.hold(&Identity::new());
    assert!(
        broker
            .start_listener(&name)
            .expect("its files can be used again")
    );
    assert_eq!(broker.addresses().len(), 1);
    broker.stop();
}
