//! `thrum bans`: the list of banned clients, users and addresses.

mod add;
mod ls;
mod place;
#[cfg(feature = "management")]
mod remote;
mod rm;
mod subject;

use std::process::ExitCode;

use clap::{Args, Subcommand};
#[cfg(feature = "management")]
pub(super) use remote::warn_of_late;

const EXAMPLES: &str = "\
Examples:
  thrum bans add --client-id meter-17 --for 1h --reason 'sends garbage' --data-dir /var/lib/thrum
  thrum bans add --address 192.0.2.0/24 --data-dir /var/lib/thrum
  thrum bans ls --data-dir /var/lib/thrum
  thrum bans ls --filter by=flapping --sort until --url https://broker.example:8080
  thrum bans rm --user guest --data-dir /var/lib/thrum

A running broker is asked, applies a change at once and disconnects banned clients, unless --keep-connected says no; while none runs, its file is \
changed. Without --data-dir, -c, --url, --context or --file the broker is that of thrum context, else that of /etc/thrum/thrum.toml.";

/// Arguments of `thrum bans`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct BansArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the bans in force, including temporary ones of the broker.
    Ls(ls::LsArgs),
    /// Ban a client identifier, a user, an address or a network; a ban of the same is replaced.
    Add(add::AddArgs),
    /// Lift a ban.
    Rm(rm::RmArgs),
}

/// Runs one of them.
pub(crate) fn run(args: &BansArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Ls(args) => ls::run(args)?,
        Action::Add(args) => add::run(args)?,
        Action::Rm(args) => rm::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}
