//! `thrum retained ls`.

use std::io::Write as _;

use clap::Args;
use serde_json::json;
use thrum_storage::RecoveredMessage;

use super::Topics;
use crate::command::data_dir::DataDir;
use crate::command::shown::{NOTHING, counted, json_line, name, size, table, time};

const HEADINGS: [&str; 5] = ["QOS", "SIZE", "PUBLISHED", "EXPIRES", "TOPIC"];

/// Arguments of `thrum retained ls`.
#[derive(Debug, Args)]
pub(super) struct LsArgs {
    #[command(flatten)]
    data_dir: DataDir,
    #[command(flatten)]
    topics: Topics,
    /// One line of JSON for each message.
    #[arg(long)]
    json: bool,
}

/// Lists.
pub(super) fn run(args: &LsArgs) -> anyhow::Result<()> {
    let state = args.data_dir.read()?;
    let places = state.retained.iter().map(|retained| retained.message);
    let messages = places.filter_map(|place| state.messages.get(place));
    let messages: Vec<_> = messages
        .filter(|message| args.topics.fit(message.content.topic()))
        .collect();
    let mut out = std::io::stdout().lock();
    if args.json {
        for message in &messages {
            let line = json!({
                "topic": message.content.topic(),
                "qos": message.qos.as_u8(),
                "payload_bytes": message.content.payload().len(),
                "published_at": time(message.published_at),
                "expires_at": message.expires_at.map(time),
            });
            writeln!(out, "{}", json_line(&line)?)?;
        }
        return Ok(());
    }
    if !messages.is_empty() {
        let rows: Vec<_> = messages.iter().map(|message| columns(message)).collect();
        writeln!(out, "{}", table(&HEADINGS, &rows))?;
    }
    let payloads = messages.iter().map(|one| one.content.payload().len());
    let count = counted(messages.len(), "retained message", "retained messages");
    writeln!(out, "{count}: {}", size(payloads.sum()))?;
    Ok(())
}

fn columns(message: &RecoveredMessage) -> Vec<String> {
    vec![
        message.qos.as_u8().to_string(),
        size(message.content.payload().len()),
        time(message.published_at),
        message.expires_at.map_or_else(|| NOTHING.to_owned(), time),
        name(message.content.topic()).into_owned(),
    ]
}
