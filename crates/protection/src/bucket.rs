//! Token buckets of eight bytes, stored as the time until which the bucket is busy.
//!
//! A bucket with at least one unit left grants the whole request and goes into debt if that exceeds
//! the bucket, so that one large message never starves; the next take waits until the debt is paid.
//! Single units therefore never exceed `rate × time + burst`, and larger takes exceed that by the
//! last take at most. Rounding may add a sixteenth of one unit, and removes a nanosecond from each
//! take.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thrum_protocol::Time;

use super::rate::Rate;

/// Binary places behind the point of [`Pace::cost`].
const FRACTION_BITS: u32 = 16;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// A rate in the form that buckets use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Nanoseconds per unit, in parts of 2^16, rounded up.
    cost: u64,
    /// Nanoseconds for the whole burst.
    burst_nanos: u64,
}

impl Pace {
    /// None if the rate is unlimited.
    pub fn new(rate: &Rate) -> Option<Self> {
        if rate.is_none() {
            return None;
        }
        let cost = (rate.per().as_nanos() << FRACTION_BITS).div_ceil(rate.amount().into());
        let burst = u128::from(rate.burst());
        let (unit, is_whole) = (
            cost >> FRACTION_BITS,
            cost.is_multiple_of(1 << FRACTION_BITS),
        );
        // The loss by rounding when the burst is taken unit by unit.
        let lost = if is_whole { 0 } else { burst.min(unit / 16) };
        let burst_nanos = ((burst * cost) >> FRACTION_BITS) + lost;
        let mut pace = Self {
            cost: u64::try_from(cost).unwrap_or(u64::MAX),
            // Half of the range leaves room for the present time.
            burst_nanos: u64::try_from(burst_nanos)
                .map_or(u64::MAX / 2, |nanos| nanos.min(u64::MAX / 2)),
        };
        pace.burst_nanos = pace.burst_nanos.max(pace.nanos(1));
        Some(pace)
    }

    /// Time in which an empty bucket fills.
    pub(crate) fn refill(&self) -> Duration {
        Duration::from_nanos(self.burst_nanos)
    }

    /// Nanoseconds for this number of units, rounded up: the rate is never exceeded.
    fn nanos(&self, amount: u64) -> u64 {
        let nanos = (u128::from(amount) * u128::from(self.cost)).div_ceil(1 << FRACTION_BITS);
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }

    /// The time until which the bucket is busy after another take.
    fn busy_after(&self, busy_until: u64, now: Time, amount: u64) -> u64 {
        busy_until
            .max(nanos_of(now))
            .saturating_add(self.nanos(amount))
    }

    /// Time until the bucket has one unit left; zero if it has one now.
    fn wait(&self, busy_until: u64, now: Time) -> Duration {
        let busy = busy_until.saturating_sub(nanos_of(now));
        let nanos = busy
            .saturating_add(self.nanos(1))
            .saturating_sub(self.burst_nanos);
        Duration::from_millis(nanos.div_ceil(NANOS_PER_MILLI))
    }

    /// Number of units left.
    fn left(&self, busy_until: u64, now: Time) -> u64 {
        let busy = busy_until.saturating_sub(nanos_of(now));
        let left = u128::from(self.burst_nanos.saturating_sub(busy)) << FRACTION_BITS;
        u64::try_from(left / u128::from(self.cost)).unwrap_or(u64::MAX)
    }
}

fn nanos_of(now: Time) -> u64 {
    now.as_millis().saturating_mul(NANOS_PER_MILLI)
}

/// A bucket with one owner; a new one is full.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    /// Nanoseconds since the node's epoch.
    busy_until: u64,
}

impl Bucket {
    /// Takes units, if at least one is left.
    ///
    /// # Errors
    /// The time until one unit is left; nothing was taken.
    #[cfg(test)]
    fn take(&mut self, pace: &Pace, now: Time, amount: u64) -> Result<(), Duration> {
        let wait = self.wait(pace, now);
        if !wait.is_zero() {
            return Err(wait);
        }
        self.charge(pace, now, amount);
        Ok(())
    }

