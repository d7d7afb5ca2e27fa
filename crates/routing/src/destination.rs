//! Destinations of a filter, and their list.

use alloc::boxed::Box;
use core::hash::Hash;

use crate::hashing::Hashing;
use crate::keyed_list::KeyedList;

/// A receiver of messages: a session, a shared subscription, a rule, a peer node.
pub trait Destination {
    /// Type that identifies one of the destinations of a filter.
    type Key: Copy + Eq + Hash;

    /// Key of the destination; it must not change while the destination is stored.
    fn key(&self) -> Self::Key;
}

/// The destinations of one filter, at least one; a single one is stored inline.
#[derive(Debug)]
pub(crate) enum Destinations<D> {
    One(D),
    Many(Box<KeyedList<D>>),
}

impl<D: Destination> Destinations<D> {
    pub(crate) fn as_slice(&self) -> &[D] {
        match self {
            Self::One(destination) => core::slice::from_ref(destination),
            Self::Many(list) => list.as_slice(),
        }
    }

    pub(crate) fn find(&self, key: D::Key, hashing: Hashing) -> Option<&D> {
        match self {
            Self::One(destination) => (destination.key() == key).then_some(destination),
            Self::Many(list) => list.as_slice().get(list.position(key, hashing)?),
        }
    }

    pub(crate) fn find_mut(&mut self, key: D::Key, hashing: Hashing) -> Option<&mut D> {
        match self {
            Self::One(destination) => (destination.key() == key).then_some(destination),
            Self::Many(list) => {
                let position = list.position(key, hashing)?;
                list.get_mut(position)
            }
        }
    }

    /// Adds a destination; one with the same key is replaced and returned.
    pub(crate) fn insert(&mut self, destination: D, hashing: Hashing) -> Option<D> {
        if let Some(place) = self.find_mut(destination.key(), hashing) {
            return Some(core::mem::replace(place, destination));
        }
        if let Self::Many(list) = self {
            list.push(destination, hashing);
            return None;
        }
        let pair = Self::Many(Box::new(KeyedList::new()));
        let only = core::mem::replace(self, pair);
        if let (Self::Many(list), Self::One(only)) = (self, only) {
            list.push(only, hashing);
            list.push(destination, hashing);
        }
        None
    }

    /// Removes one of several destinations; the last one is removed with the filter itself.
    pub(crate) fn remove_one_of_many(&mut self, key: D::Key, hashing: Hashing) -> Option<D> {
        let Self::Many(list) = self else {
            return None;
        };
        let position = list.position(key, hashing)?;
        let removed = list.swap_remove(position, hashing);
        if let Some(only) = list.take_only() {
            *self = Self::One(only);
        }
        removed
    }

    pub(crate) fn into_only(self) -> Option<D> {
        match self {
            Self::One(destination) => Some(destination),
            Self::Many(_) => None,
        }
    }

    /// Allocated bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Many(list) => size_of::<KeyedList<D>>() + list.heap_bytes(),
        }
    }
}
