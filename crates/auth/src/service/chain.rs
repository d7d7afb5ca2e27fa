//! The order in which backends are asked, and the outcome.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thrum_access::{Denial, Identity, Login, Question};
use thrum_codec::ReasonCode;
use tokio::time::timeout;

use super::link::Link;
use super::progress::{Progress, StepVerdict};
use crate::backend::{BackendError, Found, Verdict};
use crate::config::Anonymous;

/// Why the last backend has no answer.
const TOOK_TOO_LONG: &str = "no answer within auth.timeout, which all backends together have";
/// Why a backend is not asked.
const BY_CERTIFICATE: &str = "the certificate proves the user name";

/// Backends of a listener.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) links: Vec<Arc<Link>>,
    pub(super) anonymous: Anonymous,
    pub(super) timeout: Duration,
}

/// An admitted client, and its backend.
#[derive(Debug)]
pub(super) struct Admitted {
    /// None for an anonymous client, and for one that its certificate alone admitted.
    pub(super) backend: Option<Arc<str>>,
    pub(super) found: Found,
}

impl Chain {
    /// Asks one backend after the other until one decides.
    pub(super) async fn login(&self, login: &Login) -> Result<Admitted, Denial> {
        self.login_told(login, &Progress::default()).await
    }

    /// The same, and tells what each backend answered.
    pub(super) async fn login_told(
        &self,
        login: &Login,
        progress: &Progress,
    ) -> Result<Admitted, Denial> {
        let decided = timeout(self.timeout, self.decide(login, progress)).await;
        decided.unwrap_or_else(|_| {
            let link = self.links.get(progress.asked.load(Ordering::Relaxed));
            if let Some(link) = link {
                link.timed_out();
                progress.tell(&link.name, StepVerdict::Failed, TOOK_TOO_LONG);
            }
            Err(unavailable(
                link.map(|link| &*link.name),
                "the login took too long",
            ))
        })
    }

    async fn decide(&self, login: &Login, progress: &Progress) -> Result<Admitted, Denial> {
        for (index, link) in self.links.iter().enumerate() {
            if login.is_username_verified && !link.backend.takes_verified() {
                progress.tell(&link.name, StepVerdict::NotAsked, BY_CERTIFICATE);
                continue;
            }
            progress.begin(index);
            let verdict = link.login(login).await;
            progress.answered(&link.name, &verdict);
            match verdict {
                Ok(Verdict::Allow(found)) => {
                    return Ok(Admitted {
                        backend: Some(Arc::clone(&link.name)),
                        found: *found,
                    });
                }
                Ok(Verdict::Deny(why)) => {
                    self.waste(login, Some(index)).await?;
                    return Err(denied(&link.name, &why));
                }
                Ok(Verdict::Ignore) => {}
                Err(error) => return Err(failed(&link.name, &error)),
            }
        }
        if login.is_username_verified || self.admits_anonymous(login) {
            return Ok(Admitted {
                backend: None,
                found: Found::default(),
            });
        }
        self.waste(login, None).await?;
        Err(unknown(login))
    }

    /// A denial takes as long for an unknown user as for a wrong password: every backend that
    /// verifies passwords verifies one. `denying` has done so.
    async fn waste(&self, login: &Login, denying: Option<usize>) -> Result<(), Denial> {
        let others = self.links.iter().enumerate();
        for (_, link) in others.filter(|(index, _)| Some(*index) != denying) {
            let wasted = link.backend.refuse(login).await;
            wasted.map_err(|error| failed(&link.name, &error))?;
        }
        Ok(())
    }

    /// Whether this is a client without credentials, and anonymous clients are admitted.
    pub(super) fn admits_anonymous(&self, login: &Login) -> bool {
        let is_anonymous =
            login.identity.username.is_none() && login.password.is_none() && login.method.is_none();
        is_anonymous
            && match self.anonymous {
                Anonymous::Allow => true,
                Anonymous::Deny => false,
                Anonymous::Loopback => login
                    .identity
                    .address
                    .is_none_or(|address| address.to_canonical().is_loopback()),
            }
    }

    /// The opinion of the chain's services: the first one counts. None if no service has one; a
    /// service that cannot answer denies.
    pub(super) async fn authorize(&self, question: &Question) -> Option<bool> {
        for link in &self.links {
            if !link.backend.is_authorizer() {
                continue;
            }
            match timeout(self.timeout, link.authorize(question)).await {
                Ok(Ok(Some(decision))) => return Some(decision),
                Ok(Ok(None)) => {}
                Ok(Err(_)) => return Some(false),
                Err(_) => {
                    link.timed_out();
                    return Some(false);
                }
            }
        }
        None
    }

    /// The backend that admitted a client.
    pub(super) fn link_of(&self, identity: &Identity) -> Option<&Arc<Link>> {
        let backend = identity.backend.as_deref()?;
        self.links.iter().find(|link| &*link.name == backend)
    }
}

/// Wrong password, unknown user: one reason, so that a client does not learn which users exist.
pub(super) fn denied(backend: &str, why: &str) -> Denial {
    Denial {
        reason: ReasonCode::BadUserNameOrPassword,
        what: "bad user name or password",
        detail: format!("{backend}: {why}").into(),
    }
}

pub(super) fn unknown(login: &Login) -> Denial {
    let has_credentials = login.identity.username.is_some() || login.password.is_some();
    if has_credentials {
        return Denial {
            reason: ReasonCode::BadUserNameOrPassword,
            what: "bad user name or password",
            detail: "no backend knows the client".into(),
        };
    }
    Denial {
        reason: ReasonCode::NotAuthorized,
        what: "a user name and a password are needed",
        detail: "no credentials, and auth.anonymous does not admit the client".into(),
    }
}

pub(super) fn failed(backend: &str, error: &BackendError) -> Denial {
    match error {
        BackendError::Overloaded => busy(format!("{backend}: {error}").into()),
        BackendError::TimedOut
        | BackendError::Unreachable(_)
        | BackendError::BadAnswer(_)
        | BackendError::Panicked(_) => unavailable(Some(backend), &error.to_string()),
    }
}

pub(super) fn busy(detail: Cow<'static, str>) -> Denial {
    Denial {
        reason: ReasonCode::ServerBusy,
        what: "too many logins at once, try again later",
        detail,
    }
}

pub(super) fn unavailable(backend: Option<&str>, why: &str) -> Denial {
    Denial {
        reason: ReasonCode::ServerUnavailable,
        what: "authentication is not available, try again later",
        detail: format!("{}: {why}", backend.unwrap_or("chain")).into(),
    }
}
