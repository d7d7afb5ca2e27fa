//! Looks at a broker, and rates between two of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use thrum_figures::fraction;
use thrum_management::api::{Client, ClientPage, Metrics, Status};

use super::Sort;
use crate::command::running::{Broker, Method, encoded};

/// Clients whose messages are counted, of each order: half a page of the broker.
const CLIENTS_MAX: usize = 500;
/// Names of counters.
const RECEIVED: &str = "publish/messages/received";
const SENT: &str = "publish/messages/sent";
const DROPPED: &str = "publish/messages/dropped";
const BYTES_RECEIVED: &str = "bytes/received";
const BYTES_SENT: &str = "bytes/sent";

/// What one look found.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// Time since the first look.
    pub(super) at: Duration,
    pub(super) status: Status,
    counters: BTreeMap<String, u64>,
    clients: Vec<Client>,
    pub(super) matching: u64,
}

impl Look {
    /// Asks the broker; without clients unless an order is given.
    pub(super) fn take(
        broker: &Broker,
        at: Duration,
        clients: Option<Sort>,
        filter: &str,
    ) -> anyhow::Result<Self> {
        let status: Status = broker.call(Method::Get, "/status", "")?;
        let metrics: Metrics = broker.call(Method::Get, "/metrics", "")?;
        let mut look = Self {
            at,
            status,
            counters: metrics.counters,
            matching: 0,
            clients: Vec::new(),
        };
        for key in clients.map(keys).unwrap_or_default() {
            let page: ClientPage = broker.call(Method::Get, &path(key, filter), "")?;
            look.matching = page.matching.unwrap_or(0);
            let known: BTreeSet<String> = look.clients.iter().map(id).collect();
            let new = page.clients.into_iter();
            look.clients
                .extend(new.filter(|one| !known.contains(&one.client_id)));
        }
        Ok(look)
    }
}

fn id(client: &Client) -> String {
    client.client_id.clone()
}

/// What the broker sorts by.
const fn keys(sort: Sort) -> &'static [&'static str] {
    match sort {
        // Nobody knows rates: they are those of the clients with the most messages.
        Sort::Rate => &["messages_sent", "messages_received"],
        Sort::Queue => &["queued_messages"],
        Sort::Drops => &["messages_dropped"],
    }
}

fn path(key: &str, filter: &str) -> String {
    let mut path = format!("/clients?sort={key}&descending=true&limit={CLIENTS_MAX}");
    if !filter.is_empty() {
        path.extend(["&filter=", &encoded(filter)]);
    }
    path
}

/// Rates between two looks, in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) received: f64,
    pub(super) sent: f64,
    pub(super) dropped: f64,
    pub(super) bytes_received: f64,
    pub(super) bytes_sent: f64,
}

impl Rates {
    /// None if no time has passed, or the broker was started between.
    pub(super) fn between(before: &Look, after: &Look) -> Option<Self> {
        let time = after.at.checked_sub(before.at)?;
        let has_restarted = before.status.uptime_secs > after.status.uptime_secs;
        if time.is_zero() || has_restarted {
            return None;
        }
        let of = |name: &str| {
            let value = |look: &Look| look.counters.get(name).copied().unwrap_or(0);
            per_second(value(before), value(after), time)
        };
        Some(Self {
            received: of(RECEIVED),
            sent: of(SENT),
            dropped: of(DROPPED),
            bytes_received: of(BYTES_RECEIVED),
            bytes_sent: of(BYTES_SENT),
        })
    }
}

fn per_second(before: u64, after: u64, time: Duration) -> f64 {
    fraction(after.saturating_sub(before)) / time.as_secs_f64()
}

/// A client with its rates.
#[derive(Clone, Debug)]
pub(super) struct Busy {
    pub(super) client: Client,
    /// None of a client that was not there before, or has another connection since.
    pub(super) received: Option<f64>,
    pub(super) sent: Option<f64>,
}

/// The clients of a look in this order, with the rates since the one before.
pub(super) fn busiest(before: Option<&Look>, after: &Look, sort: Sort) -> Vec<Busy> {
    let known = before.map(|look| {
        let clients = look.clients.iter();
        clients
            .map(|client| (&*client.client_id, client))
            .collect::<BTreeMap<_, _>>()
    });
    let known = known.unwrap_or_default();
    let time = before.and_then(|before| after.at.checked_sub(before.at));
    let time = time.filter(|time| !time.is_zero());
    let mut busy: Vec<Busy> = after
        .clients
        .iter()
        .map(|client| {
            let earlier = known.get(&*client.client_id).copied();
            let earlier = earlier.filter(|one| one.connected_at == client.connected_at);
            let rate = |count: fn(&Client) -> u32| {
                let (earlier, time) = (earlier?, time?);
                let (before, after) = (count(earlier), count(client));
                // The counters of a connection have 32 bits.
                let messages = u64::from(after.wrapping_sub(before));
                Some(per_second(0, messages, time))
            };
            Busy {
                received: rate(|client| client.messages_received),
                sent: rate(|client| client.messages_sent),
                client: client.clone(),
            }
        })
        .collect();
    if sort == Sort::Rate {
        let sum = |one: &Busy| one.received.unwrap_or(0.0) + one.sent.unwrap_or(0.0);
        busy.sort_by(|one, other| sum(other).total_cmp(&sum(one)));
    }
    busy
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn look(secs: u64, received: u64, clients: &[(&str, u32)]) -> Look {
        let status = json!({
            "version": "1", "started_at": "T", "uptime_secs": 1, "workers": 1,
            "clients_connected": 0, "sessions": 0, "sessions_persistent": 0,
            "connections": {"in_handshake": 0, "awaiting_connect": 0, "authenticating": 0,
                "established": 0, "closing": 0},
            "subscriptions": 0, "retained_messages": 0, "retained_bytes": 0,
            "memory": {"resident_bytes": null, "limit_bytes": null}, "storage": null,
            "listeners": [],
        });
        let client = |(id, sent): &(&str, u32)| Client {
            client_id: (*id).to_owned(),
            messages_sent: *sent,
            ..Client::default()
        };
        Look {
            at: Duration::from_secs(secs),
            status: serde_json::from_value(status).unwrap(),
            counters: BTreeMap::from([(RECEIVED.to_owned(), received)]),
            clients: clients.iter().map(client).collect(),
            matching: 0,
        }
    }

    #[test]
    fn rates_are_differences_over_the_time_between() {
        let (before, after) = (look(1, 100, &[]), look(3, 150, &[]));
        let rates = Rates::between(&before, &after).unwrap();
        assert!((rates.received - 25.0).abs() < 1e-9, "{rates:?}");
        assert_eq!(Rates::between(&after, &after), None);
        let mut restarted = look(5, 3, &[]);
        restarted.status.uptime_secs = 0;
        assert_eq!(Rates::between(&after, &restarted), None);
    }

    #[test]
    fn the_busiest_client_comes_first_and_a_new_one_has_no_rate() {
        let before = look(0, 0, &[("total", 1000), ("fast", 10), ("gone", 5)]);
        let after = look(2, 0, &[("total", 1002), ("new", 900), ("fast", 110)]);
        let busy = busiest(Some(&before), &after, Sort::Rate);
        let ids: Vec<&str> = busy.iter().map(|one| &*one.client.client_id).collect();
        assert_eq!(ids, ["fast", "total", "new"]);
        assert_eq!(busy[0].sent, Some(50.0));
        assert_eq!(busy[2].sent, None);
        let by_queue = busiest(Some(&before), &after, Sort::Queue);
        assert_eq!(by_queue[0].client.client_id, "total", "as the broker sorts");
    }
}
