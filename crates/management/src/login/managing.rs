//! Changes of administrators, their one-time codes, and API keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use thrum_access::Secret;
use zeroize::Zeroizing;

use super::accounts::{Accounts, KEYS_MAX};
use super::administrator::{AdministratorState, check_name, check_password};
use super::base32;
use super::digest::{self, Digest};
use super::key::{self, Key};
use super::logging_in::administrator;
use super::refusal::Refusal;
use super::scope::{Role, ScopeSet};
use super::service::{CurrentSession, Login, held};
use super::totp::{self, Totp};
use crate::thing::Thing;

/// Recovery codes of an administrator.
const RECOVERY_CODES: usize = 10;
/// Random bytes of each: as it is used offline by nobody, 80 bits are far too many to guess.
const RECOVERY_BYTES: usize = 10;
/// Letters between two hyphens of a recovery code.
const RECOVERY_GROUP: usize = 4;
/// Most bytes of a key's label.
const LABEL_BYTES_MAX: usize = 100;
/// Longest time until a key expires: 100 years. Later times cannot all be written.
const EXPIRY_MILLIS_MAX: u64 = 100 * 31_557_600_000;

/// What changes of an administrator.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AdministratorChange {
    /// Another role.
    pub(crate) role: Option<Role>,
    /// May it log in?
    pub(crate) is_disabled: Option<bool>,
    /// It logs in without a one-time code from now on.
    pub(crate) removes_totp: bool,
}

impl AdministratorState {
    /// The state after a change.
    pub(crate) fn changed(self, change: AdministratorChange) -> Self {
        Self {
            role: change.role.unwrap_or(self.role),
            is_disabled: change.is_disabled.unwrap_or(self.is_disabled),
            has_totp: self.has_totp && !change.removes_totp,
        }
    }
}

/// What comes with another password.
#[derive(Clone, Default)]
pub(crate) struct NewPassword {
    /// The session that goes on.
    pub(crate) session: Option<CurrentSession>,
    /// It logs in without a one-time code from now on.
    pub(crate) removes_totp: bool,
}

/// A new API key.
#[derive(Clone, Debug)]
pub(crate) struct NewKey {
    /// A text for people.
    pub(crate) label: String,
    /// What it may do.
    pub(crate) scopes: ScopeSet,
    /// Milliseconds of the Unix epoch; none if it does not expire.
    pub(crate) expires_at: Option<u64>,
    /// Who makes it.
    pub(crate) created_by: String,
}

/// An API key that was added.
#[derive(Debug)]
pub(crate) struct AddedKey {
    /// Its identifier.
    pub(crate) id: String,
    /// Its text, shown once.
    pub(crate) text: Zeroizing<String>,
}

/// The secret of one-time codes, as an app takes it.
#[derive(Debug)]
pub(crate) struct NewTotp {
    /// In base32, to be typed.
    pub(crate) secret: Zeroizing<String>,
    /// The address in a QR code.
    pub(crate) address: String,
}

impl Login {
    /// Adds an administrator.
    ///
    /// # Errors
    /// Name or password are not accepted, it exists, or the disk fails.
    pub(crate) async fn add_administrator(
        self: &Arc<Self>,
        name: String,
        role: Role,
        password: Secret,
    ) -> Result<(), Refusal> {
        check_name(&name)?;
        check_password(&name, &password)?;
        let hash = self.hashing.create(password, true).await?;
        let created_at = self.now().wall_millis;
        let add = move |accounts: &mut Accounts| {
            accounts.add(&name, administrator(role, hash, created_at))
        };
        // A link that nobody used would make another one.
        self.change_then(add, |login| held(&login.setup).end())
            .await
    }

    /// Changes an administrator; one that may no longer log in loses its sessions.
    ///
    /// # Errors
    /// There is none of that name, it is the last one, or the disk fails.
    pub(crate) async fn change_administrator(
        self: &Arc<Self>,
        name: String,
        change: AdministratorChange,
    ) -> Result<(), Refusal> {
        let changed = name.clone();
        let make = move |accounts: &mut Accounts| {
            let one = accounts.administrator_mut(&changed)?;
            one.role = change.role.unwrap_or(one.role);
            one.is_disabled = change.is_disabled.unwrap_or(one.is_disabled);
            if change.removes_totp {
                one.remove_totp();
            }
            accounts.check_somebody_is_left(&changed)
        };
        let then = move |login: &Self| {
            if change.is_disabled == Some(true) {
                held(&login.sessions).end_all_of(&name, None);
            }
            if change.removes_totp {
                held(&login.codes).forget(&name);
            }
        };
        self.change_then(make, then).await
    }

    /// Removes an administrator and its sessions. Keys that it made stay.
    ///
    /// # Errors
    /// There is none of that name, it is the last one, or the disk fails.
    pub(crate) async fn remove_administrator(
        self: &Arc<Self>,
        name: String,
    ) -> Result<(), Refusal> {
        let removed = name.clone();
        let remove = move |accounts: &mut Accounts| {
            accounts.administrator(&removed)?;
            accounts.administrators.remove(&*removed);
            accounts.check_somebody_is_left(&removed)
        };
        let then = move |login: &Self| {
            // One of the same name that is added later has none of its sessions.
            held(&login.sessions).end_all_of(&name, None);
            held(&login.codes).forget(&name);
            let accounts = login.current();
            let names = accounts.administrators.keys().map(|name| &**name);
            let names: BTreeSet<&str> = names.collect();
            held(&login.attempts).keep_only(&names);
        };
        self.change_then(remove, then).await
    }

