//! How an administrator gets a session: by password and code, or by the setup link.

use std::net::IpAddr;
use std::sync::Arc;

use thrum_access::Secret;
use thrum_auth::users::PasswordHash;

use super::administrator::{Administrator, PASSWORD_BYTES_MAX, check_name, check_password};
use super::attempts::Attempt;
use super::digest;
use super::refusal::Refusal;
use super::scope::Role;
use super::service::{CurrentSession, Login, held};
use super::sessions::{Owner, SessionSecret};
use super::setup::UsedLink;
use super::totp::Totp;

/// Bytes of a name that are read: longer ones cannot exist.
const NAME_BYTES_READ_MAX: usize = 256;

/// What an administrator enters.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    /// Name.
    pub(crate) name: String,
    /// Password.
    pub(crate) password: Secret,
    /// Code of the app, or a recovery code.
    pub(crate) code: Option<String>,
}

/// The first administrator.
#[derive(Clone, Debug)]
pub(crate) struct FirstAdministrator {
    /// Token of the setup link.
    pub(crate) token: Secret,
    /// Name.
    pub(crate) name: String,
    /// Password.
    pub(crate) password: Secret,
}

/// A login that succeeded.
#[derive(Clone)]
pub(crate) struct LoggedIn {
    /// The new session.
    pub(crate) session: CurrentSession,
    /// What the administrator may do.
    pub(crate) role: Role,
}

impl Login {
    /// Verifies name, password and code, and begins a session. `before` is the session of the
    /// request, which ends.
    ///
    /// # Errors
    /// One of them is wrong, or there were too many wrong ones; the text does not tell which.
    pub(crate) async fn log_in(
        self: &Arc<Self>,
        credentials: Credentials,
        from: Option<IpAddr>,
        before: Option<&CurrentSession>,
    ) -> Result<LoggedIn, Refusal> {
        let Credentials {
            name,
            password,
            code,
        } = credentials;
        let (attempt, hash) = self.verify(&name, password, from).await?;
        let one = self.current().administrators.get(&*name).cloned();
        let one = one.ok_or(Refusal::WrongLogin)?;
        if let Some(totp) = &one.totp {
            let Some(code) = code else {
                // The password is right: this was no guess.
                self.refund(&attempt);
                return Err(Refusal::CodeNeeded);
            };
            self.take_code(&name, totp, code).await?;
        }
        let secret = SessionSecret::new(digest::random()?);
        self.begin_session(&name, &hash, &secret, from)?;
        let now = self.now().uptime;
        held(&self.attempts).succeed(&attempt, now);
        if let Some(before) = before {
            held(&self.sessions).end(&before.0);
        }
        Ok(LoggedIn {
            session: CurrentSession(secret),
            role: one.role,
        })
    }

    /// Verifies the password of an administrator that has a session.
    ///
    /// # Errors
    /// It is wrong, or there were too many wrong ones.
    pub(crate) async fn verify_again(
        self: &Arc<Self>,
        name: &str,
        password: Secret,
        from: Option<IpAddr>,
    ) -> Result<(), Refusal> {
        let (attempt, _) = self.verify(name, password, from).await?;
        let now = self.now().uptime;
        held(&self.attempts).succeed(&attempt, now);
        Ok(())
    }

    /// Makes the first administrator and logs it in. Of requests at the same time one succeeds.
    ///
    /// # Errors
    /// The link is not valid, or name or password are not accepted.
    pub(crate) async fn set_up(
        self: &Arc<Self>,
        first: FirstAdministrator,
        from: Option<IpAddr>,
    ) -> Result<LoggedIn, Refusal> {
        let FirstAdministrator {
            token,
            name,
            password,
        } = first;
        let token = token.expose_str().unwrap_or_default();
        // Before the password is hashed: a flood of wrong links costs nothing.
        if !held(&self.setup).accepts(token) {
            return Err(Refusal::WrongSetupLink);
        }
        check_name(&name)?;
        check_password(&name, &password)?;
        let password = self.hashing.create(password, true).await?;
        let link = LinkInUse::take(self, token).ok_or(Refusal::WrongSetupLink)?;
        let created_at = self.now().wall_millis;
        let (added, hash) = (name.clone(), password.clone());
        let made = self.change(move |accounts| {
            if !accounts.administrators.is_empty() {
                return Err(Refusal::IsSetUp);
            }
            accounts.add(&added, administrator(Role::Administrator, hash, created_at))?;
            Ok(link)
        });
        drop(made.await?);
        let secret = SessionSecret::new(digest::random()?);
        self.begin_session(&name, &password, &secret, from)?;
        Ok(LoggedIn {
            session: CurrentSession(secret),
            role: Role::Administrator,
        })
    }

    /// Makes the first administrator, `admin`, unless there is one already; returns whether it did.
    /// Waits for the disk.
    ///
    /// # Errors
    /// The password is not accepted, or the disk fails.
    pub(crate) fn make_first(&self, password: &Secret) -> Result<bool, Refusal> {
        const NAME: &str = "admin";
        if self.is_set_up() {
            return Ok(false);
        }
        check_password(NAME, password)?;
        let hash = PasswordHash::of(password.expose());
        let hash = hash.map_err(|error| Refusal::Broken(error.to_string()))?;
        let first = administrator(Role::Administrator, hash, self.now().wall_millis);
        self.accounts.change(|accounts| accounts.add(NAME, first))?;
        held(&self.setup).end();
        Ok(true)
    }

