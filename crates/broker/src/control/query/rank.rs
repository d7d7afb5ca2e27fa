//! The sort key of a row in a listing.

use std::cmp::Ordering;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;

/// Bytes of a text that a rank contains; a longer text is told from others with the same beginning
/// by a hash. A cursor then fits into the address of a request, whatever a client identifier is.
pub(super) const START_BYTES_MAX: usize = 1024;
/// Bytes that are hashed in the time of a unit.
const HASHED_OF_UNIT: usize = 256;

/// The keys are secret, so that no client can choose an identifier that hides another session.
static LONG_TEXTS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The key of a row: a figure, then names, so that no two rows have the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) value: u64,
    /// Client identifier.
    pub(super) name: RankText,
    /// Filter of a subscription, else empty.
    pub(super) second: RankText,
}

/// A text in a rank. Texts of up to [`START_BYTES_MAX`] bytes are in the order of their bytes;
/// longer ones with the same beginning follow it in an order of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RankText {
    /// The first bytes, up to [`START_BYTES_MAX`].
    pub(super) start: Box<[u8]>,
    /// Hash of the whole text; none if `start` is the whole text.
    pub(super) hash: Option<u64>,
}

/// A borrowed [`Rank`]: most rows are compared and not kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct RankRef<'a> {
    pub(super) value: u64,
    pub(super) name: TextRef<'a>,
    pub(super) second: TextRef<'a>,
}

/// A borrowed [`RankText`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TextRef<'a> {
    start: &'a [u8],
    hash: Option<u64>,
}

impl RankRef<'_> {
    pub(super) fn compare(self, other: &Rank) -> Ordering {
        let by_value = self.value.cmp(&other.value);
        by_value
            .then_with(|| self.name.cmp(&other.name.as_ref()))
            .then_with(|| self.second.cmp(&other.second.as_ref()))
    }

    pub(super) fn to_rank(self) -> Rank {
        Rank {
            value: self.value,
            name: self.name.to_text(),
            second: self.second.to_text(),
        }
    }
}

impl RankText {
    pub(super) fn as_ref(&self) -> TextRef<'_> {
        TextRef {
            start: &self.start,
            hash: self.hash,
        }
    }
}

impl<'a> TextRef<'a> {
    /// Costs [`text_units`].
    pub(super) fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        match bytes.split_at_checked(START_BYTES_MAX) {
            Some((start, rest)) if !rest.is_empty() => Self {
                start,
                hash: Some(LONG_TEXTS.hash_one(bytes)),
            },
            _ => Self {
                start: bytes,
                hash: None,
            },
        }
    }

    /// A text of few bytes, whatever they are.
    pub(super) fn of_bytes(bytes: &'a [u8]) -> Self {
        debug_assert!(bytes.len() <= START_BYTES_MAX, "it is not hashed");
        Self {
            start: bytes,
            hash: None,
        }
    }

    fn to_text(self) -> RankText {
        RankText {
            start: self.start.into(),
            hash: self.hash,
        }
    }
}

/// Units of [`TextRef::new`].
pub(super) const fn text_units(text: &str) -> u64 {
    if text.len() > START_BYTES_MAX {
        (text.len() / HASHED_OF_UNIT) as u64
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(one: &str, other: &str) -> Ordering {
        TextRef::new(one).cmp(&TextRef::new(other).to_text().as_ref())
    }

    #[test]
    fn short_texts_are_in_the_order_of_their_bytes() {
        let longest = "a".repeat(START_BYTES_MAX);
        let texts = ["", "a", "a/b", "b", "\u{fc}", &longest];
        for one in texts {
            for other in texts {
                assert_eq!(compare(one, other), one.cmp(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn long_texts_follow_their_beginning_and_differ() {
        let start = "a".repeat(START_BYTES_MAX);
        let (one, other) = (format!("{start}1"), format!("{start}2"));
        assert_eq!(compare(&one, &one), Ordering::Equal);
        assert_ne!(compare(&one, &other), Ordering::Equal);
        assert_eq!(compare(&one, &other), compare(&other, &one).reverse());
        assert_eq!(compare(&start, &one), Ordering::Less);
        assert_eq!(compare(&one, "b"), Ordering::Less);
        assert!(text_units(&one) > 0 && text_units(&start) == 0);
    }
}
