//! Sessions by page: those that match a filter, in an order.

use std::sync::Arc;

use super::best::{Best, Direction, Wanted};
use super::columns::{ColumnValue, SortKey};
use super::cursor::{Cursor, Listing};
use super::filter::{Matcher, SessionFilter, Subject};
use super::rank::Rank;
use super::row::{SessionRow, row};
use super::sender::QuerySender;
use super::tasks::{TaskProgress, WorkerTask};
use super::{Page, QueryError, page_rows, unsorted};
use crate::traffic::Traffic;
use thrum_engine::ids::Slot;

/// Units of a row that is kept: some allocations.
pub(crate) const ROW_UNITS: u64 = 8;
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
    let answers = sender.walk_all(|| list.for_worker())?;
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
    [query.sort.number(), u8::from(query.is_descending)]
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
        query.filter.check()?;
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

    fn visit(&mut self, traffic: &mut Traffic, slot: Slot, matcher: &Matcher) -> u64 {
        let (subject, units) = Subject::select(traffic, slot, matcher);
        let Some(mut subject) = subject else {
            return units;
        };
        self.matching += 1;
        let value = ColumnValue::of(self.sort, &mut subject);
        let client = subject.client;
        let rank = value.rank(client);
        let units = units + value.units(client);
        let compare = |other: &Rank| rank.compare(other);
        let make = || (rank.to_rank(), row(&mut subject));
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
        let matcher = Matcher::new(&self.filter, &traffic.engine);
        while self.next < end {
            let slot = Slot::new(self.next);
            let units = slot.map_or(1, |slot| self.visit(traffic, slot, &matcher));
            traffic.engine.core.turn.work += units;
            self.next += 1;
            if self.next < end && traffic.engine.core.turn.is_portion_over() {
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
