//! `thrum sessions ls`.

use std::io::Write as _;
use std::time::Duration;

use clap::Args;

use super::row::{HEADINGS, Row, rows};
use crate::command::data_dir::DataDir;
use crate::command::shown::{self, counted, size, table};

const AWAY_SINCE: &str = "\
A session without a time of leaving is connected, or was when the broker ended without saying so.
BYTES are topics, properties and payloads of what is queued or inflight.";

/// Arguments of `thrum sessions ls`.
#[derive(Debug, Args)]
#[command(after_help = AWAY_SINCE)]
pub(super) struct LsArgs {
    #[command(flatten)]
    data_dir: DataDir,
    /// Only sessions without a connection for at least this time, such as 7d.
    #[arg(long, value_name = "DURATION", value_parser = shown::parse_span)]
    away_for: Option<Duration>,
    /// Only client identifiers with this text in them.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    filter: String,
    /// One line of JSON for each session.
    #[arg(long)]
    json: bool,
}

/// Lists.
pub(super) fn run(args: &LsArgs) -> anyhow::Result<()> {
    let state = args.data_dir.read()?;
    let now = shown::now();
    let mut rows = rows(&state);
    rows.retain(|row| {
        let is_meant = row.session.client_id.contains(&args.filter);
        is_meant && args.away_for.is_none_or(|span| row.is_away_for(span, now))
    });
    let mut out = std::io::stdout().lock();
    if args.json {
        for row in &rows {
            writeln!(out, "{}", shown::json_line(&row.json())?)?;
        }
        return Ok(());
    }
    if !rows.is_empty() {
        let lines: Vec<_> = rows.iter().map(Row::columns).collect();
        writeln!(out, "{}", table(&HEADINGS, &lines))?;
    }
    let sum = |value: fn(&Row<'_>) -> usize| rows.iter().map(value).sum::<usize>();
    writeln!(
        out,
        "{}: {} queued, {} inflight, {}",
        counted(rows.len(), "session", "sessions"),
        sum(|row| row.queued),
        sum(|row| row.inflight),
        size(sum(|row| row.bytes))
    )?;
    Ok(())
}
