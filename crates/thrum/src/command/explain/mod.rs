//! `thrum explain`: what would happen to a packet of a client, step by step; nothing is done.

mod words;

use std::io::Write as _;
use std::process::ExitCode;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use thrum_management::api::{DropsExplanation, PublishExplanation, SubscribeExplanation};

use super::running::{Form, Output, Running};
use super::shown::json_line;

const EXAMPLES: &str = "\
Examples:
  thrum explain publish meter-17 site/a/alarm --qos 1     who gets it, and why not
  thrum explain subscribe dashboard 'site/#'              would it be granted?
  thrum explain drops dashboard                           which messages it did not get

The answer is true for the moment of the question; nothing is sent and nothing is changed.";

/// Arguments of `thrum explain`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct ExplainArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// What would happen to a message of a client.
    Publish(PublishArgs),
    /// What would happen to a subscription of a client.
    Subscribe(SubscribeArgs),
    /// Which messages a client did not get, and what would happen to the next one.
    Drops(DropsArgs),
}

/// Arguments of `thrum explain publish`.
#[derive(Debug, Args)]
struct PublishArgs {
    /// Client identifier of the publisher; it must have a session.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    client_id: String,
    /// Topic as the client writes it.
    topic: String,
    /// Quality of service.
    #[arg(short, long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=2))]
    qos: u8,
    /// As a retained message.
    #[arg(short, long)]
    retain: bool,
    /// Bytes of the payload.
    #[arg(long, value_name = "N", default_value_t = 0)]
    payload_bytes: u32,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Arguments of `thrum explain subscribe`.
#[derive(Debug, Args)]
struct SubscribeArgs {
    /// Client identifier; it must have a session.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    client_id: String,
    /// Topic filter as the client writes it.
    filter: String,
    /// Quality of service.
    #[arg(short, long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=2))]
    qos: u8,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Arguments of `thrum explain drops` and `thrum clients explain`.
#[derive(Debug, Args)]
pub(super) struct DropsArgs {
    /// Client identifier; it must have a session.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    client_id: String,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Runs a command.
pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Publish(args) => publish(args)?,
        Action::Subscribe(args) => subscribe(args)?,
        Action::Drops(args) => drops(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn publish(args: &PublishArgs) -> anyhow::Result<()> {
    let body = json!({
        "client_id": args.client_id,
        "topic": args.topic,
        "qos": args.qos,
        "retain": args.retain,
        "payload_bytes": args.payload_bytes,
    });
    let question = Question {
        running: &args.running,
        form: args.output.form,
        path: "/explain/publish",
        body: &body,
    };
    question.answer::<PublishExplanation>(words::publish)
}

fn subscribe(args: &SubscribeArgs) -> anyhow::Result<()> {
    let body = json!({
        "client_id": args.client_id,
        "filter": args.filter,
        "qos": args.qos,
    });
    let question = Question {
        running: &args.running,
        form: args.output.form,
        path: "/explain/subscribe",
        body: &body,
    };
    question.answer::<SubscribeExplanation>(words::subscribe)
}

/// Explains the drops of a client.
pub(super) fn drops(args: &DropsArgs) -> anyhow::Result<()> {
    let body = json!({ "client_id": args.client_id });
    let question = Question {
        running: &args.running,
        form: args.output.form,
        path: "/explain/drops",
        body: &body,
    };
    question.answer::<DropsExplanation>(words::drops)
}

struct Question<'a> {
    running: &'a Running,
    form: Form,
    path: &'a str,
    body: &'a Value,
}

impl Question<'_> {
    /// Asks and prints.
    fn answer<T: DeserializeOwned + Serialize>(
        self,
        words: fn(&T) -> String,
    ) -> anyhow::Result<()> {
        let answer: T = self.running.send(self.path, self.body)?;
        let mut out = std::io::stdout().lock();
        match self.form {
            Form::Table => write!(out, "{}", words(&answer))?,
            Form::Json => writeln!(out, "{}", json_line(&answer)?)?,
        }
        Ok(())
    }
}
