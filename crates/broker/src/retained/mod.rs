//! The node's retained messages: the last one of each topic, within limits.
//!
//! The store is cut into shards by topic, so that workers retain at the same time. Whatever looks at many
//! topics does so in pages, and no page holds a lock for longer than it takes to visit [`PAGE_VISITS`] branches.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crossbeam_utils::CachePadded;
use std::hash::BuildHasher;

use thrum_protocol::{Message, Time};
use thrum_routing::retained::{Allowance, Position, Retained};

use crate::hashing::HashBuilder;

/// Shards for each worker of a node that has several: seldom do two of them want the same one.
const SHARDS_PER_WORKER: usize = 2;
/// More would cost each replay of a wildcard more than they bring.
const SHARDS_MAX: usize = 64;
/// Branches visited under one lock: about 0.1 ms.
const PAGE_VISITS: usize = 1024;
/// Pages of one sweep: a round over a million topics takes two minutes, which delays the return of
/// memory only, as what has expired is not delivered.
const SWEEP_PAGES: usize = 8;

/// Limits of the retained store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetainedLimits {
    pub(crate) message_count: usize,
    pub(crate) bytes: usize,
    pub(crate) payload_bytes: usize,
}

/// The store and its size.
#[derive(Debug)]
pub(crate) struct RetainedStore {
    hasher: HashBuilder,
    /// Each lock guards its shard: written per retained publish, read per page of a replay.
    shards: Box<[CachePadded<RwLock<Shard>>]>,
    totals: CachePadded<Totals>,
    /// Number of the last change; counted under the topic's lock, so that of two changes the later one has the higher.
    changes: CachePadded<AtomicU64>,
    /// Where the next sweep begins; only the worker that keeps house takes the lock.
    sweep_from: Mutex<Place>,
}

/// The topics of one hash.
#[derive(Debug)]
struct Shard {
    messages: Retained<Arc<Message>>,
    /// Messages that will expire.
    expiring: usize,
    limits: RetainedLimits,
}

/// Of all shards: written when a topic comes or goes, or its message has another size than the last.
#[derive(Debug, Default)]
struct Totals {
    messages: AtomicUsize,
    bytes: AtomicUsize,
}

/// What became of a message that was to be retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Its topic is as it asked.
    pub(crate) kept: bool,
    /// Number of the change, if there was one.
    pub(crate) change: Option<u64>,
}

impl Stored {
    const REFUSED: Self = Self {
        kept: false,
        change: None,
    };
}

/// A place in a walk over all shards.
#[derive(Clone, Debug, Default)]
struct Place {
    shard: usize,
    after: Option<Position>,
}

/// Place in a replay, to go on from at the next turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplayCursor(Place);

impl RetainedStore {
    pub(crate) fn new(limits: RetainedLimits, workers: usize) -> Self {
        let shards = if workers > 1 {
            (workers * SHARDS_PER_WORKER).min(SHARDS_MAX)
        } else {
            1
        };
        let shard = || {
            CachePadded::new(RwLock::new(Shard {
                messages: Retained::new(),
                expiring: 0,
                limits,
            }))
        };
        Self {
            hasher: HashBuilder::default(),
            shards: (0..shards).map(|_| shard()).collect(),
            totals: CachePadded::default(),
            changes: CachePadded::default(),
            sweep_from: Mutex::default(),
        }
    }

    /// Keeps the message as its topic's last; an empty payload removes it ([MQTT-3.3.1-6], [MQTT-3.3.1-7]).
    /// Whatever its quality of service. [MQTT3-3.3.1-7] Not kept if the limits leave no room.
    #[must_use]
    pub(crate) fn store(&self, message: &Arc<Message>) -> Stored {
        self.store_within(message, None)
    }

    /// Takes a message over from the disk, whatever the limits are by now.
    pub(crate) fn restore(&self, message: &Arc<Message>) {
        let unlimited = RetainedLimits {
            message_count: usize::MAX,
            bytes: usize::MAX,
            payload_bytes: usize::MAX,
        };
        let stored = self.store_within(message, Some(unlimited));
        debug_assert!(stored.kept, "there is no limit");
    }

    /// Numbers of changes go on behind those of the time before.
    pub(crate) fn count_changes_from(&self, last: u64) {
        self.changes.fetch_max(last, Ordering::Relaxed);
    }

