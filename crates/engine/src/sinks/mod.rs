//! Sinks: destinations outside the broker that get messages without a session.
//!
//! ```text
//!   route of a topic -> SinkSet -> outbox of the turn --changes are with the storage--> queue
//!                        a place on the disk, in a lane                                   |
//!                                       thread of the sink: write, then clear the places <-+
//! ```
//!
//! A sink keeps its number for as long as the process runs. Workers find the sink by that
//! number without a lock. A reload may change all other properties of the sink.
//!
//! Invariant: a place is cleared only after the target has the message as safely as it can.

mod places;
mod queue;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crossbeam_utils::CachePadded;
use thrum_protocol::{Message, Time};

pub use places::Places;
pub use queue::{QueueLimits, SinkCounts, SinkQueue, SinkRoom, WhenFull};

/// Greatest number of sinks of a process, which is the number of bits of a [`SinkSet`]. A removed
/// sink keeps its number until the broker ends.
pub const SINKS_MAX: usize = 64;

/// Number of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SinkId(u8);

impl SinkId {
    /// The number as an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of sinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinkSet(u64);

impl SinkSet {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Whether the set is empty.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Adds a sink.
    #[inline]
    pub const fn insert(&mut self, sink: SinkId) {
        self.0 |= 1 << sink.0;
    }

    /// Whether the sets have a sink in common.
    #[inline]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The union of both sets.
    #[inline]
    #[must_use]
    pub const fn joined(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl IntoIterator for SinkSet {
    type Item = SinkId;
    type IntoIter = SinksOfSet;

    #[inline]
    fn into_iter(self) -> SinksOfSet {
        SinksOfSet(self.0)
    }
}

/// The sinks of a set, the lowest number first.
#[derive(Clone, Debug)]
pub struct SinksOfSet(u64);

impl Iterator for SinksOfSet {
    type Item = SinkId;

    #[inline]
    fn next(&mut self) -> Option<SinkId> {
        if self.0 == 0 {
            return None;
        }
        let [number, ..] = self.0.trailing_zeros().to_le_bytes();
        self.0 &= self.0 - 1;
        Some(SinkId(number))
    }
}

impl FromIterator<SinkId> for SinkSet {
    fn from_iter<I: IntoIterator<Item = SinkId>>(sinks: I) -> Self {
        let mut set = Self::NONE;
        for sink in sinks {
            set.insert(sink);
        }
        set
    }
}

/// Place of a message for a sink in the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkPlace {
    /// Number of the lane, which is a stored session without a client.
    pub lane: u64,
    /// Sequence number of the message within the lane.
    pub seq: u64,
}

/// A message for a sink.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The message.
    pub message: Arc<Message>,
    /// The time at which the broker received the message.
    pub received_at: Time,
    /// The place of the message in the storage; none if it is not stored.
    pub place: Option<SinkPlace>,
}

/// One sink.
#[derive(Debug)]
pub struct Sink {
    /// The number of the sink.
    pub id: SinkId,
    /// The name of the sink in the configuration.
    pub name: Box<str>,
    /// The messages that the sink has not written yet.
    pub queue: SinkQueue,
}

/// The sinks of a node, by number.
#[derive(Debug)]
pub struct Sinks {
    known: Box<[OnceLock<Arc<Sink>>]>,
    /// Number of sinks that refuse publishers because their queue is full. Read for each PUBLISH.
    refusing: Arc<CachePadded<AtomicUsize>>,
    /// Recovered messages for sinks that are not configured, by sink name. The lock guards the
    /// list; it is taken at the start and by reloads.
    kept: Mutex<BTreeMap<Box<str>, Vec<Offer>>>,
}

impl Default for Sinks {
    fn default() -> Self {
        Self {
            known: (0..SINKS_MAX).map(|_| OnceLock::new()).collect(),
            refusing: Arc::default(),
            kept: Mutex::default(),
        }
    }
}

impl Sinks {
    /// Returns the sink of a name, which is created if there is none; none if all numbers are used.
    pub fn open(&self, name: &str, limits: QueueLimits) -> Option<&Arc<Sink>> {
        if let Some(known) = self.find(name) {
            known.queue.set_limits(limits);
            return Some(known);
        }
        (0_u8..).zip(&self.known).find_map(|(number, place)| {
            let sink = || {
                Arc::new(Sink {
                    id: SinkId(number),
                    name: name.into(),
                    queue: SinkQueue::new(limits, Arc::clone(&self.refusing)),
                })
            };
            place.get().is_none().then(|| place.get_or_init(sink))
        })
    }

