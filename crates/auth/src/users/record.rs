//! One line of the file.

use std::fmt;

use serde::{Deserialize, Serialize};
use thrum_scram::CredentialRecord;

use super::rule_list::RuleList;
use super::store::{Group, Role, User, UserStore};
use crate::hash::{self, HashError};

/// A password hash that can be verified; never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(Box<str>);

impl PasswordHash {
    /// Takes a stored hash.
    ///
    /// # Errors
    /// It could not be verified: unknown, damaged or too costly.
    pub fn parse(stored: &str) -> Result<Self, HashError> {
        hash::check(stored)?;
        Ok(Self(stored.into()))
    }

    /// Hashes a password as thrum does: see [`hash::create`].
    ///
    /// # Errors
    /// As [`hash::create`].
    pub fn of(password: &[u8]) -> Result<Self, HashError> {
        Ok(Self(hash::create(password)?.into()))
    }

    /// The text.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Name of its algorithm, for people: `argon2id`, `bcrypt`.
    pub fn algorithm(&self) -> &str {
        match self.0.split('$').nth(1).unwrap_or_default() {
            "2a" | "2b" | "2y" => "bcrypt",
            "6" => "mosquitto-sha512",
            "7" => "mosquitto-pbkdf2",
            name => name,
        }
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PasswordHash(***)")
    }
}

/// A line as it is written.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<Box<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    roles: Vec<Box<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<Box<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rules: Vec<String>,
    #[serde(skip_serializing_if = "is_false")]
    superuser: bool,
    #[serde(skip_serializing_if = "is_false")]
    disabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    scram: Option<CredentialRecord>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// The error in a name of a user, group or role; none if it is valid.
pub fn name_problem(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("a name is empty");
    }
    if name.len() > usize::from(u16::MAX) {
        return Some("a name is longer than 65,535 bytes");
    }
    name.contains(char::is_control)
        .then_some("a name has control characters")
}

/// Reads a line into the store.
///
/// # Errors
/// Its error, without any part of a password hash.
pub(super) fn read_line(text: &str, store: &mut UserStore) -> Result<(), String> {
    let line: Line = serde_json::from_str(text).map_err(|error| describe(&error))?;
    if let Some(problem) = line.name_problem() {
        return Err(problem.to_owned());
    }
    match (&line.user, &line.group, &line.role) {
        (Some(name), None, None) => {
            let name = name.clone();
            let user = line.into_user(&name)?;
            twice(store.set_user(&name, user).is_some(), "user", &name)
        }
        (None, Some(name), None) => {
            let name = name.clone();
            let (roles, rules) = line.into_members(&format!("group {name}"))?;
            let old = store.set_group(&name, Group { roles, rules });
            twice(old.is_some(), "group", &name)
        }
        (None, None, Some(name)) => {
            let name = name.clone();
            let (roles, rules) = line.into_members(&format!("role {name}"))?;
            if !roles.is_empty() {
                return Err("a role has no roles".to_owned());
            }
            twice(
                store.set_role(&name, Role { rules }).is_some(),
                "role",
                &name,
            )
        }
        _ => Err("expected one of the keys \"user\", \"group\" and \"role\"".to_owned()),
    }
}

impl Line {
    /// The error of any name in it.
    fn name_problem(&self) -> Option<&'static str> {
        let named = [&self.user, &self.group, &self.role];
        let members = self.roles.iter().chain(&self.groups);
        let mut names = members.chain(named.into_iter().flatten());
        names.find_map(|name| name_problem(name))
    }

    fn into_user(self, name: &str) -> Result<User, String> {
        Ok(User {
            password: password(self.password.as_deref(), name)?,
            roles: self.roles,
            groups: self.groups,
            rules: RuleList::parse(self.rules, &format!("user {name}"))?,
            is_superuser: self.superuser,
            is_disabled: self.disabled,
            scram: self.scram.map(TryInto::try_into).transpose()?,
        })
    }

    /// Roles and rules of a group or a role.
    fn into_members(self, source: &str) -> Result<(Vec<Box<str>>, RuleList), String> {
        let is_user =
            self.password.is_some() || self.scram.is_some() || self.superuser || self.disabled;
        if is_user || !self.groups.is_empty() {
            return Err(
                "a group or role has no password, scram, groups, superuser or disabled".to_owned(),
            );
        }
        Ok((self.roles, RuleList::parse(self.rules, source)?))
    }
}

fn twice(is_so: bool, kind: &str, name: &str) -> Result<(), String> {
    if is_so {
        return Err(format!("the {kind} {name:?} is there twice"));
    }
    Ok(())
}

fn password(stored: Option<&str>, name: &str) -> Result<Option<PasswordHash>, String> {
    let parsed = stored.map(PasswordHash::parse).transpose();
    parsed.map_err(|error| format!("password of {name:?}: {error}"))
}

/// The error's place and kind: its own text could repeat values.
fn describe(error: &serde_json::Error) -> String {
    let column = error.column();
    match error.classify() {
        serde_json::error::Category::Data => {
            let text = error.to_string();
            let is_about_keys =
                text.starts_with("unknown field") || text.starts_with("duplicate field");
            if is_about_keys {
                text
            } else {
                format!("a value of the wrong kind before column {column}")
            }
        }
        _ => format!("no JSON object, at column {column}"),
    }
}

/// A user as a line.
pub(super) fn user_line(name: &str, user: &User) -> serde_json::Result<String> {
    serde_json::to_string(&Line {
        user: Some(name.into()),
        password: user.password.as_ref().map(|hash| hash.0.clone()),
        roles: user.roles.clone(),
        groups: user.groups.clone(),
        rules: user.rules.texts().to_vec(),
        superuser: user.is_superuser,
        disabled: user.is_disabled,
        scram: user.scram.as_ref().map(Into::into),
        ..Line::default()
    })
}

/// A group as a line.
pub(super) fn group_line(name: &str, group: &Group) -> serde_json::Result<String> {
    serde_json::to_string(&Line {
        group: Some(name.into()),
        roles: group.roles.clone(),
        rules: group.rules.texts().to_vec(),
        ..Line::default()
    })
}

/// A role as a line.
pub(super) fn role_line(name: &str, role: &Role) -> serde_json::Result<String> {
    serde_json::to_string(&Line {
        role: Some(name.into()),
        rules: role.rules.texts().to_vec(),
        ..Line::default()
    })
}
