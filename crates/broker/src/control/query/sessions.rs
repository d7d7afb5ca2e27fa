//! Sessions by page: those that match a filter, in an order.

use std::sync::Arc;

use thrum_access::Network;
use thrum_codec::{TopicFilter, Version};
use thrum_protocol::server::GroupId;
use thrum_routing::FilterId;

use super::best::{Best, Direction, Wanted};
use super::cursor::{Cursor, Listing};
use super::rank::{Rank, RankRef, TextRef, text_units};
use super::row::{SessionRow, address_of, row};
use super::sender::QuerySender;
use super::tasks::{TaskProgress, WorkerTask};
use super::wildcard::WildcardText;
use super::{Page, QueryError, page_rows, unsorted};
use crate::edge::Edge;
use crate::traffic::Traffic;
use thrum_engine::Engine;
use thrum_engine::client::Client;
use thrum_engine::ids::Slot;

/// Units of a row that is kept: some allocations.
pub(crate) const ROW_UNITS: u64 = 8;
/// Bytes of a text, or numbers of a list, that are compared in the time of a unit.
const COMPARED_OF_UNIT: usize = 64;
/// Longest pattern of a client identifier in bytes. Its comparison costs the product of both
/// lengths.
const PATTERN_BYTES_MAX: usize = 1024;

/// Selects the sessions that match every field that is set.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Client identifier.
    pub client_id: Option<WildcardText>,
    /// The whole user name.
    pub user: Option<String>,
    /// Network of the client's connection, or of the last one, if it is known.
    pub network: Option<Network>,
    /// Connected or not.
    pub is_connected: Option<bool>,
    /// A filter that the session has subscribed to, as the client wrote it (behind its mount
    /// point), with `$share/GROUP/` if it is shared.
    pub subscribed: Option<String>,
    /// Protocol version of the connection, or of the last one.
    pub version: Option<Version>,
}

/// The order of sessions; those with the same figure are sorted by client identifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum SortKey {
    /// Client identifier.
    #[default]
    ClientId,
    /// Begin of the connection; disconnected clients follow all others.
    ConnectedSince,
    /// Messages in the queue.
    QueuedMessages,
    /// Their bytes.
    QueuedBytes,
    /// Subscriptions.
    Subscriptions,
    /// Messages received on the connection, or the last one.
    MessagesReceived,
    /// Messages sent on the connection, or the last one.
    MessagesSent,
    /// No order. A whole listing visits each session once; with an order each page does.
    Unsorted,
}

/// A request for a page of sessions.
#[derive(Clone, Debug, Default)]
pub struct SessionQuery {
    /// The sessions to list.
    pub filter: SessionFilter,
    /// The sort order.
    pub sort: SortKey,
    /// The order is from the highest to the lowest.
    pub is_descending: bool,
    /// Rows at most, up to [`ROWS_MAX`](super::ROWS_MAX).
    pub limit: usize,
    /// The `next` of the page before, which must have the same order.
    pub cursor: Option<Cursor>,
}

/// A page of sessions.
#[derive(Clone, Debug)]
pub struct SessionPage {
    /// The rows.
    pub page: Page<SessionRow>,
    /// Sessions that match the filter, on all pages together; none without an order.
    pub matching: Option<u64>,
}

/// See [`Queries::sessions`](super::Queries::sessions).
pub(super) fn sessions(
    sender: &QuerySender,
    query: &SessionQuery,
) -> Result<SessionPage, QueryError> {
    if query.sort == SortKey::Unsorted {
        return unsorted::sessions(sender, query);
    }
    let list = ListSessions::new(query)?;
    let wanted = list.wanted();
    let answers = sender.query_all(|| list.for_worker())?;
    Ok(merged(query, wanted, answers))
}

