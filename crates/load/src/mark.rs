//! The beginning of every payload: publisher, sequence number and send time.
//!
//! The intended send time is not carried: it follows from publisher and sequence (open loop).
//!
//! A mark is sixteen bytes, or the same bytes as 32 lower-case hexadecimal digits: at the start of
//! a text (`thrum:<digits> `) or as the first member of a JSON object (`{"thrum":"<digits>"`). In a
//! text, the digits of a checksum follow them.

/// Bytes of a mark.
pub const MARK_BYTES: usize = 16;

/// Digits of a mark in a text.
pub const MARK_DIGITS: usize = 2 * MARK_BYTES;

/// Numbers of publishers are below this, so the first byte of a binary mark is below `@` and the
/// mark cannot be taken for one in a text.
pub const PUBLISHERS_MAX: u32 = 1 << 30;

/// Text before the digits of a mark in a JSON object.
pub const JSON_PREFIX: &[u8] = b"{\"thrum\":\"";

/// Text before the digits of a mark in any other text.
pub const TEXT_PREFIX: &[u8] = b"thrum:";

const _: () = assert!(u32::from_be_bytes(*b"{\"th") >= PUBLISHERS_MAX);
const _: () = assert!(u32::from_be_bytes(*b"thru") >= PUBLISHERS_MAX);

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The mark inside a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Number of the publisher in the run, from 0; below [`PUBLISHERS_MAX`].
    pub publisher: u32,
    /// Number of the message of this publisher, from 0.
    pub sequence: u32,
    /// When it was handed to the socket, in nanoseconds of the machine's monotonic clock.
    pub sent_ns: u64,
    /// The broker did not take it when it was due.
    pub was_held_back: bool,
}

/// The bit of the send time that says that the broker held the message back: no machine runs for
/// the 292 years until its clock needs it.
const HELD_BACK: u64 = 1 << 63;

impl Mark {
    /// Writes the mark over the first bytes of a payload, if it is long enough.
    pub fn write(self, payload: &mut [u8]) {
        if let Some(head) = payload.first_chunk_mut::<MARK_BYTES>() {
            head[..4].copy_from_slice(&self.publisher.to_be_bytes());
            head[4..8].copy_from_slice(&self.sequence.to_be_bytes());
            head[8..].copy_from_slice(&self.time_bits().to_be_bytes());
        }
    }

    /// Appends the mark as [`MARK_DIGITS`] digits.
    pub fn write_digits(self, text: &mut Vec<u8>) {
        let mut bytes = [0; MARK_BYTES];
        self.write(&mut bytes);
        let pair = |byte: u8| [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
        text.extend(bytes.into_iter().flat_map(pair));
    }

    /// Reads the mark of a payload, binary or in a text; none if it has none.
    pub fn read(payload: &[u8]) -> Option<Self> {
        let (publisher, _) = payload.split_first_chunk::<4>()?;
        if u32::from_be_bytes(*publisher) < PUBLISHERS_MAX {
            return payload.first_chunk().map(Self::of_bytes);
        }
        let digits = payload
            .strip_prefix(JSON_PREFIX)
            .or_else(|| payload.strip_prefix(TEXT_PREFIX))?;
        let mut bytes = [0; MARK_BYTES];
        let pairs = digits.first_chunk::<MARK_DIGITS>()?.chunks_exact(2);
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            *byte = value(pair[0])? << 4 | value(pair[1])?;
        }
        let mark = Self::of_bytes(&bytes);
        (mark.publisher < PUBLISHERS_MAX).then_some(mark)
    }

    const fn time_bits(self) -> u64 {
        let bit = if self.was_held_back { HELD_BACK } else { 0 };
        self.sent_ns & !HELD_BACK | bit
    }

    fn of_bytes(bytes: &[u8; MARK_BYTES]) -> Self {
        let number = u128::from_be_bytes(*bytes);
        let part = |shift: u32| u32::try_from((number >> shift) & 0xFFFF_FFFF).unwrap_or(0);
        let time_bits = u64::from(part(32)) << 32 | u64::from(part(0));
        Self {
            publisher: part(96),
            sequence: part(64),
            sent_ns: time_bits & !HELD_BACK,
            was_held_back: time_bits & HELD_BACK != 0,
        }
    }
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
        sent_ns: 1 << 60 | 0xABC,
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
            assert!(payload.ends_with(b"00000007ffffffff1000000000000abc"));
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
        assert_eq!(binary(PUBLISHERS_MAX), None);
        assert_eq!(binary(u32::from_be_bytes(*b"{\"th")), None);
        let mut text = TEXT_PREFIX.to_vec();
        text.extend([b'f'; MARK_DIGITS]);
        assert_eq!(Mark::read(&text), None);
    }
}
