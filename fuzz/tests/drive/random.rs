//! Random numbers from a seed.

/// SplitMix64: one seed, one sequence.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("64 bits");
        usize::try_from(self.number() % bound).expect("below a usize")
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.number().to_le_bytes()[0]
    }

    /// Bytes of any value.
    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.byte()).collect()
    }

    /// Bytes that are mostly small: as decisions they yield simple packets with low identifiers.
    pub(crate) fn small_bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len)
            .map(|_| {
                if self.below(8) == 0 {
                    self.byte()
                } else {
                    self.byte() & 3
                }
            })
            .collect()
    }
}
