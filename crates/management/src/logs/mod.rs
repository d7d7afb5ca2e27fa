//! The last events of the log, in memory, and levels that are raised for a time.
//!
//! ```text
//!   subscriber of the program -> Ring (bounded bytes) -> pages
//!                                                     -> followers, each at a place in it
//! ```
//!
//! A follower has no queue: it reads the ring, and one that is slower than the log is told how many
//! events it has missed.

mod levels;
mod ring;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use levels::Levels;
use ring::Ring;
pub(crate) use ring::{LogFilter, LogSlice};

/// Bytes of the events in memory: some thousand lines.
const LOG_BYTES_MAX: usize = 1024 * 1024;
/// Longest text of an event, and of one of its fields; the rest is cut off.
const TEXT_BYTES_MAX: usize = 4096;
/// Most fields of an event.
const FIELDS_MAX: usize = 32;

/// The level of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Data is lost or not available.
    Error,
    /// Something unexpected that the broker has recovered from.
    Warn,
    /// Changes of state.
    Info,
    /// For a search.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// All levels, the most important first.
    pub const ALL: [Self; 5] = [
        Self::Error,
        Self::Warn,
        Self::Info,
        Self::Debug,
        Self::Trace,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    /// The level of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// An event of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEvent {
    /// Milliseconds of the Unix epoch.
    pub at: u64,
    /// Its level.
    pub level: LogLevel,
    /// The part of the program that it is from, such as `thrum_broker::node`.
    pub target: String,
    /// Its text.
    pub text: String,
    /// Its fields.
    pub fields: Vec<(&'static str, String)>,
}

/// The last events, and the levels that are raised.
#[derive(Debug)]
pub struct Logs {
    /// Guards the ring: locked for a copy, and by the log for a push. No worker logs within a
    /// message.
    ring: Mutex<Ring>,
    /// The number of the last event, for those who follow the log.
    last: AtomicU64,
    levels: Mutex<Levels>,
    /// Held while levels are changed and put in force, so that no change undoes another.
    changing: tokio::sync::Mutex<()>,
}

impl Default for Logs {
    fn default() -> Self {
        Self {
            ring: Mutex::new(Ring::new(LOG_BYTES_MAX)),
            last: AtomicU64::new(0),
            levels: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
        }
    }
}

impl Logs {
    /// Keeps an event, and forgets the oldest ones if there is no room.
    pub fn push(&self, mut event: LogEvent) {
        cut(&mut event.text);
        event.fields.truncate(FIELDS_MAX);
        for (_, value) in &mut event.fields {
            cut(value);
        }
        let number = self.ring().push(event);
        self.last.fetch_max(number, Ordering::Release);
    }

    /// A part of the log, the newest event first, before the event of a number if there is one.
    pub(crate) fn before(&self, before: Option<u64>, filter: &LogFilter, limit: usize) -> LogSlice {
        let copied = self.ring().before(before);
        copied.back(filter, limit)
    }

    /// The events after that of a number, the oldest first.
    pub(crate) fn after(&self, after: u64, filter: &LogFilter, limit: usize) -> LogSlice {
        let copied = self.ring().after(after);
        copied.on(after, filter, limit)
    }

    /// The number of the last event.
    pub(crate) fn newest(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// The levels that are raised.
    pub(crate) fn levels(&self) -> MutexGuard<'_, Levels> {
        self.levels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right to change them; who has it may wait.
    pub(crate) async fn change_levels(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.changing.lock().await
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cut(text: &mut String) {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> LogEvent {
        LogEvent {
            at: 5,
            level: LogLevel::Info,
            target: "thrum_broker::node".to_owned(),
            text: text.to_owned(),
            fields: Vec::new(),
        }
    }

    #[test]
    fn an_event_has_a_bounded_size() {
        let logs = Logs::default();
        let long = "\u{fc}".repeat(TEXT_BYTES_MAX);
        logs.push(LogEvent {
            fields: vec![("name", long.clone()); 100],
            ..event(&long)
        });
        let found = logs.after(0, &LogFilter::default(), 10);
        let kept = &found.events[0].event;
        assert!(kept.text.len() < TEXT_BYTES_MAX + 4 && kept.text.ends_with('…'));
        assert_eq!(kept.fields.len(), FIELDS_MAX);
        assert!(
            kept.fields
                .iter()
                .all(|(_, value)| value.len() < TEXT_BYTES_MAX + 4)
        );
    }

    #[test]
    fn followers_are_told_of_events() {
        let logs = Logs::default();
        assert_eq!(logs.newest(), 0);
        logs.push(event("a"));
        assert_eq!(logs.newest(), 1);
    }
}
