//! `thrum users roles` and `thrum users groups`.

use std::io::Write as _;

use clap::{Args, Subcommand};
use serde_json::json;
use thrum_auth::users::{Group, Role, UserStore};

use super::ls::listed;
use super::place::Place;
use super::rights::{RuleArgs, check_name, names};
use crate::command::Failure;
use crate::command::shown::{counted, name as shown_name, table};

/// Arguments of `thrum users roles`.
#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub(super) struct RolesArgs {
    #[command(subcommand)]
    action: RoleAction,
}

#[derive(Debug, Subcommand)]
enum RoleAction {
    /// List the roles.
    Ls(LsArgs),
    /// Make a role, or replace its rules.
    Set(SetRoleArgs),
    /// Remove a role; users keep its name, without its rules.
    Rm(RmArgs),
}

/// Arguments of `thrum users groups`.
#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub(super) struct GroupsArgs {
    #[command(subcommand)]
    action: GroupAction,
}

#[derive(Debug, Subcommand)]
enum GroupAction {
    /// List the groups.
    Ls(LsArgs),
    /// Make a group, or replace its roles and rules.
    Set(SetGroupArgs),
    /// Remove a group; users keep its name, without its roles and rules.
    Rm(RmArgs),
}

#[derive(Debug, Args)]
struct LsArgs {
    #[command(flatten)]
    place: Place,
    /// One line of JSON for each.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct SetRoleArgs {
    /// Its name.
    name: String,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    rules: RuleArgs,
}

#[derive(Debug, Args)]
struct SetGroupArgs {
    /// Its name.
    name: String,
    #[command(flatten)]
    place: Place,
    /// A role of the members; may be given more than once.
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,
    #[command(flatten)]
    rules: RuleArgs,
}

#[derive(Debug, Args)]
struct RmArgs {
    /// Its name.
    name: String,
    #[command(flatten)]
    place: Place,
}

/// Runs `thrum users roles`.
pub(super) fn run_roles(args: &RolesArgs) -> anyhow::Result<()> {
    match &args.action {
        RoleAction::Ls(args) => list_roles(args),
        RoleAction::Set(args) => {
            check_name(&args.name)?;
            let rules = args.rules.parse(&format!("role {}", args.name))?;
            changed(&args.place, "set role", &args.name, |store| {
                store.set_role(&args.name, Role { rules });
                true
            })
        }
        RoleAction::Rm(args) => changed(&args.place, "removed role", &args.name, |store| {
            store.remove_role(&args.name).is_some()
        }),
    }
}

/// Runs `thrum users groups`.
pub(super) fn run_groups(args: &GroupsArgs) -> anyhow::Result<()> {
    match &args.action {
        GroupAction::Ls(args) => list_groups(args),
        GroupAction::Set(args) => {
            check_name(&args.name)?;
            let group = Group {
                roles: names(&args.roles)?,
                rules: args.rules.parse(&format!("group {}", args.name))?,
            };
            changed(&args.place, "set group", &args.name, |store| {
                store.set_group(&args.name, group);
                true
            })
        }
        GroupAction::Rm(args) => changed(&args.place, "removed group", &args.name, |store| {
            store.remove_group(&args.name).is_some()
        }),
    }
}

/// Changes the store and reports it; `change` is false if there was nothing to change.
fn changed(
    place: &Place,
    what: &str,
    name: &str,
    change: impl FnOnce(&mut UserStore) -> bool,
) -> anyhow::Result<()> {
    let mut locked = place.open()?;
    if !change(&mut locked.store) {
        return Err(Failure::usage(format!(
            "there is no '{name}', nothing was changed"
        )));
    }
    locked.save()?;
    writeln!(std::io::stderr(), "{what} {name}")?;
    Ok(())
}

fn list_roles(args: &LsArgs) -> anyhow::Result<()> {
    let store = args.place.read()?;
    let mut out = std::io::stdout().lock();
    if args.json {
        for (name, role) in store.roles() {
            writeln!(
                out,
                "{}",
                json!({ "role": name, "rules": role.rules.texts() })
            )?;
        }
        return Ok(());
    }
    let rows = store.roles();
    let rows = rows.map(|(name, role)| {
        vec![
            shown_name(name).into_owned(),
            listed(role.rules.texts(), "; "),
        ]
    });
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        writeln!(out, "{}", table(&["NAME", "RULES"], &rows))?;
    }
    writeln!(out, "{}", counted(rows.len(), "role", "roles"))?;
    Ok(())
}

fn list_groups(args: &LsArgs) -> anyhow::Result<()> {
    let store = args.place.read()?;
    let mut out = std::io::stdout().lock();
    if args.json {
        for (name, group) in store.groups() {
            let rules = group.rules.texts();
            let group = json!({ "group": name, "roles": group.roles, "rules": rules });
            writeln!(out, "{group}")?;
        }
        return Ok(());
    }
    let rows = store.groups();
    let rows = rows.map(|(name, group)| {
        vec![
            shown_name(name).into_owned(),
            listed(&group.roles, ","),
            listed(group.rules.texts(), "; "),
        ]
    });
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        writeln!(out, "{}", table(&["NAME", "ROLES", "RULES"], &rows))?;
    }
    writeln!(out, "{}", counted(rows.len(), "group", "groups"))?;
    Ok(())
}
