//! Rates: an amount in a period.

use std::time::Duration;

/// Largest amount of a rate or its burst: no machine reaches a larger one.
const AMOUNT_MAX: u64 = 1_000_000_000_000;
/// Longest period of a rate.
const PER_MAX: Duration = Duration::from_hours(24);

/// An amount in a period, and the burst: the amount that is available at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Rate {
    /// 0 means no limit.
    amount: u64,
    per: Duration,
    /// Largest amount that is saved up; 0 means the amount itself.
    burst: u64,
}

impl Rate {
    /// No limit.
    pub const NONE: Self = Self {
        amount: 0,
        per: Duration::ZERO,
        burst: 0,
    };

    /// A rate over a period from a millisecond to a day, with the largest amount that is saved up.
    /// An amount of 0 means no limit, a burst of 0 means the amount.
    pub fn new(amount: u64, per: Duration, burst: u64) -> Option<Self> {
        if amount == 0 {
            return (burst == 0).then_some(Self::NONE);
        }
        let is_sane = amount <= AMOUNT_MAX && burst <= AMOUNT_MAX;
        let is_period = per >= Duration::from_millis(1) && per <= PER_MAX;
        let burst = if burst == amount { 0 } else { burst };
        (is_sane && is_period).then_some(Self { amount, per, burst })
    }

    /// An amount in a second.
    pub fn per_second(amount: u64) -> Self {
        Self::new(amount.min(AMOUNT_MAX), Duration::from_secs(1), 0).unwrap_or_default()
    }

    /// Whether it is unlimited.
    pub const fn is_none(&self) -> bool {
        self.amount == 0
    }

    /// Amount in [`Rate::per`]; 0 means no limit.
    pub const fn amount(&self) -> u64 {
        self.amount
    }

    /// The period.
    pub const fn per(&self) -> Duration {
        self.per
    }

    /// The amount that is available at once.
    pub const fn burst(&self) -> u64 {
        if self.burst == 0 {
            self.amount
        } else {
            self.burst
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_the_amount_equals_a_rate_without_burst() {
        let second = Duration::from_secs(1);
        assert_eq!(Rate::new(5, second, 5), Some(Rate::per_second(5)));
        assert_eq!(Rate::per_second(5).burst(), 5);
    }

    #[test]
    fn a_rate_is_within_its_bounds() {
        let (second, day) = (Duration::from_secs(1), Duration::from_hours(24));
        assert!(Rate::new(AMOUNT_MAX, day, AMOUNT_MAX).is_some());
        assert_eq!(Rate::new(0, Duration::ZERO, 0), Some(Rate::NONE));
        assert_eq!(Rate::new(0, second, 5), None);
        assert_eq!(Rate::new(AMOUNT_MAX + 1, second, 0), None);
        assert_eq!(Rate::new(1, second, AMOUNT_MAX + 1), None);
        assert_eq!(Rate::new(1, Duration::ZERO, 0), None);
        assert_eq!(Rate::new(1, day + Duration::from_millis(1), 0), None);
    }
}
