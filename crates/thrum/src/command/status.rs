//! `thrum status`: a summary of a running broker.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Args;
use thrum_figures::{bytes, count, fraction};
use thrum_management::api::{AlarmList, Status};

use super::alarms;
use super::running::{Form, Method, Output, Running};
use super::shown::{NOTHING, json_line};

const EXAMPLES: &str = "\
Examples:
  thrum status --data-dir /var/lib/thrum
  thrum status -c thrum.toml -o json

Without --data-dir or -c the broker is that of /etc/thrum/thrum.toml. A broker without a data directory has no control socket.";

/// Arguments of `thrum status`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Shows.
pub(crate) fn run(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let status: Status = args.running.ask(Method::Get, "/status")?;
    let mut out = std::io::stdout().lock();
    match args.output.form {
        Form::Table => {
            write!(out, "{}", text(&status))?;
            let list: AlarmList = args.running.ask(Method::Get, "/alarms")?;
            if !list.alarms.is_empty() {
                writeln!(out, "\nalarms")?;
            }
            for alarm in &list.alarms {
                writeln!(out, "  {}", alarms::line(alarm))?;
            }
        }
        Form::Json => writeln!(out, "{}", json_line(&status)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn text(status: &Status) -> String {
    let mut text = String::new();
    for (heading, value) in lines(status) {
        text.extend([format!("{heading:<14} {value}\n")]);
    }
    text.push_str("\nlisteners\n");
    for listener in &status.listeners {
        text.extend([format!("  {:<12} {}\n", listener.name, listener.address)]);
    }
    text
}

fn one_or_more(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// What follows the memory in use.
fn limit(most: Option<u64>) -> String {
    most.map_or_else(
        || ", no limit".to_owned(),
        |most| format!(" of {}", bytes(fraction(most))),
    )
}

/// Headings and values above the list of listeners.
fn lines(status: &Status) -> [(&'static str, String); 9] {
    let away = status.sessions.saturating_sub(status.clients_connected);
    let counts = status.connections;
    let memory = status.memory;
    let size = |bytes_of: Option<u64>| {
        bytes_of.map_or_else(|| NOTHING.to_owned(), |count| bytes(fraction(count)))
    };
    [
        (
            "version",
            format!(
                "{}, {}",
                status.version,
                one_or_more(status.workers as u64, "worker", "workers")
            ),
        ),
        (
            "started",
            format!("{}, up {}", status.started_at, up(status.uptime_secs)),
        ),
        (
            "clients",
            format!(
                "{} connected, {} away",
                count(status.clients_connected),
                count(away)
            ),
        ),
        (
            "sessions",
            format!(
                "{}, {} outlive their connection",
                count(status.sessions),
                count(status.sessions_persistent)
            ),
        ),
        (
            "connections",
            format!(
                "{} established, {} in a handshake, {} before CONNECT, {} authenticating, {} closing",
                count(counts.established),
                count(counts.in_handshake),
                count(counts.awaiting_connect),
                count(counts.authenticating),
                count(counts.closing)
            ),
        ),
        ("subscriptions", count(status.subscriptions)),
        (
            "retained",
            format!(
                "{}, {}",
                one_or_more(status.retained_messages, "message", "messages"),
                bytes(fraction(status.retained_bytes))
            ),
        ),
        (
            "memory",
            format!(
                "{}{}",
                size(memory.resident_bytes),
                limit(memory.limit_bytes)
            ),
        ),
        (
            "storage",
            status.storage.clone().unwrap_or_else(|| "none".to_owned()),
        ),
    ]
}

/// Seconds in their two largest units: `3d 4h`, `5m 2s`.
fn up(secs: u64) -> String {
    let units = [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let mut rest = secs;
    let mut parts = Vec::new();
    for (unit, letter) in units {
        if parts.len() < 2 && (rest >= unit || !parts.is_empty() || unit == 1) {
            parts.push(format!("{}{letter}", rest / unit));
        }
        rest %= unit;
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_no_limit_is_not_a_size() {
        assert_eq!(one_or_more(1, "worker", "workers"), "1 worker");
        assert_eq!(one_or_more(2, "worker", "workers"), "2 workers");
        assert_eq!(limit(None), ", no limit");
        assert_eq!(limit(Some(2048)), " of 2 KiB");
    }

    #[test]
    fn times_have_two_units() {
        for (secs, expected) in [
            (0, "0s"),
            (59, "59s"),
            (302, "5m 2s"),
            (3600, "1h 0m"),
            (86_400 * 3 + 4 * 3600 + 59, "3d 4h"),
        ] {
            assert_eq!(up(secs), expected);
        }
    }
}