    /// Gives an administrator another password, and ends its sessions except one; on demand it logs
    /// in without a one-time code from now on.
    ///
    /// # Errors
    /// There is none of that name, the password is not accepted, or the disk fails.
    pub(crate) async fn set_password(
        self: &Arc<Self>,
        name: String,
        password: Secret,
        new: NewPassword,
    ) -> Result<(), Refusal> {
        self.current().administrator(&name)?;
        check_password(&name, &password)?;
        let hash = self.hashing.create(password, true).await?;
        let changed = name.clone();
        let removes_totp = new.removes_totp;
        let set = move |accounts: &mut Accounts| {
            let one = accounts.administrator_mut(&changed)?;
            one.password = hash;
            if removes_totp {
                one.remove_totp();
            }
            Ok(())
        };
        let but = new.session;
        let then = move |login: &Self| {
            let but = but.as_ref().map(|session| &session.0);
            held(&login.sessions).end_all_of(&name, but);
            if removes_totp {
                held(&login.codes).forget(&name);
            }
        };
        self.change_then(set, then).await
    }

    /// Makes a secret of one-time codes, which is in force when its first code was entered.
    ///
    /// # Errors
    /// There are no random numbers.
    pub(crate) fn begin_totp(&self, name: &str) -> Result<NewTotp, Refusal> {
        let totp = Totp::new(digest::random::<{ totp::SECRET_BYTES }>()?);
        let made = NewTotp {
            secret: totp.text(),
            address: totp.address(name),
        };
        let now = self.now();
        held(&self.codes).begin(name, totp, now);
        Ok(made)
    }

    /// Confirms the secret by its first code; returns recovery codes, which are shown once.
    ///
    /// # Errors
    /// The code is wrong, or the disk fails.
    pub(crate) async fn confirm_totp(
        self: &Arc<Self>,
        name: String,
        code: &str,
    ) -> Result<Vec<String>, Refusal> {
        let mut codes = Vec::with_capacity(RECOVERY_CODES);
        for _ in 0..RECOVERY_CODES {
            codes.push(base32::encode(&*digest::random::<RECOVERY_BYTES>()?));
        }
        let now = self.now();
        let totp = held(&self.codes).confirm(&name, code.trim(), now);
        let totp = totp.ok_or_else(|| {
            Refusal::Invalid("the code is wrong, or its secret is older than 10 minutes".to_owned())
        })?;
        let kept = codes
            .iter()
            .map(|code| Digest::of(code.as_bytes()))
            .collect();
        let done = self.change(move |accounts| {
            let one = accounts.administrator_mut(&name)?;
            one.totp = Some(totp);
            one.recovery = kept;
            Ok(())
        });
        done.await?;
        Ok(codes.iter().map(|code| grouped(code)).collect())
    }

    /// Adds an API key.
    ///
    /// # Errors
    /// It has no scope, there are too many, or the disk fails.
    pub(crate) async fn add_key(self: &Arc<Self>, new: NewKey) -> Result<AddedKey, Refusal> {
        let now = self.now().wall_millis;
        new.check(now)?;
        let secret = digest::random::<{ key::SECRET_BYTES }>()?;
        let id = key::id_of(*digest::random::<{ key::ID_BYTES }>()?);
        let text = key::text_of(&id, &secret);
        let added = Key {
            label: new.label,
            digest: Digest::of(&*secret),
            scopes: new.scopes,
            created_by: new.created_by,
            created_at: now,
            expires_at: new.expires_at,
            used_at: None,
        };
        let made = id.clone();
        let done = self.change(move |accounts| {
            if accounts.keys.len() >= KEYS_MAX {
                return Err(Refusal::Full {
                    kind: Thing::ApiKey,
                    most: KEYS_MAX,
                });
            }
            if accounts.keys.contains_key(&*made) {
                return Err(Refusal::Exists {
                    kind: Thing::ApiKey,
                    name: made,
                });
            }
            accounts.keys.insert(made.into(), added);
            Ok(())
        });
        done.await?;
        Ok(AddedKey { id, text })
    }

    /// Removes an API key.
    ///
    /// # Errors
    /// There is none of that identifier, or the disk fails.
    pub(crate) async fn remove_key(self: &Arc<Self>, id: String) -> Result<(), Refusal> {
        let removed = id.clone();
        let remove = move |accounts: &mut Accounts| {
            accounts.key(&removed)?;
            accounts.keys.remove(&*removed);
            Ok(())
        };
        self.change_then(remove, move |login| login.forget_key(&id))
            .await
    }
}

impl NewKey {
    fn check(&self, wall_millis: u64) -> Result<(), Refusal> {
        let what = if self.scopes.is_empty() {
            "a key has at least one scope".to_owned()
        } else if self.label.is_empty() || self.label.len() > LABEL_BYTES_MAX {
            format!("a label has 1 to {LABEL_BYTES_MAX} bytes")
        } else if self.label.contains(char::is_control) {
            "a label has no control characters".to_owned()
        } else if self.expires_at.is_some_and(|at| at <= wall_millis) {
            "the key would have expired already".to_owned()
        } else if self
            .expires_at
            .is_some_and(|at| at - wall_millis > EXPIRY_MILLIS_MAX)
        {
            let secs = EXPIRY_MILLIS_MAX / 1000;
            format!(
                "a key expires within {secs} s (100 years), or never: expires_secs is at most that, or null"
            )
        } else {
            return Ok(());
        };
        Err(Refusal::Invalid(what))
    }
}

/// With hyphens, to be written down.
fn grouped(code: &str) -> String {
    let mut text = String::with_capacity(code.len() + code.len() / RECOVERY_GROUP);
    for (place, letter) in code.chars().enumerate() {
        if place > 0 && place % RECOVERY_GROUP == 0 {
            text.push('-');
        }
        text.push(letter);
    }
    text
}
