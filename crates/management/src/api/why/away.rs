//! Receivers of dropped messages that are away: their queues stay full until they return.

use std::time::Duration;

use serde_json::{Value, json};
use thrum_broker::{Presence, Queries, QueryError, SessionDetail};
use thrum_figures::count;

use super::super::timeline::span;
use super::measured::DroppedMessages;
use super::words::{counted, quoted, shortened};
use crate::clock::Clock;

/// Receivers whose sessions are looked up: those that most messages were dropped for.
const LOOKED_UP_MAX: usize = 20;
/// Time for all of them, and of the broker for each: a broker that is late is not asked on.
const LOOK_UP_TIME: Duration = Duration::from_secs(2);
/// Reasons that a client which is away causes by its full queue.
const FULL_REASONS: [&str; 2] = ["queue_full", "queue_oldest"];
/// Clients that a sentence and the commands name.
const NAMED_MAX: usize = 3;

/// The sessions of receivers with full queues.
#[derive(Clone, Debug, Default)]
pub(super) struct Receivers {
    /// Those that were looked up, by name.
    known: Vec<String>,
    away: Vec<AwayClient>,
}

/// A receiver that is away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AwayClient {
    pub(super) client_id: String,
    /// Since its connection ended.
    pub(super) away_secs: u64,
    /// From the end of the connection; none if the session does not expire.
    pub(super) expiry_secs: Option<u32>,
    pub(super) queued: u64,
    pub(super) queue_max: u64,
}

impl Receivers {
    /// Looks up the receivers with full queues.
    pub(super) fn look_up(
        queries: &Queries,
        drops: &[DroppedMessages],
    ) -> Result<Self, QueryError> {
        let mut found = Self::default();
        let queries = queries.clone().with_timeout(LOOK_UP_TIME);
        let clock = Clock::start();
        for client_id in names(drops) {
            if clock.now().uptime > LOOK_UP_TIME {
                break;
            }
            if let Some(session) = queries.session(client_id)? {
                found.enter(client_id, &session);
            }
        }
        Ok(found)
    }

    fn enter(&mut self, client_id: &str, session: &SessionDetail) {
        self.known.push(client_id.to_owned());
        if matches!(session.row.presence, Presence::Connected { .. }) {
            return;
        }
        let expiry_secs = session.row.expiry_secs;
        self.away.push(AwayClient {
            client_id: client_id.to_owned(),
            away_secs: session.row.idle_secs,
            expiry_secs: Some(expiry_secs).filter(|secs| *secs != u32::MAX),
            queued: session.row.queued.messages,
            queue_max: session.queue_limit.messages,
        });
    }

    #[cfg(test)]
    pub(super) fn of(connected: &[&str], away: Vec<AwayClient>) -> Self {
        let known = connected.iter().map(|name| (*name).to_owned());
        let known = known.chain(away.iter().map(|client| client.client_id.clone()));
        Self {
            known: known.collect(),
            away,
        }
    }

    /// Whether that client is known to be away.
    pub(super) fn is_away(&self, client_id: &str) -> bool {
        self.away.iter().any(|away| away.client_id == client_id)
    }

    /// Of so many messages that were dropped for a reason, those for clients that are away. Of
    /// receivers that were not looked up the same part is away.
    pub(super) fn away_part(&self, drops: &[DroppedMessages], reason: &str, all: u64) -> u64 {
        let (mut away, mut known) = (0_u64, 0_u64);
        for dropped in drops.iter().filter(|dropped| dropped.reason == reason) {
            if self.known.contains(&dropped.client_id) {
                known += dropped.messages;
            }
            if self.is_away(&dropped.client_id) {
                away += dropped.messages;
            }
        }
        let part = u128::from(all) * u128::from(away) / u128::from(known.max(1));
        u64::try_from(part).unwrap_or(all).min(all)
    }

    /// Those that are away, in words: since when, and for how long their sessions are kept.
    pub(super) fn words(&self) -> String {
        let some: Vec<String> = self
            .away
            .iter()
            .take(NAMED_MAX)
            .map(AwayClient::words)
            .collect();
        let more = match self.away.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!("; {} more", count(more as u64)),
        };
        format!("{}{more}", some.join("; "))
    }

    /// What to do about them.
    pub(super) fn remedy(&self) -> String {
        let (who, its) = match &self.away[..] {
            [only] => (shortened(&only.client_id), "its session"),
            _ => ("the clients".to_owned(), "their sessions"),
        };
        format!(
            "bring {who} back, or end {its} if nobody needs the messages; a shorter session expiry (the client's, or \
             limits.session_expiry) and an expiry of messages (the publisher's, or limits.client.queue_age) \
             bound what is kept for clients that are away"
        )
    }

    /// Lines for a shell that end their sessions.
    pub(super) fn commands(&self) -> Vec<String> {
        let some = self.away.iter().take(NAMED_MAX);
        some.map(|away| format!("thrum clients kick --session {}", quoted(&away.client_id)))
            .collect()
    }

    /// The same as requests of the API.
    pub(super) fn requests(&self) -> Vec<String> {
        let some = self.away.iter().take(NAMED_MAX);
        some.map(|away| {
            let id = path_segment(&away.client_id);
            format!("DELETE /api/v1/clients/{id}?session=true")
        })
        .collect()
    }

    pub(super) fn evidence(&self) -> Value {
        self.away
            .iter()
            .map(|away| {
                json!({
                    "client_id": away.client_id,
                    "away_secs": away.away_secs,
                    "session_expiry_secs": away.expiry_secs,
                    "queued_messages": away.queued,
                    "queue_limit": away.queue_max,
                })
            })
            .collect()
    }
}