    fn next_change(&self) -> u64 {
        self.changes.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn store_within(&self, message: &Arc<Message>, limits: Option<RetainedLimits>) -> Stored {
        let payload_bytes = message.publication().payload.len();
        let mut shard = self.write(self.slot(message.topic()));
        // [MQTT-3.3.1-6] [MQTT-3.3.1-7] [MQTT3-3.3.1-10] [MQTT3-3.3.1-11]
        if payload_bytes == 0 {
            let old = shard.remove(message.topic());
            return Stored {
                kept: true,
                change: old.map(|old| {
                    self.totals.forget(&old);
                    self.next_change()
                }),
            };
        }
        let limits = limits.unwrap_or(shard.limits);
        if payload_bytes > limits.payload_bytes {
            return Stored::REFUSED;
        }
        // [MQTT-3.3.1-5] [MQTT3-3.3.1-5]
        let Shard {
            messages, expiring, ..
        } = &mut *shard;
        if let Some(kept) = messages.get_mut(message.topic()) {
            if !self.totals.resize(kept.bytes_len(), message, limits) {
                return Stored::REFUSED;
            }
            *expiring -= usize::from(will_expire(kept));
            *kept = Arc::clone(message);
        } else {
            if !self.totals.add(message, limits) {
                return Stored::REFUSED;
            }
            messages.insert(message.topic(), Arc::clone(message));
        }
        *expiring += usize::from(will_expire(message));
        Stored {
            kept: true,
            change: Some(self.next_change()),
        }
    }

    /// The next messages that match, as many as are allowed; the cursor goes on where it stopped, none at
    /// the end. What was taken and visited goes off the allowance.
    pub(crate) fn page(
        &self,
        filter: &str,
        after: Option<ReplayCursor>,
        allowance: &mut Allowance,
        into: &mut Vec<Arc<Message>>,
    ) -> Option<ReplayCursor> {
        if !filter.contains(['+', '#']) {
            allowance.visits = allowance.visits.saturating_sub(1);
            let shard = self.read(self.slot(filter));
            into.extend(shard.messages.get(filter).cloned());
            return None;
        }
        let ReplayCursor(mut place) = after.unwrap_or_default();
        while allowance.visits > 0 && allowance.messages > 0 {
            let visits = PAGE_VISITS.min(allowance.visits);
            let mut page = Allowance {
                messages: allowance.messages,
                visits,
            };
            let shard = self.read(place.shard);
            let (messages, after) = (&shard.messages, place.after.as_ref());
            let end = messages.next_page_within(filter, after, &mut page, |message| {
                into.push(Arc::clone(message));
            });
            drop(shard);
            allowance.messages = page.messages;
            // Even an empty shard costs its lock.
            allowance.visits -= (visits - page.visits).max(1);
            place = self.beyond(place.shard, end)?;
        }
        Some(ReplayCursor(place))
    }

    /// The place after a page; none after the last shard.
    fn beyond(&self, shard: usize, end: Option<Position>) -> Option<Place> {
        let next = if end.is_some() { shard } else { shard + 1 };
        (next < self.shards.len()).then_some(Place {
            shard: next,
            after: end,
        })
    }

    /// Removes what has expired, a part of the topics with each call; tells the changes.
    pub(crate) fn sweep(&self, now: Time, removed: &mut Vec<(u64, Arc<Message>)>) {
        let mut place = self
            .sweep_from
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut expired = Vec::new();
        for _ in 0..SWEEP_PAGES {
            let Place { shard, after } = std::mem::take(&mut *place);
            let end = self.expired(shard, after.as_ref(), now, &mut expired);
            self.remove_expired(shard, &mut expired, removed);
            *place = self.beyond(shard, end).unwrap_or_default();
        }
    }

    /// A page of what has expired in a shard; one without expiring messages is at its end for nothing.
    fn expired(
        &self,
        shard: usize,
        after: Option<&Position>,
        now: Time,
        into: &mut Vec<Arc<Message>>,
    ) -> Option<Position> {
        let shard = self.read(shard);
        if shard.expiring == 0 {
            return None;
        }
        let messages = &shard.messages;
        messages.next_page_of_all(after, PAGE_VISITS, |message| {
            into.extend(message.is_expired(now).then(|| Arc::clone(message)));
        })
    }

    fn remove_expired(
        &self,
        shard: usize,
        expired: &mut Vec<Arc<Message>>,
        removed: &mut Vec<(u64, Arc<Message>)>,
    ) {
        if expired.is_empty() {
            return;
        }
        let mut shard = self.write(shard);
        for message in expired.drain(..) {
            let kept = shard.messages.get(message.topic());
            if kept.is_some_and(|kept| Arc::ptr_eq(kept, &message)) {
                shard.remove(message.topic());
                self.totals.forget(&message);
                removed.push((self.next_change(), message));
            }
        }
    }

    /// Messages and their bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let Totals { messages, bytes } = &*self.totals;
        (
            messages.load(Ordering::Relaxed),
            bytes.load(Ordering::Relaxed),
        )
    }

    pub(crate) fn set_limits(&self, limits: RetainedLimits) {
        for shard in 0..self.shards.len() {
            self.write(shard).limits = limits;
        }
    }

    fn slot(&self, topic: &str) -> usize {
        let shards = self.shards.len() as u64;
        if shards == 1 {
            return 0;
        }
        usize::try_from(self.hasher.hash_one(topic) % shards).unwrap_or(0)
    }

    fn read(&self, shard: usize) -> RwLockReadGuard<'_, Shard> {
        self.shards[shard]
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, shard: usize) -> RwLockWriteGuard<'_, Shard> {
        self.shards[shard]
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    fn remove(&mut self, topic: &str) -> Option<Arc<Message>> {
        let old = self.messages.remove(topic)?;
        self.expiring -= usize::from(will_expire(&old));
        Some(old)
    }
}

fn will_expire(message: &Message) -> bool {
    message.is_expired(Time::from_millis(u64::MAX))
}

impl Totals {
    /// Makes room for a message of one more topic; false if there is none.
    fn add(&self, message: &Message, limits: RetainedLimits) -> bool {
        let before = self.messages.fetch_add(1, Ordering::Relaxed);
        let fits = before < limits.message_count && self.resize(0, message, limits);
        if !fits {
            self.messages.fetch_sub(1, Ordering::Relaxed);
        }
        fits
    }

    /// Makes room for a message in place of one with so many bytes; a smaller one always fits.
    fn resize(&self, old_bytes: usize, message: &Message, limits: RetainedLimits) -> bool {
        let new_bytes = message.bytes_len();
        if new_bytes <= old_bytes {
            if new_bytes < old_bytes {
                self.bytes
                    .fetch_sub(old_bytes - new_bytes, Ordering::Relaxed);
            }
            return true;
        }
        let more = new_bytes - old_bytes;
        let before = self.bytes.fetch_add(more, Ordering::Relaxed);
        let fits = before.saturating_add(more) <= limits.bytes;
        if !fits {
            self.bytes.fetch_sub(more, Ordering::Relaxed);
        }
        fits
    }

    fn forget(&self, message: &Message) {
        self.messages.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(message.bytes_len(), Ordering::Relaxed);
    }
}
