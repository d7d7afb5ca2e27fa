//! Version counters of a set of filters, which decide for each topic whether a cached match is
//! still valid.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use thrum_routing::Anchors;

use crate::hashing::anchors;

/// Number of counters that the anchors share. If a hundred thousand clients a second subscribe,
/// each to filters of its own, the cached match of a topic is invalidated six times a second. The
/// counters take 64 KiB, allocated for the first filter.
const COUNTS: usize = 16 * 1024;

/// Version of the filters for which the cached match of one topic is valid; the default is valid
/// for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// Generation of all filters.
    generation: u64,
    /// Sum of the counters of the topic's anchors.
    anchored: u64,
}

impl Version {
    /// The generation of all filters; every earlier change is part of the match.
    pub fn generation(self) -> u64 {
        self.generation
    }
}

/// Counts the changes of a set of filters: all of them, and those at each anchor.
#[derive(Debug)]
pub struct Changes {
    /// Generation of all filters, which begins at 1; read for each message and written for each
    /// change.
    generation: CachePadded<AtomicU64>,
    anchors: Anchors,
    counts: OnceLock<Box<[AtomicU32]>>,
}

impl Default for Changes {
    fn default() -> Self {
        Self::new()
    }
}

impl Changes {
    /// Creates the counters of an empty set.
    pub fn new() -> Self {
        Self {
            generation: CachePadded::new(AtomicU64::new(1)),
            anchors: anchors(),
            counts: OnceLock::new(),
        }
    }

    /// Counts a change of a filter or of its destinations; called after the change is visible to
    /// look-ups.
    pub fn note(&self, filter: &str) {
        let counts = self
            .counts
            .get_or_init(|| (0..COUNTS).map(|_| AtomicU32::new(0)).collect());
        counts[slot(self.anchors.of_filter(filter))].fetch_add(1, Ordering::Relaxed);
        // A reader that sees the new generation sees the counter too.
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Number of the last change of any filter.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns the version of a match that is looked up after this call.
    pub fn version(&self, topic: &str) -> Version {
        let generation = self.generation.load(Ordering::Acquire);
        Version {
            generation,
            anchored: self.anchored(topic),
        }
    }

    /// Whether a match of that version is still valid; if so, the next check is faster.
    #[inline]
    pub fn holds(&self, version: &mut Version, topic: &str) -> bool {
        let generation = self.generation.load(Ordering::Acquire);
        version.generation == generation || self.still_holds(version, generation, topic)
    }

    fn still_holds(&self, version: &mut Version, generation: u64, topic: &str) -> bool {
        let holds = version.generation != 0 && version.anchored == self.anchored(topic);
        if holds {
            version.generation = generation;
        }
        holds
    }

    fn anchored(&self, topic: &str) -> u64 {
        let Some(counts) = self.counts.get() else {
            return 0;
        };
        let mut sum = 0;
        self.anchors.of_topic(topic, |anchor| {
            sum += u64::from(counts[slot(anchor)].load(Ordering::Relaxed));
        });
        sum
    }
}

fn slot(anchor: u32) -> usize {
    anchor as usize % COUNTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_holds_until_a_filter_changes_that_may_match_its_topic() {
        let changes = Changes::new();
        let topic = "site/5/device/77/temperature";
        let mut nothing = Version::default();
        assert!(!changes.holds(&mut nothing, topic));
        let mut version = changes.version(topic);
        assert!(changes.holds(&mut version, topic));
        for filter in ["site/5/device/77/+", "site/+/device/77/#", "#", topic] {
            changes.note(filter);
            assert!(!changes.holds(&mut version, topic), "{filter}");
            version = changes.version(topic);
        }
    }

    #[test]
    fn a_match_outlives_the_filters_of_other_topics() {
        let changes = Changes::new();
        let topics: Vec<_> = (0..200)
            .map(|number| format!("device/{number}/state"))
            .collect();
        let mut versions: Vec<_> = topics.iter().map(|topic| changes.version(topic)).collect();
        let others: Vec<_> = (200..300)
            .map(|number| format!("device/{number}/cmd/+"))
            .collect();
        for filter in &others {
            changes.note(filter);
        }
        let disturbed: Vec<_> = others
            .iter()
            .map(|filter| slot(changes.anchors.of_filter(filter)))
            .collect();
        for (topic, version) in topics.iter().zip(&mut versions) {
            // Anchors share counters: a change of another filter may count at an anchor of this
            // topic.
            let mut is_near = false;
            changes
                .anchors
                .of_topic(topic, |anchor| is_near |= disturbed.contains(&slot(anchor)));
            assert_eq!(changes.holds(version, topic), !is_near, "{topic}");
        }
    }
}
