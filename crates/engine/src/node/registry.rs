//! Registry of the workers that own the sessions of client identifiers.

use crate::workers::WorkerId;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use crossbeam_utils::CachePadded;
use hashbrown::HashMap;

const SHARDS: usize = 64;

/// 80 bits of two hashes of a client identifier, as bytes so that an entry needs no padding before
/// the worker.
type Key = [u8; 10];
type Shard = Mutex<HashMap<Key, WorkerId>>;

/// Map from client identifier to worker, used when a client connects and when a session ends, never
/// per message.
///
/// The key consists of two independent hashes instead of the text: a third copy of each identifier
/// would cost more memory than the rest of the entry. The hash keys are random, and among ten
/// million clients any two have the same 80 bits with a probability of 1 in 24 billion.
#[derive(Debug)]
pub struct Registry {
    hashers: (RandomState, RandomState),
    /// Each lock guards its map for one look-up or change.
    shards: Box<[CachePadded<Shard>]>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// Creates an empty registry.
    pub fn new() -> Self {
        Self {
            hashers: (RandomState::new(), RandomState::new()),
            shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
        }
    }

    /// Returns the worker that owns the session of a client identifier; `candidate` becomes the
    /// owner if there is none.
    pub fn claim(&self, client_id: &str, candidate: WorkerId) -> WorkerId {
        let key = self.key(client_id);
        let mut shard = self
            .shard(key)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *shard.entry(key).or_insert(candidate)
    }

    /// Whether a client identifier has a session.
    pub fn has(&self, client_id: &str) -> bool {
        let key = self.key(client_id);
        let shard = self
            .shard(key)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        shard.contains_key(&key)
    }

    /// Removes the session of a client identifier if `owner` owns it.
    pub fn release(&self, client_id: &str, owner: WorkerId) {
        let key = self.key(client_id);
        let mut shard = self
            .shard(key)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if shard.get(&key) == Some(&owner) {
            shard.remove(&key);
        }
    }

    /// Number of client identifiers with a session.
    #[cfg(any(test, feature = "testing"))]
    pub fn len(&self) -> usize {
        let lock = |shard: &Shard| shard.lock().unwrap_or_else(PoisonError::into_inner).len();
        self.shards.iter().map(|shard| lock(shard)).sum()
    }

    /// Whether no client identifier has a session.
    #[cfg(any(test, feature = "testing"))]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn key(&self, client_id: &str) -> Key {
        let mut key = Key::default();
        let (first, second) = key.split_at_mut(8);
        first.copy_from_slice(&self.hashers.0.hash_one(client_id).to_le_bytes());
        let hash = self.hashers.1.hash_one(client_id).to_le_bytes();
        second.copy_from_slice(&hash[..second.len()]);
        key
    }

    fn shard(&self, key: Key) -> &Shard {
        &self.shards[usize::from(key[0]) % SHARDS]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_claim_wins_until_it_is_released_by_its_owner() {
        let registry = Registry::new();
        let (first, second) = (WorkerId::new(0), WorkerId::new(1));
        assert_eq!(registry.claim("a", first), first);
        assert_eq!(registry.claim("a", second), first);
        assert!(registry.has("a") && !registry.has("b"));
        registry.release("a", second);
        assert_eq!(registry.claim("a", second), first);
        registry.release("a", first);
        assert_eq!(registry.claim("a", second), second);
    }
}
