//! The rate of the last seconds, in three small numbers.

use std::sync::atomic::{AtomicU32, Ordering};

use thrum_protocol::Time;

/// A window has 2^12 milliseconds: long enough that a rate is steady, and short enough that it
/// shows what happens now.
const WINDOW_BITS: u32 = 12;
const WINDOW_MILLIS: u64 = 1 << WINDOW_BITS;
/// A rate is of at least this time, so that the first message is not thousands a second.
const SPAN_MILLIS_MIN: u64 = 500;

/// Amounts of the present window and the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    number: u32,
    this: u32,
    before: u32,
}

/// The number of the window of a time. It repeats after 500 years.
fn number_of(now: Time) -> u32 {
    u32::try_from(now.as_millis() >> WINDOW_BITS & u64::from(u32::MAX)).unwrap_or_default()
}

impl Window {
    /// Adds an amount.
    #[inline]
    pub(super) fn add(&mut self, now: Time, amount: u32) {
        let number = number_of(now);
        if number != self.number {
            *self = self.moved_to(number);
        }
        self.this = self.this.saturating_add(amount);
    }

    /// The same amounts, as seen from a later window.
    const fn moved_to(self, number: u32) -> Self {
        let before = match number.wrapping_sub(self.number) {
            0 => return self,
            1 => self.this,
            _ => 0,
        };
        Self {
            number,
            this: 0,
            before,
        }
    }

    /// The amount of a second, of what was added since `began`.
    pub(super) fn per_second(self, now: Time, began: Time) -> f64 {
        let Self { this, before, .. } = self.moved_to(number_of(now));
        if number_of(now).wrapping_sub(number_of(began)) <= 1 {
            // Everything since then is in the two windows.
            let age = u64::try_from(now.since(began).as_millis()).unwrap_or(u64::MAX);
            let span = small(age.max(SPAN_MILLIS_MIN));
            return (f64::from(this) + f64::from(before)) * 1000.0 / span;
        }
        // As much of the window before as makes a whole one with the part of this one.
        let gone = small(now.as_millis() & (WINDOW_MILLIS - 1)) / small(WINDOW_MILLIS);
        let amount = f64::from(before).mul_add(1.0 - gone, f64::from(this));
        amount * 1000.0 / small(WINDOW_MILLIS)
    }

    /// Adds what another worker has counted.
    pub(super) fn plus(self, other: Self) -> Self {
        let newest = if other.number.wrapping_sub(self.number) < u32::MAX / 2 {
            other.number
        } else {
            self.number
        };
        let (one, other) = (self.moved_to(newest), other.moved_to(newest));
        Self {
            number: newest,
            this: one.this.saturating_add(other.this),
            before: one.before.saturating_add(other.before),
        }
    }
}

/// A number of milliseconds within a window.
fn small(millis: u64) -> f64 {
    f64::from(u32::try_from(millis).unwrap_or(u32::MAX))
}

/// A window that one thread changes and any thread reads. A reader in the middle of a change sees a
/// rate that is off for once.
#[derive(Debug, Default)]
pub(super) struct SharedWindow {
    number: AtomicU32,
    this: AtomicU32,
    before: AtomicU32,
}

impl SharedWindow {
    /// Adds an amount; for the thread that owns it.
    pub(super) fn add(&self, now: Time, amount: u32) {
        let mut window = self.load();
        window.add(now, amount);
        self.number.store(window.number, Ordering::Relaxed);
        self.this.store(window.this, Ordering::Relaxed);
        self.before.store(window.before, Ordering::Relaxed);
    }

    pub(super) fn load(&self) -> Window {
        Window {
            number: self.number.load(Ordering::Relaxed),
            this: self.this.load(Ordering::Relaxed),
            before: self.before.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[track_caller]
    fn is_about(found: f64, expected: f64) {
        let off = (found - expected).abs();
        assert!(off <= expected * 0.02 + 0.001, "{found} {expected}");
    }

    #[test]
    fn a_steady_rate_is_told_as_it_is_from_the_first_second_on() {
        let mut window = Window::default();
        let began = at(10_000);
        for millis in (10_000..30_000).step_by(10) {
            window.add(at(millis), 1);
            if millis >= 11_000 {
                is_about(window.per_second(at(millis), began), 100.0);
            }
        }
    }

    #[test]
    fn a_rate_ends_two_windows_after_the_last_message() {
        let mut window = Window::default();
        window.add(at(100_000), 40);
        assert!(window.per_second(at(101_000), at(0)) > 9.0);
        assert!(window.per_second(at(109_000), at(0)) < f64::EPSILON);
    }

    #[test]
    fn the_first_message_is_no_flood() {
        let mut window = Window::default();
        window.add(at(5_000), 1);
        is_about(window.per_second(at(5_001), at(5_000)), 2.0);
    }

    #[test]
    fn the_rates_of_two_workers_add_up_although_one_has_stopped_counting() {
        let (mut one, mut other) = (Window::default(), Window::default());
        for millis in (0..16_000).step_by(20) {
            one.add(at(millis), 1);
            if millis < 4_000 {
                other.add(at(millis), 7);
            }
        }
        is_about(one.plus(other).per_second(at(16_000), at(0)), 50.0);
        is_about(other.plus(one).per_second(at(16_000), at(0)), 50.0);
    }

    #[test]
    fn a_shared_window_counts_as_any_other() {
        let (mut window, shared) = (Window::default(), SharedWindow::default());
        for millis in (0..9_000).step_by(7) {
            window.add(at(millis), 3);
            shared.add(at(millis), 3);
        }
        assert_eq!(shared.load(), window);
    }
}
