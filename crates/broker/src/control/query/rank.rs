//! Where a row stands in a listing.

use std::cmp::Ordering;

/// The key of a row: by a figure, then by names, so that no two rows have the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) value: u64,
    /// Client identifier.
    pub(super) name: Box<str>,
    /// Filter of a subscription, else empty.
    pub(super) second: Box<str>,
}

/// The same, borrowed: most rows are compared and not kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct RankRef<'a> {
    pub(super) value: u64,
    pub(super) name: &'a str,
    pub(super) second: &'a str,
}

impl RankRef<'_> {
    pub(super) fn compare(self, other: &Rank) -> Ordering {
        let by_value = self.value.cmp(&other.value);
        by_value
            .then_with(|| self.name.cmp(&other.name))
            .then_with(|| self.second.cmp(&other.second))
    }

    pub(super) fn to_rank(self) -> Rank {
        Rank {
            value: self.value,
            name: self.name.into(),
            second: self.second.into(),
        }
    }
}
