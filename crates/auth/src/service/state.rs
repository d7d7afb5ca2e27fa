//! One configuration, built.

use std::collections::BTreeMap;
use std::sync::Arc;

use thrum_access::{Admission, Denial, Identity, Login, Rules};
use thrum_codec::ReasonCode;

use super::chain::{Admitted, Chain};
use super::link::Link;
use super::settings::Settings;
use crate::backend::{Built, Users, build, found};
use crate::config::{Anonymous, USERS};
use crate::hash::Hasher;
use crate::metrics::Counters;
use crate::policy::PolicySource;

/// All state that a reload replaces.
#[derive(Debug)]
pub(super) struct State {
    pub(super) settings: Settings,
    pub(super) users: Option<Arc<Users>>,
    pub(super) links: Vec<Arc<Link>>,
    pub(super) policy: PolicySource,
    chains: BTreeMap<String, Arc<Chain>>,
    default: Arc<Chain>,
}

impl State {
    /// Builds it. Must be called in the runtime; does not wait for other systems.
    ///
    /// # Errors
    /// Every error.
    pub(super) fn build(
        settings: &Settings,
        hasher: &Hasher,
        counters: &dyn Fn(&str) -> Arc<Counters>,
    ) -> Result<Self, Vec<String>> {
        let mut auth = settings.auth.clone();
        auth.users = settings.users_file().unwrap_or_default();
        let mut problems = Vec::new();
        let built = build(&auth, &|name| hasher.counting(&counters(name)));
        let built = built.map_err(|more| problems.extend(more));
        let policy = PolicySource::load(&settings.acl).map_err(|more| problems.extend(more));
        let (Ok(Built { backends, users }), Ok(policy)) = (built, policy) else {
            return Err(problems);
        };
        let links = backends.into_iter();
        let links = links.map(|(name, backend)| Arc::new(Link::new(backend, counters(&name))));
        let links: Vec<Arc<Link>> = links.collect();
        // Beside other backends a missing store locks out its own users; as the only backend it
        // would lock out no client.
        if !links.iter().any(|link| &*link.name != USERS) {
            problems.extend(settings.missing_store());
        }
        let mut chain = |names: &[String], anonymous: Anonymous, key: &str| {
            let find = |name: &String| links.iter().find(|link| &*link.name == name);
            let unknown = names.iter().filter(|name| find(name).is_none());
            problems.extend(unknown.map(|name| unknown_name(name, key)));
            Arc::new(Chain {
                links: names.iter().filter_map(find).map(Arc::clone).collect(),
                anonymous,
                timeout: settings.auth.timeout,
            })
        };
        let names = settings.chain();
        let default = chain(&names, settings.auth.anonymous, "auth.chain");
        let mut chains = BTreeMap::new();
        for (listener, own) in &settings.listeners {
            let names = own.chain.as_ref().unwrap_or(&names);
            let anonymous = own.anonymous.unwrap_or(settings.auth.anonymous);
            let key = format!("listeners.{listener}.auth");
            chains.insert(listener.clone(), chain(names, anonymous, &key));
        }
        if !problems.is_empty() {
            problems.dedup();
            return Err(problems);
        }
        Ok(Self {
            settings: settings.clone(),
            users,
            links,
            policy,
            chains,
            default,
        })
    }

    /// The chain of a listener.
    pub(super) fn chain(&self, listener: &str) -> &Arc<Chain> {
        self.chains.get(listener).unwrap_or(&self.default)
    }

    /// Whether users or backends are set up.
    pub(super) fn has_users(&self) -> bool {
        let users = self.users.as_ref();
        // An existing empty store counts as set up: removing the last user must not admit all
        // clients.
        self.has_backends() || users.is_some_and(|users| users.is_set_up())
    }

    /// Whether a user store without a user is all that is set up.
    pub(super) fn has_only_an_empty_store(&self) -> bool {
        let users = self.users.as_ref();
        !self.has_backends() && users.is_some_and(|users| users.is_empty())
    }

