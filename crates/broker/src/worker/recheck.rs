//! Other rules, or other people who decide: what clients have is looked at again, some in each turn.
//!
//! Sessions whose review takes long wait for their turn, one after the other. A client that comes back to one of them waits for
//! its CONNACK, so that it is sent nothing that it may not have any more.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use thrum_access::{Admission, Identity};

use super::Worker;
use super::judging::is_verified;
use super::review::Review;
use crate::access::ClientAccess;
use crate::ids::{ConnectionId, ConnectionKey, Slot};
use crate::metrics::Counter;

/// Sessions that are looked at in one turn: each costs some microseconds, and clients wait meanwhile.
const SESSIONS_PER_TURN: usize = 256;
/// A review that takes at most this part of a portion is done at once.
const SHORT_PART: u64 = 4;

/// Sessions that are looked at again.
#[derive(Debug, Default)]
pub(super) struct Recheck {
    round: Round,
    /// By their slots: sessions whose review takes long, of which some may have ended.
    waiting: HashMap<Slot, Waiting>,
    /// Their slots in the order in which they came. Those whose session is not among the others any more are passed over.
    order: VecDeque<Slot>,
    /// Of the first of them.
    under_way: Option<Review>,
    /// The round goes first in this turn: neither keeps the other from going on.
    is_turn_of_round: bool,
}

/// A session that waits for its review.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    slot: Slot,
    id: u64,
    /// A subscription has ended in a review that was broken off, since other rules hold.
    is_revoked: bool,
    cause: Cause,
}

/// Why a session is reviewed, and what comes of it.
#[derive(Clone, Copy, Debug)]
enum Cause {
    /// Other rules for everybody.
    Rules,
    /// Other rules for its client.
    Renewal,
    /// Its client has come back and waits for it.
    Return(ConnectionId),
}

impl Cause {
    /// A client that loses a subscription goes.
    const fn turns_away(self) -> bool {
        match self {
            Self::Rules | Self::Renewal => true,
            Self::Return(_) => false,
        }
    }
}

impl Recheck {
    /// Puts a session behind the others, or keeps its place and begins its review anew. Whoever waits for it waits on.
    fn put(&mut self, slot: Slot, id: u64, cause: Cause) {
        let before = self.find(slot, id).copied();
        let is_revoked = self.take(slot, id).is_some_and(|(_, revoked)| revoked);
        let cause = match (before.map(|before| before.cause), cause) {
            (Some(Cause::Return(connection)), Cause::Rules | Cause::Renewal) => {
                Cause::Return(connection)
            }
            (_, cause) => cause,
        };
        if before.is_none() {
            self.order.push_back(slot);
        }
        let waiting = Waiting {
            slot,
            id,
            is_revoked,
            cause,
        };
        self.waiting.insert(slot, waiting);
    }

    /// Another cause for the same review, which goes on where it is.
    fn change_cause(&mut self, slot: Slot, cause: Cause) {
        if let Some(waiting) = self.waiting.get_mut(&slot) {
            waiting.cause = cause;
        }
        let under_way = self.under_way.as_mut();
        if let Some(review) = under_way.filter(|review| review.slot == slot) {
            review.turns_away = cause.turns_away();
        }
    }

    fn find(&self, slot: Slot, id: u64) -> Option<&Waiting> {
        self.waiting.get(&slot).filter(|waiting| waiting.id == id)
    }

    /// Whose turn it is.
    fn first(&mut self) -> Option<Waiting> {
        while let Some(slot) = self.order.front() {
            if let Some(waiting) = self.waiting.get(slot) {
                return Some(*waiting);
            }
            self.order.pop_front();
        }
        // A crowd of them leaves no room behind.
        self.order = VecDeque::new();
        self.waiting = HashMap::new();
        None
    }

    /// The session waits no more: why it did, and whether it has lost a subscription in a review that was under way.
    fn take(&mut self, slot: Slot, id: u64) -> Option<(Cause, bool)> {
        self.find(slot, id)?;
        let waiting = self.waiting.remove(&slot)?;
        let under_way = self.under_way.take_if(|review| review.slot == slot);
        let is_revoked = waiting.is_revoked || under_way.is_some_and(|review| review.is_revoked);
        Some((waiting.cause, is_revoked))
    }
}

/// A round over all slots of sessions. Each change begins one where the last one is, so that changes without a pause leave
/// nobody out.
#[derive(Debug, Default)]
struct Round {
    /// As many as there were when it began: who came since has come by what is in force.
    slots: usize,
    next: usize,
    left: usize,
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
    /// Rules or gatekeeper have changed. A review that is under way goes on: what the rules before have revoked goes.
    pub(super) fn access_changed(&mut self) {
        self.recheck.round.begin(self.local.clients.capacity());
        // While changes come without a pause no round ends.
        self.want_look_at_sources();
    }