    /// Adds recovered messages to the queue of a sink, or keeps them until the sink is configured.
    pub fn add_recovered(&self, name: Box<str>, mut offers: Vec<Offer>) {
        let messages = offers.len();
        if let Some(sink) = self.find(&name) {
            tracing::info!(
                sink = &*name,
                messages,
                "messages of an earlier start wait for the sink"
            );
            sink.queue.push_all(&mut offers);
            return;
        }
        tracing::warn!(
            sink = &*name,
            messages,
            "messages wait on the disk for a sink that the configuration does not have: they are kept until it has"
        );
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(name, offers);
    }

    /// Moves the kept messages of a sink into its queue, before a newly configured sink begins.
    pub fn enqueue_kept(&self, sink: &Sink) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut offers) = kept.remove(&sink.name) {
            sink.queue.push_all(&mut offers);
        }
    }

    /// Finds a sink by name.
    pub fn find(&self, name: &str) -> Option<&Arc<Sink>> {
        self.iter().find(|sink| &*sink.name == name)
    }

    /// Iterates over all sinks in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Sink>> {
        self.known.iter().map_while(OnceLock::get)
    }

    /// Returns the sink of a number.
    #[inline]
    pub fn get(&self, sink: SinkId) -> Option<&Arc<Sink>> {
        self.known[sink.index()].get()
    }

    /// Whether at least one sink refuses publishers now.
    #[inline]
    pub fn are_any_refusing(&self) -> bool {
        self.refusing.load(Ordering::Relaxed) > 0
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use thrum_routing::shared::Strategy;

    use super::*;
    use crate::node::placement::Placement;
    use crate::node::{Capacity, NodeParts, NodeState, WallClock};
    use crate::retained::RetainedLimits;

    /// A node with one worker.
    pub(crate) fn node() -> NodeState {
        NodeState::new(NodeParts {
            placement: Placement::new(1),
            strategy: Strategy::RoundRobin,
            retained: RetainedLimits {
                message_count: 0,
                bytes: 0,
                payload_bytes: 0,
            },
            mailbox: Capacity {
                messages: 1,
                bytes: 1,
            },
            bans: Arc::default(),
            wall: Arc::new(WallClock::default()),
            identity: 1,
        })
    }

    #[test]
    fn a_name_keeps_its_number_and_the_last_number_is_the_end() {
        let sinks = Sinks::default();
        for number in 0..SINKS_MAX {
            let sink = sinks.open(&number.to_string(), QueueLimits::default());
            assert_eq!(sink.unwrap().id.index(), number);
        }
        assert!(sinks.open("one more", QueueLimits::default()).is_none());
        let again = sinks.open("7", QueueLimits::default()).unwrap();
        assert_eq!(again.id.index(), 7);
        assert_eq!(sinks.iter().count(), SINKS_MAX);
    }

    #[test]
    fn a_set_yields_each_sink_once() {
        let ids = [0, 5, 63].map(SinkId);
        let set: SinkSet = ids.into_iter().chain(ids).collect();
        assert_eq!(set.into_iter().collect::<Vec<_>>(), ids);
        assert!(set.intersects(SinkSet::from_iter([SinkId(63)])));
        assert!(!set.intersects(SinkSet::from_iter([SinkId(62)])));
        assert!(SinkSet::NONE.is_empty() && !set.is_empty());
    }
}
