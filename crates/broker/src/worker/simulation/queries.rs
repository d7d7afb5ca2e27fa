//! The operator lists the sessions of the node between the other steps.

use std::collections::BTreeSet;

use super::world::{Failure, World};
use crate::control::test_queries::{PendingPage, facets, queries, session};
use crate::control::{
    Condition, Figure, Presence, SessionFilter, SessionPage, SessionQuery, SessionState, SortKey,
};
use thrum_engine::ids::ConnectionKey;

/// Turns of all workers within which a page is complete: a turn visits at least one session.
const ROUNDS_MAX: usize = 200;
const SORT_KEYS: [SortKey; 8] = [
    SortKey::ClientId,
    SortKey::ClientId,
    SortKey::ClientId,
    SortKey::User,
    SortKey::Listener,
    SortKey::Figure(Figure::QueuedMessages),
    SortKey::Figure(Figure::Subscriptions),
    SortKey::Figure(Figure::OldestQueued),
];

/// Client identifier, number and connection of each session whose client is connected. A client
/// that reconnects has another connection, and its session may have had none in between.
type Connected = BTreeSet<(Box<str>, u64, Option<ConnectionKey>)>;

impl World {
    fn connected(&self) -> Connected {
        let workers = self.machine.workers.iter();
        let clients = workers.flat_map(|worker| worker.inner.traffic.engine.core.sessions.iter());
        let connected = clients.filter(|(_, client)| client.connection.is_some());
        connected
            .map(|(_, client)| {
                let session = &client.session;
                (session.client_id().into(), session.id(), client.connection)
            })
            .collect()
    }

    /// Lists all sessions page by page, with turns in between: a client that is connected all the
    /// time is listed once, in order.
    pub(super) fn list_sessions(&mut self) -> Result<(), Failure> {
        self.count_sessions()?;
        let before = self.connected();
        let mut query = SessionQuery {
            filter: SessionFilter::default().and(Condition::State(SessionState::Connected)),
            sort: self.random.pick(&SORT_KEYS),
            is_descending: self.random.percent(50),
            limit: 1 + self.random.below(4),
            cursor: None,
        };
        let mut listed: Vec<Box<str>> = Vec::new();
        loop {
            let SessionPage { page, matching } = self.page(&query)?;
            if page.rows.len() > query.limit
                || matching.is_none_or(|matching| matching < page.rows.len() as u64)
            {
                return Err(format!("{matching:?} sessions on pages such as {page:?}"));
            }
            let is_disconnected = |presence: &Presence| matches!(presence, Presence::Away { .. });
            if page.rows.iter().any(|row| is_disconnected(&row.presence)) {
                return Err(format!("a disconnected client is listed: {page:?}"));
            }
            listed.extend(page.rows.into_iter().map(|row| row.client_id));
            query.cursor = page.next;
            if query.cursor.is_none() {
                break;
            }
        }
        let after = self.connected();
        let lasting = before.intersection(&after);
        if query.sort != SortKey::ClientId {
            // Their figures may have changed meanwhile.
            return Ok(());
        }
        let mut in_order = listed.clone();
        in_order.sort();
        in_order.dedup();
        if query.is_descending {
            in_order.reverse();
        }
        if listed != in_order {
            return Err(format!("sessions are listed as {listed:?}"));
        }
        for (client_id, ..) in lasting {
            if !listed.contains(client_id) {
                return Err(format!("{client_id} is connected and not among {listed:?}"));
            }
            self.show_session(client_id)?;
        }
        Ok(())
    }

    /// Counts the sessions by kind: each is either connected or not.
    fn count_sessions(&mut self) -> Result<(), Failure> {
        let mut pending = facets(&queries(&self.machine.node), "");
        for _ in 0..ROUNDS_MAX {
            let Some(found) = pending.take() else {
                self.run_all_turns();
                continue;
            };
            let of = |state| found.states.iter().find(|(of, _)| *of == state);
            let of = |state| of(state).map_or(0, |(_, count)| *count);
            let each = of(SessionState::Connected) + of(SessionState::Disconnected);
            let versions: u64 = found.versions.iter().map(|(_, count)| count).sum();
            let is_right = each == found.matching && versions == found.matching;
            let problem = || format!("sessions are counted as {found:?}");
            return is_right.then_some(()).ok_or_else(problem);
        }
        Err("the workers do not count their sessions".to_owned())
    }

    fn page(&mut self, query: &SessionQuery) -> Result<SessionPage, Failure> {
        let queries = queries(&self.machine.node);
        let mut pending = PendingPage::send(&queries, query).map_err(|error| error.to_string())?;
        for _ in 0..ROUNDS_MAX {
            if let Some(page) = pending.page() {
                return Ok(page);
            }
            for worker in &mut self.machine.workers {
                worker.run_half_turn();
            }
        }
        Err("the workers do not answer".to_owned())
    }

    fn run_all_turns(&mut self) {
        for worker in &mut self.machine.workers {
            worker.run_turn();
        }
    }

    fn show_session(&mut self, client_id: &str) -> Result<(), Failure> {
        let mut pending = session(&queries(&self.machine.node), client_id);
        for _ in 0..ROUNDS_MAX {
            let Some(answers) = pending.take() else {
                self.run_all_turns();
                continue;
            };
            // It may have ended in these turns.
            let mut found = answers.iter().flatten();
            return match found.find(|detail| *detail.row.client_id != *client_id) {
                None => Ok(()),
                Some(detail) => Err(format!("{client_id} was requested, not {detail:?}")),
            };
        }
        Err("the workers do not answer a query for a session".to_owned())
    }
}
