//! A map of bounded size that forgets the longest unused entries.
//!
//! Entries are in two generations. A used entry moves to the recent one; when that is full, or
//! after some time, it becomes the older one, and the map forgets the remaining entries of the
//! older one. Each call takes constant time, and an entry has no links to others.

use std::hash::Hash;
use std::time::Duration;

use hashbrown::{Equivalent, HashMap};
use thrum_protocol::Time;

/// See above.
#[derive(Debug)]
pub(crate) struct IdleMap<K, V> {
    recent: HashMap<K, V>,
    older: HashMap<K, V>,
    /// Limit of the entries of one generation.
    generation_max: usize,
    turned_at: Time,
    /// Number of entries that were forgotten for lack of room.
    evicted: u64,
}

impl<K: Hash + Eq, V> IdleMap<K, V> {
    /// A map of this number of entries, at least two.
    pub(crate) fn new(entries_max: usize) -> Self {
        Self {
            recent: HashMap::default(),
            older: HashMap::default(),
            generation_max: (entries_max / 2).max(1),
            turned_at: Time::default(),
            evicted: 0,
        }
    }

    /// Number of entries, never more than the limit.
    pub(crate) fn len(&self) -> usize {
        self.recent.len() + self.older.len()
    }

    /// Whether there is no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of entries that were forgotten for lack of room since the last call.
    pub(crate) fn take_evicted(&mut self) -> u64 {
        std::mem::take(&mut self.evicted)
    }

    /// Reads an entry, which does not count as a use.
    pub(crate) fn peek<Q>(&self, key: &Q) -> Option<&V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        self.recent.get(key).or_else(|| self.older.get(key))
    }

    /// The keys of all entries.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.recent.keys().chain(self.older.keys())
    }

    /// The entry of a key, created if it does not exist. If room is needed, entries in use stay, as
    /// far as they take half of it.
    pub(crate) fn entry<Q>(
        &mut self,
        key: &Q,
        in_use: impl Fn(&V) -> bool,
        make: impl FnOnce() -> (K, V),
    ) -> &mut V
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        if !self.recent.contains_key(key) {
            let (key, value) = self.older.remove_entry(key).unwrap_or_else(make);
            if self.recent.len() >= self.generation_max {
                self.evicted += self.turn(in_use);
            }
            self.recent.insert(key, value);
        }
        let entry = self.recent.get_mut(key);
        entry.expect("it is there or was put there")
    }

    /// Makes the recent generation the older one, and returns the number of forgotten entries.
    fn turn(&mut self, in_use: impl Fn(&V) -> bool) -> u64 {
        let recent = std::mem::take(&mut self.recent);
        let forgotten = std::mem::replace(&mut self.older, recent);
        let before = forgotten.len();
        // With more entries the next turn would follow at once.
        let room = self.generation_max / 2;
        let kept = forgotten.into_iter().filter(|(_, value)| in_use(value));
        self.recent.extend(kept.take(room));
        (before - self.recent.len()) as u64
    }

    /// Forgets entries unused for this time, at the latest after twice that time.
    pub(crate) fn forget_idle(&mut self, idle: Duration, now: Time, in_use: impl Fn(&V) -> bool) {
        if now.since(self.turned_at) >= idle {
            self.turned_at = now;
            if !self.is_empty() {
                self.turn(in_use);
            }
        }
    }

    /// Forgets all entries.
    pub(crate) fn clear(&mut self) {
        self.recent = HashMap::default();
        self.older = HashMap::default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn touch(map: &mut IdleMap<u32, u32>, key: u32) -> &mut u32 {
        map.entry(&key, |value| *value > 0, || (key, 0))
    }

    #[test]
    fn used_entries_stay_and_the_rest_is_forgotten() {
        let mut map = IdleMap::new(8);
        *touch(&mut map, 1) = 7;
        for other in 100..1000 {
            touch(&mut map, other);
            assert_eq!(*touch(&mut map, 1), 7, "{other}");
        }
        assert_eq!(map.peek(&100), None);
        assert!(map.take_evicted() > 800);
        assert_eq!(map.take_evicted(), 0);
    }

    #[test]
    fn used_entries_outlive_unused_ones() {
        let mut map = IdleMap::new(16);
        *touch(&mut map, 1) = 7;
        for other in 100..1000 {
            touch(&mut map, other);
        }
        assert_eq!(map.peek(&1), Some(&7));
    }

    #[test]
    fn idle_entries_are_forgotten_in_time() {
        let mut map = IdleMap::new(100);
        let (idle, at) = (Duration::from_secs(10), Time::from_millis);
        map.forget_idle(idle, at(0), |_| false);
        touch(&mut map, 1);
        map.forget_idle(idle, at(10_000), |_| false);
        map.forget_idle(idle, at(19_999), |_| false);
        assert_eq!(map.len(), 1);
        map.forget_idle(idle, at(20_000), |_| false);
        assert!(map.is_empty());
        assert_eq!(map.take_evicted(), 0);
    }

    #[test]
    fn keys_of_both_generations_are_listed() {
        let mut map = IdleMap::new(8);
        assert!(map.is_empty());
        for key in 1..=6 {
            touch(&mut map, key);
        }
        assert!(!map.older.is_empty() && !map.recent.is_empty());
        let mut keys: Vec<u32> = map.keys().copied().collect();
        keys.sort_unstable();
        assert_eq!(keys, [1, 2, 3, 4, 5, 6]);
        assert_eq!((map.len(), map.is_empty()), (6, false));
        map.clear();
        assert!(map.is_empty());
    }

    #[test]
    fn only_entries_removed_for_lack_of_room_are_counted() {
        // A generation has four entries; two entries in use stay.
        let mut map = IdleMap::new(8);
        for (key, in_use) in [
            (1, 1),
            (2, 1),
            (3, 1),
            (4, 0),
            (5, 0),
            (6, 0),
            (7, 0),
            (8, 0),
        ] {
            *touch(&mut map, key) = in_use;
        }
        assert_eq!(map.take_evicted(), 0);
        touch(&mut map, 9);
        assert_eq!(map.take_evicted(), 2);
        let stayed = (1..=3).filter(|key| map.peek(key).is_some()).count();
        assert_eq!((stayed, map.peek(&4)), (2, None));
        assert!((5..=9).all(|key| map.peek(&key).is_some()));
    }

    #[test]
    fn a_map_for_one_entry_has_room_for_two() {
        let mut map = IdleMap::new(1);
        for key in 1..=3 {
            touch(&mut map, key);
        }
        assert_eq!((map.len(), map.peek(&1)), (2, None));
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn a_map_never_exceeds_its_bound(
            bound in 2_usize..40,
            keys in proptest::collection::vec((0_u32..100, 0_u32..2), 1..500),
        ) {
            let mut map = IdleMap::new(bound);
            for (step, (key, in_use)) in (0_u64..).zip(keys) {
                *touch(&mut map, key) = in_use;
                prop_assert_eq!(map.peek(&key), Some(&in_use));
                prop_assert!(map.len() <= bound, "{} of {}", map.len(), bound);
                let (idle, now) = (Duration::from_millis(50), Time::from_millis(step));
                map.forget_idle(idle, now, |value| *value > 0);
                prop_assert!(map.len() <= bound);
            }
        }
    }
}
