//! `thrum trace` and `thrum clients trace`: packets while they pass, or in a file.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::Value;

use super::Failure;
use super::running::{
    Broker, EVENTS, Event, Events, Form, Method, OpenAnswer, Output, Request, Running, encoded,
};
use super::shown::{json_text, name};

const EXAMPLES: &str = "\
Examples:
  thrum trace --client meter-17
  thrum trace --topic 'site/+/alarm' --payloads --seconds 600
  thrum trace --address 192.0.2.0/24 --write trace.pcapng      for Wireshark

-> is a packet from the client, <- one to it. Packets are shown while they pass, until the time is over or Ctrl-C ends the trace. Beyond 100 KB in a
second packets are left out, and counted; with --write none are.";

/// Media type of a capture.
const CAPTURE: &str = "application/x-pcapng";
/// The last event of a trace.
const END: &str = "end";

/// Arguments of `thrum trace`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    bounds: Bounds,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// What is traced.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Subject {
    /// Packets of the client with this identifier.
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    client: Option<String>,
    /// PUBLISH packets, from and to all clients, whose topic matches this filter.
    #[arg(long, value_name = "FILTER")]
    topic: Option<String>,
    /// Packets of clients at this address or in this network.
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
}

/// Arguments of `thrum clients trace`.
#[derive(Debug, Args)]
pub(super) struct ClientArgs {
    /// Client identifier.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    client_id: String,
    #[command(flatten)]
    bounds: Bounds,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// How much of it.
#[derive(Debug, Args)]
struct Bounds {
    /// The trace ends after so many seconds, at most 3600 [default: 60]; with --write at most 10
    /// [default: 5].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: Option<u64>,
    /// The trace ends after so many packets, at most 1000000; with --write at most 10000.
    #[arg(long, value_name = "N", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    packets: u64,
    /// With payloads; needs the scope messages:read.
    #[arg(long)]
    payloads: bool,
    /// Write the packets to this new file, in the format of Wireshark (pcapng).
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &TraceArgs) -> anyhow::Result<ExitCode> {
    let Subject {
        client,
        topic,
        address,
    } = &args.subject;
    let subjects = [("client", client), ("topic", topic), ("address", address)];
    let mut named = subjects.into_iter();
    let subject = named.find_map(|(name, value)| Some((name, value.as_deref()?)));
    let (name, value) = subject.ok_or_else(|| Failure::usage("a trace of what?"))?;
    let path = args.bounds.path(name, value)?;
    args.bounds.trace(&args.running, &path, args.output.form)?;
    Ok(ExitCode::SUCCESS)
}

/// Traces a client.
pub(super) fn of_client(args: &ClientArgs) -> anyhow::Result<()> {
    let path = args.bounds.path("client", &args.client_id)?;
    args.bounds.trace(&args.running, &path, args.output.form)
}

impl Bounds {
    fn path(&self, name: &str, value: &str) -> anyhow::Result<String> {
        let Self {
            seconds,
            packets,
            payloads,
            write,
        } = self;
        let is_file = write.is_some();
        if is_file && (seconds.is_some_and(|seconds| seconds > 10) || *packets > 10_000) {
            return Err(Failure::usage(
                "--write: a file has at most 10 seconds and 10000 packets; without --write a trace takes up to an hour",
            ));
        }
        let seconds = seconds.unwrap_or(if is_file { 5 } else { 60 });
        let format = if is_file { "pcapng" } else { "jsonl" };
        let value = encoded(value);
        Ok(format!(
            "/trace?{name}={value}&seconds={seconds}&packets={packets}&payloads={payloads}&format={format}"
        ))
    }

