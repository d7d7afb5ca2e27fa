//! `thrum clients`: the clients of a running broker, and their queues.

mod ban;
mod detail;
mod get;
mod kick;
mod ls;
mod timeline;

use std::process::ExitCode;

use clap::{Args, Subcommand};

pub(super) use self::ls::CLIENTS;
pub(super) use self::timeline::events;
use super::{explain, trace};

const EXAMPLES: &str = "\
Examples:
  thrum clients ls --filter 'user=alice queue>100' --sort queue -o json
  thrum clients ls --top 10 --sort queue           the longest queues
  thrum clients watch --filter problem=any         again every 2 s
  thrum clients get meter-17
  thrum clients timeline meter-17                  why it was disconnected
  thrum clients explain meter-17                   why it does not get its messages
  thrum clients trace meter-17 --seconds 10
  thrum clients kick meter-17 --session

Without --data-dir, -c, --url or --context the broker is that of thrum context, else that of /etc/thrum/thrum.toml.";

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
    /// List them again and again.
    Watch(ls::LsArgs),
    /// Disconnect a client; it may reconnect at once unless it is banned.
    Kick(kick::KickArgs),
    /// Disconnect a client and keep it out.
    Ban(ban::BanArgs),
    /// Show the last events of a client with their causes, also of one that has gone.
    Timeline(timeline::TimelineArgs),
    /// Show which messages a client did not get, and what would happen to the next one.
    Explain(explain::DropsArgs),
    /// Show the packets of a client while they pass.
    Trace(trace::ClientArgs),
}

/// Runs a command.
pub(crate) fn run(args: &ClientsArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Ls(args) => ls::run(args)?,
        Action::Get(args) => get::run(args)?,
        Action::Watch(args) => ls::watch(args)?,
        Action::Kick(args) => kick::run(args)?,
        Action::Ban(args) => ban::run(args)?,
        Action::Timeline(args) => timeline::run(args)?,
        Action::Explain(args) => explain::drops(args)?,
        Action::Trace(args) => trace::of_client(args)?,
    }
    Ok(ExitCode::SUCCESS)
}
