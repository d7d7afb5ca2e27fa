//! The node's retained messages: the last one of each topic, within limits.
//!
//! The store is cut into shards by topic, so that workers retain at the same time. Whatever looks
//! at many topics does so in pages, and no page holds a lock for longer than it takes to visit
//! [`PAGE_VISITS`] branches.

mod review;
mod source;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crossbeam_utils::CachePadded;

use thrum_protocol::{Message, Time};
use thrum_routing::retained::{Allowance, Position, Retained};
use thrum_routing::stable_hash;

pub use review::{ReviewStep, SourceReview};
pub use source::RetainedSource;

/// Shards for each worker of a node that has several: seldom do two of them want the same one.
const SHARDS_PER_WORKER: usize = 2;
/// More would cost each replay of a wildcard more than they bring.
const SHARDS_MAX: usize = 64;
/// Branches visited under one lock: about 0.1 ms.
const PAGE_VISITS: usize = 1024;
/// Memory that a message is counted with, besides its text: itself, its counts and what the
/// allocator adds.
const MESSAGE_BYTES: usize = 96;
/// What the node says about itself is no client's: no limit holds for it, and it is not counted.
const NODE_TOPICS: &str = "$SYS/";
/// Branches visited for one page of messages whose sources are asked about together.
pub const SOURCES_PAGE_VISITS: usize = 256;
/// Pages of one sweep: a round over a million topics takes two minutes, which delays the return of
/// memory only, as what has expired is not delivered.
const SWEEP_PAGES: usize = 8;

/// Limits of the retained store.
#[derive(Clone, Copy, Debug)]
pub struct RetainedLimits {
    pub message_count: usize,
    pub bytes: usize,
    pub payload_bytes: usize,
}

impl RetainedLimits {
    const NONE: Self = Self {
        message_count: usize::MAX,
        bytes: usize::MAX,
        payload_bytes: usize::MAX,
    };
}

/// The store and its size.
#[derive(Debug)]
pub struct RetainedStore {
    /// Each lock guards its shard: written per retained publish, read per page of a replay.
    shards: Box<[CachePadded<RwLock<Shard>>]>,
    totals: CachePadded<Totals>,
    /// Number of the last change; counted under the topic's lock, so that of two changes the later
    /// one has the higher.
    changes: CachePadded<AtomicU64>,
    /// Where the next sweep begins; only the worker that keeps house takes the lock.
    sweep_from: Mutex<Place>,
    /// How often somebody has found that sources may have other rights than before.
    looks_wanted: CachePadded<AtomicU64>,
}

/// The topics of one hash.
#[derive(Debug)]
struct Shard {
    messages: Retained<Kept>,
    /// Messages that will expire.
    expiring: usize,
    limits: RetainedLimits,
}

/// A message, and the client that published it as far as that is to be looked at again.
#[derive(Debug)]
struct Kept {
    message: Arc<Message>,
    source: Option<Arc<RetainedSource>>,
}

/// A message with a source, as a page found it.
#[derive(Debug)]
struct Sourced {
    message: Arc<Message>,
    source: Arc<RetainedSource>,
}

/// Of all shards, without the topics of the node: written when a topic comes or goes, or its
/// message has another size than the last.
#[derive(Debug, Default)]
struct Totals {
    messages: AtomicUsize,
    bytes: AtomicUsize,
    /// Messages that are not given to new subscribers.
    withheld: AtomicUsize,
}

/// What became of a message that was to be retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its topic is as it asked.
    pub kept: bool,
    /// Number of the change, if there was one.
    pub change: Option<u64>,
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
pub struct ReplayCursor(Place);

