//! What a few trials or rounds prove, whatever the distribution behind them.

/// The confidence that is aimed at.
pub(super) const CONFIDENCE: f64 = 0.95;

/// The part of all trials that holds at least, with 95 % confidence, when each of `trials` did: the
/// lower limit of Clopper and Pearson, which has this closed form where all agree.
pub(super) fn part_of_all(trials: u32) -> f64 {
    (1.0 - CONFIDENCE).powf(1.0 / f64::from(trials.max(1)))
}

/// An interval for the median of a distribution, from values drawn from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MedianInterval {
    /// Values at each side that are outside it, of those in order.
    pub(super) outside: usize,
    /// The share of such intervals that contain the median, at least.
    pub(super) confidence: f64,
}

/// The shortest interval from one of `values` values in order to another with at least 95 %
/// confidence; else that from the least to the greatest value, with what confidence it has.
///
/// The median is below the least value only if all draws are above it, each with a chance of one
/// half; so no distribution has to be assumed.
pub(super) fn median_interval(values: u32) -> MedianInterval {
    let all = f64::from(values);
    // The chance that exactly `number` values are above the median, and that at most so many are.
    let mut exactly = 0.5_f64.powi(i32::try_from(values).unwrap_or(i32::MAX));
    let (mut at_most, mut outside) = (exactly, 0);
    let mut confidence = (1.0 - 2.0 * at_most).max(0.0);
    for number in 1..=values / 2 {
        exactly *= (all - f64::from(number) + 1.0) / f64::from(number);
        at_most += exactly;
        let narrower = 1.0 - 2.0 * at_most;
        if narrower < CONFIDENCE {
            break;
        }
        (confidence, outside) = (narrower, number as usize);
    }
    MedianInterval {
        outside,
        confidence,
    }
}

/// Rounds from which on there is an interval with 95 % confidence.
pub(super) const ROUNDS_FOR_CONFIDENCE: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_confidence_of_rounds_is_that_of_the_order_of_their_values() {
        for (values, outside, confidence) in [
            (1, 0, 0.0),
            (2, 0, 0.5),
            (3, 0, 0.75),
            (5, 0, 0.9375),
            (6, 0, 0.968_75),
            (8, 0, 0.992_187_5),
            (9, 1, 0.960_937_5),
            (12, 2, 0.961_425_781_25),
            (20, 5, 0.958_610_534_667_968_8),
        ] {
            let found = median_interval(values);
            assert_eq!(found.outside, outside, "{values}");
            assert!((found.confidence - confidence).abs() < 1e-12, "{values}");
        }
        assert!(median_interval(ROUNDS_FOR_CONFIDENCE).confidence >= CONFIDENCE);
        assert!(median_interval(ROUNDS_FOR_CONFIDENCE - 1).confidence < CONFIDENCE);
    }

    #[test]
    fn a_hundred_rounds_are_no_overflow() {
        let found = median_interval(100);
        assert_eq!(found.outside, 39);
        assert!((CONFIDENCE..0.97).contains(&found.confidence));
    }

    #[test]
    fn agreeing_trials_prove_a_part_that_grows_with_their_number() {
        for (trials, part) in [(1, 0.05), (3, 0.368_403), (4, 0.472_870), (20, 0.860_891)] {
            assert!((part_of_all(trials) - part).abs() < 1e-6, "{trials}");
        }
    }
}
