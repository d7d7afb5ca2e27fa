//! The wall clock as the shell last read it: the engine reads no clock.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use thrum_protocol::Time;
use thrum_storage::{ClockNote, Recovered};

/// Difference between the wall clock and the time of the node, and its last record in the storage.
#[derive(Debug)]
pub struct WallClock {
    /// Milliseconds by which the wall clock is ahead of the time of the node. The difference
    /// changes when the wall clock is set, as on a device without a battery-backed clock, and when
    /// the machine sleeps, as the time of the node stops then.
    ahead: AtomicI64,
    /// [`WallClock::ahead`] at the last record, to be compared without a lock.
    noted_ahead: AtomicI64,
    /// Time of the last record, in milliseconds of the time of the node.
    noted_at: AtomicU64,
    /// Guards the last record, which the next one refers to; locked when a record is created.
    noted: Mutex<Option<ClockNote>>,
}

impl Default for WallClock {
    fn default() -> Self {
        Self {
            ahead: AtomicI64::new(0),
            noted_ahead: AtomicI64::new(i64::MAX),
            noted_at: AtomicU64::new(0),
            noted: Mutex::default(),
        }
    }
}

impl WallClock {
    /// Continues from the last record in the storage; `wall` is the current wall clock in
    /// milliseconds. Must be called at the start.
    pub fn resume_from(&mut self, recovered: &Recovered, wall: u64) {
        *self.ahead.get_mut() = recovered.wall_ahead(wall);
        if let Some(note) = recovered.clock {
            *self.noted_ahead.get_mut() = signed(note.wall).saturating_sub(signed(note.at));
            *self.noted_at.get_mut() = note.at;
        }
        self.noted = Mutex::new(recovered.clock);
    }

    /// Sets the milliseconds by which the wall clock is ahead, after the shell has read it.
    pub fn set_ahead(&self, millis: i64) {
        self.ahead.store(millis, Ordering::Relaxed);
    }

    /// Milliseconds by which the wall clock was ahead when the shell last read it.
    pub fn ahead(&self) -> i64 {
        self.ahead.load(Ordering::Relaxed)
    }

    /// Returns a record of the wall clock for the changes of a turn; none unless the clock was set
    /// since the last record or that is an hour old. The shell must have read the wall clock just
    /// before.
    pub(crate) fn note_if_due(&self, now: Time) -> Option<ClockNote> {
        let since = self.noted_at.load(Ordering::Relaxed);
        let moved = self
            .ahead()
            .abs_diff(self.noted_ahead.load(Ordering::Relaxed));
        let is_recent = now.as_millis().saturating_sub(since) < ClockNote::INTERVAL_MILLIS;
        if moved < ClockNote::TRIMMED_MILLIS && is_recent {
            return None;
        }
        Some(self.note(now))
    }

    /// Returns a record of the current wall clock. The shell must have read the wall clock just
    /// before.
    pub(crate) fn note(&self, now: Time) -> ClockNote {
        let ahead = self.ahead();
        let at = now.as_millis();
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let note = ClockNote::next(*noted, at, at.saturating_add_signed(ahead));
        *noted = Some(note);
        self.noted_ahead.store(ahead, Ordering::Relaxed);
        self.noted_at.store(at, Ordering::Relaxed);
        note
    }

    /// Converts a time of the node to the wall clock, in milliseconds since the Unix epoch.
    pub fn millis(&self, at: Time) -> u64 {
        at.as_millis().saturating_add_signed(self.ahead())
    }

    /// Converts a wall clock time, in milliseconds since the Unix epoch, to the time of the node.
    pub fn at_millis(&self, millis: u64) -> Time {
        Time::from_millis(millis.saturating_add_signed(self.ahead().saturating_neg()))
    }

    /// Converts a wall clock time, in seconds since the Unix epoch, to the time of the node.
    pub fn at_seconds(&self, seconds: u64) -> Time {
        self.at_millis(seconds.saturating_mul(1000))
    }
}

fn signed(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_follows_each_change_of_the_wall_clock() {
        let clock = WallClock::default();
        let at = Time::from_millis;
        let first = ClockNote::next(None, 5_000, 5_000);
        assert_eq!(clock.note_if_due(at(5_000)), Some(first));
        clock.set_ahead(999);
        assert_eq!(clock.note_if_due(at(6_000)), None);
        clock.set_ahead(1_000);
        let second = ClockNote::next(Some(first), 6_000, 7_000);
        assert_eq!(clock.note_if_due(at(6_000)), Some(second));
        assert_eq!(clock.note_if_due(at(6_000)), None);
        let hour_later = at(6_000 + ClockNote::INTERVAL_MILLIS);
        assert!(clock.note_if_due(hour_later).is_some());
    }

    #[test]
    fn a_clock_goes_on_from_the_last_record() {
        let note = ClockNote::next(None, 5_000, 3_605_000);
        let recovered = Recovered {
            clock: Some(note),
            ..Recovered::default()
        };
        let mut clock = WallClock::default();
        clock.resume_from(&recovered, 3_615_000);
        assert_eq!(clock.ahead(), 3_600_000);
        assert_eq!(clock.millis(Time::from_millis(15_000)), 3_615_000);
        assert_eq!(clock.note_if_due(Time::from_millis(15_000)), None);
        clock.set_ahead(3_700_000);
        let next = ClockNote::next(Some(note), 15_000, 3_715_000);
        assert_eq!(clock.note_if_due(Time::from_millis(15_000)), Some(next));
    }

    #[test]
    fn times_follow_the_wall_clock_also_after_it_was_set() {
        let clock = WallClock::default();
        let now = Time::from_millis(5_000);
        let year = 31_536_000_000;
        for (ahead, wall) in [
            (0, 5_000),
            (year, 31_536_005_000),
            (-4000, 1000),
            (-year, 0),
        ] {
            clock.set_ahead(ahead);
            assert_eq!(clock.millis(now), wall);
        }
        clock.set_ahead(year);
        let end = clock.at_seconds(31_536_000 + 65);
        assert_eq!(end, Time::from_millis(65_000));
        assert_eq!(clock.at_seconds(7), Time::from_millis(0));
    }
}
