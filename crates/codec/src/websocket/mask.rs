//! Masking of a payload, RFC 6455 section 5.3.

/// Masks or unmasks a part of a payload that starts at offset `position` of the frame's payload.
///
/// It processes eight bytes at a time; applied twice with the same key and position, it restores
/// the bytes.
#[inline]
pub fn apply_mask(mask: [u8; 4], position: u64, bytes: &mut [u8]) {
    let shift = usize::try_from(position % 4).unwrap_or_default();
    let mut key = mask;
    key.rotate_left(shift);
    let [a, b, c, d] = key;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip([a, b, c, d, a, b, c]) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn every_length_and_position_is_masked_byte_by_byte() {
        let mask = [0x37, 0xFA, 0x21, 0x3D];
        for position in 0..9_u8 {
            for len in 0..40_u8 {
                let original: Vec<u8> = (0..len).collect();
                let expected: Vec<u8> = (0..len)
                    .map(|index| index ^ mask[usize::from((position + index) % 4)])
                    .collect();
                let mut bytes = original.clone();
                apply_mask(mask, u64::from(position), &mut bytes);
                assert_eq!(bytes, expected, "position {position}, length {len}");
                apply_mask(mask, u64::from(position), &mut bytes);
                assert_eq!(bytes, original);
            }
        }
    }
}
