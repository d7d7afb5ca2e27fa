//! A broker that runs on this machine, and requests over its control socket.

mod http;

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::de::DeserializeOwned;
use serde_json::Value;
use thrum_files::Folder;
use thrum_management::SOCKET;
use thrum_management::api::{NO_CLIENT, PREFIX, Problem};

use self::http::{Answer, Request};
pub(super) use self::http::{Method, encoded};
use super::Failure;
use crate::config::{self, DEFAULT_FILE};

/// The file with the names of users.
const PASSWD: &str = "/etc/passwd";

/// Bytes of a path with its query: more does not fit into a request of HTTP.
const PATH_BYTES_MAX: usize = 65_534;
const TOO_LONG: &str = "the client identifier or filter is too long for a request: written with %, it exceeds 65,534 \
    bytes; thrum clients ls --client 'BEGINNING*' lists the client, thrum bans add --user or --address keeps it out";

/// The broker that a command asks.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(super) struct Running {
    /// Data directory of the broker, as `node.data_dir` names it.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Configuration of the broker, which names the data directory; without it
    /// /etc/thrum/thrum.toml.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Form of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// A table or lines of text.
    #[default]
    Table,
    /// One JSON object a line.
    Json,
}

/// `-o`.
#[derive(Debug, Args)]
pub(super) struct Output {
    /// Form of the output.
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FORM",
        value_enum,
        default_value_t
    )]
    pub(super) form: Form,
}

impl Running {
    /// Asks the broker; a refusal is a failure.
    pub(super) fn ask<T: DeserializeOwned>(&self, method: Method, path: &str) -> anyhow::Result<T> {
        self.exchange(method, path, "")
    }

    /// Sends JSON to the broker, or nothing for null; a refusal is a failure.
    pub(super) fn send<T: DeserializeOwned>(&self, path: &str, body: &Value) -> anyhow::Result<T> {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        self.exchange(Method::Post, path, &body)
    }

    fn exchange<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &str,
    ) -> anyhow::Result<T> {
        let data_dir = self.data_dir()?;
        let stream = connect(&data_dir)?;
        let path = format!("{PREFIX}{path}");
        if path.len() > PATH_BYTES_MAX {
            return Err(Failure::usage(TOO_LONG));
        }
        let request = Request {
            method,
            path: &path,
            body,
        };
        let answer = http::ask(stream, &request).map_err(|error| unanswered(&data_dir, &error))?;
        read(&answer).map_err(|what| {
            let shown = data_dir.display();
            Failure::usage(format!(
                "unexpected answer of the broker on {shown} ({what}); it may be of another version than this \
                 program: use the program that the broker was started with"
            ))
        })?
    }

    fn data_dir(&self) -> anyhow::Result<PathBuf> {
        if let Some(data_dir) = &self.data_dir {
            return Ok(data_dir.clone());
        }
        let request = config::Request {
            file: self.config.clone(),
            ..config::Request::default()
        };
        let loaded = config::load(&request).map_err(Failure::usage)?;
        let data_dir = loaded.config.node.data_dir;
        if data_dir.as_os_str().is_empty() {
            let file = self
                .config
                .as_deref()
                .unwrap_or_else(|| Path::new(DEFAULT_FILE));
            let file = file.display();
            return Err(Failure::usage(format!(
                "{file} names no data directory (node.data_dir), and only a broker with a data directory has a control \
                 socket: name it with --data-dir DIR, or its configuration with -c FILE"
            )));
        }
        Ok(data_dir)
    }
}

/// The answer, or the error that the broker reports.
fn read<T: DeserializeOwned>(answer: &Answer) -> Result<anyhow::Result<T>, String> {
    let is_answer = (200..300).contains(&answer.status);
    if is_answer {
        let body = match &answer.body[..] {
            [] => b"null",
            body => body,
        };
        let answer = serde_json::from_slice(body);
        return answer.map(Ok).map_err(|error| error.to_string());
    }
    let problem: Problem =
        serde_json::from_slice(&answer.body).map_err(|_| format!("status {}", answer.status))?;
    let Problem { detail, .. } = problem;
    let remedy = if problem.title == NO_CLIENT {
        "thrum clients ls lists the clients"
    } else {
        &problem.remedy
    };
    Ok(Err(Failure::usage(format!("{detail}; {remedy}"))))
}

