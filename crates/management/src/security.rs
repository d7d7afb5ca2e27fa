//! Who may ask a broker, and what its audit log keeps: opened once, used by every entrance.

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use thiserror::Error;
use thrum_access::Secret;

use crate::audit::{Audit, Change, Ended};
use crate::clock::Clock;
use crate::login::{AccountsError, Caller, Login, OidcConfig, OidcError, Role};

/// Administrators, sessions, keys and the audit log of a broker.
#[derive(Clone, Debug)]
pub struct Security {
    pub(crate) login: Arc<Login>,
    pub(crate) audit: Arc<Audit>,
}

/// Why the interface cannot be opened.
#[derive(Debug, Error)]
pub enum SecurityError {
    /// The administrators cannot be read.
    #[error(transparent)]
    Accounts(#[from] AccountsError),
    /// The settings of the OpenID Connect provider cannot be used.
    #[error(transparent)]
    Oidc(#[from] OidcError),
    /// The audit log cannot be opened.
    #[error("cannot open the audit log in the data directory: {0}")]
    Audit(#[source] io::Error),
    /// The first administrator cannot be made.
    #[error("cannot make the first administrator: {0}")]
    First(String),
}

impl Security {
    /// Reads administrators, keys and the audit log in a data directory. Without one they are in
    /// memory. With a provider people can log in there as well.
    ///
    /// # Errors
    /// A file cannot be read, or is damaged; the settings of the provider cannot be used.
    pub fn open(data_dir: Option<&Path>, oidc: Option<&OidcConfig>) -> Result<Self, SecurityError> {
        let clock = Clock::start();
        let audit = Audit::open(data_dir, clock.clone()).map_err(SecurityError::Audit)?;
        let mut login = Login::open(data_dir, clock)?;
        if let Some(oidc) = oidc {
            login = login.with_oidc(oidc)?;
        }
        Ok(Self {
            login: Arc::new(login),
            audit: Arc::new(audit),
        })
    }

    /// Makes the first administrator, `admin`, unless there is one; returns whether it did.
    ///
    /// # Errors
    /// The password is not accepted, or the disk fails.
    pub fn make_first_administrator(&self, password: &Secret) -> Result<bool, SecurityError> {
        if self.login.is_set_up() {
            return Ok(false);
        }
        let failed = |error: &dyn std::error::Error| SecurityError::First(error.to_string());
        let caller = Caller::local();
        let change = Change::new("administrator.add", "admin");
        let change = change.after(json!({ "role": Role::Administrator.name(), "setup": "file" }));
        let pending = self.audit.begin(&caller, change);
        let pending = pending.map_err(|error| failed(&error))?;
        let made = self.login.make_first(password);
        let ended = match &made {
            Ok(_) => Ended::done(),
            Err(error) => Ended::failed(&error.to_string()),
        };
        self.audit.finish(&pending, ended);
        made.map_err(|error| failed(&error))
    }

    /// A link that makes the first administrator, once, relative to the address of the port; none
    /// if there is an administrator.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn setup_link(&self) -> Result<Option<String>, SecurityError> {
        if self.login.is_set_up() {
            return Ok(None);
        }
        let token = self.login.renew_setup();
        let token = token.map_err(|error| SecurityError::First(error.to_string()))?;
        Ok(Some(format!("setup?t={}", *token)))
    }

    /// Whether an administrator exists.
    pub fn is_set_up(&self) -> bool {
        self.login.is_set_up()
    }
}
