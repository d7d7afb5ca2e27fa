//! TLS between clients and the node: the real layers of both ends.
//!
//! Keys and nonces are random, but have no effect on a run: every signature is of Ed25519 and every
//! certificate has a serial number of one byte, so that all messages have the same length in each
//! run. TLS reads the wall clock only to check certificates, which are valid for two thousand
//! years.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ED25519, SerialNumber};
use thrum_transport::{
    Acceptor, ClientCertificate, Connector, Endpoint, Layers, Scheme, ServerTlsOptions, TlsOptions,
    WebSocketOptions,
};

use super::gatekeeper::{has_certificate, user};
use super::history::{CLIENTS_MAX, ClientNumber};

/// The name of the node in its certificate.
const NODE: &str = "localhost";

/// TLS configuration of the clients in one run: a client resumes its own sessions.
#[derive(Default)]
pub(crate) struct Connectors(BTreeMap<ClientNumber, Connector>);

impl std::fmt::Debug for Connectors {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.0.keys()).finish()
    }
}

impl Connectors {
    /// The client's end of a new connection.
    pub(crate) fn layers(
        &mut self,
        client: ClientNumber,
        scheme: Scheme,
        shows_certificate: bool,
    ) -> Layers {
        let connector = self
            .0
            .entry(client)
            .or_insert_with(|| connector(client, scheme, shows_certificate));
        connector.layers().expect("it has layers")
    }
}

/// The source of a listener's TLS.
pub(crate) fn acceptor(scheme: Scheme) -> Acceptor {
    let tls = scheme.is_tls().then(|| ServerTlsOptions {
        client_certificate: ClientCertificate::Optional,
        ca_file: Some(files().join("clients.pem")),
        ..ServerTlsOptions::new(files().join("node.pem"), files().join("node.key"))
    });
    let web_socket = scheme.is_websocket().then(WebSocketOptions::default);
    Acceptor::new(tls.as_ref(), web_socket.as_ref()).expect("the files are good")
}

fn connector(client: ClientNumber, scheme: Scheme, shows_certificate: bool) -> Connector {
    let scheme = if scheme.is_websocket() {
        "wss"
    } else {
        "mqtts"
    };
    let endpoint = Endpoint::parse(&format!("{scheme}://{NODE}:1")).expect("an endpoint");
    let file = |ending| shows_certificate.then(|| files().join(user(client) + ending));
    let options = TlsOptions {
        ca_file: Some(files().join("node.pem")),
        cert_file: file(".pem"),
        key_file: file(".key"),
        ..TlsOptions::default()
    };
    Connector::new(&endpoint, &options).expect("the files are good")
}

/// Certificates and keys, made once for all runs of the process.
fn files() -> &'static Path {
    static FILES: OnceLock<PathBuf> = OnceLock::new();
    FILES.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("thrum-simulation-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        certificate(&folder, "node", &[NODE.to_owned()]);
        let users = (0..CLIENTS_MAX).filter(|client| has_certificate(*client));
        let all: String = users
            .map(|client| certificate(&folder, &user(client), &[]))
            .collect();
        std::fs::write(folder.join("clients.pem"), all).unwrap();
        folder
    })
}

/// A certificate that signs itself, in PEM, and its key beside it.
fn certificate(folder: &Path, name: &str, hosts: &[String]) -> String {
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.serial_number = Some(SerialNumber::from(1));
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let certificate = params.self_signed(&key).unwrap();
    let text = pem("CERTIFICATE", certificate.der());
    std::fs::write(folder.join(format!("{name}.pem")), &text).unwrap();
    let key = pem("PRIVATE KEY", &key.serialize_der());
    std::fs::write(folder.join(format!("{name}.key")), key).unwrap();
    text
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}
