//! `thrum clients`: the clients of a running broker, and their queues.

mod detail;
mod get;
mod kick;
mod ls;
mod row;
mod whole;

use std::process::ExitCode;

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  thrum clients ls --data-dir /var/lib/thrum
  thrum clients ls --sort queued-messages --reverse --limit 10     the longest queues
  thrum clients ls --client 'meter-*' --away -o json
  thrum clients get meter-17
  thrum clients kick meter-17 --session

Without --data-dir or -c the broker is that of /etc/thrum/thrum.toml. A broker without a data directory has no control socket.";

/// Arguments of `thrum clients`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct ClientsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List clients: connected ones, and those that are away and have a session.
    Ls(ls::LsArgs),
    /// Show one client with its connection, its queue and its subscriptions.
    Get(get::GetArgs),
    /// Disconnect a client; it may reconnect at once unless it is banned.
    Kick(kick::KickArgs),
}

/// Runs a command.
pub(crate) fn run(args: &ClientsArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Ls(args) => ls::run(args)?,
        Action::Get(args) => get::run(args)?,
        Action::Kick(args) => kick::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}
