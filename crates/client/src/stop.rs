//! Why a client command ends without success: the error, its cause and the remedy in one line, and
//! the exit code.

use std::io::Write as _;
use std::process::ExitCode;

use thrum_codec::ReasonCode;

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const DENIED: u8 = 4;
const UNREACHABLE: u8 = 5;
/// The exit code of the mosquitto commands when their `-W` is over; scripts test for it.
const TIMED_OUT: u8 = 27;
const INTERRUPTED: u8 = 130;

/// The end of a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(super) code: u8,
    pub(super) message: String,
}

impl Stop {
    /// The command did not do what it was asked to.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(FAILED, message)
    }

    /// The arguments make no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(USAGE, message)
    }

    /// Client and broker do not authenticate each other.
    pub(crate) fn denied(message: impl Into<String>) -> Self {
        Self::new(DENIED, message)
    }

    /// No connection, or it was lost.
    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        Self::new(UNREACHABLE, message)
    }

    /// The time that the user gave is over.
    pub(crate) fn timed_out() -> Self {
        Self::new(TIMED_OUT, "timed out")
    }

    /// A signal asked the command to end.
    pub(crate) fn interrupted() -> Self {
        Self::new(INTERRUPTED, "")
    }

    /// The broker refused.
    pub(crate) fn refused(what: &str, reason: ReasonCode, reason_string: Option<&str>) -> Self {
        let fix = match reason {
            ReasonCode::BadUserNameOrPassword => "; check -u and --password-file",
            ReasonCode::NotAuthorized => "; ask the broker's administrator for permission",
            ReasonCode::ClientIdentifierNotValid => "; give another client id with -i",
            ReasonCode::UnsupportedProtocolVersion => "; try another version with -V",
            _ => "",
        };
        let code = match reason {
            ReasonCode::BadUserNameOrPassword
            | ReasonCode::NotAuthorized
            | ReasonCode::BadAuthenticationMethod
            | ReasonCode::Banned => DENIED,
            ReasonCode::ServerUnavailable
            | ReasonCode::ServerBusy
            | ReasonCode::ServerShuttingDown
            | ReasonCode::UseAnotherServer
            | ReasonCode::ServerMoved => UNREACHABLE,
            _ => FAILED,
        };
        let why = reason_string.map_or(String::new(), |why| format!(" ({why})"));
        Self::new(code, format!("{what}: {}{why}{fix}", words(reason)))
    }

    /// The printed line.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    fn new(code: u8, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl From<std::io::Error> for Stop {
    /// Standard output or input failed.
    fn from(error: std::io::Error) -> Self {
        // A reader that has seen enough (`thrum sub … | head`) is not a failure.
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::new(0, "");
        }
        Self::failed(format!("standard input or output: {error}"))
    }
}

/// Prints how a command ended on standard error; `quiet` silences all but wrong usage.
pub(crate) fn finish(outcome: Result<(), Stop>, quiet: bool) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(stop) => {
            if !stop.message.is_empty() && (!quiet || stop.code == USAGE) {
                // Without standard error the text has no receiver.
                writeln!(std::io::stderr(), "error: {}", stop.message).ok();
            }
            ExitCode::from(stop.code)
        }
    }
}

/// A reason code as text: `NotAuthorized` is "not authorized (0x87)".
pub(crate) fn words(reason: ReasonCode) -> String {
    let mut words = String::new();
    let name = format!("{reason:?}").replace("QoS", "Qos");
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    format!("{words} ({:#04x})", reason as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_shows_reason_and_remedy() {
        let reason = ReasonCode::BadUserNameOrPassword;
        let stop = Stop::refused("connection refused by the broker", reason, Some("locked"));
        assert_eq!(stop.code, 4);
        assert_eq!(
            stop.message,
            "connection refused by the broker: bad user name or password (0x86) (locked); \
             check -u and --password-file"
        );
        assert_eq!(Stop::refused("x", ReasonCode::ServerBusy, None).code, 5);
        assert_eq!(
            words(ReasonCode::QoSNotSupported),
            "qos not supported (0x9b)"
        );
    }
}
