//! Topic filters and their destinations: exact filters in a flat table, wildcards in a trie.

use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU32;

use crate::anchors::is_wildcard;
use crate::destination::{Destination, Destinations};
use crate::hashing::{Hashing, IdTable};
use crate::slab::Slab;
use crate::text::Text;
use crate::wildcards::{End, Wildcards};

/// Identifies a filter while it has a destination; the number is reused afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilterId(NonZeroU32);

/// The slab that contains a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Exact(u32),
    Wildcard(u32),
}

impl FilterId {
    const fn new(place: Place) -> Self {
        let (index, kind) = match place {
            Place::Exact(index) => (index, 0),
            Place::Wildcard(index) => (index, 1),
        };
        // A slab has fewer than 2^30 values.
        Self(NonZeroU32::MIN.saturating_add(index << 1 | kind))
    }

    /// The id of a filter with a wildcard.
    pub(crate) const fn of_wildcard(index: u32) -> Self {
        Self::new(Place::Wildcard(index))
    }

    /// The inverse of [`Self::of_wildcard`].
    pub(crate) const fn wildcard_index(self) -> u32 {
        (self.0.get() - 1) >> 1
    }

    const fn place(self) -> Place {
        let number = self.0.get() - 1;
        if number & 1 == 0 {
            Place::Exact(number >> 1)
        } else {
            Place::Wildcard(number >> 1)
        }
    }
}

/// Result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserted<D> {
    /// Id of the filter.
    pub filter: FilterId,
    /// The earlier destination with the same key.
    pub replaced: Option<D>,
    /// Whether the filter had no destination before.
    pub first: bool,
}

/// Result of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed<D> {
    /// The removed destination.
    pub destination: D,
    /// Whether the filter has no destination left, so that its id is invalid.
    pub last: bool,
}

/// Maps topic filters to destinations.
///
/// Filters must be valid and without share prefix. An exact filter costs about 70 bytes plus its
/// text beyond 22 bytes. A wildcard costs about 40 bytes, plus 40 for the levels on its path that
/// no other filter shares and as much where they branch off the path of another, plus 20 for
/// consecutive levels, 4 for each of them if they are more than three, and 50 for each level text
/// that no other filter uses. Destinations are added to both. The memory of removed filters is
/// reused, and the arenas are freed with the last filter.
#[derive(Debug)]
pub struct Index<D> {
    hashing: Hashing,
    exact_ids: IdTable,
    exact: Slab<Entry<Text, D>>,
    trie: Wildcards,
    wildcards: Slab<Entry<End, D>>,
    destination_count: usize,
    generation: u64,
}

#[derive(Debug)]
struct Entry<F, D> {
    filter: F,
    destinations: Destinations<D>,
}

impl<D: Destination> Default for Index<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D: Destination> Index<D> {
    /// Creates an empty index with a hash seed from the addresses of the process.
    pub fn new() -> Self {
        Self::with_hashing(Hashing::random())
    }

    /// Creates an empty index whose hashes are the same in every process, for tests and repeatable
    /// counts.
    pub fn with_seed(seed: u64) -> Self {
        Self::with_hashing(Hashing::with_seed(seed))
    }

    fn with_hashing(hashing: Hashing) -> Self {
        Self {
            hashing,
            exact_ids: IdTable::default(),
            exact: Slab::new(),
            trie: Wildcards::new(hashing),
            wildcards: Slab::new(),
            destination_count: 0,
            generation: 0,
        }
    }

    /// Adds a destination to a filter; one with the same key is replaced.
    pub fn insert(&mut self, filter: &str, destination: D) -> Inserted<D> {
        let inserted = if let Some(id) = self.find(filter) {
            let hashing = self.hashing;
            let replaced = self
                .entry_mut(id)
                .and_then(|destinations| destinations.insert(destination, hashing));
            Inserted {
                filter: id,
                replaced,
                first: false,
            }
        } else {
            self.generation = self.generation.wrapping_add(1);
            let filter = self.insert_filter(filter, Destinations::One(destination));
            Inserted {
                filter,
                replaced: None,
                first: true,
            }
        };
        self.destination_count += usize::from(inserted.replaced.is_none());
        inserted
    }

    fn insert_filter(&mut self, filter: &str, destinations: Destinations<D>) -> FilterId {
        if is_wildcard(filter) {
            let end = self.trie.insert(filter);
            let index = self.wildcards.insert(Entry {
                filter: end,
                destinations,
            });
            let id = FilterId::of_wildcard(index);
            self.trie.set(end, id);
            id
        } else {
            let entry = Entry {
                filter: Text::new(filter),
                destinations,
            };
            let index = self.exact.insert(entry);
            self.exact_ids
                .insert(self.hashing.text(filter.as_bytes()), index);
            FilterId::new(Place::Exact(index))
        }
    }

    /// Removes a destination from a filter.
    pub fn remove(&mut self, filter: &str, key: D::Key) -> Option<Removed<D>> {
        self.remove_by_id(self.find(filter)?, key)
    }

