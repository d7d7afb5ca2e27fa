//! `thrum context`: names of brokers elsewhere.

mod add;
mod ls;
mod store;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, Subcommand};

pub(super) use self::store::{Context, Contexts, read_token, token};

const EXAMPLES: &str = "\
Examples:
  thrum context add prod --url https://broker.example:8080 --token-file prod.key
  thrum context use prod                       from now on commands ask this broker
  thrum clients ls                             the same as with --context prod
  thrum clients ls --context test              another one, once
  thrum context use --none                     back to the broker of this machine
  thrum context ls

The names are in $XDG_CONFIG_HOME/thrum/contexts.json (~/.config/thrum/contexts.json). thrum keys add on the broker's machine makes an API key.";

/// Arguments of `thrum context`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct ContextArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the names; a star marks the current one.
    Ls(ls::LsArgs),
    /// Note a broker under a name.
    Add(Box<add::AddArgs>),
    /// Ask this broker from now on.
    Use(UseArgs),
    /// Forget a name, and the key that was stored with it.
    Rm(RmArgs),
    /// Show what is noted under a name, without the key.
    Show(ls::ShowArgs),
}

/// Arguments of `thrum context use`.
#[derive(Debug, Args)]
struct UseArgs {
    /// Name of the context.
    #[arg(required_unless_present = "none")]
    name: Option<String>,
    /// Ask the broker of this machine again.
    #[arg(long, conflicts_with = "name")]
    none: bool,
}

/// Arguments of `thrum context rm`.
#[derive(Debug, Args)]
struct RmArgs {
    /// Names of contexts.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
}

/// Runs a command.
pub(crate) fn run(args: &ContextArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Ls(args) => ls::run(args)?,
        Action::Add(args) => add::run(args)?,
        Action::Use(args) => choose(args)?,
        Action::Rm(args) => remove(args)?,
        Action::Show(args) => ls::show(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn choose(args: &UseArgs) -> anyhow::Result<()> {
    let folder = store::own_folder()?;
    let mut contexts = Contexts::read_from(&folder)?;
    if let Some(name) = &args.name {
        contexts.get(name)?;
    }
    contexts.current.clone_from(&args.name);
    contexts.write_to(&folder)?;
    let said = match &args.name {
        Some(name) => format!("commands ask {name} from now on"),
        None => "commands ask the broker of this machine from now on".to_owned(),
    };
    writeln!(std::io::stderr(), "{said}")?;
    Ok(())
}

fn remove(args: &RmArgs) -> anyhow::Result<()> {
    let folder = store::own_folder()?;
    let mut contexts = Contexts::read_from(&folder)?;
    for name in &args.names {
        contexts.get(name)?;
    }
    for name in &args.names {
        contexts.contexts.remove(name);
        if contexts.current.as_ref() == Some(name) {
            contexts.current = None;
        }
        store::remove_token(&folder, name, None)?;
    }
    contexts.write_to(&folder)?;
    for name in &args.names {
        writeln!(std::io::stderr(), "{name} is forgotten")?;
    }
    Ok(())
}
