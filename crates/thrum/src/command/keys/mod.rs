//! `thrum keys`: API keys of programs.

mod add;
mod ls;
mod rm;

use std::process::ExitCode;

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  thrum keys add grafana --scope metrics:read --expires 365d
  thrum keys ls --data-dir /var/lib/thrum
  thrum keys rm k7m2q5xa --data-dir /var/lib/thrum

A program sends its key as Authorization: Bearer KEY. Without --data-dir or -c the broker is that of /etc/thrum/thrum.toml.";

/// Arguments of `thrum keys`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the keys, without their secrets.
    Ls(ls::LsArgs),
    /// Make a key and print it; it cannot be shown again.
    Add(add::AddArgs),
    /// Remove keys: they are refused at once.
    Rm(rm::RmArgs),
}

/// Runs a command.
pub(crate) fn run(args: &KeysArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Ls(args) => ls::run(args)?,
        Action::Add(args) => add::run(args)?,
        Action::Rm(args) => rm::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}
