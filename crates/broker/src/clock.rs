//! The one place of the broker that reads the clock.

#[cfg(test)]
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use thrum_protocol::Time;
use thrum_storage::{ClockNote, Recovered};

/// Counts milliseconds: from what the wall clock shows at the start of the node, or on a node with
/// storage from where the log's time has got to; from there on time only goes forward, whatever
/// happens to the wall clock.
#[derive(Debug)]
pub(crate) struct Clock {
    /// What it showed at the start of the node.
    started: Duration,
    source: Source,
    /// Milliseconds by which the wall clock is ahead: it may have been set since, as on a device
    /// that has no clock of its own, and ours stands still while the machine sleeps.
    wall_ahead: AtomicI64,
    /// [`Clock::wall_ahead`] and the moment of the last note, to be compared without a lock.
    noted_ahead: AtomicI64,
    noted_at: AtomicU64,
    /// Guards the last note, which the next one follows; taken when one is written.
    noted: Mutex<Option<ClockNote>>,
}

#[derive(Debug)]
enum Source {
    /// The monotonic clock of the system, and what it showed at the start of the node.
    System(Instant),
    /// Milliseconds since the Unix epoch, as a test sets them, and what they were at the start of
    /// the node.
    #[cfg(test)]
    Manual(Arc<AtomicU64>, u64),
}

impl Clock {
    /// A clock that starts now.
    #[expect(
        clippy::disallowed_methods,
        reason = "this module is where the clock is read"
    )]
    pub(crate) fn start() -> Self {
        Self::new(wall(), Source::System(Instant::now()))
    }

    /// A clock that a test moves, in milliseconds, and whose wall clock is ahead of that.
    #[cfg(test)]
    pub(crate) fn manual(millis: &Arc<AtomicU64>, wall_ahead: i64) -> Self {
        let started = millis.load(Ordering::Relaxed);
        let source = Source::Manual(Arc::clone(millis), started);
        let wall = started.saturating_add_signed(wall_ahead);
        Self::new(Duration::from_millis(wall), source)
    }

    fn new(started: Duration, source: Source) -> Self {
        Self {
            started,
            source,
            wall_ahead: AtomicI64::new(0),
            noted_ahead: AtomicI64::new(i64::MAX),
            noted_at: AtomicU64::new(0),
            noted: Mutex::default(),
        }
    }

    /// Goes on from the log's time: what is stored counts from it. To be called at the start.
    pub(crate) fn go_on(&mut self, recovered: &Recovered) {
        let wall = millis_of(self.started);
        self.started = Duration::from_millis(recovered.log_time(wall));
        let ahead = recovered.wall_ahead(wall);
        self.wall_ahead.store(ahead, Ordering::Relaxed);
        if let Some(note) = recovered.clock {
            let noted = signed(note.wall).saturating_sub(signed(note.at));
            self.noted_ahead.store(noted, Ordering::Relaxed);
            self.noted_at.store(note.at, Ordering::Relaxed);
        }
        self.noted = Mutex::new(recovered.clock);
    }

    /// Time since the start of the node.
    pub(crate) fn elapsed(&self) -> Duration {
        match &self.source {
            Source::System(started) => started.elapsed(),
            #[cfg(test)]
            Source::Manual(millis, started) => {
                Duration::from_millis(millis.load(Ordering::Relaxed).saturating_sub(*started))
            }
        }
    }

    /// The present moment. One `clock_gettime` in user space.
    pub(crate) fn now(&self) -> Time {
        to_time(self.started + self.elapsed())
    }

    /// Looks at the wall clock, which ends of tokens, bans and certificates are written by; to be
    /// called now and then. Seconds by which it is ahead of ours.
    pub(crate) fn look_at_wall(&self) -> i64 {
        self.read_ahead() / 1000
    }

    /// What is to be written down about the wall clock with the changes of a turn: nothing, unless
    /// it was set since the last note, or that is an hour old. Two readings of the clock.
    pub(crate) fn note_if_due(&self, now: Time) -> Option<ClockNote> {
        let ahead = self.read_ahead();
        let since = self.noted_at.load(Ordering::Relaxed);
        let moved = ahead.abs_diff(self.noted_ahead.load(Ordering::Relaxed));
        let is_recent = now.as_millis().saturating_sub(since) < ClockNote::INTERVAL_MILLIS;
        if moved < ClockNote::TRIMMED_MILLIS && is_recent {
            return None;
        }
        Some(self.note(now))
    }

    /// What the wall clock shows now, to be written down.
    pub(crate) fn note(&self, now: Time) -> ClockNote {
        let ahead = self.read_ahead();
        let at = now.as_millis();
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let note = ClockNote::next(*noted, at, at.saturating_add_signed(ahead));
        *noted = Some(note);
        self.noted_ahead.store(ahead, Ordering::Relaxed);
        self.noted_at.store(at, Ordering::Relaxed);
        note
    }

    fn read_ahead(&self) -> i64 {
        let ahead = match &self.source {
            Source::System(_) => {
                let ours = millis_of(self.started + self.elapsed());
                signed(millis_of(wall())) - signed(ours)
            }
            #[cfg(test)]
            Source::Manual(..) => return self.wall_ahead.load(Ordering::Relaxed),
        };
        self.wall_ahead.store(ahead, Ordering::Relaxed);
        ahead
    }

    /// What the wall clock shows at a moment, in seconds of the Unix epoch.
    pub(crate) fn wall_seconds(&self, at: Time) -> u64 {
        self.wall_millis(at) / 1000
    }

    /// The same in milliseconds.
    pub(crate) fn wall_millis(&self, at: Time) -> u64 {
        let ahead = self.wall_ahead.load(Ordering::Relaxed);
        at.as_millis().saturating_add_signed(ahead)
    }

    /// What the wall clock shows now.
    pub(crate) fn wall_now(&self) -> Time {
        self.look_at_wall();
        Time::from_millis(self.wall_seconds(self.now()).saturating_mul(1000))
    }

    /// The moment at which the wall clock shows that, in seconds of the Unix epoch.
    pub(crate) fn at_wall_seconds(&self, seconds: u64) -> Time {
        let ahead = self.wall_ahead.load(Ordering::Relaxed);
        let millis = seconds.saturating_mul(1000);
        Time::from_millis(millis.saturating_add_signed(ahead.saturating_neg()))
    }

    /// When the node started.
    pub(crate) fn started(&self) -> Time {
        to_time(self.started)
    }

    /// A test sets the wall clock.
    #[cfg(test)]
    pub(crate) fn set_wall_ahead(&self, millis: i64) {
        self.wall_ahead.store(millis, Ordering::Relaxed);
    }
}

