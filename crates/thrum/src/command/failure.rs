//! Failures with an exit code of their own.

use std::fmt;

/// A failure that the user can fix: the error, its cause and the remedy, in one line.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// Exit code of wrong usage and of a wrong configuration.
    pub(crate) const USAGE: u8 = 2;
    /// Exit code of something that is not there.
    pub(crate) const NOT_FOUND: u8 = 3;
    /// Exit code of a lack of rights.
    #[cfg(feature = "management")]
    pub(crate) const DENIED: u8 = 4;
    /// Exit code of a broker that cannot be reached, or does not answer in time.
    #[cfg(feature = "management")]
    pub(crate) const UNREACHABLE: u8 = 5;
    /// Exit code of a change that something else prevents.
    pub(crate) const CONFLICT: u8 = 6;

    /// The exit code of the program.
    pub(crate) const fn code(&self) -> u8 {
        self.code
    }

    /// A failure with this exit code.
    pub(crate) fn with_code(code: u8, message: impl fmt::Display) -> anyhow::Error {
        anyhow::Error::new(Self {
            message: message.to_string(),
            code,
        })
    }

    /// Wrong usage, a wrong configuration, or a machine that does not give what that asks for.
    ///
    /// An error with causes: use [`Failure::caused`].
    pub(crate) fn usage(message: impl fmt::Display) -> anyhow::Error {
        Self::with_code(Self::USAGE, message)
    }

    /// The same for an error whose causes add information to its own text.
    pub(crate) fn caused(error: &dyn std::error::Error) -> anyhow::Error {
        Self::usage(with_causes(error))
    }
}

/// An error and the additional texts of its causes.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(reason) = cause {
        let text = reason.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        cause = reason.source();
    }
    message
}

/// Several failures, each on a line of its own behind `error:`.
#[derive(Debug)]
pub(crate) struct Lines(pub(crate) Vec<String>);

impl fmt::Display for Lines {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join("\nerror: "))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
