//! Retained messages of a running broker: one with its payload, removal, export and import.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use thrum_management::api::{Imported, Problem, RetainedDetail, RetainedRemoval};

use crate::command::Failure;
use crate::command::running::{Broker, Form, JSON, Method, Output, Request, Running, encoded};
use crate::command::shown::{NOTHING, confirm, counted, json_line, name, now, size};

/// Media type of lines of JSON.
const JSON_LINES: &str = "application/jsonl";
/// Bytes of a file that is imported: it is read as a whole.
const IMPORT_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Arguments of `thrum retained get`.
#[derive(Debug, Args)]
pub(super) struct GetArgs {
    /// The topic.
    topic: String,
    /// Only the payload, as it is.
    #[arg(long, conflicts_with = "form")]
    payload: bool,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Shows one message.
pub(super) fn get(args: &GetArgs) -> anyhow::Result<()> {
    let path = format!("/retained/message?topic={}", encoded(&args.topic));
    let found: RetainedDetail = args.running.ask(Method::Get, &path).map_err(|error| {
        let code = error.downcast_ref().map(Failure::code);
        if code != Some(Failure::NOT_FOUND) {
            return error;
        }
        Failure::with_code(
            Failure::NOT_FOUND,
            format!(
                "the topic {:?} has no retained message; thrum retained ls lists them",
                args.topic
            ),
        )
    })?;
    let payload = payload(&found)?;
    let mut out = io::stdout().lock();
    if args.payload {
        out.write_all(&payload)?;
        return Ok(());
    }
    if args.output.form == Form::Json {
        writeln!(out, "{}", json_line(&found)?)?;
        return Ok(());
    }
    let message = &found.message;
    let expires = message.expires_at.as_deref().unwrap_or("never");
    let publisher = message.publisher.as_ref();
    let publisher = publisher.map_or(NOTHING, |publisher| &publisher.client_id);
    for (heading, value) in [
        ("topic", name(&message.topic).into_owned()),
        ("qos", message.qos.to_string()),
        ("published", message.published_at.clone()),
        ("expires", expires.to_owned()),
        ("publisher", name(publisher).into_owned()),
        ("size", size(payload.len())),
    ] {
        writeln!(out, "{heading:<11}{value}")?;
    }
    let properties = serde_json::to_value(&found.content.properties)?;
    for (key, value) in properties.as_object().into_iter().flatten() {
        writeln!(out, "{:<11}{}", name(key), name(&value.to_string()))?;
    }
    writeln!(out)?;
    match str::from_utf8(&payload) {
        Ok(text) => {
            for line in text.lines() {
                writeln!(out, "{}", name(line))?;
            }
        }
        Err(_) => writeln!(out, "(not text; --payload writes the bytes)")?,
    }
    Ok(())
}

fn payload(found: &RetainedDetail) -> anyhow::Result<Vec<u8>> {
    use base64::Engine as _;
    let text = found.content.payload.as_deref().unwrap_or_default();
    let decoded = base64::engine::general_purpose::STANDARD.decode(text);
    decoded.context("the payload in the answer is not base64")
}

/// Arguments of `thrum retained rm`.
#[derive(Debug, Args)]
pub(super) struct RmArgs {
    /// Topic filter: a topic, or with + and # many.
    filter: String,
    /// Only count them.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Removes messages, after a look at how many they are.
pub(super) fn remove(args: &RmArgs) -> anyhow::Result<()> {
    let broker = args.running.broker()?;
    let ask = |is_dry: bool| -> anyhow::Result<RetainedRemoval> {
        let filter = encoded(&args.filter);
        let path = format!("/retained?filter={filter}&dry_run={is_dry}");
        broker.call(Method::Delete, &path, "")
    };
    let before = ask(true)?;
    let matching = |count: u64| {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        counted(count, "retained message", "retained messages")
    };
    if before.matching == 0 {
        return Err(Failure::with_code(
            Failure::NOT_FOUND,
            format!(
                "no retained message has a topic that matches {:?}; thrum retained ls lists them",
                args.filter
            ),
        ));
    }
    let examples: Vec<_> = before.examples.iter().map(|topic| name(topic)).collect();
    if args.dry_run {
        let mut out = io::stdout().lock();
        if args.output.form == Form::Json {
            writeln!(out, "{}", json_line(&before)?)?;
            return Ok(());
        }
        let bytes = usize::try_from(before.payload_bytes).unwrap_or(usize::MAX);
        let count = matching(before.matching);
        writeln!(out, "would remove {count} with {}", size(bytes))?;
        for topic in examples {
            writeln!(out, "  {topic}")?;
        }
        return Ok(());
    }
    if !args.yes {
        if !io::stdin().is_terminal() {
            return Err(Failure::usage(format!(
                "this would remove {}: -y does it without asking, --dry-run names some",
                matching(before.matching)
            )));
        }
        let count = matching(before.matching);
        confirm(&format!("Remove {count}, such as {}?", examples.join(", ")))?;
    }
    let removal = ask(false)?;
    if args.output.form == Form::Json {
        writeln!(io::stdout(), "{}", json_line(&removal)?)?;
        return Ok(());
    }
    writeln!(io::stderr(), "removed {}", matching(removal.removed))?;
    Ok(())
}

/// Writes the messages that match a filter; returns their number.
pub(super) fn export(
    broker: &Broker,
    filter: Option<&str>,
    out: &mut impl Write,
) -> anyhow::Result<usize> {
    let filter = encoded(filter.unwrap_or("#"));
    let path = format!("/retained/export?filter={filter}");
    let mut answer = broker.open(&Request {
        method: Method::Get,
        path: &path,
        accept: JSON_LINES,
        body: b"",
        body_type: "",
    })?;
    let mut count = 0;
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let read = answer.body.read(&mut chunk);
        let read = read.map_err(|error| broker.unanswered(&error))?;
        if read == 0 {
            return Ok(count);
        }
        count += lines(&chunk[..read]);
        out.write_all(&chunk[..read])?;
    }
}

/// Ends of lines.
fn lines(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count() - 1
}

/// Sends the lines of a file.
pub(super) fn import(broker: &Broker, file: &Path) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    let is_stdin = file == Path::new("-");
    let read = if is_stdin {
        io::stdin()
            .lock()
            .take(IMPORT_BYTES_MAX)
            .read_to_end(&mut lines)
    } else {
        let opened = File::open(PathBuf::from(file));
        opened.and_then(|file| file.take(IMPORT_BYTES_MAX).read_to_end(&mut lines))
    };
    let shown = if is_stdin {
        "standard input".to_owned()
    } else {
        file.display().to_string()
    };
    read.map_err(|error| Failure::usage(format!("cannot read {shown}: {error}")))?;
    // The broker stores the lines in front of a wrong one.
    super::import::check(&shown, &lines[..], now())?;
    let answer = broker.send(&Request {
        method: Method::Post,
        path: "/retained/import",
        accept: JSON,
        body: &lines,
        body_type: JSON_LINES,
    })?;
    let status = answer.status;
    let mut body = Vec::new();
    let mut limited = answer.body.take(IMPORT_BYTES_MAX);
    let read = limited.read_to_end(&mut body);
    read.map_err(|error| broker.unanswered(&error))?;
    if !(200..300).contains(&status) {
        let problem = serde_json::from_slice::<Problem>(&body).ok();
        let problem = problem.map(|problem| {
            let detail = format!("{shown}: {}", problem.detail);
            serde_json::to_vec(&Problem { detail, ..problem })
        });
        let body = problem.transpose()?.unwrap_or(body);
        return Err(broker.refusal(status, &body));
    }
    let imported: Value = serde_json::from_slice(&body)?;
    let imported: Imported = serde_json::from_value(imported)?;
    let count = counted(imported.imported, "retained message", "retained messages");
    writeln!(io::stderr(), "imported {count}")?;
    Ok(())
}
