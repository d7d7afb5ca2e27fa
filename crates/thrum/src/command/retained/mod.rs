//! `thrum retained`: the retained messages of a data directory, or of a running broker.

mod export;
mod import;
mod line;
mod ls;
#[cfg(feature = "management")]
mod remote;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use thrum_codec::topic::{TopicFilter, matches};

const EXAMPLES: &str = "\
Examples:
  thrum retained ls --data-dir /var/lib/thrum --filter 'site/+/state'
  thrum retained export --data-dir /var/lib/thrum retained.jsonl
  thrum retained export --data-dir /var/lib/thrum - | gzip > retained.jsonl.gz
  thrum retained import --data-dir /var/lib/thrum retained.jsonl
  thrum retained get site/1/state --url https://broker.example:8080
  thrum retained rm 'site/#' --dry-run

ls and export read the data directory, also while a broker has it; with --url or --context they ask that broker. get and rm ask the running broker. \
import asks a running one, and else writes into the directory.";

/// Arguments of `thrum retained`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct RetainedArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the retained messages, without their payloads.
    Ls(ls::LsArgs),
    /// Write the retained messages to a file, a line of JSON each.
    Export(export::ExportArgs),
    /// Add the retained messages of such a file; existing ones of the same topics are replaced.
    Import(import::ImportArgs),
    /// Show one retained message of a running broker with its payload.
    #[cfg(feature = "management")]
    Get(remote::GetArgs),
    /// Remove retained messages of a running broker.
    #[cfg(feature = "management")]
    Rm(remote::RmArgs),
}

/// Runs one of them.
pub(crate) fn run(args: &RetainedArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Ls(args) => ls::run(args)?,
        Action::Export(args) => export::run(args)?,
        Action::Import(args) => import::run(args)?,
        #[cfg(feature = "management")]
        Action::Get(args) => remote::get(args)?,
        #[cfg(feature = "management")]
        Action::Rm(args) => remote::remove(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Which topics.
#[derive(Debug, Args)]
struct Topics {
    /// Only topics that match this topic filter, such as 'site/+/state'.
    #[arg(long, value_name = "FILTER", value_parser = parse_filter)]
    filter: Option<String>,
}

impl Topics {
    fn fit(&self, topic: &str) -> bool {
        let filter = self.filter.as_deref();
        filter.is_none_or(|filter| matches(filter, topic))
    }
}

fn parse_filter(text: &str) -> Result<String, String> {
    match TopicFilter::parse(text) {
        Ok(filter) if filter.shared().is_none() => Ok(text.to_owned()),
        Ok(_) => Err("a shared subscription is not a topic filter".to_owned()),
        Err(_) => Err(
            "expected a topic filter: '+' stands for one level, '#' at the end for all that follow"
                .to_owned(),
        ),
    }
}
