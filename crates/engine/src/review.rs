//! The subscriptions of one session, and what waits for it, looked at by other rules, a portion in
//! each turn.
//!
//! Each filter is compared with each rule, and each message that waits with each filter: with
//! thousands of them that takes longer than the others of the worker may wait.

use std::collections::{HashMap, HashSet};
use std::vec;

use thrum_codec::QoS;
use thrum_codec::topic::{self, TopicFilter};

use super::Engine;
use super::core::Core;
use super::subscriber::{Check, Standing};
use super::turn::{FILTER_UNITS, Turn};
use crate::access::{ClientAccess, Grant};
use crate::ids::Slot;
use crate::node::metrics::Counter;

/// Filters that are compared with a topic in the time of a unit of work.
const FILTERS_OF_UNIT: usize = 8;

/// A message that waits, as far as rules are about it.
type Waiting = (Box<str>, QoS);

/// A review that is under way.
#[derive(Debug)]
pub struct Review {
    /// The session.
    pub slot: Slot,
    /// The number of the session.
    pub id: u64,
    step: Step,
    kept: Kept,
    /// One subscription at least has ended.
    pub is_revoked: bool,
    /// A client that has lost a subscription has to come back, and is told so first.
    pub turns_away: bool,
    /// That subscriptions have ended was said.
    is_told: bool,
}

/// How far a review is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    Done,
    /// It goes on later.
    Waits,
    /// The client has to come back, as a subscription has ended; then it goes on.
    TurnAway,
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
    fn lets_through(&self, access: &ClientAccess, message: &Waiting) -> bool {
        let (topic, qos) = message;
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

impl Review {
    /// A session is looked at by the rules that are in force for it now.
    pub fn new(engine: &Engine, slot: Slot, turns_away: bool) -> Self {
        let standing = engine
            .router
            .topics
            .standing_subscriptions(&engine.core, slot);
        Self {
            slot,
            id: engine.core.sessions[slot].session.id(),
            step: Step::Filters(standing.into_iter()),
            kept: Kept::default(),
            is_revoked: false,
            turns_away,
            is_told: false,
        }
    }

    /// Goes on until it is over, or as far as the portion goes. What the client has subscribed to
    /// and may not any more ends, and so does its connection: 5.0 tells why, and a client that
    /// comes back finds the rest. What is allowed in part is checked from now on, and what waits
    /// and is not allowed any more is dropped: later nobody could tell that it came through a
    /// subscription that has ended.
    pub fn go_on(&mut self, engine: &mut Engine, is_over: impl Fn(&mut Turn) -> bool) -> Progress {
        while engine.core.sessions.is(self.slot, self.id) {
            let progress = self.next(engine);
            if progress != Progress::Waits {
                return progress;
            }
            if is_over(&mut engine.core.turn) {
                return Progress::Waits;
            }
        }
        Progress::Done
    }

    /// One filter or message.
    fn next(&mut self, engine: &mut Engine) -> Progress {
        match &mut self.step {
            Step::Filters(left) => match left.next() {
                Some(standing) => self.filter(engine, &standing),
                None => return self.filters_are_done(&mut engine.core),
            },
            Step::Messages(left, forbidden) => {
                let Some(message) = left.next() else {
                    drop_forbidden(&mut engine.core, self.slot, forbidden);
                    return Progress::Done;
                };
                let core = &mut engine.core;
                let Some(access) = core.sessions[self.slot].access.as_deref() else {
                    return Progress::Waits;
                };
                core.turn.work += self.kept.units() + access.filter_units();
                if !self.kept.lets_through(access, &message) {
                    forbidden.insert(message);
                }
            }
        }
        Progress::Waits
    }

    fn filter(&mut self, engine: &mut Engine, standing: &Standing) {
        let slot = self.slot;
        engine.core.turn.work += FILTER_UNITS;
        let Ok(filter) = TopicFilter::parse(&standing.filter) else {
            return;
        };
        let is_shared = filter.shared().is_some();
        let whole = filter.matched_part();
        let access = engine.core.sessions[slot].access.as_deref();
        engine.core.turn.work += access.map_or(0, ClientAccess::filter_units);
        let seen = access.map_or(Some(whole), |access| access.seen(whole));
        // The mount point is another one since: nothing comes through it.
        let Some(seen) = seen else { return };
        let client = &engine.core.sessions[slot];
        let policy = &engine.core.settings.access.access.policy;
        let granted = client.grant(seen, standing.qos, engine.core.turn.now);
        let check = match granted.as_given(is_shared, policy) {
            // What the gatekeeper said when it was made holds for it.
            Grant::Ask => engine.router.topics.check_of(slot, filter),
            Grant::Whole => Check::Never,
            Grant::Checked { or_allowed } => Check::each(or_allowed),
            Grant::Refused => {
                self.is_revoked = true;
                engine.core.row().add(Counter::SubscriptionsRevoked, 1);
                engine.subscribing().unsubscribe(slot, filter);
                return;
            }
        };
        engine.router.topics.set_check(slot, filter, check);
        self.kept.insert(filter, check);
    }

    /// All subscriptions have been looked at.
    fn filters_are_done(&mut self, core: &mut Core) -> Progress {
        let slot = self.slot;
        if self.is_revoked && !self.is_told {
            self.is_told = true;
            if core.may_log() {
                let client_id = core.sessions[slot].session.client_id();
                tracing::info!(
                    client_id,
                    "subscriptions ended: the rules do not allow them any more"
                );
            }
            if self.turns_away {
                // First, so that messages of shared groups go to other members.
                return Progress::TurnAway;
            }
        }
        if !self.is_revoked && self.kept.is_all_allowed() {
            return Progress::Done;
        }
        let session = &core.sessions[slot].session;
        let waiting = session
            .outbound()
            .waiting()
            .map(|(topic, qos)| (topic.into(), qos));
        let mut waiting: Vec<Waiting> = waiting.collect();
        waiting.sort_unstable();
        waiting.dedup();
        self.step = Step::Messages(waiting.into_iter(), HashSet::new());
        Progress::Waits
    }
}

/// What a review of the session takes, about.
pub fn review_units(core: &Core, slot: Slot) -> u64 {
    let client = &core.sessions[slot];
    let subscriptions = client.subscription_count() as u64;
    let messages = client.session.outbound().backlog().0 as u64;
    let access = client.access.as_deref();
    let rules = access.map_or(1, ClientAccess::filter_units);
    let of_message = subscriptions / FILTERS_OF_UNIT as u64 + rules;
    subscriptions * (FILTER_UNITS + rules) + messages * of_message
}

/// Drops what waits for a session and comes through none of the subscriptions that it has kept.
fn drop_forbidden(core: &mut Core, slot: Slot, forbidden: &HashSet<Waiting>) {
    let session = &mut core.sessions[slot].session;
    let dropped = session.drop_forbidden(|topic, qos| !forbidden.contains(&(topic.into(), qos)));
    if dropped > 0 && core.may_log() {
        let client_id = core.sessions[slot].session.client_id();
        tracing::info!(
            client_id,
            dropped,
            "messages that waited for this client are dropped: it may not have them any more"
        );
    }
    core.collect(slot);
}
