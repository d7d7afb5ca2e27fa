//! `thrum logs`: the last lines of the log of a running broker, and its level for a time.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use thrum_management::api::{LevelList, LogLine, LogPage};

use super::Failure;
use super::running::{Form, Method, Output, Running, encoded};
use super::shown::{json_line, name, parse_span};

/// Lines of one request: the limit of the broker.
const PAGE: usize = 1000;
/// A follower asks again after this time.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

const EXAMPLES: &str = "\
Examples:
  thrum logs tail --data-dir /var/lib/thrum
  thrum logs tail -f --level warn --data-dir /var/lib/thrum
  thrum logs level thrum_broker=debug --for 10m --data-dir /var/lib/thrum

The broker keeps the last lines, about 1 MiB of them; all of them are on its standard error.";

/// Arguments of `thrum logs`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct LogsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the last lines.
    Tail(TailArgs),
    /// Show the level, or set it for a time, for all of the broker or a part of it.
    Level(LevelArgs),
}

/// Arguments of `thrum logs tail`.
#[derive(Debug, Args)]
struct TailArgs {
    /// Go on with lines as they come, until ^C.
    #[arg(short, long)]
    follow: bool,
    /// Number of lines to begin with.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    lines: u16,
    /// Only lines of this level and more important ones: error, warn, info, debug, trace.
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,
    /// Only lines of this part of the broker, such as `thrum_broker::door`.
    #[arg(long, value_name = "PART")]
    target: Option<String>,
    /// Only lines with this text.
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Arguments of `thrum logs level`.
#[derive(Debug, Args)]
struct LevelArgs {
    /// LEVEL or PART=LEVEL, such as debug or `thrum_broker=trace`; PART= for that of the
    /// configuration again. Without PART it is for all parts that begin with `thrum`. Without it
    /// the levels are shown.
    level: Option<String>,
    /// It returns by itself after this time, at most a day.
    #[arg(long = "for", value_name = "TIME", default_value = "10m", value_parser = parse_span)]
    time: Duration,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Runs one of them.
pub(crate) fn run(args: &LogsArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Tail(args) => tail(args)?,
        Action::Level(args) => level(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn tail(args: &TailArgs) -> anyhow::Result<()> {
    let newest = format!("/logs?limit={}{}", args.lines, args.filter());
    let mut page: LogPage = args.running.ask(Method::Get, &newest)?;
    page.events.reverse();
    loop {
        args.print(&page)?;
        if !args.follow {
            return Ok(());
        }
        if page.next.is_none() || page.events.is_empty() {
            wait();
        }
        let path = format!("/logs?limit={PAGE}&after={}{}", page.last, args.filter());
        page = args.running.ask(Method::Get, &path)?;
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a command that follows a log waits for its next lines"
)]
fn wait() {
    std::thread::sleep(FOLLOW_INTERVAL);
}

impl TailArgs {
    fn filter(&self) -> String {
        let mut filter = String::new();
        for (key, value) in [
            ("level", &self.level),
            ("target", &self.target),
            ("text", &self.text),
        ] {
            if let Some(value) = value {
                filter.extend(["&", key, "=", &encoded(value)]);
            }
        }
        filter
    }

    fn print(&self, page: &LogPage) -> anyhow::Result<()> {
        if page.missed > 0 {
            let missed = page.missed;
            writeln!(
                std::io::stderr(),
                "{missed} lines came too fast, and are left out"
            )?;
        }
        let mut out = std::io::stdout().lock();
        for line in &page.events {
            match self.output.form {
                Form::Table => writeln!(out, "{}", text_of(line))?,
                Form::Json => writeln!(out, "{}", json_line(line)?)?,
            }
        }
        out.flush()?;
        Ok(())
    }
}

/// As on standard error: time, level, part, text and fields.
fn text_of(line: &LogLine) -> String {
    let LogLine {
        at,
        level,
        target,
        text,
        fields,
        ..
    } = line;
    let level = level.to_uppercase();
    let mut shown = format!("{at} {level:>5} {target}: {}", name(text));
    for (field, value) in fields {
        shown.extend([" ", field, "=", &name(value)]);
    }
    shown
}

fn level(args: &LevelArgs) -> anyhow::Result<()> {
    let levels: LevelList = match &args.level {
        None => args.running.ask(Method::Get, "/logs/level")?,
        Some(level) => {
            let (target, level) = level.split_once('=').unwrap_or(("", level));
            let level = Some(level).filter(|level| !level.is_empty());
            if target.is_empty() && level.is_none() {
                return Err(Failure::usage(
                    "expected LEVEL or PART=LEVEL, such as debug",
                ));
            }
            let body = json!({
                "target": target,
                "level": level,
                "seconds": args.time.as_secs(),
            });
            args.running.put("/logs/level", &body)?
        }
    };
    let mut out = std::io::stdout().lock();
    if args.output.form == Form::Json {
        writeln!(out, "{}", json_line(&levels)?)?;
        return Ok(());
    }
    writeln!(out, "{}  (log.level)", levels.level)?;
    for raised in levels.raised {
        let target = match raised.target.as_str() {
            "" => "all of the broker",
            target => target,
        };
        writeln!(
            out,
            "{}  {target}, for {} s",
            raised.level, raised.seconds_left
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_does_not_control_the_terminal() {
        let line = LogLine {
            number: 1,
            at: "2026-11-26T18:00:00Z".to_owned(),
            level: "warn".to_owned(),
            target: "thrum".to_owned(),
            text: "a\u{1b}b".to_owned(),
            fields: [("client_id".to_owned(), "x\ny".to_owned())].into(),
        };
        assert_eq!(
            text_of(&line),
            "2026-11-26T18:00:00Z  WARN thrum: a\\u{1b}b client_id=x\\ny"
        );
    }
}
