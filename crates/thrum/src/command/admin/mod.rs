//! `thrum admin`: who administers a broker.

mod add;
mod change;
mod ls;
mod place;
mod reset_password;
mod rm;
mod setup_url;

use std::process::ExitCode;

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  thrum admin setup-url --data-dir /var/lib/thrum     the link of the first start
  thrum admin ls --data-dir /var/lib/thrum
  thrum admin add bob --role operator                 asks for the password
  thrum admin change bob --role viewer
  thrum admin reset-password alice                    asks for the password

add, change, rm and reset-password also work while the broker is stopped.
Only the owner of the data directory and root can run this. Without --data-dir or -c the broker is that of /etc/thrum/thrum.toml.";

/// Arguments of `thrum admin`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct AdminArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a link that makes the first administrator, once; an earlier link is no longer valid.
    SetupUrl(setup_url::SetupUrlArgs),
    /// Give an administrator another password, and end its sessions.
    ResetPassword(reset_password::ResetPasswordArgs),
    /// List the administrators.
    Ls(ls::LsArgs),
    /// Add an administrator.
    Add(add::AddArgs),
    /// Change the role of an administrator, disable it, or remove its one-time codes.
    Change(change::ChangeArgs),
    /// Remove an administrator.
    Rm(rm::RmArgs),
}

/// Runs a command.
pub(crate) fn run(args: &AdminArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::SetupUrl(args) => setup_url::run(args)?,
        Action::ResetPassword(args) => reset_password::run(args)?,
        Action::Ls(args) => ls::run(args)?,
        Action::Add(args) => add::run(args)?,
        Action::Change(args) => change::run(args)?,
        Action::Rm(args) => rm::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}
