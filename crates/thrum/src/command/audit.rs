//! `thrum audit`: who changed what in a running broker.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use thrum_management::api::{AuditEntry, AuditPage};

use super::running::{Form, Method, Output, Running, encoded};
use super::shown::{NOTHING, json_line, name, now, parse_span, parse_time, table, time};

/// Entries of a page: the limit of the broker.
const PAGE: u64 = 1000;

const HEADINGS: [&str; 6] = ["TIME", "WHO", "FROM", "ACTION", "TARGET", "OUTCOME"];

const EXAMPLES: &str = "\
Examples:
  thrum audit ls --data-dir /var/lib/thrum
  thrum audit ls --since 7d --action 'client.*'
  thrum audit ls --who alice -o json

Without --data-dir or -c the broker is that of /etc/thrum/thrum.toml.";

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
    /// Most entries that are listed.
    #[arg(long, value_name = "N", default_value_t = 50,
          value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    #[command(flatten)]
    output: Output,
}

/// Runs a command.
pub(crate) fn run(args: &AuditArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Ls(args) => list(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(args: &LsArgs) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let mut rows = Vec::new();
    let (mut listed, mut damaged, mut cursor) = (0, 0, None);
    loop {
        let path = args.path((args.limit - listed).min(PAGE), cursor.as_deref());
        let page: AuditPage = args.running.ask(Method::Get, &path)?;
        listed += page.entries.len() as u64;
        damaged += page.damaged_lines;
        for entry in &page.entries {
            match args.output.form {
                Form::Table => rows.push(columns(entry)),
                Form::Json => writeln!(out, "{}", json_line(entry)?)?,
            }
        }
        cursor = page.next;
        if cursor.is_none() || listed >= args.limit {
            break;
        }
    }
    if !rows.is_empty() {
        write!(out, "{}", table(&HEADINGS, &rows))?;
    }
    let mut errors = std::io::stderr();
    if cursor.is_some() {
        writeln!(errors, "there are older entries; --limit N lists N")?;
    }
    if damaged > 0 {
        writeln!(errors, "{damaged} lines of the audit log cannot be read")?;
    }
    Ok(())
}

impl LsArgs {
    fn path(&self, rows: u64, cursor: Option<&str>) -> String {
        let mut path = format!("/audit?limit={rows}");
        let since = self.since.map(time);
        for (name, value) in [
            ("who", self.who.as_deref()),
            ("action", self.action.as_deref()),
            ("since", since.as_deref()),
            ("cursor", cursor),
        ] {
            if let Some(value) = value {
                path.extend(["&", name, "=", &encoded(value)]);
            }
        }
        path
    }
}

fn columns(entry: &AuditEntry) -> Vec<String> {
    let outcome = match &entry.detail {
        Some(why) => format!("{}: {}", entry.outcome, name(why)),
        None => entry.outcome.clone(),
    };
    let address = entry.address.as_deref().unwrap_or(NOTHING);
    let target = match &*entry.target {
        "" => NOTHING,
        target => target,
    };
    vec![
        entry.at.clone(),
        name(&entry.who).into_owned(),
        name(address).into_owned(),
        name(&entry.action).into_owned(),
        name(target).into_owned(),
        outcome,
    ]
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
