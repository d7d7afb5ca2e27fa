//! A slab with typed keys, so that a key of one table cannot be used for another.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use slab::Slab;

use crate::ids::Key;

/// Table of values whose keys stay valid until the value is removed. A table that extends the
/// entries of another table uses the keys of that table.
#[derive(Debug)]
pub struct Table<T, K = T> {
    values: Slab<T>,
    keys: PhantomData<fn() -> K>,
}

impl<T, K> Table<T, K> {
    /// Creates an empty table.
    pub const fn new() -> Self {
        Self {
            values: Slab::new(),
            keys: PhantomData,
        }
    }

    /// Returns the entry of a key.
    #[inline]
    pub fn get(&self, key: Key<K>) -> Option<&T> {
        self.values.get(key.index())
    }

    /// Returns the entry of a key for changes.
    #[inline]
    pub fn get_mut(&mut self, key: Key<K>) -> Option<&mut T> {
        self.values.get_mut(key.index())
    }

    /// The key of the next value that is added.
    ///
    /// # Panics
    /// If the table contains as many values as there are keys, 2^32 - 1. The limits of connections
    /// and sessions are below.
    pub fn next_key(&self) -> Key<K> {
        Key::new(self.values.vacant_key()).expect("fewer values than keys")
    }

    /// Adds a value and returns its key.
    ///
    /// # Panics
    /// As [`Table::next_key`].
    #[inline]
    pub fn insert(&mut self, value: T) -> Key<K> {
        let key = self.next_key();
        self.values.insert(value);
        key
    }

    /// Removes the value of a key.
    ///
    /// # Panics
    /// If there is no value.
    #[inline]
    pub fn remove(&mut self, key: Key<K>) -> T {
        self.values.remove(key.index())
    }

    /// Whether there is an entry of that key.
    #[inline]
    pub fn contains(&self, key: Key<K>) -> bool {
        self.values.contains(key.index())
    }

    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Number of places with allocated memory.
    pub fn capacity(&self) -> usize {
        self.values.capacity()
    }

    /// Frees the memory of unused places at the end; keys stay valid.
    pub fn shrink_to_fit(&mut self) {
        self.values.shrink_to_fit();
    }

    /// Iterates over all entries with their keys.
    pub fn iter(&self) -> impl Iterator<Item = (Key<K>, &T)> {
        let keyed = |(place, value)| Some((Key::new(place)?, value));
        self.values.iter().filter_map(keyed)
    }

    /// Iterates over the keys of all entries.
    pub fn keys(&self) -> impl Iterator<Item = Key<K>> {
        self.iter().map(|(key, _)| key)
    }
}

impl<T, K> Index<Key<K>> for Table<T, K> {
    type Output = T;

    #[inline]
    fn index(&self, key: Key<K>) -> &T {
        &self.values[key.index()]
    }
}

impl<T, K> IndexMut<Key<K>> for Table<T, K> {
    #[inline]
    fn index_mut(&mut self, key: Key<K>) -> &mut T {
        &mut self.values[key.index()]
    }
}

impl<T, K> Default for Table<T, K> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_contains_what_was_added_until_it_is_removed() {
        let mut table: Table<char> = Table::default();
        assert!(table.is_empty());
        let first = table.insert('a');
        assert_eq!(table.next_key().index(), 1);
        let second = table.insert('b');
        assert!(table.contains(first) && table.contains(second) && table.len() == 2);
        assert_eq!(table.remove(first), 'a');
        assert!(!table.contains(first) && table.contains(second) && !table.is_empty());
        assert_eq!(table.keys().collect::<Vec<_>>(), [second]);
        assert_eq!((table.get(first), table.get(second)), (None, Some(&'b')));
    }
}
