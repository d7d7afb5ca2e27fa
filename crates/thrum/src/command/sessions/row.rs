//! A session in one line.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use thrum_storage::{Recovered, RecoveredSession, WallMillis};

use crate::command::shown::time;

/// A session, counted.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) session: &'a RecoveredSession,
    pub(super) queued: usize,
    pub(super) inflight: usize,
    /// Topics, properties and payloads of its deliveries.
    pub(super) bytes: usize,
}

/// The session of each client, by client identifier: that with the highest number, as at the start
/// of the broker. Those of the node itself are left out.
pub(super) fn rows(state: &Recovered) -> Vec<Row<'_>> {
    let by_client: BTreeMap<&str, &RecoveredSession> = state
        .sessions
        .iter()
        .filter(|session| !session.is_of_node())
        .map(|session| (&*session.client_id, session))
        .collect();
    let sessions = by_client.into_values();
    sessions.map(|session| Row::new(session, state)).collect()
}

impl<'a> Row<'a> {
    fn new(session: &'a RecoveredSession, state: &Recovered) -> Self {
        let deliveries = &session.deliveries;
        let inflight = deliveries.iter().filter(|one| one.inflight.is_some());
        let inflight = inflight.count();
        let messages = deliveries.iter().filter_map(|one| one.message);
        let contents = messages.filter_map(|place| state.messages.get(place));
        let bytes = contents.map(|message| content_len(&message.content)).sum();
        Self {
            session,
            queued: deliveries.len() - inflight,
            inflight,
            bytes,
        }
    }

    /// Disconnected for at least that long; sessions that are connected, or were when the broker
    /// ended, do not match.
    pub(super) fn is_away_for(&self, span: Duration, now: WallMillis) -> bool {
        let span = WallMillis::try_from(span.as_millis()).unwrap_or(WallMillis::MAX);
        let since = self.session.away_since;
        since.is_some_and(|since| now.saturating_sub(since) >= span)
    }

    /// One line of the list, as JSON.
    pub(super) fn json(&self) -> Value {
        let session = self.session;
        json!({
            "client_id": session.client_id,
            "version": session.version.name(),
            "expiry_secs": Some(session.expiry_secs).filter(|&secs| secs != u32::MAX),
            "away_since": session.away_since.map(time),
            "subscriptions": session.subscriptions.len(),
            "queued": self.queued,
            "inflight": self.inflight,
            "bytes": self.bytes,
        })
    }
}

/// Bytes of topic, properties and payload.
pub(super) fn content_len(content: &thrum_storage::Content) -> usize {
    content.topic().len() + content.properties().len() + content.payload().len()
}
