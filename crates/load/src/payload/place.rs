//! A place of a text and what it is filled with.

use std::io::Write as _;

use super::filler::Filler;
use super::number::Range;
use crate::mark::Mark;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Characters of the longest 32-bit and 64-bit number.
const U32_DIGITS: usize = 10;
const U64_DIGITS: usize = 20;

/// Characters of a point in time, and of a UUID.
const NOW_BYTES: usize = 24;
const UUID_BYTES: usize = 36;

/// Something that differs from message to message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Client,
    Sequence,
    NowMillis,
    Now,
    Random { digits: usize },
    Number(Range),
    Uuid,
}

impl Place {
    /// Appends what the place is filled with.
    pub(super) fn write(self, mark: Mark, filler: &mut Filler, out: &mut Vec<u8>) {
        // Writing to memory does not fail.
        let written = match self {
            Self::Client => write!(out, "{}", filler.client()),
            Self::Sequence => write!(out, "{}", mark.sequence),
            Self::NowMillis => write!(out, "{}", filler.unix_ms()),
            Self::Now => {
                let millis = filler.unix_ms() % 1_000;
                write!(out, "{}.{millis:03}Z", filler.second_text())
            }
            Self::Random { digits } => {
                write_random(digits, filler, out);
                Ok(())
            }
            Self::Number(range) => {
                range.write(filler, out);
                Ok(())
            }
            Self::Uuid => {
                write_uuid(filler, out);
                Ok(())
            }
        };
        debug_assert!(written.is_ok(), "writing to memory cannot fail");
    }

    /// Most characters that the place is filled with.
    pub(super) fn bytes_max(self) -> usize {
        match self {
            Self::Client | Self::Sequence => U32_DIGITS,
            Self::NowMillis => U64_DIGITS,
            Self::Now => NOW_BYTES,
            Self::Random { digits } => digits,
            Self::Number(range) => range.bytes_max(),
            Self::Uuid => UUID_BYTES,
        }
    }

    /// Whether what it is filled with is a number, which JSON takes without quotes.
    pub(super) const fn is_number(self) -> bool {
        match self {
            Self::Client | Self::Sequence | Self::NowMillis | Self::Number(_) => true,
            Self::Now | Self::Random { .. } | Self::Uuid => false,
        }
    }

    pub(super) const fn needs_time(self) -> bool {
        matches!(self, Self::Now | Self::NowMillis)
    }
}

fn write_random(digits: usize, filler: &mut Filler, out: &mut Vec<u8>) {
    let mut left = digits;
    while left > 0 {
        let some = left.min(16);
        let random = filler.random().to_be_bytes();
        let pair = |byte: u8| [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
        out.extend(random.into_iter().flat_map(pair).take(some));
        left -= some;
    }
}

/// Version 4 of RFC 9562: random but for version and variant.
fn write_uuid(filler: &mut Filler, out: &mut Vec<u8>) {
    let start = out.len();
    write_random(32, filler, out);
    out[start + 12] = b'4';
    out[start + 16] = DIGITS[usize::from(8 | (out[start + 16] & 3))];
    for hyphen in [8, 13, 18, 23] {
        out.insert(start + hyphen, b'-');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: Mark = Mark {
        publisher: 3,
        sequence: u32::MAX,
        sent_ns: 5,
        was_held_back: false,
    };

    fn filled(place: Place, filler: &mut Filler) -> String {
        let mut out = b"before".to_vec();
        place.write(MARK, filler, &mut out);
        String::from_utf8(out).unwrap().split_off(6)
    }

    #[test]
    fn places_are_filled_with_client_sequence_and_time() {
        let mut filler = Filler::new(1);
        filler.set(u32::MAX, 1_795_252_323_007);
        for (place, text) in [
            (Place::Client, "4294967295"),
            (Place::Sequence, "4294967295"),
            (Place::NowMillis, "1795252323007"),
            (Place::Now, "2026-11-21T09:12:03.007Z"),
        ] {
            assert_eq!(filled(place, &mut filler), text);
            assert!(text.len() <= place.bytes_max());
        }
    }

    #[test]
    fn random_digits_are_as_many_as_asked_and_follow_from_the_seed() {
        for digits in [1, 15, 16, 17, 33] {
            let place = Place::Random { digits };
            let text = filled(place, &mut Filler::new(9));
            assert_eq!(text.len(), digits);
            assert!(text.bytes().all(|digit| DIGITS.contains(&digit)));
            assert_eq!(text, filled(place, &mut Filler::new(9)));
            assert_eq!(place.bytes_max(), digits);
        }
        let mut filler = Filler::new(9);
        let place = Place::Random { digits: 16 };
        assert_ne!(filled(place, &mut filler), filled(place, &mut filler));
    }

    #[test]
    fn a_uuid_has_version_and_variant() {
        let mut filler = Filler::new(2);
        for _ in 0..50 {
            let uuid = filled(Place::Uuid, &mut filler);
            assert_eq!(uuid.len(), Place::Uuid.bytes_max());
            let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12]);
            assert_eq!(&uuid[14..15], "4");
            assert!("89ab".contains(&uuid[19..20]), "{uuid}");
        }
    }
}
