//! The same rate all the time, publishers spread evenly over the period.

use super::curve::{Curve, Part};
use super::steps::even;
use crate::scenario::Rate;

/// Load of equal publishers, each one message per period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    period_ns: u64,
    publishers: u32,
}

impl Constant {
    /// Load of `publishers` clients; the period is at least 1 ns and there is at least 1 publisher.
    pub const fn new(period_ns: u64, publishers: u32) -> Self {
        Self {
            period_ns: if period_ns == 0 { 1 } else { period_ns },
            publishers: if publishers == 0 { 1 } else { publishers },
        }
    }

    /// Nanoseconds from the start of the load to a message of one publisher (counted from 0);
    /// saturates.
    pub const fn offset_ns(self, publisher: u32, sequence: u32) -> u64 {
        let rounds_ns = self.period_ns.saturating_mul(sequence as u64);
        rounds_ns.saturating_add(self.phase_ns(publisher))
    }

    /// Messages of one publisher that are due within the first `span_ns` nanoseconds; at most
    /// `u32::MAX`.
    pub fn due_within(self, publisher: u32, span_ns: u64) -> u32 {
        let after_first = span_ns.saturating_sub(self.phase_ns(publisher));
        u32::try_from(after_first.div_ceil(self.period_ns)).unwrap_or(u32::MAX)
    }

    /// The same load as a rate that could change.
    pub(super) fn as_curve(self) -> Curve {
        let part = Part {
            length_ns: u64::MAX,
            speed: even(Rate {
                period_ns: self.period_ns,
            }),
        };
        Curve::new([part], self.publishers)
    }

    const fn phase_ns(self, publisher: u32) -> u64 {
        let share = self.period_ns as u128 * publisher as u128 / self.publishers as u128;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "publisher < publishers, so below period_ns"
        )]
        {
            share as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publishers_are_spread_over_the_period() {
        let pace = Constant::new(1_000_000_000, 4);
        let first: Vec<u64> = (0..4)
            .map(|publisher| pace.offset_ns(publisher, 0))
            .collect();
        assert_eq!(first, [0, 250_000_000, 500_000_000, 750_000_000]);
        assert_eq!(pace.offset_ns(1, 3), 3_250_000_000);
    }

    #[test]
    fn messages_due_are_counted_without_the_end_of_the_span() {
        let pace = Constant::new(100, 2);
        assert_eq!(pace.due_within(0, 0), 0);
        assert_eq!(pace.due_within(0, 1), 1);
        assert_eq!(pace.due_within(0, 100), 1);
        assert_eq!(pace.due_within(0, 101), 2);
        assert_eq!(pace.due_within(1, 50), 0);
        assert_eq!(pace.due_within(1, 51), 1);
        assert_eq!(pace.due_within(1, 1_000), 10);
    }

    #[test]
    fn a_million_publishers_at_a_message_a_day_do_not_overflow() {
        let pace = Constant::new(86_400_000_000_000, 1_000_000);
        assert_eq!(pace.offset_ns(999_999, 0), 86_399_913_600_000);
        assert_eq!(pace.offset_ns(999_999, u32::MAX), u64::MAX);
    }
}