    /// Takes units even if none is left: input that has arrived is always charged.
    pub(crate) fn charge(&mut self, pace: &Pace, now: Time, amount: u64) {
        self.busy_until = pace.busy_after(self.busy_until, now, amount);
    }

    /// Time until one unit is left, in whole milliseconds; zero if one is left now.
    pub(crate) fn wait(self, pace: &Pace, now: Time) -> Duration {
        pace.wait(self.busy_until, now)
    }

    /// Number of units left.
    pub(crate) fn left(self, pace: &Pace, now: Time) -> u64 {
        pace.left(self.busy_until, now)
    }
}

/// A bucket that all workers take from: it is exact for any distribution of connections over
/// workers. A take is one exchange on one cache line, and only clients with a limit need it.
#[derive(Debug, Default)]
pub struct SharedBucket {
    /// As in [`Bucket`]; orders no other memory access.
    busy_until: AtomicU64,
}

impl SharedBucket {
    /// Takes units, if at least one is left.
    ///
    /// # Errors
    /// The time until one unit is left; nothing was taken.
    pub fn take(&self, pace: &Pace, now: Time, amount: u64) -> Result<(), Duration> {
        let take = |busy_until| {
            let has_left = pace.wait(busy_until, now).is_zero();
            has_left.then(|| pace.busy_after(busy_until, now, amount))
        };
        let (relaxed, found) = (Ordering::Relaxed, &self.busy_until);
        let taken = found.fetch_update(relaxed, relaxed, take);
        taken
            .map(drop)
            .map_err(|busy_until| pace.wait(busy_until, now))
    }

    /// Takes units even if none is left: input that has arrived is always charged.
    pub fn charge(&self, pace: &Pace, now: Time, amount: u64) {
        let charge = |busy_until| Some(pace.busy_after(busy_until, now, amount));
        let relaxed = Ordering::Relaxed;
        // The closure always returns a value, so the update never fails.
        self.busy_until.fetch_update(relaxed, relaxed, charge).ok();
    }

    /// Time until one unit is left, in whole milliseconds; zero if one is left now.
    pub fn wait(&self, pace: &Pace, now: Time) -> Duration {
        pace.wait(self.busy_until.load(Ordering::Relaxed), now)
    }

