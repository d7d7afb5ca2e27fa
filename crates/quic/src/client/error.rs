//! Why a connection failed, and what a person can do about it.

use std::io;
use std::time::Duration;

use quinn::{ConnectionError, TransportErrorCode};

/// Codes of TLS's alerts in QUIC begin here, RFC 9001 section 4.8.
const ALERTS: u64 = 0x100;

/// Alerts about certificates, RFC 8446 section 6.2.
const CERTIFICATE_ALERTS: std::ops::RangeInclusive<u64> = 42..=51;
const REVOKED: u64 = 44;
const EXPIRED: u64 = 45;
const UNKNOWN_AUTHORITY: u64 = 48;
/// A wrong signature: an authority of the same name, but another key.
const BAD_SIGNATURE: u64 = 51;
const CERTIFICATE_REQUIRED: u64 = 116;
const NO_APPLICATION_PROTOCOL: u64 = 120;

/// Why a connection over QUIC was not made, or has ended. Texts name no address, so that equal
/// causes are equal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// Nothing came back.
    #[error(
        "no answer over QUIC within {} s: check that the server listens for QUIC there, and that the UDP port is open \
         in firewalls", .0.as_secs()
    )]
    NoAnswer(Duration),
    /// Nobody vouches for the certificate.
    #[error(
        "the server's certificate is not signed by a trusted authority: give the authority's certificate as CA file \
         (--cafile), or check nothing (--insecure)"
    )]
    Untrusted,
    /// Any other fault of the certificate.
    #[error("the server's certificate is refused: {0}")]
    Certificate(String),
    /// The server knows clients by certificates.
    #[error(
        "the server wants a client certificate: give certificate file and key file (--cert, --key)"
    )]
    ClientCertificateMissing,
    /// The server does not take the one it got.
    #[error("the server refuses the client certificate (TLS alert {0}): {why}", why = refusal(*.0))]
    ClientCertificateRefused(u64),
    /// Another protocol over QUIC, such as HTTP/3.
    #[error(
        "the server does not speak MQTT over QUIC on this port: it knows no application protocol 'mqtt' (ALPN)"
    )]
    NoMqtt,
    /// The server is full, or shutting down.
    #[error("the server refuses the connection: it has as many as it takes, or is shutting down")]
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
    /// Nothing was heard for minutes.
    #[error("the server went silent")]
    TimedOut,
    /// The server has another version of QUIC.
    #[error("the server does not speak QUIC version 1")]
    Version,
    /// The TLS configuration lacks what QUIC needs.
    #[error("QUIC needs TLS 1.3 with the cipher suite TLS13_AES_128_GCM_SHA256")]
    NoTls13,
    /// This machine, not the server.
    #[error("{0}")]
    Local(String),
}

impl From<io::Error> for DialError {
    fn from(error: io::Error) -> Self {
        Self::Local(error.to_string())
    }
}

impl DialError {
    /// What a connection failed of before it was one.
    pub(super) fn from_handshake(error: &ConnectionError, time: Duration) -> Self {
        match error {
            ConnectionError::TimedOut => Self::NoAnswer(time),
            ConnectionError::ApplicationClosed(close) => Self::Handshake(close.to_string()),
            error => Self::from_end(error).unwrap_or_else(|| Self::Handshake(error.to_string())),
        }
    }

    /// What a connection has ended with; none if that is how MQTT ends.
    ///
    /// A server's word about the client's certificate comes only after the client's end of the
    /// handshake.
    pub(super) fn from_end(error: &ConnectionError) -> Option<Self> {
        Some(match error {
            ConnectionError::LocallyClosed => return None,
            ConnectionError::ApplicationClosed(close) if close.error_code.into_inner() == 0 => {
                return None;
            }
            ConnectionError::ApplicationClosed(close) => Self::Closed(close.to_string()),
            ConnectionError::TransportError(error) => by_us(error.code.into(), &error.reason),
            ConnectionError::ConnectionClosed(close) => {
                by_server(close.error_code, &close.to_string())
            }
            ConnectionError::VersionMismatch => Self::Version,
            ConnectionError::Reset => Self::Reset,
            ConnectionError::TimedOut => Self::TimedOut,
            ConnectionError::CidsExhausted => Self::Local(error.to_string()),
        })
    }
}

/// What an alert about a client's certificate means, and what to do.
const fn refusal(alert: u64) -> &'static str {
    match alert {
        REVOKED => "it is revoked, use another",
        EXPIRED => "it is out of date by the server's clock, renew it",
        UNKNOWN_AUTHORITY => {
            "no authority that the server trusts vouches for it, use one of theirs; its log says more"
        }
        _ => "its log says why",
    }
}

/// What this end found wrong.
fn by_us(code: u64, reason: &str) -> DialError {
    let what = reason
        .strip_prefix("invalid peer certificate: ")
        .unwrap_or(reason);
    match code.checked_sub(ALERTS) {
        Some(UNKNOWN_AUTHORITY | BAD_SIGNATURE) => DialError::Untrusted,
        Some(EXPIRED) => DialError::Certificate(format!(
            "{what}: renew it, or set the clock of this machine"
        )),
        Some(_) if what.contains("not valid for name") => DialError::Certificate(format!(
            "{what}: connect by such a name, or give it as server name (--server-name)"
        )),
        Some(alert) if CERTIFICATE_ALERTS.contains(&alert) => {
            DialError::Certificate(what.to_owned())
        }
        Some(NO_APPLICATION_PROTOCOL) => DialError::NoMqtt,
        _ => DialError::Handshake(reason.to_owned()),
    }
}

/// What the server found wrong.
fn by_server(code: TransportErrorCode, text: &str) -> DialError {
    if code == TransportErrorCode::CONNECTION_REFUSED {
        return DialError::Refused;
    }
    match u64::from(code).checked_sub(ALERTS) {
        Some(CERTIFICATE_REQUIRED) => DialError::ClientCertificateMissing,
        Some(NO_APPLICATION_PROTOCOL) => DialError::NoMqtt,
        Some(alert) if CERTIFICATE_ALERTS.contains(&alert) => {
            DialError::ClientCertificateRefused(alert)
        }
        _ => DialError::Handshake(text.to_owned()),
    }
}
