//! Administrators and API keys: in memory, and as lines of a file that is replaced as a whole.
//!
//! ```text
//! {"administrator":"alice","role":"operator","password":"$argon2id$…","created_at":1790000000000}
//! {"key":"k7m2q5xa","label":"grafana","digest":"2bb8…","scopes":"metrics:read",…}
//! ```

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use thrum_auth::users::PasswordHash;
use thrum_files::{Folder, is_no_room};

use super::administrator::{Administrator, name_problem};
use super::digest::Digest;
use super::key::Key;
use super::refusal::Refusal;
use super::scope::{Role, Scope, ScopeSet};
use super::totp::Totp;
use crate::thing::Thing;

/// Name of the file in the data directory.
pub(super) const FILE: &str = "administrators.jsonl";
/// Administrators: people of one organisation.
pub(super) const ADMINISTRATORS_MAX: usize = 1000;
/// API keys: programs of one organisation; all of them are written with each change.
pub(super) const KEYS_MAX: usize = 1000;
/// Most bytes of a line.
const LINE_BYTES_MAX: u64 = 16 * 1024;

/// Why the file cannot be read.
#[derive(Debug, Error)]
pub enum AccountsError {
    /// The system refuses.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is damaged.
    #[error("{}:{line}: {what}; correct the line, or move the file away and set the broker up again", path.display())]
    Line {
        /// In which file.
        path: PathBuf,
        /// Which, from 1.
        line: usize,
        /// Its error, without a secret.
        what: String,
    },
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Accounts {
    /// By name.
    pub(crate) administrators: BTreeMap<Box<str>, Administrator>,
    /// By identifier.
    pub(crate) keys: BTreeMap<Box<str>, Key>,
}

impl Accounts {
    /// One that is there.
    pub(crate) fn administrator(&self, name: &str) -> Result<&Administrator, Refusal> {
        self.administrators.get(name).ok_or_else(|| missing(name))
    }

    /// One that is there, to be changed.
    pub(super) fn administrator_mut(&mut self, name: &str) -> Result<&mut Administrator, Refusal> {
        let found = self.administrators.get_mut(name);
        found.ok_or_else(|| missing(name))
    }

    /// A key that is there.
    pub(crate) fn key(&self, id: &str) -> Result<&Key, Refusal> {
        self.keys.get(id).ok_or_else(|| Refusal::Missing {
            kind: Thing::ApiKey,
            name: id.to_owned(),
        })
    }

    /// Adds one.
    pub(super) fn add(&mut self, name: &str, added: Administrator) -> Result<(), Refusal> {
        if self.administrators.contains_key(name) {
            return Err(Refusal::Exists {
                kind: Thing::Administrator,
                name: name.to_owned(),
            });
        }
        if self.administrators.len() >= ADMINISTRATORS_MAX {
            return Err(Refusal::Full {
                kind: Thing::Administrator,
                most: ADMINISTRATORS_MAX,
            });
        }
        self.administrators.insert(name.into(), added);
        Ok(())
    }

    /// Refuses a state in which nobody could administer the broker, after a change of `name`.
    pub(super) fn check_somebody_is_left(&self, name: &str) -> Result<(), Refusal> {
        let mut all = self.administrators.values();
        let is_left = all.any(|one| !one.is_disabled && one.role.scopes().allows(Scope::Admin));
        if is_left {
            Ok(())
        } else {
            Err(Refusal::LastAdministrator(name.to_owned()))
        }
    }
}

fn missing(name: &str) -> Refusal {
    Refusal::Missing {
        kind: Thing::Administrator,
        name: name.to_owned(),
    }
}

/// The accounts in force, and their file.
#[derive(Debug)]
pub(super) struct AccountStore {
    /// Guards the pointer alone: readers copy it, and never wait for the disk.
    current: RwLock<Arc<Accounts>>,
    /// Held by whoever changes them, also while it writes; none without a data directory.
    folder: Mutex<Option<Folder>>,
}

impl AccountStore {
    /// Reads the file in a data directory; a missing one is empty. Without a directory everything
    /// is in memory.
    pub(super) fn open(data_dir: Option<&Path>) -> Result<Self, AccountsError> {
        let Some(data_dir) = data_dir else {
            return Ok(Self {
                current: RwLock::default(),
                folder: Mutex::new(None),
            });
        };
        let path = data_dir.join(FILE);
        let failed = |source| AccountsError::Read {
            path: path.clone(),
            source,
        };
        let folder = Folder::open(data_dir).map_err(failed)?;
        let accounts = read(&folder, &path)?;
        Ok(Self {
            current: RwLock::new(Arc::new(accounts)),
            folder: Mutex::new(Some(folder)),
        })
    }

