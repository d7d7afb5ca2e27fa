//! A rate that changes linearly over the hold.

use thrum_figures::{fraction, whole};

use super::curve::{COUNT_BITS, Part, Speed};
use super::steps::{even, period_ns};
use crate::scenario::Rate;

/// Bits of the rates' and the length's reciprocals: with [`super::LOAD_NS_MAX`] the longest product
/// has 126 bits.
const SLOW_BITS: u32 = 60;
const GAIN_BITS: u32 = 56;
const SHARE_BITS: u32 = 64;

/// Fractional bits of a time.
const TIME_BITS: u32 = 16;

/// The parts of a load: the first rate in the warm-up, the last one after the hold.
pub(super) fn parts(from: Rate, to: Rate, warm_up_ns: u64, hold_ns: u64) -> Vec<Part> {
    vec![
        Part {
            length_ns: warm_up_ns,
            speed: even(from),
        },
        Part {
            length_ns: hold_ns,
            speed: Speed::Sloped(Slope::new(period_ns(from), period_ns(to), hold_ns)),
        },
        Part {
            length_ns: 0,
            speed: even(to),
        },
    ]
}

/// A count that grows from one rate to another.
///
/// With the slow rate `a`, the fast rate `b` and the length `h` the count of a rising rate is
/// `a t + (b - a) t (t / 2h)`, each product rounded down: it cannot fall. The count of a falling
/// rate is the same one seen from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slope {
    length_ns: u64,
    falls: bool,
    /// Messages at the end, if the rate falls; else 0.
    total: u128,
    slow: Reciprocal,
    /// The fast rate without the slow one.
    gain: Reciprocal,
    /// One over twice the length.
    share: Reciprocal,
}

/// A fraction far below 1: `value / 2^bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reciprocal {
    value: u64,
    bits: u32,
}

impl Slope {
    fn new(from_period_ns: u64, to_period_ns: u64, length_ns: u64) -> Self {
        let slow_ns = from_period_ns.max(to_period_ns);
        let fast_ns = from_period_ns.min(to_period_ns);
        let mut slope = Self {
            length_ns,
            falls: from_period_ns < to_period_ns,
            total: 0,
            slow: Reciprocal::new(slow_ns, SLOW_BITS),
            gain: Reciprocal::difference(fast_ns, slow_ns, GAIN_BITS),
            share: Reciprocal::new(length_ns.max(1) * 2, SHARE_BITS - 1),
        };
        if slope.falls {
            slope.total = slope.rising(length_ns);
        }
        slope
    }

    /// Messages after this time, at most the length.
    pub(super) fn count(&self, elapsed_ns: u64) -> u128 {
        let elapsed_ns = elapsed_ns.min(self.length_ns);
        if self.falls {
            self.total - self.rising(self.length_ns - elapsed_ns)
        } else {
            self.rising(elapsed_ns)
        }
    }

    /// The last time at which the count is not above this one.
    pub(super) fn last_ns(&self, count: u128) -> u64 {
        let near_ns = if self.falls {
            self.length_ns
                .saturating_sub(self.estimate_ns(self.total.saturating_sub(count)))
        } else {
            self.estimate_ns(count)
        };
        last_of(near_ns, self.length_ns, |elapsed_ns| {
            self.count(elapsed_ns) <= count
        })
    }

    fn rising(&self, elapsed_ns: u64) -> u128 {
        let elapsed = u128::from(elapsed_ns);
        let even = self.slow.times(elapsed, COUNT_BITS);
        let share = self.share.times(elapsed, SHARE_BITS);
        let gained = (elapsed * share) >> (SHARE_BITS - TIME_BITS);
        even + self.gain.times(gained, COUNT_BITS - TIME_BITS)
    }

    /// Where [`Slope::rising`] is about to pass a count: saves most of the search.
    fn estimate_ns(&self, count: u128) -> u64 {
        let one = 1_u128 << COUNT_BITS;
        let part = |part: u128| fraction(u64::try_from(part).unwrap_or(u64::MAX));
        let count = part(count / one) + part(count % one) / part(one);
        let slow = self.slow.as_fraction();
        let bend = 4.0 * self.gain.as_fraction() * self.share.as_fraction();
        whole(2.0 * count / (slow + (slow * slow + bend * count).sqrt()))
    }
}

impl Reciprocal {
    /// One over a number, with this many bits.
    fn new(of: u64, bits: u32) -> Self {
        let bits = bits + of.ilog2();
        Self {
            value: as_u64((1 << bits) / u128::from(of)),
            bits,
        }
    }

    /// One over the smaller number without one over the bigger one.
    fn difference(smaller: u64, bigger: u64, bits: u32) -> Self {
        let share = (u128::from(bigger - smaller) << bits) / u128::from(bigger);
        let scale = smaller.ilog2();
        Self {
            value: as_u64((share << scale) / u128::from(smaller)),
            bits: bits + scale,
        }
    }

    /// The product, with this many fractional bits.
    const fn times(self, factor: u128, bits: u32) -> u128 {
        (factor * self.value as u128) >> (self.bits - bits)
    }

    fn as_fraction(self) -> f64 {
        fraction(self.value) / fraction(1 << (self.bits / 2)) / fraction(1 << self.bits.div_ceil(2))
    }
}

fn as_u64(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// The last number up to a bound that fulfils a condition, which 0 and then all numbers up to some
/// point do; fast if that point is near.
fn last_of(near: u64, bound: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let near = near.min(bound);
    let (mut low, mut high, mut stride) = (near, near, 1);
    // At most 64 doublings, then at most 64 halvings.
    if holds(near) {
        while high == low || holds(high) {
            low = high;
            if low == bound {
                return bound;
            }
            high = bound.min(low.saturating_add(stride));
            stride = stride.saturating_mul(2);
        }
    } else {
        while low > 0 && (low == high || !holds(low)) {
            high = low;
            low = low.saturating_sub(stride);
            stride = stride.saturating_mul(2);
        }
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_is_found_from_near_and_from_far() {
        for (last, near, bound) in [
            (0, 0, 100),
            (0, 100, 100),
            (0, 1, 100),
            (57, 57, 100),
            (57, 58, 100),
            (57, 56, 100),
            (57, 3, 100),
            (57, 99, 100),
            (100, 100, 100),
            (100, 7, 100),
            (0, 5, 0),
        ] {
            let found = last_of(near, bound, |number| number <= last);
            assert_eq!(found, last, "from {near} up to {bound}");
        }
    }

    #[test]
    fn the_last_number_is_found_in_few_steps_if_near() {
        let asked = std::cell::Cell::new(0);
        last_of(1_000, u64::MAX, |number| {
            asked.set(asked.get() + 1);
            number <= 1_000
        });
        assert!(asked.get() <= 2, "{}", asked.get());
    }

    #[test]
    fn estimates_are_within_a_few_nanoseconds() {
        let day = Rate::PERIOD_NS_MAX;
        for (from, to) in [(1_000_000, 1_000), (1_000, 1_000_000), (day, 1_000_000)] {
            let slope = Slope::new(from, to, day);
            let total = slope.rising(day);
            for part in [1_u128, 10, 500, 999] {
                let count = total * part / 1_000;
                let estimate_ns = slope.estimate_ns(count);
                let exact_ns = last_of(estimate_ns, day, |at| slope.rising(at) <= count);
                assert!(estimate_ns.abs_diff(exact_ns) < 10, "{from} {to} {part}");
            }
        }
    }
}
