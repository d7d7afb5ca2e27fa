//! How much of one thing a turn does, so that everybody else of the worker does not wait for it.
//!
//! What a turn does is counted in units: a packet, a delivery, a piece of mail or a timer is one,
//! what costs more counts as many. A unit takes some hundred nanoseconds. Each connection has a
//! portion of a turn, and so have the mail, the timers and what is done with every session in
//! rounds; all connections together have a share of it. What is not done by then is done in the
//! next turn, in the same order. As units differ in cost, the clock decides too; it is looked at
//! after some units only, so that a turn with little to do never does.

use std::sync::Arc;
use std::time::Duration;

use thrum_protocol::Time;

use crate::host::Host;

/// Units after which the clock is looked at: about 50 µs.
const LOOK_UNITS: u64 = 256;
/// Longest time for one connection, the mail, the timers or the rounds in a turn. What a client
/// sends waits for two turns at most, of which two parts are long at a time, so that it is answered
/// within 20 ms.
const PORTION_TIME: Duration = Duration::from_millis(3);
/// Longest time in which a turn reads connections.
const READING_TIME: Duration = Duration::from_millis(5);
/// What a connection has of it when others have used it up.
const PORTION_TIME_MIN: Duration = Duration::from_millis(1);
/// Bytes that a turn writes: about 4 ms of plain output, and 10 ms with TLS.
const WRITE_BYTES: usize = 16 * 1024 * 1024;
/// Units of a filter that is subscribed or given up, or checked against other rules.
pub const FILTER_UNITS: u64 = 32;
/// Units of a topic whose route is not remembered.
pub const ROUTE_UNITS: u64 = 16;
/// Units of a read, which is a system call.
pub const READ_UNITS: u64 = 4;
/// Bytes that come in and cost a unit: what takes them out of TLS takes that long.
pub const UNIT_BYTES: u64 = 256;
/// Bytes of payload that go out and cost a unit: what the system takes to send them when it has to
/// make room.
pub const OUT_UNIT_BYTES: usize = 64;
/// Units of a step of a handshake, of TLS for one: half a millisecond of cryptography.
pub const HANDSHAKE_UNITS: u64 = 4096;
/// Units of the end of a connection, most of which are the system's.
pub const CLOSING_UNITS: u64 = 64;

/// The limits of a turn. Tests make them small.
#[derive(Clone, Copy, Debug)]
pub struct TurnLimits {
    /// Units of one connection, the mail, the timers or the rounds. Default 32,768: by then the
    /// clock has mostly decided.
    pub portion_units: u64,
    /// Units of all connections. Default 65,536.
    pub reading_units: u64,
    /// Connections that are written. Default 1024, as sockets are looked at: the system takes some
    /// microseconds for each.
    pub writes: usize,
    /// Bytes that are written, up to the end of the last connection's. Default [`WRITE_BYTES`].
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

/// What a part of a turn has left.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    units_end: u64,
    /// Known from the first look at the clock on.
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

    fn look(&mut self, work: u64, now: Duration, time: Duration) {
        let time_end = *self.time_end.get_or_insert(now + time);
        self.is_over |= work >= self.units_end || now >= time_end;
    }

    /// Time that is left.
    fn time_left(&self, now: Duration) -> Duration {
        self.time_end
            .map_or(Duration::MAX, |end| end.saturating_sub(now))
    }
}

/// The budget of the turn at hand.
#[derive(Debug, Default)]
struct Budget {
    limits: TurnLimits,
    /// Work at which the clock is looked at next.
    look_at: u64,
    portion: Share,
    /// The portion is one of a connection that is read.
    is_portion_read: bool,
    reading: Share,
    /// Of publishers that were held back.
    going_on: Share,
}

/// Now, and what the turn at hand may still do.
#[derive(Debug)]
pub struct Turn {
    /// The moment at which the turn began.
    pub now: Time,
    /// Units of work done so far, by all turns.
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

    /// A turn begins.
    #[inline]
    pub const fn begin(&mut self, now: Time) {
        self.now = now;
        self.budget.look_at = self.work + LOOK_UNITS;
        self.budget.reading = Share::until(self.work + self.budget.limits.reading_units);
    }

    /// The limits of a turn.
    #[inline]
    pub const fn limits(&self) -> &TurnLimits {
        &self.budget.limits
    }

    /// Other limits than usual.
    #[cfg(any(test, feature = "testing"))]
    pub const fn limits_mut(&mut self) -> &mut TurnLimits {
        &mut self.budget.limits
    }

    /// A connection, or another part of the turn, begins its portion.
    #[inline]
    pub fn begin_portion(&mut self) {
        let budget = &mut self.budget;
        let end = self.work + budget.limits.portion_units;
        budget.portion = Share::until(end);
        budget.is_portion_read = false;
        budget.look_at = budget.look_at.min(end);
    }

    /// A connection begins its portion of what the turn reads.
    #[inline]
    pub fn begin_read_portion(&mut self) {
        self.begin_portion();
        self.budget.is_portion_read = true;
    }

    /// Publishers that were held back go on; each has a portion of a connection, and all together
    /// one.
    pub fn begin_going_on(&mut self) {
        let end = self.work + self.budget.limits.portion_units;
        self.budget.going_on = Share::until(end);
    }

    /// No more of them go on in this turn.
    #[inline]
    pub const fn is_going_on_over(&self) -> bool {
        let share = &self.budget.going_on;
        share.is_over || self.work >= share.units_end
    }

    /// The portion is used up: what is left waits for the next turn.
    #[inline]
    pub fn is_portion_over(&mut self) -> bool {
        self.work >= self.budget.look_at && self.look_at_clock()
    }

    /// No more connections are read in this turn.
    #[inline]
    pub const fn is_reading_over(&self) -> bool {
        self.budget.reading.is_over || self.work >= self.budget.reading.units_end
    }

    #[cold]
    fn look_at_clock(&mut self) -> bool {
        let now = self.host.elapsed();
        self.budget.look(self.work, now)
    }
}

impl Budget {
    /// True if the portion is used up.
    fn look(&mut self, work: u64, now: Duration) -> bool {
        self.reading.look(work, now, READING_TIME);
        let portion_time = if self.is_portion_read {
            let left = self.reading.time_left(now);
            left.clamp(PORTION_TIME_MIN, PORTION_TIME)
        } else {
            PORTION_TIME
        };
        self.portion.look(work, now, portion_time);
        self.going_on.look(work, now, PORTION_TIME);
        let next = work + LOOK_UNITS;
        self.look_at = if self.portion.is_over {
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
            going_on: Share::until(u64::MAX),
            ..Budget::default()
        };
        portion(&mut budget, true);
        assert!(!budget.look(1, millis(0)) && !budget.look(1, millis(2)));
        assert!(budget.look(1, millis(3)));
        // One millisecond is left of the five.
        portion(&mut budget, true);
        assert!(!budget.look(1, millis(4)) && budget.look(1, millis(5)));
        // None is, and yet who comes next does something.
        portion(&mut budget, true);
        assert!(!budget.look(1, millis(8)) && budget.look(1, millis(9)));
        // What is not read has a portion of its own.
        portion(&mut budget, false);
        assert!(!budget.look(1, millis(9)) && !budget.look(1, millis(11)));
        assert!(budget.look(1, millis(12)));
    }
}
