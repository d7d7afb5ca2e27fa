//! A client in one row of at most 100 columns.

use std::time::Duration;

use thrum_management::api::Client;
use thrum_storage::WallMillis;

use crate::command::shown::{NOTHING, name, parse_time};

/// Columns of a table of clients.
pub(super) const HEADINGS: [&str; 8] = [
    "CLIENT ID",
    "USER",
    "STATE",
    "PEER",
    "SUBS",
    "QUEUED",
    "IN",
    "OUT",
];

/// Widths that names are cut to, so that a row fits.
const CLIENT_ID_WIDTH: usize = 24;
const USER_WIDTH: usize = 10;
const PEER_WIDTH: usize = 21;

/// One value for each of [`HEADINGS`].
pub(super) fn columns(client: &Client, now: WallMillis) -> Vec<String> {
    let text =
        |text: Option<&str>, width| text.map_or_else(|| NOTHING.to_owned(), |it| cut(it, width));
    vec![
        cut(&name(&client.client_id), CLIENT_ID_WIDTH),
        text(client.user.as_deref().map(name).as_deref(), USER_WIDTH),
        state(client, now),
        text(client.peer.as_deref(), PEER_WIDTH),
        short_count(client.subscriptions as u64),
        short_count(client.queued_messages),
        short_count(client.messages_received.into()),
        short_count(client.messages_sent.into()),
    ]
}

/// `up 3d` or `away 2h`.
fn state(client: &Client, now: WallMillis) -> String {
    let (word, since) = match &client.connected_at {
        Some(at) => ("up", Some(at)),
        None => ("away", client.away_since.as_ref()),
    };
    let span = since
        .and_then(|at| parse_time(at))
        .map(|at| since_then(at, now));
    span.map_or_else(|| word.to_owned(), |span| format!("{word} {span}"))
}

/// The time since then in its largest unit: `3d`, `2h`, `5m`, `9s`.
fn since_then(at: WallMillis, now: WallMillis) -> String {
    let secs = Duration::from_millis(now.saturating_sub(at)).as_secs();
    let units = [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let unit = units.iter().find(|(unit, _)| secs >= *unit);
    let (unit, letter) = unit.unwrap_or(&(1, "s"));
    format!("{}{letter}", secs / unit)
}

/// At most that many characters of a text; `…` stands for the rest.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept = text.chars().take(width.saturating_sub(1));
    kept.chain(['…']).collect()
}

/// A count in at most six characters: `9999`, `12.3k`, `4.5M`.
fn short_count(count: u64) -> String {
    const UNITS: [(u64, &str); 6] = [
        (1_000_000_000_000_000_000, "E"),
        (1_000_000_000_000_000, "P"),
        (1_000_000_000_000, "T"),
        (1_000_000_000, "G"),
        (1_000_000, "M"),
        (1000, "k"),
    ];
    if count < 10_000 {
        return count.to_string();
    }
    let unit = UNITS.iter().find(|(unit, _)| count >= *unit);
    let (unit, letter) = unit.unwrap_or(&(1, ""));
    format!(
        "{}.{}{letter}",
        count / unit,
        count % unit / (unit / 10).max(1)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::shown::table;

    #[test]
    fn times_have_one_unit() {
        let now = 100_000_000_000;
        for (secs, expected) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (7199, "1h"),
            (86_400 * 400, "400d"),
        ] {
            assert_eq!(since_then(now - secs * 1000, now), expected);
        }
        assert_eq!(since_then(now + 5000, now), "0s", "clocks differ");
    }

    #[test]
    fn the_widest_row_fits_a_hundred_columns() {
        let client = Client {
            client_id: "x".repeat(300),
            user: Some("u".repeat(300)),
            connected: false,
            connected_at: None,
            away_since: Some("2020-01-01T00:00:00Z".to_owned()),
            peer: Some("[2001:db8:1111:2222:3333:4444:5555:6666]:65535".to_owned()),
            listener: None,
            protocol_version: "5.0".to_owned(),
            session_expiry_secs: None,
            queued_messages: u64::MAX,
            queued_bytes: u64::MAX,
            inflight: usize::MAX,
            subscriptions: usize::MAX,
            messages_received: u32::MAX,
            messages_sent: u32::MAX,
            ..Client::default()
        };
        let now = parse_time("2026-11-22T00:00:00Z").unwrap();
        let text = table(&HEADINGS, &[columns(&client, now)]);
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }

    #[test]
    fn texts_and_counts_fit_their_columns() {
        assert_eq!(cut("\u{fc}ber", 4), "\u{fc}ber");
        assert_eq!(cut("\u{fc}ber", 3), "\u{fc}b…");
        for (count, expected) in [
            (0, "0"),
            (9999, "9999"),
            (10_000, "10.0k"),
            (999_999, "999.9k"),
            (1_250_000, "1.2M"),
            (u64::MAX, "18.4E"),
        ] {
            assert_eq!(short_count(count), expected);
        }
    }
}
