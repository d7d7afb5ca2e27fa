//! `emqtt_bench conn|sub|pub …` as a scenario: groups of clients, and a note for every option that
//! has no counterpart.

use super::messages::{publish, topic};
use super::notes::Notes;
use super::options::{Kind, Line, shown};
use super::toml;
use super::words::{TEXT_MAX, commands};

/// Clients without `-c`.
const COUNT: u64 = 200;
/// Milliseconds between connections without `-i` and `-R`.
const INTERVAL_MS: u64 = 10;
/// Milliseconds between messages without `-I`.
pub(super) const INTERVAL_OF_MSG_MS: u64 = 1_000;
/// Seconds of keep alive without `-k`.
const KEEP_ALIVE: u64 = 300;

/// Most command lines.
const LINES_MAX: usize = 32;

/// A scenario made of command lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The scenario file.
    pub toml: String,
    /// Options that the file cannot express; its comments name them too.
    pub notes: Vec<String>,
}

/// Why command lines cannot be turned into a scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// A quote without its end.
    #[error("a quote is not closed")]
    Quote,
    /// Not one line, or too many.
    #[error("give 1 to {LINES_MAX} command lines of emqtt_bench, {TEXT_MAX} characters at most")]
    Lines,
    /// Neither conn nor sub nor pub.
    #[error("'{0}' is not a command of emqtt_bench: conn, sub or pub is missing")]
    NoCommand(String),
    /// An option that `emqtt_bench` does not have.
    #[error("emqtt_bench has no option '{0}'")]
    UnknownOption(String),
    /// An option at the end of the line.
    #[error("the value of {0} is missing")]
    NoValue(String),
    /// Not a value of the option.
    #[error("{option} '{value}': expected {expected}")]
    Malformed {
        /// The option.
        option: String,
        /// As written.
        value: String,
        /// The accepted values.
        expected: &'static str,
    },
    /// Nothing to publish or subscribe to.
    #[error("{0} needs -t TOPIC")]
    NoTopic(&'static str),
}

/// Turns the command lines of a text into one scenario; those of one text run at the same time.
///
/// # Errors
/// Something that `emqtt_bench` would not take either.
pub fn import(text: &str) -> Result<Imported, ImportError> {
    if text.len() > TEXT_MAX {
        return Err(ImportError::Lines);
    }
    let commands = commands(text).ok_or(ImportError::Quote)?;
    if commands.is_empty() || commands.len() > LINES_MAX {
        return Err(ImportError::Lines);
    }
    let mut notes = Notes::default();
    let mut groups = Vec::new();
    let mut connect_rate = 0;
    let mut hold = None;
    for words in &commands {
        let line = Line::parse(words)?;
        connect_rate += line_connect_rate(&line, &mut notes)?;
        hold = hold.max(hold_seconds(&line, &mut notes)?);
        let group = group(&line, &mut notes)?;
        groups.push(group);
        notes.without_counterpart(&line);
    }
    toml::number_names(&mut groups);
    let commands: Vec<String> = commands.iter().map(|words| words.join(" ")).collect();
    let notes = notes.0;
    let toml = toml::write(&toml::File {
        commands: &commands,
        notes: &notes,
        connect_rate,
        hold_seconds: hold,
        groups: &groups,
    });
    Ok(Imported { toml, notes })
}

fn line_connect_rate(line: &Line, notes: &mut Notes) -> Result<u64, ImportError> {
    let rate = line.number("connrate", 0)?;
    if rate > 0 {
        return Ok(rate);
    }
    let interval_ms = line.number("interval", INTERVAL_MS)?;
    if interval_ms == 0 {
        notes.add(
            "interval",
            "0 is as fast as possible; here all connect within one second",
        );
        return line.number("count", COUNT);
    }
    Ok((1_000 / interval_ms).max(1))
}

/// How long it takes to send the most messages that the line allows.
fn hold_seconds(line: &Line, notes: &mut Notes) -> Result<Option<u64>, ImportError> {
    let limit = line.number("limit", 0)?;
    if line.kind != Kind::Publish || limit == 0 {
        return Ok(None);
    }
    let (clients, interval_ms) = (
        line.number("count", COUNT)?.max(1),
        line.number("interval_of_msg", INTERVAL_OF_MSG_MS)?,
    );
    notes.add(
        "limit",
        "the run is held for the time that so many messages take at the rate of all publishers",
    );
    Ok(Some(
        limit
            .saturating_mul(interval_ms)
            .div_ceil(clients.saturating_mul(1_000))
            .max(1),
    ))
}

