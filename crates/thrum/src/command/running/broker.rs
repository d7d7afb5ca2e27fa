//! The broker that a command asks: one on this machine, by the control socket of its data
//! directory, or one elsewhere, by its HTTP port.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use thrum_access::Secret;
use thrum_files::Folder;
use thrum_management::SOCKET;
use thrum_management::api::{PREFIX, Problem};
use thrum_transport::TlsOptions;

use super::http::{self, Addressee, Answer, Method, Request, TIME_MAX};
use super::remedies::in_commands;
use super::remote::{self, Url};
use crate::command::Failure;

/// The file with the names of users.
const PASSWD: &str = "/etc/passwd";

/// Bytes of a path with its query: more does not fit into a request of HTTP.
const PATH_BYTES_MAX: usize = 65_534;
const TOO_LONG: &str = "the client identifier or filter is too long for a request: written with %, it exceeds 65,534 \
    bytes; thrum clients ls --client 'BEGINNING*' lists the client, thrum bans add --user or --address keeps it out";
/// Bytes of an error that is shown although it is no problem of this interface.
const FOREIGN_BYTES_MAX: usize = 200;

/// Media type of answers and bodies.
pub(crate) const JSON: &str = "application/json";

/// The broker that a command asks.
#[derive(Clone, Debug)]
pub(crate) enum Broker {
    /// On this machine, by its data directory.
    Local(PathBuf),
    /// By its HTTP port.
    Remote(Box<Remote>),
}

/// A broker elsewhere, and what shows it who asks.
#[derive(Clone, Debug)]
pub(crate) struct Remote {
    pub(crate) url: Url,
    pub(crate) token: Option<Secret>,
    pub(crate) tls: TlsOptions,
}

/// Either way to a broker.
pub(crate) trait Way: Read + Write {}

impl Way for UnixStream {}
impl Way for remote::Stream {}

/// An answer whose body is still to be read.
pub(crate) type OpenAnswer = Answer<Box<dyn Way>>;

