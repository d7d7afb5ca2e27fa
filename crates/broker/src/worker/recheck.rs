//! Other rules, or other people who decide: what clients have is looked at again, some in each turn.

use std::sync::Arc;

use thrum_access::{Admission, Identity};

use super::Worker;
use super::judging::is_verified;
use super::review::Review;
use crate::access::ClientAccess;
use crate::ids::Slot;
use crate::metrics::Counter;

/// Sessions that are looked at in one turn: each costs some microseconds, and clients wait meanwhile.
const SESSIONS_PER_TURN: usize = 256;

/// Sessions that are looked at again, one after the other.
#[derive(Debug, Default)]
pub(super) struct Recheck {
    round: Round,
    /// Of the one before, which has much to be looked at.
    under_way: Option<Review>,
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
        self.recheck.round.left > 0 || self.recheck.under_way.is_some()
    }

    /// The next sessions, as far as the portion goes.
    pub(super) fn recheck_some(&mut self) {
        if !self.is_rechecking() {
            return;
        }
        let mut looked_at = 0;
        self.begin_portion();
        while self.end_under_way() {
            let is_rest_for_later = looked_at == SESSIONS_PER_TURN || self.is_portion_over();
            if is_rest_for_later || self.recheck.round.left == 0 {
                break;
            }
            let slot = Slot::new(self.recheck.round.take());
            if let Some(slot) = slot.filter(|slot| self.local.clients.contains(*slot)) {
                self.recheck.under_way = self.recheck_session(slot);
                self.local.end_unit();
            }
            self.local.work += 1;
            looked_at += 1;
        }
        self.rates_changed &= self.is_rechecking();
        if !self.is_rechecking() {
            // From here on nothing is published here by the rules from before.
            self.want_look_at_sources();
        }
    }

    /// The review that is under way goes on; false if it is not at its end.
    fn end_under_way(&mut self) -> bool {
        let Some(mut review) = self.recheck.under_way.take() else {
            return true;
        };
        let is_done = self.go_on_with_review(&mut review);
        self.local.end_unit();
        if is_done {
            self.rechecked(&review);
        } else {
            self.recheck.under_way = Some(review);
        }
        is_done
    }

    /// The review of its subscriptions, if there has to be one.
    fn recheck_session(&mut self, slot: Slot) -> Option<Review> {
        if self.rates_changed {
            self.measure_again(slot);
        }
        if !self.keeps_its_place(slot) {
            return None;
        }
        let shared = Arc::clone(&self.local.settings.access);
        let client = &mut self.local.clients[slot];
        let is_away = client.connection.is_none();
        match client.access.as_deref_mut() {
            Some(access) if access.is_current(&shared) => return None,
            Some(access) => access.resolve(&shared),
            None if shared.is_open() => return None,
            // Of a restored session no more than the user is known, of one from an open node that it has none: it is
            // looked at when its client comes.
            None if is_away => return None,
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
        Some(self.begin_review(slot, true))
    }

    /// The subscriptions of a session have been looked at; it may have ended with its connection.
    fn rechecked(&mut self, review: &Review) {
        let slot = review.slot;
        if !self.is_session(slot, review.id) {
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
        let mut review = self.begin_review(slot, true);
        self.end_review(&mut review);
    }

    /// A client comes back, perhaps as one who may do less, or after a restart that has forgotten what it may do: it is sent
    /// nothing of what it may not have any more. `may_do_the_same` says that it may do what it might when its session was
    /// last looked at.
    pub(super) fn withhold(&mut self, slot: Slot, may_do_the_same: bool) {
        let under_way = self.recheck.under_way.take_if(|review| review.slot == slot);
        if !self.needs_check(slot) {
            return;
        }
        if let Some(mut review) = under_way {
            review.turns_away = false;
            self.end_review(&mut review);
        }
        if !may_do_the_same {
            let mut review = self.begin_review(slot, false);
            self.end_review(&mut review);
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
