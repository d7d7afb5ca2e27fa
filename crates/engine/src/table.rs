//! A slab whose places are named by keys of one type, so that a place in one table is never taken
//! for one in another.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use slab::Slab;

use crate::ids::Key;

/// Values in places that stay the same as long as the value is there. One that stands beside
/// another table, with the same places, has its keys.
#[derive(Debug)]
pub struct Table<T, K = T> {
    values: Slab<T>,
    keys: PhantomData<fn() -> K>,
}

impl<T, K> Table<T, K> {
    /// A table without entries.
    pub const fn new() -> Self {
        Self {
            values: Slab::new(),
            keys: PhantomData,
        }
    }

    /// The entry of a key.
    #[inline]
    pub fn get(&self, key: Key<K>) -> Option<&T> {
        self.values.get(key.index())
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, key: Key<K>) -> Option<&mut T> {
        self.values.get_mut(key.index())
    }

    /// The key that the next value gets.
    ///
    /// # Panics
    /// If the table holds more values than there are keys, 2^32 - 1. The limits of connections and
    /// sessions are below.
    pub fn next_key(&self) -> Key<K> {
        Key::new(self.values.vacant_key()).expect("fewer values than keys")
    }

    /// # Panics
    /// As [`Table::next_key`].
    #[inline]
    pub fn insert(&mut self, value: T) -> Key<K> {
        let key = self.next_key();
        self.values.insert(value);
        key
    }

    /// # Panics
    /// If there is no value.
    #[inline]
    pub fn remove(&mut self, key: Key<K>) -> T {
        self.values.remove(key.index())
    }

    /// There is an entry of that key.
    #[inline]
    pub fn contains(&self, key: Key<K>) -> bool {
        self.values.contains(key.index())
    }

    /// Entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Places that there is memory for.
    pub fn capacity(&self) -> usize {
        self.values.capacity()
    }

    pub fn shrink_to_fit(&mut self) {
        self.values.shrink_to_fit();
    }

    /// All entries with their keys.
    pub fn iter(&self) -> impl Iterator<Item = (Key<K>, &T)> {
        let keyed = |(place, value)| Some((Key::new(place)?, value));
        self.values.iter().filter_map(keyed)
    }

    /// The keys of all entries.
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