impl Broker {
    /// Asks with a body of JSON, empty for none; a refusal is a failure.
    pub(crate) fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &str,
    ) -> anyhow::Result<T> {
        self.ask(&Request {
            method,
            path,
            accept: JSON,
            body: body.as_bytes(),
            body_type: JSON,
        })
    }

    /// Asks with a body of any kind for an answer in JSON; a refusal is a failure.
    pub(crate) fn ask<T: DeserializeOwned>(&self, request: &Request<'_>) -> anyhow::Result<T> {
        let answer = self.open(request)?;
        let bytes = answer.read().map_err(|error| self.unanswered(&error))?;
        let bytes: &[u8] = if bytes.is_empty() { b"null" } else { &bytes };
        serde_json::from_slice(bytes).map_err(|error| self.not_understood(&error.to_string()))
    }

    /// Asks, and leaves the body of the answer to the caller; a refusal is a failure. The path has
    /// no prefix.
    pub(crate) fn open(&self, request: &Request<'_>) -> anyhow::Result<OpenAnswer> {
        let answer = self.send(request)?;
        if (200..300).contains(&answer.status) {
            return Ok(answer);
        }
        let status = answer.status;
        let bytes = answer.read().map_err(|error| self.unanswered(&error))?;
        Err(self.refusal(status, &bytes))
    }

    /// Asks; the answer may be a refusal.
    pub(crate) fn send(&self, request: &Request<'_>) -> anyhow::Result<OpenAnswer> {
        let prefix = match self {
            Self::Local(_) => "",
            Self::Remote(remote) => remote.url.path(),
        };
        let path = format!("{prefix}{PREFIX}{}", request.path);
        if path.len() > PATH_BYTES_MAX {
            return Err(Failure::usage(TOO_LONG));
        }
        let request = Request {
            path: &path,
            ..*request
        };
        let answer = match self {
            Self::Local(data_dir) => {
                let stream = connect(data_dir)?;
                let to = Addressee {
                    host: "thrum",
                    token: None,
                };
                http::ask(Box::new(stream) as Box<dyn Way>, to, &request)
            }
            Self::Remote(remote) => {
                let stream = remote::connect(&remote.url, &remote.tls)?;
                let authority = remote.url.authority();
                let token = remote.token.as_ref().and_then(Secret::expose_str);
                let to = Addressee {
                    host: &authority,
                    token,
                };
                http::ask(Box::new(stream) as Box<dyn Way>, to, &request)
            }
        };
        answer.map_err(|error| self.unanswered(&error))
    }

    /// The failure that a refusal is.
    pub(crate) fn refusal(&self, status: u16, body: &[u8]) -> anyhow::Error {
        let Ok(problem) = serde_json::from_slice::<Problem>(body) else {
            let text = String::from_utf8_lossy(&body[..body.len().min(FOREIGN_BYTES_MAX)]);
            return self
                .not_understood(&format!("status {status}: {}", text.trim().escape_debug()));
        };
        let remedy = match (status, self) {
            (401, Self::Remote(remote)) if remote.token.is_none() => {
                "give an API key with --token-file FILE, THRUM_TOKEN or thrum context add; \
                 thrum keys add on the broker's machine makes one"
            }
            _ => &in_commands(&problem.remedy),
        };
        failed(status, &problem.detail, remedy)
    }

    /// Whether a broker of this machine runs; true of one elsewhere.
    pub(crate) fn is_reachable(&self) -> bool {
        match self {
            Self::Local(data_dir) => connect(data_dir).is_ok(),
            Self::Remote(_) => true,
        }
    }

    /// As it is named in messages.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Local(data_dir) => format!("on {}", data_dir.display()),
            Self::Remote(remote) => format!("at {}", remote.url),
        }
    }

    fn not_understood(&self, what: &str) -> anyhow::Error {
        let place = self.place();
        Failure::usage(match self {
            Self::Local(_) => format!(
                "unexpected answer of the broker {place} ({what}); it may be of another version than this \
                 program: use the program that the broker was started with"
            ),
            Self::Remote(_) => format!(
                "unexpected answer {place} ({what}); check that the URL is that of the HTTP port of a thrum of \
                 the version of this program, and that a proxy between passes {PREFIX} on"
            ),
        })
    }

    /// The failure of a connection within an exchange.
    pub(crate) fn unanswered(&self, error: &io::Error) -> anyhow::Error {
        let why = match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                format!("nothing came for {} s", TIME_MAX.as_secs())
            }
            _ => error.to_string(),
        };
        let place = self.place();
        Failure::with_code(
            Failure::UNREACHABLE,
            format!("no answer from the broker {place}: {why}; look into its log"),
        )
    }
}

/// The failure of a change that a stopped broker refuses, which is that of a running one.
pub(crate) fn refused(problem: &Problem) -> anyhow::Error {
    failed(
        problem.status,
        &problem.detail,
        &in_commands(&problem.remedy),
    )
}

fn failed(status: u16, detail: &str, remedy: &str) -> anyhow::Error {
    let code = match status {
        401 | 403 => Failure::DENIED,
        404 => Failure::NOT_FOUND,
        409 => Failure::CONFLICT,
        // Nobody answered in time, or this is not the time to ask.
        408 | 429 | 502..=504 => Failure::UNREACHABLE,
        500.. => 1,
        _ => Failure::USAGE,
    };
    Failure::with_code(code, format!("{detail}; {remedy}"))
}

fn connect(data_dir: &Path) -> anyhow::Result<UnixStream> {
    let folder = Folder::open(data_dir).map_err(|error| unreached(data_dir, &error, true))?;
    let connected = folder.connect(OsStr::new(SOCKET));
    let stream = connected.map_err(|error| unreached(data_dir, &error, false))?;
    stream.set_read_timeout(Some(TIME_MAX))?;
    stream.set_write_timeout(Some(TIME_MAX))?;
    Ok(stream)
}

/// Whether no broker runs on a data directory.
pub(super) fn is_stopped(data_dir: &Path) -> anyhow::Result<bool> {
    let folder = Folder::open(data_dir).map_err(|error| unreached(data_dir, &error, true))?;
    let connected = folder.connect(OsStr::new(SOCKET));
    Ok(connected.is_err_and(|error| {
        matches!(
            error.kind(),
            ErrorKind::NotFound | ErrorKind::ConnectionRefused
        )
    }))
}

