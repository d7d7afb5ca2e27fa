//! `thrum clients timeline`.

use std::io::Write as _;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use thrum_management::api::{Timeline, TimelineEvent};

use crate::command::running::{Form, Method, Output, Running, encoded};
use crate::command::shown::{json_line, name};

const NOTES: &str = "\
The broker remembers the last 200 events of a client, also of one that has gone (node.timeline_bytes). A number with x says how often the same happened.";

/// Arguments of `thrum clients timeline`.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(super) struct TimelineArgs {
    /// Client identifier.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    client_id: String,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Shows.
pub(super) fn run(args: &TimelineArgs) -> anyhow::Result<()> {
    let path = format!("/clients/{}/timeline", encoded(&args.client_id));
    let timeline: Timeline = args.running.ask(Method::Get, &path)?;
    let mut out = std::io::stdout().lock();
    if args.output.form == Form::Json {
        for event in &timeline.events {
            writeln!(out, "{}", json_line(event)?)?;
        }
        return Ok(());
    }
    if timeline.forgotten > 0 {
        let count = timeline.forgotten;
        writeln!(out, "… at least {count} earlier events are forgotten")?;
    }
    write!(out, "{}", events(&timeline.events))?;
    if timeline.events.is_empty() {
        writeln!(out, "no event is remembered")?;
    }
    Ok(())
}

/// Events, one a line.
pub(in crate::command) fn events(events: &[TimelineEvent]) -> String {
    let mut text = String::new();
    for event in events {
        let count = match event.count {
            0 | 1 => String::new(),
            count => format!("x{count} "),
        };
        let others = match event.others {
            0 => String::new(),
            others => format!(" (and {others} others of such kinds)"),
        };
        let words = name(&event.text);
        text.extend([format!("{}  {count}{words}{others}\n", event.at)]);
    }
    text
}
