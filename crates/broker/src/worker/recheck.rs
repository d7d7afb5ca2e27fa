//! Other rules, or other people who decide: what clients have is looked at again, some in each
//! turn.
//!
//! Sessions whose review takes long wait for their turn, one after the other. A client that comes
//! back to one of them waits for its CONNACK, so that it is sent nothing that it may not have any
//! more.

use std::sync::Arc;

use thrum_access::{Admission, Identity};

use super::Worker;
use super::judging::is_verified;
use super::review_queue::{Line, ReviewQueue, Waiting};
use crate::access::ClientAccess;
use crate::ids::{ConnectionId, ConnectionKey, Slot};
use crate::metrics::Counter;

/// Sessions that are looked at in one turn: each costs some microseconds, and clients wait
/// meanwhile.
const SESSIONS_PER_TURN: usize = 256;
/// A review that takes at most this part of a portion is done at once.
const SHORT_PART: u64 = 4;

/// Sessions that are looked at again.
#[derive(Debug)]
pub(super) struct Recheck {
    round: Round,
    queue: ReviewQueue,
    /// Each goes first in one of three turns, so that none keeps the others from going on.
    parts: [Part; 3],
}

/// What there is to do, each part for as long as the portion lasts.
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
            parts: [
                Part::Round,
                Part::Queue(Line::Returning),
                Part::Queue(Line::Others),
            ],
        }
    }
}

/// A round over all slots of sessions. Each change begins one where the last one is, so that
/// changes without a pause leave nobody out.
#[derive(Debug, Default)]
struct Round {
    /// As many as there were when it began: who came since has come by what is in force.
    slots: usize,
    next: usize,
    left: usize,
    /// Also sessions whose clients may do just what they might: filters are granted in another way.
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

impl Worker {
    /// Rules or gatekeeper have changed. A review that is under way begins anew if they say
    /// something else about its client.
    pub(super) fn access_changed(&mut self, reviews_all: bool) {
        let round = &mut self.recheck.round;
        round.reviews_all = reviews_all || round.reviews_all && round.left > 0;
        round.begin(self.local.clients.capacity());
        // While changes come without a pause no round ends.
        self.want_look_at_sources();
    }

    /// There are sessions that were not looked at yet.
    pub(super) fn is_rechecking(&self) -> bool {
        self.recheck.round.left > 0 || !self.recheck.queue.is_empty()
    }

    /// The next sessions, as far as the portion goes.
    pub(super) fn recheck_some(&mut self) {
        if !self.is_rechecking() {
            return;
        }
        self.begin_portion();
        self.recheck.parts.rotate_left(1);
        for part in self.recheck.parts {
            match part {
                Part::Round => self.go_on_with_round(),
                Part::Queue(line) => self.go_on_with_queue(line),
            }
            if self.is_portion_over() {
                break;
            }
        }
    }

    fn go_on_with_round(&mut self) {
        let mut looked_at = 0;
        while self.recheck.round.left > 0 {
            let slot = Slot::new(self.recheck.round.take());
            if let Some(slot) = slot.filter(|slot| self.local.clients.contains(*slot)) {
                self.recheck_session(slot);
                self.local.end_unit();
            }
            self.local.work += 1;
            looked_at += 1;
            if self.recheck.round.left == 0 {
                self.rates_changed = false;
                // From here on nothing is published here by the rules from before.
                self.want_look_at_sources();
            }
            if looked_at == SESSIONS_PER_TURN || self.is_portion_over() {
                break;
            }
        }
    }

    /// Sessions whose review takes long, in their order.
    fn go_on_with_queue(&mut self, line: Line) {
        while self.review_first(line) {
            self.local.end_unit();
            if self.is_portion_over() {
                return;
            }
        }
    }

    /// Goes on with the first one; false if there is none.
    fn review_first(&mut self, line: Line) -> bool {
        let Some((slot, waiting)) = self.recheck.queue.first(line) else {
            return false;
        };
        self.local.work += 1;
        let (id, is_revoked, returning) = (waiting.id, waiting.is_revoked, waiting.returning);
        let under_way = waiting.review.take();
        if self.is_session(slot, id) {
            let mut review = under_way.unwrap_or_else(|| {
                let mut review = self.begin_review(slot, returning.is_none());
                review.is_revoked = is_revoked;
                Box::new(review)
            });
            if !self.go_on_with_review(&mut review) {
                self.recheck.queue.go_on_later(review);
                return true;
            }
        }
        self.recheck.queue.remove(slot);
        if let Some(connection) = returning {
            self.go_in_after_review(connection);
        }
        true
    }

    /// Reviews a session at once, or puts it behind the others if that takes long.
    fn review_soon(&mut self, slot: Slot) {
        let id = self.local.clients[slot].session.id();
        if self.recheck.queue.find(slot, id).is_some() || self.is_long_review(slot) {
            self.recheck.queue.put(slot, id, None);
            return;
        }
        let mut review = self.begin_review(slot, true);
        self.end_review(&mut review);
    }

    /// Others of the worker should not wait for the review of this session.
    fn is_long_review(&self, slot: Slot) -> bool {
        self.review_units(slot) > self.budget.limits.portion_units / SHORT_PART
    }