    fn trace(&self, running: &Running, path: &str, form: Form) -> anyhow::Result<()> {
        let broker = running.broker()?;
        match &self.write {
            Some(file) => write(&broker, path, file),
            None => show(&broker, path, form),
        }
    }
}

/// Writes a trace into a file, which has its name when it is complete: a partial one would look
/// complete.
fn write(broker: &Broker, path: &str, file: &Path) -> anyhow::Result<()> {
    // Before the trace: an existing file is a mistake that costs no ten seconds.
    let (mut to, part) = create(file)?;
    let written = fill(broker, path, &mut to).and_then(|count| {
        std::fs::rename(&part, file).map_err(|error| refused(file, error))?;
        Ok(count)
    });
    let count = written.inspect_err(|_| {
        std::fs::remove_file(&part).ok();
    })?;
    writeln!(io::stderr(), "{count} bytes are in {}", file.display())?;
    Ok(())
}

fn fill(broker: &Broker, path: &str, to: &mut File) -> anyhow::Result<u64> {
    let mut answer = open(broker, path, CAPTURE)?;
    let count = io::copy(&mut answer.body, to)?;
    to.sync_all()?;
    Ok(count)
}

fn open(broker: &Broker, path: &str, accept: &str) -> anyhow::Result<OpenAnswer> {
    broker.open(&Request {
        method: Method::Get,
        path,
        accept,
        body: b"",
        body_type: "",
    })
}

/// Prints each packet when it passes, up to the end of the trace.
fn show(broker: &Broker, path: &str, form: Form) -> anyhow::Result<()> {
    let answer = open(broker, path, EVENTS)?;
    let mut out = io::stdout().lock();
    for event in Events::of(answer.body) {
        let event = event.map_err(|error| broker.unanswered(&error))?;
        if let Some((code, why)) = cut_off(&event) {
            return Err(Failure::with_code(code, why));
        }
        let has_ended = event.name == END;
        match form {
            Form::Json => writeln!(out, "{}", json_text(event.data))?,
            Form::Table if has_ended => writeln!(io::stderr(), "{}", words(&event.data))?,
            Form::Table => writeln!(out, "{}", words(&event.data))?,
        }
        out.flush()?;
        if has_ended {
            return Ok(());
        }
    }
    let what = "the broker has cut the trace off, as its packets were not taken; write them to a \
                file, or look at fewer with --packets";
    Err(Failure::with_code(Failure::UNREACHABLE, what))
}

/// Why a trace ends before its time and its number of packets, with the exit code.
fn cut_off(event: &Event) -> Option<(u8, String)> {
    let value: Value = serde_json::from_str(&event.data).ok()?;
    let reason = value.get("reason").filter(|_| event.name == END)?;
    let code = match reason.as_str() {
        Some("login_ended" | "scope_lost") => Failure::DENIED,
        _ => Failure::UNREACHABLE,
    };
    let detail = value.get("detail").and_then(Value::as_str);
    let detail = name(detail.unwrap_or_default());
    Some((code, format!("the trace is not complete: {detail}")))
}

/// A file beside the one that is wanted, and its path. What a killed trace left is overwritten.
fn create(file: &Path) -> anyhow::Result<(File, PathBuf)> {
    if file.exists() {
        return Err(refused(file, ErrorKind::AlreadyExists.into()));
    }
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let created = File::create(&part).map_err(|error| refused(file, error))?;
    Ok((created, part))
}

fn refused(file: &Path, error: io::Error) -> anyhow::Error {
    let shown = file.display();
    match error.kind() {
        ErrorKind::AlreadyExists => Failure::usage(format!(
            "cannot write {shown}: it exists; choose another name, or move it away"
        )),
        _ => anyhow::Error::new(error).context(format!("cannot write {shown}")),
    }
}

/// Members of a packet that are shown in another way, or not.
const NOT_LISTED: [&str; 6] = [
    "at",
    "direction",
    "connection",
    "client_id",
    "peer",
    "packet",
];

/// A line of a trace in words.
fn words(line: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(line) else {
        return name(line).into_owned();
    };
    if let Some(count) = value.get("left_out") {
        return format!("… {count} packets are missing here");
    }
    if let Some(why) = value.get("ended").and_then(Value::as_str) {
        return format!("the trace ended: {why}");
    }
    let packet = value.get("packet").unwrap_or(&value);
    let text = |key: &str| packet.get(key).and_then(Value::as_str).unwrap_or_default();
    let arrow = if text("direction") == "from_client" {
        "->"
    } else {
        "<-"
    };
    let members = packet.as_object().into_iter().flatten();
    let shown = members.filter(|(key, value)| {
        let is_default = value.is_null() || **value == Value::Bool(false);
        !NOT_LISTED.contains(&key.as_str()) && !is_default
    });
    let shown: Vec<String> = shown
        .map(|(key, value)| format!("{}={}", name(key), json_text(value.to_string())))
        .collect();
    let line = format!(
        "{}  {} {arrow} {:<11} {}",
        name(text("at")),
        name(text("client_id")),
        name(text("packet")),
        shown.join(" ")
    );
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_one_line_with_what_it_says() {
        let line = r#"{"packet":{"at":"T","direction":"from_client","connection":1,"client_id":"m\u001b",
            "peer":"p","packet_bytes":19,"packet":"PUBLISH","topic":"a/b","qos":1,"retain":false,
            "payload":null}}"#;
        assert_eq!(
            words(line),
            "T  m\\u{1b} -> PUBLISH     packet_bytes=19 qos=1 topic=\"a/b\""
        );
        assert_eq!(words(r#"{"left_out":3}"#), "… 3 packets are missing here");
        assert_eq!(words(r#"{"ended":"time"}"#), "the trace ended: time");
    }

    #[test]
    fn a_trace_that_is_cut_off_is_no_complete_one() {
        let end = |data: &str| Event {
            name: END.to_owned(),
            data: data.to_owned(),
        };
        assert_eq!(cut_off(&end(r#"{"ended":"time"}"#)), None);
        let lost = cut_off(&end(
            r#"{"reason":"scope_lost","detail":"this needs a scope"}"#,
        ));
        let why = "the trace is not complete: this needs a scope".to_owned();
        assert_eq!(lost, Some((Failure::DENIED, why)));
        let stopping = cut_off(&end(r#"{"reason":"stopping","detail":"the broker ends"}"#));
        assert_eq!(stopping.unwrap().0, Failure::UNREACHABLE);
    }
}