    /// Removes a destination from a filter, at a cost that is independent of their number.
    pub fn remove_by_id(&mut self, filter: FilterId, key: D::Key) -> Option<Removed<D>> {
        let hashing = self.hashing;
        let destinations = self.entry_mut(filter)?;
        let removed = if let Destinations::One(only) = destinations {
            if only.key() != key {
                return None;
            }
            let destination = self.remove_filter(filter)?.into_only()?;
            self.generation = self.generation.wrapping_add(1);
            Removed {
                destination,
                last: true,
            }
        } else {
            let destination = destinations.remove_one_of_many(key, hashing)?;
            Removed {
                destination,
                last: false,
            }
        };
        self.destination_count -= 1;
        Some(removed)
    }

    fn remove_filter(&mut self, id: FilterId) -> Option<Destinations<D>> {
        match id.place() {
            Place::Exact(index) => {
                let entry = self.exact.remove(index)?;
                self.exact_ids
                    .remove(self.hashing.text(entry.filter.as_bytes()), index);
                Some(entry.destinations)
            }
            Place::Wildcard(index) => {
                let entry = self.wildcards.remove(index)?;
                self.trie.remove(entry.filter);
                Some(entry.destinations)
            }
        }
    }

    fn entry(&self, id: FilterId) -> Option<&Destinations<D>> {
        match id.place() {
            Place::Exact(index) => self.exact.get(index).map(|entry| &entry.destinations),
            Place::Wildcard(index) => self.wildcards.get(index).map(|entry| &entry.destinations),
        }
    }

    fn entry_mut(&mut self, id: FilterId) -> Option<&mut Destinations<D>> {
        match id.place() {
            Place::Exact(index) => self
                .exact
                .get_mut(index)
                .map(|entry| &mut entry.destinations),
            Place::Wildcard(index) => self
                .wildcards
                .get_mut(index)
                .map(|entry| &mut entry.destinations),
        }
    }

    /// Id of the filter, if it has a destination.
    pub fn find(&self, filter: &str) -> Option<FilterId> {
        if is_wildcard(filter) {
            self.trie.find(filter)
        } else {
            self.find_exact(filter)
        }
    }

    /// Finds a filter byte for byte, without normalisation.
    fn find_exact(&self, filter: &str) -> Option<FilterId> {
        if self.exact.len() == 0 {
            return None;
        }
        // [MQTT-4.7.3-4] [MQTT3-4.7.3-4]
        let is_it = |index| self.exact[index].filter.as_bytes() == filter.as_bytes();
        let index = self
            .exact_ids
            .find(self.hashing.text(filter.as_bytes()), is_it)?;
        Some(FilterId::new(Place::Exact(index)))
    }

    /// One destination of a filter.
    pub fn destination(&self, filter: FilterId, key: D::Key) -> Option<&D> {
        self.entry(filter)?.find(key, self.hashing)
    }

    /// All destinations of a filter in unspecified order; empty for an invalid id.
    pub fn destinations(&self, filter: FilterId) -> &[D] {
        self.entry(filter).map_or(&[], Destinations::as_slice)
    }

    /// Appends the text of the filter as it was inserted; allocates memory for wildcards.
    pub fn filter_text(&self, filter: FilterId, into: &mut String) {
        match filter.place() {
            Place::Exact(index) => {
                if let Some(entry) = self.exact.get(index) {
                    into.push_str(entry.filter.as_str());
                }
            }
            Place::Wildcard(index) => {
                if let Some(entry) = self.wildcards.get(index) {
                    self.trie.text(entry.filter, into);
                }
            }
        }
    }

    /// Appends every filter that matches a topic name, in a reproducible order.
    ///
    /// Allocates only what `into` needs. Filters that start with a wildcard do not match a topic
    /// that starts with `$` [MQTT-4.7.2-1]. Returns the number of visited filter levels minus two,
    /// because two may be visited for any topic if other filters happen to share its first level.
    pub fn matches(&self, topic: &str, into: &mut Vec<FilterId>) -> usize {
        into.extend(self.find_exact(topic));
        if self.has_wildcards() {
            self.trie.matches(topic, into).saturating_sub(2)
        } else {
            0
        }
    }

    /// A number that changes with the set of filters; earlier matches are valid until then.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Number of filters with at least one destination.
    pub const fn filter_count(&self) -> usize {
        self.exact.len() + self.wildcards.len()
    }

    /// Number of destinations of all filters.
    pub const fn destination_count(&self) -> usize {
        self.destination_count
    }

    /// Whether any filter has a `+` or a `#`.
    pub const fn has_wildcards(&self) -> bool {
        self.wildcards.len() > 0
    }

    /// Allocated memory without the allocator's overhead; visits every filter, so not for the hot
    /// path.
    pub fn memory_bytes(&self) -> usize {
        let exact: usize = self
            .exact
            .iter()
            .map(|entry| entry.filter.heap_bytes() + entry.destinations.heap_bytes())
            .sum();
        let wildcards: usize = self
            .wildcards
            .iter()
            .map(|entry| entry.destinations.heap_bytes())
            .sum();
        let arenas = self.exact.memory_bytes() + self.wildcards.memory_bytes();
        exact + wildcards + arenas + self.exact_ids.memory_bytes() + self.trie.memory_bytes()
    }
}
