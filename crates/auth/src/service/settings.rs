//! The settings to start and reload the service with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::config::{AclConfig, Anonymous, AuthConfig, USERS, USERS_FILE};

/// Settings of authentication and authorization, and the overrides of listeners.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// `[auth]`
    pub auth: AuthConfig,
    /// `[acl]`
    pub acl: AclConfig,
    /// Listeners by name; one that is not here has no settings of its own.
    pub listeners: BTreeMap<String, ListenerSettings>,
    /// `node.data_dir`, where the user store is by default; empty for none.
    pub data_dir: PathBuf,
}

/// The overrides of one listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenerSettings {
    /// Its chain, instead of `auth.chain`.
    pub chain: Option<Vec<String>>,
    /// Clients that may be anonymous, instead of `auth.anonymous`.
    pub anonymous: Option<Anonymous>,
}

impl Settings {
    /// The file of the user store; none without one.
    pub fn users_file(&self) -> Option<PathBuf> {
        if !self.auth.users.as_os_str().is_empty() {
            return Some(self.auth.users.clone());
        }
        let is_kept = !self.data_dir.as_os_str().is_empty();
        is_kept.then(|| self.data_dir.join(USERS_FILE))
    }

    /// The error for a store that is named and missing: mostly a typing error. The store of a data
    /// directory is created with its first user.
    pub fn missing_store(&self) -> Option<String> {
        let path = &self.auth.users;
        let is_missing = !path.as_os_str().is_empty() && !path.exists();
        is_missing.then(|| {
            let path = path.display();
            format!(
                "auth.users: there is no file {path}; make it with its first user: \
                 thrum users add NAME --users {path}"
            )
        })
    }

    /// The chain of listeners without their own.
    pub(super) fn chain(&self) -> Vec<String> {
        if !self.auth.chain.is_empty() {
            return self.auth.chain.clone();
        }
        let users = self.users_file().map(|_| USERS);
        let all = users.into_iter().chain(self.auth.backend_names());
        all.map(str::to_owned).collect()
    }
}
