//! `thrum clients ls` and `watch`.

use clap::Args;
use serde_json::Value;
use thrum_storage::WallMillis;

use crate::command::listing::{self, Cell, Column, ListArgs, Listing, Question, span};
use crate::command::running::Running;
use crate::command::shown::parse_time;

/// Clients as a list.
pub(in crate::command) static CLIENTS: Listing = Listing {
    member: "clients",
    columns: &[
        Column::new("client_id", "CLIENT ID", Cell::Text(24)),
        Column::new("user", "USER", Cell::Text(10)),
        Column::new("connected", "STATE", Cell::Own(state)),
        Column::new("peer", "PEER", Cell::Text(21)),
        Column::wide("listener", "LISTENER", Cell::Text(0)),
        Column::wide("protocol_version", "VERSION", Cell::Text(0)),
        Column::new("subscriptions", "SUBS", Cell::Count),
        Column::new("queued_messages", "QUEUED", Cell::Count),
        Column::wide("queued_bytes", "QUEUED BYTES", Cell::Bytes),
        Column::wide("inflight", "INFLIGHT", Cell::Count),
        Column::new("messages_received", "IN", Cell::Count),
        Column::new("messages_sent", "OUT", Cell::Count),
        Column::wide("messages_dropped", "DROPPED", Cell::Count),
        Column::wide("idle_secs", "IDLE", Cell::Seconds),
        Column::wide("oldest_queued_secs", "OLDEST", Cell::Seconds),
        Column::wide("problems", "PROBLEMS", Cell::Text(0)),
    ],
    one: "client",
    many: "clients",
    aliases: &[
        ("id", "client_id"),
        ("address", "peer"),
        ("version", "protocol_version"),
        ("state", "connected"),
        ("subs", "subscriptions"),
        ("queue", "queued_messages"),
        ("queued", "queued_messages"),
        ("queue_bytes", "queued_bytes"),
        ("bytes", "queued_bytes"),
        ("in", "messages_received"),
        ("received", "messages_received"),
        ("out", "messages_sent"),
        ("sent", "messages_sent"),
        ("dropped", "messages_dropped"),
        ("idle", "idle_secs"),
        ("oldest", "oldest_queued_secs"),
        ("unacknowledged", "oldest_unacknowledged_secs"),
        ("expiry", "session_expiry_secs"),
    ],
    identity: "client_id",
    sum: "",
};

const NOTES: &str = "\
IN and OUT are messages from and to the client on its connection, or the last one. --sort takes a key of -o json, or one of its short names: user, \
address, queue, bytes, subs, in, out, dropped, idle, oldest, unacknowledged, expiry. -o wide has more columns.";

/// Arguments of `thrum clients ls`.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(super) struct LsArgs {
    #[command(flatten)]
    running: Running,
    /// Only clients for which all of these terms hold, as 'user=alice queue>100 state=connected'.
    #[arg(long, value_name = "TERMS")]
    filter: Option<String>,
    /// Only this client identifier; * stands for any characters.
    #[arg(long, value_name = "PATTERN")]
    client: Option<String>,
    /// Only clients of this user; * stands for any characters.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Only clients at this address or in this network.
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// Only clients that are connected.
    #[arg(long, conflicts_with = "away")]
    connected: bool,
    /// Only clients that are away.
    #[arg(long)]
    away: bool,
    /// Only clients with a subscription to exactly this filter.
    #[arg(long, value_name = "FILTER")]
    subscribed: Option<String>,
    #[command(flatten)]
    list: ListArgs,
}

/// Lists.
pub(super) fn run(args: &LsArgs) -> anyhow::Result<()> {
    list(args, &args.list)
}

/// Lists again and again.
pub(super) fn watch(args: &LsArgs) -> anyhow::Result<()> {
    list(args, &args.list.watching())
}

fn list(args: &LsArgs, list: &ListArgs) -> anyhow::Result<()> {
    // The highest of what, if nothing is said: the longest queues.
    let usual = if list.has_top() {
        "queued_messages"
    } else {
        "client_id"
    };
    let list = list.sorted_by(usual);
    listing::run(&args.running, &CLIENTS, &args.question(&list), &list)
}

impl LsArgs {
    fn question(&self, list: &ListArgs) -> Question {
        let is_connected = match (self.connected, self.away) {
            (true, _) => Some("true"),
            (false, true) => Some("false"),
            (false, false) => None,
        };
        let question = Question::new("/clients")
            .with("filter", self.filter.as_deref())
            .with("client", self.client.as_deref())
            .with("user", self.user.as_deref())
            .with("address", self.address.as_deref())
            .with("connected", is_connected)
            .with("subscribed", self.subscribed.as_deref());
        if list.wants_all() {
            // Sorted here: with sorted pages the broker would visit all sessions for each page.
            return question.with("sort", Some("none"));
        }
        let key = list.sort_key(&CLIENTS).unwrap_or_default();
        let key = match &*key {
            "peer" => "address",
            key => key,
        };
        question.sorted(key, list.is_descending())
    }
}

/// `up 3d` or `away 2h`.
fn state(client: &Value, now: WallMillis) -> String {
    let since = |key: &str| client.get(key).and_then(Value::as_str).and_then(parse_time);
    let (word, since) = match client.get("connected") {
        Some(Value::Bool(true)) => ("up", since("connected_at")),
        _ => ("away", since("away_since")),
    };
    let span = since.map(|at| span(now.saturating_sub(at) / 1000));
    span.map_or_else(|| word.to_owned(), |span| format!("{word} {span}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_state_says_since_when() {
        let now = parse_time("2026-11-22T00:00:00Z").unwrap();
        for (at, expected) in [
            ("2026-11-22T00:00:00Z", "up 0s"),
            ("2026-11-21T23:59:01.5Z", "up 58s"),
            ("2026-11-21T22:00:01Z", "up 1h"),
            ("2020-01-01T00:00:00Z", "up 2517d"),
            // Clocks differ.
            ("2026-11-23T00:00:00Z", "up 0s"),
        ] {
            let client = json!({"connected": true, "connected_at": at});
            assert_eq!(state(&client, now), expected, "{at}");
        }
        assert_eq!(state(&json!({"connected": false}), now), "away");
    }
}
