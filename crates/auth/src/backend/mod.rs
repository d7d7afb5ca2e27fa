//! Sources of users: one file or folder for each kind.

mod build;
mod gate;
mod grants;
#[cfg(feature = "http-auth")]
mod http;
mod jwt;
#[cfg(feature = "ldap")]
mod ldap;
mod left_out;
mod password_file;
mod pool;
mod record;
#[cfg(feature = "redis")]
mod redis;
mod settings;
#[cfg(feature = "sql")]
mod sql;
mod users;

use std::borrow::Cow;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use thiserror::Error;
use thrum_access::{Identity, Login, Question, Rules};

use crate::panics::Panicked;

pub use jwt::{TokenKeys, TokenSignature};

pub(crate) use build::{Built, build};
pub(crate) use password_file::parse_password_file;
pub(crate) use users::{Users, found};

/// The verdict of a backend, in progress.
pub(crate) type Asked<'a, T> = Pin<Box<dyn Future<Output = Result<T, BackendError>> + Send + 'a>>;

/// One backend of the chain. Every call ends within the backend's own time limit.
pub(crate) trait Backend: Send + Sync + Debug {
    /// Its name in the configuration.
    fn name(&self) -> &str;

    /// Verifies a client's credentials.
    fn login<'a>(&'a self, login: &'a Login) -> Asked<'a, Verdict>;

    /// The client's own rules again; none if they did not change.
    fn refresh<'a>(&'a self, _identity: &'a Identity) -> Asked<'a, Option<Rules>> {
        Box::pin(async { Ok(None) })
    }

    /// Whether it can tell by itself that an admitted user has been removed since.
    fn is_gone(&self, _username: &str) -> bool {
        false
    }

    /// Whether it is asked about a client whose certificate proves its user name, for its roles and
    /// rules. Others are not asked: they would require a password.
    fn takes_verified(&self) -> bool {
        false
    }

    /// Takes the time of a wrong password, when a login that it ignored is denied in the end: the
    /// time must not reveal which users exist. A backend that answers at once, or does this by
    /// itself, has nothing to do.
    fn refuse<'a>(&'a self, _login: &'a Login) -> Asked<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Reads files that have changed: true if the answers may be others now. Called every second;
    /// may block.
    ///
    /// # Errors
    /// A file is invalid; the answers stay.
    fn reread(&self) -> Result<bool, String> {
        Ok(false)
    }

    /// Whether [`Backend::authorize`] has opinions.
    fn is_authorizer(&self) -> bool {
        false
    }

    /// May the client do this? None without an opinion.
    fn authorize<'a>(&'a self, _question: &'a Question) -> Asked<'a, Option<bool>> {
        Box::pin(async { Ok(None) })
    }
}

/// A backend's verdict on a client.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Its credentials are right.
    Allow(Box<Found>),
    /// They are not; the text is for the log and contains no secret.
    Deny(Cow<'static, str>),
    /// Unknown here: the next backend is asked.
    Ignore,
}

/// The identity of a verified client.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Its user name if that differs from the claimed one.
    pub(crate) username: Option<Box<str>>,
    /// Its roles, those of its groups included.
    pub(crate) roles: Vec<Box<str>>,
    /// Its groups.
    pub(crate) groups: Vec<Box<str>>,
    /// Rules of its own.
    pub(crate) rules: Option<Rules>,
    /// Every action is allowed.
    pub(crate) is_superuser: bool,
    /// When it must be disconnected, in seconds of the Unix epoch.
    pub(crate) expires_at: Option<u64>,
    /// Claims for placeholders, by name.
    pub(crate) claims: Vec<(Box<str>, Box<str>)>,
    /// Seconds after which [`Backend::refresh`] should be asked for its rules.
    pub(crate) refresh_secs: Option<u32>,
}

/// Why a backend has no verdict. Texts never contain a secret.
#[derive(Debug, Error)]
pub(crate) enum BackendError {
    /// No answer in time.
    #[error("no answer in time")]
    TimedOut,
    /// The other system cannot be reached.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// The other system's answer makes no sense.
    #[error("bad answer: {0}")]
    BadAnswer(String),
    /// Too many requests are waiting.
    #[error("too many requests are waiting")]
    Overloaded,
    /// The library for the other system panicked over its answer.
    #[error(transparent)]
    Panicked(#[from] Panicked),
}
