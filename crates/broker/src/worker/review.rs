//! The subscriptions of one session, and what waits for it, looked at by other rules, a portion in
//! each turn.
//!
//! Each filter is compared with each rule, and each message that waits with each filter: with
//! thousands of them that takes longer than the others of the worker may wait.

use std::collections::{HashMap, HashSet};
use std::vec;

use thrum_codec::topic::{self, TopicFilter};
use thrum_codec::{QoS, ReasonCode};

use super::{FILTER_UNITS, Worker};
use crate::access::{ClientAccess, Grant};
use crate::ids::Slot;
use crate::metrics::Counter;
use crate::subscribe::{Check, Standing};

/// Filters that are compared with a topic in the time of a unit of work.
const FILTERS_OF_UNIT: usize = 8;

/// A message that waits, as far as rules are about it.
type Waiting = (Box<str>, QoS);

/// A review that is under way.
#[derive(Debug)]
pub(super) struct Review {
    pub(super) slot: Slot,
    pub(super) id: u64,
    step: Step,
    kept: Kept,
    /// One subscription at least has ended.
    pub(super) is_revoked: bool,
    /// A client that has lost a subscription is told, and has to come back.
    pub(super) turns_away: bool,
}

#[derive(Debug)]
enum Step {
    /// Subscriptions that were not looked at yet.
    Filters(vec::IntoIter<Standing>),
    /// Messages that were not looked at yet, and those that come through no subscription any more.
    Messages(vec::IntoIter<Waiting>, HashSet<Waiting>),
}

/// Subscriptions that stay, without `$share/GROUP/`.
#[derive(Debug, Default)]
struct Kept {
    plain: HashMap<Box<str>, Check>,
    with_wildcards: Vec<(Box<str>, Check)>,
}

impl Kept {
    fn insert(&mut self, filter: TopicFilter<'_>, check: Check) {
        let text = filter.matched_part();
        if filter.has_wildcard() {
            self.with_wildcards.push((text.into(), check));
        } else {
            // One of a group may stand beside one that is checked in another way.
            let known = self.plain.entry(text.into()).or_insert(check);
            if check == Check::Never {
                *known = check;
            }
        }
    }

    fn is_all_allowed(&self) -> bool {
        let mut checks = self
            .plain
            .values()
            .chain(self.with_wildcards.iter().map(|(_, check)| check));
        checks.all(|check| *check == Check::Never)
    }

    /// Whether a message still comes through one of them.
    fn lets_through(&self, access: &ClientAccess, (topic, qos): &Waiting) -> bool {
        let seen = access.seen(topic);
        let may = |or_allowed| seen.is_some_and(|seen| access.receive(seen, *qos, or_allowed));
        // Looked up when they matter, and once.
        let (mut or_denied, mut or_allowed) = (None, None);
        let mut passes = |check: &Check| match check {
            Check::Never => true,
            Check::OrDenied => *or_denied.get_or_insert_with(|| may(false)),
            Check::OrAllowed => *or_allowed.get_or_insert_with(|| may(true)),
        };
        self.plain.get(topic).is_some_and(&mut passes)
            || self
                .with_wildcards
                .iter()
                .any(|(filter, check)| topic::matches(filter, topic) && passes(check))
    }

    fn units(&self) -> u64 {
        (self.with_wildcards.len() / FILTERS_OF_UNIT) as u64
    }
}

impl Worker {
    /// A session is looked at by the rules that are in force for it now.
    pub(super) fn begin_review(&self, slot: Slot, turns_away: bool) -> Review {
        Review {
            slot,
            id: self.local.clients[slot].session.id(),
            step: Step::Filters(self.standing_subscriptions(slot).into_iter()),
            kept: Kept::default(),
            is_revoked: false,
            turns_away,
        }
    }

    /// Goes on as far as the portion goes; true at the end. What the client has subscribed to and
    /// may not any more ends, and so does its connection: 5.0 tells why, and a client that comes
    /// back finds the rest. What is allowed in part is checked from now on, and what waits and is
    /// not allowed any more is dropped: later nobody could tell that it came through a subscription
    /// that has ended.
    pub(super) fn go_on_with_review(&mut self, review: &mut Review) -> bool {
        self.review(review, Self::is_portion_over)
    }

    /// What a review of the session takes, about.
    pub(super) fn review_units(&self, slot: Slot) -> u64 {
        let client = &self.local.clients[slot];
        let subscriptions = client.subscription_count() as u64;
        let messages = client.session.backlog().0 as u64;
        let access = client.access.as_deref();
        let rules = access.map_or(1, ClientAccess::filter_units);
        let of_message = subscriptions / FILTERS_OF_UNIT as u64 + rules;
        subscriptions * (FILTER_UNITS + rules) + messages * of_message
    }

