//! Alarms: conditions that somebody has to do something about.
//!
//! ```text
//!   figures of the broker (seen) -> rules -> readings -> board: raised, cleared, history
//! ```
//!
//! The rules are pure: figures, thresholds and the time are arguments. Somebody has to call
//! [`Alarms::look`] from time to time; in between nothing is done.

mod affected;
mod board;
mod name;
mod rules;
mod seen;
mod traffic;

use std::sync::{Mutex, MutexGuard, PoisonError};

use thrum_broker::Queries;
use thrum_broker::config::AlarmsConfig;

use crate::clock::Clock;
use affected::affected;
use board::Board;
pub(crate) use board::{Past, Standing};
use seen::{Observer, Read, Seen};

/// The alarms of a broker.
#[derive(Debug)]
pub struct Alarms {
    clock: Clock,
    /// Guards what is seen from one look to the next, and the alarms; no look waits in it for a
    /// worker.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    observer: Observer,
    board: Board,
}

/// What a look needs to know beside the figures of the broker.
#[derive(Clone, Debug)]
pub struct Outside<'a> {
    /// The thresholds.
    pub thresholds: &'a AlarmsConfig,
    /// `limits.connections`.
    pub connections_max: u64,
    /// Free bytes on the disk of the data directory; none without one.
    pub disk_free: Option<u64>,
    /// Why the last reload failed.
    pub reload_failure: Option<String>,
    /// Why the audit log cannot be written.
    pub audit_failure: Option<String>,
}

impl Default for Alarms {
    fn default() -> Self {
        Self {
            clock: Clock::start(),
            state: Mutex::default(),
        }
    }
}

impl Alarms {
    /// Looks at the figures, raises and clears alarms, and logs which.
    pub fn look(&self, queries: &Queries, outside: &Outside<'_>) {
        let now = self.clock.now();
        let counts_queues = self.state().observer.counts_queues(now, outside.thresholds);
        // Asks the workers, and so is outside of the lock.
        let full_queues = counts_queues.then(|| affected(queries));
        let read = Read {
            figures: queries.figures(),
            listeners: queries.listeners(),
            full_queues: full_queues.flatten(),
        };
        let mut state = self.state();
        let seen: Seen = state.observer.see(now, &read, outside);
        let readings = rules::readings(&seen, outside.thresholds);
        for change in state.board.update(now, readings) {
            change.log();
        }
    }

    /// The alarms that are raised, the most severe first.
    pub(crate) fn standing(&self) -> Vec<Standing> {
        self.state().board.standing()
    }

    /// Alarms that were cleared, the newest first, before that number if there is one.
    pub(crate) fn past(&self, before: Option<u64>, limit: usize) -> Vec<Past> {
        self.state().board.past(before, limit)
    }

    /// How many of each name are raised.
    pub(crate) fn counts(&self) -> Vec<(&'static str, u64)> {
        self.state().board.counts()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
