//! What a filter leads to, and the list of it that one filter keeps.

use alloc::boxed::Box;
use core::hash::Hash;

use crate::hashing::Hashing;
use crate::keyed_list::KeyedList;

/// Somebody who wants messages: a session, a shared group, a rule, a peer node.
pub trait Destination {
    /// Tells the destinations of one filter apart.
    type Key: Copy + Eq + Hash;

    /// Must stay the same as long as the destination is stored.
    fn key(&self) -> Self::Key;
}

/// The destinations of one filter, never none: a single one lies in place.
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

    /// A destination with the same key is replaced and returned.
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

    /// Takes one of several out; the last one leaves with the filter itself.
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

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Many(list) => size_of::<KeyedList<D>>() + list.heap_bytes(),
        }
    }
}
