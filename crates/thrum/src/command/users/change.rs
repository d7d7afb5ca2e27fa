//! `thrum users change`.

use std::io::Write as _;

use clap::{ArgAction, Args};
use thrum_auth::users::{RuleList, UserStore};
use thrum_settings::nearest;

use super::place::{Place, Store};
#[cfg(feature = "management")]
use super::remote;
use super::rights::{RuleArgs, describe, names, warn_of_missing_roles};
use super::store_file::StoreFile;
use crate::command::Failure;

/// Arguments of `thrum users change`.
#[derive(Debug, Args)]
#[command(
    after_help = "Values whose option is not given stay unchanged; an empty --role or --group means none."
)]
pub(super) struct ChangeArgs {
    /// User name.
    name: String,
    #[command(flatten)]
    place: Place,
    /// Roles of the user, instead of those it has.
    #[arg(long = "role", value_name = "ROLE")]
    roles: Option<Vec<String>>,
    /// Takes all roles away.
    #[arg(long, conflicts_with = "roles")]
    no_roles: bool,
    /// Groups of the user, instead of those it has.
    #[arg(long = "group", value_name = "GROUP")]
    groups: Option<Vec<String>>,
    /// Takes the user out of all groups.
    #[arg(long, conflicts_with = "groups")]
    no_groups: bool,
    #[command(flatten)]
    rules: RuleArgs,
    /// Removes all own rules; with --allow and --deny, before these are added.
    #[arg(long)]
    no_rules: bool,
    /// May do everything, or not.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    superuser: Option<bool>,
    /// May not log in, or may again.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    disabled: Option<bool>,
}

impl ChangeArgs {
    /// The roles that the user is to have; none if they stay.
    fn roles(&self) -> Option<Vec<String>> {
        let none = self.no_roles.then(Vec::new);
        none.or_else(|| self.roles.as_deref().map(given))
    }

    /// The same of groups.
    fn groups(&self) -> Option<Vec<String>> {
        let none = self.no_groups.then(Vec::new);
        none.or_else(|| self.groups.as_deref().map(given))
    }
}

/// Changes what is named.
pub(super) fn run(args: &ChangeArgs) -> anyhow::Result<()> {
    let name = &args.name;
    let (roles, groups) = (args.roles(), args.groups());
    let changes_nothing = roles.is_none()
        && groups.is_none()
        && args.rules.is_empty()
        && !args.no_rules
        && args.superuser.is_none()
        && args.disabled.is_none();
    if changes_nothing {
        return Err(Failure::usage(
            "nothing to change; name it with --allow, --deny, --no-rules, --role, --no-roles, --group, --no-groups, --superuser or --disabled",
        ));
    }
    let new_rules = args.rules.parse(&format!("user {name}"))?;
    let rights = match args.place.store()? {
        Store::File(file) => change_file(args, new_rules, &file)?,
        #[cfg(feature = "management")]
        Store::Broker(broker) => {
            let texts = new_rules.texts();
            let (rules, add_rules) = match (args.no_rules, new_rules.is_empty()) {
                (true, _) => (Some(texts), None),
                (false, true) => (None, None),
                (false, false) => (None, Some(texts)),
            };
            let body = serde_json::json!({
                "roles": roles,
                "groups": groups,
                "rules": rules,
                "add_rules": add_rules,
                "superuser": args.superuser,
                "disabled": args.disabled,
            });
            let rights = remote::change(&broker, name, &body)?;
            let roles = names(&roles.unwrap_or_default())?;
            remote::warn_of_missing_roles(&broker, &roles)?;
            rights
        }
    };
    writeln!(std::io::stderr(), "{rights}")?;
    Ok(())
}

fn change_file(args: &ChangeArgs, new_rules: RuleList, file: &StoreFile) -> anyhow::Result<String> {
    let name = &args.name;
    let mut locked = file.open()?;
    let Some(mut user) = locked.store.remove_user(name) else {
        return Err(unknown(name, &locked.store));
    };
    let roles = args.roles();
    if let Some(roles) = &roles {
        user.roles = names(roles)?;
    }
    if let Some(groups) = args.groups() {
        user.groups = names(&groups)?;
    }
    if args.no_rules {
        user.rules = new_rules;
    } else if !new_rules.is_empty() {
        let source = format!("user {name}");
        let all = user.rules.with(&new_rules, &source);
        user.rules = all.map_err(Failure::usage)?;
    }
    user.is_superuser = args.superuser.unwrap_or(user.is_superuser);
    user.is_disabled = args.disabled.unwrap_or(user.is_disabled);
    let text = describe(name, &user, &locked.store);
    locked.store.set_user(name, user);
    locked.save()?;
    let roles = names(&roles.unwrap_or_default())?;
    warn_of_missing_roles(&roles, |role| locked.store.role(role).is_some())?;
    Ok(text)
}

/// `--role ''` stands for none.
fn given(names: &[String]) -> Vec<String> {
    names
        .iter()
        .filter(|name| !name.is_empty())
        .cloned()
        .collect()
}

/// The user does not exist.
pub(super) fn unknown(name: &str, store: &UserStore) -> anyhow::Error {
    let near = nearest(name, store.users().map(|(known, _)| known));
    let hint = near.map_or_else(
        || format!("thrum users add {name} adds it"),
        |near| format!("did you mean '{near}'?"),
    );
    let what = format!("there is no user '{name}'; {hint}");
    Failure::with_code(Failure::NOT_FOUND, what)
}
