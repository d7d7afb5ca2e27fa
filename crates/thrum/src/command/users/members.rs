//! `thrum roles`, `thrum users roles` and `thrum users groups`.

use std::io::Write as _;

use clap::{Args, Subcommand};
use serde_json::json;
use thrum_auth::users::{Group, Role, UserStore};

use super::ls::{LsArgs, list, rules};
use super::place::{Place, Store};
#[cfg(feature = "management")]
use super::remote;
use super::rights::{RuleArgs, check_name, names};
use super::store_file::StoreFile;
use crate::command::Failure;
use crate::command::listing::{Cell, Column, Listing};

/// Arguments of `thrum roles` and `thrum users roles`.
#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct RolesArgs {
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

static ROLES: Listing = Listing {
    member: "roles",
    columns: &[
        Column::new("name", "NAME", Cell::Text(0)),
        Column::new("rules", "RULES", Cell::Own(rules)),
    ],
    one: "role",
    many: "roles",
    aliases: &[("role", "name")],
    identity: "name",
    sum: "",
};

static GROUPS: Listing = Listing {
    member: "groups",
    columns: &[
        Column::new("name", "NAME", Cell::Text(0)),
        Column::new("roles", "ROLES", Cell::Text(0)),
        Column::new("rules", "RULES", Cell::Own(rules)),
    ],
    one: "group",
    many: "groups",
    aliases: &[("group", "name")],
    identity: "name",
    sum: "",
};

/// Runs `thrum roles` and `thrum users roles`.
pub(super) fn run_roles(args: &RolesArgs) -> anyhow::Result<()> {
    match &args.action {
        RoleAction::Ls(args) => list(args, &ROLES, "/roles", |store| {
            let roles = store.roles();
            let row = |name, role: &Role| json!({ "name": name, "rules": role.rules.texts() });
            roles.map(|(name, role)| row(name, role)).collect()
        }),
        RoleAction::Set(args) => {
            let name = &args.name;
            check_name(name)?;
            let rules = args.rules.parse(&format!("role {name}"))?;
            match args.place.store()? {
                Store::File(file) => change(&file, |store| {
                    store.set_role(name, Role { rules });
                })?,
                #[cfg(feature = "management")]
                Store::Broker(broker) => remote::set_role(&broker, name, &rules)?,
            }
            said("set role", name)
        }
        RoleAction::Rm(args) => {
            let name = &args.name;
            match args.place.store()? {
                Store::File(file) => remove(&file, "role", name, |store| {
                    store.remove_role(name).is_some()
                })?,
                #[cfg(feature = "management")]
                Store::Broker(broker) => remote::remove_role(&broker, name)?,
            }
            said("removed role", name)
        }
    }
}

/// Runs `thrum users groups`.
pub(super) fn run_groups(args: &GroupsArgs) -> anyhow::Result<()> {
    match &args.action {
        GroupAction::Ls(args) => list(args, &GROUPS, "/user-groups", |store| {
            let groups = store.groups();
            let row = |name, group: &Group| {
                let rules = group.rules.texts();
                json!({ "name": name, "roles": group.roles, "rules": rules })
            };
            groups.map(|(name, group)| row(name, group)).collect()
        }),
        GroupAction::Set(args) => {
            let name = &args.name;
            check_name(name)?;
            let group = Group {
                roles: names(&args.roles)?,
                rules: args.rules.parse(&format!("group {name}"))?,
            };
            match args.place.store()? {
                Store::File(file) => change(&file, |store| {
                    store.set_group(name, group);
                })?,
                #[cfg(feature = "management")]
                Store::Broker(broker) => {
                    let rules = group.rules.texts();
                    let body = json!({ "roles": group.roles, "rules": rules });
                    remote::set_group(&broker, name, &body)?;
                }
            }
            said("set group", name)
        }
        GroupAction::Rm(args) => {
            let name = &args.name;
            match args.place.store()? {
                Store::File(file) => remove(&file, "group", name, |store| {
                    store.remove_group(name).is_some()
                })?,
                #[cfg(feature = "management")]
                Store::Broker(broker) => remote::remove_group(&broker, name)?,
            }
            said("removed group", name)
        }
    }
}

fn said(what: &str, name: &str) -> anyhow::Result<()> {
    writeln!(std::io::stderr(), "{what} {name}")?;
    Ok(())
}

fn change(file: &StoreFile, change: impl FnOnce(&mut UserStore)) -> anyhow::Result<()> {
    let mut locked = file.open()?;
    change(&mut locked.store);
    locked.save()?;
    Ok(())
}

/// `remove` is false if there was nothing to remove.
fn remove(
    file: &StoreFile,
    kind: &str,
    name: &str,
    remove: impl FnOnce(&mut UserStore) -> bool,
) -> anyhow::Result<()> {
    let mut locked = file.open()?;
    if !remove(&mut locked.store) {
        let list = match kind {
            "role" => "thrum roles ls",
            _ => "thrum users groups ls",
        };
        let what = format!("there is no {kind} \"{name}\"; list the {kind}s with {list}");
        return Err(Failure::with_code(Failure::NOT_FOUND, what));
    }
    locked.save()?;
    Ok(())
}
