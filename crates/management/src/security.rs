//! Who may ask a broker, and what its audit log keeps: opened once, used by every entrance.

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use thiserror::Error;
use thrum_access::Secret;
use thrum_auth::AuthService;

use crate::audit::{Audit, Change, Ended};
use crate::clock::Clock;
use crate::config::ManagementConfig;
use crate::counts::{Counts, Figure, InterfaceFigures};
use crate::login::{AccountsError, Caller, Login, Oidc, OidcError, Role, SessionTimes, oidc_of};

/// Administrators, sessions, keys and the audit log of a broker.
#[derive(Clone, Debug)]
pub struct Security {
    pub(crate) login: Arc<Login>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) counts: Arc<Counts>,
    /// Authentication of MQTT clients; none without.
    pub(crate) clients: Option<Arc<AuthService>>,
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

/// Settings that were found valid, and are not in force.
#[derive(Debug)]
pub struct PreparedSettings {
    oidc: Option<Oidc>,
    times: SessionTimes,
    audit_bytes: u64,
}

impl PreparedSettings {
    /// Reads the files that the settings name.
    ///
    /// # Errors
    /// The settings of the provider cannot be used.
    pub fn of(settings: &ManagementConfig) -> Result<Self, OidcError> {
        Ok(Self {
            oidc: oidc_of(&settings.oidc)?,
            times: SessionTimes {
                idle: settings.session_idle,
                life: settings.session_life,
            },
            audit_bytes: settings.audit,
        })
    }
}

impl Security {
    /// Reads administrators, keys and the audit log in a data directory. Without one they are in
    /// memory. Without settings the defaults are in force.
    ///
    /// # Errors
    /// A file cannot be read, or is damaged; the settings of the provider cannot be used.
    pub fn open(
        data_dir: Option<&Path>,
        settings: Option<&ManagementConfig>,
    ) -> Result<Self, SecurityError> {
        let clock = Clock::start();
        let audit = Audit::open(data_dir, clock.clone()).map_err(SecurityError::Audit)?;
        let security = Self {
            login: Arc::new(Login::open(data_dir, clock)?),
            audit: Arc::new(audit),
            counts: Arc::default(),
            clients: None,
        };
        if let Some(settings) = settings {
            security.put_in_force(PreparedSettings::of(settings)?);
        }
        Ok(security)
    }

    /// Puts other settings in force, at once and for sessions that are there.
    pub fn put_in_force(&self, settings: PreparedSettings) {
        let PreparedSettings {
            oidc,
            times,
            audit_bytes,
        } = settings;
        self.login.apply(oidc, times);
        self.audit.set_bytes_max(audit_bytes);
    }

    /// With the authentication of MQTT clients, whose users and rules can then be managed.
    #[must_use]
    pub fn with_clients(self, clients: Arc<AuthService>) -> Self {
        Self {
            clients: Some(clients),
            ..self
        }
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

    /// The figures of the interface since the start of the broker.
    pub fn figures(&self) -> InterfaceFigures {
        let [sessions, forgotten_sessions, forgotten_attempts] = self.login.table_figures();
        let figure = |label, value| Figure { label, value };
        InterfaceFigures {
            logins: self.counts.logins(),
            refusals: self.counts.refusals(),
            answers: self.counts.answers(),
            sessions,
            forgotten: vec![
                figure("sessions", forgotten_sessions),
                figure("attempts", forgotten_attempts),
            ],
            audit_failures: self.audit.failures(),
            audit_left_out: self.audit.refusals_left_out(),
            audit_looks_refused: self.audit.looks_refused(),
            benchmarks: None,
        }
    }

    /// Why the audit log cannot be written; none if the last write succeeded.
    pub fn audit_failure(&self) -> Option<String> {
        self.audit.failure()
    }

    /// Whether an administrator exists.
    pub fn is_set_up(&self) -> bool {
        self.login.is_set_up()
    }
}
