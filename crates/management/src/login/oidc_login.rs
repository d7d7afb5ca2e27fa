//! How a person that has logged in at a provider gets a session.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::HeaderMap;

use super::caller::Caller;
use super::digest;
use super::logging_in::LoggedIn;
use super::oidc::{Begun, Callback, Oidc, proofs, remove_cookie};
use super::refusal::Refusal;
use super::service::{CurrentSession, Login, held};
use super::sessions::{Owner, SessionSecret};
use crate::thing::Thing;

/// Nobody knows who it is before the provider tells it: see [`super::attempts`].
const NO_NAME: &str = "";

/// A login at the provider that succeeded.
#[derive(Clone)]
pub(crate) struct LoggedInElsewhere {
    /// Who it is.
    pub(crate) caller: Caller,
    /// The new session.
    pub(crate) logged_in: LoggedIn,
    /// `Set-Cookie` that ends the login in the browser.
    pub(crate) ended: String,
}

/// A login at the provider of a broker.
#[derive(Clone, Debug)]
pub(crate) struct LoginElsewhere<'a> {
    login: &'a Login,
    provider: Arc<Oidc>,
}

impl<'a> LoginElsewhere<'a> {
    /// That of a broker.
    ///
    /// # Errors
    /// It has no provider.
    pub(crate) fn of(login: &'a Login) -> Result<Self, Refusal> {
        let provider = login.provider().ok_or_else(|| Refusal::Missing {
            kind: Thing::Provider,
            name: "management.oidc".to_owned(),
        })?;
        Ok(Self { login, provider })
    }

    /// Begins a login at the provider.
    ///
    /// # Errors
    /// It does not answer.
    pub(crate) async fn begin(self, is_tls: bool) -> Result<Begun, Refusal> {
        self.provider.begin(is_tls, self.login.now()).await
    }

    /// Ends a login at the provider, and begins a session.
    ///
    /// # Errors
    /// This browser has not begun it, the provider does not confirm it, the person has no role, or
    /// there were too many wrong ones.
    pub(crate) async fn finish(
        self,
        callback: &Callback,
        headers: &HeaderMap,
        is_tls: bool,
        from: Option<IpAddr>,
    ) -> Result<LoggedInElsewhere, Refusal> {
        let Self { login, provider } = self;
        let now = login.now();
        // Each one makes the broker ask the provider.
        let attempt = held(&login.attempts).begin(NO_NAME, from, now.uptime);
        let attempt = attempt.map_err(Refusal::Slowed)?;
        let mut person = Err(Refusal::OtherLogin);
        for proof in proofs(headers, is_tls) {
            person = provider.finish(callback, &proof, now).await;
            if !matches!(person, Err(Refusal::OtherLogin)) {
                break;
            }
        }
        let person = person?;
        let secret = SessionSecret::new(digest::random()?);
        let owner = Owner {
            administrator: person.name.as_str().into(),
            role: Some(person.role),
        };
        held(&login.sessions).begin(&secret, owner, from, login.now());
        held(&login.attempts).succeed(&attempt, now.uptime);
        Ok(LoggedInElsewhere {
            caller: Caller::session(&person.name, person.role, from),
            logged_in: LoggedIn {
                session: CurrentSession(secret),
                role: person.role,
            },
            ended: remove_cookie(is_tls),
        })
    }
}