/// What the wall clock shows; a machine that believes to live before 1970 counts from there.
#[expect(
    clippy::disallowed_methods,
    reason = "this module is where the clock is read"
)]
pub(crate) fn wall() -> Duration {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    wall.unwrap_or_default()
}

fn millis_of(since_epoch: Duration) -> u64 {
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

fn signed(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}

fn to_time(since_epoch: Duration) -> Time {
    Time::from_millis(millis_of(since_epoch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_counts_from_the_unix_epoch() {
        let clock = Clock::start();
        // The first of January 2020 has passed.
        assert!(clock.started() > Time::from_millis(1_577_836_800_000));
        assert!(clock.now() >= clock.started());
    }

    #[test]
    fn ends_are_counted_by_the_wall_clock_also_after_it_was_set() {
        let clock = Clock::manual(&Arc::new(AtomicU64::new(5_000)), 0);
        assert_eq!(clock.wall_seconds(clock.now()), 5);
        let year = 31_536_000;
        for (ahead, wall) in [(year, 5 + 31_536_000), (-4, 1), (-year, 0)] {
            clock.set_wall_ahead(ahead * 1000);
            assert_eq!(clock.look_at_wall(), ahead);
            assert_eq!(clock.wall_seconds(clock.now()), wall);
        }
        clock.set_wall_ahead(year * 1000);
        let end = clock.at_wall_seconds(31_536_000 + 65);
        assert_eq!(end, Time::from_millis(65_000));
        assert_eq!(clock.at_wall_seconds(7), Time::from_millis(0));
    }

    #[test]
    fn a_wall_clock_that_is_not_set_is_not_ahead() {
        assert_eq!(Clock::start().look_at_wall().abs(), 0);
    }

    #[test]
    fn a_clock_goes_on_from_the_time_of_the_log() {
        let recovered = Recovered {
            clock: Some(ClockNote::next(None, 70_000, 5_000)),
            ..Recovered::default()
        };
        let millis = Arc::new(AtomicU64::new(8_000));
        let mut clock = Clock::manual(&millis, 0);
        clock.go_on(&recovered);
        assert_eq!(clock.started(), Time::from_millis(73_000));
        assert_eq!(clock.wall_seconds(clock.started()), 8);
        let mut clock = Clock::start();
        clock.go_on(&recovered);
        assert!(clock.now() >= clock.started());
        assert!(clock.now().since(clock.started()) < Duration::from_mins(10));
        assert!(clock.note_if_due(clock.now()).is_some());
        assert_eq!(clock.note_if_due(clock.now()), None);
    }

    #[test]
    fn a_note_says_how_far_the_wall_clock_was_set() {
        let millis = Arc::new(AtomicU64::new(5_000));
        let clock = Clock::manual(&millis, 0);
        let first = ClockNote::next(None, 5_000, 5_000);
        assert_eq!(clock.note_if_due(clock.now()), Some(first));
        millis.store(6_000, Ordering::Relaxed);
        clock.set_wall_ahead(999);
        assert_eq!(clock.note_if_due(clock.now()), None);
        clock.set_wall_ahead(1_000);
        let second = ClockNote::next(Some(first), 6_000, 7_000);
        assert_eq!(clock.note_if_due(clock.now()), Some(second));
        assert_eq!(clock.note_if_due(clock.now()), None);
        millis.store(6_000 + ClockNote::INTERVAL_MILLIS, Ordering::Relaxed);
        assert!(clock.note_if_due(clock.now()).is_some());
    }

    #[test]
    fn a_test_moves_its_clock() {
        let millis = Arc::new(AtomicU64::new(5_000));
        let clock = Clock::manual(&millis, 0);
        millis.store(7_500, Ordering::Relaxed);
        assert_eq!(clock.started(), Time::from_millis(5_000));
        assert_eq!(clock.now(), Time::from_millis(7_500));
        assert_eq!(clock.elapsed(), Duration::from_millis(2_500));
    }
}