    /// Verifies a password; returns the charged attempt and the hash that it belongs to.
    async fn verify(
        self: &Arc<Self>,
        name: &str,
        password: Secret,
        from: Option<IpAddr>,
    ) -> Result<(Attempt, PasswordHash), Refusal> {
        if name.len() > NAME_BYTES_READ_MAX || password.expose().len() > PASSWORD_BYTES_MAX {
            return Err(Refusal::WrongLogin);
        }
        let now = self.now().uptime;
        let attempt = held(&self.attempts).begin(name, from, now);
        let attempt = attempt.map_err(Refusal::Slowed)?;
        let one = self.current().administrators.get(name).cloned();
        let hash = one.filter(|one| !one.is_disabled).map(|one| one.password);
        let verified = self
            .hashing
            .verify(hash.as_ref(), password, attempt.is_known);
        match (verified.await, hash) {
            (Ok(true), Some(hash)) => Ok((attempt, hash)),
            (Ok(_), _) => Err(Refusal::WrongLogin),
            (Err(error), _) => {
                self.refund(&attempt);
                Err(error)
            }
        }
    }

    fn refund(&self, attempt: &Attempt) {
        let now = self.now().uptime;
        held(&self.attempts).refund(attempt, now);
    }

    /// Uses a code of the app, or a recovery code, up.
    async fn take_code(
        self: &Arc<Self>,
        name: &str,
        totp: &Totp,
        code: String,
    ) -> Result<(), Refusal> {
        let now = self.now();
        let code = code.trim().to_owned();
        if code.bytes().all(|byte| byte.is_ascii_digit()) {
            let is_right = held(&self.codes).take(name, totp, &code, now);
            return is_right.then_some(()).ok_or(Refusal::WrongLogin);
        }
        let name = name.to_owned();
        let taken = self.change(move |accounts| {
            let one = accounts.administrator_mut(&name)?;
            let is_right = one.use_recovery_code(&code);
            is_right.then_some(()).ok_or(Refusal::WrongLogin)
        });
        taken.await
    }

    /// Begins a session if the administrator still has the password that was verified. Whoever
    /// changes it ends the sessions afterwards, and waits for this lock.
    fn begin_session(
        &self,
        name: &str,
        verified: &PasswordHash,
        secret: &SessionSecret,
        from: Option<IpAddr>,
    ) -> Result<(), Refusal> {
        let mut sessions = held(&self.sessions);
        let accounts = self.current();
        let one = accounts.administrators.get(name);
        if one.is_none_or(|one| one.is_disabled || one.password != *verified) {
            return Err(Refusal::WrongLogin);
        }
        sessions.begin(secret, Owner::of_broker(name), from, self.now());
        Ok(())
    }
}

/// The setup link while somebody uses it. It is valid again if that fails, or if the request ends
/// early, because its client has gone or its time is over.
struct LinkInUse {
    login: Arc<Login>,
    link: Option<UsedLink>,
}

impl LinkInUse {
    fn take(login: &Arc<Login>, token: &str) -> Option<Self> {
        let link = held(&login.setup).take(token)?;
        Some(Self {
            login: Arc::clone(login),
            link: Some(link),
        })
    }
}

impl Drop for LinkInUse {
    fn drop(&mut self) {
        let mut setup = held(&self.login.setup);
        match self.link.take() {
            Some(link) if !self.login.is_set_up() => setup.put_back(link),
            _ => setup.end(),
        }
    }
}

/// A new administrator without one-time codes.
pub(super) const fn administrator(
    role: Role,
    password: PasswordHash,
    created_at: u64,
) -> Administrator {
    Administrator {
        role,
        password,
        totp: None,
        recovery: Vec::new(),
        is_disabled: false,
        created_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    fn first(token: &str) -> FirstAdministrator {
        FirstAdministrator {
            token: Secret::from(token),
            name: "alice".to_owned(),
            password: Secret::from("correct horse battery"),
        }
    }

    #[tokio::test]
    async fn a_setup_link_whose_client_has_gone_is_valid_again() {
        let (clock, _) = Clock::manual();
        let login = Arc::new(Login::open(None, clock).unwrap());
        let token = login.renew_setup().unwrap();
        let link = || login.is_setup_link(&Secret::from(token.as_str()));
        // Another change of the accounts is under way.
        let other = Arc::clone(&login.writer).acquire_owned().await.unwrap();
        let (asked, made) = (Arc::clone(&login), first(&token));
        let request = tokio::spawn(async move { asked.set_up(made, None).await.map(drop) });
        while link() {
            tokio::task::yield_now().await;
        }
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        assert!(link() && !login.is_set_up());
        drop(other);
        login.set_up(first(&token), None).await.map(drop).unwrap();
        assert!(!link() && login.is_set_up());
    }

    #[tokio::test]
    async fn a_removed_administrator_has_no_sessions_although_the_client_has_gone() {
        let (clock, _) = Clock::manual();
        let login = Arc::new(Login::open(None, clock).unwrap());
        let token = login.renew_setup().unwrap();
        login.set_up(first(&token), None).await.map(drop).unwrap();
        let password = Secret::from("correct horse battery");
        let added = login.add_administrator("bob".to_owned(), Role::Administrator, password);
        added.await.unwrap();
        let asked = Arc::clone(&login);
        let removal = async move { asked.remove_administrator("alice".to_owned()).await };
        let request = tokio::spawn(removal);
        while login.current().administrators.len() == 2 && !request.is_finished() {
            tokio::task::yield_now().await;
        }
        request.abort();
        drop(request.await);
        let _after = Arc::clone(&login.writer).acquire_owned().await.unwrap();
        assert!(login.list_sessions(None).is_empty());
    }
}
