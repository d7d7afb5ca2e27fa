//! The client identifiers that a user may have.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

/// The users that may take over a client identifier that has a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Takeover {
    /// The user that the session belongs to.
    #[default]
    SameUser,
    /// Every user; another user begins a new session, and the queued messages of the old one are
    /// discarded.
    AnyUser,
}

schema! {
    ClientIdPatternSchema: ["string"] "client-id-pattern",
        "a pattern such as \"%u-*\": %u is the user name, * any characters, %% a percent sign";
}

/// The form of the client identifiers that a user may have.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClientIdPattern(Box<str>);

impl ClientIdPattern {
    /// Reads a pattern; an empty one admits every identifier. None if a `%` is followed by anything
    /// but `u` or `%`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once('%') {
            rest = after.strip_prefix(['u', '%'])?;
        }
        Some(Self(text.into()))
    }

    /// Whether a client may have the identifier. A pattern with `%u` does not restrict clients
    /// without user name.
    pub fn admits(&self, client_id: &str, username: Option<&str>) -> bool {
        let names_user = self.0.replace("%%", "").contains("%u");
        if self.0.is_empty() || (names_user && username.is_none()) {
            return true;
        }
        let username = username.unwrap_or_default();
        let mut parts = self.0.split('*').map(|part| fill(part, username));
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = client_id.strip_prefix(&*first) else {
            return false;
        };
        let Some(last) = parts.next_back() else {
            return rest.is_empty();
        };
        for part in parts {
            let Some((_, behind)) = rest.split_once(&*part) else {
                return false;
            };
            rest = behind;
        }
        rest.ends_with(&*last)
    }
}

/// A part of a pattern for one user.
fn fill<'a>(part: &'a str, username: &str) -> Cow<'a, str> {
    if !part.contains('%') {
        return Cow::Borrowed(part);
    }
    let mut text = String::new();
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        text.push_str(if after.starts_with('u') {
            username
        } else {
            "%"
        });
        rest = &after[1..];
    }
    text.push_str(rest);
    Cow::Owned(text)
}

impl TryFrom<String> for ClientIdPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("expected {}", ClientIdPatternSchema::EXPECTED))
    }
}

impl From<ClientIdPattern> for String {
    fn from(pattern: ClientIdPattern) -> Self {
        pattern.0.into()
    }
}

impl fmt::Display for ClientIdPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_matched_against_the_pattern() {
        for (pattern, client_id, fits) in [
            ("", "anything", true),
            ("%u", "anna", true),
            ("%u", "anna-1", false),
            ("%u-*", "anna-1", true),
            ("%u-*", "anna-", true),
            ("%u-*", "anna", false),
            ("%u-*", "bob-1", false),
            ("%u-*", "xanna-1", false),
            ("*-%u", "7-anna", true),
            ("*-%u", "7-anna-x", false),
            ("dev/*/%u/*", "dev/a/b/anna/c", true),
            ("dev/*/%u/*", "dev/anna/c", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("*", "anything", true),
            ("100%%*", "100%-x", true),
        ] {
            let pattern = ClientIdPattern::parse(pattern).unwrap();
            let found = pattern.admits(client_id, Some("anna"));
            assert_eq!(found, fits, "{pattern} {client_id}");
        }
    }

    #[test]
    fn without_a_user_name_only_patterns_without_the_user_apply() {
        for (pattern, fits) in [
            ("%u-*", true),
            ("dev-*", false),
            ("x-%%u*", false),
            ("a*", true),
        ] {
            let pattern = ClientIdPattern::parse(pattern).unwrap();
            assert_eq!(pattern.admits("a1", None), fits, "{pattern}");
        }
    }

    #[test]
    fn a_star_in_a_user_name_is_literal() {
        let pattern = ClientIdPattern::parse("%u-*").unwrap();
        assert!(!pattern.admits("anna-1", Some("*")));
        assert!(!pattern.admits("anna-1", Some("an%u")));
        assert!(pattern.admits("*-1", Some("*")));
    }

    #[test]
    fn an_unknown_placeholder_is_refused() {
        for text in ["%c", "%", "a%%%"] {
            assert_eq!(ClientIdPattern::parse(text), None, "{text}");
        }
        let error = ClientIdPattern::try_from("%x".to_owned()).unwrap_err();
        assert!(error.contains("%u is the user name"), "{error}");
    }
}
