//! `thrum bans ls`.

use clap::Args;
use serde_json::{Value, json};
use thrum_protection::Ban;
use thrum_storage::WallMillis;

use super::place::{BanFiles, Bans, Place, load};
use super::subject::parts;
use crate::command::listing::{
    self, Cell, Column, FilterArgs, ListArgs, ListForm, Listing, Row, View,
};
use crate::command::shown::{now, time};

const TEMPORARY: &str = "\
Bans by flapping were made by the broker for a time; they are gone when it stops. A ban with two names is of one client: of this user, or without user \
name from this address.";

/// Arguments of `thrum bans ls`.
#[derive(Debug, Args)]
#[command(after_help = TEMPORARY)]
pub(super) struct LsArgs {
    #[command(flatten)]
    place: Place,
    /// The same as -o json.
    #[arg(long, conflicts_with = "form")]
    json: bool,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    list: ListArgs,
}

static BANS: Listing = Listing {
    member: "bans",
    columns: &[
        Column::new("client_id", "CLIENT ID", Cell::Text(24)),
        Column::new("user", "USER", Cell::Text(16)),
        Column::new("address", "ADDRESS", Cell::Text(0)),
        Column::new("since", "SINCE", Cell::Text(0)),
        Column::new("until", "UNTIL", Cell::Own(until)),
        Column::new("by", "BY", Cell::Text(0)),
        Column::wide("disconnect", "DISCONNECTS", Cell::Text(0)),
        Column::wide("temporary", "TEMPORARY", Cell::Text(0)),
        Column::new("reason", "REASON", Cell::Text(0)),
    ],
    one: "ban",
    many: "bans",
    aliases: &[("client", "client_id"), ("username", "user")],
    identity: "",
    sum: "",
};

/// Lists what is in force.
pub(super) fn run(args: &LsArgs) -> anyhow::Result<()> {
    let mut list = args.list.unlimited();
    if args.json {
        list = list.in_form(ListForm::Json);
    }
    let view = View::filtered(&BANS, &list, &args.filter);
    match args.place.bans()? {
        Bans::Files(files) => listing::run_rows(&view, || rows(&files)),
        #[cfg(feature = "management")]
        Bans::Broker(broker) => listing::run_at(&broker, &view, &listing::Question::new("/bans")),
    }
}

fn rows(files: &BanFiles) -> anyhow::Result<Vec<Row>> {
    let listed = load(&files.listed)?;
    let temporary = files.temporary.as_ref().map(load).transpose()?;
    let temporary = temporary.unwrap_or_default();
    let now = now() / 1000;
    let bans = listed.sorted().into_iter().map(|ban| (ban, false));
    let bans = bans.chain(temporary.sorted().into_iter().map(|ban| (ban, true)));
    let bans = bans.filter(|(ban, _)| ban.is_in_force(now));
    let rows = bans.map(|(ban, is_temporary)| Row::of(&row(ban, is_temporary)));
    Ok(rows.collect::<serde_json::Result<_>>()?)
}

/// As a running broker shows it.
fn row(ban: &Ban, is_temporary: bool) -> Value {
    let mut row = json!({
        "client_id": null,
        "user": null,
        "address": null,
        "reason": ban.reason,
        "by": ban.by,
        "since": time(ban.since.saturating_mul(1000)),
        "until": ban.until.map(|until| time(until.saturating_mul(1000))),
        "disconnect": ban.disconnects,
        "temporary": is_temporary,
    });
    for (key, name) in parts(&ban.subject) {
        row[key] = name.into();
    }
    row
}

fn until(ban: &Value, _now: WallMillis) -> String {
    let until = ban.get("until").and_then(Value::as_str);
    until.unwrap_or("for good").to_owned()
}
