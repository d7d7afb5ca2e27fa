//! The beginning of every payload: publisher, sequence number and send time.
//!
//! The intended send time is not carried: it follows from publisher and sequence (open loop).
//!
//! A mark is sixteen bytes, or the same bytes as 32 lower-case hexadecimal digits: at the start of
//! a text (`thrum:<digits> `) or as the first member of a JSON object (`{"thrum":"<digits>"`). In a
//! text, the digits of a checksum follow them.
//!
//! | bits | content |
//! |---|---|
//! | 2 | 0, so that no text begins like it |
//! | 6 | checksum of the mark, first half |
//! | 24 | publisher |
//! | 32 | sequence number |
//! | 1 | the broker held the message back |
//! | 6 | checksum of the mark, second half |
//! | 57 | send time, stamped with the run |

/// Bytes of a mark.
pub const MARK_BYTES: usize = 16;

/// Digits of a mark in a text.
pub const MARK_DIGITS: usize = 2 * MARK_BYTES;

/// Numbers of publishers are below this.
pub const PUBLISHERS_MAX: u32 = 1 << 24;

/// Bits of the send time with its stamp.
pub(crate) const STAMP_BITS: u32 = 57;

/// The first byte of a binary mark is below this, so that it cannot be taken for one in a text.
const FIRST_BYTE_MAX: u8 = b'@';

/// Text before the digits of a mark in a JSON object.
pub const JSON_PREFIX: &[u8] = b"{\"thrum\":\"";

/// Text before the digits of a mark in any other text.
pub const TEXT_PREFIX: &[u8] = b"thrum:";

const _: () = assert!(JSON_PREFIX[0] >= FIRST_BYTE_MAX && TEXT_PREFIX[0] >= FIRST_BYTE_MAX);
const _: () = assert!(crate::scenario::CLIENTS_MAX <= PUBLISHERS_MAX);

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The mark inside a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Number of the publisher in the run, from 0; below [`PUBLISHERS_MAX`].
    pub publisher: u32,
    /// Number of the message of this publisher, from 0.
    pub sequence: u32,
    /// When it was handed to the socket, as the plan stamps it; below 2^57.
    pub sent_ns: u64,
    /// The broker did not take it when it was due.
    pub was_held_back: bool,
}

/// Position of the publisher in the number that a mark is.
const PUBLISHER_AT: u32 = 96;
const SEQUENCE_AT: u32 = 64;
const HELD_BACK: u128 = 1 << 63;
/// Positions of the halves of the checksum, and the bits of each.
const CHECKSUM_AT: [u32; 2] = [120, STAMP_BITS];
const HALF: u128 = 0x3F;
const CHECKSUM: u128 = HALF << CHECKSUM_AT[0] | HALF << CHECKSUM_AT[1];
const STAMP: u128 = (1 << STAMP_BITS) - 1;

impl Mark {
    /// Writes the mark over the first bytes of a payload, if it is long enough.
    pub fn write(self, payload: &mut [u8]) {
        if let Some(head) = payload.first_chunk_mut::<MARK_BYTES>() {
            *head = self.number().to_be_bytes();
        }
    }

    /// Appends the mark as [`MARK_DIGITS`] digits.
    pub fn write_digits(self, text: &mut Vec<u8>) {
        let bytes = self.number().to_be_bytes();
        let pair = |byte: u8| [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
        text.extend(bytes.into_iter().flat_map(pair));
    }

    /// The bytes of a binary mark: payloads that have the same have the same mark, or both none.
    pub fn bytes_of(payload: &[u8]) -> Option<[u8; MARK_BYTES]> {
        let is_binary = *payload.first()? < FIRST_BYTE_MAX;
        payload.first_chunk().copied().filter(|_| is_binary)
    }

    /// Reads the mark of a payload, binary or in a text; none if it has none, or a changed one.
    pub fn read(payload: &[u8]) -> Option<Self> {
        if let Some(bytes) = Self::bytes_of(payload) {
            return Self::of_bytes(bytes);
        }
        let digits = payload
            .strip_prefix(JSON_PREFIX)
            .or_else(|| payload.strip_prefix(TEXT_PREFIX))?;
        let mut bytes = [0; MARK_BYTES];
        let pairs = digits.first_chunk::<MARK_DIGITS>()?.chunks_exact(2);
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        Self::of_bytes(bytes)
    }

    /// All bits of the mark.
    fn number(self) -> u128 {
        let held_back = if self.was_held_back { HELD_BACK } else { 0 };
        let number = u128::from(self.publisher % PUBLISHERS_MAX) << PUBLISHER_AT
            | u128::from(self.sequence) << SEQUENCE_AT
            | held_back
            | u128::from(self.sent_ns) & STAMP;
        number | checksum(number)
    }

    fn of_bytes(bytes: [u8; MARK_BYTES]) -> Option<Self> {
        let number = u128::from_be_bytes(bytes);
        let part = |at: u32| u32::try_from((number >> at) & 0xFFFF_FFFF).unwrap_or(0);
        let mark = Self {
            publisher: part(PUBLISHER_AT) % PUBLISHERS_MAX,
            sequence: part(SEQUENCE_AT),
            sent_ns: u64::try_from(number & STAMP).unwrap_or(0),
            was_held_back: number & HELD_BACK != 0,
        };
        (checksum(number & !CHECKSUM) == number & CHECKSUM).then_some(mark)
    }
}

/// The checksum of a mark in its place: twelve bits of the CRC-32C of the rest. No change of one or
/// two bits leaves it right.
fn checksum(number: u128) -> u128 {
    let sum = u128::from(crc32c::crc32c(&number.to_be_bytes()));
    (sum >> 6 & HALF) << CHECKSUM_AT[0] | (sum & HALF) << CHECKSUM_AT[1]
}

const fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: Mark = Mark {
        publisher: 7,
        sequence: u32::MAX,
        sent_ns: 1 << 56 | 0xABC,
        was_held_back: false,
    };