impl AwayClient {
    fn words(&self) -> String {
        let name = shortened(&self.client_id);
        let away = span(self.away_secs * 1000);
        let kept = match self.expiry_secs {
            None => "its session does not expire".to_owned(),
            Some(secs) => {
                let left = u64::from(secs).saturating_sub(self.away_secs);
                format!("its session expires in {}", span(left * 1000))
            }
        };
        let queued = counted(self.queued, "message waits", "messages wait");
        format!("{name} has been away for {away}, {kept}, {queued}")
    }
}

/// A client identifier in the path of a request.
fn path_segment(client_id: &str) -> String {
    let mut text = String::new();
    for byte in client_id.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.extend([format!("%{byte:02X}")]);
        }
    }
    text
}

/// Whether a client that is away causes this by its full queue.
pub(super) fn is_full(reason: &str) -> bool {
    FULL_REASONS.contains(&reason)
}

/// The clients whose queues were full, those with the most drops first.
fn names(drops: &[DroppedMessages]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for dropped in drops.iter().filter(|dropped| is_full(dropped.reason)) {
        if names.len() < LOOKED_UP_MAX && !names.contains(&&*dropped.client_id) {
            names.push(&dropped.client_id);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dropped(client_id: &str, messages: u64) -> DroppedMessages {
        DroppedMessages {
            reason: "queue_full",
            client_id: client_id.to_owned(),
            topic: None,
            messages,
        }
    }

    fn archive(expiry_secs: Option<u32>) -> AwayClient {
        AwayClient {
            client_id: "archive".to_owned(),
            away_secs: 480,
            expiry_secs,
            queued: 1000,
            queue_max: 1000,
        }
    }

    #[test]
    fn of_the_dropped_messages_those_for_clients_that_are_away_are_told_apart() {
        let receivers = Receivers::of(&["here"], vec![archive(None)]);
        let drops = [
            dropped("archive", 300),
            dropped("here", 100),
            dropped("unknown", 7),
        ];
        assert_eq!(receivers.away_part(&drops, "queue_full", 400), 300);
        assert_eq!(receivers.away_part(&drops, "queue_full", 440), 330);
        assert_eq!(receivers.away_part(&drops, "queue_oldest", 9), 0);
        assert_eq!(Receivers::default().away_part(&drops, "queue_full", 9), 0);
    }

    #[test]
    fn the_words_say_since_when_a_client_is_away_and_how_long_its_session_is_kept() {
        let said = |expiry| Receivers::of(&[], vec![archive(expiry)]).words();
        assert_eq!(
            said(Some(86_400)),
            "archive has been away for 8 min, its session expires in 23 h, 1 000 messages wait"
        );
        assert!(said(None).contains("its session does not expire"));
    }

    #[test]
    fn a_session_that_nobody_needs_is_ended_by_a_command_or_a_request() {
        let away = AwayClient {
            client_id: "a b/c".to_owned(),
            ..archive(None)
        };
        let receivers = Receivers::of(&[], vec![away]);
        assert_eq!(
            receivers.commands(),
            ["thrum clients kick --session 'a b/c'"]
        );
        assert_eq!(
            receivers.requests(),
            ["DELETE /api/v1/clients/a%20b%2Fc?session=true"]
        );
        assert!(
            receivers
                .remedy()
                .starts_with("bring a b/c back, or end its session")
        );
    }

    #[test]
    fn each_receiver_with_a_full_queue_is_looked_up_once() {
        let mut drops = vec![dropped("a", 9), dropped("a", 8), dropped("b", 7)];
        drops.push(DroppedMessages {
            reason: "expired",
            ..dropped("c", 6)
        });
        assert_eq!(names(&drops), ["a", "b"]);
        let many: Vec<DroppedMessages> =
            (0..50).map(|one| dropped(&format!("c{one}"), 1)).collect();
        assert_eq!(names(&many).len(), LOOKED_UP_MAX);
    }
}
