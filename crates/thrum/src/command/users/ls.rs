//! `thrum users ls`.

use std::io::Write as _;

use clap::Args;
use serde_json::{Value, json};
use thrum_auth::users::{PasswordHash, User};

use super::place::Place;
use crate::command::shown::{self, NOTHING, counted, table};

const HEADINGS: [&str; 6] = ["NAME", "PASSWORD", "STATE", "ROLES", "GROUPS", "RULES"];

/// Arguments of `thrum users ls`.
#[derive(Debug, Args)]
pub(super) struct LsArgs {
    #[command(flatten)]
    place: Place,
    /// Only names with this text in them.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    filter: String,
    /// One line of JSON for each user; no hashes.
    #[arg(long)]
    json: bool,
}

/// Lists.
pub(super) fn run(args: &LsArgs) -> anyhow::Result<()> {
    let store = args.place.read()?;
    let users = store.users();
    let users: Vec<_> = users
        .filter(|(name, _)| name.contains(&args.filter))
        .collect();
    let mut out = std::io::stdout().lock();
    if args.json {
        for (name, user) in &users {
            writeln!(out, "{}", as_json(name, user))?;
        }
        return Ok(());
    }
    if !users.is_empty() {
        let rows: Vec<_> = users
            .iter()
            .map(|(name, user)| columns(name, user))
            .collect();
        writeln!(out, "{}", table(&HEADINGS, &rows))?;
    }
    writeln!(out, "{}", counted(users.len(), "user", "users"))?;
    Ok(())
}

fn columns(name: &str, user: &User) -> Vec<String> {
    let password = user.password.as_ref().map(PasswordHash::algorithm);
    let ways: Vec<&str> = password
        .into_iter()
        .chain(user.scram.as_ref().map(|_| "scram"))
        .collect();
    let state = match (user.is_disabled, user.is_superuser) {
        (true, _) => "disabled",
        (false, true) => "superuser",
        (false, false) => NOTHING,
    };
    vec![
        shown::name(name).into_owned(),
        listed(&ways, "+"),
        state.to_owned(),
        listed(&user.roles, ","),
        listed(&user.groups, ","),
        listed(user.rules.texts(), "; "),
    ]
}

/// Names with something between them; a dash for none.
pub(super) fn listed<T: AsRef<str>>(names: &[T], between: &str) -> String {
    if names.is_empty() {
        return NOTHING.to_owned();
    }
    let names: Vec<_> = names
        .iter()
        .map(|name| shown::name(name.as_ref()))
        .collect();
    names.join(between)
}

fn as_json(name: &str, user: &User) -> Value {
    json!({
        "user": name,
        "password": user.password.as_ref().map(PasswordHash::algorithm),
        "scram": user.scram.is_some(),
        "superuser": user.is_superuser,
        "disabled": user.is_disabled,
        "roles": user.roles,
        "groups": user.groups,
        "rules": user.rules.texts(),
    })
}
