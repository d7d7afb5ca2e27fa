//! One keyed hash for every table of the crate, and a table from hashes to ids.

use alloc::vec;
use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash, Hasher};

use foldhash::SharedSeed;
use foldhash::fast::{FoldHasher, SeedableRandomState};
use hashbrown::HashTable;

/// A table is shrunk when fewer than one slot in this many is in use.
const SHRINK_DIVISOR: usize = 8;
/// Tables below this size are not worth shrinking.
const SHRINK_CAPACITY_MIN: usize = 64;

/// Number of parts of a large table; a power of two.
const PARTS: usize = 64;
/// Lowest of the hash bits that select the part.
const PART_SHIFT: u32 = 19;
/// Highest number of entries in an undivided table: moving them takes half a millisecond.
const WHOLE_ENTRIES_MAX: usize = 28 * 1024;

/// Keyed hash functions; copies compute the same hashes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hashing {
    seed: u64,
    shared_seed: &'static SharedSeed,
}

impl Hashing {
    pub(crate) fn random() -> Self {
        Self {
            seed: SeedableRandomState::random().hash_one(0),
            shared_seed: SharedSeed::global_random(),
        }
    }

    /// Hashes that are the same in every process, for tests and repeatable counts.
    pub(crate) const fn with_seed(seed: u64) -> Self {
        Self {
            seed,
            shared_seed: SharedSeed::global_fixed(),
        }
    }

    pub(crate) fn hasher(self) -> FoldHasher<'static> {
        FoldHasher::with_seed(self.seed, self.shared_seed)
    }

    pub(crate) fn text(self, text: &[u8]) -> u32 {
        let mut hasher = self.hasher();
        hasher.write(text);
        upper_half(hasher.finish())
    }

    pub(crate) fn pair(self, first: u32, second: u32) -> u32 {
        let mut hasher = self.hasher();
        hasher.write_u64(u64::from(first) << 32 | u64::from(second));
        upper_half(hasher.finish())
    }

    pub(crate) fn key<K: Hash>(self, key: &K) -> u64 {
        let mut hasher = self.hasher();
        key.hash(&mut hasher);
        hasher.finish()
    }
}

/// A hash that is the same in every process and every version, because positions on the disk depend
/// on it. It does not resist deliberate collisions.
pub fn stable_hash(text: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = text.len() as u64;
    for chunk in text.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR);
        hash ^= hash >> 32;
    }
    hash
}

/// The better mixed half of a folded multiplication.
pub(crate) fn upper_half(hash: u64) -> u32 {
    let [a, b, c, d, ..] = hash.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// A hash table takes its tag from the top bits and the bucket from the lowest ones.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

/// The hash is stored beside the id, so that growing the table reads only the table.
#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u32,
    id: u32,
}

/// Ids by hash; the values are in the caller's slab.
///
/// A large table is divided into parts that grow one by one: growing a table of a million entries
/// at once would block the caller for ten milliseconds.
#[derive(Debug)]
pub(crate) struct IdTable {
    /// One part, or [`PARTS`] of them.
    parts: Vec<HashTable<Entry>>,
    len: usize,
}

impl Default for IdTable {
    fn default() -> Self {
        Self {
            parts: vec![HashTable::new()],
            len: 0,
        }
    }
}

impl IdTable {
    /// Index of the part, from bits that are used neither for the tag nor, in parts of ordinary
    /// size, for the bucket.
    const fn part(&self, hash: u32) -> usize {
        (hash >> PART_SHIFT) as usize & (self.parts.len() - 1)
    }

    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let entry = self.parts[self.part(hash)]
            .find(spread(hash), |entry| entry.hash == hash && is_it(entry.id))?;
        Some(entry.id)
    }

    /// Adds an id; the caller ensures that it is not in the table.
    pub(crate) fn insert(&mut self, hash: u32, id: u32) {
        if self.parts.len() == 1 && self.len >= WHOLE_ENTRIES_MAX {
            self.split();
        }
        self.len += 1;
        self.insert_into_part(Entry { hash, id });
    }

    fn insert_into_part(&mut self, entry: Entry) {
        let part = self.part(entry.hash);
        self.parts[part].insert_unique(spread(entry.hash), entry, |entry| spread(entry.hash));
    }

    fn split(&mut self) {
        let part = || HashTable::with_capacity(2 * WHOLE_ENTRIES_MAX / PARTS);
        let whole = core::mem::replace(&mut self.parts, (0..PARTS).map(|_| part()).collect());
        for entry in whole.into_iter().flatten() {
            self.insert_into_part(entry);
        }
    }

    pub(crate) fn remove(&mut self, hash: u32, id: u32) {
        let part = self.part(hash);
        let part = &mut self.parts[part];
        let Ok(found) = part.find_entry(spread(hash), |entry| entry.id == id) else {
            return;
        };
        found.remove();
        self.len -= 1;
        if self.len == 0 {
            *self = Self::default();
        } else {
            shrink_sparse(part, |entry| spread(entry.hash));
        }
    }

    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let parts: usize = self.parts.iter().map(HashTable::allocation_size).sum();
        parts + self.parts.capacity() * size_of::<HashTable<Entry>>()
    }
}

