//! Administrators, sessions and keys of a broker: who sent a request, and what ends a session.

use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method, Uri};
use thrum_access::Secret;
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use super::TOKEN_HEADER;
use super::accounts::{AccountStore, Accounts, AccountsError};
use super::attempts::Attempts;
use super::caller::{Caller, Means};
use super::codes::Codes;
use super::hashing::Hashing;
use super::key::Shown;
use super::key_use::KeyUses;
use super::oidc::Oidc;
use super::origin::{SentBy, sent_by};
use super::refusal::Refusal;
use super::scope::{Role, ScopeSet};
use super::sessions::{SessionRow, SessionSecret, SessionTimes, Sessions};
use super::setup::Setup;
use super::tried_logins::TriedLogins;
use super::{cookie, digest, setup};
use crate::clock::{Clock, Now};
use crate::in_thread::in_thread;
use crate::thing::Thing;

/// Who may ask a broker, and who is asking.
#[derive(Debug)]
pub(crate) struct Login {
    pub(super) accounts: AccountStore,
    /// Each lock guards what it wraps, for less than a millisecond; none is held while another is
    /// taken, except that a login reads the accounts in force while it holds the sessions.
    pub(super) sessions: Mutex<Sessions>,
    pub(super) attempts: Mutex<Attempts>,
    /// Tried logins of MQTT clients.
    pub(crate) tests: TriedLogins,
    pub(super) setup: Mutex<Setup>,
    pub(super) codes: Mutex<Codes>,
    key_uses: Mutex<KeyUses>,
    pub(super) hashing: Hashing,
    /// None without a provider. Guards the pointer alone.
    oidc: RwLock<Option<Arc<Oidc>>>,
    /// One writer of the accounts at a time; others wait without a thread.
    pub(super) writer: Arc<Semaphore>,
    clock: Clock,
}

/// What a request shows of its sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shows<'a> {
    /// Headers.
    pub(crate) headers: &'a HeaderMap,
    /// Address of the request.
    pub(crate) uri: &'a Uri,
    /// Method.
    pub(crate) method: &'a Method,
    /// Address of the sender.
    pub(crate) from: Option<IpAddr>,
    /// It came over TLS, to this broker or to a proxy in front of it.
    pub(crate) is_tls: bool,
}

/// The session of a request.
#[derive(Clone)]
pub(crate) struct CurrentSession(pub(super) SessionSecret);

impl CurrentSession {
    /// The token for the header of changes.
    pub(crate) fn token(&self) -> String {
        self.0.token()
    }

    /// Its public name.
    pub(crate) fn id(&self) -> String {
        self.0.name()
    }

    /// `Set-Cookie` of a login.
    pub(crate) fn cookie(&self, is_tls: bool) -> String {
        cookie::set(&self.0, is_tls)
    }
}

/// The sender of a request.
#[derive(Clone)]
pub(crate) struct Identified {
    /// Who it is.
    pub(crate) caller: Caller,
    /// Its session, if it has one.
    pub(crate) session: Option<CurrentSession>,
    /// A key whose use is to be written down: [`Login::note_use`].
    pub(crate) used_key: Option<UsedKey>,
}

/// A request that is refused before it is looked at.
#[derive(Debug)]
pub(crate) struct Unidentified {
    /// Whose cookie it has, for the audit log.
    pub(crate) caller: Caller,
    /// Why.
    pub(crate) refusal: Refusal,
}

/// The use of a key.
#[derive(Clone, Debug)]
pub(crate) struct UsedKey {
    id: Box<str>,
    /// Milliseconds of the Unix epoch.
    at: u64,
}

