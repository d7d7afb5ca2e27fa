//! Review of sessions after a change of rules or of backends: some in each turn.
//!
//! Sessions with a long review queue for it. A client that returns to one of them waits for its
//! CONNACK, so that it receives no message that it may no longer receive.

use std::sync::Arc;

use thrum_access::Admission;
use thrum_codec::ReasonCode;
use thrum_engine::Engine;
use thrum_engine::access::ClientAccess;
use thrum_engine::ids::{ConnectionId, ConnectionKey, Slot};
use thrum_engine::node::metrics::Counter;
use thrum_engine::review::{Progress, Review, review_units};
use thrum_engine::turn::Turn;

use super::admission::awaits_review;
use super::checks::Checks;
use super::judging::is_verified;
use super::reauthentication::ask_again;
use super::review_queue::{Line, ReviewQueue, Waiting};
use super::sources::request_source_review;
use crate::edge::{DisconnectNotice, Edge};

/// Sessions reviewed in one turn: each takes some microseconds, during which no client is served.
const SESSIONS_PER_TURN: usize = 256;
/// A review that takes at most this part of a portion is done at once.
const SHORT_PART: u64 = 4;

/// The review of all sessions.
#[derive(Debug)]
pub(crate) struct Recheck {
    round: Round,
    queue: ReviewQueue,
    /// Clients that have returned to sessions whose review is over.
    ready: Vec<ConnectionId>,
    /// Rates of clients have changed since the last round.
    pub(crate) rates_changed: bool,
    /// Each goes first in one of three turns, so that none starves the others.
    parts: [Part; 3],
}

/// The kinds of work of a review, each limited to the rest of the portion.
#[derive(Clone, Copy, Debug)]
enum Part {
    Round,
    Queue(Line),
}

impl Default for Recheck {
    fn default() -> Self {
        Self {
            round: Round::default(),
            queue: ReviewQueue::default(),
            ready: Vec::new(),
            rates_changed: false,
            parts: [
                Part::Round,
                Part::Queue(Line::Returning),
                Part::Queue(Line::Others),
            ],
        }
    }
}

/// A round over all slots of sessions. Each change begins a round at the position of the last one,
/// so that continuous changes skip no session.
#[derive(Debug, Default)]
struct Round {
    /// The number of slots when the round began: newer sessions were admitted by the rules in
    /// force.
    slots: usize,
    next: usize,
    left: usize,
    /// Whether sessions of clients with unchanged rights are reviewed too: filters are granted in
    /// another way.
    reviews_all: bool,
}

impl Round {
    fn begin(&mut self, slots: usize) {
        self.slots = slots;
        self.left = slots.max(1);
    }

    fn take(&mut self) -> usize {
        let slot = if self.next < self.slots { self.next } else { 0 };
        self.next = slot + 1;
        self.left = self.left.saturating_sub(1);
        slot
    }
}

impl Recheck {
    /// There are sessions that the round has not reached yet.
    pub(crate) fn is_under_way(&self) -> bool {
        self.round.left > 0 || !self.queue.is_empty()
    }

    /// Takes the clients that have returned to sessions whose review is over.
    pub(crate) fn take_ready(&mut self) -> Vec<ConnectionId> {
        std::mem::take(&mut self.ready)
    }
}

/// The review of sessions, with the parts of the worker that it needs.
#[derive(Debug)]
pub(crate) struct Rechecking<'a> {
    pub(crate) recheck: &'a mut Recheck,
    pub(crate) edge: &'a mut Edge,
    pub(crate) engine: &'a mut Engine,
}