pub(super) fn merged(
    query: &SessionQuery,
    wanted: Wanted<Rank>,
    answers: Vec<SessionsFound>,
) -> SessionPage {
    let mut best = Best::new(wanted);
    let mut matching = 0;
    for answer in answers {
        matching += answer.matching;
        best.join(answer.best);
    }
    let (rows, next) = best.into_page();
    let order = order(query);
    let next = next.map(|rank| Cursor::of_rank(Listing::Sessions, &order, &rank));
    SessionPage {
        page: Page { rows, next },
        matching: Some(matching),
    }
}

/// The order, as a cursor contains it.
fn order(query: &SessionQuery) -> [u8; 2] {
    [query.sort as u8, u8::from(query.is_descending)]
}

/// The rows of one worker.
#[derive(Debug)]
pub(crate) struct SessionsFound {
    best: Best<Rank, SessionRow>,
    matching: u64,
}

/// The iteration of one worker over its sessions.
#[derive(Debug)]
pub(crate) struct ListSessions {
    filter: Arc<SessionFilter>,
    sort: SortKey,
    /// The slot that is visited next.
    next: usize,
    /// The number of slots at the begin: later sessions need not be listed.
    end: Option<usize>,
    best: Best<Rank, SessionRow>,
    matching: u64,
}

impl ListSessions {
    pub(super) fn new(query: &SessionQuery) -> Result<Self, QueryError> {
        let order = order(query);
        let after = query.cursor.as_ref();
        let after = after.map(|cursor| cursor.rank(Listing::Sessions, &order));
        let wanted = Wanted {
            direction: Direction::of(query.is_descending),
            limit: page_rows(query.limit),
            after: after.transpose()?,
        };
        check(&query.filter)?;
        Ok(Self {
            filter: Arc::new(query.filter.clone()),
            sort: query.sort,
            next: 0,
            end: None,
            best: Best::new(wanted),
            matching: 0,
        })
    }

    /// The requested rows.
    pub(super) fn wanted(&self) -> Wanted<Rank> {
        self.best.wanted().clone()
    }

    /// The same task for another worker.
    pub(super) fn for_worker(&self) -> Self {
        Self {
            filter: Arc::clone(&self.filter),
            sort: self.sort,
            next: 0,
            end: None,
            best: Best::new(self.best.wanted().clone()),
            matching: 0,
        }
    }

    fn visit(
        &mut self,
        edge: &mut Edge,
        engine: &Engine,
        slot: Slot,
        wanted: Option<Subscribed>,
    ) -> u64 {
        let Some(client) = engine.core.sessions.get(slot) else {
            return 1;
        };
        let (is_match, units) = matches(&self.filter, wanted, edge, client);
        if !is_match {
            return units;
        }
        self.matching += 1;
        let rank = RankRef {
            value: value(self.sort, client),
            name: TextRef::new(client.session.client_id()),
            second: TextRef::new(""),
        };
        let units = units + text_units(client.session.client_id());
        let compare = |other: &Rank| rank.compare(other);
        let make = || (rank.to_rank(), row(edge, engine, client));
        if self.best.offer(compare, make) {
            units + ROW_UNITS
        } else {
            units
        }
    }
}

impl WorkerTask for ListSessions {
    type Answer = SessionsFound;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<SessionsFound> {
        let sessions = &traffic.engine.core.sessions;
        let end = *self.end.get_or_insert_with(|| sessions.capacity());
        let subscribed = self.filter.subscribed.as_deref();
        // The numbers of filters may change between two portions.
        let subscribed = subscribed.map(|filter| Subscribed::find(&traffic.engine, filter));
        while self.next < end {
            let Traffic { edge, engine, .. } = traffic;
            let slot = Slot::new(self.next);
            let units = slot.map_or(1, |slot| self.visit(edge, engine, slot, subscribed));
            engine.core.turn.work += units;
            self.next += 1;
            if self.next < end && engine.core.turn.is_portion_over() {
                return TaskProgress::More;
            }
        }
        let wanted = self.best.wanted().clone();
        TaskProgress::Done(SessionsFound {
            best: std::mem::replace(&mut self.best, Best::new(wanted)),
            matching: self.matching,
        })
    }
}

