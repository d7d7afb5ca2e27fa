//! Subscriptions by page: of all sessions, of one, or to one filter.

use thrum_codec::packet::SubscriptionOptions;

use super::best::{Best, Direction, TextBytes, Wanted};
use super::cursor::{Cursor, Listing};
use super::filter::{Subscribed, check_topic_filter};
use super::rank::{Rank, RankRef, TextRef, text_units};
use super::sender::QuerySender;
use super::tasks::{TaskProgress, WorkerTask};
use super::{Page, QueryError, page_rows};
use crate::traffic::Traffic;
use thrum_engine::Engine;
use thrum_engine::ids::Slot;

/// Subscriptions whose texts are composed in the time of four units.
const SUBSCRIPTIONS_OF_UNITS: usize = 4;

/// A page of subscriptions, by client identifier and then by filter.
#[derive(Clone, Debug, Default)]
pub struct SubscriptionQuery {
    /// Only those of this client.
    pub client_id: Option<String>,
    /// Only those to this filter, in the form of [`SubscriptionRow::filter`].
    pub filter: Option<String>,
    /// Rows at most, up to [`ROWS_MAX`](super::ROWS_MAX).
    pub limit: usize,
    /// The `next` of the page before.
    pub cursor: Option<Cursor>,
}

/// A subscription.
#[derive(Clone, Debug)]
pub struct SubscriptionRow {
    /// Client identifier of its session.
    pub client_id: Box<str>,
    /// The filter with the mount point of the client, and with `$share/GROUP/` if it is shared.
    pub filter: Box<str>,
    /// Subscription options.
    pub options: SubscriptionOptions,
    /// Subscription identifier.
    pub identifier: Option<u32>,
}

impl TextBytes for SubscriptionRow {
    fn text_bytes(&self) -> usize {
        self.client_id.len() + self.filter.len()
    }
}

/// See [`Queries::subscriptions`](super::Queries::subscriptions).
pub(super) fn subscriptions(
    sender: &QuerySender,
    query: &SubscriptionQuery,
) -> Result<Page<SubscriptionRow>, QueryError> {
    if let Some(filter) = &query.filter {
        check_topic_filter(filter)?;
    }
    let after = query.cursor.as_ref();
    let after = after.map(|cursor| cursor.rank(Listing::Subscriptions, &[]));
    let wanted = Wanted {
        direction: Direction::Ascending,
        limit: page_rows(query.limit),
        after: after.transpose()?,
    };
    let list = || ListSubscriptions {
        client_id: query.client_id.clone(),
        filter: query.filter.clone(),
        next: 0,
        end: None,
        best: Best::new(wanted.clone()),
    };
    let mut best = Best::new(wanted.clone());
    for answer in sender.walk_all(list)? {
        best.join(answer);
    }
    let (rows, next) = best.into_page();
    let next = next.map(|rank| Cursor::of_rank(Listing::Subscriptions, &[], &rank));
    Ok(Page { rows, next })
}

/// The subscriptions of the session in a slot.
pub(super) fn of_session(engine: &Engine, slot: Slot) -> impl Iterator<Item = SubscriptionRow> {
    let client_id: Box<str> = engine.core.sessions[slot].session.client_id().into();
    let topics = &engine.router.topics;
    let found = topics.list_subscriptions(&engine.core, slot);
    found.into_iter().map(move |found| SubscriptionRow {
        client_id: client_id.clone(),
        filter: found.filter,
        options: found.terms.options,
        identifier: Some(found.terms.identifier).filter(|identifier| *identifier > 0),
    })
}

/// The iteration of one worker over the subscriptions of its sessions, all of a session at once:
/// their number is limited (`limits.client.subscriptions`).
#[derive(Debug)]
struct ListSubscriptions {
    client_id: Option<String>,
    filter: Option<String>,
    /// The slot that is visited next, unless the query names a client.
    next: usize,
    end: Option<usize>,
    best: Best<Rank, SubscriptionRow>,
}

impl ListSubscriptions {
    /// Visits the next sessions; true after the last one.
    fn walk(&mut self, engine: &mut Engine, subscribed: Option<Subscribed>) -> bool {
        let sessions = &engine.core.sessions;
        let end = *self.end.get_or_insert_with(|| sessions.capacity());
        while self.next < end {
            let slot = Slot::new(self.next);
            let units = slot.map_or(1, |slot| self.visit(engine, slot, subscribed));
            engine.core.turn.work += units;
            self.next += 1;
            if self.next < end && engine.core.turn.is_portion_over() {
                return false;
            }
        }
        true
    }

    fn visit(&mut self, engine: &Engine, slot: Slot, subscribed: Option<Subscribed>) -> u64 {
        let Some(client) = engine.core.sessions.get(slot) else {
            return 1;
        };
        let is_wanted = subscribed.is_none_or(|subscribed| subscribed.is_of(client));
        let client_id = client.session.client_id();
        let name = TextRef::new(client_id);
        let units = 1 + text_units(client_id);
        let after = self.best.wanted().after.as_ref();
        let is_before = after.is_some_and(|after| name < after.name.as_ref());
        let count = client.subscription_count();
        if !is_wanted || is_before || count == 0 {
            return units + (count / SUBSCRIPTIONS_OF_UNITS / SUBSCRIPTIONS_OF_UNITS) as u64;
        }
        for row in of_session(engine, slot) {
            let wanted = self.filter.as_deref();
            if wanted.is_some_and(|filter| filter != &*row.filter) {
                continue;
            }
            let rank = RankRef {
                value: 0,
                name,
                second: TextRef::new(&row.filter),
            };
            let make = || (rank.to_rank(), row.clone());
            self.best.offer(|other| rank.compare(other), make);
        }
        units + SUBSCRIPTIONS_OF_UNITS as u64 * count as u64
    }
}

impl WorkerTask for ListSubscriptions {
    type Answer = Best<Rank, SubscriptionRow>;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<Self::Answer> {
        let engine = &mut traffic.engine;
        let subscribed = self.filter.as_deref();
        let subscribed = subscribed.map(|filter| Subscribed::find(engine, filter));
        if let Some(client_id) = self.client_id.as_deref() {
            let slot = engine.core.sessions.find(client_id);
            let units = slot.map_or(0, |slot| self.visit(engine, slot, subscribed));
            engine.core.turn.work += units;
        } else if !self.walk(engine, subscribed) {
            return TaskProgress::More;
        }
        let wanted = self.best.wanted().clone();
        TaskProgress::Done(std::mem::replace(&mut self.best, Best::new(wanted)))
    }
}
