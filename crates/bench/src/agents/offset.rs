//! The offset of the coordinator's clock from this machine's, and its error.
//!
//! ```text
//!   asked (here) --> received (there), answered (there) --> heard (here)
//! ```
//!
//! The difference lies between `answered - heard` and `received - asked`, however the delays of the
//! two directions differ, because no direction takes less than zero time.

use thrum_figures::SECOND_NS;

/// Largest drift between two clocks in parts per million: two crystals of ±100 each. A clock under
/// correction drifts more, which the next exchange shows.
const DRIFT_PPM: u64 = 200;

/// Times of one exchange in nanoseconds, each of the clock of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_field_names,
    reason = "a time without its unit is worse"
)]
pub(super) struct Exchange {
    /// When this machine asked.
    pub(super) asked_ns: u64,
    /// When the coordinator received that.
    pub(super) received_ns: u64,
    /// When it answered.
    pub(super) answered_ns: u64,
    /// When this machine had the answer.
    pub(super) heard_ns: u64,
}

/// The coordinator's clock minus this machine's lies in here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    low_ns: i64,
    high_ns: i64,
}

/// The offset that times are given with, and the greatest error that it had so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockEstimate {
    /// The coordinator's clock minus this machine's. It never changes: time must not jump within a
    /// run.
    offset_ns: i64,
    /// Error of the offset at the best exchange.
    error_ns: u64,
    /// When that was.
    at_ns: u64,
    /// The greatest error since the load began.
    error_ns_max: u64,
}

impl Exchange {
    /// Time on the way there and back; none if the times contradict each other.
    fn round_trip_ns(&self) -> Option<u64> {
        let away_ns = self.heard_ns.checked_sub(self.asked_ns)?;
        let there_ns = self.answered_ns.checked_sub(self.received_ns)?;
        away_ns.checked_sub(there_ns)
    }

    fn range(&self) -> Range {
        Range {
            low_ns: difference(self.answered_ns, self.heard_ns),
            high_ns: difference(self.received_ns, self.asked_ns),
        }
    }
}

impl Range {
    const fn middle_ns(self) -> i64 {
        self.low_ns + (self.high_ns - self.low_ns) / 2
    }

    /// Largest error of an offset.
    fn error_of(self, offset_ns: i64) -> u64 {
        let low = self.low_ns.abs_diff(offset_ns);
        low.max(self.high_ns.abs_diff(offset_ns))
    }

    /// Whether an offset with this error is possible.
    const fn allows(self, offset_ns: i64, error_ns: u64) -> bool {
        self.low_ns <= offset_ns.saturating_add_unsigned(error_ns)
            && self.high_ns >= offset_ns.saturating_sub_unsigned(error_ns)
    }
}

impl ClockEstimate {
    /// Takes the exchange with the shortest delay; none without a valid one.
    pub(super) fn from_exchanges(exchanges: &[Exchange]) -> Option<Self> {
        let possible = exchanges
            .iter()
            .filter_map(|exchange| Some((exchange.round_trip_ns()?, exchange)));
        let (_, best) = possible.min_by_key(|(round_trip_ns, _)| *round_trip_ns)?;
        let offset_ns = best.range().middle_ns();
        let error_ns = best.range().error_of(offset_ns);
        Some(Self {
            offset_ns,
            error_ns,
            at_ns: best.heard_ns,
            error_ns_max: error_ns,
        })
    }

    /// Takes a further exchange into account: for the error, not for the offset.
    pub(super) fn enter(&mut self, exchange: &Exchange) {
        if exchange.round_trip_ns().is_none() {
            return;
        }
        let range = exchange.range();
        let aged_ns = self.error_at(exchange.heard_ns);
        let error_ns = range.error_of(self.offset_ns);
        let has_jumped = !range.allows(self.offset_ns, aged_ns);
        self.error_ns_max = self.error_ns_max.max(aged_ns);
        if has_jumped || error_ns <= aged_ns {
            (self.error_ns, self.at_ns) = (error_ns, exchange.heard_ns);
            self.error_ns_max = self.error_ns_max.max(error_ns);
        }
    }

    /// The load begins: errors before this do not matter to any message.
    pub(super) fn begin(&mut self, now_ns: u64) {
        self.error_ns_max = self.error_at(now_ns);
    }

    /// The coordinator's clock minus this machine's.
    pub(super) const fn offset_ns(&self) -> i64 {
        self.offset_ns
    }

    /// Largest error of the offset until a time of this machine's clock.
    pub(super) fn error_ns_until(&self, now_ns: u64) -> u64 {
        self.error_ns_max.max(self.error_at(now_ns))
    }

    /// A time of this machine's clock on the coordinator's.
    pub(super) const fn coordinators_ns(&self, here_ns: u64) -> u64 {
        here_ns.saturating_add_signed(self.offset_ns)
    }

    /// The best exchange grows old.
    fn error_at(&self, now_ns: u64) -> u64 {
        let age_ns = now_ns.saturating_sub(self.at_ns);
        let drift_ns = u128::from(age_ns) * u128::from(DRIFT_PPM) / 1_000_000;
        self.error_ns
            .saturating_add(u64::try_from(drift_ns).unwrap_or(SECOND_NS))
    }
}

