//! What a worker remembers of the topics that pass through it, so that steady traffic looks nothing
//! up.

use std::hash::BuildHasher;
use std::sync::Arc;

use thrum_protocol::server::GroupId;
use thrum_routing::FilterId;
use thrum_routing::shared::Group;

use crate::hashing::HashBuilder;
use crate::interest::changes::{Changes, Version};
use crate::interest::{Member, Route};
use crate::queue_room::QueueRoom;

/// Topics remembered by one worker; a newcomer replaces what its slot held.
const SLOTS: usize = 4096;
/// Memory of what one worker remembers. With ordinary topics all slots together take a quarter of
/// it; past it the worker forgets everything but the topic at hand, so what it costs to remember
/// again is little beside what filled it.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// A topic that needs more of it is looked up each time: its message goes to a hundred thousand
/// filters anyway.
const ENTRY_BYTES_MAX: usize = BYTES_MAX / 4;
/// Of the members of one group no more than this is counted with one topic, so that topics of a
/// large group have room.
const GROUP_BYTES_MAX: usize = BYTES_MAX / 8;
/// Longer topics are looked up each time: whoever uses them has no steady traffic of many messages.
const TOPIC_BYTES_MAX: usize = 256;
/// Places that a list may keep unused.
const SPARE: usize = 16;

/// The route of one topic.
#[derive(Debug, Default)]
pub struct Remembered {
    topic: Box<str>,
    /// State of the node's table that `route` belongs to.
    pub node_version: Version,
    /// State of the worker's own index that `local` belongs to.
    pub local_version: Version,
    /// Workers and shared groups.
    pub route: Route,
    /// Filters of this worker's sessions.
    pub local: Vec<FilterId>,
    /// Memory counted for it.
    bytes: usize,
    /// It is not remembered.
    is_passing: bool,
}

impl Remembered {
    /// Gives back what a longer route of before took.
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
            // All topics that remember the same members share them.
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

/// Direct-mapped by the topic's hash.
#[derive(Debug)]
pub struct RouteCache {
    /// Of the filters of this worker's sessions.
    pub changes: Changes,
    hasher: HashBuilder,
    slots: Vec<Option<Box<Remembered>>>,
    /// Memory of all that is remembered.
    bytes: usize,
}

impl RouteCache {
    pub fn new() -> Self {
        Self {
            changes: Changes::new(),
            hasher: HashBuilder::default(),
            slots: Vec::new(),
            bytes: 0,
        }
    }

    /// Where a topic is remembered: keyed, so that nobody outside can choose topics that fall into
    /// one place.
    pub fn hash(&self, text: &str) -> u64 {
        self.hasher.hash_one(text)
    }

    /// Takes the entry of a topic out, to be put back with [`RouteCache::put`] when it was used.
    /// Its versions hold for nothing if the topic was not remembered.
    pub fn take(&mut self, topic: &str, hash: u64) -> Box<Remembered> {
        if topic.len() > TOPIC_BYTES_MAX {
            return Box::new(Remembered {
                is_passing: true,
                ..Remembered::default()
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

    /// Puts an entry back.
    pub fn put(&mut self, hash: u64, entry: Box<Remembered>) {
        if entry.is_passing {
            return;
        }
        if let Some(other) = self.slots[slot(hash)].replace(entry) {
            self.bytes = self.bytes.saturating_sub(other.bytes);
        }
    }

    /// Counts an entry that was looked up anew; false if everything else was forgotten to make room
    /// for it.
    #[cold]
    pub fn count(&mut self, entry: &mut Remembered) -> bool {
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

    /// Forgets every topic, and gives its memory back.
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
    struct Nobody;

    impl Destination for Nobody {
        type Key = ();

        fn key(&self) {}
    }

    fn filter() -> FilterId {
        Index::with_seed(1).insert("a", Nobody).filter
    }

    /// A topic that so many filters match passes through; whether it was remembered before.
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
    fn a_topic_is_remembered_until_another_takes_its_place() {
        let mut cache = RouteCache::new();
        let seen = ["a", "b", "a", "b"].map(|topic| pass(&mut cache, topic, 3));
        assert_eq!(seen, [false, false, true, true]);
    }

    #[test]
    fn long_topics_are_not_remembered() {
        let mut cache = RouteCache::new();
        for (len, is_known) in [(TOPIC_BYTES_MAX, true), (TOPIC_BYTES_MAX + 1, false)] {
            let topic = "t".repeat(len);
            pass(&mut cache, &topic, 1);
            assert_eq!(pass(&mut cache, &topic, 1), is_known);
        }
    }

    #[test]
    fn topics_that_many_filters_match_are_remembered_within_a_limit_of_bytes() {
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
    fn a_slot_gives_its_room_back_when_few_filters_match_the_next_topic() {
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