    #[test]
    fn a_mark_is_read_as_written() {
        let mut payload = [0xEE; 20];
        MARK.write(&mut payload);
        assert_eq!(Mark::read(&payload), Some(MARK));
        assert_eq!(payload[16..], [0xEE; 4]);
        let held_back = Mark {
            was_held_back: true,
            ..MARK
        };
        held_back.write(&mut payload);
        assert_eq!(Mark::read(&payload), Some(held_back));
    }

    #[test]
    fn a_mark_of_which_one_or_two_bits_were_changed_is_none() {
        let number = MARK.number();
        let pairs = (0..128).flat_map(|one| (one..128).map(move |other| 1 << one | 1 << other));
        for changed in pairs {
            let altered: u128 = number ^ changed;
            assert_eq!(Mark::read(&altered.to_be_bytes()), None, "{changed:x}");
        }
    }

    #[test]
    fn of_random_bytes_few_are_marks() {
        let mut state = 7_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let marks = (0..100_000).filter(|_| {
            let bytes = [(random() >> 2).to_be_bytes(), random().to_be_bytes()].concat();
            Mark::read(&bytes).is_some()
        });
        // One in 4,096 is.
        assert!(marks.count() < 60);
    }

    #[test]
    fn a_short_payload_has_no_mark() {
        for bytes in 0..MARK_BYTES {
            assert_eq!(Mark::read(&[0; MARK_BYTES][..bytes]), None);
        }
    }

    #[test]
    fn a_mark_in_a_text_is_read_as_written() {
        for prefix in [JSON_PREFIX, TEXT_PREFIX] {
            let mut payload = prefix.to_vec();
            MARK.write_digits(&mut payload);
            let digits = payload.split_at(prefix.len()).1;
            assert!(digits.ends_with(b"000abc") && digits[8..].starts_with(b"ffffffff"));
            assert_eq!(Mark::read(&payload), Some(MARK));
            payload.push(b'"');
            assert_eq!(Mark::read(&payload), Some(MARK));
        }
    }

    #[test]
    fn a_spoilt_mark_in_a_text_is_none() {
        let mut payload = TEXT_PREFIX.to_vec();
        MARK.write_digits(&mut payload);
        for (at, byte) in [(0, b'T'), (5, b';'), (6, b'F'), (37, b' ')] {
            let mut spoilt = payload.clone();
            spoilt[at] = byte;
            assert_eq!(Mark::read(&spoilt), None, "{byte} at {at}");
        }
        assert_eq!(Mark::read(&payload[..payload.len() - 1]), None);
        assert_eq!(Mark::read(b"{\"temperature\":21.5,\"unit\":\"C\"}"), None);
    }

    #[test]
    fn no_publisher_is_taken_for_a_text_or_the_other_way_round() {
        let binary = |publisher| {
            let mut payload = [b'x'; 64];
            Mark { publisher, ..MARK }.write(&mut payload);
            Mark::read(&payload).map(|mark| mark.publisher)
        };
        assert_eq!(binary(PUBLISHERS_MAX - 1), Some(PUBLISHERS_MAX - 1));
        for first in b'@'..=u8::MAX {
            let mut payload = [0; MARK_BYTES];
            MARK.write(&mut payload);
            payload[0] = first;
            assert_eq!(Mark::read(&payload), None, "{first}");
        }
        let mut text = TEXT_PREFIX.to_vec();
        text.extend([b'f'; MARK_DIGITS]);
        assert_eq!(Mark::read(&text), None);
    }
}
