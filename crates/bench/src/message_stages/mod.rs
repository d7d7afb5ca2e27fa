//! Stages of messages inside a broker that stamps them: thrum publishes their durations as
//! `$SYS/broker/stages`. The difference between two readings is that of the time between them.

mod connection;
mod reading;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use thrum_load::plan::Plan;
use thrum_report::result::MessageStages;

use crate::clock;
use crate::run::Target;
use connection::{Login, StageConnection};
use reading::StageReading;

/// The broker publishes each second what has changed; after this time its last reading is up to
/// date.
const READING_NS: u64 = 1_300_000_000;
/// Interval of checks for a new reading.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The readings of a broker that stamps messages, which a thread of its own takes.
#[derive(Debug)]
pub(crate) struct StageFeed {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    readings: Mutex<Readings>,
    ends: AtomicBool,
    /// The connection was lost: the broker may have been restarted, and counts from 0.
    is_lost: AtomicBool,
}

#[derive(Debug, Default)]
struct Readings {
    newest: Option<Taken>,
    begin: Begin,
}

/// The reading from which on the stages count.
#[derive(Debug, Default)]
enum Begin {
    #[default]
    NotYet,
    /// The next one to arrive.
    Next,
    At(Arc<str>),
}

/// A reading, and when it arrived.
#[derive(Clone, Debug)]
struct Taken {
    at_ns: u64,
    text: Arc<str>,
}

impl StageFeed {
    /// Connects to the broker; none if it does not stamp messages, or cannot be asked.
    pub(crate) fn open(target: &Target, plan: &Plan) -> Option<Self> {
        plan.scenario.groups.first()?;
        let login = Login::new(plan);
        let (mut connection, first) = StageConnection::open(target, &login)?;
        let shared = Arc::new(Shared::default());
        shared.put(first);
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("bench-stages".to_owned());
        let thread = thread.spawn(move || {
            if of_thread.take_all(&mut connection).is_err() {
                of_thread.is_lost.store(true, Ordering::Relaxed);
            } else {
                connection.close();
            }
        });
        Some(Self {
            shared,
            thread: Some(thread.ok()?),
        })
    }

    /// The hold begins. The stages count from the next reading on, as the one before it may lack
    /// the last second of the warm-up; without a warm-up, it lacks nothing.
    pub(crate) fn begin_hold(&self, has_warm_up: bool) {
        self.shared.readings().begin_hold(has_warm_up);
    }

    /// Waits until all messages so far are in the readings, and returns the stages since the first
    /// reading of the hold; none if the broker was restarted meanwhile.
    pub(crate) fn finish(mut self) -> Option<MessageStages> {
        let asked_ns = clock::monotonic_ns();
        while clock::monotonic_ns() < asked_ns + READING_NS
            && !self.shared.is_lost.load(Ordering::Relaxed)
            && self
                .shared
                .readings()
                .newest
                .as_ref()
                .is_none_or(|taken| taken.at_ns < asked_ns)
        {
            clock::rest(LOOK_INTERVAL);
        }
        self.stop();
        if self.shared.is_lost.load(Ordering::Relaxed) {
            return None;
        }
        let (first, last) = self.shared.readings().of_hold()?;
        StageReading::parse(&last)?.since(&StageReading::parse(&first)?)
    }

    fn stop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has no further reading.
            thread.join().ok();
        }
    }
}

impl Drop for StageFeed {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// Takes the readings of the broker until the end.
    fn take_all(&self, connection: &mut StageConnection) -> io::Result<()> {
        while !self.ends.load(Ordering::Relaxed) {
            if let Some(text) = connection.next_text()? {
                self.put(text);
            }
        }
        Ok(())
    }

    fn put(&self, text: String) {
        let taken = Taken {
            at_ns: clock::monotonic_ns(),
            text: text.into(),
        };
        self.readings().put(taken);
    }

    fn readings(&self) -> MutexGuard<'_, Readings> {
        let readings = self.readings.lock();
        readings.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Readings {
    fn put(&mut self, taken: Taken) {
        if matches!(self.begin, Begin::Next) {
            self.begin = Begin::At(Arc::clone(&taken.text));
        }
        self.newest = Some(taken);
    }

    fn begin_hold(&mut self, has_warm_up: bool) {
        self.begin = match &self.newest {
            Some(newest) if !has_warm_up => Begin::At(Arc::clone(&newest.text)),
            _ => Begin::Next,
        };
    }

    /// The first and the last reading of the hold; none if no reading arrived in it.
    fn of_hold(&self) -> Option<(Arc<str>, Arc<str>)> {
        match (&self.begin, &self.newest) {
            (Begin::At(begin), Some(newest)) => Some((Arc::clone(begin), Arc::clone(&newest.text))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What counts of readings before and in the hold.
    fn of_hold(before: &[&str], has_warm_up: bool, after: &[&str]) -> Option<[String; 2]> {
        let mut readings = Readings::default();
        let taken = |text: &&str| Taken {
            at_ns: 0,
            text: (**text).into(),
        };
        before.iter().map(taken).for_each(|one| readings.put(one));
        readings.begin_hold(has_warm_up);
        after.iter().map(taken).for_each(|one| readings.put(one));
        let (first, last) = readings.of_hold()?;
        Some([first.to_string(), last.to_string()])
    }

    #[test]
    fn stages_count_from_the_first_reading_of_the_hold() {
        let counted = of_hold(&["idle", "warm-up"], true, &["1 s", "2 s", "end"]).unwrap();
        assert_eq!(counted, ["1 s", "end"]);
        assert_eq!(of_hold(&["idle", "warm-up"], true, &[]), None);
    }

    #[test]
    fn without_a_warm_up_no_message_of_the_hold_is_left_out() {
        let counted = of_hold(&["idle"], false, &["1 s", "end"]).unwrap();
        assert_eq!(counted, ["idle", "end"]);
    }
}
