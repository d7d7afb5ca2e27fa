//! The most frequent keys of a stream, counted in bounded memory (the space-saving sketch of
//! Metwally, Agrawal and El Abbadi).
//!
//! While there are fewer keys than places, every count is exact. Later a new key takes the place of
//! the one with the smallest count and inherits that count as its possible error: a key that
//! occurs more often than the smallest count is certainly in the table.

use hashbrown::HashTable;

/// A key with its count.
#[derive(Clone, Debug)]
pub struct Counted<K> {
    /// The key.
    pub key: K,
    /// Occurrences, at most `error` too many.
    pub count: u64,
    /// Occurrences of other keys that `count` may contain.
    pub error: u64,
    hash: u64,
    /// Position in the heap.
    place: usize,
}

/// The most frequent keys.
#[derive(Clone, Debug)]
pub struct TopCounts<K> {
    /// Greatest number of keys; above 0.
    capacity: usize,
    entries: Vec<Counted<K>>,
    /// Numbers of entries as a binary heap: the smallest count is first.
    heap: Vec<usize>,
    /// Numbers of entries by the hash of their key.
    known: HashTable<usize>,
    /// Keys that lost their place to another one.
    replaced: u64,
}

impl<K> TopCounts<K> {
    /// An empty table of so many keys at most.
    pub const fn new(capacity: usize) -> Self {
        Self {
            capacity: if capacity == 0 { 1 } else { capacity },
            entries: Vec::new(),
            heap: Vec::new(),
            known: HashTable::new(),
            replaced: 0,
        }
    }

    /// Counts a key, which `is_it` recognizes and `make` creates if it is not in the table. Takes
    /// time logarithmic in the number of keys; returns the key.
    pub fn add(
        &mut self,
        hash: u64,
        count: u64,
        is_it: impl Fn(&K) -> bool,
        make: impl FnOnce() -> K,
    ) -> &mut K {
        let entries = &self.entries;
        let found = self.known.find(hash, |number| {
            let entry = &entries[*number];
            entry.hash == hash && is_it(&entry.key)
        });
        let number = match found {
            Some(number) => *number,
            None if self.entries.len() < self.capacity => self.append(hash, make()),
            None => self.replace_least(hash, make()),
        };
        let entry = &mut self.entries[number];
        entry.count = entry.count.saturating_add(count);
        let place = entry.place;
        self.sink(place);
        &mut self.entries[number].key
    }

    /// The keys in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Counted<K>> {
        self.entries.iter()
    }

    /// Number of keys in the table.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing was counted.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keys that lost their place to another one; 0 means that every count is exact.
    pub const fn replaced(&self) -> u64 {
        self.replaced
    }

    fn append(&mut self, hash: u64, key: K) -> usize {
        let number = self.entries.len();
        let place = self.heap.len();
        self.heap.push(number);
        self.entries.push(Counted {
            key,
            count: 0,
            error: 0,
            hash,
            place,
        });
        self.raise(place);
        self.remember(number);
        number
    }

    fn replace_least(&mut self, hash: u64, key: K) -> usize {
        let number = self.heap[0];
        let before = self.entries[number].hash;
        if let Ok(known) = self.known.find_entry(before, |known| *known == number) {
            known.remove();
        }
        let entry = &mut self.entries[number];
        entry.error = entry.count;
        (entry.hash, entry.key) = (hash, key);
        self.replaced += 1;
        self.remember(number);
        number
    }

    fn remember(&mut self, number: usize) {
        let entries = &self.entries;
        let hash = entries[number].hash;
        self.known
            .insert_unique(hash, number, |known| entries[*known].hash);
    }

    /// Moves an entry towards the front of the heap while its count is smaller.
    fn raise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.count_at(parent) <= self.count_at(place) {
                return;
            }
            self.swap(parent, place);
            place = parent;
        }
    }

    /// Moves an entry away from the front of the heap while its count is greater.
    fn sink(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            let children = left..(left + 2).min(self.heap.len());
            let Some(child) = children.min_by_key(|child| self.count_at(*child)) else {
                return;
            };
            if self.count_at(place) <= self.count_at(child) {
                return;
            }
            self.swap(child, place);
            place = child;
        }
    }

    fn count_at(&self, place: usize) -> u64 {
        self.entries[self.heap[place]].count
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        for place in [one, other] {
            self.entries[self.heap[place]].place = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// Many keys share a hash, which the table must tell apart.
    const HASHES: u64 = 7;

    fn counted(capacity: usize, stream: &[(u64, u64)]) -> TopCounts<u64> {
        let mut table = TopCounts::new(capacity);
        for (key, count) in stream {
            table.add(key % HASHES, *count, |known| known == key, || *key);
        }
        table
    }

    proptest! {
        #[test]
        fn counts_are_right_within_their_errors(
            stream in prop::collection::vec((0..60_u64, 1..9_u64), 0..400),
            capacity in 1..30_usize,
        ) {
            let mut truth: HashMap<u64, u64> = HashMap::new();
            for (key, count) in &stream {
                *truth.entry(*key).or_default() += count;
            }
            let table = counted(capacity, &stream);
            prop_assert!(table.len() <= capacity);
            let total: u64 = table.iter().map(|entry| entry.count).sum();
            prop_assert_eq!(total, truth.values().sum::<u64>());
            for entry in table.iter() {
                let true_count = truth[&entry.key];
                prop_assert!(entry.count >= true_count && entry.count - entry.error <= true_count);
            }
            let least = table.iter().map(|entry| entry.count).min().unwrap_or(0);
            let is_kept = |(key, count): (&u64, &u64)| {
                *count <= least || table.iter().any(|entry| entry.key == *key)
            };
            prop_assert!(truth.iter().all(is_kept), "one is more frequent than the least");
            if truth.len() <= capacity {
                prop_assert!(table.replaced() == 0 && table.iter().all(|entry| entry.error == 0));
            }
        }
    }

    #[test]
    fn a_frequent_key_outlasts_many_rare_ones() {
        let rare = (100..5_100).map(|key| (key, 1));
        let stream: Vec<_> = rare.flat_map(|rare| [(1, 1), rare]).collect();
        let table = counted(16, &stream);
        let frequent = table.iter().find(|entry| entry.key == 1).unwrap();
        assert_eq!((frequent.count, frequent.error), (5_000, 0));
        assert!(table.replaced() > 4_900);
    }
}
