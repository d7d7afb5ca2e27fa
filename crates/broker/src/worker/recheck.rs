//! Other rules, or other people who decide: what clients have is looked at again, some in each turn.

use std::sync::Arc;

use thrum_access::{Admission, Identity};
use thrum_codec::topic::{self, TopicFilter};
use thrum_codec::{QoS, ReasonCode};

use super::judging::is_verified;
use super::{Client, FILTER_UNITS, Worker};
use crate::access::{ClientAccess, Grant};
use crate::metrics::Counter;
use crate::subscribe::Check;

/// Sessions that are looked at in one turn: each costs some microseconds, and clients wait meanwhile.
const SESSIONS_PER_TURN: usize = 256;

/// What became of a session's subscriptions.
#[derive(Debug, Default)]
struct Review {
    /// One at least has ended.
    is_revoked: bool,
    /// The others, by filter.
    kept: Vec<(Box<str>, Check)>,
}

/// A round over all slots of sessions. Each change begins one where the last one is, so that changes without a pause leave
/// nobody out.
#[derive(Debug, Default)]
pub(super) struct Round {
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
    /// Rules or gatekeeper have changed.
    pub(super) fn access_changed(&mut self) {
        self.recheck.begin(self.local.clients.capacity());
        // While changes come without a pause no round ends.
        self.want_look_at_sources();
    }

    /// There are sessions that were not looked at yet.
    pub(super) fn is_rechecking(&self) -> bool {
        self.recheck.left > 0
    }

