//! The flags by which a server is trusted over TLS and a client is trusted by it: the same for the
//! client commands and the benchmark.

use std::path::PathBuf;

use clap::Args;
use thrum_transport::{TlsOptions, TlsVersion};

/// Trust over TLS.
#[derive(Clone, Debug, Default, Args)]
pub struct TlsArgs {
    /// Certificates in PEM of the authorities that may have signed the server's
    /// [default: those of the system]
    #[arg(long, value_name = "FILE")]
    cafile: Option<PathBuf>,

    /// Accept any certificate: encrypted, but the server is not verified
    #[arg(long, conflicts_with = "cafile")]
    insecure: bool,

    /// Client's certificate in PEM; needs --key
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// Key of the client's certificate in PEM, not encrypted; needs --cert
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Name that the server's certificate must contain, and that the server is asked for [default:
    /// the host]
    #[arg(long, value_name = "NAME")]
    server_name: Option<String>,

    /// Application protocol to offer (ALPN) [default: none; over QUIC mqtt]
    #[arg(long, value_name = "PROTOCOL", visible_alias = "tls-alpn")]
    alpn: Option<String>,

    /// Oldest version of TLS: 1.2 or 1.3, also written tlsv1.2 and tlsv1.3 [default: 1.2]
    #[arg(long, value_name = "VERSION", value_parser = parse_version)]
    tls_version: Option<TlsVersion>,
}

impl TlsArgs {
    /// The requested options; the default if none was given.
    pub fn options(&self) -> TlsOptions {
        TlsOptions {
            ca_file: self.cafile.clone(),
            insecure: self.insecure,
            cert_file: self.cert.clone(),
            key_file: self.key.clone(),
            server_name: self.server_name.clone(),
            alpn: self.alpn.clone(),
            min_version: self.tls_version.unwrap_or_default(),
        }
    }

    /// Any was given.
    pub fn is_any(&self) -> bool {
        self.tls_version.is_some() || self.options() != TlsOptions::default()
    }
}

fn parse_version(text: &str) -> Result<TlsVersion, String> {
    match text.strip_prefix("tlsv").unwrap_or(text) {
        "1.2" => Ok(TlsVersion::V1_2),
        "1.3" => Ok(TlsVersion::V1_3),
        _ => Err("must be 1.2 or 1.3; older versions are broken and not spoken".to_owned()),
    }
}
