//! The built-in user store as a backend.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use aws_lc_rs::rand;
use thrum_access::{Login, Rules};
use thrum_scram::{Credential, Decoys};

use super::{Asked, Backend, BackendError, Found, Verdict};
use crate::config::USERS;
use crate::hash::{Hasher, Requester};
use crate::users::{self, PasswordHash, RuleList, User, UserStore};
use crate::watched::Watched;

/// The store, and the verifier of its passwords.
#[derive(Debug)]
pub(crate) struct Users {
    file: Watched<Loaded>,
    hasher: Hasher,
    /// Chooses decoys when the store has no secret of its own to choose with.
    secret: [u8; 32],
}

/// The contents of the file.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) store: UserStore,
    /// Hashes to verify for users that do not exist: copies of existing ones, so that it takes as
    /// long.
    hashes: Vec<PasswordHash>,
    /// Credentials of users that do not exist; none without any user with a credential.
    decoys: Option<Decoys>,
    /// Rules of groups and roles that clients without rules of their own share. Guards the map
    /// only.
    shared: Mutex<BTreeMap<Membership, Arc<Rules>>>,
    /// Warnings for the administrator.
    pub(crate) warnings: Vec<String>,
}

/// Roles and groups of a client.
type Membership = (Vec<Box<str>>, Vec<Box<str>>);

/// Most hashes that are kept to choose a decoy from.
const DECOYS_MAX: usize = 1024;
/// Most combinations of roles and groups whose rules are shared; clients with others have a copy
/// each.
const SHARED_MAX: usize = 4096;

impl Loaded {
    /// Rules of a client: its own, then those of its groups and roles.
    pub(crate) fn rules(
        &self,
        own: Option<Rules>,
        roles: &[Box<str>],
        groups: &[Box<str>],
    ) -> Option<Arc<Rules>> {
        let Some(own) = own else {
            return self.shared_rules(roles, groups);
        };
        let others = self.store.rules_of(roles, groups).flat_map(RuleList::iter);
        let all: Rules = own.iter().chain(others).cloned().collect();
        Some(Arc::new(all))
    }

    fn shared_rules(&self, roles: &[Box<str>], groups: &[Box<str>]) -> Option<Arc<Rules>> {
        let mut lists = self.store.rules_of(roles, groups).peekable();
        lists.peek()?;
        let membership = (roles.to_vec(), groups.to_vec());
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rules) = shared.get(&membership) {
            return Some(Arc::clone(rules));
        }
        let rules: Arc<Rules> = Arc::new(lists.flat_map(RuleList::iter).cloned().collect());
        if shared.len() < SHARED_MAX {
            shared.insert(membership, Arc::clone(&rules));
        }
        Some(rules)
    }
}

