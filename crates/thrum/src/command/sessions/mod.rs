//! `thrum sessions`: the stored sessions of a data directory.

mod detail;
mod get;
mod ls;
mod purge;
mod row;

use std::process::ExitCode;

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  thrum sessions ls --data-dir /var/lib/thrum
  thrum sessions ls --data-dir /var/lib/thrum --away-for 7d -o json
  thrum sessions ls --data-dir /var/lib/thrum --filter 'queued>0' --top 10 --sort bytes
  thrum sessions get meter-17 --data-dir /var/lib/thrum
  thrum sessions purge --data-dir /var/lib/thrum --away-for 30d

ls and get also work while a broker has the directory; purge needs it stopped.";

/// Arguments of `thrum sessions`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the sessions.
    Ls(ls::LsArgs),
    /// Show one session with its subscriptions, its will and its deliveries.
    Get(get::GetArgs),
    /// Remove sessions with all that is theirs; wills of removed sessions are not published.
    Purge(purge::PurgeArgs),
}

/// Runs one of them.
pub(crate) fn run(args: &SessionsArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Ls(args) => ls::run(args)?,
        Action::Get(args) => get::run(args)?,
        Action::Purge(args) => purge::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}
