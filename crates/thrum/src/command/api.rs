//! `thrum api`: any request to the management interface, with the key and the prefix added.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use serde_json::value::RawValue;
use thrum_management::api::PREFIX;

use super::Failure;
use super::running::{Broker, JSON, Method, OpenAnswer, Request, Running, encoded};
use super::shown::json_text;

/// Bytes of a body that is sent: more than any route takes.
const BODY_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Bytes of a page that is put together with others.
const PAGE_BYTES_MAX: u64 = 64 * 1024 * 1024;

const EXAMPLES: &str = "\
Examples:
  thrum api get /status
  thrum api get '/clients?filter=problem=slow&limit=10'
  thrum api get /clients --paginate | jq -r '.clients[].client_id'
  thrum api post /publish -d '{\"topic\": \"site/alarm\", \"payload\": \"on\"}'
  thrum api post /retained/import -d @retained.jsonl --type application/jsonl
  thrum api delete /clients/meter-17
  thrum api get /openapi.json                              all routes

The prefix /api/v1 is added if it is not there. docs/guide/operating.md lists the routes.";

/// Arguments of `thrum api`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ApiArgs {
    /// get, post, put, patch or delete.
    #[arg(value_name = "METHOD", value_parser = parse_method)]
    method: Method,
    /// Path of the route with its query, as /clients?limit=5.
    path: String,
    /// Body: text, @FILE, or - for standard input.
    #[arg(short, long = "data", value_name = "BODY", allow_hyphen_values = true)]
    data: Option<String>,
    /// Media type of the body.
    #[arg(long = "type", value_name = "TYPE", default_value = JSON, requires = "data")]
    body_type: String,
    /// Add this to the query, with what must be escaped; may be given more than once.
    #[arg(short, long = "query", value_name = "NAME=VALUE", value_parser = parse_parameter)]
    query: Vec<Parameter>,
    /// Read all pages of a list, a line each.
    #[arg(long)]
    paginate: bool,
    #[command(flatten)]
    running: Running,
}

/// A part of a query.
#[derive(Clone, Debug)]
struct Parameter {
    name: String,
    value: String,
}

/// Asks and prints the answer, also that of a refusal; the exit code tells.
pub(crate) fn run(args: &ApiArgs) -> anyhow::Result<ExitCode> {
    if args.paginate && args.method != Method::Get {
        return Err(Failure::usage("--paginate reads pages: it needs get"));
    }
    let broker = args.running.broker()?;
    let body = args.data.as_deref().map(read_body).transpose()?;
    let body = body.unwrap_or_default();
    let mut path = whole_path(&args.path)?;
    for Parameter { name, value } in &args.query {
        path = with_parameter(&path, name, value);
    }
    if args.paginate {
        print_pages(&broker, &path)?;
        return Ok(ExitCode::SUCCESS);
    }
    let answer = broker.send(&Request {
        method: args.method,
        path: &path,
        accept: "*/*",
        body: &body,
        body_type: &args.body_type,
    })?;
    let status = answer.status;
    if (200..300).contains(&status) {
        print(&broker, answer)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut refusal = Vec::new();
    let mut limited = answer.body.take(PAGE_BYTES_MAX);
    let read = limited.read_to_end(&mut refusal);
    read.map_err(|error| broker.unanswered(&error))?;
    // Data is on standard output, as for other programs that ask an interface.
    let text = json_text(String::from_utf8_lossy(&refusal).into_owned());
    writeln!(io::stdout(), "{}", text.trim_end())?;
    Err(broker.refusal(status, &refusal))
}

fn print(broker: &Broker, answer: OpenAnswer) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    if !out.is_terminal() {
        return copy(broker, answer, &mut out);
    }
    let is_json = answer.kind == JSON;
    let lines = BufReader::new(answer.body).lines();
    for line in lines {
        let line = line.map_err(|error| broker.unanswered(&error))?;
        let pretty = serde_json::from_str::<Value>(&line)
            .ok()
            .filter(|_| is_json);
        let pretty = pretty.map(|value| serde_json::to_string_pretty(&value));
        // Its own ends of lines are no characters that control the terminal.
        let text = pretty.unwrap_or(Ok(line))?;
        for line in text.lines() {
            writeln!(out, "{}", json_text(line.to_owned()))?;
        }
    }
    Ok(())
}

