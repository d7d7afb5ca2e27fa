//! A contiguous list with lookup by key: by scanning while short, by a map when long.

use alloc::boxed::Box;
use alloc::vec::Vec;

use hashbrown::HashTable;

use crate::destination::Destination;
use crate::hashing::{Hashing, shrink_sparse};

/// Longer lists have a map of positions; scanning shorter ones is faster than hashing.
const SCAN_LENGTH_MAX: usize = 32;
/// The map is dropped well below the length that created it, so that repeated changes of one
/// element do not recreate it.
const UNMAP_LENGTH: usize = SCAN_LENGTH_MAX / 2;
/// A position without an element.
const NOWHERE: u32 = u32::MAX;

/// Elements in a slice, in unspecified order.
#[derive(Clone, Debug)]
pub(crate) struct KeyedList<T> {
    elements: Vec<T>,
    /// Position of each element, hashed by its key.
    positions: Option<Box<HashTable<u32>>>,
}

impl<T: Destination> KeyedList<T> {
    pub(crate) const fn new() -> Self {
        Self {
            elements: Vec::new(),
            positions: None,
        }
    }

    pub(crate) const fn as_slice(&self) -> &[T] {
        self.elements.as_slice()
    }

    pub(crate) fn get_mut(&mut self, position: usize) -> Option<&mut T> {
        self.elements.get_mut(position)
    }

    pub(crate) fn position(&self, key: T::Key, hashing: Hashing) -> Option<usize> {
        let Some(positions) = &self.positions else {
            return self
                .elements
                .iter()
                .position(|element| element.key() == key);
        };
        let hash = hashing.key(&key);
        let found = positions.find(hash, |&at| self.elements[at as usize].key() == key)?;
        Some(*found as usize)
    }

    /// Adds an element; the caller ensures that no other has the same key.
    pub(crate) fn push(&mut self, element: T, hashing: Hashing) {
        self.elements.push(element);
        let elements = &self.elements;
        let hash_at = |&at: &u32| hashing.key(&elements[at as usize].key());
        if let Some(positions) = &mut self.positions {
            let at = as_position(elements.len() - 1);
            positions.insert_unique(hash_at(&at), at, hash_at);
        } else if elements.len() > SCAN_LENGTH_MAX {
            let mut positions = HashTable::with_capacity(elements.len() * 2);
            for at in 0..as_position(elements.len()) {
                positions.insert_unique(hash_at(&at), at, hash_at);
            }
            self.positions = Some(Box::new(positions));
        }
    }

    /// Removes an element; the last one moves to its position.
    pub(crate) fn swap_remove(&mut self, position: usize, hashing: Hashing) -> Option<T> {
        let last = self.elements.len().checked_sub(1)?;
        if position > last {
            return None;
        }
        self.swap(position, last, hashing);
        self.unmap_last(hashing);
        let removed = self.elements.pop();
        self.give_back();
        removed
    }

    /// Exchanges two elements.
    pub(crate) fn swap(&mut self, first: usize, second: usize, hashing: Hashing) {
        if first == second {
            return;
        }
        let (first_key, second_key) = (self.elements[first].key(), self.elements[second].key());
        if let Some(positions) = &mut self.positions {
            let (first, second) = (as_position(first), as_position(second));
            // An unused position in between ensures that the two entries never have the same value.
            move_entry(positions, hashing.key(&first_key), first, NOWHERE);
            move_entry(positions, hashing.key(&second_key), second, first);
            move_entry(positions, hashing.key(&first_key), NOWHERE, second);
        }
        self.elements.swap(first, second);
    }

    fn unmap_last(&mut self, hashing: Hashing) {
        let (Some(positions), Some(last)) = (&mut self.positions, self.elements.last()) else {
            return;
        };
        let at_last = as_position(self.elements.len() - 1);
        if let Ok(entry) = positions.find_entry(hashing.key(&last.key()), |&at| at == at_last) {
            entry.remove();
        }
        let elements = &self.elements;
        shrink_sparse(positions, |&at| hashing.key(&elements[at as usize].key()));
    }

    fn give_back(&mut self) {
        let used = self.elements.len();
        if used <= UNMAP_LENGTH {
            self.positions = None;
        }
        if used < self.elements.capacity() / 4 {
            self.elements.shrink_to(used * 2);
        }
    }

    /// Removes and returns the only element, if there is exactly one.
    pub(crate) fn take_only(&mut self) -> Option<T> {
        if self.elements.len() == 1 {
            self.elements.pop()
        } else {
            None
        }
    }

    /// Allocated bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        let map = self.positions.as_ref().map_or(0, |positions| {
            size_of::<HashTable<u32>>() + positions.allocation_size()
        });
        self.elements.capacity() * size_of::<T>() + map
    }
}

fn move_entry(positions: &mut HashTable<u32>, hash: u64, from: u32, to: u32) {
    if let Some(entry) = positions.find_mut(hash, |&at| at == from) {
        *entry = to;
    }
}

fn as_position(index: usize) -> u32 {
    u32::try_from(index).expect("a list of 2^32 elements would not fit the memory of a node")
}

#[cfg(test)]
mod tests {
    use super::{KeyedList, SCAN_LENGTH_MAX};
    use crate::destination::Destination;
    use crate::hashing::Hashing;

    impl Destination for u32 {
        type Key = Self;

        fn key(&self) -> Self {
            *self
        }
    }

    fn check(list: &KeyedList<u32>, hashing: Hashing) {
        for (position, &key) in list.as_slice().iter().enumerate() {
            assert_eq!(list.position(key, hashing), Some(position));
        }
    }

    #[test]
    fn positions_are_right_through_growth_swaps_and_removals() {
        let hashing = Hashing::with_seed(1);
        let mut list = KeyedList::new();
        for key in 0..1_000 {
            list.push(key, hashing);
        }
        assert!(list.positions.is_some());
        check(&list, hashing);
        for position in 0..500 {
            list.swap(position, 999 - position, hashing);
        }
        check(&list, hashing);
        while list.as_slice().len() > 1 {
            let position = list.as_slice().len() / 3;
            let key = list.as_slice()[position];
            assert_eq!(list.swap_remove(position, hashing), Some(key));
            assert_eq!(list.position(key, hashing), None);
            check(&list, hashing);
        }
        assert!(list.positions.is_none());
        assert!(list.heap_bytes() <= 16 * size_of::<u32>());
        assert_eq!(list.swap_remove(1, hashing), None);
        assert!(list.take_only().is_some() && list.as_slice().is_empty());
    }

    #[test]
    fn a_short_list_has_no_map() {
        let hashing = Hashing::with_seed(1);
        let mut list = KeyedList::new();
        for key in 0..u32::try_from(SCAN_LENGTH_MAX).unwrap() {
            list.push(key, hashing);
        }
        assert!(list.positions.is_none());
        check(&list, hashing);
    }
}