impl Login {
    /// Reads the administrators and keys in a data directory; without one they are in memory.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn open(data_dir: Option<&Path>, clock: Clock) -> Result<Self, AccountsError> {
        Ok(Self {
            accounts: AccountStore::open(data_dir)?,
            sessions: Mutex::default(),
            attempts: Mutex::default(),
            tests: TriedLogins::default(),
            setup: Mutex::default(),
            codes: Mutex::default(),
            key_uses: Mutex::default(),
            hashing: Hashing::new(),
            oidc: RwLock::default(),
            writer: Arc::new(Semaphore::new(1)),
            clock,
        })
    }

    /// Puts other settings in force.
    pub(crate) fn apply(&self, oidc: Option<Oidc>, times: SessionTimes) {
        let mut held_oidc = self.oidc.write().unwrap_or_else(PoisonError::into_inner);
        *held_oidc = oidc.map(Arc::new);
        drop(held_oidc);
        held(&self.sessions).set_times(times);
    }

    /// The provider at which people can log in.
    pub(super) fn provider(&self) -> Option<Arc<Oidc>> {
        let oidc = self.oidc.read().unwrap_or_else(PoisonError::into_inner);
        oidc.clone()
    }

    /// Whether people can log in at a provider.
    pub(crate) fn has_oidc(&self) -> bool {
        self.provider().is_some()
    }

    /// Finds out who sent a request. One without proof is anonymous, also one whose session has
    /// ended.
    ///
    /// # Errors
    /// The key is wrong; a change by cookie was sent by a page of another origin, or without the
    /// token of the session.
    pub(crate) fn identify(&self, shows: &Shows<'_>) -> Result<Identified, Unidentified> {
        let anonymous = |refusal| Unidentified {
            caller: Caller::anonymous(shows.from),
            refusal,
        };
        let now = self.now();
        // Others are the matter of a proxy in front of the broker.
        let shown = shows.headers.get_all(AUTHORIZATION).iter();
        let mut keys = shown.filter_map(|field| bearer(field.to_str().ok()?));
        match (keys.next(), keys.next()) {
            (Some(key), None) => return self.identify_key(key, shows, now).map_err(anonymous),
            (Some(_), Some(_)) => return Err(anonymous(Refusal::WrongKey)),
            (None, _) => {}
        }
        let found = self.find_session(shows, now);
        if !shows.method.is_safe() {
            let checked = check_sender(shows, found.as_ref().map(|(_, session)| session));
            checked.map_err(|refusal| match &found {
                Some((caller, _)) => Unidentified {
                    caller: caller.clone(),
                    refusal,
                },
                None => anonymous(refusal),
            })?;
        }
        Ok(match found {
            Some((caller, session)) => Identified {
                caller,
                session: Some(session),
                used_key: None,
            },
            None => Identified {
                caller: Caller::anonymous(shows.from),
                session: None,
                used_key: None,
            },
        })
    }

    /// What a caller may ask now, whose request began earlier; none if its session or key has
    /// ended. It is no use of the session: a page that only watches lets it end.
    pub(crate) fn scopes_now(
        &self,
        caller: &Caller,
        session: Option<&CurrentSession>,
    ) -> Option<ScopeSet> {
        let now = self.now();
        match caller.means {
            Means::Local => Some(ScopeSet::ALL),
            Means::Anonymous => None,
            Means::Session => {
                let sessions = held(&self.sessions);
                let owner = sessions.owner(&session?.0, now)?.clone();
                drop(sessions);
                let role = owner.role.or_else(|| self.role_of(&owner.administrator))?;
                Some(role.scopes())
            }
            Means::Key => {
                let id = caller.name.strip_prefix("key:")?;
                let accounts = self.accounts.current();
                let key = accounts.keys.get(id)?;
                (!key.is_expired(now.wall_millis)).then_some(key.scopes)
            }
        }
    }

    /// Writes down that a key is in use.
    pub(crate) async fn note_use(self: Arc<Self>, used: UsedKey) {
        let noted = self.change(move |accounts| {
            if let Some(key) = accounts.keys.get_mut(&used.id) {
                key.used_at = Some(used.at);
            }
            Ok(())
        });
        if let Err(error) = noted.await {
            tracing::warn!(%error, "the last use of an API key is not written down");
        }
    }

    /// Sessions, and how many entries have made room in the tables of sessions and of attempts.
    pub(crate) fn table_figures(&self) -> [u64; 3] {
        let attempts = held(&self.attempts).forgotten() + self.tests.forgotten();
        let sessions = held(&self.sessions);
        [sessions.len() as u64, sessions.forgotten(), attempts]
    }

    /// The last use of a key, in milliseconds of the Unix epoch.
    pub(crate) fn last_use(&self, id: &str, noted_at: Option<u64>) -> Option<u64> {
        held(&self.key_uses).last(id).or(noted_at)
    }

    /// The accounts in force.
    pub(crate) fn current(&self) -> Arc<Accounts> {
        self.accounts.current()
    }

    /// Sessions of one administrator, or of all.
    pub(crate) fn list_sessions(&self, of: Option<&str>) -> Vec<SessionRow> {
        held(&self.sessions).list(of, self.now())
    }

    /// Ends a session by its public name, if `of` is whose it is, or none; returns whose it was.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn end_session(&self, id: &str, of: Option<&str>) -> Result<Box<str>, Refusal> {
        let ended = held(&self.sessions).end_by_id(id, of);
        ended.ok_or_else(|| Refusal::Missing {
            kind: Thing::Session,
            name: id.to_owned(),
        })
    }

    /// Ends the session of a request; returns the `Set-Cookie` that removes its cookie.
    pub(crate) fn log_out(&self, session: &CurrentSession, is_tls: bool) -> String {
        held(&self.sessions).end(&session.0);
        cookie::remove(is_tls)
    }

    /// Makes a setup link that works once, and ends the one before; returns its token.
    ///
    /// # Errors
    /// An administrator exists; there are no random numbers.
    pub(crate) fn renew_setup(&self) -> Result<Zeroizing<String>, Refusal> {
        let secret = digest::random::<{ setup::SECRET_BYTES }>()?;
        let mut setup = held(&self.setup);
        if self.is_set_up() {
            setup.end();
            return Err(Refusal::IsSetUp);
        }
        Ok(setup.renew(&secret))
    }

    /// Whether it is the token of the setup link in force.
    pub(crate) fn is_setup_link(&self, token: &Secret) -> bool {
        let token = token.expose_str().unwrap_or_default();
        held(&self.setup).accepts(token)
    }

    /// Whether an administrator exists.
    pub(crate) fn is_set_up(&self) -> bool {
        !self.accounts.current().administrators.is_empty()
    }

    /// The present moment.
    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    /// Changes the accounts in another thread: they are on the disk and in force at the end, or all
    /// is as before.
    pub(super) async fn change<T: Send + 'static>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut Accounts) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.change_then(change, |_| {}).await
    }

    /// The same, and then what belongs to the change, such as the end of sessions. The request may
    /// end early, because its client has gone; a change that was made has its consequences also
    /// then.
    pub(super) async fn change_then<T: Send + 'static>(
        self: &Arc<Self>,
        change: impl FnOnce(&mut Accounts) -> Result<T, Refusal> + Send + 'static,
        then: impl FnOnce(&Self) + Send + 'static,
    ) -> Result<T, Refusal> {
        let login = Arc::clone(self);
        let changed = in_thread(&self.writer, move || {
            let changed = login.accounts.change(change);
            if changed.is_ok() {
                then(&login);
            }
            changed
        });
        changed
            .await
            .unwrap_or_else(|unfinished| Err(Refusal::Broken(unfinished.to_string())))
    }

    /// Forgets the uses of a key that was removed.
    pub(super) fn forget_key(&self, id: &str) {
        held(&self.key_uses).forget(id);
    }

    fn identify_key(&self, text: &str, shows: &Shows<'_>, now: Now) -> Result<Identified, Refusal> {
        let shown = Shown::parse(text).ok_or(Refusal::WrongKey)?;
        let accounts = self.accounts.current();
        let key = accounts.keys.get(shown.id).ok_or(Refusal::WrongKey)?;
        if !key.digest.is_of(&shown.secret) || key.is_expired(now.wall_millis) {
            return Err(Refusal::WrongKey);
        }
        let is_due = held(&self.key_uses).use_at(shown.id, key.used_at, now.wall_millis);
        Ok(Identified {
            caller: Caller::key(shown.id, key.scopes, shows.from),
            session: None,
            used_key: is_due.then(|| UsedKey {
                id: shown.id.into(),
                at: now.wall_millis,
            }),
        })
    }

    /// The live session of a request. Its role is that of the administrator now, not at the login.
    fn find_session(&self, shows: &Shows<'_>, now: Now) -> Option<(Caller, CurrentSession)> {
        let mut secrets = cookie::secrets(shows.headers, shows.is_tls);
        secrets.find_map(|secret| {
            let owner = held(&self.sessions).find(&secret, now)?;
            let name = &owner.administrator;
            let role = match owner.role {
                Some(role) => role,
                None => self.role_of(name)?,
            };
            let caller = Caller::session(name, role, shows.from);
            Some((caller, CurrentSession(secret)))
        })
    }
}