impl Rechecking<'_> {
    const fn checks(&mut self) -> Checks<'_> {
        Checks {
            edge: self.edge,
            engine: self.engine,
        }
    }

    /// Rules or gatekeeper have changed. A review under way restarts if the new ones decide
    /// differently about its client.
    pub(crate) fn access_changed(&mut self, reviews_all: bool) {
        let round = &mut self.recheck.round;
        round.reviews_all = reviews_all || round.reviews_all && round.left > 0;
        round.begin(self.engine.core.sessions.capacity());
        // While changes arrive continuously no round ends.
        request_source_review(self.engine);
    }

    /// Reviews the next sessions, up to the portion.
    pub(crate) fn recheck_some(&mut self) {
        if !self.recheck.is_under_way() {
            return;
        }
        self.engine.core.turn.begin_portion();
        self.recheck.parts.rotate_left(1);
        for part in self.recheck.parts {
            match part {
                Part::Round => self.continue_round(),
                Part::Queue(line) => self.continue_queue(line),
            }
            if self.engine.core.turn.is_portion_over() {
                break;
            }
        }
    }

    fn continue_round(&mut self) {
        let mut looked_at = 0;
        while self.recheck.round.left > 0 {
            let slot = Slot::new(self.recheck.round.take());
            if let Some(slot) = slot.filter(|slot| self.engine.core.sessions.get(*slot).is_some()) {
                self.recheck_session(slot);
                self.engine.core.durable.end_unit();
            }
            self.engine.core.turn.work += 1;
            looked_at += 1;
            if self.recheck.round.left == 0 {
                self.recheck.rates_changed = false;
                // From here on no message is published on this worker by the old rules.
                request_source_review(self.engine);
            }
            if looked_at == SESSIONS_PER_TURN || self.engine.core.turn.is_portion_over() {
                break;
            }
        }
    }

    /// Continues with the sessions whose review takes long, in their order.
    fn continue_queue(&mut self, line: Line) {
        while self.review_first(line) {
            self.engine.core.durable.end_unit();
            if self.engine.core.turn.is_portion_over() {
                return;
            }
        }
    }

    /// Continues with the first one; false if there is none.
    fn review_first(&mut self, line: Line) -> bool {
        let Some((slot, waiting)) = self.recheck.queue.first(line) else {
            return false;
        };
        self.engine.core.turn.work += 1;
        let (id, is_revoked, returning) = (waiting.id, waiting.is_revoked, waiting.returning);
        let under_way = waiting.review.take();
        if self.engine.core.sessions.is(slot, id) {
            let mut review = under_way.unwrap_or_else(|| {
                let mut review = Review::new(self.engine, slot, returning.is_none());
                review.is_revoked = is_revoked;
                Box::new(review)
            });
            if !self.review(&mut review, Turn::is_portion_over) {
                self.recheck.queue.keep_progress(review);
                return true;
            }
        }
        self.recheck.queue.remove(slot);
        self.recheck.ready.extend(returning);
        true
    }

    /// Reviews a session at once, or queues it if that takes long.
    fn review_soon(&mut self, slot: Slot) {
        let id = self.engine.core.sessions[slot].session.id();
        if self.recheck.queue.find(slot, id).is_some() || self.is_long_review(slot) {
            self.recheck.queue.put(slot, id, None);
            return;
        }
        let mut review = Review::new(self.engine, slot, true);
        self.review(&mut review, |_| false);
    }

    /// Continues a review; true once it is complete.
    fn review(&mut self, review: &mut Review, is_over: impl Fn(&mut Turn) -> bool) -> bool {
        loop {
            match review.advance(self.engine, &is_over) {
                Progress::Done => return true,
                Progress::Continues => return false,
                Progress::Disconnect => {
                    let what = "a subscription is no longer allowed: the rules have changed";
                    let notice = DisconnectNotice {
                        reason: ReasonCode::NotAuthorized,
                        what,
                    };
                    self.edge
                        .disconnect_session(self.engine, review.slot, notice);
                }
            }
        }
    }

    /// Other sessions of the worker should not wait for the review of this session.
    fn is_long_review(&self, slot: Slot) -> bool {
        review_units(&self.engine.core, slot)
            > self.engine.core.turn.limits().portion_units / SHORT_PART
    }

    /// Checks the rights of a session, and reviews its subscriptions if necessary.
    fn recheck_session(&mut self, slot: Slot) {
        if self.recheck.rates_changed {
            self.edge.meters(self.engine).measure_again(slot);
        }
        if !self.stays_admitted(slot) {
            return;
        }
        let shared = Arc::clone(&self.engine.core.settings.access);
        let reviews_all = self.recheck.round.reviews_all;
        let client = &mut self.engine.core.sessions[slot];
        let is_away = client.connection.is_none();
        match client.access.as_deref_mut() {
            Some(access) if access.is_current(&shared) => return,
            Some(access) => {
                let is_another = access.resolve_current(&shared);
                if !is_another && !reviews_all {
                    self.rechecked(slot);
                    return;
                }
            }
            None if shared.is_open() => return,
            // Of a restored session only the user is recorded, and of a session from an open node
            // only that it has no user: it is checked when its client returns.
            None if is_away => return,
            // The client was admitted while every client might do everything.
            None => {
                let identity = self.edge.identity_of(self.engine, slot);
                let admission = Admission {
                    identity,
                    ..Admission::default()
                };
                let client = &mut self.engine.core.sessions[slot];
                let mount = client.session.link().mount_point().cloned();
                let access = ClientAccess::new(admission, &shared).with_mount(mount, false);
                client.access = Some(Box::new(access));
            }
        }
        let id = self.engine.core.sessions[slot].session.id();
        self.review_soon(slot);
        // The session may have ended with its connection. Whether its user is still admitted is
        // asked before a long review.
        if self.engine.core.sessions.is(slot, id) {
            self.rechecked(slot);
        }
    }

    /// The client's rights under the rules are known; the judge of the client itself is asked
    /// again.
    fn rechecked(&mut self, slot: Slot) {
        let client = &self.engine.core.sessions[slot];
        let has_user = client
            .access
            .as_ref()
            .is_some_and(|access| access.identity.username.is_some());
        // A client that is away and has left a will may have lost the right to it.
        if has_user && (client.connection.is_some() || client.session.will().is_some()) {
            ask_again(self.edge, self.engine, slot);
        }
    }

    /// Whether an unverified client would be admitted again; otherwise it is disconnected. Its
    /// session stays.
    fn stays_admitted(&mut self, slot: Slot) -> bool {
        let client = &self.engine.core.sessions[slot];
        let key = client.connection;
        let access = client.access.as_deref();
        if access.is_some_and(|access| is_verified(&access.identity)) {
            return true;
        }
        let Some(Err(violation)) = key.map(|key| self.checks().may_stay(key)) else {
            return true;
        };
        if self.engine.core.may_log() {
            let client_id = self.engine.core.sessions[slot].session.client_id();
            tracing::info!(client_id, reason = violation.what, "disconnected");
        }
        self.engine.core.row().add(Counter::AdmissionsRevoked, 1);
        self.engine
            .drop_will(slot, "its client is no longer admitted");
        self.edge
            .disconnect_session(self.engine, slot, violation.into());
        false
    }

    /// The client's rights have changed.
    pub(crate) fn check_subscriptions(&mut self, slot: Slot) {
        self.review_soon(slot);
    }

    /// A client returns, perhaps with fewer rights, or after a restart that has forgotten its
    /// rights: it receives no message that it may no longer receive. `before` holds its rights at
    /// the last check of its session. False if the review takes long: then the client waits, and is
    /// admitted at the end of the review.
    pub(crate) fn withhold(
        &mut self,
        key: ConnectionKey,
        slot: Slot,
        before: Option<&ClientAccess>,
    ) -> bool {
        let client = &self.engine.core.sessions[slot];
        let id = client.session.id();
        let rights = before.zip(client.access.as_deref());
        let may_do_the_same = rights.is_some_and(|(before, now)| now.allows_the_same(before));
        let waiting = self.recheck.queue.find(slot, id);
        if may_do_the_same && waiting.is_none() {
            return true;
        }
        let is_revoked = waiting.is_some_and(Waiting::has_revoked);
        if self.engine.core.sessions[slot].checked().is_some() && self.is_long_review(slot) {
            let connection = self.engine.core.outputs.id(key);
            if may_do_the_same {
                self.recheck.queue.return_to(slot, connection);
            } else {
                self.recheck.queue.put(slot, id, Some(connection));
            }
            return false;
        }
        self.recheck.queue.remove(slot);
        if self.engine.core.sessions[slot].checked().is_some() {
            let mut review = Review::new(self.engine, slot, false);
            review.is_revoked = is_revoked;
            self.review(&mut review, |_| false);
        }
        true
    }

    /// The connection whose client has returned to a session and waits for its review.
    pub(crate) fn returning_to(&self, slot: Slot) -> Option<ConnectionId> {
        let id = self.engine.core.sessions[slot].session.id();
        let returning = self.recheck.queue.find(slot, id)?.returning;
        returning.filter(|connection| awaits_review(self.edge, self.engine, *connection))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_in_the_middle_of_a_round_skips_no_session() {
        let mut round = Round::default();
        let mut seen = [0; 5];
        round.begin(5);
        for _ in 0..8 {
            // Two are checked between one change and the next.
            for _ in 0..2 {
                seen[round.take()] += 1;
            }
            round.begin(5);
        }
        assert!(seen.iter().all(|times| *times >= 3), "{seen:?}");
        let all: Vec<_> = (0..5).map(|_| round.take()).collect();
        assert_eq!(all, [1, 2, 3, 4, 0]);
        assert_eq!(round.left, 0);
    }
}
