//! The members of a shared subscription, found by key and by position, and cheap to change while
//! copies exist.

use crate::destination::Destination;
use crate::hashing::{Hashing, upper_half};
use crate::persistent_list::{Elements, PersistentList};
use crate::persistent_positions::Positions;

/// Longer lists have a map of positions; scanning shorter ones is faster than hashing.
const SCAN_LENGTH_MAX: usize = 32;
/// The map is dropped well below the length that created it, so that repeated changes of one
/// element do not recreate it.
const UNMAP_LENGTH: usize = SCAN_LENGTH_MAX / 2;

/// Elements by position, in unspecified order.
#[derive(Clone, Debug)]
pub(crate) struct Members<T> {
    list: PersistentList<T>,
    /// Position of each element, hashed by its key.
    positions: Option<Positions>,
}

impl<T> Members<T> {
    pub(crate) const fn new() -> Self {
        Self {
            list: PersistentList::new(),
            positions: None,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.list.len()
    }

    #[inline]
    pub(crate) fn get(&self, position: usize) -> Option<&T> {
        self.list.get(position)
    }

    pub(crate) fn range(&self, range: core::ops::Range<usize>) -> Elements<'_, T> {
        self.list.range(range)
    }

    /// Approximate number of allocated bytes, including those shared with copies.
    pub(crate) const fn heap_bytes(&self) -> usize {
        let map = match self.positions {
            Some(_) => self.list.len() * Positions::entry_heap_bytes(),
            None => 0,
        };
        self.list.heap_bytes() + map
    }
}

impl<T: Destination> Members<T> {
    pub(crate) fn position(&self, key: T::Key, hashing: Hashing) -> Option<usize> {
        let Some(positions) = &self.positions else {
            let mut elements = self.list.range(0..self.list.len());
            return elements.position(|element| element.key() == key);
        };
        let is_it = |at: u32| {
            let found = self.list.get(at as usize);
            found.is_some_and(|element| element.key() == key)
        };
        Some(positions.find(hash(&key, hashing), is_it)? as usize)
    }
}

impl<T: Destination + Clone> Members<T> {
    pub(crate) fn get_mut(&mut self, position: usize) -> Option<&mut T> {
        self.list.get_mut(position)
    }

    /// Adds an element; the caller ensures that no other has the same key.
    pub(crate) fn push(&mut self, element: T, hashing: Hashing) {
        let hash_of_new = hash(&element.key(), hashing);
        self.list.push(element);
        if let Some(positions) = &mut self.positions {
            positions.insert(hash_of_new, as_position(self.list.len() - 1));
        } else if self.list.len() > SCAN_LENGTH_MAX {
            let mut positions = Positions::new();
            let elements = self.list.range(0..self.list.len());
            for (at, element) in (0..).zip(elements) {
                positions.insert(hash(&element.key(), hashing), at);
            }
            self.positions = Some(positions);
        }
    }

    /// Removes an element; the last one moves to its position.
    pub(crate) fn swap_remove(&mut self, position: usize, hashing: Hashing) -> Option<T> {
        let last = self.list.len().checked_sub(1)?;
        if position > last {
            return None;
        }
        self.swap(position, last, hashing);
        let removed = self.list.pop()?;
        if let Some(positions) = &mut self.positions {
            positions.remove(hash(&removed.key(), hashing), as_position(last));
        }
        if self.list.len() <= UNMAP_LENGTH {
            self.positions = None;
        }
        Some(removed)
    }

    /// Exchanges two elements.
    pub(crate) fn swap(&mut self, first: usize, second: usize, hashing: Hashing) {
        if first == second {
            return;
        }
        if let Some(positions) = &mut self.positions
            && let (Some(one), Some(other)) = (self.list.get(first), self.list.get(second))
        {
            let (one, other) = (hash(&one.key(), hashing), hash(&other.key(), hashing));
            let (first, second) = (as_position(first), as_position(second));
            positions.replace(one, first, second);
            positions.replace(other, second, first);
        }
        self.list.swap(first, second);
    }
}

fn hash<K: core::hash::Hash>(key: &K, hashing: Hashing) -> u32 {
    upper_half(hashing.key(key))
}

fn as_position(index: usize) -> u32 {
    u32::try_from(index).expect("a list of 2^32 elements would not fit the memory of a node")
}

#[cfg(test)]
mod tests {
    use super::{Members, SCAN_LENGTH_MAX};
    use crate::hashing::Hashing;

    fn check(members: &Members<u32>, hashing: Hashing) {
        for (position, &key) in members.range(0..members.len()).enumerate() {
            assert_eq!(members.position(key, hashing), Some(position));
        }
    }

    #[test]
    fn positions_are_right_through_growth_swaps_and_removals() {
        let hashing = Hashing::with_seed(1);
        let mut members = Members::new();
        for key in 0..2_000 {
            members.push(key, hashing);
            let is_long = members.len() > SCAN_LENGTH_MAX;
            assert_eq!(members.positions.is_some(), is_long);
        }
        let copy = members.clone();
        for position in 0..1_000 {
            members.swap(position, 1_999 - position, hashing);
        }
        check(&members, hashing);
        while members.len() > 1 {
            let position = members.len() / 3;
            let key = *members.get(position).unwrap();
            assert_eq!(members.swap_remove(position, hashing), Some(key));
            assert_eq!(members.position(key, hashing), None);
            if members.len() % 50 < 20 {
                check(&members, hashing);
            }
        }
        assert!(members.positions.is_none());
        assert_eq!(members.swap_remove(1, hashing), None);
        check(&copy, hashing);
        assert!((0..2_000).eq(copy.range(0..2_000).copied()));
    }

    #[test]
    fn different_keys_have_different_hashes() {
        let hashing = Hashing::with_seed(1);
        let hashes: alloc::collections::BTreeSet<u32> =
            (0..100_u32).map(|key| super::hash(&key, hashing)).collect();
        assert!(hashes.len() > 95, "{}", hashes.len());
    }
}