impl Login {
    /// The role of an administrator of the broker that may log in.
    fn role_of(&self, name: &str) -> Option<Role> {
        let accounts = self.accounts.current();
        let one = accounts.administrators.get(name)?;
        (!one.is_disabled).then_some(one.role)
    }
}

/// The key in an `Authorization: Bearer KEY`; none if it has another scheme.
fn bearer(field: &str) -> Option<&str> {
    let (scheme, text) = field.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| text.trim())
}

/// Refuses a change that a page of another origin sent, or one by cookie that no page of ours sent.
fn check_sender(shows: &Shows<'_>, session: Option<&CurrentSession>) -> Result<(), Refusal> {
    let sent_by = sent_by(shows.headers, shows.uri);
    let Some(session) = session else {
        // A login, or a setup: another page could log its visitor in as somebody else.
        return match sent_by {
            SentBy::OtherPage => Err(Refusal::OtherOrigin),
            SentBy::OwnPage | SentBy::Unknown => Ok(()),
        };
    };
    match sent_by {
        SentBy::OwnPage => {}
        SentBy::OtherPage => return Err(Refusal::OtherOrigin),
        SentBy::Unknown => return Err(Refusal::NoOrigin),
    }
    let token = shows.headers.get(TOKEN_HEADER);
    let token = token.and_then(|token| token.to_str().ok());
    if token.is_some_and(|token| session.0.is_token(token)) {
        Ok(())
    } else {
        Err(Refusal::NoToken)
    }
}

/// What a lock guards, also after a panic of another thread: every change under these locks is
/// complete before anything can panic.
pub(super) fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
