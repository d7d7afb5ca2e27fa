//! The first rows of a table behind a position, kept while the table is walked. Their number and
//! bytes are bounded, also while rows are added and removed.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Bytes of the texts of a page, beside its last row: a thousand client identifiers of 1 KiB.
pub(crate) const PAGE_BYTES_MAX: usize = 1024 * 1024;

/// Which rows come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Direction {
    #[default]
    Ascending,
    Descending,
}

impl Direction {
    pub(super) const fn of(is_descending: bool) -> Self {
        if is_descending {
            Self::Descending
        } else {
            Self::Ascending
        }
    }

    fn apply(self, ordering: Ordering) -> Ordering {
        match self {
            Self::Ascending => ordering,
            Self::Descending => ordering.reverse(),
        }
    }
}

/// Which rows are kept.
#[derive(Clone, Debug)]
pub(super) struct Wanted<K> {
    pub(super) direction: Direction,
    /// Rows kept at most; above 0.
    pub(super) limit: usize,
    /// Only rows behind this one.
    pub(super) after: Option<K>,
}

/// The first rows behind a position, in their order.
#[derive(Debug)]
pub(super) struct Best<K, T> {
    wanted: Wanted<K>,
    rows: BTreeMap<K, T>,
    /// Bytes of the texts of the rows.
    bytes: usize,
    /// Rows behind the position, kept or not.
    behind: u64,
}

/// The size of a row.
pub(super) trait TextBytes {
    /// Bytes of its texts.
    fn text_bytes(&self) -> usize;
}

impl<K: Ord + Clone, T: TextBytes> Best<K, T> {
    pub(super) const fn new(wanted: Wanted<K>) -> Self {
        Self {
            wanted,
            rows: BTreeMap::new(),
            bytes: 0,
            behind: 0,
        }
    }

    /// Which rows are kept.
    pub(super) const fn wanted(&self) -> &Wanted<K> {
        &self.wanted
    }

    /// Offers a row, whose key compares with others as `compare` says; true if it is kept: only
    /// then `make` is called.
    pub(super) fn offer(
        &mut self,
        compare: impl Fn(&K) -> Ordering,
        make: impl FnOnce() -> (K, T),
    ) -> bool {
        let direction = self.wanted.direction;
        let comes = |key: &K| direction.apply(compare(key));
        let after = self.wanted.after.as_ref();
        if after.is_some_and(|after| comes(after) != Ordering::Greater) {
            return false;
        }
        self.behind += 1;
        let is_full = self.rows.len() >= self.wanted.limit || self.bytes >= PAGE_BYTES_MAX;
        if is_full && self.last().is_none_or(|last| comes(last) != Ordering::Less) {
            return false;
        }
        let (key, row) = make();
        self.keep(key, row);
        true
    }

    fn keep(&mut self, key: K, row: T) {
        self.bytes += row.text_bytes();
        if let Some(same) = self.rows.insert(key, row) {
            self.bytes -= same.text_bytes();
        }
        while self.has_too_much() {
            let dropped = match self.wanted.direction {
                Direction::Ascending => self.rows.pop_last(),
                Direction::Descending => self.rows.pop_first(),
            };
            self.bytes -= dropped.map_or(0, |(_, row)| row.text_bytes());
        }
    }

    /// Whether the last row does not belong to the page. A row belongs to it if the rows before it
    /// leave room, whatever its own size: so the pages of several tables agree where they end.
    fn has_too_much(&self) -> bool {
        let last = match self.wanted.direction {
            Direction::Ascending => self.rows.last_key_value(),
            Direction::Descending => self.rows.first_key_value(),
        };
        let last = last.map_or(0, |(_, row)| row.text_bytes());
        self.rows.len() > self.wanted.limit || self.bytes - last >= PAGE_BYTES_MAX
    }

    /// The key of the last row in the order of the page.
    fn last(&self) -> Option<&K> {
        let entry = match self.wanted.direction {
            Direction::Ascending => self.rows.last_key_value(),
            Direction::Descending => self.rows.first_key_value(),
        };
        entry.map(|(key, _)| key)
    }

    /// Adds the rows of another table that were kept for the same page.
    pub(super) fn join(&mut self, other: Self) {
        self.behind += other.behind;
        for (key, row) in other.rows {
            self.keep(key, row);
        }
    }

    /// The rows in their order, and the key of the last one if there are more.
    pub(super) fn into_page(self) -> (Vec<T>, Option<K>) {
        let has_more = self.behind > self.rows.len() as u64;
        let next = self.last().filter(|_| has_more).cloned();
        let rows = self.rows.into_values();
        let rows = match self.wanted.direction {
            Direction::Ascending => rows.collect(),
            Direction::Descending => rows.rev().collect(),
        };
        (rows, next)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    type Key = (u8, u16);

    impl TextBytes for Key {
        /// Some rows are large.
        fn text_bytes(&self) -> usize {
            usize::from(self.0) * PAGE_BYTES_MAX / 4
        }
    }

    fn page(tables: &[BTreeSet<Key>], wanted: &Wanted<Key>) -> (Vec<Key>, Option<Key>) {
        let mut best = Best::new(wanted.clone());
        for table in tables {
            let mut of_table = Best::new(wanted.clone());
            for key in table {
                of_table.offer(|other| key.cmp(other), || (*key, *key));
                assert!(of_table.rows.len() <= wanted.limit, "it is bounded");
                assert!(of_table.bytes <= 2 * PAGE_BYTES_MAX, "it is bounded");
            }
            best.join(of_table);
        }
        best.into_page()
    }

    fn key() -> impl Strategy<Value = Key> {
        (0..4_u8, 0..200_u16)
    }

    proptest! {
        /// Rows that are there all the time are listed once and in order, while other rows are
        /// added and removed between the pages, in the tables of several workers.
        #[test]
        fn pages_list_each_lasting_row_once(
            lasting in prop::collection::btree_set(key(), 0..60),
            passing in prop::collection::vec(prop::collection::btree_set(key(), 0..20), 1..8),
            tables in 1..4_usize,
            limit in 1..9_usize,
            is_descending: bool,
        ) {
            let mut listed = Vec::new();
            let mut wanted = Wanted { direction: Direction::of(is_descending), limit, after: None };
            for round in 0.. {
                let there = lasting.union(&passing[round % passing.len()]);
                let mut of_tables = vec![BTreeSet::new(); tables];
                for key in there {
                    of_tables[usize::from(key.1) % tables].insert(*key);
                }
                let (rows, next) = page(&of_tables, &wanted);
                prop_assert!(rows.len() <= limit);
                listed.extend(rows);
                let Some(next) = next else { break };
                wanted.after = Some(next);
            }
            let mut expected = listed.clone();
            expected.sort_unstable();
            expected.dedup();
            if is_descending {
                expected.reverse();
            }
            prop_assert_eq!(&listed, &expected, "in order and none twice");
            let found: BTreeSet<Key> = listed.into_iter().collect();
            prop_assert!(lasting.is_subset(&found));
        }
    }

    #[test]
    fn a_page_that_holds_all_has_no_next_one() {
        let table = BTreeSet::from([(0, 1), (0, 2)]);
        let wanted = |limit| Wanted {
            direction: Direction::Ascending,
            limit,
            after: None,
        };
        let tables = [table];
        assert_eq!(page(&tables, &wanted(2)).1, None);
        assert_eq!(page(&tables, &wanted(1)).1, Some((0, 1)));
    }
}