    /// The next sessions.
    pub(super) fn recheck_some(&mut self) {
        if !self.is_rechecking() {
            return;
        }
        let mut looked_at = 0;
        self.begin_portion();
        while looked_at < SESSIONS_PER_TURN && self.recheck.left > 0 && !self.is_portion_over() {
            let slot = self.recheck.take();
            if self.local.clients.contains(slot) {
                self.recheck_session(u32::try_from(slot).unwrap_or(u32::MAX));
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

    fn recheck_session(&mut self, slot: u32) {
        if self.rates_changed {
            self.measure_again(slot);
        }
        if !self.keeps_its_place(slot) {
            return;
        }
        let shared = Arc::clone(&self.local.settings.access);
        let client = &mut self.local.clients[slot as usize];
        let is_away = client.connection_slot().is_none();
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
                let client = &mut self.local.clients[slot as usize];
                let mount = client.session.mount_point().cloned();
                let access = ClientAccess::new(admission, &shared).entered(mount, false);
                client.access = Some(Box::new(access));
            }
        }
        self.check_subscriptions(slot);
        let Some(client) = self.local.clients.get(slot as usize) else {
            // Its session ended with its connection.
            return;
        };
        let has_user = client
            .access
            .as_ref()
            .is_some_and(|access| access.identity.username.is_some());
        // Who is away and has left a will may not be one who may leave one any more.
        if has_user && (client.connection_slot().is_some() || client.session.will().is_some()) {
            self.ask_again(slot);
        }
    }

    /// Whether a client that nobody has verified would be let in again; who would not has to go. Its session stays.
    fn keeps_its_place(&mut self, slot: u32) -> bool {
        let client = &self.local.clients[slot as usize];
        let key = client
            .connection_slot()
            .and_then(|key| u32::try_from(key).ok());
        let access = client.access.as_deref();
        if access.is_some_and(|access| is_verified(&access.identity)) {
            return true;
        }
        let Some(Err(violation)) = key.map(|key| self.may_stay(key)) else {
            return true;
        };
        if self.may_log() {
            let client_id = self.local.clients[slot as usize].session.client_id();
            tracing::info!(client_id, reason = violation.what, "disconnected");
        }
        self.local.row().add(Counter::ClientsTurnedAway, 1);
        self.drop_will(slot, "its client is no longer admitted");
        self.turn_away(slot, violation.reason, violation.what);
        false
    }

    /// An anonymous client; of one that is away since the start the user is known.
    pub(super) fn identity_of(&mut self, slot: u32) -> Identity {
        let client = &self.local.clients[slot as usize];
        let username = client.owner().user().map(Into::into);
        let client_id = client.session.client_id().into();
        let connection = client
            .connection_slot()
            .map(|key| &self.local.connections[key]);
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

    /// What the client has subscribed to and may not any more ends, and so does its connection: 5.0 tells why, and a
    /// client that comes back finds the rest. What is allowed in part is checked from now on, and what waits and is not
    /// allowed any more is dropped at once: later nobody could tell that it came through a subscription that has ended.
    pub(super) fn check_subscriptions(&mut self, slot: u32) {
        let id = self.local.clients[slot as usize].session.id();
        let review = self.review(slot);
        if review.is_revoked {
            let what = "a subscription is no longer allowed: the rules have changed";
            // First, so that messages of shared groups go to other members.
            self.turn_away(slot, ReasonCode::NotAuthorized, what);
        }
        // Its session may have ended with its connection.
        if self.is_session(slot, id) {
            self.drop_forbidden(slot, &review);
            self.local.collect(slot);
        }
    }

    /// A client comes back, perhaps as one who may do less, or after a restart that has forgotten what it may do: it is sent
    /// nothing of what it may not have any more.
    pub(super) fn withhold(&mut self, slot: u32) {
        let review = self.review(slot);
        self.drop_forbidden(slot, &review);
    }

    /// Drops what waits for a session and comes through none of the subscriptions that it has kept.
    fn drop_forbidden(&mut self, slot: u32, Review { is_revoked, kept }: &Review) {
        if !is_revoked && kept.iter().all(|(_, check)| *check == Check::Never) {
            return;
        }
        let Client {
            session, access, ..
        } = &mut self.local.clients[slot as usize];
        let Some(access) = access.as_deref() else {
            return;
        };
        // Messages of one topic often wait together.
        let mut last: Option<(Box<str>, QoS, bool)> = None;
        let dropped = session.drop_forbidden(|topic, qos| {
            if let Some((same, of, may)) = &last
                && **same == *topic
                && *of == qos
            {
                return *may;
            }
            let seen = access.seen(topic);
            let by_rules = seen.map(|seen| access.decided(seen, qos));
            let is_allowed = |check: Check| match (check, by_rules) {
                (Check::Never, _) => true,
                (_, None) => false,
                (Check::OrDenied, Some(by_rules)) => by_rules == Some(true),
                (Check::OrAllowed, Some(by_rules)) => by_rules != Some(false),
            };
            let may = kept
                .iter()
                .any(|(filter, check)| is_allowed(*check) && topic::matches(filter, topic));
            last = Some((topic.into(), qos, may));
            may
        });
        if dropped > 0 && self.may_log() {
            let client_id = self.local.clients[slot as usize].session.client_id();
            tracing::info!(
                client_id,
                dropped,
                "messages that waited for this client are dropped: it may not have them any more"
            );
        }
    }

    /// Ends the subscriptions that are not allowed.
    fn review(&mut self, slot: u32) -> Review {
        let mut review = Review::default();
        for standing in self.standing_subscriptions(slot) {
            self.local.work += FILTER_UNITS;
            let Ok(filter) = TopicFilter::parse(&standing.filter) else {
                continue;
            };
            let is_shared = filter.shared().is_some();
            let whole = filter.matched_part();
            let access = self.local.clients[slot as usize].access.as_deref();
            let seen = access.map_or(Some(whole), |access| access.seen(whole));
            // The mount point is another one since: nothing comes through it.
            let Some(seen) = seen else { continue };
            let check = match self.grant(slot, seen, (standing.qos, is_shared)) {
                // What the gatekeeper said when it was made holds for it.
                Grant::Ask => self.check_of(slot, filter),
                Grant::Whole => Check::Never,
                Grant::Checked { or_allowed } => Check::each(or_allowed),
                Grant::Refused => {
                    review.is_revoked = true;
                    self.local.row().add(Counter::SubscriptionsRevoked, 1);
                    self.unsubscribe(slot, filter);
                    continue;
                }
            };
            self.set_check(slot, filter, check);
            review.kept.push((whole.into(), check));
        }
        if review.is_revoked && self.may_log() {
            let client_id = self.local.clients[slot as usize].session.client_id();
            tracing::info!(
                client_id,
                "subscriptions ended: the rules do not allow them any more"
            );
        }
        review
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
