//! The error that the user gets instead of figures, and its exit code.

use std::fmt;

/// Something that is not the user's fault failed.
pub(super) const FAILED: u8 = 1;

/// Wrong usage, or a machine that does not give what that asks for.
pub(super) const USAGE: u8 = 2;

/// Ended by ^C.
pub(super) const INTERRUPTED: u8 = 130;

/// A broker that cannot be reached.
pub(super) const UNREACHABLE: u8 = 5;

/// The figures are shown, but cannot be stored.
pub(super) const NOT_STORED: u8 = 6;

/// The generator was the limit.
pub(super) const INVALID: u8 = 7;

/// A bundle that was changed, or whose parts contradict each other.
pub(super) const NOT_INTACT: u8 = 8;

/// A limit that the run was to keep was missed.
pub(super) const THRESHOLDS: u8 = 99;

/// A message and an exit code.
#[derive(Debug)]
pub(super) struct Complaint {
    message: String,
    code: u8,
}

impl Complaint {
    pub(super) fn new(message: impl fmt::Display, code: u8) -> Self {
        Self {
            message: message.to_string(),
            code,
        }
    }

    /// Wrong usage.
    pub(super) fn usage(message: impl fmt::Display) -> Self {
        Self::new(message, USAGE)
    }

    /// The error of figures that were shown and cannot be stored; wrong usage, such as a template
    /// that cannot be read, stays what it is.
    pub(super) fn not_stored(error: anyhow::Error) -> Result<Self, anyhow::Error> {
        if error.is::<Self>() {
            return Err(error);
        }
        // Some errors contain the text of their cause.
        let (what, cause) = (error.to_string(), error.root_cause().to_string());
        let cause = if what.ends_with(&cause) {
            String::new()
        } else {
            format!(": {cause}")
        };
        let message = format!(
            "the run has ended, but its result is not stored: {what}{cause}; free some space, or name another folder with --out"
        );
        Ok(Self::new(message, NOT_STORED))
    }

    /// [`not_stored`](Self::not_stored), to be returned at once.
    pub(super) fn or_not_stored(error: anyhow::Error) -> anyhow::Error {
        Self::not_stored(error).map_or_else(|error| error, Into::into)
    }

    pub(super) const fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Complaint {}
