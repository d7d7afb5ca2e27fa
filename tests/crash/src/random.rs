//! Numbers that look random and follow from the seed of a run.

/// A generator (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts with a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below the bound.
    ///
    /// # Panics
    /// The bound is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// True in this many of a thousand cases.
    pub fn permille(&mut self, cases: u64) -> bool {
        self.below(1_000) < cases
    }

    /// One of some values.
    ///
    /// # Panics
    /// There is none.
    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        let count = u64::try_from(values.len()).expect("lengths fit");
        let index = usize::try_from(self.below(count)).expect("it is below a length");
        values[index]
    }
}
