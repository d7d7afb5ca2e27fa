//! Cache of the routes of one worker by topic, so that steady traffic needs no look-up.

use std::hash::BuildHasher;
use std::sync::Arc;

use thrum_protocol::server::GroupId;
use thrum_routing::FilterId;
use thrum_routing::shared::Group;

use crate::hashing::HashBuilder;
use crate::interest::changes::{Changes, Version};
use crate::interest::{Member, Route};
use crate::queue_room::QueueRoom;

/// Number of topics that one worker caches; a new topic replaces the one in its slot.
const SLOTS: usize = 4096;
/// Greatest memory of the cache of one worker in bytes. Ordinary topics use a quarter of it. Beyond
/// the limit the worker forgets all topics but the current one; filling the cache again costs
/// little compared with the traffic that filled it.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// Greatest memory of one entry in bytes. A topic that needs more is looked up for each message,
/// which goes to a hundred thousand filters anyway.
const ENTRY_BYTES_MAX: usize = BYTES_MAX / 4;
/// Greatest memory in bytes that one entry counts for the members of one group, so that topics with
/// a large group fit.
const GROUP_BYTES_MAX: usize = BYTES_MAX / 8;
/// Length in bytes of the longest topic that is cached; longer topics are rare in steady traffic.
const TOPIC_BYTES_MAX: usize = 256;
/// Unused capacity that a list may keep.
const SPARE: usize = 16;

/// The cached route of one topic.
#[derive(Debug, Default)]
pub struct CachedRoute {
    topic: Box<str>,
    /// Version of the node's table for which `route` is valid.
    pub node_version: Version,
    /// Version of the worker's own index for which `local` is valid.
    pub local_version: Version,
    /// Destinations beyond the sessions of this worker: workers, shared groups and sinks.
    pub route: Route,
    /// Matching filters of this worker's sessions.
    pub local: Vec<FilterId>,
    /// Memory in bytes that is counted for the entry.
    bytes: usize,
    /// The entry is not put back into the cache.
    is_passing: bool,
}

impl CachedRoute {
    /// Frees memory that an earlier, longer route took.
    fn trim(&mut self) {
        trim(&mut self.local);
        trim(&mut self.route.groups);
        trim(&mut self.route.nearly_full);
    }

    fn memory_bytes(&self) -> usize {
        let lists = self.local.capacity() * size_of::<FilterId>()
            + self.route.nearly_full.capacity() * size_of::<Arc<QueueRoom>>()
            + self.route.groups.capacity() * size_of::<(GroupId, Arc<Group<Member>>)>();
        let groups = self.route.groups.iter().map(|(_, members)| {
            // All entries with the same members share their memory.
            (members.memory_bytes() / Arc::strong_count(members)).min(GROUP_BYTES_MAX)
        });
        size_of::<Self>() + self.topic.len() + lists + groups.sum::<usize>()
    }
}

fn trim<T>(list: &mut Vec<T>) {
    if list.capacity() > 2 * list.len() + SPARE {
        list.shrink_to_fit();
    }
}

/// Cache of routes, direct-mapped by the hash of the topic.
#[derive(Debug)]
pub struct RouteCache {
    /// Changes of the filters of this worker's sessions.
    pub changes: Changes,
    hasher: HashBuilder,
    slots: Vec<Option<Box<CachedRoute>>>,
    /// Memory of all entries in bytes.
    bytes: usize,
}

impl Default for RouteCache {
    fn default() -> Self {
        Self::new()
    }
}

impl RouteCache {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self {
            changes: Changes::new(),
            hasher: HashBuilder::default(),
            slots: Vec::new(),
            bytes: 0,
        }
    }

    /// The hash of a topic, which is keyed, so that clients cannot choose topics that share a slot.
    pub fn hash(&self, text: &str) -> u64 {
        self.hasher.hash_one(text)
    }

    /// Takes the entry of a topic, which must be put back with [`RouteCache::put`] after its use.
    /// The versions of the entry are invalid if the topic was not cached.
    pub fn take(&mut self, topic: &str, hash: u64) -> Box<CachedRoute> {
        if topic.len() > TOPIC_BYTES_MAX {
            return Box::new(CachedRoute {
                is_passing: true,
                ..CachedRoute::default()
            });
        }
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, || None);
        }
        let mut entry = self.slots[slot(hash)].take().unwrap_or_default();
        if *entry.topic != *topic {
            entry.topic = topic.into();
            entry.node_version = Version::default();
            entry.local_version = Version::default();
        }
        entry
    }

    /// Puts an entry back into the cache.
    pub fn put(&mut self, hash: u64, entry: Box<CachedRoute>) {
        if entry.is_passing {
            return;
        }
        if let Some(other) = self.slots[slot(hash)].replace(entry) {
            self.bytes = self.bytes.saturating_sub(other.bytes);
        }
    }

    /// Counts the memory of an entry after a look-up; false if all other entries were dropped to
    /// free memory.
    #[cold]
    pub fn count(&mut self, entry: &mut CachedRoute) -> bool {
        if entry.is_passing {
            return true;
        }
        entry.trim();
        let bytes = entry.memory_bytes();
        let before = std::mem::replace(&mut entry.bytes, bytes);
        self.bytes = self.bytes.saturating_sub(before) + entry.bytes;
        if entry.bytes > ENTRY_BYTES_MAX {
            entry.is_passing = true;
            self.bytes -= entry.bytes;
        }
        if self.bytes <= BYTES_MAX {
            return true;
        }
        self.forget();
        self.bytes = entry.bytes;
        false
    }

    /// Drops all entries and frees their memory.
    pub fn forget(&mut self) {
        self.slots.iter_mut().for_each(|slot| *slot = None);
        self.bytes = 0;
    }
}

