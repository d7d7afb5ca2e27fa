//! One keyed hash for every table of the crate, and the table from a hash to an id.

use core::hash::{BuildHasher, Hash, Hasher};

use foldhash::SharedSeed;
use foldhash::fast::{FoldHasher, SeedableRandomState};
use hashbrown::HashTable;

/// A table gives memory back when fewer than one slot in this many is in use.
const SHRINK_DIVISOR: usize = 8;
/// Tables below this size are not worth shrinking.
const SHRINK_CAPACITY_MIN: usize = 64;

/// Keyed hash functions; a copy hashes alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hashing {
    seed: u64,
    shared_seed: &'static SharedSeed,
}

impl Hashing {
    pub(crate) fn random() -> Self {
        Self::with_seed(SeedableRandomState::random().hash_one(0))
    }

    pub(crate) fn with_seed(seed: u64) -> Self {
        Self {
            seed,
            shared_seed: SharedSeed::global_random(),
        }
    }

    fn hasher(self) -> FoldHasher<'static> {
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

/// The better mixed half of a folded multiply.
fn upper_half(hash: u64) -> u32 {
    let [a, b, c, d, ..] = hash.to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

/// A hash table takes its tag from the top bits and the bucket from the lowest.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

/// Keeps the hash beside the id, so that growing the table touches nothing but the table.
#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u32,
    id: u32,
}

/// Ids by hash; what they stand for lies in the caller's slab.
#[derive(Debug, Default)]
pub(crate) struct IdTable(HashTable<Entry>);

impl IdTable {
    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let entry = self
            .0
            .find(spread(hash), |entry| entry.hash == hash && is_it(entry.id))?;
        Some(entry.id)
    }

    /// The caller has made sure that the id is not in the table.
    pub(crate) fn insert(&mut self, hash: u32, id: u32) {
        self.0
            .insert_unique(spread(hash), Entry { hash, id }, |entry| spread(entry.hash));
    }

    pub(crate) fn remove(&mut self, hash: u32, id: u32) {
        if let Ok(found) = self.0.find_entry(spread(hash), |entry| entry.id == id) {
            found.remove();
        }
        shrink_sparse(&mut self.0, |entry| spread(entry.hash));
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.allocation_size()
    }
}

/// Halves may come and go; only a table that is nearly empty is rebuilt, which keeps removal O(1).
pub(crate) fn shrink_sparse<T>(table: &mut HashTable<T>, hash: impl Fn(&T) -> u64) {
    let (used, capacity) = (table.len(), table.capacity());
    if capacity >= SHRINK_CAPACITY_MIN && used < capacity / SHRINK_DIVISOR {
        table.shrink_to(used * 2, hash);
    }
}
