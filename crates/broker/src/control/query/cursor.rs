//! Places in a listing, as whoever asked keeps them: opaque text.

use std::fmt;
use std::str::FromStr;

use super::rank::Rank;

/// Longest text that is looked at: what a client identifier and a filter of 64 KiB each take.
const TEXT_BYTES_MAX: usize = 2 * (3 * 65_536 + 32);

/// What a place belongs to. The numbers are part of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Listing {
    /// Behind it stand the number of the sort key and the direction.
    Sessions = 1,
    Subscriptions = 2,
    Retained = 3,
}

/// A place in a listing, from which the next page goes on. Only the node that gave it understands
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(Vec<u8>);

/// The text is no place of this listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the cursor is not one of this listing with this order; leave it out to begin with the first page"
)]
pub struct CursorError;

impl Cursor {
    pub(super) fn new(listing: Listing, place: &[u8]) -> Self {
        Self([&[listing as u8], place].concat())
    }

    /// What is behind the kind of the listing.
    pub(super) fn place(&self, listing: Listing) -> Result<&[u8], CursorError> {
        let (kind, place) = self.0.split_first().ok_or(CursorError)?;
        (*kind == listing as u8).then_some(place).ok_or(CursorError)
    }

    /// Of a listing in the order of ranks.
    pub(super) fn of_rank(listing: Listing, order: &[u8], rank: &Rank) -> Self {
        let name_len = u32::try_from(rank.name.len()).unwrap_or(u32::MAX);
        let mut place = order.to_vec();
        place.extend_from_slice(&rank.value.to_le_bytes());
        place.extend_from_slice(&name_len.to_le_bytes());
        place.extend_from_slice(rank.name.as_bytes());
        place.extend_from_slice(rank.second.as_bytes());
        Self::new(listing, &place)
    }

    /// The rank that was written with the same order.
    pub(super) fn rank(&self, listing: Listing, order: &[u8]) -> Result<Rank, CursorError> {
        let place = self.place(listing)?;
        let rank = place.strip_prefix(order).and_then(read_rank);
        rank.ok_or(CursorError)
    }
}

fn read_rank(place: &[u8]) -> Option<Rank> {
    let (value, place) = place.split_first_chunk()?;
    let (name_len, texts) = place.split_first_chunk()?;
    let name_len = usize::try_from(u32::from_le_bytes(*name_len)).ok()?;
    let (name, second) = texts.split_at_checked(name_len)?;
    Some(Rank {
        value: u64::from_le_bytes(*value),
        name: std::str::from_utf8(name).ok()?.into(),
        second: std::str::from_utf8(second).ok()?.into(),
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
    fn a_place_is_read_as_it_was_written_and_only_there() {
        let rank = Rank {
            value: u64::MAX - 1,
            name: "fl\u{fc} 1".into(),
            second: "a/+".into(),
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
    fn text_that_is_no_place_is_refused() {
        let cut = "01".to_owned() + &"00".repeat(9);
        let long = "01".to_owned() + &"00".repeat(8) + "ffffffff";
        for text in ["", "0", "zz", "é", "+1", "02", &cut, &long] {
            let cursor: Result<Cursor, CursorError> = text.parse();
            let rank = cursor.and_then(|cursor| cursor.rank(Listing::Sessions, &[]));
            assert_eq!(rank, Err(CursorError), "{text}");
        }
    }
}