fn slot(hash: u64) -> usize {
    usize::try_from(hash % SLOTS as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use crate::workers::WorkerId;
    use thrum_routing::{Destination, Index};

    use super::*;
    use crate::ids::Slot;
    use crate::interest::SessionRef;

    #[derive(Clone, Copy, Debug)]
    struct TestDestination;

    impl Destination for TestDestination {
        type Key = ();

        fn key(&self) {}
    }

    fn filter() -> FilterId {
        Index::with_seed(1).insert("a", TestDestination).filter
    }

    /// Looks up a topic that so many filters match; true if it was cached before.
    fn pass(cache: &mut RouteCache, topic: &str, filters: usize) -> bool {
        let changes = Changes::new();
        let hash = cache.hash(topic);
        let mut entry = cache.take(topic, hash);
        let is_known = changes.holds(&mut entry.local_version, topic);
        if !is_known {
            entry.local_version = changes.version(topic);
            entry.local.clear();
            entry.local.extend(std::iter::repeat_n(filter(), filters));
            cache.count(&mut entry);
        }
        assert_eq!(entry.local.len(), filters);
        cache.put(hash, entry);
        is_known
    }

    fn held(cache: &RouteCache) -> usize {
        let entries = cache.slots.iter().flatten();
        entries
            .map(|entry| entry.local.capacity() * size_of::<FilterId>())
            .sum()
    }

    #[test]
    fn a_topic_is_cached_until_another_replaces_it() {
        let mut cache = RouteCache::new();
        let seen = ["a", "b", "a", "b"].map(|topic| pass(&mut cache, topic, 3));
        assert_eq!(seen, [false, false, true, true]);
    }

    #[test]
    fn long_topics_are_not_cached() {
        let mut cache = RouteCache::new();
        for (len, is_known) in [(TOPIC_BYTES_MAX, true), (TOPIC_BYTES_MAX + 1, false)] {
            let topic = "t".repeat(len);
            pass(&mut cache, &topic, 1);
            assert_eq!(pass(&mut cache, &topic, 1), is_known);
        }
    }

    #[test]
    fn a_long_topic_takes_no_slot_of_another_one() {
        let mut cache = RouteCache::new();
        let mut entry = cache.take("a", 1);
        entry.local.push(filter());
        cache.put(1, entry);
        let long = cache.take(&"t".repeat(TOPIC_BYTES_MAX + 1), 1);
        assert!(cache.slots[1].is_some());
        cache.put(1, long);
        assert_eq!(cache.take("a", 1).local.len(), 1);
    }

    #[test]
    fn topics_that_many_filters_match_are_cached_within_a_limit_of_bytes() {
        let mut cache = RouteCache::new();
        for number in 0..1000 {
            pass(&mut cache, &format!("attack/{number}"), 10_000);
            assert!(held(&cache) <= BYTES_MAX, "{}", held(&cache));
        }
        assert!(
            pass(&mut cache, "attack/999", 10_000),
            "the last one is known"
        );
        let counted: usize = cache.slots.iter().flatten().map(|entry| entry.bytes).sum();
        assert_eq!(cache.bytes, counted);
        let topic = "one/that/is/too/large";
        pass(&mut cache, topic, ENTRY_BYTES_MAX);
        assert!(!pass(&mut cache, topic, ENTRY_BYTES_MAX));
        let counted: usize = cache.slots.iter().flatten().map(|entry| entry.bytes).sum();
        assert_eq!(cache.bytes, counted, "it is not counted");
    }

    #[test]
    fn a_topic_counts_the_subscribers_whose_queues_are_nearly_full() {
        let session = SessionRef {
            worker: WorkerId::new(0),
            slot: Slot::FIRST,
            id: 1,
        };
        let room = Arc::new(QueueRoom::new(session, Arc::default()));
        let mut cache = RouteCache::new();
        let mut entry = cache.take("t", 1);
        let rooms = ENTRY_BYTES_MAX / size_of::<Arc<QueueRoom>>() / 2;
        entry.route.nearly_full = vec![Arc::clone(&room); rooms];
        cache.count(&mut entry);
        assert!(entry.bytes >= rooms * size_of::<Arc<QueueRoom>>());
        cache.put(1, entry);
        let mut entry = cache.take("t", 1);
        entry.route.nearly_full.truncate(1);
        cache.count(&mut entry);
        assert!(entry.route.nearly_full.capacity() <= 2 * (1 + SPARE));
        entry.route.nearly_full = vec![room; 2 * rooms + 1];
        cache.count(&mut entry);
        assert!(entry.is_passing, "it is looked up each time");
    }

    #[test]
    fn a_slot_frees_memory_when_few_filters_match_the_next_topic() {
        let mut cache = RouteCache::new();
        for number in 0..100_000 {
            pass(
                &mut cache,
                &format!("t/{number}"),
                if number < 50_000 { 100 } else { 1 },
            );
        }
        assert!(held(&cache) <= SLOTS * 4 * SPARE * 2, "{}", held(&cache));
    }
}
