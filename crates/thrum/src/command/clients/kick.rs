//! `thrum clients kick`.

use std::io::Write as _;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use thrum_management::api::Kicked;

use crate::command::running::{Form, Method, Output, Running, encoded};
use crate::command::shown::{json_line, name};

const NOTES: &str = "\
A client of MQTT 5.0 receives the reason (0x98). To keep a client out, ban it with thrum bans add.";

/// Arguments of `thrum clients kick`.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(super) struct KickArgs {
    /// Client identifier.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    client_id: String,
    /// End its session too, with its subscriptions and its queue.
    #[arg(long)]
    session: bool,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Disconnects.
pub(super) fn run(args: &KickArgs) -> anyhow::Result<()> {
    let path = format!(
        "/clients/{}?session={}",
        encoded(&args.client_id),
        args.session
    );
    let kicked: Kicked = args.running.ask(Method::Delete, &path)?;
    let mut out = std::io::stdout().lock();
    match args.output.form {
        Form::Table => writeln!(out, "{} {}", name(&args.client_id), words(kicked))?,
        Form::Json => writeln!(out, "{}", json_line(&kicked)?)?,
    }
    Ok(())
}

const fn words(kicked: Kicked) -> &'static str {
    match (kicked.disconnected, kicked.session_ended) {
        (true, true) => "is disconnected, and its session has ended",
        (true, false) => "is disconnected; its session stays",
        (false, true) => "was away; its session has ended",
        (false, false) => "was away; its session stays, --session ends it",
    }
}