    /// There are sessions that were not looked at yet.
    pub(super) fn is_rechecking(&self) -> bool {
        self.recheck.round.left > 0 || !self.recheck.waiting.is_empty()
    }

    /// The next sessions, as far as the portion goes.
    pub(super) fn recheck_some(&mut self) {
        if !self.is_rechecking() {
            return;
        }
        self.begin_portion();
        self.recheck.is_turn_of_round = !self.recheck.is_turn_of_round;
        if self.recheck.is_turn_of_round {
            self.go_on_with_round();
        }
        if !self.is_portion_over() {
            self.go_on_with_waiting();
        }
        if !self.recheck.is_turn_of_round && !self.is_portion_over() {
            self.go_on_with_round();
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
    fn go_on_with_waiting(&mut self) {
        while let Some(waiting) = self.recheck.first() {
            self.local.work += 1;
            if self.review_waiting(waiting) {
                self.recheck.waiting.remove(&waiting.slot);
                self.reviewed(waiting);
            }
            self.local.end_unit();
            if self.is_portion_over() {
                return;
            }
        }
    }

    /// True if its review is done, or its session has ended.
    fn review_waiting(&mut self, waiting: Waiting) -> bool {
        let mut review = match self.recheck.under_way.take() {
            Some(review) => review,
            None if self.is_session(waiting.slot, waiting.id) => {
                let mut review = self.begin_review(waiting.slot, waiting.cause.turns_away());
                review.is_revoked = waiting.is_revoked;
                review
            }
            None => return true,
        };
        let is_done = self.go_on_with_review(&mut review);
        if !is_done {
            self.recheck.under_way = Some(review);
        }
        is_done
    }

    /// The review of a session has come to its end.
    fn reviewed(&mut self, waiting: Waiting) {
        match waiting.cause {
            Cause::Return(connection) if self.awaits_review(connection) => {
                self.go_in_after_review(connection);
            }
            Cause::Rules | Cause::Return(_) => self.rechecked(waiting.slot, waiting.id),
            Cause::Renewal => {}
        }
    }

    /// Reviews a session at once, if that is short, or puts it behind the others.
    fn review_soon(&mut self, slot: Slot, cause: Cause) {
        let id = self.local.clients[slot].session.id();
        if self.recheck.find(slot, id).is_some() || self.is_long_review(slot) {
            self.recheck.put(slot, id, cause);
            return;
        }
        let mut review = self.begin_review(slot, cause.turns_away());
        self.end_review(&mut review);
        self.reviewed(Waiting {
            slot,
            id,
            is_revoked: review.is_revoked,
            cause,
        });
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
        let client = &mut self.local.clients[slot];
        let is_away = client.connection.is_none();
        match client.access.as_deref_mut() {
            Some(access) if access.is_current(&shared) => return,
            Some(access) => access.resolve(&shared),
            None if shared.is_open() => return,
            // Of a restored session no more than the user is known, of one from an open node that it has none: it is
            // looked at when its client comes.
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
        self.review_soon(slot, Cause::Rules);
    }

    /// The subscriptions of a session have been looked at; it may have ended with its connection.
    fn rechecked(&mut self, slot: Slot, id: u64) {
        if !self.is_session(slot, id) {
            return;
        }
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

    /// Whether a client that nobody has verified would be let in again; who would not has to go. Its session stays.
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
        self.review_soon(slot, Cause::Renewal);
    }

    /// A client comes back, perhaps as one who may do less, or after a restart that has forgotten what it may do: it is sent
    /// nothing of what it may not have any more. `may_do_the_same` says that it may do what it might when its session was
    /// last looked at. False if that takes long: then the client has to wait, and goes in when it is done.
    pub(super) fn withhold(
        &mut self,
        key: ConnectionKey,
        slot: Slot,
        may_do_the_same: bool,
    ) -> bool {
        let id = self.local.clients[slot].session.id();
        if !self.needs_check(slot) {
            self.recheck.take(slot, id);
            return true;
        }
        let is_waiting = self.recheck.find(slot, id).is_some();
        if may_do_the_same && !is_waiting {
            return true;
        }
        if self.is_long_review(slot) {
            let cause = Cause::Return(self.local.connections[key].id(key));
            if may_do_the_same {
                self.recheck.change_cause(slot, cause);
            } else {
                self.recheck.put(slot, id, cause);
            }
            return false;
        }
        let mut review = self.begin_review(slot, false);
        if let Some((_, is_revoked)) = self.recheck.take(slot, id) {
            review.is_revoked = is_revoked;
        }
        self.end_review(&mut review);
        true
    }

    /// The connection whose client has come back to a session and waits until it was looked at.
    pub(super) fn returning_to(&self, slot: Slot) -> Option<ConnectionId> {
        let id = self.local.clients[slot].session.id();
        match self.recheck.find(slot, id)?.cause {
            Cause::Return(connection) if self.awaits_review(connection) => Some(connection),
            Cause::Return(_) | Cause::Rules | Cause::Renewal => None,
        }
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
