//! All clients of a broker, received unsorted, and sorted as the broker sorts a page.

use thrum_management::api::Client;

use super::ls::Sort;
use crate::command::shown::parse_time;

/// The clients so far.
#[derive(Debug, Default)]
pub(super) struct Whole(Vec<Client>);

impl Whole {
    /// Adds a page.
    pub(super) fn add(&mut self, clients: Vec<Client>) {
        self.0.extend(clients);
    }

    /// Sorts them. A client whose session ended and began again during the listing may be on two
    /// pages: the later row is kept.
    pub(super) fn sorted(self, sort: Sort, is_descending: bool) -> Vec<Client> {
        let mut clients = self.0;
        clients.reverse();
        clients.sort_by(|one, other| one.client_id.cmp(&other.client_id));
        clients.dedup_by(|later, kept| later.client_id == kept.client_id);
        let mut clients: Vec<_> = clients.into_iter().map(Some).collect();
        let mut order: Vec<(u64, usize)> = clients
            .iter()
            .enumerate()
            .map(|(place, client)| (client.as_ref().map_or(0, |it| figure(sort, it)), place))
            .collect();
        order.sort_unstable();
        if is_descending {
            order.reverse();
        }
        let sorted = order.into_iter();
        sorted
            .filter_map(|(_, place)| clients[place].take())
            .collect()
    }
}

/// The figure that clients are sorted by, before their identifiers.
fn figure(sort: Sort, client: &Client) -> u64 {
    match sort {
        Sort::ClientId => 0,
        Sort::ConnectedAt => {
            let at = client.connected_at.as_deref();
            at.and_then(parse_time).unwrap_or(u64::MAX)
        }
        Sort::QueuedMessages => client.queued_messages,
        Sort::QueuedBytes => client.queued_bytes,
        Sort::Subscriptions => client.subscriptions as u64,
        Sort::MessagesReceived => client.messages_received.into(),
        Sort::MessagesSent => client.messages_sent.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn client(client_id: &str, connected_at: Option<&str>, queued: u64) -> Client {
        let client = json!({
            "client_id": client_id, "user": null, "connected": connected_at.is_some(),
            "connected_at": connected_at, "away_since": null, "peer": null, "listener": null,
            "protocol_version": "5.0", "session_expiry_secs": null, "queued_messages": queued,
            "queued_bytes": 0, "inflight": 0, "subscriptions": 0, "messages_received": 0,
            "messages_sent": 0,
        });
        serde_json::from_value(client).unwrap()
    }

    #[test]
    fn all_clients_are_in_the_order_of_a_page_and_listed_once() {
        let listed = |sort, is_descending| {
            let mut whole = Whole::default();
            whole.add(vec![client("b", Some("2026-11-22T09:00:00Z"), 2)]);
            whole.add(vec![client("c", None, 1), client("a", None, 2)]);
            whole.add(vec![client("b", Some("2026-11-22T10:00:00.5Z"), 7)]);
            whole.add(vec![client("d", Some("2026-11-22T10:00:00Z"), 1)]);
            let clients = whole.sorted(sort, is_descending).into_iter();
            clients
                .map(|client| format!("{}{}", client.client_id, client.queued_messages))
                .collect::<Vec<_>>()
        };
        assert_eq!(listed(Sort::ClientId, false), ["a2", "b7", "c1", "d1"]);
        assert_eq!(listed(Sort::ClientId, true), ["d1", "c1", "b7", "a2"]);
        let by_queue = listed(Sort::QueuedMessages, true);
        assert_eq!(by_queue, ["b7", "a2", "d1", "c1"]);
        assert_eq!(listed(Sort::ConnectedAt, false), ["d1", "b7", "a2", "c1"]);
    }
}
