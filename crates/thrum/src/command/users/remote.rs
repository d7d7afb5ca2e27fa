//! Users, roles and groups of a running broker.

use serde::de::IgnoredAny;
use serde_json::{Value, json};
use thrum_access::Secret;
use thrum_auth::users::{RuleList, User as Stored};
use thrum_management::api::{RulePage, User, UserChanged, UsersImported};

use super::rights::{self, Rights, sentence};
use crate::command::Failure;
use crate::command::running::{Broker, JSON, Method, Request, encoded};
use crate::command::shown::counted;

/// Bytes of a file that a running broker takes, as `POST /import/users` has it.
const IMPORT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The user of that name.
pub(super) fn user(broker: &Broker, name: &str) -> anyhow::Result<User> {
    let found = broker.call(Method::Get, &path_of(name), "");
    found.map_err(|error| or_unknown(error, name))
}

/// Whether there is a user of that name, as far as the caller may know: a caller who may not read
/// users is told when the user is added.
pub(super) fn is_taken(broker: &Broker, name: &str) -> anyhow::Result<bool> {
    let found: anyhow::Result<User> = broker.call(Method::Get, &path_of(name), "");
    match found {
        Ok(_) => Ok(true),
        Err(error) => match code(&error) {
            Some(Failure::NOT_FOUND | Failure::DENIED) => Ok(false),
            _ => Err(error),
        },
    }
}

/// The names of all roles; none if the caller may not read them, or there are more than a page has.
fn roles(broker: &Broker) -> Option<Vec<String>> {
    let page: Value = broker.call(Method::Get, "/roles?limit=1000", "").ok()?;
    if page.get("next").is_some_and(|next| !next.is_null()) {
        return None;
    }
    let roles = page.get("roles")?.as_array()?.iter();
    Some(
        roles
            .filter_map(|role| Some(role.get("name")?.as_str()?.to_owned()))
            .collect(),
    )
}

/// Warns of roles that the broker does not have, as far as the caller may know.
pub(super) fn warn_of_missing_roles(broker: &Broker, of_user: &[Box<str>]) -> anyhow::Result<()> {
    let known = (!of_user.is_empty()).then(|| roles(broker)).flatten();
    if let Some(known) = known {
        rights::warn_of_missing_roles(of_user, |role| known.iter().any(|one| one == role))?;
    }
    Ok(())
}

/// Adds a user; returns what it may do.
pub(super) fn add(
    broker: &Broker,
    name: &str,
    user: &Stored,
    login: &NewLogin<'_>,
) -> anyhow::Result<String> {
    let body = json!({
        "name": name,
        "password": text(login.password)?,
        "scram": login.with_scram,
        "roles": user.roles,
        "groups": user.groups,
        "rules": user.rules.texts(),
        "superuser": user.is_superuser,
    });
    let added: User = broker.call(Method::Post, "/users", &body.to_string())?;
    Ok(describe(broker, &added))
}

/// How a user logs in.
pub(super) struct NewLogin<'a> {
    pub(super) password: &'a Secret,
    /// Also with SCRAM.
    pub(super) with_scram: bool,
}

/// Changes what the body names; returns what the user may do now.
pub(super) fn change(broker: &Broker, name: &str, body: &Value) -> anyhow::Result<String> {
    let changed = broker.call(Method::Patch, &path_of(name), &body.to_string());
    let changed: UserChanged = changed.map_err(|error| or_unknown(error, name))?;
    let rights = changed.user.as_ref().map(|user| describe(broker, user));
    Ok(format!(
        "{}{}",
        rights.unwrap_or_default(),
        disconnected(&changed)
    ))
}

/// Sets another password; returns what became of connected clients.
pub(super) fn set_password(
    broker: &Broker,
    name: &str,
    login: &NewLogin<'_>,
    disconnects: bool,
) -> anyhow::Result<String> {
    let body = json!({
        "password": text(login.password)?,
        "scram": login.with_scram.then_some(true),
        "disconnect": disconnects,
    });
    let path = format!("/users/{}/password", encoded(name));
    let changed = broker.call(Method::Post, &path, &body.to_string());
    let changed: UserChanged = changed.map_err(|error| or_unknown(error, name))?;
    let mut text = String::new();
    if changed.disconnected > 0 {
        text = format!("; disconnects {}", clients(changed.disconnected));
    }
    if changed.left > 0 {
        text.extend(["; still connected: ", &clients(changed.left)]);
    }
    Ok(text)
}

