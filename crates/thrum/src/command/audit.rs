//! `thrum audit`: who changed what in a running broker.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::Value;
use thrum_storage::WallMillis;

use super::listing::{self, Cell, Column, Fetched, ListArgs, Listing, Question};
use super::running::Running;
use super::shown::{now, parse_span, parse_time, time};

const EXAMPLES: &str = "\
Examples:
  thrum audit ls --data-dir /var/lib/thrum
  thrum audit ls --since 7d --action 'client.*'
  thrum audit ls --who alice -o json

Without --data-dir, -c, --url or --context the broker is that of thrum context, else that of /etc/thrum/thrum.toml.";

const NOTES: &str = "\
The newest entry comes first. OUTCOME is unknown if the request or the broker ended within the change. -o json also has the state before and after.";

/// Arguments of `thrum audit`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List changes, logins and refusals.
    Ls(LsArgs),
}

/// Arguments of `thrum audit ls`.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
struct LsArgs {
    #[command(flatten)]
    running: Running,
    /// Only entries of this administrator, key:ID, local, or anonymous.
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Only this action, or all that begin so: 'client.*'.
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only entries since this time, or of this duration before now.
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Option<u64>,
    #[command(flatten)]
    list: ListArgs,
}

static ENTRIES: Listing = Listing {
    member: "entries",
    columns: &[
        Column::wide("number", "NUMBER", Cell::Text(0)),
        Column::new("at", "TIME", Cell::Text(0)),
        Column::new("who", "WHO", Cell::Text(0)),
        Column::wide("means", "MEANS", Cell::Text(0)),
        Column::new("address", "FROM", Cell::Text(0)),
        Column::new("action", "ACTION", Cell::Text(0)),
        Column::new("target", "TARGET", Cell::Text(0)),
        Column::new("outcome", "OUTCOME", Cell::Own(outcome)),
    ],
    one: "entry",
    many: "entries",
    aliases: &[("time", "at"), ("from", "address")],
    identity: "",
    sum: "",
};

/// Runs a command.
pub(crate) fn run(args: &AuditArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Ls(args) => list(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(args: &LsArgs) -> anyhow::Result<()> {
    let question = Question::new("/audit")
        .with("who", args.who.as_deref())
        .with("action", args.action.as_deref())
        .with("since", args.since.map(time))
        .with_notes(damaged);
    listing::run(&args.running, &ENTRIES, &question, &args.list)
}

fn damaged(fetched: &Fetched) -> Vec<String> {
    let count = fetched.others.get("damaged_lines").copied().unwrap_or(0);
    if count == 0 {
        return Vec::new();
    }
    vec![format!("{count} lines of the audit log cannot be read")]
}

/// The outcome, and why.
fn outcome(entry: &Value, _now: WallMillis) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let outcome = text("outcome").unwrap_or_default();
    match text("detail") {
        Some(why) => format!("{outcome}: {why}"),
        None => outcome.to_owned(),
    }
}

fn parse_since(text: &str) -> Result<u64, String> {
    let ago = |span: std::time::Duration| {
        let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        now().saturating_sub(millis)
    };
    let at = parse_time(text).or_else(|| parse_span(text).ok().map(ago));
    at.ok_or_else(|| {
        "expected a time such as 2026-11-22T09:00:00Z, or a duration such as 7d".to_owned()
    })
}
