//! `thrum sessions purge`.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::time::Duration;

use clap::Args;
use thrum_storage::{Batch, Change};

use super::get::find;
use super::row::{Row, rows};
use crate::command::data_dir::DataDir;
use crate::command::shown::{self, confirm, counted, name, size};

/// Bytes of changes after which they are committed.
const COMMIT_BYTES: usize = 1 << 20;

/// Arguments of `thrum sessions purge`.
#[derive(Debug, Args)]
pub(super) struct PurgeArgs {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    data_dir: DataDir,
    /// Do not ask.
    #[arg(short = 'y', long = "yes")]
    is_confirmed: bool,
}

/// Which sessions.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Which {
    /// Client identifiers.
    #[arg(value_name = "CLIENT_ID")]
    client_ids: Vec<String>,
    /// Sessions without a connection for at least this time, such as 30d.
    #[arg(long, value_name = "DURATION", value_parser = shown::parse_span)]
    away_for: Option<Duration>,
    /// Every session.
    #[arg(long)]
    all: bool,
}

/// Removes and prints the client identifiers.
pub(super) fn run(args: &PurgeArgs) -> anyhow::Result<()> {
    let mut opened = args.data_dir.open()?;
    let state = &opened.state;
    let rows = rows(state);
    let mut removed: Vec<&Row<'_>> = Vec::new();
    let client_ids: BTreeSet<&String> = args.which.client_ids.iter().collect();
    for client_id in client_ids {
        removed.push(find(&rows, client_id, args.data_dir.path())?);
    }
    let now = shown::now();
    let is_meant = |row: &&Row<'_>| {
        let is_away = |span| row.is_away_for(span, now);
        args.which.all || args.which.away_for.is_some_and(is_away)
    };
    removed.extend(rows.iter().filter(is_meant));
    let mut errors = std::io::stderr();
    if removed.is_empty() {
        writeln!(errors, "no session matches, nothing was removed")?;
        return Ok(());
    }
    let blast = blast(&removed);
    if !args.is_confirmed {
        confirm(&format!("remove {blast}?"))?;
    }
    let names: BTreeSet<&str> = removed.iter().map(|row| &*row.session.client_id).collect();
    let mut batch = Batch::default();
    // Older sessions of the same client too, or one of them would be the newest.
    for session in &state.sessions {
        if !names.contains(&*session.client_id) {
            continue;
        }
        batch.push(&Change::SessionRemoved {
            session: session.id,
        });
        batch.end_unit();
        if batch.bytes_len() > COMMIT_BYTES {
            opened.store.apply(&batch)?;
            opened.store.commit()?;
            batch.clear();
        }
    }
    opened.store.apply(&batch)?;
    opened.store.close()?;
    let mut out = std::io::stdout().lock();
    for client_id in &names {
        writeln!(out, "{}", name(client_id))?;
    }
    writeln!(errors, "removed {blast}")?;
    Ok(())
}

fn blast(rows: &[&Row<'_>]) -> String {
    let sum = |value: fn(&Row<'_>) -> usize| rows.iter().map(|row| value(row)).sum::<usize>();
    format!(
        "{} with {}, {} queued and {} inflight ({})",
        counted(rows.len(), "session", "sessions"),
        counted(
            sum(|row| row.session.subscriptions.len()),
            "subscription",
            "subscriptions"
        ),
        sum(|row| row.queued),
        sum(|row| row.inflight),
        size(sum(|row| row.bytes))
    )
}