/// Refuses a filter that is invalid or too long.
pub(super) fn check(filter: &SessionFilter) -> Result<(), QueryError> {
    let pattern = filter.client_id.as_ref().map_or(0, WildcardText::len);
    if pattern > PATTERN_BYTES_MAX {
        let what = format!("a pattern of client identifiers has at most {PATTERN_BYTES_MAX} bytes");
        return Err(QueryError::Invalid(what));
    }
    let subscribed = filter.subscribed.as_deref();
    subscribed.map_or(Ok(()), check_filter)
}

/// Refuses an invalid topic filter.
pub(super) fn check_filter(text: &str) -> Result<(), QueryError> {
    let parsed = TopicFilter::parse(text).map(|_| ());
    parsed.map_err(|_| QueryError::Invalid(format!("{text:?} is no topic filter")))
}

/// A subscription as one worker identifies it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subscribed {
    Filter(FilterId),
    Group(GroupId),
    /// No session of this worker has it.
    None,
}

impl Subscribed {
    pub(super) fn find(engine: &Engine, filter: &str) -> Self {
        let Ok(parsed) = TopicFilter::parse(filter) else {
            return Self::None;
        };
        let found = match parsed.shared() {
            Some(shared) => engine
                .core
                .node
                .interest
                .find_group(shared)
                .map(Self::Group),
            None => engine.router.topics.find(filter).map(Self::Filter),
        };
        found.unwrap_or(Self::None)
    }

    pub(super) fn is_of(self, client: &Client) -> bool {
        match self {
            Self::Filter(filter) => client.subscriptions.contains(&filter),
            Self::Group(group) => client.groups().contains(&group),
            Self::None => false,
        }
    }
}

/// Whether a session matches the filter, and the units of the comparison.
pub(super) fn matches(
    filter: &SessionFilter,
    subscribed: Option<Subscribed>,
    edge: &Edge,
    client: &Client,
) -> (bool, u64) {
    let session = &client.session;
    let mut units = 1;
    let is_wanted = filter
        .is_connected
        .is_none_or(|wanted| wanted == client.connection.is_some())
        && filter
            .version
            .is_none_or(|version| version == session.link().version())
        && filter
            .user
            .as_deref()
            .is_none_or(|user| client.owner().user() == Some(user))
        && filter.network.is_none_or(|network| {
            address_of(edge, client).is_some_and(|address| network.contains(address))
        });
    let is_named = |pattern: &WildcardText| {
        let compared = pattern.len() * session.client_id().len();
        units += (compared / COMPARED_OF_UNIT / COMPARED_OF_UNIT) as u64;
        pattern.matches(session.client_id())
    };
    if !is_wanted || !filter.client_id.as_ref().is_none_or(is_named) {
        return (false, units);
    }
    let Some(subscribed) = subscribed else {
        return (true, units);
    };
    units += (client.subscription_count() / COMPARED_OF_UNIT) as u64;
    (subscribed.is_of(client), units)
}

fn value(sort: SortKey, client: &Client) -> u64 {
    let session = &client.session;
    let traffic = session.link().traffic();
    let (messages, bytes, _) = session.outbound().backlog();
    match sort {
        SortKey::ClientId | SortKey::Unsorted => 0,
        SortKey::ConnectedSince if client.connection.is_none() => u64::MAX,
        SortKey::ConnectedSince => traffic.began().as_millis(),
        SortKey::QueuedMessages => messages as u64,
        SortKey::QueuedBytes => bytes as u64,
        SortKey::Subscriptions => client.subscription_count() as u64,
        SortKey::MessagesReceived => traffic.received.into(),
        SortKey::MessagesSent => traffic.sent.into(),
    }
}
