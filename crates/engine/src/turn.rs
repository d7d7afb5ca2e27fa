//! Limits of the work of one turn, so that no part of the work delays the others.
//!
//! The work of a turn is counted in units: a packet, a delivery, a piece of mail or a timer is one
//! unit, more expensive work counts more. A unit takes some hundred nanoseconds. Each connection
//! has a portion of a turn, and so have the mail, the timers and the rounds over all sessions; all
//! connections together have a share of it. Remaining work continues in the next turn, in the same
//! order. As units differ in cost, the clock limits the work too; it is read only after some units,
//! so that a short turn never reads it.

use std::sync::Arc;
use std::time::Duration;

use thrum_protocol::Time;

use crate::host::Host;

/// Units after which the clock is read: about 50 µs.
const CLOCK_UNITS: u64 = 256;
/// Longest time for one connection, the mail, the timers or the rounds in a turn. A packet of a
/// client waits for two turns at most, each with two long parts at most, so that it is answered
/// within 20 ms.
const PORTION_TIME: Duration = Duration::from_millis(3);
/// Longest time in which a turn reads connections.
const READING_TIME: Duration = Duration::from_millis(5);
/// Time of a connection to be read when other connections have used up the time for reading.
const PORTION_TIME_MIN: Duration = Duration::from_millis(1);
/// Bytes that a turn writes, which take about 4 ms without TLS and 10 ms with TLS.
const WRITE_BYTES: usize = 16 * 1024 * 1024;
/// Units of a filter that is subscribed, unsubscribed or reviewed.
pub const FILTER_UNITS: u64 = 32;
/// Units of a topic whose route is not cached.
pub const ROUTE_UNITS: u64 = 16;
/// Units of a read, which is a system call.
pub const READ_UNITS: u64 = 4;
/// Received bytes that count as one unit, as their decryption takes that long.
pub const UNIT_BYTES: u64 = 256;
/// Sent payload bytes that count as one unit, which is the time of the system to send them when it
/// has to allocate buffers.
pub const OUT_UNIT_BYTES: usize = 64;
/// Units of a step of a handshake: a TLS handshake takes half a millisecond of cryptography.
pub const HANDSHAKE_UNITS: u64 = 4096;
/// Units of the end of a connection, most of which the system takes.
pub const CLOSING_UNITS: u64 = 64;

/// The limits of a turn, which tests reduce.
#[derive(Clone, Copy, Debug)]
pub struct TurnLimits {
    /// Units of one connection, the mail, the timers or the rounds. Default 32,768, which the
    /// limits of time usually precede.
    pub portion_units: u64,
    /// Units of all connections that are read. Default 65,536.
    pub reading_units: u64,
    /// Connections that are written. Default 1024, like the number of sockets that are polled: the
    /// system takes some microseconds for each.
    pub writes: usize,
    /// Bytes after which no further connection is written. Default 16 MiB.
    pub write_bytes: usize,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            portion_units: 32_768,
            reading_units: 65_536,
            writes: 1024,
            write_bytes: WRITE_BYTES,
        }
    }
}

/// Remaining work and time of a part of a turn.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    units_end: u64,
    /// End of the part by the clock; none before the clock is first read.
    time_end: Option<Duration>,
    is_over: bool,
}

impl Share {
    const fn until(units_end: u64) -> Self {
        Self {
            units_end,
            time_end: None,
            is_over: false,
        }
    }

    fn compare(&mut self, work: u64, now: Duration, time: Duration) {
        let time_end = *self.time_end.get_or_insert(now + time);
        self.is_over |= work >= self.units_end || now >= time_end;
    }

    /// The remaining time.
    fn time_left(&self, now: Duration) -> Duration {
        self.time_end
            .map_or(Duration::MAX, |end| end.saturating_sub(now))
    }
}

/// The budget of the current turn.
#[derive(Debug, Default)]
struct Budget {
    limits: TurnLimits,
    /// Work at which the clock is read next.
    read_clock_at: u64,
    portion: Share,
    /// The portion belongs to a connection that is read.
    is_portion_read: bool,
    reading: Share,
    /// The share of publishers that were held.
    resuming: Share,
}

/// The time of the current turn, and its remaining budget.
#[derive(Debug)]
pub struct Turn {
    /// The time at which the turn began.
    pub now: Time,
    /// Units of work of all turns so far.
    pub work: u64,
    budget: Budget,
    host: Arc<dyn Host>,
}

impl Turn {
    pub(super) fn new(now: Time, host: Arc<dyn Host>) -> Self {
        Self {
            now,
            work: 0,
            budget: Budget::default(),
            host,
        }
    }

