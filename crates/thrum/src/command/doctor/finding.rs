//! What is found: how bad it is, why it matters, and what cures it.

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Ok,
    /// It may be meant so.
    Warn,
    /// It has to be cured.
    Fail,
}

impl Level {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
        }
    }
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) level: Level,
    pub(super) what: String,
    /// Empty if all is well.
    pub(super) why: String,
    /// A command or a setting; empty if all is well.
    pub(super) cure: String,
}

impl Finding {
    pub(super) fn ok(check: &'static str, what: impl Into<String>) -> Self {
        Self {
            check,
            level: Level::Ok,
            what: what.into(),
            why: String::new(),
            cure: String::new(),
        }
    }

    pub(super) fn warn(
        check: &'static str,
        what: impl Into<String>,
        why: &str,
        cure: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Warn,
            why: why.to_owned(),
            cure: cure.into(),
            ..Self::ok(check, what)
        }
    }

    pub(super) fn fail(
        check: &'static str,
        what: impl Into<String>,
        why: &str,
        cure: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Fail,
            ..Self::warn(check, what, why, cure)
        }
    }
}
