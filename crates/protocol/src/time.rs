//! Points in time of the node's clock.

use core::time::Duration;

/// Milliseconds since the Unix epoch, as the wall clock showed it at the node's start; monotonic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// Creates a time from milliseconds since the node's epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the node's epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The time after a duration; saturates.
    #[must_use]
    pub const fn plus(self, duration: Duration) -> Self {
        let millis = duration.as_secs().saturating_mul(1000);
        Self(
            self.0
                .saturating_add(millis)
                .saturating_add(duration.subsec_millis() as u64),
        )
    }

    /// The time after whole seconds; saturates.
    #[must_use]
    pub const fn plus_secs(self, seconds: u32) -> Self {
        Self(self.0.saturating_add(seconds as u64 * 1000))
    }

    /// Time passed since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Seconds from `earlier` until this time, rounded up; 0 if `earlier` is later.
    pub fn secs_from(self, earlier: Self) -> u32 {
        let millis = self.0.saturating_sub(earlier.0);
        u32::try_from(millis.div_ceil(1000)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_started_second_counts_in_full() {
        let at = Time::from_millis(10_000);
        let left = |now| at.secs_from(Time::from_millis(now));
        assert_eq!([left(0), left(1), left(1000), left(9999)], [10, 10, 9, 1]);
        assert_eq!([left(10_000), left(20_000)], [0, 0]);
    }

    #[test]
    fn the_latest_time_saturates() {
        let end = Time::from_millis(u64::MAX);
        assert_eq!(end.plus_secs(1), end);
        assert_eq!(end.plus(Duration::MAX), end);
        assert_eq!(end.secs_from(Time::default()), u32::MAX);
        assert_eq!(Time::default().since(end), Duration::ZERO);
    }
}