fn connect(data_dir: &Path) -> anyhow::Result<UnixStream> {
    let folder = Folder::open(data_dir).map_err(|error| unreached(data_dir, &error, true))?;
    let connected = folder.connect(OsStr::new(SOCKET));
    connected.map_err(|error| unreached(data_dir, &error, false))
}

/// The reason why the broker cannot be reached.
fn unreached(data_dir: &Path, error: &io::Error, is_folder: bool) -> anyhow::Error {
    let shown = data_dir.display();
    Failure::usage(match error.kind() {
        ErrorKind::NotFound if is_folder => {
            format!("there is no directory {shown}; name the directory that node.data_dir names")
        }
        ErrorKind::NotFound => format!(
            "no broker runs on {shown}: there is no {SOCKET} in it; start one with thrum serve --data-dir {shown}"
        ),
        ErrorKind::ConnectionRefused => format!(
            "no broker runs on {shown}: its {SOCKET} is from a broker that was killed; start one with \
             thrum serve --data-dir {shown}"
        ),
        ErrorKind::PermissionDenied => {
            let owner = owner(data_dir);
            format!(
                "permission denied: {shown} belongs to {owner}; run this as that user or as root"
            )
        }
        _ => format!("cannot reach the broker on {shown}: {error}"),
    })
}

fn unanswered(data_dir: &Path, error: &io::Error) -> anyhow::Error {
    let shown = data_dir.display();
    let why = match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "it takes too long".to_owned(),
        _ => error.to_string(),
    };
    anyhow::anyhow!("no answer from the broker on {shown}: {why}; look into its log")
}

/// The owner of a directory, if it is known.
fn owner(path: &Path) -> String {
    let Ok(found) = std::fs::metadata(path) else {
        return "another user".to_owned();
    };
    let user = found.uid();
    let names = std::fs::read_to_string(PASSWD).unwrap_or_default();
    let name = names.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, id) = (fields.next()?, fields.nth(1)?);
        (id.parse() == Ok(user)).then(|| name.to_owned())
    });
    name.map_or_else(
        || format!("user {user}"),
        |name| format!("user {name} ({user})"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreached_broker_is_reported_with_a_remedy() {
        let path = Path::new("data");
        let said = |kind: ErrorKind, is_folder| {
            unreached(path, &io::Error::from(kind), is_folder).to_string()
        };
        assert!(said(ErrorKind::NotFound, true).starts_with("there is no directory data;"));
        assert!(said(ErrorKind::NotFound, false).contains("start one with"));
        assert!(said(ErrorKind::ConnectionRefused, false).contains("was killed"));
        let denied = said(ErrorKind::PermissionDenied, true);
        assert!(denied.contains("belongs to another user"), "{denied}");
        assert!(owner(Path::new("/")).starts_with("user root (0)"));
    }

    #[test]
    fn a_refusal_is_a_failure_and_another_answer_an_error() {
        let answer = |status, body: &str| Answer {
            status,
            body: body.into(),
        };
        let read = |answer: &Answer| read::<Vec<u8>>(answer);
        assert_eq!(read(&answer(200, "[1]")).unwrap().unwrap(), [1]);
        super::read::<()>(&answer(204, "")).unwrap().unwrap();
        let problem = r#"{"title":"t","status":404,"detail":"not there","remedy":"look"}"#;
        let refused = read(&answer(404, problem)).unwrap().unwrap_err();
        assert_eq!(refused.to_string(), "not there; look");
        assert!(read(&answer(200, "{}")).is_err());
        assert_eq!(read(&answer(502, "<html>")).unwrap_err(), "status 502");
    }
}