/// Rebuilds only a table that is nearly empty, so that removal stays O(1) when half of the entries
/// are removed and added repeatedly.
pub(crate) fn shrink_sparse<T>(table: &mut HashTable<T>, hash: impl Fn(&T) -> u64) {
    let (used, capacity) = (table.len(), table.capacity());
    if capacity >= SHRINK_CAPACITY_MIN && used < capacity / SHRINK_DIVISOR {
        table.shrink_to(used * 2, hash);
    }
}

#[cfg(test)]
mod tests {
    use super::{Hashing, IdTable, PARTS, WHOLE_ENTRIES_MAX, stable_hash};

    #[test]
    fn the_stable_hash_does_not_change() {
        let hashes =
            ["", "a", "temperature", "site/17/state"].map(|text| stable_hash(text.as_bytes()));
        assert_eq!(
            hashes,
            [
                0,
                0x54CD_A58F_EF23_226F,
                0x4B89_B686_B3CF_920B,
                0x1511_34DA_A494_F39E,
            ]
        );
    }

    #[test]
    fn ids_are_found_before_and_after_the_table_is_divided_but_not_after_removal() {
        let hashing = Hashing::with_seed(1);
        let count = u32::try_from(4 * WHOLE_ENTRIES_MAX).unwrap();
        let hash = |id: u32| hashing.pair(id, id);
        let find = |table: &IdTable, id: u32| table.find(hash(id), |found| found == id);
        let mut table = IdTable::default();
        let empty = table.memory_bytes();
        for id in 0..count {
            assert_eq!(find(&table, id), None);
            table.insert(hash(id), id);
            assert_eq!(find(&table, id / 2), Some(id / 2));
        }
        assert_eq!(table.parts.len(), PARTS);
        assert!(
            table
                .parts
                .iter()
                .all(|part| part.len() > WHOLE_ENTRIES_MAX / PARTS)
        );
        for id in 0..count {
            table.remove(hash(id), id);
            assert_eq!(find(&table, id), None);
        }
        assert_eq!((table.parts.len(), table.memory_bytes()), (1, empty));
    }

    #[test]
    fn only_a_large_table_that_is_nearly_empty_shrinks() {
        let rehash = |id: &u32| u64::from(*id).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let table_of = |count: u32| {
            let mut table = hashbrown::HashTable::new();
            for id in 0..count {
                table.insert_unique(rehash(&id), id, rehash);
            }
            table
        };
        let mut table = table_of(10_000);
        let capacity = table.capacity();
        let least = capacity / super::SHRINK_DIVISOR;
        while table.len() > least {
            let id = u32::try_from(table.len() - 1).unwrap();
            table
                .find_entry(rehash(&id), |other| *other == id)
                .unwrap()
                .remove();
        }
        super::shrink_sparse(&mut table, rehash);
        assert_eq!(table.capacity(), capacity);
        let id = u32::try_from(table.len() - 1).unwrap();
        table
            .find_entry(rehash(&id), |other| *other == id)
            .unwrap()
            .remove();
        let left = table.len();
        super::shrink_sparse(&mut table, rehash);
        assert!(
            (2 * left..capacity).contains(&table.capacity()),
            "{}",
            table.capacity()
        );
        assert_eq!(table.len(), left);
        let mut small = table_of(3);
        let capacity = small.capacity();
        assert!(capacity < super::SHRINK_CAPACITY_MIN);
        small.clear();
        super::shrink_sparse(&mut small, rehash);
        assert_eq!(small.capacity(), capacity);
    }

    #[test]
    fn hashes_of_pairs_and_texts_are_spread_and_depend_on_the_seed() {
        let (one, other) = (Hashing::with_seed(1), Hashing::with_seed(2));
        assert_eq!(one.pair(3, 4), one.pair(3, 4));
        assert_ne!(one.pair(3, 4), one.pair(4, 3));
        assert_ne!(one.pair(3, 4), other.pair(3, 4));
        assert_ne!(one.text(b"a"), one.text(b"b"));
        assert_ne!(one.key(&1), one.key(&2));
        assert_ne!(Hashing::random().pair(3, 4), one.pair(3, 4));
    }
}
