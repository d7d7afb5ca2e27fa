//! A position in a listing as text, which the client keeps and sends back.

use std::fmt;
use std::str::FromStr;

use super::rank::{Rank, RankText, START_BYTES_MAX};

/// Longest text that is read. The longest that is written has two texts of [`START_BYTES_MAX`]
/// bytes with their hashes, or the topic of a retained message. The address of a request may have
/// 65,534 bytes: a listing over HTTP does not continue behind a topic of more than 32,000 bytes.
const TEXT_BYTES_MAX: usize = 2 * (3 * 65_536 + 32);
/// The hash of a text follows.
const IS_HASHED: u8 = 1;

/// The listing that a position belongs to. The number is a part of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Listing {
    /// The number of the sort key and the direction follow.
    Sessions = 1,
    Subscriptions = 2,
    Retained = 3,
    Unsorted = 4,
    Held = 5,
    Groups = 6,
    Drops = 7,
    /// The number of the order and the direction follow.
    Topics = 8,
    Refusals = 9,
}

/// The position in a listing where the next page begins. It is valid until the node ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cursor(Vec<u8>);

/// The text is not a cursor, or the cursor belongs to another listing or order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the cursor is not one of this listing with this order; leave it out to begin with the first page"
)]
pub struct CursorError;

impl Cursor {
    pub(super) fn new(listing: Listing, position: &[u8]) -> Self {
        Self([&[listing as u8], position].concat())
    }

    /// The position without the number of the listing.
    pub(super) fn position(&self, listing: Listing) -> Result<&[u8], CursorError> {
        let (kind, position) = self.0.split_first().ok_or(CursorError)?;
        (*kind == listing as u8)
            .then_some(position)
            .ok_or(CursorError)
    }

    /// The cursor behind a row of a listing sorted by rank.
    pub(super) fn of_rank(listing: Listing, order: &[u8], rank: &Rank) -> Self {
        let mut position = order.to_vec();
        position.extend_from_slice(&rank.value.to_le_bytes());
        write_text(&mut position, &rank.name);
        write_text(&mut position, &rank.second);
        Self::new(listing, &position)
    }

    /// The rank that was written with the same order.
    pub(super) fn rank(&self, listing: Listing, order: &[u8]) -> Result<Rank, CursorError> {
        let position = self.position(listing)?;
        let rank = position.strip_prefix(order).and_then(read_rank);
        rank.ok_or(CursorError)
    }
}

fn read_rank(position: &[u8]) -> Option<Rank> {
    let (value, mut position) = position.split_first_chunk()?;
    let name = read_text(&mut position)?;
    let second = read_text(&mut position)?;
    position.is_empty().then(|| Rank {
        value: u64::from_le_bytes(*value),
        name,
        second,
    })
}

fn write_text(position: &mut Vec<u8>, text: &RankText) {
    let len = u16::try_from(text.start.len()).unwrap_or(u16::MAX);
    position.extend_from_slice(&len.to_le_bytes());
    position.extend_from_slice(&text.start);
    position.push(if text.hash.is_some() { IS_HASHED } else { 0 });
    if let Some(hash) = text.hash {
        position.extend_from_slice(&hash.to_le_bytes());
    }
}

fn read_text(position: &mut &[u8]) -> Option<RankText> {
    let (len, rest) = position.split_first_chunk()?;
    let len = usize::from(u16::from_le_bytes(*len));
    let (start, rest) = rest.split_at_checked(len)?;
    let (is_hashed, mut rest) = rest.split_first()?;
    let mut hash = None;
    if *is_hashed == IS_HASHED {
        let (bytes, behind) = rest.split_first_chunk()?;
        hash = Some(u64::from_le_bytes(*bytes));
        rest = behind;
    }
    *position = rest;
    (len <= START_BYTES_MAX).then(|| RankText {
        start: start.into(),
        hash,
    })
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.0.iter();
        bytes.try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let is_text = text.len() <= TEXT_BYTES_MAX && text.len().is_multiple_of(2);
        if !is_text || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(CursorError);
        }
        let pairs = (0..text.len()).step_by(2);
        let bytes = pairs.map(|at| u8::from_str_radix(&text[at..at + 2], 16));
        bytes
            .collect::<Result<_, _>>()
            .map(Self)
            .map_err(|_| CursorError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_decoded_as_it_was_encoded_and_only_for_its_listing() {
        let rank = Rank {
            value: u64::MAX - 1,
            name: RankText {
                start: "fl\u{fc} 1".as_bytes().into(),
                hash: None,
            },
            second: RankText {
                start: "a/+".as_bytes().into(),
                hash: Some(7),
            },
        };
        let cursor = Cursor::of_rank(Listing::Sessions, &[3, 1], &rank);
        let read: Cursor = cursor.to_string().parse().unwrap();
        assert_eq!(read.rank(Listing::Sessions, &[3, 1]), Ok(rank));
        for wrong in [
            read.rank(Listing::Sessions, &[3, 0]),
            read.rank(Listing::Subscriptions, &[3, 1]),
        ] {
            assert_eq!(wrong, Err(CursorError));
        }
    }

    #[test]
    fn invalid_cursors_are_refused() {
        let cut = "01".to_owned() + &"00".repeat(9);
        let long = "01".to_owned() + &"00".repeat(8) + "ffff";
        for text in ["", "0", "zz", "é", "+1", "02", &cut, &long] {
            let cursor: Result<Cursor, CursorError> = text.parse();
            let rank = cursor.and_then(|cursor| cursor.rank(Listing::Sessions, &[]));
            assert_eq!(rank, Err(CursorError), "{text}");
        }
    }
}
