//! What a worker remembers of the topics that pass through it, so that steady traffic looks nothing up.

use std::hash::BuildHasher;

use thrum_routing::FilterId;

use crate::changes::{Changes, Version};
use crate::hashing::HashBuilder;
use crate::interest::Route;

/// Topics remembered by one worker; a newcomer replaces what its slot held. With topics of
/// ordinary length that is under 1 MiB.
const SLOTS: usize = 4096;

/// The route of one topic.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    topic: Box<str>,
    /// State of the node's table that `route` belongs to.
    pub(crate) node_version: Version,
    /// State of the worker's own index that `local` belongs to.
    pub(crate) local_version: Version,
    /// Workers and shared groups.
    pub(crate) route: Route,
    /// Filters of this worker's sessions.
    pub(crate) local: Vec<FilterId>,
}

/// Direct-mapped by the topic's hash.
#[derive(Debug)]
pub(crate) struct RouteCache {
    /// Of the filters of this worker's sessions.
    pub(crate) changes: Changes,
    hasher: HashBuilder,
    slots: Vec<Option<Box<Remembered>>>,
}

impl RouteCache {
    pub(crate) fn new() -> Self {
        Self {
            changes: Changes::new(),
            hasher: HashBuilder::default(),
            slots: Vec::new(),
        }
    }

    /// The hash that shared groups use too.
    pub(crate) fn hash(&self, text: &str) -> u64 {
        self.hasher.hash_one(text)
    }

    /// Takes the entry of a topic out, to be put back with [`RouteCache::put`] when it was used.
    /// Its versions hold for nothing if the topic was not remembered.
    #[expect(
        clippy::unnecessary_box_returns,
        reason = "the entry stays where it is; only its pointer moves"
    )]
    pub(crate) fn take(&mut self, topic: &str, hash: u64) -> Box<Remembered> {
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
    pub(crate) fn put(&mut self, hash: u64, entry: Box<Remembered>) {
        self.slots[slot(hash)] = Some(entry);
    }
}

fn slot(hash: u64) -> usize {
    usize::try_from(hash % SLOTS as u64).unwrap_or(0)
}
