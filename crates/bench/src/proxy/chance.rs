//! Repeatable randomness: SplitMix64.

use thrum_figures::{fraction, whole};

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub(super) struct Chance {
    state: u64,
}

impl Chance {
    pub(super) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Any number.
    const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A time within `spread_ns` of `mean_ns`, all alike likely; never below 0.
    pub(super) fn around(&mut self, mean_ns: u64, spread_ns: u64) -> u64 {
        if spread_ns == 0 {
            return mean_ns;
        }
        let width = spread_ns.saturating_mul(2).saturating_add(1);
        mean_ns
            .saturating_add(self.next() % width)
            .saturating_sub(spread_ns)
    }

    /// A time with this mean, exponentially distributed: an event as likely in any moment as in any
    /// other.
    pub(super) fn lifetime(&mut self, mean_ns: u64) -> u64 {
        const STEPS: u64 = 1 << 53;
        // More than 0 and at most 1.
        let part = fraction(self.next() % STEPS + 1) / fraction(STEPS);
        whole(-part.ln() * fraction(mean_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_stay_within_their_spread_and_reach_its_ends() {
        let mut chance = Chance::new(1);
        let times: Vec<u64> = (0..1_000).map(|_| chance.around(10, 3)).collect();
        assert_eq!(times.iter().min(), Some(&7));
        assert_eq!(times.iter().max(), Some(&13));
        assert_eq!(chance.around(10, 0), 10);
        assert!((0..1_000).all(|_| chance.around(1, 5) <= 6));
    }

    #[test]
    fn lifetimes_have_their_mean() {
        let mut chance = Chance::new(2);
        let sum: u64 = (0..10_000).map(|_| chance.lifetime(1_000_000)).sum();
        let mean = sum / 10_000;
        assert!((950_000..1_050_000).contains(&mean), "{mean}");
    }

    #[test]
    fn a_seed_repeats_its_numbers() {
        let draw = |seed| {
            let mut chance = Chance::new(seed);
            [chance.next(), chance.next(), chance.next()]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
