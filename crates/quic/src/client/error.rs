//! Reasons why a connection failed, and their remedies.

use std::io;
use std::time::Duration;

use thrum_settings::LeftOut;

/// Alerts about certificates, RFC 8446 section 6.2.
const REVOKED: u64 = 44;
pub(super) const EXPIRED: u64 = 45;
pub(super) const UNKNOWN_AUTHORITY: u64 = 48;

/// Reason why a connection over QUIC was not made, or has ended. Texts name no address, so that
/// equal causes are equal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// No answer.
    #[error(
        "no answer over QUIC within {} s: check that the server listens for QUIC there, and that the UDP port is open \
         in firewalls", .0.as_secs()
    )]
    NoAnswer(Duration),
    /// No trusted authority has signed the certificate.
    #[error(
        "the server's certificate is not signed by a trusted authority: give the authority's certificate as CA file \
         (--cafile), or check nothing (--insecure)"
    )]
    Untrusted,
    /// Any other error of the certificate.
    #[error("the server's certificate is refused: {0}")]
    Certificate(String),
    /// The server requires client certificates.
    #[error(
        "the server wants a client certificate: give certificate file and key file (--cert, --key)"
    )]
    ClientCertificateMissing,
    /// The server rejects the client's certificate.
    #[error("the server refuses the client certificate (TLS alert {0}): {why}", why = refusal(*.0))]
    ClientCertificateRefused(u64),
    /// Another protocol over QUIC, such as HTTP/3.
    #[error(
        "the server does not speak MQTT over QUIC on this port: it knows no application protocol 'mqtt' (ALPN)"
    )]
    NoMqtt,
    /// The server is full, or shutting down.
    #[error("the server refuses the connection: it is full, or is shutting down")]
    Refused,
    /// The server ended the handshake for another reason.
    #[error("the server ended the QUIC handshake: {0}")]
    Handshake(String),
    /// The server ended the connection.
    #[error("closed by the server: {0}")]
    Closed(String),
    /// The server forgot the connection.
    #[error("reset by the server: it has probably been restarted")]
    Reset,
    /// No packet arrived for minutes.
    #[error("the server went silent")]
    TimedOut,
    /// The server has another version of QUIC.
    #[error("the server does not speak QUIC version 1")]
    Version,
    /// The TLS configuration lacks what QUIC needs.
    #[error("QUIC needs TLS 1.3 with the cipher suite TLS13_AES_128_GCM_SHA256")]
    NoTls13,
    /// The program was built without QUIC.
    #[error("QUIC: {0}")]
    LeftOut(LeftOut),
    /// An error of this machine, not of the server.
    #[error("{0}")]
    Local(String),
}

impl From<io::Error> for DialError {
    fn from(error: io::Error) -> Self {
        Self::Local(error.to_string())
    }
}

/// The meaning of an alert about a client's certificate, and its remedy.
const fn refusal(alert: u64) -> &'static str {
    match alert {
        REVOKED => "it is revoked, use another",
        EXPIRED => "it is out of date by the server's clock, renew it",
        UNKNOWN_AUTHORITY => {
            "no authority that the server trusts has signed it, use one of theirs; its log says more"
        }
        _ => "its log says why",
    }
}
