//! What the operator asks of a running service: users, rules, and a login that is tried.

use std::fmt;
use std::sync::Arc;

use thrum_access::{Admission, Answer, Identity, Login};

use super::chain::busy;
use super::progress::Progress;
pub use super::progress::{LoginStep, StepVerdict};
use super::{AuthService, decide_alone, lost};
use crate::config::USERS;
use crate::users::{LockedStore, StoreError, UserStore};

/// A login that was tried.
#[derive(Debug)]
pub struct LoginTested {
    /// The answers of the backends, in the order in which they were asked.
    pub steps: Vec<LoginStep>,
    /// What the client would get.
    pub answer: Answer,
}

/// Why users were not changed.
#[derive(Debug)]
pub enum EditError<E> {
    /// There is no store: neither `auth.users` nor `node.data_dir` is set.
    NoStore,
    /// The file cannot be read or written.
    Store(StoreError),
    /// The change is in the file, which cannot be read back; what was in force before still is.
    NotInForce(String),
    /// The change was refused.
    Refused(E),
}

impl AuthService {
    /// Looks into the user store; none without one.
    pub fn with_users<T>(&self, look: impl FnOnce(&UserStore) -> T) -> Option<T> {
        let state = self.shared.state();
        let users = state.users.as_ref()?;
        Some(look(&users.loaded().store))
    }

    /// Changes the user store: the change is on the disk and in force when this returns, with all
    /// other changes that commands have made, which take the same lock. If `change` refuses,
    /// nothing changes. Waits for the disk and for the workers.
    ///
    /// # Errors
    /// There is no store, its file cannot be read, written or read back, or `change` refuses.
    pub fn edit_users<T, E>(
        &self,
        change: impl FnOnce(&mut UserStore) -> Result<T, E>,
    ) -> Result<T, EditError<E>> {
        let path = self.shared.state().settings.users_file();
        let path = path.ok_or(EditError::NoStore)?;
        let mut locked = LockedStore::open(&path).map_err(EditError::Store)?;
        let done = change(&mut locked.store).map_err(EditError::Refused)?;
        locked.save().map_err(EditError::Store)?;
        drop(locked);
        self.shared.look_at_users().map_err(EditError::NotInForce)?;
        Ok(done)
    }

    /// Whether a listener has that name.
    pub fn has_listener(&self, name: &str) -> bool {
        self.shared.state().settings.listeners.contains_key(name)
    }

    /// Sends a login through the chain of its listener, and tells every step. Nobody connects. The
    /// backends count it as one of their own.
    pub async fn test_login(&self, login: Login) -> LoginTested {
        let state = self.shared.state();
        let chain = Arc::clone(state.chain(&login.identity.listener));
        let alone = |answer| LoginTested {
            steps: Vec::new(),
            answer,
        };
        if chain.links.is_empty() {
            return alone(decide_alone(&state, &chain, login));
        }
        let (Some(pending), Some(runtime)) = (self.enter(&state), &self.runtime) else {
            return alone(Answer::Deny(busy("too many logins are waiting".into())));
        };
        // In the runtime of the service, whose connections to other systems it uses.
        let tested = runtime.spawn(async move {
            let progress = Progress::told();
            let answer = match chain.login_told(&login, &progress).await {
                Ok(admitted) => Answer::Admit(Box::new(state.admission(login, admitted))),
                Err(denial) => Answer::Deny(denial),
            };
            drop(pending);
            LoginTested {
                steps: progress.into_steps(),
                answer,
            }
        });
        tested.await.unwrap_or_else(|_| alone(lost()))
    }

    /// The roles, groups and rules that a client with this identity has; its backend is not known,
    /// so these are those of the user store.
    ///
    /// # Errors
    /// The user is disabled.
    pub fn admission_of(&self, identity: Identity) -> Result<Admission, String> {
        let state = self.shared.state();
        let username = identity.username.as_deref();
        let chain = state.chain(&identity.listener);
        let has_store = chain.links.iter().any(|link| &*link.name == USERS);
        let is_there = |name: &str| {
            let users = state.users.as_ref().filter(|_| has_store);
            users.is_some_and(|users| users.loaded().store.user(name).is_some())
        };
        let Some(name) = username.filter(|name| is_there(name)) else {
            return Ok(Admission {
                identity,
                ..Admission::default()
            });
        };
        match state.user(name) {
            Ok(admitted) => Ok(state.admission_of(identity, admitted)),
            Err(denial) => Err(denial.detail.into_owned()),
        }
    }
}

impl<E: fmt::Display> fmt::Display for EditError<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStore => formatter
                .write_str("there is no user store: neither auth.users nor node.data_dir is set"),
            Self::Store(error) => error.fmt(formatter),
            Self::NotInForce(error) => {
                write!(
                    formatter,
                    "the users are written, but not in force: {error}"
                )
            }
            Self::Refused(error) => error.fmt(formatter),
        }
    }
}