    fn has_backends(&self) -> bool {
        self.links.iter().any(|link| &*link.name != USERS)
    }

    /// The user store that existed `before` and is now gone: continuing without it would admit
    /// clients without credentials.
    pub(super) fn store_that_is_gone(&self, before: &Self) -> Option<String> {
        let was_there = before.users.as_ref().is_some_and(|users| users.is_set_up());
        let is_there = self.users.as_ref().is_none_or(|users| users.is_set_up());
        let path = self.settings.users_file()?;
        let is_same = before.settings.users_file().as_ref() == Some(&path);
        (was_there && is_same && !is_there)
            .then(|| format!("the user store {} is gone", path.display()))
    }

    /// Reads changed files again; true if answers may differ now. Blocks.
    pub(super) fn reread(&self, mut bad: impl FnMut(&str, String)) -> bool {
        let mut has_changed = false;
        for link in &self.links {
            match link.backend.reread() {
                Ok(is_new) => has_changed |= is_new,
                Err(error) => bad(&link.name, error),
            }
        }
        self.policy.reread(|error| bad("acl", error)) | has_changed
    }

    /// The identity of an admitted client, and its own rules.
    pub(super) fn admission(&self, login: Login, admitted: Admitted) -> Admission {
        let mut identity = login.identity;
        if admitted.backend.is_none() && !login.is_username_verified {
            // An unverified name is not used.
            identity.username = None;
        }
        self.admission_of(identity, admitted)
    }

    /// The same for a client whose name is verified.
    pub(super) fn admission_of(&self, mut identity: Identity, admitted: Admitted) -> Admission {
        let Admitted { backend, found } = admitted;
        identity.username = found.username.or(identity.username);
        identity.roles = match &self.users {
            Some(users) => users.loaded().store.all_roles(&found.roles, &found.groups),
            None => found.roles,
        };
        identity.groups = found.groups;
        identity.claims = found.claims;
        identity.is_superuser = found.is_superuser;
        identity.backend = backend;
        Admission {
            rules: self.rules(found.rules, &identity),
            identity,
            expires_at: found.expires_at,
            refresh_secs: found.refresh_secs,
            data: None,
        }
    }

    /// An admitted client, with new rules of its own.
    pub(super) fn with_rules(&self, identity: &Identity, rules: Rules) -> Admission {
        Admission {
            rules: self.rules(Some(rules), identity),
            identity: identity.clone(),
            ..Admission::default()
        }
    }

    /// Rules of a client: its own, then those that the store has for its groups and roles.
    fn rules(&self, own: Option<Rules>, identity: &Identity) -> Option<Arc<Rules>> {
        match &self.users {
            Some(users) => users.loaded().rules(own, &identity.roles, &identity.groups),
            None => own.map(Arc::new),
        }
    }

    /// The user's present entry in the store.
    ///
    /// # Errors
    /// The user is gone, or may not log in any more.
    pub(super) fn user(&self, username: &str) -> Result<Admitted, Denial> {
        let users = self.users.as_ref();
        let loaded = users.map(|users| users.loaded());
        let user = loaded.as_ref().and_then(|it| it.store.user(username));
        match user {
            Some(user) if !user.is_disabled => Ok(Admitted {
                backend: Some(USERS.into()),
                found: found(username, user),
            }),
            Some(_) => Err(withdrawn(USERS, "disabled")),
            None => Err(withdrawn(USERS, "gone")),
        }
    }
}

pub(super) fn withdrawn(backend: &str, why: &str) -> Denial {
    Denial {
        reason: ReasonCode::NotAuthorized,
        what: "the user may no longer log in",
        detail: format!("{backend}: the user is {why}").into(),
    }
}

fn unknown_name(name: &str, key: &str) -> String {
    if name == USERS {
        return format!(
            "{key} names \"users\", but there is no file for it; set auth.users or node.data_dir"
        );
    }
    format!("{key} names {name:?}, but there is no table such as [auth.jwt.{name}]")
}
