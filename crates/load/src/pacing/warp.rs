//! Changes of the whole load while a run is under way: a pause, a tenth more or less.
//!
//! The load has its own time, in which the offsets of the messages never change. A warp maps that
//! time to the real one; sender and receiver with the same changes agree exactly.

use serde::{Deserialize, Serialize};

/// Changes of one run at most: a person's doing, one a second for more than an hour.
pub const WARP_CHANGES_MAX: usize = 4_096;

/// The load runs at most this many times as fast as planned.
pub const WARP_FACTOR_MAX: f64 = 1_000.0;

/// The factor of a load that runs as planned: parts per million.
const UNIT_PPM: u64 = 1_000_000;

/// The mapping of the load's time to the real time, both in nanoseconds from the start of the load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warp {
    /// Ascending in both times.
    changes: Vec<Change>,
}

/// From a point in time on the load runs at another speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Change {
    real_ns: u64,
    virtual_ns: u64,
    factor_ppm: u64,
}

/// Why a change is refused.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum WarpError {
    /// Not a number, negative, or too big.
    #[error(
        "factor {0} is impossible: use 0 for a pause, up to {WARP_FACTOR_MAX} for a faster load"
    )]
    Factor(f64),
    /// Before an earlier change.
    #[error("a change at {at_ns} ns comes too late: the load has changed at {last_ns} ns")]
    Late {
        /// When it was to take place.
        at_ns: u64,
        /// The last change.
        last_ns: u64,
    },
    /// [`WARP_CHANGES_MAX`] is reached.
    #[error("the load has changed {WARP_CHANGES_MAX} times: start another run for more")]
    Full,
}

impl Warp {
    /// Speed of the load at a time, in parts per million of the planned one; 0 in a pause.
    pub fn factor_ppm(&self, real_ns: u64) -> u64 {
        let after = self
            .changes
            .partition_point(|change| change.real_ns <= real_ns);
        let change = after.checked_sub(1).and_then(|last| self.changes.get(last));
        change.map_or(UNIT_PPM, |change| change.factor_ppm)
    }

    /// The load runs as planned.
    pub const fn identity() -> Self {
        Self {
            changes: Vec::new(),
        }
    }

    /// Whether the load has run as planned so far.
    pub const fn is_identity(&self) -> bool {
        self.changes.is_empty()
    }

    /// From a point in time on, the load runs at `factor` times its planned rate, 0 being a pause.
    ///
    /// Both sides must know of it before that time. A second change at the same time replaces the
    /// first.
    ///
    /// # Errors
    /// The factor is impossible, the time is before the last change, or there were too many
    /// changes.
    pub fn change(&mut self, at_real_ns: u64, factor: f64) -> Result<(), WarpError> {
        if !(0.0..=WARP_FACTOR_MAX).contains(&factor) {
            return Err(WarpError::Factor(factor));
        }
        let last_ns = self.changes.last().map_or(0, |change| change.real_ns);
        if at_real_ns < last_ns {
            return Err(WarpError::Late {
                at_ns: at_real_ns,
                last_ns,
            });
        }
        let change = Change {
            real_ns: at_real_ns,
            virtual_ns: self.virtual_ns(at_real_ns),
            factor_ppm: thrum_figures::whole(factor * thrum_figures::fraction(UNIT_PPM)),
        };
        self.changes.pop_if(|last| last.real_ns == at_real_ns);
        if self.changes.len() >= WARP_CHANGES_MAX {
            return Err(WarpError::Full);
        }
        self.changes.push(change);
        Ok(())
    }

    /// The first real time that maps to the load's time; `u64::MAX` if there is none.
    pub fn real_ns(&self, virtual_ns: u64) -> u64 {
        // The last change before that time of the load: a pause exactly there is not waited for.
        let change = self.last(|change| change.virtual_ns < virtual_ns);
        let elapsed = u128::from(virtual_ns.saturating_sub(change.virtual_ns));
        if elapsed == 0 {
            return change.real_ns;
        }
        if change.factor_ppm == 0 {
            return u64::MAX;
        }
        let real = (elapsed * u128::from(UNIT_PPM)).div_ceil(u128::from(change.factor_ppm));
        u64::try_from(real).map_or(u64::MAX, |real| real.saturating_add(change.real_ns))
    }

    /// The load's time at a real time.
    pub fn virtual_ns(&self, real_ns: u64) -> u64 {
        let change = self.last(|change| change.real_ns <= real_ns);
        let elapsed = u128::from(real_ns.saturating_sub(change.real_ns));
        let elapsed = elapsed * u128::from(change.factor_ppm) / u128::from(UNIT_PPM);
        u64::try_from(elapsed).map_or(u64::MAX, |elapsed| {
            elapsed.saturating_add(change.virtual_ns)
        })
    }

    /// The first change after a real time; `u64::MAX` if there is none.
    pub fn next_change_ns(&self, real_ns: u64) -> u64 {
        let after = self
            .changes
            .partition_point(|change| change.real_ns <= real_ns);
        self.changes
            .get(after)
            .map_or(u64::MAX, |change| change.real_ns)
    }

    /// The part of the load that is due before a real time: messages due within this span of the
    /// load's time.
    pub fn virtual_span_ns(&self, real_ns: u64) -> u64 {
        real_ns
            .checked_sub(1)
            .map_or(0, |last_ns| self.virtual_ns(last_ns).saturating_add(1))
    }

