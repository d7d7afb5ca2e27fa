//! Bytes that look random and are the same in every run.

/// A small generator (xorshift); its seed is in the name of the test that uses it.
#[derive(Clone, Debug)]
pub struct Noise(u64);

impl Noise {
    /// Starts with a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below the bound.
    ///
    /// # Panics
    /// The bound is zero.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("lengths fit");
        usize::try_from(self.number() % bound).expect("it is below a length")
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        self.number().to_le_bytes()[0]
    }

    /// Many bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    /// The bytes with one to four small accidents: a bit flipped, a byte set, lost or doubled.
    pub fn spoil(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut spoiled = bytes.to_vec();
        for _ in 0..=self.below(4) {
            if spoiled.is_empty() {
                return spoiled;
            }
            let at = self.below(spoiled.len());
            match self.below(4) {
                0 => spoiled[at] ^= 1 << self.below(8),
                1 => spoiled[at] = self.byte(),
                2 => drop(spoiled.remove(at)),
                _ => spoiled.insert(at, spoiled[at]),
            }
        }
        spoiled
    }
}
