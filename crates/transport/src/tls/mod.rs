//! The TLS layer: its options, what they are made into once, and one session.

mod config;
mod insecure;
mod session;

use std::path::PathBuf;

pub(crate) use config::client_config;
pub(crate) use session::Session;

/// How to trust the server and to be trusted by it; the default trusts what the system trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// Certificates in PEM that sign the server's, in place of those of the system.
    pub ca_file: Option<PathBuf>,
    /// Take any certificate: the connection is encrypted, but anybody may be at its other end.
    pub insecure: bool,
    /// The client's certificate and those that sign it, in PEM; needs `key_file`.
    pub cert_file: Option<PathBuf>,
    /// The key of the client's certificate, in PEM; needs `cert_file`.
    pub key_file: Option<PathBuf>,
    /// Name to ask for and to check the certificate by, in place of the endpoint's host.
    pub server_name: Option<String>,
    /// Protocol to offer, such as `mqtt`.
    pub alpn: Option<String>,
}

/// What a handshake has agreed on.
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
}