    /// The same to its end, where that is short.
    pub(super) fn end_review(&mut self, review: &mut Review) {
        self.review(review, |_| false);
    }

    fn review(&mut self, review: &mut Review, is_over: impl Fn(&mut Self) -> bool) -> bool {
        while self.is_session(review.slot, review.id) {
            if self.review_next(review) {
                return true;
            }
            if is_over(self) {
                return false;
            }
        }
        true
    }

    /// One filter or message; true at the end.
    fn review_next(&mut self, review: &mut Review) -> bool {
        match &mut review.step {
            Step::Filters(left) => {
                let Some(standing) = left.next() else {
                    return self.filters_reviewed(review);
                };
                self.review_filter(review, &standing);
            }
            Step::Messages(left, forbidden) => {
                let Some(message) = left.next() else {
                    self.drop_forbidden(review.slot, forbidden);
                    return true;
                };
                self.review_message(review.slot, &review.kept, message, forbidden);
            }
        }
        false
    }

    fn review_filter(&mut self, review: &mut Review, standing: &Standing) {
        let slot = review.slot;
        self.local.work += FILTER_UNITS;
        let Ok(filter) = TopicFilter::parse(&standing.filter) else {
            return;
        };
        let is_shared = filter.shared().is_some();
        let whole = filter.matched_part();
        let access = self.local.clients[slot].access.as_deref();
        self.local.work += access.map_or(0, ClientAccess::filter_units);
        let seen = access.map_or(Some(whole), |access| access.seen(whole));
        // The mount point is another one since: nothing comes through it.
        let Some(seen) = seen else { return };
        let check = match self.grant(slot, seen, (standing.qos, is_shared)) {
            // What the gatekeeper said when it was made holds for it.
            Grant::Ask => self.check_of(slot, filter),
            Grant::Whole => Check::Never,
            Grant::Checked { or_allowed } => Check::each(or_allowed),
            Grant::Refused => {
                review.is_revoked = true;
                self.local.row().add(Counter::SubscriptionsRevoked, 1);
                self.unsubscribe(slot, filter);
                return;
            }
        };
        self.set_check(slot, filter, check);
        review.kept.insert(filter, check);
    }

    /// All subscriptions have been looked at; true if no message has to be.
    fn filters_reviewed(&mut self, review: &mut Review) -> bool {
        let slot = review.slot;
        if review.is_revoked {
            if self.may_log() {
                let client_id = self.local.clients[slot].session.client_id();
                tracing::info!(
                    client_id,
                    "subscriptions ended: the rules do not allow them any more"
                );
            }
            if review.turns_away {
                let what = "a subscription is no longer allowed: the rules have changed";
                // First, so that messages of shared groups go to other members.
                self.turn_away(slot, ReasonCode::NotAuthorized, what);
            }
        }
        // Its session may have ended with its connection.
        if !self.is_session(slot, review.id) || !review.is_revoked && review.kept.is_all_allowed() {
            return true;
        }
        let session = &self.local.clients[slot].session;
        let waiting = session.waiting().map(|(topic, qos)| (topic.into(), qos));
        let mut waiting: Vec<Waiting> = waiting.collect();
        waiting.sort_unstable();
        waiting.dedup();
        review.step = Step::Messages(waiting.into_iter(), HashSet::new());
        false
    }

    fn review_message(
        &mut self,
        slot: Slot,
        kept: &Kept,
        message: Waiting,
        forbidden: &mut HashSet<Waiting>,
    ) {
        let Some(access) = self.local.clients[slot].access.as_deref() else {
            return;
        };
        self.local.work += kept.units() + access.filter_units();
        if !kept.lets_through(access, &message) {
            forbidden.insert(message);
        }
    }

    /// Drops what waits for a session and comes through none of the subscriptions that it has kept.
    fn drop_forbidden(&mut self, slot: Slot, forbidden: &HashSet<Waiting>) {
        let session = &mut self.local.clients[slot].session;
        let dropped =
            session.drop_forbidden(|topic, qos| !forbidden.contains(&(topic.into(), qos)));
        if dropped > 0 && self.may_log() {
            let client_id = self.local.clients[slot].session.client_id();
            tracing::info!(
                client_id,
                dropped,
                "messages that waited for this client are dropped: it may not have them any more"
            );
        }
        self.local.collect(slot);
    }
}
