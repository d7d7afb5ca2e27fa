//! What the audit log keeps of a change.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::mask::{masked, short};
use crate::login::Caller;

/// A change that a caller asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    action: &'static str,
    target: String,
    before: Option<Value>,
    after: Option<Value>,
}

impl Change {
    /// What is done to what: `client.kick`, and a client identifier.
    pub(crate) fn new(action: &'static str, target: &str) -> Self {
        Self {
            action,
            target: short(target),
            before: None,
            after: None,
        }
    }

    /// The state before; secrets are masked.
    pub(crate) fn before(mut self, value: Value) -> Self {
        self.before = Some(masked(value));
        self
    }

    /// The state after, or what the caller asks for; secrets are masked.
    pub(crate) fn after(mut self, value: Value) -> Self {
        self.after = Some(masked(value));
        self
    }
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// It is under way, or nobody knows how it ended: the broker ended within it.
    Unknown,
    /// It was made.
    Done,
    /// It was not made.
    Failed,
    /// The caller may not.
    Refused,
}

/// An end with its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    outcome: Outcome,
    detail: Option<String>,
    /// The states before and after it, in place of those that were expected.
    before: Option<Value>,
    after: Option<Value>,
}

impl Ended {
    /// The change was made.
    pub(crate) const fn done() -> Self {
        Self {
            outcome: Outcome::Done,
            detail: None,
            before: None,
            after: None,
        }
    }

    /// With the states before and after it; secrets are masked.
    pub(crate) fn states(mut self, before: Value, after: Value) -> Self {
        self.before = Some(masked(before));
        self.after = Some(masked(after));
        self
    }

    /// It was not made, and why.
    pub(crate) fn failed(why: &str) -> Self {
        Self {
            outcome: Outcome::Failed,
            detail: Some(short(why)),
            before: None,
            after: None,
        }
    }

    /// The caller may not, and why.
    pub(crate) fn refused(why: &str) -> Self {
        Self {
            outcome: Outcome::Refused,
            detail: Some(short(why)),
            before: None,
            after: None,
        }
    }
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Its number; later ones are higher.
    #[serde(rename = "n")]
    pub(crate) number: u64,
    /// Milliseconds of the Unix epoch.
    pub(crate) at: u64,
    /// Who asked.
    pub(crate) who: String,
    /// How the caller proved that.
    pub(crate) means: String,
    /// Address of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    /// What was done.
    pub(crate) action: String,
    /// To what.
    pub(crate) target: String,
    /// The state before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<Value>,
    /// The state after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<Value>,
    /// How it ended.
    pub(crate) outcome: Outcome,
    /// Why it was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
}

/// A line that says how an earlier one ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct End {
    /// Number of the earlier line.
    pub(super) of: u64,
    pub(super) outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<String>,
    /// The states before and after it, if they were known only then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) before: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<Value>,
}

/// A line as it is read.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Line {
    Entry(Box<Entry>),
    End(End),
}

impl Entry {
    /// That of a caller. The number is the log's matter.
    pub(super) fn new(caller: &Caller, change: Change, at: u64) -> Self {
        Self {
            number: 0,
            at,
            who: caller.name.to_string(),
            means: caller.means.name().to_owned(),
            from: caller.from.map(|from| from.to_canonical().to_string()),
            action: change.action.to_owned(),
            target: change.target,
            before: change.before,
            after: change.after,
            outcome: Outcome::Unknown,
            detail: None,
        }
    }

    /// With its end.
    pub(super) fn ended(mut self, ended: Ended) -> Self {
        self.outcome = ended.outcome;
        self.detail = ended.detail;
        self.before = ended.before.or(self.before);
        self.after = ended.after.or(self.after);
        self
    }

    pub(super) fn end(&mut self, end: End) {
        self.outcome = end.outcome;
        self.detail = end.detail;
        if end.before.is_some() {
            self.before = end.before;
        }
        if end.after.is_some() {
            self.after = end.after;
        }
    }
}

impl End {
    pub(super) fn new(of: u64, ended: Ended) -> Self {
        Self {
            of,
            outcome: ended.outcome,
            detail: ended.detail,
            before: ended.before,
            after: ended.after,
        }
    }
}
