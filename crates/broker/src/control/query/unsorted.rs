//! Sessions by page in no order: a whole listing looks at each session once.

use std::sync::Arc;

use thrum_engine::ids::Slot;
use thrum_engine::workers::WorkerId;

use super::ask::Asker;
use super::best::{PAGE_BYTES_MAX, TextBytes as _};
use super::cursor::{Cursor, Listing};
use super::questions::{Progress, Work};
use super::row::{SessionRow, row};
use super::sessions::{ROW_UNITS, Subscribed, check, matches};
use super::{CursorError, Page, QueryError, SessionFilter, SessionPage, SessionQuery, page_rows};
use crate::traffic::Traffic;

/// The session that is looked at next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    /// Number of its worker.
    worker: u16,
    /// Number of its slot.
    slot: u64,
}

impl Place {
    fn read(cursor: &Cursor) -> Result<Self, CursorError> {
        let place = cursor.place(Listing::Unsorted)?;
        let (worker, slot) = place.split_first_chunk().ok_or(CursorError)?;
        let slot = slot.try_into().map_err(|_| CursorError)?;
        Ok(Self {
            worker: u16::from_le_bytes(*worker),
            slot: u64::from_le_bytes(slot),
        })
    }

    fn cursor(self) -> Cursor {
        let place = [&self.worker.to_le_bytes()[..], &self.slot.to_le_bytes()];
        Cursor::new(Listing::Unsorted, &place.concat())
    }
}

/// One page: sessions of one worker. It may be short, or empty, and still have a next one.
pub(super) fn sessions(asker: &Asker, query: &SessionQuery) -> Result<SessionPage, QueryError> {
    check(&query.filter)?;
    let place = query.cursor.as_ref().map(Place::read).transpose()?;
    let place = place.unwrap_or_default();
    let mut workers = asker.workers().skip(usize::from(place.worker));
    let worker = workers.next().ok_or(CursorError)?;
    let question = WalkSessions::new(query, place.slot);
    let found = asker.ask_worker(worker, || question.begun())?;
    Ok(page(place, found, workers.next()))
}

fn page(place: Place, found: SessionsWalked, next_worker: Option<WorkerId>) -> SessionPage {
    let next = match (found.next, next_worker) {
        (Some(slot), _) => Some(Place { slot, ..place }),
        (None, Some(_)) => Some(Place {
            worker: place.worker + 1,
            slot: 0,
        }),
        (None, None) => None,
    };
    SessionPage {
        page: Page {
            rows: found.rows,
            next: next.map(Place::cursor),
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
    /// The slot that is looked at next; none behind the last one.
    next: Option<u64>,
}

/// The walk of one worker over its sessions, up to a full page.
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

    fn begun(&self) -> Self {
        Self {
            filter: Arc::clone(&self.filter),
            found: SessionsWalked::default(),
            ..*self
        }
    }

    fn is_full(&self) -> bool {
        self.found.rows.len() >= self.limit || self.found.bytes >= PAGE_BYTES_MAX
    }

    fn look(&mut self, traffic: &mut Traffic, slot: Slot, wanted: Option<Subscribed>) -> u64 {
        let Traffic { edge, engine, .. } = traffic;
        let Some(client) = engine.core.sessions.get(slot) else {
            return 1;
        };
        let (is_match, units) = matches(&self.filter, wanted, edge, client);
        if !is_match {
            return units;
        }
        let row = row(edge, engine, client);
        self.found.bytes += row.text_bytes();
        self.found.rows.push(row);
        units + ROW_UNITS
    }
}

impl Work for WalkSessions {
    type Answer = SessionsWalked;

    fn go_on(&mut self, traffic: &mut Traffic) -> Progress<SessionsWalked> {
        let end = traffic.engine.core.sessions.capacity() as u64;
        let subscribed = self.filter.subscribed.as_deref();
        // Filters get other numbers between two portions.
        let subscribed = subscribed.map(|filter| Subscribed::find(&traffic.engine, filter));
        while self.next < end && !self.is_full() {
            let slot = usize::try_from(self.next).ok().and_then(Slot::new);
            let units = slot.map_or(1, |slot| self.look(traffic, slot, subscribed));
            traffic.engine.core.turn.work += units;
            self.next += 1;
            if self.next < end && traffic.engine.core.turn.is_portion_over() {
                return Progress::More;
            }
        }
        let mut found = std::mem::take(&mut self.found);
        found.next = (self.next < end).then_some(self.next);
        Progress::Done(found)
    }
}

#[cfg(test)]
pub(super) mod test_pages {
    use super::super::ask::Asking;
    use super::*;

    /// A page of the first worker that was asked for.
    #[derive(Debug)]
    pub(crate) struct AskedUnsorted {
        place: Place,
        asking: Asking<SessionsWalked>,
    }

    impl AskedUnsorted {
        pub(in crate::control::query) fn begin(
            asker: &Asker,
            query: &SessionQuery,
        ) -> Result<Self, QueryError> {
            let place = query.cursor.as_ref().map(Place::read).transpose()?;
            let place = place.unwrap_or_default();
            let question = WalkSessions::new(query, place.slot);
            let worker = std::iter::once(WorkerId::new(0));
            let asking = asker.begin(worker, || question.begun())?;
            Ok(Self { place, asking })
        }

        /// None while the worker has not answered.
        pub(crate) fn page(&mut self) -> Option<SessionPage> {
            let is_answered = self.asking.is_answered();
            let answer = self.asking.take_answers().into_iter().next();
            answer
                .filter(|_| is_answered)
                .map(|found| page(self.place, found, None))
        }
    }

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let place = Place {
            worker: 300,
            slot: u64::MAX,
        };
        assert_eq!(Place::read(&place.cursor()), Ok(place));
        let short = Cursor::new(Listing::Unsorted, &[0; 9]);
        let long = Cursor::new(Listing::Unsorted, &[0; 11]);
        let other = Cursor::new(Listing::Sessions, &[0; 10]);
        for wrong in [short, long, other] {
            assert_eq!(Place::read(&wrong), Err(CursorError));
        }
    }
}
