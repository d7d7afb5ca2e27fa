//! The TLS layer: its options, the configuration made from them, and one session of either end.

mod chain;
mod client_verifier;
mod config;
mod incoming;
mod insecure;
mod notes;
mod pem;
mod resumption;
mod server_config;
mod server_names;
mod server_session;
mod session;
mod side;

use std::path::{Path, PathBuf};

use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};

use crate::certificate::{self, Validity};

pub(crate) use config::client_config;
pub(crate) use pem::FileError;
pub(crate) use server_config::ServerTls;
pub(crate) use server_session::ServerSession;
pub(crate) use session::Session;
pub(crate) use side::Side;

/// Trust in the server, and the client's own certificate; the default trusts the authorities of the
/// system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Certificates in PEM that sign the server's, in place of those of the system.
    pub ca_file: Option<PathBuf>,
    /// Accept any certificate: the connection is encrypted, but the server is not verified.
    pub insecure: bool,
    /// The client's certificate and those that sign it, in PEM; needs `key_file`.
    pub cert_file: Option<PathBuf>,
    /// The key of the client's certificate, in PEM; needs `cert_file`.
    pub key_file: Option<PathBuf>,
    /// Name to request and to check the certificate by, in place of the endpoint's host.
    pub server_name: Option<String>,
    /// Protocol to offer, such as `mqtt`.
    pub alpn: Option<String>,
    /// The oldest accepted version.
    pub min_version: TlsVersion,
}

/// TLS options of a listener.
///
/// No protocol is negotiated by ALPN, so that clients that offer any or none are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTlsOptions {
    /// The certificate for clients that request no name, or an unknown one.
    pub files: KeyPairFiles,
    /// Certificates in PEM that may stand between those of the listener and their authorities: they
    /// complete the files of these.
    pub chain_file: Option<PathBuf>,
    /// Further certificates, chosen by the DNS names in each; the first of several that suit the
    /// client's algorithms. A star stands for one label.
    pub sni: Vec<KeyPairFiles>,
    /// Whether clients present certificates.
    pub client_certificate: ClientCertificate,
    /// Certificates in PEM that sign those of clients; required if they are requested.
    pub ca_file: Option<PathBuf>,
    /// Revocation lists, PEM or DER. As soon as there is one, each authority in the chain of a
    /// client needs one that is not out of date.
    pub crl_files: Vec<PathBuf>,
    /// The oldest accepted version.
    pub min_version: TlsVersion,
    /// Sessions are resumed by tickets that clients keep, under keys that change every six hours;
    /// otherwise the listener stores the last 4096 sessions itself.
    pub session_tickets: bool,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPairFiles {
    /// The certificate and those that sign it, in PEM and in this order.
    pub cert_file: PathBuf,
    /// The key of the first of them, in PEM and not encrypted.
    pub key_file: PathBuf,
}

/// Whether clients present certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificate {
    /// They are not requested.
    #[default]
    None,
    /// Optional; an invalid one is still refused.
    Optional,
    /// Required.
    Required,
}

/// A version of TLS; older ones are not supported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersion {
    /// With ephemeral elliptic curves and authenticated encryption only.
    #[default]
    V1_2,
    /// The current one.
    V1_3,
}

impl TlsVersion {
    /// This version and those above it: both come with authenticated encryption and ephemeral keys
    /// alone.
    pub(crate) fn and_newer(self) -> &'static [&'static SupportedProtocolVersion] {
        static FROM_1_2: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
        static FROM_1_3: [&SupportedProtocolVersion; 1] = [&TLS13];
        match self {
            Self::V1_2 => &FROM_1_2,
            Self::V1_3 => &FROM_1_3,
        }
    }
}

/// The outcome of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSummary {
    /// Such as `TLSv1.3`.
    pub version: &'static str,
    /// Such as `TLS13_AES_256_GCM_SHA384`.
    pub cipher_suite: &'static str,
    /// Such as `X25519`; none where a session was resumed without a new exchange.
    pub key_exchange: Option<String>,
    /// An earlier session was resumed, so no certificate was checked.
    pub resumed: bool,
    /// The name that a client has requested of a server; none on the client's side, which knows it.
    pub server_name: Option<Box<str>>,
}

impl ServerTlsOptions {
    /// The options of a listener with this certificate and nothing else: no client certificates,
    /// TLS 1.2 and newer, tickets.
    pub const fn new(cert_file: PathBuf, key_file: PathBuf) -> Self {
        Self {
            files: KeyPairFiles {
                cert_file,
                key_file,
            },
            sni: Vec::new(),
            client_certificate: ClientCertificate::None,
            chain_file: None,
            ca_file: None,
            crl_files: Vec::new(),
            min_version: TlsVersion::V1_2,
            session_tickets: true,
        }
    }
}

/// When the first certificate of a PEM file is valid: that of the server, in the file of one.
///
/// # Errors
/// The file cannot be read, or begins with no certificate: why, as text.
pub fn validity_of_file(path: &Path) -> Result<Validity, String> {
    let found = pem::certificates(path).map_err(|error| error.cause)?;
    let first = found.first().and_then(certificate::validity);
    first.ok_or_else(|| "its certificate cannot be read".to_owned())
}
