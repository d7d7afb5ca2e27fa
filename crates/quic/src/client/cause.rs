//! Texts for QUIC's reasons why a connection ended.

use std::time::Duration;

use quinn::{ConnectionError, TransportErrorCode};

use super::DialError;
use super::error::{EXPIRED, UNKNOWN_AUTHORITY};

/// Codes of TLS's alerts in QUIC begin here, RFC 9001 section 4.8.
const ALERTS: u64 = 0x100;

/// Alerts about certificates, RFC 8446 section 6.2.
const CERTIFICATE_ALERTS: std::ops::RangeInclusive<u64> = 42..=51;
/// A wrong signature: an authority of the same name with another key.
const BAD_SIGNATURE: u64 = 51;
const CERTIFICATE_REQUIRED: u64 = 116;
const NO_APPLICATION_PROTOCOL: u64 = 120;

impl DialError {
    /// The reason why a connection failed before its handshake was done.
    pub(super) fn from_handshake(error: &ConnectionError, time: Duration) -> Self {
        match error {
            ConnectionError::TimedOut => Self::NoAnswer(time),
            ConnectionError::ApplicationClosed(close) => Self::Handshake(close.to_string()),
            error => Self::from_end(error).unwrap_or_else(|| Self::Handshake(error.to_string())),
        }
    }

    /// The reason why a connection ended; none if MQTT ended it.
    ///
    /// A server rejects the client's certificate only after the client's side of the handshake is
    /// done.
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

/// The error that this end found.
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
            "{what}: connect by one of these names, or give one as server name (--server-name)"
        )),
        Some(alert) if CERTIFICATE_ALERTS.contains(&alert) => {
            DialError::Certificate(what.to_owned())
        }
        Some(NO_APPLICATION_PROTOCOL) => DialError::NoMqtt,
        _ => DialError::Handshake(reason.to_owned()),
    }
}

/// The error that the server found.
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