fn group(line: &Line, notes: &mut Notes) -> Result<toml::Group, ImportError> {
    let mut group = toml::Group::new(match line.kind {
        Kind::Conn => "connections",
        Kind::Sub => "subscribers",
        Kind::Publish => "publishers",
    });
    group.target = target(line, notes)?;
    group.clients = line.number("count", COUNT)?;
    group.put("version", toml::text(version(line)?));
    group.put(
        "keep_alive",
        line.number("keepalive", KEEP_ALIVE)?.to_string(),
    );
    identify(line, &mut group, notes);
    keep_session(line, &mut group, notes)?;
    if line.number("reconnect", 0)? > 0 {
        notes.add(
            "reconnect",
            "clients reconnect until they succeed, 1 s after a loss",
        );
        group.put(
            "reconnect",
            r#"{ delay = "1s", delay_max = "1s" }"#.to_owned(),
        );
    }
    match line.kind {
        Kind::Conn => {}
        Kind::Sub => {
            let filter = topic(line, notes)?.ok_or(ImportError::NoTopic("sub"))?;
            let fields = [("filter", toml::text(&filter)), ("qos", qos(line)?)];
            group.put("subscribe", toml::inline(&fields));
        }
        Kind::Publish => {
            let fields = publish(line, notes)?;
            group.put("publish", toml::inline(&fields));
        }
    }
    Ok(group)
}

fn target(line: &Line, notes: &mut Notes) -> Result<String, ImportError> {
    let hosts = line.value("host").unwrap_or("localhost");
    let host = hosts.split(',').next().unwrap_or(hosts);
    if host.len() != hosts.len() {
        notes.add(
            "host",
            "of several hosts the first is the target; write a group for each",
        );
    }
    let host = if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    let port = line.number("port", 1_883)?;
    let has_tls = line.flag("ssl") || line.value("ssl-version").is_some();
    Ok(match (line.flag("ws"), has_tls) {
        (false, false) => format!("mqtt://{host}:{port}"),
        (false, true) => format!("mqtts://{host}:{port}"),
        (true, false) => format!("ws://{host}:{port}/mqtt"),
        (true, true) => format!("wss://{host}:{port}/mqtt"),
    })
}

fn version(line: &Line) -> Result<&'static str, ImportError> {
    match line.value("version").unwrap_or("5") {
        "3" => Ok("3.1"),
        "4" => Ok("3.1.1"),
        "5" => Ok("5.0"),
        other => Err(ImportError::Malformed {
            option: shown("version"),
            value: other.to_owned(),
            expected: "3, 4 or 5",
        }),
    }
}

pub(super) fn qos(line: &Line) -> Result<String, ImportError> {
    match line.value("qos").unwrap_or("0") {
        level @ ("0" | "1" | "2") => Ok(level.to_owned()),
        other => Err(ImportError::Malformed {
            option: shown("qos"),
            value: other.to_owned(),
            expected: "0, 1 or 2",
        }),
    }
}

fn identify(line: &Line, group: &mut toml::Group, notes: &mut Notes) {
    if let Some(id) = client_id(line) {
        group.put("client_id", toml::text(&id));
    }
    if let Some(username) = username(line) {
        if username.contains("%rand_") {
            notes.add(
                "username",
                "random user names have no counterpart, the text stays as it is",
            );
        }
        group.put("username", toml::text(&username));
    }
    if let Some(password) = line.value("password") {
        notes.add(
            "password",
            "the file contains it; --password-file of the run keeps it out",
        );
        group.put("password", toml::text(password));
    }
}

/// The client identifier that the options fix; without a prefix it holds the host and a random
/// number.
pub(super) fn client_id(line: &Line) -> Option<String> {
    let prefix = line.value("prefix").unwrap_or_default();
    let kind = match line.kind {
        Kind::Conn => "conn",
        Kind::Sub => "sub",
        Kind::Publish => "pub",
    };
    match (line.flag("shortids"), prefix.is_empty()) {
        (true, _) => Some(format!("{prefix}{{i}}")),
        (false, false) => Some(format!("{prefix}_bench_{kind}_{{i}}")),
        (false, true) => None,
    }
}

pub(super) fn username(line: &Line) -> Option<String> {
    let username = line.value("username")?;
    Some(if username == "%i" {
        "{i}".to_owned()
    } else {
        username.to_owned()
    })
}

fn keep_session(
    line: &Line,
    group: &mut toml::Group,
    notes: &mut Notes,
) -> Result<(), ImportError> {
    let is_clean = line.value("clean").unwrap_or("true") == "true";
    let expiry = line.number("session-expiry", 0)?;
    if version(line)? == "5.0" {
        if expiry > 0 {
            group.put("session_expiry", toml::text(&format!("{expiry}s")));
        } else if !is_clean {
            notes.add(
                "clean",
                "without a session expiry the session ends with its connection, so it is left out",
            );
        }
    } else if !is_clean {
        notes.add(
            "clean",
            "before MQTT 5.0 the broker decides how long it keeps a session",
        );
        group.put("session_expiry", toml::text("1h"));
    }
    Ok(())
}
