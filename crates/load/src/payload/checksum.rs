//! The checksum of a text, because what its places are filled with is known to the publisher alone.

/// Digits of a checksum.
pub(super) const CHECKSUM_DIGITS: usize = 8;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Writes the checksum of a payload over the digits at a position; nothing if they do not fit.
pub(super) fn write(payload: &mut [u8], at: usize) {
    let digits = digits(payload, at);
    let place = payload
        .get_mut(at..)
        .and_then(|from| from.first_chunk_mut::<CHECKSUM_DIGITS>());
    if let Some((place, digits)) = place.zip(digits) {
        *place = digits;
    }
}

/// Whether the digits at a position are the checksum of a payload.
pub(super) fn is_right(payload: &[u8], at: usize) -> bool {
    let read = payload
        .get(at..)
        .and_then(|from| from.first_chunk::<CHECKSUM_DIGITS>().copied());
    read.is_some() && read == digits(payload, at)
}

/// CRC-32C of all bytes, the mark included, except the digits of the checksum itself.
fn digits(payload: &[u8], at: usize) -> Option<[u8; CHECKSUM_DIGITS]> {
    let (before, from) = payload.split_at_checked(at)?;
    let behind = from.get(CHECKSUM_DIGITS..)?;
    let mut rest = crc32c::crc32c_append(crc32c::crc32c(before), behind);
    Some(std::array::from_fn(|_| {
        rest = rest.rotate_left(4);
        DIGITS[usize::try_from(rest & 15).unwrap_or(0)]
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_text_is_the_one_of_its_other_bytes() {
        // The check value of CRC-32C.
        let mut text = *b"1234________56789";
        write(&mut text, 4);
        assert_eq!(&text, b"1234e306928356789");
        assert!(is_right(&text, 4));
        assert!(!is_right(&text, 5));
    }

    #[test]
    fn a_text_that_ends_within_its_checksum_is_wrong() {
        let mut text = *b"1234________";
        write(&mut text, 4);
        assert!(is_right(&text, 4));
        for length in 0..text.len() {
            assert!(!is_right(&text[..length], 4), "{length}");
        }
    }
}
