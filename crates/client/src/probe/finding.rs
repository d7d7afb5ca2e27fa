//! What a probe finds.

use thrum_codec::Version;

use crate::Stop;

/// Whether a broker does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Yes,
    No,
    /// It does not let this client: it may do it for others.
    Denied,
    /// Something else went wrong, or no answer came.
    Unknown,
}

impl Outcome {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Denied => "denied",
            Self::Unknown => "unknown",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) name: &'static str,
    pub(super) outcome: Outcome,
    pub(super) detail: String,
}

impl Finding {
    pub(super) fn new(name: &'static str, outcome: Outcome, detail: &str) -> Self {
        Self {
            name,
            outcome,
            detail: detail.to_owned(),
        }
    }

    /// Yes with a detail, or why not.
    pub(super) fn of(name: &'static str, checked: Result<String, Stop>) -> Self {
        match checked {
            Ok(detail) => Self::new(name, Outcome::Yes, &detail),
            Err(stop) => Self::new(name, stop.as_outcome(), stop.message()),
        }
    }
}

/// All that was found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) list: Vec<Finding>,
    /// The newest version that the broker accepts: it is the one of the other findings.
    pub(super) version: Option<Version>,
    /// TLS version and cipher suite.
    pub(super) security: Option<String>,
}

impl Findings {
    pub(super) fn add(&mut self, finding: Finding) {
        self.list.push(finding);
    }
}

/// Exit code of a check whose answer is no.
const UNSUPPORTED: u8 = 100;

impl Stop {
    /// The broker does not do it.
    pub(super) fn unsupported(why: impl Into<String>) -> Self {
        Self {
            code: UNSUPPORTED,
            message: why.into(),
        }
    }

    pub(super) const fn as_outcome(&self) -> Outcome {
        match self.code {
            UNSUPPORTED => Outcome::No,
            4 => Outcome::Denied,
            _ => Outcome::Unknown,
        }
    }
}
