//! `thrum sessions ls`.

use std::time::Duration;

use clap::Args;
use serde_json::Value;
use thrum_storage::WallMillis;

use super::row::rows;
use crate::command::data_dir::DataDir;
use crate::command::listing::{
    self, Cell, Column, FilterArgs, ListArgs, ListForm, Listing, Row, View,
};
use crate::command::shown::{self, seconds};

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
    /// The same as -o json.
    #[arg(long, conflicts_with = "form")]
    json: bool,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    list: ListArgs,
}

static SESSIONS: Listing = Listing {
    member: "",
    columns: &[
        Column::new("client_id", "CLIENT ID", Cell::Text(32)),
        Column::new("version", "VERSION", Cell::Text(0)),
        Column::new("expiry_secs", "EXPIRY", Cell::Own(expiry)),
        Column::new("away_since", "AWAY SINCE", Cell::Text(0)),
        Column::new("subscriptions", "SUBSCRIPTIONS", Cell::Count),
        Column::new("queued", "QUEUED", Cell::Count),
        Column::new("inflight", "INFLIGHT", Cell::Count),
        Column::new("bytes", "BYTES", Cell::Bytes),
    ],
    one: "session",
    many: "sessions",
    aliases: &[
        ("id", "client_id"),
        ("client", "client_id"),
        ("expiry", "expiry_secs"),
        ("away", "away_since"),
        ("subs", "subscriptions"),
        ("queue", "queued"),
    ],
    identity: "client_id",
    sum: "bytes",
};

/// Lists.
pub(super) fn run(args: &LsArgs) -> anyhow::Result<()> {
    let mut list = args.list.unlimited();
    if args.json {
        list = list.in_form(ListForm::Json);
    }
    let view = View::filtered(&SESSIONS, &list, &args.filter);
    listing::run_rows(&view, || {
        let state = args.data_dir.read()?;
        let now = shown::now();
        let mut sessions = rows(&state);
        sessions.retain(|row| args.away_for.is_none_or(|span| row.is_away_for(span, now)));
        let rows = sessions.iter().map(|row| Row::of(&row.json()));
        Ok(rows.collect::<serde_json::Result<_>>()?)
    })
}

fn expiry(session: &Value, _now: WallMillis) -> String {
    let expiry = session.get("expiry_secs").and_then(Value::as_u64);
    let expiry = expiry.and_then(|secs| u32::try_from(secs).ok());
    seconds(expiry.unwrap_or(u32::MAX))
}
