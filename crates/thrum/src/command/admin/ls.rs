//! `thrum admin ls`.

use clap::Args;
use serde_json::Value;
use thrum_storage::WallMillis;

use crate::command::listing::{
    self, Cell, Column, Fetched, FilterArgs, ListArgs, Listing, Question,
};
use crate::command::running::Running;
use crate::command::shown::NOTHING;

/// Arguments of `thrum admin ls`.
#[derive(Debug, Args)]
pub(super) struct LsArgs {
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    list: ListArgs,
}

static ADMINISTRATORS: Listing = Listing {
    member: "administrators",
    columns: &[
        Column::new("name", "NAME", Cell::Text(0)),
        Column::new("role", "ROLE", Cell::Text(0)),
        Column::new("disabled", "STATE", Cell::Own(state)),
        Column::new("totp", "CODES", Cell::Own(codes)),
        Column::new("sessions", "SESSIONS", Cell::Count),
        Column::new("created_at", "CREATED", Cell::Text(0)),
    ],
    one: "administrator",
    many: "administrators",
    aliases: &[
        ("state", "disabled"),
        ("codes", "totp"),
        ("created", "created_at"),
    ],
    identity: "name",
    sum: "",
};

/// Lists.
pub(super) fn run(args: &LsArgs) -> anyhow::Result<()> {
    let question = Question::new("/admins").whole().with_notes(first);
    listing::run_filtered(
        &args.running,
        &ADMINISTRATORS,
        &question,
        &args.list.unlimited(),
        &args.filter,
    )
}

/// How to make the first one.
fn first(fetched: &Fetched) -> Vec<String> {
    if !fetched.rows.is_empty() {
        return Vec::new();
    }
    vec!["thrum admin setup-url makes a link for the first administrator".to_owned()]
}

fn state(one: &Value, _now: WallMillis) -> String {
    let is_disabled = one.get("disabled") == Some(&Value::Bool(true));
    if is_disabled { "disabled" } else { NOTHING }.to_owned()
}

fn codes(one: &Value, _now: WallMillis) -> String {
    if one.get("totp") != Some(&Value::Bool(true)) {
        return NOTHING.to_owned();
    }
    let left = one.get("recovery_codes_left").and_then(Value::as_u64);
    format!("app, {} recovery", left.unwrap_or(0))
}