    /// Begins a turn.
    #[inline]
    pub const fn begin(&mut self, now: Time) {
        self.now = now;
        self.budget.read_clock_at = self.work + CLOCK_UNITS;
        self.budget.reading = Share::until(self.work + self.budget.limits.reading_units);
    }

    /// The present time or a little later.
    pub fn no_earlier_than_now(&self) -> Time {
        self.host.no_earlier_than_now(self.now)
    }

    /// The limits of a turn.
    #[inline]
    pub const fn limits(&self) -> &TurnLimits {
        &self.budget.limits
    }

    /// The limits of a turn, to be changed.
    #[cfg(any(test, feature = "testing"))]
    pub const fn limits_mut(&mut self) -> &mut TurnLimits {
        &mut self.budget.limits
    }

    /// Begins the portion of a connection or of another part of the turn.
    #[inline]
    pub fn begin_portion(&mut self) {
        self.begin_portion_of(self.budget.limits.portion_units);
    }

    /// Begins a portion of at most that many units, for a part of the turn with a smaller portion.
    #[inline]
    pub fn begin_portion_of(&mut self, units: u64) {
        let budget = &mut self.budget;
        let end = self.work + units.min(budget.limits.portion_units);
        budget.portion = Share::until(end);
        budget.is_portion_read = false;
        budget.read_clock_at = budget.read_clock_at.min(end);
    }

    /// Begins the portion of a connection that is read.
    #[inline]
    pub fn begin_read_portion(&mut self) {
        self.begin_portion();
        self.budget.is_portion_read = true;
    }

    /// Begins the share of publishers that were held; each has the portion of a connection, and all
    /// together one portion.
    pub fn begin_resuming(&mut self) {
        let end = self.work + self.budget.limits.portion_units;
        self.budget.resuming = Share::until(end);
    }

    /// Whether no more held publishers continue in this turn.
    #[inline]
    pub const fn is_resuming_over(&self) -> bool {
        let share = &self.budget.resuming;
        share.is_over || self.work >= share.units_end
    }

    /// Whether the portion is used up, so that the remaining work waits for the next turn.
    #[inline]
    pub fn is_portion_over(&mut self) -> bool {
        self.work >= self.budget.read_clock_at && self.read_clock()
    }

    /// Whether no more connections are read in this turn.
    #[inline]
    pub const fn is_reading_over(&self) -> bool {
        self.budget.reading.is_over || self.work >= self.budget.reading.units_end
    }

    #[cold]
    fn read_clock(&mut self) -> bool {
        let now = self.host.elapsed();
        self.budget.compare(self.work, now)
    }
}

impl Budget {
    /// Compares the budget with the clock; true if the portion is used up.
    fn compare(&mut self, work: u64, now: Duration) -> bool {
        self.reading.compare(work, now, READING_TIME);
        let portion_time = if self.is_portion_read {
            let left = self.reading.time_left(now);
            left.clamp(PORTION_TIME_MIN, PORTION_TIME)
        } else {
            PORTION_TIME
        };
        self.portion.compare(work, now, portion_time);
        self.resuming.compare(work, now, PORTION_TIME);
        let next = work + CLOCK_UNITS;
        self.read_clock_at = if self.portion.is_over {
            work
        } else {
            next.min(self.portion.units_end)
        };
        self.portion.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn portion(budget: &mut Budget, is_read: bool) {
        budget.portion = Share::until(u64::MAX);
        budget.is_portion_read = is_read;
    }

    #[test]
    fn the_portion_of_a_read_ends_with_the_time_of_all_reads() {
        let mut budget = Budget {
            reading: Share::until(u64::MAX),
            resuming: Share::until(u64::MAX),
            ..Budget::default()
        };
        portion(&mut budget, true);
        assert!(!budget.compare(1, millis(0)) && !budget.compare(1, millis(2)));
        assert!(budget.compare(1, millis(3)));
        // One of the five milliseconds is left.
        portion(&mut budget, true);
        assert!(!budget.compare(1, millis(4)) && budget.compare(1, millis(5)));
        // No time is left, but the next connection still has its minimum.
        portion(&mut budget, true);
        assert!(!budget.compare(1, millis(8)) && budget.compare(1, millis(9)));
        // Work other than reading has a portion of its own.
        portion(&mut budget, false);
        assert!(!budget.compare(1, millis(9)) && !budget.compare(1, millis(11)));
        assert!(budget.compare(1, millis(12)));
    }
}
