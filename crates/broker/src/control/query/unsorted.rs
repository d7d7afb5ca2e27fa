//! Sessions by page in no order: a whole listing visits each session once.

use std::sync::Arc;

use thrum_engine::ids::Slot;
use thrum_engine::workers::WorkerId;

use super::best::{PAGE_BYTES_MAX, TextBytes as _};
use super::cursor::{Cursor, Listing};
use super::filter::{Matcher, SessionFilter, Subject};
use super::row::{SessionRow, row};
use super::sender::QuerySender;
use super::sessions::ROW_UNITS;
use super::tasks::{TaskProgress, WorkerTask};
use super::{CursorError, Page, QueryError, SessionPage, SessionQuery, page_rows};
use crate::traffic::Traffic;

/// The session that is visited next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SessionPosition {
    /// Number of its worker.
    worker: u16,
    /// Number of its slot.
    slot: u64,
}

impl SessionPosition {
    /// Where a page begins.
    fn of(query: &SessionQuery) -> Result<Self, CursorError> {
        let cursor = query.cursor.as_ref();
        cursor.map_or_else(|| Ok(Self::default()), Self::read)
    }

    fn read(cursor: &Cursor) -> Result<Self, CursorError> {
        let position = cursor.position(Listing::Unsorted)?;
        let (worker, slot) = position.split_first_chunk().ok_or(CursorError)?;
        let slot = slot.try_into().map_err(|_| CursorError)?;
        Ok(Self {
            worker: u16::from_le_bytes(*worker),
            slot: u64::from_le_bytes(slot),
        })
    }

    fn cursor(self) -> Cursor {
        let position = [&self.worker.to_le_bytes()[..], &self.slot.to_le_bytes()];
        Cursor::new(Listing::Unsorted, &position.concat())
    }
}

/// One page: sessions of one worker. It may be short, or empty, and still have a next one.
pub(super) fn sessions(
    sender: &QuerySender,
    query: &SessionQuery,
) -> Result<SessionPage, QueryError> {
    query.filter.check()?;
    let position = SessionPosition::of(query)?;
    let mut workers = sender.workers().skip(usize::from(position.worker));
    let worker = workers.next().ok_or(CursorError)?;
    let walk = WalkSessions::new(query, position.slot);
    let found = sender.query_worker(worker, || walk.for_worker())?;
    Ok(page(position, found, workers.next()))
}

fn page(
    position: SessionPosition,
    found: SessionsWalked,
    next_worker: Option<WorkerId>,
) -> SessionPage {
    let next = match (found.next, next_worker) {
        (Some(slot), _) => Some(SessionPosition { slot, ..position }),
        (None, Some(_)) => Some(SessionPosition {
            worker: position.worker + 1,
            slot: 0,
        }),
        (None, None) => None,
    };
    SessionPage {
        page: Page {
            rows: found.rows,
            next: next.map(SessionPosition::cursor),
        },
        matching: None,
    }
}

/// The rows of one worker.
#[derive(Debug, Default)]
pub(crate) struct SessionsWalked {
    rows: Vec<SessionRow>,
    /// Bytes of their texts.
    bytes: usize,
    /// The slot that is visited next; none behind the last one.
    next: Option<u64>,
}

/// The iteration of one worker over its sessions, up to a full page.
#[derive(Debug)]
pub(crate) struct WalkSessions {
    filter: Arc<SessionFilter>,
    limit: usize,
    next: u64,
    found: SessionsWalked,
}

impl WalkSessions {
    fn new(query: &SessionQuery, slot: u64) -> Self {
        Self {
            filter: Arc::new(query.filter.clone()),
            limit: page_rows(query.limit),
            next: slot,
            found: SessionsWalked::default(),
        }
    }

    fn for_worker(&self) -> Self {
        Self {
            filter: Arc::clone(&self.filter),
            found: SessionsWalked::default(),
            ..*self
        }
    }

    fn is_full(&self) -> bool {
        self.found.rows.len() >= self.limit || self.found.bytes >= PAGE_BYTES_MAX
    }

    fn visit(&mut self, traffic: &mut Traffic, slot: Slot, matcher: &Matcher) -> u64 {
        let (subject, units) = Subject::select(traffic, slot, matcher);
        let Some(mut subject) = subject else {
            return units;
        };
        let row = row(&mut subject);
        self.found.bytes += row.text_bytes();
        self.found.rows.push(row);
        units + ROW_UNITS
    }
}

impl WorkerTask for WalkSessions {
    type Answer = SessionsWalked;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<SessionsWalked> {
        let end = traffic.engine.core.sessions.capacity() as u64;
        let matcher = Matcher::new(&self.filter, &traffic.engine);
        while self.next < end && !self.is_full() {
            let slot = usize::try_from(self.next).ok().and_then(Slot::new);
            let units = slot.map_or(1, |slot| self.visit(traffic, slot, &matcher));
            traffic.engine.core.turn.work += units;
            self.next += 1;
            if self.next < end && traffic.engine.core.turn.is_portion_over() {
                return TaskProgress::More;
            }
        }
        let mut found = std::mem::take(&mut self.found);
        found.next = (self.next < end).then_some(self.next);
        TaskProgress::Done(found)
    }
}

#[cfg(test)]
pub(super) mod test_pages {
    use super::super::sender::PendingQuery;
    use super::*;

    /// A requested page of the first worker.
    #[derive(Debug)]
    pub(crate) struct PendingUnsortedPage {
        position: SessionPosition,
        pending: PendingQuery<SessionsWalked>,
    }

    impl PendingUnsortedPage {
        pub(in crate::control::query) fn send(
            sender: &QuerySender,
            query: &SessionQuery,
        ) -> Result<Self, QueryError> {
            let position = SessionPosition::of(query)?;
            let walk = WalkSessions::new(query, position.slot);
            let worker = std::iter::once(WorkerId::new(0));
            let pending = sender.send(worker, || walk.for_worker())?;
            Ok(Self { position, pending })
        }

        /// None while the worker has not answered.
        pub(crate) fn page(&mut self) -> Option<SessionPage> {
            let is_answered = self.pending.is_answered();
            let answer = self.pending.take_answers().into_iter().next();
            answer
                .filter(|_| is_answered)
                .map(|found| page(self.position, found, None))
        }
    }

    #[test]
    fn a_position_is_decoded_as_it_was_encoded() {
        let position = SessionPosition {
            worker: 300,
            slot: u64::MAX,
        };
        assert_eq!(SessionPosition::read(&position.cursor()), Ok(position));
        let short = Cursor::new(Listing::Unsorted, &[0; 9]);
        let long = Cursor::new(Listing::Unsorted, &[0; 11]);
        let other = Cursor::new(Listing::Sessions, &[0; 10]);
        for wrong in [short, long, other] {
            assert_eq!(SessionPosition::read(&wrong), Err(CursorError));
        }
    }
}