    /// The accounts in force.
    pub(super) fn current(&self) -> Arc<Accounts> {
        let current = self.current.read();
        Arc::clone(&current.unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes them, one caller after the other: they are on the disk and in force when this
    /// returns, or all is as before. Waits for the disk.
    ///
    /// # Errors
    /// That of `change`; the disk fails.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut Accounts) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        let mut accounts = Accounts::clone(&self.current());
        let done = change(&mut accounts)?;
        if let Some(folder) = &*folder {
            save(folder, &accounts).map_err(|error| not_written(&error))?;
        }
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(accounts);
        Ok(done)
    }
}

fn not_written(error: &io::Error) -> Refusal {
    let what = format!("cannot write {FILE}: {error}");
    if is_no_room(error) {
        Refusal::NoRoom(what)
    } else {
        Refusal::Broken(what)
    }
}

fn read(folder: &Folder, path: &Path) -> Result<Accounts, AccountsError> {
    let failed = |source| AccountsError::Read {
        path: path.to_owned(),
        source,
    };
    let mut accounts = Accounts::default();
    let mut from = match folder.change(OsStr::new(FILE)) {
        Ok(file) => BufReader::new(file),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(accounts),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    for line in 1.. {
        let damaged = |what: String| AccountsError::Line {
            path: path.to_owned(),
            line,
            what,
        };
        bytes.clear();
        let mut part = from.by_ref().take(LINE_BYTES_MAX + 1);
        let len = part.read_until(b'\n', &mut bytes).map_err(failed)?;
        if len == 0 {
            break;
        }
        if len as u64 > LINE_BYTES_MAX || line > ADMINISTRATORS_MAX + KEYS_MAX {
            return Err(damaged("the line is too long, or one too many".to_owned()));
        }
        read_line(&bytes, &mut accounts).map_err(damaged)?;
    }
    Ok(accounts)
}

fn save(folder: &Folder, accounts: &Accounts) -> io::Result<()> {
    folder.replace(OsStr::new(FILE), |to| {
        let administrators = accounts.administrators.iter();
        let administrators = administrators.map(|(name, one)| Line::of_administrator(name, one));
        let keys = accounts.keys.iter();
        let keys = keys.map(|(id, key)| Line::of_key(id, key));
        for line in administrators.chain(keys) {
            serde_json::to_writer(&mut *to, &line)?;
            to.write_all(b"\n")?;
        }
        Ok(())
    })
}

/// A line as it is written.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    administrator: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    totp: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    recovery: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    disabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scopes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_by: Option<String>,
    created_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used_at: Option<u64>,
}

impl Line {
    fn of_administrator(name: &str, one: &Administrator) -> Self {
        Self {
            administrator: Some(name.into()),
            role: Some(one.role.to_string()),
            password: Some(one.password.expose().to_owned()),
            totp: one.totp.as_ref().map(|totp| totp.text().to_string()),
            recovery: one.recovery.iter().map(|code| code.to_hex()).collect(),
            disabled: one.is_disabled,
            created_at: one.created_at,
            ..Self::default()
        }
    }

    fn of_key(id: &str, key: &Key) -> Self {
        Self {
            key: Some(id.into()),
            label: Some(key.label.clone()),
            digest: Some(key.digest.to_hex()),
            scopes: Some(key.scopes.to_string()),
            created_by: Some(key.created_by.clone()),
            created_at: key.created_at,
            expires_at: key.expires_at,
            used_at: key.used_at,
            ..Self::default()
        }
    }

    fn into_administrator(self) -> Result<Administrator, String> {
        let role = self.role.ok_or("an administrator without role")?;
        let role = role.parse::<Role>().map_err(|error| error.to_string())?;
        let password = self.password.ok_or("an administrator without password")?;
        let password = PasswordHash::parse(&password).map_err(|error| error.to_string())?;
        let totp = self.totp.as_deref().map(Totp::parse);
        let recovery = self.recovery.iter().map(|text| Digest::from_hex(text));
        Ok(Administrator {
            role,
            password,
            totp: totp.map(|totp| totp.ok_or("damaged totp")).transpose()?,
            recovery: recovery
                .collect::<Option<_>>()
                .ok_or("a damaged recovery code")?,
            is_disabled: self.disabled,
            created_at: self.created_at,
        })
    }

    fn into_key(self) -> Result<Key, String> {
        let digest = self.digest.as_deref().and_then(Digest::from_hex);
        let scopes = self.scopes.unwrap_or_default();
        let scopes = scopes.split(',').filter(|name| !name.is_empty());
        let scopes = scopes.map(|name| name.parse::<Scope>().map_err(|error| error.to_string()));
        Ok(Key {
            label: self.label.unwrap_or_default(),
            digest: digest.ok_or("a key without digest, or a damaged one")?,
            scopes: scopes.collect::<Result<ScopeSet, String>>()?,
            created_by: self.created_by.unwrap_or_default(),
            created_at: self.created_at,
            expires_at: self.expires_at,
            used_at: self.used_at,
        })
    }
}

fn read_line(bytes: &[u8], accounts: &mut Accounts) -> Result<(), String> {
    // The text of the error would repeat a part of the line.
    let line: Line = serde_json::from_slice(bytes).map_err(|error| {
        format!(
            "no line of administrators and keys, at column {}",
            error.column()
        )
    })?;
    let is_first = match (&line.administrator, &line.key) {
        (Some(name), None) => {
            if let Some(problem) = name_problem(name) {
                return Err(problem.to_owned());
            }
            let name = name.clone();
            let one = line.into_administrator()?;
            accounts.administrators.insert(name, one).is_none()
        }
        (None, Some(id)) => {
            let id = id.clone();
            accounts.keys.insert(id, line.into_key()?).is_none()
        }
        _ => return Err("expected one of the keys administrator and key".to_owned()),
    };
    if is_first {
        Ok(())
    } else {
        Err("this administrator or key is there twice".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_apart_from_other_errors() {
        let full = not_written(&ErrorKind::StorageFull.into());
        assert!(matches!(full, Refusal::NoRoom(_)), "{full:?}");
        let denied = not_written(&ErrorKind::PermissionDenied.into());
        assert!(matches!(denied, Refusal::Broken(_)), "{denied:?}");
    }
}