impl RetainedStore {
    pub fn new(limits: RetainedLimits, workers: usize) -> Self {
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
            shards: (0..shards).map(|_| shard()).collect(),
            totals: CachePadded::default(),
            changes: CachePadded::default(),
            sweep_from: Mutex::default(),
            looks_wanted: CachePadded::default(),
        }
    }

    /// Keeps the message as its topic's last; an empty payload removes it ([MQTT-3.3.1-6],
    /// [MQTT-3.3.1-7]). Whatever its quality of service. [MQTT3-3.3.1-7] Not kept if the limits
    /// leave no room.
    #[must_use]
    pub fn store(&self, message: &Arc<Message>, source: Option<Arc<RetainedSource>>) -> Stored {
        self.store_within(message, source, None)
    }

    /// Whether the message takes more memory than what its topic has now.
    pub fn would_grow(&self, message: &Message) -> bool {
        let shard = self.read(self.slot(message.topic()));
        let kept = shard.messages.get(message.topic());
        kept.is_none_or(|kept| memory_bytes(message) > memory_bytes(&kept.message))
    }

    /// Takes a message over from the disk, whatever the limits are by now.
    pub fn restore(&self, message: &Arc<Message>, source: Option<Arc<RetainedSource>>) {
        let stored = self.store_within(message, source, Some(RetainedLimits::NONE));
        debug_assert!(stored.kept, "there is no limit");
    }

    /// Numbers of changes go on behind those of the time before.
    pub fn count_changes_from(&self, last: u64) {
        self.changes.fetch_max(last, Ordering::Relaxed);
    }

    fn next_change(&self) -> u64 {
        self.changes.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn store_within(
        &self,
        message: &Arc<Message>,
        source: Option<Arc<RetainedSource>>,
        limits: Option<RetainedLimits>,
    ) -> Stored {
        let (topic, payload_bytes) = (message.topic(), message.payload().len());
        let mut shard = self.write(self.slot(topic));
        // [MQTT-3.3.1-6] [MQTT-3.3.1-7] [MQTT3-3.3.1-10] [MQTT3-3.3.1-11]
        if payload_bytes == 0 {
            return Stored {
                kept: true,
                change: self.remove_from(&mut shard, topic),
            };
        }
        let is_counted = is_counted(topic);
        let limits = match limits {
            Some(limits) => limits,
            None if is_counted => shard.limits,
            None => RetainedLimits::NONE,
        };
        if payload_bytes > limits.payload_bytes {
            return Stored::REFUSED;
        }
        // [MQTT-3.3.1-5] [MQTT3-3.3.1-5]
        let Shard {
            messages, expiring, ..
        } = &mut *shard;
        if let Some(kept) = messages.get_mut(topic) {
            let (before, after) = (memory_bytes(&kept.message), memory_bytes(message));
            if is_counted && !self.totals.resize(before, after, limits) {
                return Stored::REFUSED;
            }
            *expiring -= usize::from(will_expire(&kept.message));
            kept.message = Arc::clone(message);
            self.totals.change_source(kept, source);
        } else {
            let bytes = memory_bytes(message) + messages.tree_bytes_of(topic);
            if is_counted && !self.totals.add(bytes, limits) {
                return Stored::REFUSED;
            }
            let mut kept = Kept {
                message: Arc::clone(message),
                source: None,
            };
            self.totals.change_source(&mut kept, source);
            messages.insert(topic, kept);
        }
        *expiring += usize::from(will_expire(message));
        Stored {
            kept: true,
            change: Some(self.next_change()),
        }
    }

    /// Forgets the message of a topic; the number of the change, if there was one.
    pub fn remove(&self, topic: &str) -> Option<u64> {
        let mut shard = self.write(self.slot(topic));
        self.remove_from(&mut shard, topic)
    }

    fn remove_from(&self, shard: &mut Shard, topic: &str) -> Option<u64> {
        let (mut kept, bytes) = shard.remove(topic)?;
        self.totals.change_source(&mut kept, None);
        if is_counted(topic) {
            self.totals.forget(bytes);
        }
        Some(self.next_change())
    }

    /// The next messages that match, as many as are allowed; the cursor goes on where it stopped,
    /// none at the end. What was taken and visited goes off the allowance.
    pub fn page(
        &self,
        filter: &str,
        after: Option<ReplayCursor>,
        allowance: &mut Allowance,
        into: &mut Vec<Arc<Message>>,
    ) -> Option<ReplayCursor> {
        if !filter.contains(['+', '#']) {
            allowance.visits = allowance.visits.saturating_sub(1);
            let shard = self.read(self.slot(filter));
            into.extend(shard.messages.get(filter).and_then(Kept::shown).cloned());
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
            let end = messages.next_page_within(filter, after, &mut page, |kept| {
                into.extend(kept.shown().cloned());
            });
            drop(shard);
            allowance.messages = page.messages;
            // Even an empty shard costs its lock.
            allowance.visits -= (visits - page.visits).max(1);
            place = self.beyond(place.shard, end)?;
        }
        Some(ReplayCursor(place))
    }

    /// The place in a replay behind a topic that its filter matches.
    pub fn behind(&self, topic: &str) -> ReplayCursor {
        ReplayCursor(Place {
            shard: self.slot(topic),
            after: Some(Position::of(topic, topic)),
        })
    }

    /// A place in a replay as it is written down; none is its start.
    pub fn write_place(&self, cursor: Option<&ReplayCursor>) -> Vec<u8> {
        let Some(ReplayCursor(place)) = cursor else {
            return Vec::new();
        };
        let number = |number: usize| u16::try_from(number).unwrap_or(u16::MAX).to_le_bytes();
        let path = place.after.as_ref().and_then(Position::path);
        let mut bytes = [number(self.shards.len()), number(place.shard)].concat();
        bytes.push(u8::from(path.is_some()));
        bytes.extend_from_slice(path.unwrap_or_default().as_bytes());
        bytes
    }

    /// The place that was written down for a filter; none is the start, which is also where a
    /// replay goes on of a node with another number of shards.
    pub fn read_place(&self, filter: &str, bytes: &[u8]) -> Option<ReplayCursor> {
        let (&[a, b, c, d, has_path], path) = bytes.split_first_chunk()?;
        let shards = usize::from(u16::from_le_bytes([a, b]));
        let shard = usize::from(u16::from_le_bytes([c, d]));
        let path = std::str::from_utf8(path).ok()?;
        let is_here = shards == self.shards.len() && shard < shards;
        is_here.then(|| {
            ReplayCursor(Place {
                shard,
                after: (has_path == 1).then(|| Position::of(filter, path)),
            })
        })
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
    pub fn sweep(&self, now: Time, removed: &mut Vec<(u64, Arc<Message>)>) {
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

    /// A page of what has expired in a shard; one without expiring messages is at its end for
    /// nothing.
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
        messages.next_page_of_all(after, PAGE_VISITS, |Kept { message, .. }| {
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
            let is_kept = kept.is_some_and(|kept| Arc::ptr_eq(&kept.message, &message));
            if is_kept && let Some(change) = self.remove_from(&mut shard, message.topic()) {
                removed.push((change, message));
            }
        }
    }

    /// The next messages that have a source, from a place on; none is the first. The place to go on
    /// from, none at the end.
    fn sourced_page(&self, from: Option<Place>, into: &mut VecDeque<Sourced>) -> Option<Place> {
        let Place { shard, after } = from.unwrap_or_default();
        let guard = self.read(shard);
        let end = guard
            .messages
            .next_page_of_all(after.as_ref(), SOURCES_PAGE_VISITS, |kept| {
                into.extend(kept.source.as_ref().map(|source| Sourced {
                    message: Arc::clone(&kept.message),
                    source: Arc::clone(source),
                }));
            });
        drop(guard);
        self.beyond(shard, end)
    }

    /// Gives a message its source in another form, if it is still there and has the one that was
    /// found.
    fn remark(&self, found: &Sourced, source: Arc<RetainedSource>) {
        let topic = found.message.topic();
        let mut shard = self.write(self.slot(topic));
        let is_it = |kept: &&mut Kept| {
            let same_source = |source| Arc::ptr_eq(source, &found.source);
            Arc::ptr_eq(&kept.message, &found.message)
                && kept.source.as_ref().is_some_and(same_source)
        };
        if let Some(kept) = shard.messages.get_mut(topic).filter(is_it) {
            self.totals.change_source(kept, Some(source));
        }
    }

    /// What sources may publish may be something else than before.
    pub fn want_look(&self) {
        self.looks_wanted.fetch_add(1, Ordering::Release);
    }

    /// How often it was. Who has seen a number and looks then finds what was published before.
    pub fn looks_wanted(&self) -> u64 {
        self.looks_wanted.load(Ordering::Acquire)
    }

    /// Messages that are not given to new subscribers, as their publishers may not publish them any
    /// more.
    pub fn withheld(&self) -> usize {
        self.totals.withheld.load(Ordering::Relaxed)
    }

    /// Messages and their memory, without those of the node.
    pub fn size(&self) -> (usize, usize) {
        let Totals {
            messages, bytes, ..
        } = &*self.totals;
        (
            messages.load(Ordering::Relaxed),
            bytes.load(Ordering::Relaxed),
        )
    }

    pub fn set_limits(&self, limits: RetainedLimits) {
        for shard in 0..self.shards.len() {
            self.write(shard).limits = limits;
        }
    }

    /// The same in every process: places in replays rest on it.
    fn slot(&self, topic: &str) -> usize {
        let shards = self.shards.len() as u64;
        if shards == 1 {
            return 0;
        }
        usize::try_from(stable_hash(topic.as_bytes()) % shards).unwrap_or(0)
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
    /// Forgets the message of a topic, if there was one; with the memory that is free now, without
    /// that of its source.
    fn remove(&mut self, topic: &str) -> Option<(Kept, usize)> {
        let before = self.messages.tree_bytes();
        let old = self.messages.remove(topic)?;
        self.expiring -= usize::from(will_expire(&old.message));
        let bytes = memory_bytes(&old.message) + before - self.messages.tree_bytes();
        Some((old, bytes))
    }
}

impl Kept {
    /// For new subscribers.
    fn shown(&self) -> Option<&Arc<Message>> {
        (!self.is_withheld()).then_some(&self.message)
    }

    fn is_withheld(&self) -> bool {
        let source = self.source.as_deref();
        source.is_some_and(RetainedSource::is_withheld)
    }
}

fn is_counted(topic: &str) -> bool {
    !topic.starts_with(NODE_TOPICS)
}

fn memory_bytes(message: &Message) -> usize {
    message.bytes_len() + MESSAGE_BYTES
}

fn will_expire(message: &Message) -> bool {
    message.is_expired(Time::from_millis(u64::MAX))
}

impl Totals {
    /// Makes room for one more topic, with its levels and its message; false if there is none.
    fn add(&self, bytes: usize, limits: RetainedLimits) -> bool {
        let before = self.messages.fetch_add(1, Ordering::Relaxed);
        let fits = before < limits.message_count && self.resize(0, bytes, limits);
        if !fits {
            self.messages.fetch_sub(1, Ordering::Relaxed);
        }
        fits
    }

    /// Makes room for a message in place of another one; a smaller one always fits.
    fn resize(&self, old_bytes: usize, new_bytes: usize, limits: RetainedLimits) -> bool {
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

    /// Gives a message another source. The memory of sources counts, though no limit keeps one out:
    /// the next message is kept out instead.
    fn change_source(&self, kept: &mut Kept, source: Option<Arc<RetainedSource>>) {
        let is_same = match (&kept.source, &source) {
            (None, None) => true,
            (Some(before), Some(after)) => Arc::ptr_eq(before, after),
            (None, Some(_)) | (Some(_), None) => false,
        };
        if is_same {
            return;
        }
        let was_withheld = kept.is_withheld();
        if let Some(source) = &source {
            self.bytes.fetch_add(source.gain(), Ordering::Relaxed);
        }
        if let Some(before) = std::mem::replace(&mut kept.source, source) {
            self.bytes.fetch_sub(before.lose(), Ordering::Relaxed);
        }
        match (was_withheld, kept.is_withheld()) {
            (false, true) => self.withheld.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.withheld.fetch_sub(1, Ordering::Relaxed),
            (false, false) | (true, true) => return,
        };
    }

    /// A topic is gone, and with it so many bytes.
    fn forget(&self, bytes: usize) {
        self.messages.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
