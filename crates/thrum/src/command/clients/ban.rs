//! `thrum clients ban`.

use std::io::Write as _;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use thrum_management::api::BanAdded;

use crate::command::Failure;
use crate::command::bans::warn_of_late;
use crate::command::running::{Form, Output, Running, encoded};
use crate::command::shown::{json_line, name, parse_span};

/// Arguments of `thrum clients ban`.
#[derive(Debug, Args)]
pub(super) struct BanArgs {
    /// Client identifier.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    client_id: String,
    /// What of the client is kept out.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    by: By,
    /// Duration, such as 1h or 7d; for good without it.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_span)]
    span: Option<Duration>,
    /// Reason, for readers of the list; the client does not see it.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    reason: String,
    /// Keep clients that are connected now; keep out those that connect later.
    #[arg(long)]
    keep_connected: bool,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// What of a client is banned.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum By {
    /// Its identifier.
    #[default]
    ClientId,
    /// Its user, with all its clients.
    User,
    /// Its address.
    Address,
}

/// Bans and disconnects.
pub(super) fn run(args: &BanArgs) -> anyhow::Result<()> {
    if args.span.is_some_and(|span| span.as_secs() == 0) {
        return Err(Failure::usage("--for: a ban takes at least a second"));
    }
    let by = match args.by {
        By::ClientId => "client_id",
        By::User => "user",
        By::Address => "address",
    };
    let body = json!({
        "by": by,
        "reason": args.reason,
        "secs": args.span.map(|span| span.as_secs()),
        "disconnect": !args.keep_connected,
    });
    let path = format!("/clients/{}/ban", encoded(&args.client_id));
    let added: BanAdded = args.running.send(&path, &body)?;
    warn_of_late(&added.late_workers)?;
    let added = serde_json::to_value(added)?;
    let mut out = std::io::stdout().lock();
    if args.output.form == Form::Json {
        writeln!(out, "{}", json_line(&added)?)?;
        return Ok(());
    }
    let ban = added.get("ban").unwrap_or(&Value::Null);
    let text = |key: &str| ban.get(key).and_then(Value::as_str);
    let until = text("until").map_or_else(|| "for good".to_owned(), |at| format!("until {at}"));
    let subject = text(by).unwrap_or(&args.client_id);
    writeln!(
        out,
        "{} {} is banned {until}",
        // As thrum bans add says it.
        by.trim_end_matches("_id"),
        name(subject)
    )?;
    Ok(())
}
