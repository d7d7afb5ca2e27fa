//! Keys of table entries, one type for each kind of entry.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::num::NonZeroU32;

use crate::client::Client;
use crate::output::ConnectionOutput;

/// Place of a `T` in a [`Table`](crate::table::Table). The place is reused after the `T` is
/// removed.
pub struct Key<T> {
    /// The place plus one, so that an optional key takes no more memory.
    number: NonZeroU32,
    of: PhantomData<fn() -> T>,
}

/// Place of a connection in the tables of its worker.
pub type ConnectionKey = Key<ConnectionOutput>;

/// Place of a session in the tables of its worker.
pub type Slot = Key<Client>;

impl<T> Key<T> {
    /// The first place.
    #[cfg(any(test, feature = "testing"))]
    pub const FIRST: Self = Self {
        number: NonZeroU32::MIN,
        of: PhantomData,
    };

    /// Creates the key of a place; none beyond 2^32 - 2.
    #[inline]
    pub fn new(place: usize) -> Option<Self> {
        let number = u32::try_from(place).ok()?.checked_add(1)?;
        Some(Self {
            number: NonZeroU32::new(number)?,
            of: PhantomData,
        })
    }

    /// The place.
    #[inline]
    pub const fn index(self) -> usize {
        self.number.get() as usize - 1
    }
}

impl<T> Clone for Key<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> PartialEq for Key<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<T> Eq for Key<T> {}

impl<T> PartialOrd for Key<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Key<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.number.cmp(&other.number)
    }
}

impl<T> Hash for Key<T> {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.index().fmt(f)
    }
}

/// Identity of a connection, different from that of earlier connections in the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId {
    /// The place of the connection in the tables.
    pub key: ConnectionKey,
    /// Number that differs from that of earlier connections in the same place.
    pub serial: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_optional_key_takes_four_bytes() {
        assert_eq!(size_of::<Option<Slot>>(), 4);
    }

    #[test]
    fn every_place_below_the_last_number_has_a_key() {
        for place in [0, 1, u32::MAX as usize - 1] {
            assert_eq!(Slot::new(place).unwrap().index(), place);
        }
        assert_eq!(Slot::new(u32::MAX as usize), None);
    }

    #[test]
    fn a_key_is_shown_as_its_place_and_keys_have_the_order_of_their_places() {
        let keys = [7, 3, 5].map(|place| Slot::new(place).unwrap());
        assert_eq!(format!("{keys:?}"), "[7, 3, 5]");
        let mut sorted = keys;
        sorted.sort();
        assert_eq!(sorted.map(Slot::index), [3, 5, 7]);
        assert!(keys[0] > keys[1] && keys[0] == Slot::new(7).unwrap());
    }
}
