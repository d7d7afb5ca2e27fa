//! Review of the subscriptions and the queued messages of one session after a change of its rights,
//! a portion in each turn.
//!
//! Each filter is compared with each rule, and each queued message with each filter: with thousands
//! of them that takes longer than other clients of the worker may wait.

use std::collections::{HashMap, HashSet};
use std::vec;

use thrum_codec::QoS;
use thrum_codec::topic::{self, TopicFilter};

use super::Engine;
use super::core::Core;
use super::subscriber::{Check, SubscriptionEntry};
use super::turn::{FILTER_UNITS, Turn};
use crate::access::{ClientAccess, Grant};
use crate::ids::Slot;
use crate::node::metrics::Counter;
use crate::timeline::{ClientEvent, cut, tell};

/// Number of filters that are compared with a topic in one unit of work.
const FILTERS_OF_UNIT: usize = 8;

/// The topic and the quality of service of a queued message.
type Waiting = (Box<str>, QoS);

/// A review of one session.
#[derive(Debug)]
pub struct Review {
    /// The slot of the session.
    pub slot: Slot,
    /// The number of the session.
    pub id: u64,
    step: Step,
    kept: RemainingFilters,
    /// At least one subscription has ended.
    pub is_revoked: bool,
    /// Whether a client that has lost a subscription is disconnected.
    pub disconnects: bool,
    /// The end of subscriptions was logged.
    is_logged: bool,
}

/// Result of a portion of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The review is complete, or the session has ended.
    Done,
    /// The review continues in a later turn.
    Continues,
    /// The client has to be disconnected, as a subscription has ended; the review continues after
    /// that.
    Disconnect,
}

#[derive(Debug)]
enum Step {
    /// The remaining subscriptions.
    Filters(vec::IntoIter<SubscriptionEntry>),
    /// The remaining messages, and the messages that no subscription matches any more.
    Messages(vec::IntoIter<Waiting>, HashSet<Waiting>),
}

/// The filters of the remaining subscriptions, without `$share/GROUP/`.
#[derive(Debug, Default)]
struct RemainingFilters {
    plain: HashMap<Box<str>, Check>,
    with_wildcards: Vec<(Box<str>, Check)>,
}

