//! `thrum alarms`: what somebody has to do something about.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use thrum_management::api::{Alarm, AlarmHistory, AlarmList};

use super::running::{Form, Method, Output, Running};
use super::shown::{json_line, name};

const EXAMPLES: &str = "\
Examples:
  thrum alarms ls --data-dir /var/lib/thrum
  thrum alarms history --data-dir /var/lib/thrum
  thrum config explain alarms              the thresholds";

/// Arguments of `thrum alarms`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct AlarmsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List alarms that are raised, and what to do; exits with 1 if one is critical.
    Ls(ListArgs),
    /// List alarms that were cleared since the start of the broker, the newest first.
    History(HistoryArgs),
}

/// Arguments of `thrum alarms ls`.
#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Arguments of `thrum alarms history`.
#[derive(Debug, Args)]
struct HistoryArgs {
    /// Most alarms that are listed.
    #[arg(long, value_name = "N", default_value_t = 50,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    #[command(flatten)]
    list: ListArgs,
}

/// Runs one of them.
pub(crate) fn run(args: &AlarmsArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Ls(args) => list(args),
        Action::History(args) => {
            history(args)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn list(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let AlarmList { alarms } = args.running.ask(Method::Get, "/alarms")?;
    let mut out = std::io::stdout().lock();
    for alarm in &alarms {
        match args.output.form {
            Form::Table => writeln!(out, "{}", with_fix(alarm))?,
            Form::Json => writeln!(out, "{}", json_line(alarm)?)?,
        }
    }
    if alarms.is_empty() && args.output.form == Form::Table {
        writeln!(std::io::stderr(), "there are no alarms")?;
    }
    let is_critical = alarms.iter().any(|alarm| alarm.severity == "critical");
    Ok(if is_critical {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn history(args: &HistoryArgs) -> anyhow::Result<()> {
    let path = format!("/alarms/history?limit={}", args.limit);
    let page: AlarmHistory = args.list.running.ask(Method::Get, &path)?;
    let mut out = std::io::stdout().lock();
    if page.alarms.is_empty() {
        writeln!(std::io::stderr(), "no alarm has ended since the start")?;
    }
    for past in &page.alarms {
        match args.list.output.form {
            Form::Table => writeln!(out, "{} to {}", line(&past.alarm), past.cleared_at)?,
            Form::Json => writeln!(out, "{}", json_line(past)?)?,
        }
    }
    if page.next.is_some() {
        writeln!(std::io::stderr(), "there are older ones; --limit N lists N")?;
    }
    Ok(())
}

/// An alarm and what to do.
fn with_fix(alarm: &Alarm) -> String {
    let mut text = format!("{}\n    {}", line(alarm), name(&alarm.fix));
    for command in &alarm.commands {
        text.extend([format!("\n    $ {}", name(command))]);
    }
    text
}

/// An alarm in one line.
pub(super) fn line(alarm: &Alarm) -> String {
    let Alarm {
        name: alarm_name,
        severity,
        of,
        what,
        raised_at,
        ..
    } = alarm;
    let of = of
        .as_ref()
        .map_or_else(String::new, |of| format!(" ({})", name(of)));
    format!(
        "{severity:<8} {alarm_name}{of}: {}; since {raised_at}",
        name(what)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_is_one_line_with_its_subject() {
        let alarm = Alarm {
            name: "sink_not_delivering".to_owned(),
            severity: "critical".to_owned(),
            of: Some("log".to_owned()),
            what: "it is stuck".to_owned(),
            fix: "look".to_owned(),
            arguments: std::collections::BTreeMap::new(),
            commands: Vec::new(),
            requests: Vec::new(),
            raised_at: "then".to_owned(),
        };
        assert_eq!(
            line(&alarm),
            "critical sink_not_delivering (log): it is stuck; since then"
        );
        let named = Alarm {
            commands: vec!["thrum clients get a\u{1b}[2Jb".to_owned()],
            ..alarm.clone()
        };
        assert!(with_fix(&named).ends_with("\n    look\n    $ thrum clients get a\\u{1b}[2Jb"));
        let node = Alarm { of: None, ..alarm };
        assert_eq!(
            line(&node),
            "critical sink_not_delivering: it is stuck; since then"
        );
    }
}
