//! Stages of messages inside a broker that stamps them: thrum publishes their durations as
//! `$SYS/broker/stages`. The difference between two readings is that of the time between them.

mod connection;
mod reading;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use thrum_load::scenario::Scenario;
use thrum_report::result::MessageStages;

use crate::clock;
use crate::run::Target;
pub(crate) use connection::Login;
use connection::StageConnection;
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
    /// The reading before the hold.
    begin: Option<Taken>,
}

#[derive(Debug, Default)]
struct Shared {
    newest: Mutex<Option<Taken>>,
    ends: AtomicBool,
    /// The connection was lost: the broker may have been restarted, and counts from 0.
    is_lost: AtomicBool,
}

/// A reading, and when it arrived.
#[derive(Clone, Debug)]
struct Taken {
    at_ns: u64,
    text: Arc<str>,
}

impl StageFeed {
    /// Connects to the broker; none if it does not stamp messages, or cannot be asked.
    pub(crate) fn open(target: &Target, scenario: &Scenario) -> Option<Self> {
        let first = &scenario.groups.first()?.client;
        let login = Login {
            username: first.username.as_deref(),
            password: first.password.as_deref(),
        };
        let (mut connection, first) = StageConnection::open(target, login)?;
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
            begin: None,
        })
    }

    /// The hold begins.
    pub(crate) fn begin_hold(&mut self) {
        self.begin = self.shared.newest();
    }

    /// Waits until all messages so far are in the readings, and returns the stages since the
    /// beginning of the hold; none if the broker was restarted meanwhile.
    pub(crate) fn finish(mut self) -> Option<MessageStages> {
        let asked_ns = clock::monotonic_ns();
        while clock::monotonic_ns() < asked_ns + READING_NS
            && !self.shared.is_lost.load(Ordering::Relaxed)
            && self
                .shared
                .newest()
                .is_none_or(|taken| taken.at_ns < asked_ns)
        {
            clock::rest(LOOK_INTERVAL);
        }
        self.stop();
        if self.shared.is_lost.load(Ordering::Relaxed) {
            return None;
        }
        let (begin, end) = (self.begin.as_ref()?, self.shared.newest()?);
        let (first, last) = (
            StageReading::parse(&begin.text)?,
            StageReading::parse(&end.text)?,
        );
        last.since(&first)
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
        let newest = self.newest.lock();
        *newest.unwrap_or_else(PoisonError::into_inner) = Some(taken);
    }

    fn newest(&self) -> Option<Taken> {
        let newest = self.newest.lock();
        newest.unwrap_or_else(PoisonError::into_inner).clone()
    }
}