impl RemainingFilters {
    fn insert(&mut self, filter: TopicFilter<'_>, check: Check) {
        let text = filter.matched_part();
        if filter.has_wildcard() {
            self.with_wildcards.push((text.into(), check));
        } else {
            // A shared subscription may have the same filter with another check.
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

    /// Whether one of the filters still allows a message.
    fn allows(&self, access: &ClientAccess, message: &Waiting) -> bool {
        let (topic, qos) = message;
        let seen = access.seen(topic);
        let may = |or_allowed| seen.is_some_and(|seen| access.receive(seen, *qos, or_allowed));
        // Each of the two decisions is made at most once.
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
    /// Begins a review of a session with its current rights.
    pub fn new(engine: &Engine, slot: Slot, disconnects: bool) -> Self {
        let subscription = engine.router.topics.list_subscriptions(&engine.core, slot);
        Self {
            slot,
            id: engine.core.sessions[slot].session.id(),
            step: Step::Filters(subscription.into_iter()),
            kept: RemainingFilters::default(),
            is_revoked: false,
            disconnects,
            is_logged: false,
        }
    }

    /// Continues the review until it is complete or its portion of the turn is used up.
    ///
    /// A subscription that the client may no longer have ends, and so does the connection: a client
    /// with MQTT 5.0 is told why, and a client that reconnects finds the remaining subscriptions. A
    /// subscription that is allowed in part is checked from now on, and a queued message that is no
    /// longer allowed is dropped: later it could not be told which subscription it matched.
    pub fn advance(
        &mut self,
        engine: &mut Engine,
        is_over: impl Fn(&mut Turn) -> bool,
    ) -> Progress {
        while engine.core.sessions.is(self.slot, self.id) {
            let progress = self.next(engine);
            if progress != Progress::Continues {
                return progress;
            }
            if is_over(&mut engine.core.turn) {
                return Progress::Continues;
            }
        }
        Progress::Done
    }

    /// Reviews one filter or message.
    fn next(&mut self, engine: &mut Engine) -> Progress {
        match &mut self.step {
            Step::Filters(left) => match left.next() {
                Some(subscription) => self.filter(engine, &subscription),
                None => return self.filters_are_done(&mut engine.core),
            },
            Step::Messages(left, forbidden) => {
                let Some(message) = left.next() else {
                    drop_forbidden(&mut engine.core, self.slot, forbidden);
                    return Progress::Done;
                };
                let core = &mut engine.core;
                let Some(access) = core.sessions[self.slot].access.as_deref() else {
                    return Progress::Continues;
                };
                core.turn.work += self.kept.units() + access.filter_units();
                if !self.kept.allows(access, &message) {
                    forbidden.insert(message);
                }
            }
        }
        Progress::Continues
    }

    fn filter(&mut self, engine: &mut Engine, subscription: &SubscriptionEntry) {
        let slot = self.slot;
        engine.core.turn.work += FILTER_UNITS;
        let Ok(filter) = TopicFilter::parse(&subscription.filter) else {
            return;
        };
        let is_shared = filter.shared().is_some();
        let whole = filter.matched_part();
        let access = engine.core.sessions[slot].access.as_deref();
        engine.core.turn.work += access.map_or(0, ClientAccess::filter_units);
        let seen = access.map_or(Some(whole), |access| access.seen(whole));
        // The mount point has changed, so that the filter matches no message.
        let Some(seen) = seen else { return };
        let client = &engine.core.sessions[slot];
        let policy = &engine.core.settings.access.access.policy;
        let granted = client.grant(seen, subscription.terms.options.qos, engine.core.turn.now);
        let check = match granted.as_given(is_shared, policy) {
            // The earlier answer of the gatekeeper about the subscription stays valid.
            Grant::Ask => engine.router.topics.check_of(slot, filter),
            Grant::Whole => Check::Never,
            Grant::Checked { or_allowed } => Check::each(or_allowed),
            Grant::Refused => {
                self.is_revoked = true;
                engine.core.row().add(Counter::SubscriptionsRevoked, 1);
                let event = || ClientEvent::SubscriptionRevoked {
                    filter: cut(filter.as_str()).into(),
                };
                tell(&mut engine.core, slot, event);
                engine.subscribing().unsubscribe(slot, filter);
                return;
            }
        };
        engine.router.topics.set_check(slot, filter, check);
        self.kept.insert(filter, check);
    }

    /// Continues with the queued messages after the last subscription.
    fn filters_are_done(&mut self, core: &mut Core) -> Progress {
        let slot = self.slot;
        if self.is_revoked && !self.is_logged {
            self.is_logged = true;
            if core.may_log() {
                let client_id = core.sessions[slot].session.client_id();
                tracing::info!(
                    client_id,
                    "subscriptions ended: the rules do not allow them any more"
                );
            }
            if self.disconnects {
                // The client is disconnected first, so that messages of shared groups are sent to
                // other members.
                return Progress::Disconnect;
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
        Progress::Continues
    }
}

/// Estimates the units of work of a review of a session.
pub fn review_units(core: &Core, slot: Slot) -> u64 {
    let client = &core.sessions[slot];
    let subscriptions = client.subscription_count() as u64;
    let messages = client.session.outbound().backlog().0 as u64;
    let access = client.access.as_deref();
    let rules = access.map_or(1, ClientAccess::filter_units);
    let of_message = subscriptions / FILTERS_OF_UNIT as u64 + rules;
    subscriptions * (FILTER_UNITS + rules) + messages * of_message
}

/// Drops the queued messages of a session that none of its subscriptions allows.
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