/// Passes the answer on as it comes, however long it is.
fn copy(broker: &Broker, mut answer: OpenAnswer, out: &mut impl io::Write) -> anyhow::Result<()> {
    let mut chunk = vec![0; 64 * 1024];
    let mut last = b'\n';
    loop {
        let count = answer.body.read(&mut chunk);
        let count = count.map_err(|error| broker.unanswered(&error))?;
        let Some(end) = count.checked_sub(1) else {
            break;
        };
        last = chunk[end];
        out.write_all(&chunk[..count])?;
        out.flush()?;
    }
    if last != b'\n' && answer.kind == JSON {
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn print_pages(broker: &Broker, path: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let mut next = path.to_owned();
    loop {
        let page: Box<RawValue> = broker.call(Method::Get, &next, "")?;
        writeln!(out, "{}", json_text(page.get().to_owned()))?;
        let members: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(page.get()).map_err(|_| no_list(path))?;
        let cursor = members.get("next").ok_or_else(|| no_list(path))?;
        match serde_json::from_str::<Option<String>>(cursor.get())? {
            Some(cursor) => next = with_parameter(path, "cursor", &cursor),
            None => return Ok(()),
        }
    }
}

fn no_list(path: &str) -> anyhow::Error {
    Failure::usage(format!(
        "{path} is not a list with pages: leave out --paginate"
    ))
}

fn read_body(data: &str) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match data.strip_prefix('@') {
        Some(path) => {
            let file = std::fs::File::open(Path::new(path));
            let file =
                file.map_err(|error| Failure::usage(format!("cannot read {path}: {error}")))?;
            let read = file.take(BODY_BYTES_MAX).read_to_end(&mut bytes);
            read.with_context(|| format!("cannot read {path}"))?;
        }
        None if data == "-" => {
            let stdin = io::stdin().lock();
            stdin.take(BODY_BYTES_MAX).read_to_end(&mut bytes)?;
        }
        None => bytes.extend_from_slice(data.as_bytes()),
    }
    Ok(bytes)
}

/// The path behind the prefix; what cannot stand in the head of a request is escaped.
fn whole_path(given: &str) -> anyhow::Result<String> {
    let path = given.strip_prefix(PREFIX).unwrap_or(given);
    if path.contains("://") {
        return Err(Failure::usage(format!(
            "{given:?} is not a path: write one as /clients, and name the broker with --url"
        )));
    }
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut whole = slash.to_owned();
    for byte in path.bytes() {
        if byte.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(&byte) {
            whole.push(char::from(byte));
        } else {
            whole.extend([format!("%{byte:02X}")]);
        }
    }
    Ok(whole)
}

fn with_parameter(path: &str, name: &str, value: &str) -> String {
    let separator = if path.contains('?') { '&' } else { '?' };
    format!("{path}{separator}{}={}", encoded(name), encoded(value))
}

fn parse_method(text: &str) -> Result<Method, String> {
    let mut all = Method::ALL.into_iter();
    let found = all.find(|method| method.name().eq_ignore_ascii_case(text));
    found.ok_or_else(|| "expected get, post, put, patch or delete".to_owned())
}

fn parse_parameter(text: &str) -> Result<Parameter, String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| "expected NAME=VALUE, as limit=5".to_owned())?;
    Ok(Parameter {
        name: name.to_owned(),
        value: value.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_completed_and_escaped_where_it_must_be() {
        for (given, path) in [
            ("/clients", "/clients"),
            ("clients?limit=5", "/clients?limit=5"),
            ("/api/v1/clients/a%2Fb", "/clients/a%2Fb"),
            ("/clients?filter=user=a b", "/clients?filter=user=a%20b"),
            ("/x\r\nHost: y", "/x%0D%0AHost:%20y"),
        ] {
            assert_eq!(whole_path(given).unwrap(), path, "{given}");
        }
        assert!(whole_path("https://b/api/v1/clients").is_err());
        assert_eq!(with_parameter("/a", "b", "c&d"), "/a?b=c%26d");
        assert_eq!(with_parameter("/a?x", "b", "c"), "/a?x&b=c");
    }

    #[test]
    fn methods_have_no_case() {
        assert_eq!(parse_method("get"), Ok(Method::Get));
        assert_eq!(parse_method("DELETE"), Ok(Method::Delete));
        assert!(parse_method("fetch").is_err());
    }
}
