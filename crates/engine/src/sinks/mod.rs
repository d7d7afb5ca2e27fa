//! Sinks: destinations outside the broker that get messages without a session.
//!
//! ```text
//!   route of a topic -> SinkSet -> outbox of the turn --changes are with the storage--> queue
//!                        a place on the disk, in a lane                                   |
//!                                       thread of the sink: write, then clear the places <-+
//! ```
//!
//! A sink takes the number of its name for as long as the process runs. Workers find it by that
//! number without a lock. Everything else of it may change with a reload.
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

/// Most sinks of a process: a [`SinkSet`] has a bit for each. A sink that was removed keeps its
/// number until the broker ends.
pub const SINKS_MAX: usize = 64;

/// Number of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SinkId(u8);

impl SinkId {
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of sinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinkSet(u64);

impl SinkSet {
    pub const NONE: Self = Self(0);

    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub const fn insert(&mut self, sink: SinkId) {
        self.0 |= 1 << sink.0;
    }

    #[inline]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    #[inline]
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

/// Where a message for a sink stands on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkPlace {
    /// Number of the lane, which is a session without a client.
    pub lane: u64,
    pub seq: u64,
}

/// A message on its way to a sink.
#[derive(Clone, Debug)]
pub struct Offer {
    pub message: Arc<Message>,
    /// When the broker received it.
    pub received_at: Time,
    /// None for a message that only waits in memory.
    pub place: Option<SinkPlace>,
}

/// One sink.
#[derive(Debug)]
pub struct Sink {
    pub id: SinkId,
    pub name: Box<str>,
    pub queue: SinkQueue,
}

/// The sinks of a node, by number.
#[derive(Debug)]
pub struct Sinks {
    known: Box<[OnceLock<Arc<Sink>>]>,
    /// Sinks that refuse publishers because their queue is full. Read for each PUBLISH.
    refusing: Arc<CachePadded<AtomicUsize>>,
    /// Messages that the start found for sinks that the configuration does not have. Guards the
    /// list; taken at the start and by reloads.
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
    /// The sink of a name, which gets a number if it has none; none if all numbers are taken.
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

    /// Messages that were found for a sink: they wait in its queue, or until there is one.
    pub fn found(&self, name: Box<str>, mut offers: Vec<Offer>) {
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

    /// A sink that the configuration did not have begins: first it gets what waits for it.
    pub fn hand_over_kept(&self, sink: &Sink) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut offers) = kept.remove(&sink.name) {
            sink.queue.push_all(&mut offers);
        }
    }

    pub fn find(&self, name: &str) -> Option<&Arc<Sink>> {
        self.iter().find(|sink| &*sink.name == name)
    }

    /// Those that have a number.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Sink>> {
        self.known.iter().map_while(OnceLock::get)
    }

    #[inline]
    pub fn get(&self, sink: SinkId) -> Option<&Arc<Sink>> {
        self.known[sink.index()].get()
    }

    /// At least one sink refuses publishers now.
    #[inline]
    pub fn are_any_refusing(&self) -> bool {
        self.refusing.load(Ordering::Relaxed) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
