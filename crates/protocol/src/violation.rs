//! A violation of the protocol by a peer, with the reason code to report.

use thrum_codec::{DecodeError, ReasonCode};

/// Reason why a connection must end; the caller sends the reason code (5.0) and closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} (reason {:#04x})", *.reason as u8)]
pub struct Violation {
    /// Reason code for DISCONNECT.
    pub reason: ReasonCode,
    /// Description for the log and the reason string.
    pub what: &'static str,
}

impl Violation {
    /// Creates a violation.
    pub const fn new(reason: ReasonCode, what: &'static str) -> Self {
        Self { reason, what }
    }
}

impl From<DecodeError> for Violation {
    fn from(error: DecodeError) -> Self {
        let what = match error {
            DecodeError::Malformed(what) | DecodeError::Protocol(what) => what,
            DecodeError::TooLarge => "packet over the maximum packet size",
            DecodeError::UnsupportedVersion => "unsupported protocol version",
        };
        Self {
            reason: error.reason(),
            what,
        }
    }
}