/// Saturates; a difference of 292 years is meaningless.
fn difference(left_ns: u64, right_ns: u64) -> i64 {
    let distance = i64::try_from(left_ns.abs_diff(right_ns)).unwrap_or(i64::MAX);
    if left_ns >= right_ns {
        distance
    } else {
        -distance
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    /// An exchange between clocks with this difference and these delays there and back.
    fn exchange(at_ns: u64, truth_ns: i64, (there_ns, back_ns): (u64, u64)) -> Exchange {
        let received_ns = (at_ns + there_ns).saturating_add_signed(truth_ns);
        let answered_ns = received_ns + 30_000;
        Exchange {
            asked_ns: at_ns,
            received_ns,
            answered_ns,
            heard_ns: at_ns + there_ns + 30_000 + back_ns,
        }
    }

    fn is_within(estimate: &ClockEstimate, truth_ns: i64, now_ns: u64) -> bool {
        estimate.offset_ns().abs_diff(truth_ns) <= estimate.error_ns_until(now_ns)
    }

    #[test]
    fn the_exchange_with_the_shortest_way_counts() {
        let exchanges = [
            exchange(100 * MS, 5 * MS.cast_signed(), (9 * MS, MS)),
            exchange(200 * MS, 5 * MS.cast_signed(), (MS / 10, MS / 10)),
            exchange(300 * MS, 5 * MS.cast_signed(), (MS, 9 * MS)),
        ];
        let estimate = ClockEstimate::from_exchanges(&exchanges).unwrap();
        assert_eq!(estimate.offset_ns(), 5 * MS.cast_signed());
        assert_eq!(estimate.error_ns_until(200 * MS), MS / 10);
    }

    #[test]
    fn without_a_sound_exchange_there_is_no_estimate() {
        assert_eq!(ClockEstimate::from_exchanges(&[]), None);
        let backwards = Exchange {
            asked_ns: 10,
            received_ns: 5,
            answered_ns: 4,
            heard_ns: 9,
        };
        assert_eq!(ClockEstimate::from_exchanges(&[backwards]), None);
    }

    #[test]
    fn the_error_grows_until_the_next_exchange_and_never_shrinks() {
        let mut estimate =
            ClockEstimate::from_exchanges(&[exchange(0, 0, (MS / 10, MS / 10))]).unwrap();
        let after_ns = 10_000 * MS;
        assert!(estimate.error_ns_until(after_ns) > 2 * MS - MS / 10);
        estimate.enter(&exchange(after_ns, 0, (MS / 100, MS / 100)));
        assert!(estimate.error_ns_until(after_ns) > 2 * MS - MS / 10);
        assert_eq!(estimate.offset_ns(), 0);
    }

    #[test]
    fn errors_before_the_load_do_not_count() {
        let mut estimate =
            ClockEstimate::from_exchanges(&[exchange(0, 0, (MS / 10, MS / 10))]).unwrap();
        let after_ns = 10_000 * MS;
        estimate.enter(&exchange(after_ns, 0, (MS / 100, MS / 100)));
        estimate.begin(after_ns + MS);
        assert!(estimate.error_ns_until(after_ns + MS) < MS / 50);
    }

    #[test]
    fn a_clock_that_was_set_shows_in_the_error() {
        let mut estimate = ClockEstimate::from_exchanges(&[exchange(0, 0, (10, 10))]).unwrap();
        let jumped_ns = 50 * MS.cast_signed();
        estimate.enter(&exchange(MS, jumped_ns, (2 * MS, 2 * MS)));
        assert_eq!(estimate.offset_ns(), 0);
        assert!(is_within(&estimate, jumped_ns, 6 * MS));
    }

    proptest! {
        #[test]
        fn the_error_always_contains_the_truth(
            truth_ns in -1_000_000_000_000_i64..1_000_000_000_000,
            drift_ppm in -200_i64..200,
            delays in prop::collection::vec((0_u64..50 * MS, 0_u64..50 * MS), 1..60),
        ) {
            let start_ns = 10_000_000 * MS;
            let truth_at = |at_ns: u64| {
                let age = i64::try_from(at_ns - start_ns).unwrap();
                truth_ns + age / 1_000_000 * drift_ppm
            };
            let mut estimate: Option<ClockEstimate> = None;
            for (number, delay) in (0_u64..).zip(delays) {
                let at_ns = start_ns + number * 250 * MS;
                let exchange = exchange(at_ns, truth_at(at_ns), delay);
                match &mut estimate {
                    None => estimate = ClockEstimate::from_exchanges(&[exchange]),
                    Some(estimate) => estimate.enter(&exchange),
                }
                let now_ns = at_ns + 200 * MS;
                // Within an exchange the clocks drift too: by 20 microseconds in 100 ms.
                let estimate = estimate.unwrap();
                let error_ns = estimate.offset_ns().abs_diff(truth_at(now_ns));
                prop_assert!(error_ns <= estimate.error_ns_until(now_ns) + 40_000);
            }
        }
    }
}