    /// Looks at what a session may do, and at its subscriptions if there is something to look at.
    fn recheck_session(&mut self, slot: Slot) {
        if self.rates_changed {
            self.measure_again(slot);
        }
        if !self.keeps_its_place(slot) {
            return;
        }
        let shared = Arc::clone(&self.local.settings.access);
        let reviews_all = self.recheck.round.reviews_all;
        let client = &mut self.local.clients[slot];
        let is_away = client.connection.is_none();
        match client.access.as_deref_mut() {
            Some(access) if access.is_current(&shared) => return,
            Some(access) => {
                let is_another = access.resolve_anew(&shared);
                if !is_another && !reviews_all {
                    self.rechecked(slot);
                    return;
                }
            }
            None if shared.is_open() => return,
            // Of a restored session no more than the user is known, of one from an open node that
            // it has none: it is looked at when its client comes.
            None if is_away => return,
            // It came in while everybody might do everything.
            None => {
                let identity = self.identity_of(slot);
                let admission = Admission {
                    identity,
                    ..Admission::default()
                };
                let client = &mut self.local.clients[slot];
                let mount = client.session.mount_point().cloned();
                let access = ClientAccess::new(admission, &shared).entered(mount, false);
                client.access = Some(Box::new(access));
            }
        }
        let id = self.local.clients[slot].session.id();
        self.review_soon(slot);
        // It may have ended with its connection. Whether its user may still be here is asked before
        // a long review.
        if self.is_session(slot, id) {
            self.rechecked(slot);
        }
    }

    /// What the session's client may do by the rules is known; who decides about the client itself
    /// is asked again.
    fn rechecked(&mut self, slot: Slot) {
        let client = &self.local.clients[slot];
        let has_user = client
            .access
            .as_ref()
            .is_some_and(|access| access.identity.username.is_some());
        // Who is away and has left a will may not be one who may leave one any more.
        if has_user && (client.connection.is_some() || client.session.will().is_some()) {
            self.ask_again(slot);
        }
    }

    /// Whether a client that nobody has verified would be let in again; who would not has to go.
    /// Its session stays.
    fn keeps_its_place(&mut self, slot: Slot) -> bool {
        let client = &self.local.clients[slot];
        let key = client.connection;
        let access = client.access.as_deref();
        if access.is_some_and(|access| is_verified(&access.identity)) {
            return true;
        }
        let Some(Err(violation)) = key.map(|key| self.may_stay(key)) else {
            return true;
        };
        if self.may_log() {
            let client_id = self.local.clients[slot].session.client_id();
            tracing::info!(client_id, reason = violation.what, "disconnected");
        }
        self.local.row().add(Counter::ClientsTurnedAway, 1);
        self.drop_will(slot, "its client is no longer admitted");
        self.turn_away(slot, violation.reason, violation.what);
        false
    }

    /// An anonymous client; of one that is away since the start the user is known.
    pub(super) fn identity_of(&mut self, slot: Slot) -> Identity {
        let client = &self.local.clients[slot];
        let username = client.owner().user().map(Into::into);
        let client_id = client.session.client_id().into();
        let connection = client.connection.map(|key| &self.local.connections[key]);
        let from = connection.map(|connection| (connection.gate, connection.peer.own_address()));
        let (gate, address) = from.unzip();
        let listener = gate.map(|gate| Arc::clone(&self.local.gate(gate).name));
        Identity {
            client_id,
            username,
            address: address.flatten(),
            listener: listener.unwrap_or_default(),
            ..Identity::default()
        }
    }

    /// The client may do something else from now on.
    pub(super) fn check_subscriptions(&mut self, slot: Slot) {
        self.review_soon(slot);
    }

    /// A client comes back, perhaps as one who may do less, or after a restart that has forgotten
    /// what it may do: it is sent nothing of what it may not have any more. `before` is what it
    /// might do when its session was last looked at. False if that takes long: then the client has
    /// to wait, and goes in when it is done.
    pub(super) fn withhold(
        &mut self,
        key: ConnectionKey,
        slot: Slot,
        before: Option<&ClientAccess>,
    ) -> bool {
        let client = &self.local.clients[slot];
        let id = client.session.id();
        let rights = before.zip(client.access.as_deref());
        let may_do_the_same = rights.is_some_and(|(before, now)| now.allows_the_same(before));
        let waiting = self.recheck.queue.find(slot, id);
        if may_do_the_same && waiting.is_none() {
            return true;
        }
        let is_revoked = waiting.is_some_and(Waiting::has_revoked);
        if self.needs_check(slot) && self.is_long_review(slot) {
            let connection = self.local.connections[key].id(key);
            if may_do_the_same {
                self.recheck.queue.return_to(slot, connection);
            } else {
                self.recheck.queue.put(slot, id, Some(connection));
            }
            return false;
        }
        self.recheck.queue.remove(slot);
        if self.needs_check(slot) {
            let mut review = self.begin_review(slot, false);
            review.is_revoked = is_revoked;
            self.end_review(&mut review);
        }
        true
    }

    /// The connection whose client has come back to a session and waits until it was reviewed.
    pub(super) fn returning_to(&self, slot: Slot) -> Option<ConnectionId> {
        let id = self.local.clients[slot].session.id();
        let returning = self.recheck.queue.find(slot, id)?.returning;
        returning.filter(|connection| self.awaits_review(*connection))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_in_the_middle_of_a_round_leaves_nobody_out() {
        let mut round = Round::default();
        let mut seen = [0; 5];
        round.begin(5);
        for _ in 0..8 {
            // Two are looked at between one change and the next.
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
