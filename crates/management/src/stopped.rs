//! Administrators of a broker that is stopped, changed in its data directory.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use serde_json::{Value, json};
use thrum_access::Secret;
use thrum_files::{Folder, ListeningSocket};
use tokio::runtime::{Builder, Runtime};

use crate::SOCKET;
use crate::api::Problem;
use crate::audit::{Change, Ended};
use crate::login::{AdministratorChange, Caller, NewPassword, Refusal, Role};
use crate::security::{Security, SecurityError};

/// Why the directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoppedError {
    /// A broker runs there, or the system refuses.
    #[error("cannot use the data directory, which a broker may have: {0}")]
    InUse(#[source] io::Error),
    /// Its files cannot be used.
    #[error(transparent)]
    Security(#[from] SecurityError),
}

/// The administrators of a stopped broker. No broker starts in its directory meanwhile.
#[derive(Debug)]
pub struct StoppedBroker {
    security: Security,
    runtime: Runtime,
    _socket: ListeningSocket,
}

/// A change of its administrators.
#[derive(Debug)]
pub enum StoppedChange {
    /// Adds one.
    Add {
        /// Its role.
        role: Role,
        /// Its password.
        password: Secret,
    },
    /// Changes what is not none.
    Change {
        /// Its role.
        role: Option<Role>,
        /// May not log in.
        disabled: Option<bool>,
        /// It logs in without a one-time code from now on.
        remove_totp: bool,
    },
    /// Gives it another password.
    Password {
        /// The password.
        password: Secret,
        /// It logs in without a one-time code from now on.
        remove_totp: bool,
    },
    /// Removes it.
    Remove,
}

impl StoppedBroker {
    /// Takes the directory.
    ///
    /// # Errors
    /// A broker has it, or its files cannot be used.
    pub fn open(data_dir: &Path) -> Result<Self, StoppedError> {
        let folder = Folder::open(data_dir).map_err(StoppedError::InUse)?;
        // What a broker listens at: one that starts now says that its socket is in use.
        let socket = folder.listen(OsStr::new(SOCKET));
        let socket = socket.map_err(StoppedError::InUse)?;
        let runtime = Builder::new_current_thread().build();
        let security = Security::open(Some(data_dir), None)?;
        // The settings are not known here: the broker removes what is beyond them.
        security.audit.set_bytes_max(u64::MAX);
        Ok(Self {
            security,
            runtime: runtime.map_err(StoppedError::InUse)?,
            _socket: socket,
        })
    }

    /// Changes an administrator; the change is in the audit log, made by `local`.
    ///
    /// # Errors
    /// The same as those of the route of a running broker.
    pub fn change(&self, name: &str, change: StoppedChange) -> Result<(), Problem> {
        let caller = Caller::local();
        let entry = change.entry(name);
        let audit = &self.security.audit;
        let pending = audit.begin(&caller, entry).map_err(Problem::from)?;
        let made = self.runtime.block_on(self.make(name.to_owned(), change));
        let ended = match &made {
            Ok(()) => Ended::done(),
            Err(refusal) => Ended::failed(&refusal.to_string()),
        };
        audit.finish(&pending, ended);
        made.map_err(Problem::from)
    }

    async fn make(&self, name: String, change: StoppedChange) -> Result<(), Refusal> {
        let login = &self.security.login;
        match change {
            StoppedChange::Add { role, password } => {
                login.add_administrator(name, role, password).await
            }
            StoppedChange::Change {
                role,
                disabled,
                remove_totp,
            } => {
                let change = AdministratorChange {
                    role,
                    is_disabled: disabled,
                    removes_totp: remove_totp,
                };
                login.change_administrator(name, change).await
            }
            StoppedChange::Password {
                password,
                remove_totp,
            } => {
                let new = NewPassword {
                    session: None,
                    removes_totp: remove_totp,
                };
                login.set_password(name, password, new).await
            }
            StoppedChange::Remove => login.remove_administrator(name).await,
        }
    }
}

impl StoppedChange {
    /// The line of the audit log, as the routes write it.
    fn entry(&self, name: &str) -> Change {
        let (action, after) = match self {
            Self::Add { role, .. } => ("administrator.add", json!({ "role": role.name() })),
            Self::Change {
                role,
                disabled,
                remove_totp,
            } => (
                "administrator.change",
                json!({
                    "role": role.map(Role::name),
                    "disabled": disabled,
                    "remove_totp": remove_totp,
                }),
            ),
            Self::Password { remove_totp, .. } => {
                ("password.reset", json!({ "remove_totp": remove_totp }))
            }
            Self::Remove => ("administrator.remove", Value::Null),
        };
        let change = Change::new(action, name);
        if after.is_null() {
            change
        } else {
            change.after(after)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWORD: &str = "correct horse battery";

    fn add(role: Role) -> StoppedChange {
        StoppedChange::Add {
            role,
            password: Secret::from(PASSWORD),
        }
    }

    #[test]
    fn no_file_of_the_audit_log_makes_room_while_the_broker_is_stopped() {
        let folder = std::env::temp_dir();
        let folder = folder.join(format!("thrum-stopped-audit-{}", std::process::id()));
        std::fs::remove_dir_all(&folder).ok();
        let log = folder.join("audit");
        std::fs::create_dir_all(&log).unwrap();
        for number in 1..=100 {
            // The last one is full, so that the next line begins another.
            let bytes = if number == 100 { 1 << 20 } else { 0 };
            let text = "x".repeat(bytes);
            std::fs::write(log.join(format!("{number:020}.jsonl")), text).unwrap();
        }
        let stopped = StoppedBroker::open(&folder).unwrap();
        stopped.change("alice", add(Role::Administrator)).unwrap();
        drop(stopped);
        assert_eq!(std::fs::read_dir(&log).unwrap().count(), 101);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn administrators_of_a_stopped_broker_are_changed_one_after_the_other() {
        let folder = std::env::temp_dir();
        let folder = folder.join(format!("thrum-stopped-{}", std::process::id()));
        std::fs::remove_dir_all(&folder).ok();
        std::fs::create_dir_all(&folder).unwrap();
        let stopped = StoppedBroker::open(&folder).unwrap();
        let in_use = StoppedBroker::open(&folder).unwrap_err().to_string();
        assert!(in_use.contains("which a broker may have"), "{in_use}");
        stopped.change("alice", add(Role::Administrator)).unwrap();
        stopped.change("bob", add(Role::Viewer)).unwrap();
        let change = StoppedChange::Change {
            role: Some(Role::Operator),
            disabled: None,
            remove_totp: true,
        };
        stopped.change("bob", change).unwrap();
        let password = StoppedChange::Password {
            password: Secret::from("another long password"),
            remove_totp: false,
        };
        stopped.change("bob", password).unwrap();
        let refused = stopped.change("alice", StoppedChange::Remove).unwrap_err();
        assert_eq!(
            (refused.status, &*refused.title),
            (409, "last administrator")
        );
        assert_eq!(
            stopped
                .change("eve", StoppedChange::Remove)
                .unwrap_err()
                .status,
            404
        );
        drop(stopped);
        let again = StoppedBroker::open(&folder).unwrap();
        let accounts = again.security.login.current();
        let bob = accounts.administrator("bob").unwrap();
        assert_eq!(bob.role, Role::Operator);
        let log = std::fs::read_dir(folder.join("audit")).unwrap();
        assert!(log.count() > 0, "the changes are in the audit log");
        drop(again);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