    /// The last change that fulfils a condition, which the first ones do; the start of the load if
    /// none does.
    fn last(&self, is_reached: impl Fn(&Change) -> bool) -> Change {
        let reached = self.changes.partition_point(is_reached);
        let last = reached
            .checked_sub(1)
            .and_then(|last| self.changes.get(last));
        last.copied().unwrap_or(Change {
            real_ns: 0,
            virtual_ns: 0,
            factor_ppm: UNIT_PPM,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn warp(changes: &[(u64, f64)]) -> Warp {
        let mut warp = Warp::identity();
        for (at_ns, factor) in changes {
            warp.change(*at_ns, *factor).unwrap();
        }
        warp
    }

    #[test]
    fn the_next_change_is_the_first_one_to_come() {
        let warp = warp(&[(SECOND, 0.0), (3 * SECOND, 1.0)]);
        for (at_ns, next_ns) in [
            (0, SECOND),
            (SECOND - 1, SECOND),
            (SECOND, 3 * SECOND),
            (3 * SECOND, u64::MAX),
        ] {
            assert_eq!(warp.next_change_ns(at_ns), next_ns);
        }
        assert_eq!(Warp::identity().next_change_ns(0), u64::MAX);
    }

    #[test]
    fn a_load_without_changes_runs_as_planned() {
        let warp = Warp::identity();
        assert!(warp.is_identity());
        for ns in [0, 1, SECOND, u64::MAX] {
            assert_eq!((warp.real_ns(ns), warp.virtual_ns(ns)), (ns, ns));
            assert_eq!(warp.virtual_span_ns(ns), ns);
        }
    }

    #[test]
    fn a_pause_stops_the_load_until_it_is_over() {
        let mut warp = warp(&[(10 * SECOND, 0.0)]);
        assert!(!warp.is_identity());
        assert_eq!(warp.real_ns(10 * SECOND), 10 * SECOND);
        assert_eq!(warp.real_ns(10 * SECOND + 1), u64::MAX);
        assert_eq!(warp.virtual_ns(25 * SECOND), 10 * SECOND);
        warp.change(30 * SECOND, 1.0).unwrap();
        assert_eq!(warp.real_ns(10 * SECOND), 10 * SECOND);
        assert_eq!(warp.real_ns(11 * SECOND), 31 * SECOND);
        assert_eq!(warp.virtual_ns(31 * SECOND), 11 * SECOND);
    }

    #[test]
    fn a_tenth_more_load_takes_a_tenth_less_time() {
        let warp = warp(&[(SECOND, 1.1), (2 * SECOND, 0.5)]);
        assert_eq!(warp.virtual_ns(2 * SECOND), 2_100_000_000);
        assert_eq!(warp.real_ns(2_100_000_000), 2 * SECOND);
        assert_eq!(warp.virtual_ns(4 * SECOND), 3_100_000_000);
    }

    #[test]
    fn a_second_change_at_the_same_time_replaces_the_first() {
        assert_eq!(
            warp(&[(5, 2.0), (9, 0.0), (9, 3.0)]),
            warp(&[(5, 2.0), (9, 3.0)])
        );
    }

    #[test]
    fn impossible_changes_are_refused_and_change_nothing() {
        let mut warp = warp(&[(10, 2.0)]);
        let before = warp.clone();
        for factor in [-0.1, f64::NAN, f64::INFINITY, WARP_FACTOR_MAX * 1.01] {
            assert!(matches!(warp.change(20, factor), Err(WarpError::Factor(_))));
        }
        let late = WarpError::Late {
            at_ns: 9,
            last_ns: 10,
        };
        assert_eq!(warp.change(9, 1.0), Err(late));
        assert_eq!(warp, before);
    }

    #[test]
    fn no_more_changes_than_the_limit() {
        let mut warp = Warp::identity();
        for at_ns in (0..).take(WARP_CHANGES_MAX) {
            warp.change(at_ns, 2.0).unwrap();
        }
        let last_ns = u64::try_from(WARP_CHANGES_MAX).unwrap() - 1;
        assert_eq!(warp.change(last_ns, 1.0), Ok(()));
        assert_eq!(warp.change(last_ns + 1, 1.0), Err(WarpError::Full));
    }

    #[test]
    fn the_other_side_reads_the_same_warp() {
        let warp = warp(&[(7, 1.1), (1_000, 0.0), (2_000, 0.9)]);
        let text = serde_json::to_string(&warp).unwrap();
        assert_eq!(serde_json::from_str::<Warp>(&text).unwrap(), warp);
    }

    proptest! {
        #[test]
        fn both_directions_agree(
            steps in prop::collection::vec((0..SECOND, 0_u32..30), 0..8),
            times in prop::collection::vec(0..10 * SECOND, 1..50),
        ) {
            let mut warp = Warp::identity();
            let mut at_ns = 0;
            for (step_ns, tenths) in steps {
                at_ns += step_ns;
                warp.change(at_ns, f64::from(tenths) / 10.0).unwrap();
            }
            let mut times = times;
            times.sort_unstable();
            for pair in times.windows(2) {
                prop_assert!(warp.real_ns(pair[0]) <= warp.real_ns(pair[1]));
                prop_assert!(warp.virtual_ns(pair[0]) <= warp.virtual_ns(pair[1]));
            }
            for at_ns in times {
                prop_assert!(warp.real_ns(warp.virtual_ns(at_ns)) <= at_ns);
                let real_ns = warp.real_ns(at_ns);
                if real_ns < u64::MAX {
                    // The first real time that maps to the load's time.
                    prop_assert!(warp.virtual_ns(real_ns) >= at_ns);
                    prop_assert!(real_ns == 0 || warp.virtual_ns(real_ns - 1) < at_ns);
                }
                // A message is within the span of a real time if it is sent before that time.
                let span_ns = warp.virtual_span_ns(real_ns);
                prop_assert!(span_ns <= at_ns || real_ns == u64::MAX);
                let later_ns = real_ns.saturating_add(1);
                prop_assert!(warp.virtual_span_ns(later_ns) > at_ns || real_ns == u64::MAX);
            }
        }
    }
}
