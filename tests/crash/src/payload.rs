//! Payloads that identify their message and reveal a changed byte.

use crate::event::MessageNumber;
use crate::random::Random;

/// Smallest payload: number and check.
pub const BYTES_MIN: usize = 16;

/// The payload of a message, with a length of at least [`BYTES_MIN`].
pub fn payload(number: MessageNumber, bytes: usize) -> Vec<u8> {
    let bytes = bytes.max(BYTES_MIN);
    let mut payload = number.to_be_bytes().to_vec();
    let mut random = Random::new(number ^ (bytes as u64).rotate_left(32));
    while payload.len() < bytes {
        payload.extend(random.number().to_be_bytes());
    }
    payload.truncate(bytes);
    payload
}

/// The message of a payload; none if it was never sent in this form.
pub fn number_of(bytes: &[u8]) -> Option<MessageNumber> {
    let number = u64::from_be_bytes(*bytes.first_chunk()?);
    (payload(number, bytes.len()) == bytes).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_tells_its_number() {
        for bytes in [0, 16, 17, 4096] {
            assert_eq!(number_of(&payload(77, bytes)), Some(77), "{bytes}");
        }
    }

    #[test]
    fn changed_byte_is_noticed() {
        let good = payload(5, 600);
        for at in [0, 7, 8, 300, 599] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert_eq!(number_of(&bad), None, "{at}");
        }
        assert_eq!(number_of(&good[..599]), None);
        assert_eq!(number_of(b"short"), None);
    }
}
