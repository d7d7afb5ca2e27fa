//! `thrum bans ls`.

use std::io::Write as _;

use clap::Args;
use serde_json::{Value, json};
use thrum_protection::{Ban, Subject};

use super::place::{Place, load};
use super::subject::shown;
use crate::command::shown::{NOTHING, counted, json_line, name, now, table, time};

const HEADINGS: [&str; 5] = ["WHO", "SINCE", "UNTIL", "BY", "REASON"];

const TEMPORARY: &str = "\
Bans by flapping were made by the broker for a time; they are gone when it stops.";

/// Arguments of `thrum bans ls`.
#[derive(Debug, Args)]
#[command(after_help = TEMPORARY)]
pub(super) struct LsArgs {
    #[command(flatten)]
    place: Place,
    /// One line of JSON for each ban.
    #[arg(long)]
    json: bool,
}

/// Lists what is in force.
pub(super) fn run(args: &LsArgs) -> anyhow::Result<()> {
    let listed = load(&args.place.bans()?)?;
    let temporary = args.place.temporary().map(|file| load(&file)).transpose()?;
    let temporary = temporary.unwrap_or_default();
    let now = now() / 1000;
    let bans = listed.sorted().into_iter().map(|ban| (ban, false));
    let bans = bans.chain(temporary.sorted().into_iter().map(|ban| (ban, true)));
    let bans: Vec<(&Ban, bool)> = bans.filter(|(ban, _)| ban.is_in_force(now)).collect();
    let mut out = std::io::stdout().lock();
    if args.json {
        for (ban, is_temporary) in &bans {
            writeln!(out, "{}", json_line(&line(ban, *is_temporary))?)?;
        }
        return Ok(());
    }
    if !bans.is_empty() {
        let rows: Vec<_> = bans.iter().map(|(ban, _)| columns(ban)).collect();
        writeln!(out, "{}", table(&HEADINGS, &rows))?;
    }
    writeln!(out, "{}", counted(bans.len(), "ban", "bans"))?;
    Ok(())
}

/// One value for each of [`HEADINGS`].
fn columns(ban: &Ban) -> Vec<String> {
    let text = |text: &str| {
        if text.is_empty() {
            NOTHING.to_owned()
        } else {
            name(text).into_owned()
        }
    };
    vec![
        shown(&ban.subject),
        time(ban.since.saturating_mul(1000)),
        ban.until.map_or_else(
            || "for good".to_owned(),
            |until| time(until.saturating_mul(1000)),
        ),
        text(&ban.by),
        text(&ban.reason),
    ]
}

fn line(ban: &Ban, is_temporary: bool) -> Value {
    let mut line = json!({
        "reason": ban.reason,
        "by": ban.by,
        "since": time(ban.since.saturating_mul(1000)),
        "until": ban.until.map(|until| time(until.saturating_mul(1000))),
        "temporary": is_temporary,
    });
    for (key, name) in names(&ban.subject) {
        line[key] = name.into();
    }
    line
}

/// The subject, under the names of the file's fields.
fn names(subject: &Subject) -> Vec<(&'static str, String)> {
    match subject {
        Subject::ClientId(id) => vec![("client_id", id.to_string())],
        Subject::Username(user) => vec![("username", user.to_string())],
        Subject::Network(network) => vec![("address", network.to_string())],
        Subject::ClientOfUser {
            client_id,
            username,
        } => vec![
            ("client_id", client_id.to_string()),
            ("username", username.to_string()),
        ],
        Subject::ClientFrom { client_id, network } => vec![
            ("client_id", client_id.to_string()),
            ("address", network.to_string()),
        ],
    }
}
