//! Rates in turn, each for an equal part of the hold.

use super::curve::{Part, Speed};
use crate::scenario::Rate;

/// Steps of one load at most: a second for each in a quarter of an hour. Later ones are left out.
pub const STEPS_MAX: usize = 1_024;

/// The parts of a load: the first rate also in the warm-up, the last one after the hold.
pub(super) fn parts(rates: &[Rate], warm_up_ns: u64, hold_ns: u64) -> Vec<Part> {
    let rates = &rates[..rates.len().min(STEPS_MAX)];
    let steps = u128::try_from(rates.len()).unwrap_or(1).max(1);
    let mut start_ns = 0;
    let ends = (1..).map(|step: u128| {
        let held_ns = u128::from(hold_ns) * step.min(steps) / steps;
        warm_up_ns + u64::try_from(held_ns).unwrap_or(hold_ns)
    });
    let placed = rates.iter().zip(ends).map(|(rate, end_ns)| {
        let length_ns = end_ns - start_ns;
        start_ns = end_ns;
        Part {
            length_ns,
            speed: even(*rate),
        }
    });
    placed.collect()
}

/// A rate that stays.
pub(super) fn even(rate: Rate) -> Speed {
    Speed::Even {
        period_ns: period_ns(rate),
    }
}

/// The period of a rate within the limits.
pub(super) fn period_ns(rate: Rate) -> u64 {
    rate.period_ns.clamp(1, Rate::PERIOD_NS_MAX)
}
