//! A slab whose places are named by keys of one type, so that a place in one table is never taken
//! for one in another.

use std::ops::{Index, IndexMut};

use slab::Slab;

use crate::ids::Key;

/// Values in places that stay the same as long as the value is there.
#[derive(Debug)]
pub(crate) struct Table<T>(Slab<T>);

impl<T> Table<T> {
    pub(crate) const fn new() -> Self {
        Self(Slab::new())
    }

    #[inline]
    pub(crate) fn get(&self, key: Key<T>) -> Option<&T> {
        self.0.get(key.index())
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: Key<T>) -> Option<&mut T> {
        self.0.get_mut(key.index())
    }

    /// The key that the next value gets.
    ///
    /// # Panics
    /// If the table holds more values than there are keys, 2^32 - 1. The limits of connections and
    /// sessions are below.
    pub(crate) fn next_key(&self) -> Key<T> {
        Key::new(self.0.vacant_key()).expect("fewer values than keys")
    }

    /// # Panics
    /// As [`Table::next_key`].
    pub(crate) fn insert(&mut self, value: T) -> Key<T> {
        let key = self.next_key();
        self.0.insert(value);
        key
    }

    /// # Panics
    /// If there is no value.
    pub(crate) fn remove(&mut self, key: Key<T>) -> T {
        self.0.remove(key.index())
    }

    pub(crate) fn contains(&self, key: Key<T>) -> bool {
        self.0.contains(key.index())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Places that there is memory for.
    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key<T>, &T)> {
        let keyed = |(place, value)| Some((Key::new(place)?, value));
        self.0.iter().filter_map(keyed)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = Key<T>> {
        self.iter().map(|(key, _)| key)
    }
}

impl<T> Index<Key<T>> for Table<T> {
    type Output = T;

    #[inline]
    fn index(&self, key: Key<T>) -> &T {
        &self.0[key.index()]
    }
}

impl<T> IndexMut<Key<T>> for Table<T> {
    #[inline]
    fn index_mut(&mut self, key: Key<T>) -> &mut T {
        &mut self.0[key.index()]
    }
}