/// Whether a broker runs on a data directory, which need not be there.
pub(super) fn is_running(data_dir: &Path) -> anyhow::Result<bool> {
    if !data_dir.exists() {
        return Ok(false);
    }
    is_stopped(data_dir).map(|is_stopped| !is_stopped)
}

/// The reason why the broker cannot be reached.
fn unreached(data_dir: &Path, error: &io::Error, is_folder: bool) -> anyhow::Error {
    let shown = data_dir.display();
    let (code, message) = match error.kind() {
        ErrorKind::NotFound if is_folder => (
            Failure::USAGE,
            format!("there is no directory {shown}; name the directory that node.data_dir names"),
        ),
        ErrorKind::NotFound => (
            Failure::UNREACHABLE,
            format!(
                "no broker runs on {shown}: there is no {SOCKET} in it; start one with thrum serve --data-dir {shown}"
            ),
        ),
        ErrorKind::ConnectionRefused => (
            Failure::UNREACHABLE,
            format!(
                "no broker runs on {shown}: its {SOCKET} is from a broker that was killed; start one with \
                 thrum serve --data-dir {shown}"
            ),
        ),
        ErrorKind::PermissionDenied => {
            let owner = owner(data_dir);
            (
                Failure::DENIED,
                format!(
                    "permission denied: {shown} belongs to {owner}; run this as that user or as root"
                ),
            )
        }
        _ => (
            Failure::UNREACHABLE,
            format!("cannot reach the broker on {shown}: {error}"),
        ),
    };
    Failure::with_code(code, message)
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

    fn code(error: &anyhow::Error) -> u8 {
        error.downcast_ref().map_or(1, Failure::code)
    }

    #[test]
    fn an_unreached_broker_is_reported_with_a_remedy() {
        let path = Path::new("data");
        let said = |kind: ErrorKind, is_folder| {
            let error = unreached(path, &io::Error::from(kind), is_folder);
            (code(&error), error.to_string())
        };
        let (code, text) = said(ErrorKind::NotFound, true);
        assert!(code == 2 && text.starts_with("there is no directory data;"));
        let (code, text) = said(ErrorKind::NotFound, false);
        assert!(code == 5 && text.contains("start one with"));
        let (code, text) = said(ErrorKind::ConnectionRefused, false);
        assert!(code == 5 && text.contains("was killed"));
        let (code, text) = said(ErrorKind::PermissionDenied, true);
        assert!(
            code == 4 && text.contains("belongs to another user"),
            "{text}"
        );
        assert!(owner(Path::new("/")).starts_with("user root (0)"));
    }

    fn refused(broker: &Broker, status: u16, body: &str) -> (u8, String) {
        let error = broker.refusal(status, body.as_bytes());
        (code(&error), error.to_string())
    }

    #[test]
    fn a_refusal_has_the_code_of_its_status_and_the_remedy_of_the_broker() {
        let broker = Broker::Local("data".into());
        let problem = r#"{"title":"t","status":404,"detail":"not there","remedy":"look"}"#;
        for (status, expected) in [
            (400, 2),
            (401, 4),
            (403, 4),
            (404, 3),
            (409, 6),
            (429, 5),
            (500, 1),
            (503, 5),
            (504, 5),
            (507, 1),
        ] {
            let said = (expected, "not there; look".to_owned());
            assert_eq!(refused(&broker, status, problem), said, "{status}");
        }
        let (code, text) = refused(&broker, 502, "<html>\u{1b}");
        assert_eq!(code, 2);
        assert!(text.contains("(status 502: <html>\\u{1b})"), "{text}");
    }

    #[test]
    fn who_shows_no_key_is_told_how_to_give_one() {
        let remote = Remote {
            url: Url::parse("https://b").unwrap(),
            token: None,
            tls: TlsOptions::default(),
        };
        let problem = r#"{"title":"t","status":401,"detail":"login needed","remedy":"log in"}"#;
        let (code, text) = refused(&Broker::Remote(Box::new(remote)), 401, problem);
        assert_eq!(code, 4);
        assert!(text.contains("--token-file FILE"), "{text}");
    }
}