/// Removes users, all that are named or none; returns what became of their clients.
pub(super) fn remove(broker: &Broker, names: &[String]) -> anyhow::Result<String> {
    for name in names {
        user(broker, name)?;
    }
    let mut sum = UserChanged {
        user: None,
        disconnected: 0,
        left: 0,
    };
    for name in names {
        let removed = broker.call(Method::Delete, &path_of(name), "");
        let removed: UserChanged = removed.map_err(|error| or_unknown(error, name))?;
        sum.disconnected += removed.disconnected;
        sum.left += removed.left;
    }
    Ok(disconnected(&sum))
}

/// Imports a file; the query has its form. The file is named in errors.
pub(super) fn import(
    broker: &Broker,
    query: &str,
    body: &[u8],
    file: &str,
) -> anyhow::Result<UsersImported> {
    if body.len() > IMPORT_BYTES_MAX {
        return Err(Failure::usage(format!(
            "{file} has more than 16 MiB, which a running broker does not take at once: split it, or import it into the \
             file of the store with --users FILE, which the broker reads again within a second"
        )));
    }
    let path = format!("/import/users?{query}");
    broker.ask(&Request {
        method: Method::Post,
        path: &path,
        accept: JSON,
        body,
        body_type: "text/plain",
    })
}

/// Makes a role, or replaces it.
pub(super) fn set_role(broker: &Broker, name: &str, rules: &RuleList) -> anyhow::Result<()> {
    let body = json!({ "rules": rules.texts() });
    let path = format!("/roles/{}", encoded(name));
    let _: IgnoredAny = broker.call(Method::Put, &path, &body.to_string())?;
    Ok(())
}

/// Makes a group, or replaces it; the body has its roles and rules.
pub(super) fn set_group(broker: &Broker, name: &str, body: &Value) -> anyhow::Result<()> {
    let path = format!("/user-groups/{}", encoded(name));
    let _: IgnoredAny = broker.call(Method::Put, &path, &body.to_string())?;
    Ok(())
}

/// Removes a role.
pub(super) fn remove_role(broker: &Broker, name: &str) -> anyhow::Result<()> {
    broker.call(Method::Delete, &format!("/roles/{}", encoded(name)), "")
}

/// Removes a group.
pub(super) fn remove_group(broker: &Broker, name: &str) -> anyhow::Result<()> {
    let path = format!("/user-groups/{}", encoded(name));
    broker.call(Method::Delete, &path, "")
}

fn path_of(name: &str) -> String {
    format!("/users/{}", encoded(name))
}

fn text(password: &Secret) -> anyhow::Result<&str> {
    password.expose_str().ok_or_else(|| {
        Failure::usage(
            "the password is not text in UTF-8, which a running broker does not take; --users FILE sets it in the file \
             of the store",
        )
    })
}

fn code(error: &anyhow::Error) -> Option<u8> {
    error.downcast_ref().map(Failure::code)
}

/// The refusal in the words of these commands, if it is that nobody has the name.
fn or_unknown(error: anyhow::Error, name: &str) -> anyhow::Error {
    if code(&error) != Some(Failure::NOT_FOUND) {
        return error;
    }
    let what = format!("there is no user '{name}'; thrum users ls lists them");
    Failure::with_code(Failure::NOT_FOUND, what)
}

/// What the user may do, with the rules of its groups and roles if the caller may see them.
fn describe(broker: &Broker, user: &User) -> String {
    let mut rights = Rights {
        is_disabled: user.disabled,
        is_superuser: user.superuser,
        has_members: !user.roles.is_empty() || !user.groups.is_empty(),
        rules: user.rules.clone(),
    };
    if rights.has_members && !rights.is_disabled {
        let path = format!("/access/rules?limit=1000&user={}", encoded(&user.name));
        let page: anyhow::Result<RulePage> = broker.call(Method::Get, &path, "");
        if let Ok(page) = page {
            let own = page.rules.into_iter().filter(|rule| rule.of == "client");
            rights.rules = own.map(|rule| rule.rule).collect();
        }
    }
    sentence(&user.name, &rights)
}

fn clients(count: u64) -> String {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    counted(count, "client", "clients")
}

fn disconnected(changed: &UserChanged) -> String {
    let mut text = String::new();
    if changed.disconnected > 0 {
        text = format!("; disconnects {}", clients(changed.disconnected));
    }
    if changed.left > 0 {
        let left = clients(changed.left);
        text.extend([
            "; still connected, because the user store did not admit them: ",
            &left,
        ]);
    }
    text
}
