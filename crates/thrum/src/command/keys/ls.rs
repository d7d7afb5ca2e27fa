//! `thrum keys ls`.

use clap::Args;
use serde_json::Value;
use thrum_storage::WallMillis;

use crate::command::listing::{self, Cell, Column, FilterArgs, ListArgs, Listing, Question};
use crate::command::running::Running;

/// Arguments of `thrum keys ls`.
#[derive(Debug, Args)]
pub(super) struct LsArgs {
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    list: ListArgs,
}

static KEYS: Listing = Listing {
    member: "keys",
    columns: &[
        Column::new("id", "ID", Cell::Text(0)),
        Column::new("label", "LABEL", Cell::Text(0)),
        Column::new("scopes", "SCOPES", Cell::Text(0)),
        Column::new("used_at", "USED", Cell::Text(0)),
        Column::new("expires_at", "EXPIRES", Cell::Own(expires)),
        Column::new("created_by", "MADE BY", Cell::Text(0)),
        Column::wide("created_at", "MADE", Cell::Text(0)),
    ],
    one: "key",
    many: "keys",
    aliases: &[("used", "used_at"), ("expires", "expires_at")],
    identity: "id",
    sum: "",
};

/// Lists.
pub(super) fn run(args: &LsArgs) -> anyhow::Result<()> {
    let question = Question::new("/keys").whole();
    let list = args.list.unlimited();
    listing::run_filtered(&args.running, &KEYS, &question, &list, &args.filter)
}

fn expires(key: &Value, _now: WallMillis) -> String {
    if key.get("expired") == Some(&Value::Bool(true)) {
        return "expired".to_owned();
    }
    let at = key.get("expires_at").and_then(Value::as_str);
    at.unwrap_or("never").to_owned()
}
