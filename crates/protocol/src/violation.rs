//! What a peer did wrong, with the reason code to tell it.

use thrum_codec::{DecodeError, ReasonCode};

/// Why a connection must end; the caller sends the reason (5.0) and closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} (reason {:#04x})", *.reason as u8)]
pub struct Violation {
    /// Reason code for DISCONNECT.
    pub reason: ReasonCode,
    /// In words, for the log and the reason string.
    pub what: &'static str,
}

impl Violation {
    /// A violation with its reason.
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
