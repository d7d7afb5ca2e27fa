//! `thrum acl`: the rules, and what they decide.

mod ls;
mod place;
mod test;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// The listener of a client about which nothing else is said.
const LISTENER: &str = "mqtt";

const EXAMPLES: &str = "\
Examples:
  thrum acl test meter-7 pub meters/meter-7/power -u meter
  thrum acl ls
  thrum acl ls --client meter-7 -u meter

A running broker is asked; while none runs, its configuration and the file of its users are read.";

/// Arguments of `thrum acl`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct AclArgs {
    #[command(subcommand)]
    command: AclCommand,
}

#[derive(Debug, Subcommand)]
enum AclCommand {
    /// List the rules in the order in which they are asked, for all clients or one.
    Ls(ls::LsArgs),
    /// Test what a client may publish and subscribe to, and show the deciding rule.
    #[command(visible_alias = "explain")]
    Test(test::TestArgs),
}

/// Runs the command.
pub(crate) fn run(args: &AclArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        AclCommand::Ls(args) => ls::run(args),
        AclCommand::Test(args) => test::run(args),
    }
}
