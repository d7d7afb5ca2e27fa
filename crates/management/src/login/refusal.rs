//! Why a request about who may ask is refused.

use std::time::Duration;

use thiserror::Error;

use super::scope::Scope;
use crate::thing::Thing;

/// Why a request is refused. No text has a secret in it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Refusal {
    /// Name, password or code; the text does not say which.
    #[error("the name, the password or the code is wrong")]
    WrongLogin,
    /// The password is right, and the administrator has one-time codes.
    #[error("this administrator also needs a one-time code")]
    CodeNeeded,
    /// Too many wrong logins from there or with that name.
    #[error("too many wrong logins: the next one is possible in {} s", whole_secs(*.0))]
    Slowed(Duration),
    /// All threads that verify passwords are busy.
    #[error("too many logins at the same time")]
    Busy,
    /// The caller is nobody.
    #[error("the request has neither a session nor an API key")]
    NoProof,
    /// The API key is unknown, has expired or was removed.
    #[error("the API key is unknown, has expired or was removed")]
    WrongKey,
    /// The caller lacks a scope.
    #[error("the request needs the scope {0}")]
    NoScope(Scope),
    /// A page of another origin sent it.
    #[error("the request was sent by a page of another origin")]
    OtherOrigin,
    /// A change by cookie without a header that tells which page sent it.
    #[error("the request changes something by cookie, and has neither Origin nor Sec-Fetch-Site")]
    NoOrigin,
    /// The header with the token of the session is missing or wrong.
    #[error(
        "the header {} is missing or has another session's token",
        super::TOKEN_HEADER
    )]
    NoToken,
    /// The setup link is not valid.
    #[error("the setup link is wrong, was used, or a newer one was made")]
    WrongSetupLink,
    /// An administrator exists already.
    #[error("an administrator exists already")]
    IsSetUp,
    /// Something of that name exists.
    #[error("{kind} {name:?} exists already")]
    Exists {
        /// What.
        kind: Thing,
        /// Its name.
        name: String,
    },
    /// Nothing has that name.
    #[error("there is no {kind} {name:?}")]
    Missing {
        /// What.
        kind: Thing,
        /// Its name.
        name: String,
    },
    /// Nobody could administer the broker any more.
    #[error("{0:?} is the last administrator that is enabled and has the role administrator")]
    LastAdministrator(String),
    /// A limit is reached.
    #[error("there are {most} {} already, which is the limit", .kind.many())]
    Full {
        /// What.
        kind: Thing,
        /// How many.
        most: usize,
    },
    /// A value is not accepted.
    #[error("{0}")]
    Invalid(String),
    /// The provider does not answer, or what it answers is not accepted.
    #[error("the OpenID Connect provider: {0}")]
    Provider(String),
    /// No group of that person has a role.
    #[error("no group of {0:?} has a role")]
    NoRole(String),
    /// Another browser has begun the login at the provider, or this one too long ago.
    #[error("this browser has not begun the login, or too long ago")]
    OtherLogin,
    /// Only an administrator with a session can ask that about itself.
    #[error("only an administrator with a session can do this")]
    NoSession,
    /// The disk has no room for the change.
    #[error("{0}")]
    NoRoom(String),
    /// The disk, the memory or the random numbers fail.
    #[error("{0}")]
    Broken(String),
}

impl Refusal {
    /// Seconds after which the same request may succeed.
    pub(crate) const fn retry_after_secs(&self) -> Option<u64> {
        match self {
            Self::Slowed(wait) => Some(whole_secs(*wait)),
            Self::Busy => Some(1),
            _ => None,
        }
    }
}

/// Rounded up: whoever waits so long is not refused for the same reason.
const fn whole_secs(wait: Duration) -> u64 {
    wait.as_secs() + (wait.subsec_nanos() > 0) as u64
}