    /// Number of units left.
    pub fn left(&self, pace: &Pace, now: Time) -> u64 {
        pace.left(self.busy_until.load(Ordering::Relaxed), now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn pace(amount: u64, per_millis: u64, burst: u64) -> Pace {
        let rate = Rate::new(amount, Duration::from_millis(per_millis), burst);
        Pace::new(&rate.unwrap()).unwrap()
    }

    const fn at(millis: u64) -> Time {
        Time::from_millis(1_700_000_000_000 + millis)
    }

    #[test]
    fn no_limit_is_no_pace() {
        assert_eq!(Pace::new(&Rate::NONE), None);
    }

    #[test]
    fn a_bucket_is_as_small_as_a_number() {
        assert_eq!(size_of::<Bucket>(), 8);
        assert_eq!(size_of::<SharedBucket>(), 8);
    }

    #[test]
    fn the_burst_comes_at_once_and_then_one_at_a_time() {
        let (pace, mut bucket) = (pace(10, 1000, 3), Bucket::default());
        for _ in 0..3 {
            assert_eq!(bucket.take(&pace, at(0), 1), Ok(()));
        }
        let wait = bucket.take(&pace, at(0), 1).unwrap_err();
        assert_eq!(wait, Duration::from_millis(100));
        assert!(bucket.take(&pace, at(99), 1).is_err());
        assert_eq!(bucket.left(&pace, at(100)), 1);
        assert_eq!(bucket.take(&pace, at(100), 1), Ok(()));
        assert_eq!(bucket.left(&pace, at(100)), 0);
        assert_eq!(bucket.left(&pace, at(60_000)), 3);
    }

    #[test]
    fn a_burst_is_whole_even_if_a_unit_takes_no_whole_number_of_nanoseconds() {
        for (amount, burst) in [(3, 3), (7, 1), (30_000, 1000), (999_999, 50)] {
            let (pace, mut bucket) = (pace(amount, 1000, burst), Bucket::default());
            let taken = (0..=burst).filter(|_| bucket.take(&pace, at(0), 1).is_ok());
            assert_eq!(taken.count() as u64, burst, "{amount}/s");
        }
    }

    #[test]
    fn a_message_larger_than_the_burst_passes_and_is_paid_for() {
        let (pace, mut bucket) = (pace(1000, 1000, 1000), Bucket::default());
        assert_eq!(bucket.take(&pace, at(0), 10_000), Ok(()));
        assert_eq!(bucket.wait(&pace, at(0)), Duration::from_millis(9001));
        assert!(bucket.take(&pace, at(9000), 1).is_err());
        assert_eq!(bucket.take(&pace, at(9001), 1), Ok(()));
    }

    #[test]
    fn the_slowest_and_the_fastest_rates_are_kept() {
        let (slow, mut bucket) = (pace(1, 86_400_000, 1), Bucket::default());
        assert_eq!(bucket.take(&slow, at(0), 1), Ok(()));
        assert!(bucket.take(&slow, at(86_400_000 - 1), 1).is_err());
        assert_eq!(bucket.take(&slow, at(86_400_000), 1), Ok(()));
        let (fast, mut bucket) = (pace(10 << 30, 1000, 0), Bucket::default());
        for milli in 0..1000 {
            assert_eq!(bucket.take(&fast, at(milli), (10 << 30) / 1000), Ok(()));
        }
        assert!(bucket.left(&fast, at(1000)) > 9 << 30);
    }

    #[test]
    fn the_end_of_time_is_not_passed() {
        let (pace, mut bucket) = (pace(1, 86_400_000, 1_000_000_000_000), Bucket::default());
        bucket.charge(&pace, at(0), u64::MAX);
        bucket.charge(&pace, Time::from_millis(u64::MAX), u64::MAX);
        assert!(!bucket.wait(&pace, at(0)).is_zero());
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        /// Before any take that succeeds, there is room for one more in `rate × time + burst`.
        #[test]
        fn a_bucket_gives_no_more_than_its_rate_and_its_burst(
            amount in 1_u64..5_000_000,
            per in 1000_u64..100_000,
            burst in 1_u64..1_000_000,
            takes in vec((0_u64..2000, 1_u64..10_000), 1..200),
        ) {
            let pace = pace(amount, per, burst);
            let (mut bucket, shared) = (Bucket::default(), SharedBucket::default());
            let (mut taken, mut now) = (0_u128, 0_u64);
            for (pause, wanted) in takes {
                now += pause;
                let result = bucket.take(&pace, at(now), wanted);
                prop_assert_eq!(shared.take(&pace, at(now), wanted), result);
                prop_assert_eq!(shared.wait(&pace, at(now)), bucket.wait(&pace, at(now)));
                match result {
                    Ok(()) => {
                        let per = u128::from(per);
                        let allowed =
                            u128::from(amount) * u128::from(now) + u128::from(burst) * per;
                        let is_allowed = (taken + 1) * per <= allowed + per / 16;
                        prop_assert!(is_allowed, "{} at {}", taken, now);
                        taken += u128::from(wanted);
                    }
                    Err(wait) => {
                        let millis = u64::try_from(wait.as_millis()).unwrap();
                        prop_assert!(bucket.take(&pace, at(now + millis - 1), 1).is_err());
                        prop_assert!(bucket.wait(&pace, at(now + millis)).is_zero());
                    }
                }
            }
        }

        /// A client that waits as told gets the rate: rounding takes less than a thousandth.
        #[test]
        fn a_bucket_gives_its_rate(amount in 1_u64..1_000_000, takes in 1_u64..2000) {
            let (pace, mut bucket) = (pace(amount, 1000, 1 + amount / 50), Bucket::default());
            let mut now = 0;
            for _ in 0..takes {
                now += u64::try_from(bucket.wait(&pace, at(now)).as_millis()).unwrap();
                prop_assert!(bucket.take(&pace, at(now), 1 + amount / 1000).is_ok());
            }
            let due = u128::from(takes) * u128::from(1 + amount / 1000) * 1000 / u128::from(amount);
            prop_assert!(u128::from(now) <= due + due / 1000 + 2, "{} instead of {}", now, due);
        }
    }
}
