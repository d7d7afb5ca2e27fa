//! Masking keys.

/// Masking keys of one connection, xorshift64* from a random seed.
///
/// RFC 6455 section 10.3 demands keys that a script cannot foresee, so that no script of a web page
/// chooses the bytes that a proxy sees. The caller of this crate chooses all bytes itself, so keys
/// need only differ, and a generator writes millions of frames a second.
#[derive(Clone, Debug)]
pub(super) struct MaskKeys {
    state: u64,
}

impl MaskKeys {
    pub(super) fn new(seed: [u8; 8]) -> Self {
        // Zero would stay zero.
        Self {
            state: u64::from_ne_bytes(seed) | 1,
        }
    }

    pub(super) fn next(&mut self) -> [u8; 4] {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let [a, b, c, d, ..] = self.state.wrapping_mul(0x2545_F491_4F6C_DD1D).to_be_bytes();
        [a, b, c, d]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_differ_from_any_seed() {
        for seed in [[0; 8], [0xFF; 8], [1, 2, 3, 4, 5, 6, 7, 8]] {
            let mut keys = MaskKeys::new(seed);
            let drawn: HashSet<[u8; 4]> = (0..1000).map(|_| keys.next()).collect();
            assert_eq!(drawn.len(), 1000);
        }
    }
}