impl Users {
    /// Reads the file; a missing one is an empty store.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn load(path: &Path, hasher: Hasher) -> Result<Self, String> {
        let mut secret = [0; 32];
        rand::fill(&mut secret).map_err(|_| "no random numbers")?;
        Ok(Self {
            file: Watched::load(path, load)?,
            hasher,
            secret,
        })
    }

    /// A store was set up, even if it is empty now.
    pub(crate) fn is_set_up(&self) -> bool {
        self.file.was_there()
    }

    /// A store was set up, and no user is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_set_up() && self.loaded().store.users().len() == 0
    }

    /// The contents that were read last.
    pub(crate) fn loaded(&self) -> Arc<Loaded> {
        self.file.current()
    }

    /// Reads the file that this process has just replaced: true if there is something new.
    ///
    /// # Errors
    /// It is invalid.
    pub(crate) fn reread_replaced(&self) -> Result<bool, String> {
        self.file.refresh_replaced()
    }

    /// The stored SCRAM credential of a user, or a decoy. Both are computed for every name.
    pub(crate) fn credential(&self, username: &str) -> Credential {
        let loaded = self.file.current();
        let decoy = match &loaded.decoys {
            Some(decoys) => decoys.credential(username),
            None => Decoys::new(&self.secret).credential(username),
        };
        let user = loaded.store.user(username);
        user.and_then(|user| user.scram.clone()).unwrap_or(decoy)
    }

    /// The hash that is verified for an unknown name: always the same one.
    fn decoy(&self, loaded: &Loaded, username: &str) -> Option<PasswordHash> {
        let tag = sign(&Key::new(HMAC_SHA256, &self.secret), username.as_bytes());
        let number = tag.as_ref().iter().take(4);
        let number = number.fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        let index = number.checked_rem(loaded.hashes.len())?;
        loaded.hashes.get(index).cloned()
    }

    /// Takes the time of a wrong password.
    async fn waste(&self, loaded: &Loaded, login: &Login) -> Result<(), BackendError> {
        let (Some(username), Some(password)) = (&login.identity.username, &login.password) else {
            return Ok(());
        };
        match self.decoy(loaded, username) {
            Some(hash) => {
                self.hasher
                    .waste(hash.expose(), password, Requester::login(login))
                    .await
            }
            None => Ok(()),
        }
    }

    async fn ask(&self, login: &Login) -> Result<Verdict, BackendError> {
        let loaded = self.file.current();
        let username = login.identity.username.as_deref();
        let Some((username, user)) =
            username.and_then(|name| Some((name, loaded.store.user(name)?)))
        else {
            return Ok(Verdict::Ignore);
        };
        if !login.is_username_verified {
            let Some(password) = &login.password else {
                return Ok(Verdict::Deny("no password".into()));
            };
            let Some(hash) = &user.password else {
                self.waste(&loaded, login).await?;
                return Ok(Verdict::Deny("a user without password".into()));
            };
            let requester = Requester::login(login);
            if !self
                .hasher
                .verify(hash.expose(), password, requester)
                .await?
            {
                return Ok(Verdict::Deny("wrong password".into()));
            }
        }
        if user.is_disabled {
            return Ok(Verdict::Deny(format!("{username:?} is disabled").into()));
        }
        Ok(Verdict::Allow(Box::new(found(username, user))))
    }
}

/// The user's entry in the store. The chain adds the rules of groups and roles.
pub(crate) fn found(username: &str, user: &User) -> Found {
    Found {
        username: Some(username.into()),
        roles: user.roles.clone(),
        groups: user.groups.clone(),
        rules: (!user.rules.is_empty()).then(|| user.rules.rules().clone()),
        is_superuser: user.is_superuser,
        ..Found::default()
    }
}

impl Backend for Users {
    fn name(&self) -> &str {
        USERS
    }

    fn login<'a>(&'a self, login: &'a Login) -> Asked<'a, Verdict> {
        Box::pin(self.ask(login))
    }

    fn takes_verified(&self) -> bool {
        true
    }

    fn refuse<'a>(&'a self, login: &'a Login) -> Asked<'a, ()> {
        Box::pin(async { self.waste(&self.file.current(), login).await })
    }

    fn reread(&self) -> Result<bool, String> {
        self.file.refresh()
    }
}

fn load(path: &Path) -> Result<Loaded, String> {
    if path.is_symlink() && !path.exists() {
        let shown = path.display();
        return Err(format!(
            "the user store {shown} is a link that leads nowhere: without it clients would need no credentials; mend or remove it"
        ));
    }
    let store = users::read(path).map_err(|error| error.to_string())?;
    let warnings = warnings(path, &store);
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    let hashes = store.users().filter_map(|(_, user)| user.password.clone());
    let hashes = hashes.take(DECOYS_MAX).collect();
    let credential = store.users().find_map(|(_, user)| user.scram.as_ref());
    let decoys = credential.map(Credential::decoys);
    Ok(Loaded {
        hashes,
        decoys,
        shared: Mutex::default(),
        store,
        warnings,
    })
}

/// Warnings for the administrator.
fn warnings(path: &Path, store: &UserStore) -> Vec<String> {
    let shown = path.display();
    let mut warnings = Vec::new();
    if thrum_files::is_open_to_others(path) {
        warnings.push(format!(
            "every user of this machine may read or change the user store {shown}: chmod 600 closes it"
        ));
    }
    if store.users().len() == 0 && path.exists() {
        warnings.push(format!(
            "the user store {shown} is empty: no user of it can log in, clients without credentials are \
             admitted as auth.anonymous says, and without a rule acl.default decides what they may do; thrum users \
             add NAME adds a user; to begin anew, stop the broker and remove the file"
        ));
    }
    warnings
}
