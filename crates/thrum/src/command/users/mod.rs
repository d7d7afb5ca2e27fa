//! `thrum users`: users and their rights.

mod add;
mod change;
mod import;
mod ls;
mod members;
mod passwd;
mod password;
mod place;
#[cfg(feature = "management")]
mod remote;
mod rights;
mod rm;
mod store_file;

use std::process::ExitCode;

use clap::{Args, Subcommand};

pub(crate) use members::RolesArgs;
#[cfg(feature = "management")]
pub(super) use password::PasswordArgs;

const EXAMPLES: &str = "\
Examples:
  thrum users add alice --allow 'pubsub devices/%c/#'     asks for the password
  thrum users add meter-7 --password-file secret.txt --role meter
  thrum users roles set meter --allow 'pub meters/%u/#'   rights of this role
  thrum users change alice --disabled true
  thrum users import passwd --format mosquitto
  thrum users ls --filter disabled=true -o json
  thrum users ls --url https://broker.example:8080

A running broker is asked, and applies changes at once; while none runs, its file is changed. Without --data-dir, -c, --url, --context or --users the \
broker is that of thrum context, else that of /etc/thrum/thrum.toml.";

/// Arguments of `thrum users`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct UsersArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Add a user.
    Add(add::AddArgs),
    /// Change what a user may do.
    Change(change::ChangeArgs),
    /// Give a user a new password.
    Passwd(passwd::PasswdArgs),
    /// List the users.
    Ls(ls::LsArgs),
    /// Remove users.
    Rm(rm::RmArgs),
    /// Add the users of another program.
    Import(import::ImportArgs),
    /// List, set and remove roles: rules with a name.
    Roles(RolesArgs),
    /// List, set and remove groups: roles and rules that their members have in common.
    Groups(members::GroupsArgs),
}

/// Runs one of them.
///
/// # Errors
/// The store cannot be read or written, or the request makes no sense.
pub(crate) fn run(args: UsersArgs) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Add(args) => add::run(&args)?,
        Action::Change(args) => change::run(&args)?,
        Action::Passwd(args) => passwd::run(&args)?,
        Action::Ls(args) => ls::run(&args)?,
        Action::Rm(args) => rm::run(&args)?,
        Action::Import(args) => import::run(&args)?,
        Action::Roles(args) => members::run_roles(&args)?,
        Action::Groups(args) => members::run_groups(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `thrum roles`.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_roles(args: &RolesArgs) -> anyhow::Result<ExitCode> {
    members::run_roles(args)?;
    Ok(ExitCode::SUCCESS)
}
