//! A user's record in a database: hash, salt, rights.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use thrum_access::{Login, Rules};
use zeroize::Zeroizing;

use super::grants::truth;
use super::{BackendError, Found, Verdict};
use crate::hash::{Hasher, Requester, Scheme};

/// A user in a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// `password_hash` or `password`.
    pub(crate) password_hash: Option<String>,
    /// `salt`.
    pub(crate) salt: Option<String>,
    /// `is_superuser`.
    pub(crate) is_superuser: bool,
    /// `roles`.
    pub(crate) roles: Vec<Box<str>>,
}

impl Record {
    /// Takes a column or a field; unknown ones are ignored.
    pub(crate) fn set(&mut self, name: &str, value: String) {
        match name {
            "password_hash" | "password" => self.password_hash = Some(value),
            "salt" => self.salt = Some(value),
            "is_superuser" => self.is_superuser = truth(&value).unwrap_or_default(),
            "roles" => self.roles = words(&value),
            _ => {}
        }
    }

    /// Whether the client has presented the right password. A user name that a certificate proves
    /// needs none.
    ///
    /// # Errors
    /// The hash cannot be used, or too many hashes wait to be computed.
    pub(crate) async fn is_shown_by(
        &self,
        login: &Login,
        scheme: &Scheme,
        hasher: &Hasher,
        decoy: &Decoy,
    ) -> Result<bool, BackendError> {
        let Some(password) = &login.password else {
            return Ok(login.is_username_verified);
        };
        let Some(hash) = &self.password_hash else {
            let what =
                "no password_hash: the query must give a column of this name that is not null";
            return Err(BackendError::BadAnswer(what.to_owned()));
        };
        let stored = scheme
            .stored(hash, self.salt.as_deref().unwrap_or_default())
            .map_err(|error| BackendError::BadAnswer(error.to_string()))?;
        decoy.keep(&stored);
        hasher
            .verify(&stored, password, Requester::login(login))
            .await
    }

    /// The user, with its rules.
    pub(crate) fn admit(self, rules: Option<Rules>, refresh_secs: Option<u32>) -> Verdict {
        Verdict::Allow(Box::new(Found {
            is_superuser: self.is_superuser,
            roles: self.roles,
            rules,
            refresh_secs,
            ..Found::default()
        }))
    }
}

/// The hash that was verified last: verifying it takes the time of a wrong password here.
#[derive(Default)]
pub(crate) struct Decoy {
    /// Guards one text; held to copy it.
    stored: Mutex<Option<Zeroizing<String>>>,
}

impl fmt::Debug for Decoy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Decoy")
    }
}

impl Decoy {
    /// Remembers a hash with the usual cost.
    pub(crate) fn keep(&self, stored: &str) {
        let mut kept = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_none_or(|kept| kept.as_str() != stored) {
            *kept = Some(Zeroizing::new(stored.to_owned()));
        }
    }

    /// Takes the time of a wrong password; none before the first login.
    pub(crate) async fn waste(&self, login: &Login, hasher: &Hasher) -> Result<(), BackendError> {
        let kept = {
            let kept = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
            kept.clone()
        };
        match (kept, &login.password) {
            (Some(stored), Some(password)) => {
                hasher
                    .waste(&stored, password, Requester::login(login))
                    .await
            }
            _ => Ok(()),
        }
    }
}

/// Words separated by commas or spaces; brackets, braces and quotes of JSON and of arrays in SQL
/// are ignored.
fn words(text: &str) -> Vec<Box<str>> {
    text.split([',', ' '])
        .map(|word| word.trim_matches(['[', ']', '{', '}', '"']))
        .filter(|word| !word.is_empty())
        .map(Box::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_read_in_every_form() {
        for text in ["a,b", "a, b", "[\"a\", \"b\"]", "{a,b}", " a  b "] {
            assert_eq!(words(text), ["a", "b"].map(Box::<str>::from), "{text}");
        }
        assert!(words("[]").is_empty());
    }

    #[test]
    fn a_superuser_is_one_by_a_clear_word_only() {
        for (text, expected) in [
            ("1", true),
            ("true", true),
            ("t", true),
            ("0", false),
            ("", false),
            ("yes?", false),
        ] {
            let mut record = Record::default();
            record.set("is_superuser", text.to_owned());
            assert_eq!(record.is_superuser, expected, "{text}");
        }
    }
}
