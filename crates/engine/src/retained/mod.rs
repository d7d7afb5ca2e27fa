//! The retained messages of the node: the last one of each topic, within limits.
//!
//! The store is divided into shards by topic, so that workers store messages at the same time.
//! Operations on many topics work in pages, and no page holds a lock for longer than it takes to
//! visit [`PAGE_VISITS`] branches.

mod listing;
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

pub use listing::Listed;
pub use review::{ReviewStep, SourceReview};
pub use source::{RetainedSource, SourceClient};

/// Shards for each worker of a node with several workers, so that two workers seldom use the same
/// shard.
const SHARDS_PER_WORKER: usize = 2;
/// Greatest number of shards: each shard adds to the cost of a replay of a wildcard filter.
const SHARDS_MAX: usize = 64;
/// Number of branches visited under one lock, which takes about 0.1 ms.
const PAGE_VISITS: usize = 1024;
/// Memory in bytes that a message counts beside its topic and payload: the value, its reference
/// counts and the overhead of the allocator.
const MESSAGE_BYTES: usize = 96;
/// Prefix of the topics of the node, whose messages are neither limited nor counted.
const NODE_TOPICS: &str = "$SYS/";
/// Number of branches visited for one page of a review of sources.
pub const SOURCES_PAGE_VISITS: usize = 256;
/// Pages of one sweep. A round over a million topics takes two minutes, which only delays the
/// release of memory, as expired messages are not delivered.
const SWEEP_PAGES: usize = 8;

/// Limits of the retained store.
#[derive(Clone, Copy, Debug)]
pub struct RetainedLimits {
    /// Greatest number of messages.
    pub message_count: usize,
    /// Greatest memory of all messages in bytes.
    pub bytes: usize,
    /// Greatest length of the payload of one message in bytes.
    pub payload_bytes: usize,
}

impl RetainedLimits {
    const NONE: Self = Self {
        message_count: usize::MAX,
        bytes: usize::MAX,
        payload_bytes: usize::MAX,
    };
}

/// The store of retained messages.
#[derive(Debug)]
pub struct RetainedStore {
    /// Shards by the hash of the topic. Each lock guards its shard: written for each retained
    /// message, read for each page of a replay.
    shards: Box<[CachePadded<RwLock<Shard>>]>,
    totals: CachePadded<Totals>,
    /// Number of the last change, increased under the lock of the shard, so that of two changes of
    /// a topic the later one has the higher number.
    changes: CachePadded<AtomicU64>,
    /// Position at which the next sweep begins; only the worker that does the housekeeping takes
    /// the lock.
    sweep_from: Mutex<Place>,
    /// Number of requests for a review of the sources.
    reviews_requested: CachePadded<AtomicU64>,
}

/// The topics of one shard.
#[derive(Debug)]
struct Shard {
    messages: Retained<Kept>,
    /// Number of messages with an expiry.
    expiring: usize,
    limits: RetainedLimits,
}

/// A retained message and the client that published it.
#[derive(Debug)]
struct Kept {
    message: Arc<Message>,
    source: Option<Arc<RetainedSource>>,
    /// The time of publication.
    at: Time,
}

/// A message with a source, found by a page of a review.
#[derive(Debug)]
struct SourcedMessage {
    message: Arc<Message>,
    source: Arc<RetainedSource>,
}

/// Totals of all shards without the topics of the node, written when a topic is added or removed,
/// or when the size of its message changes.
#[derive(Debug, Default)]
struct Totals {
    messages: AtomicUsize,
    bytes: AtomicUsize,
    /// Number of messages that new subscribers do not receive.
    withheld: AtomicUsize,
}

/// Result of storing a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The message was stored, or an empty payload removed the message of its topic.
    pub kept: bool,
    /// Number of the change; none if the store did not change.
    pub change: Option<u64>,
}

impl Stored {
    const REFUSED: Self = Self {
        kept: false,
        change: None,
    };
}

/// A position in an iteration over all shards.
#[derive(Clone, Debug, Default)]
struct Place {
    shard: usize,
    after: Option<Position>,
}

/// A position in a replay, from which it continues.
#[derive(Clone, Debug, Default)]
pub struct ReplayCursor(Place);

impl RetainedStore {
    /// Creates an empty store for a node of that many workers.
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
            reviews_requested: CachePadded::default(),
        }
    }

    /// Stores a message as the retained message of its topic, whatever its quality of service; an
    /// empty payload removes the message of the topic. The message is not stored if the limits
    /// leave no room. `at` is the time of publication. [MQTT-3.3.1-6] [MQTT-3.3.1-7]
    /// [MQTT3-3.3.1-7]
    #[must_use]
    pub fn store(
        &self,
        message: &Arc<Message>,
        source: Option<Arc<RetainedSource>>,
        at: Time,
    ) -> Stored {
        self.store_within(message, source, at, None)
    }

    /// Whether a message takes more memory than the current message of its topic.
    pub fn would_grow(&self, message: &Message) -> bool {
        let shard = self.read(self.slot(message.topic()));
        let kept = shard.messages.get(message.topic());
        kept.is_none_or(|kept| memory_bytes(message) > memory_bytes(&kept.message))
    }

    /// Restores a message from the storage, regardless of the current limits.
    pub fn restore(&self, message: &Arc<Message>, source: Option<Arc<RetainedSource>>, at: Time) {
        let stored = self.store_within(message, source, at, Some(RetainedLimits::NONE));
        debug_assert!(stored.kept, "there is no limit");
    }

    /// Continues the numbers of changes after the last one before the start.
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
        at: Time,
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
            kept.at = at;
            self.totals.change_source(kept, source);
        } else {
            let bytes = memory_bytes(message) + messages.tree_bytes_of(topic);
            if is_counted && !self.totals.add(bytes, limits) {
                return Stored::REFUSED;
            }
            let mut kept = Kept {
                message: Arc::clone(message),
                source: None,
                at,
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

    /// Removes the message of a topic; returns the number of the change, none if there was no
    /// message.
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

    /// Reads the next matching messages within an allowance; returns the position from which to
    /// continue, none at the end. The messages and visits are subtracted from the allowance.
    pub fn page(
        &self,
        filter: &str,
        after: Option<ReplayCursor>,
        allowance: &mut Allowance,
        into: &mut Vec<Arc<Message>>,
    ) -> Option<ReplayCursor> {
        self.visit_page(filter, after, allowance, |kept| {
            into.extend(kept.shown().cloned());
        })
    }

    /// Visits the next matching messages within an allowance, withheld ones included; returns the
    /// position from which to continue, none at the end.
    fn visit_page(
        &self,
        filter: &str,
        after: Option<ReplayCursor>,
        allowance: &mut Allowance,
        mut visit: impl FnMut(&Kept),
    ) -> Option<ReplayCursor> {
        if !filter.contains(['+', '#']) {
            allowance.visits = allowance.visits.saturating_sub(1);
            let shard = self.read(self.slot(filter));
            if let Some(kept) = shard.messages.get(filter) {
                visit(kept);
            }
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
            let end = messages.next_page_within(filter, after, &mut page, &mut visit);
            drop(shard);
            allowance.messages = page.messages;
            // An empty shard counts one visit for its lock.
            allowance.visits -= (visits - page.visits).max(1);
            place = self.beyond(place.shard, end)?;
        }
        Some(ReplayCursor(place))
    }

    /// The position behind a topic in a replay whose filter matches the topic.
    pub fn behind(&self, topic: &str) -> ReplayCursor {
        ReplayCursor(Place {
            shard: self.slot(topic),
            after: Some(Position::of(topic, topic)),
        })
    }

    /// Encodes a position in a replay for the storage; none is the start.
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

    /// Decodes a stored position in the replay of a filter; none is the start, which also results
    /// if the number of shards has changed.
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

    /// The position after a page; none after the last shard.
    fn beyond(&self, shard: usize, end: Option<Position>) -> Option<Place> {
        let next = if end.is_some() { shard } else { shard + 1 };
        (next < self.shards.len()).then_some(Place {
            shard: next,
            after: end,
        })
    }

    /// Removes expired messages of a part of the topics with each call, and appends them with the
    /// numbers of the changes.
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

    /// Finds the expired messages of a page of a shard; a shard without expiring messages is not
    /// visited.
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

    /// Finds the messages of a page that have a source; a position of none is the start. Returns
    /// the position from which to continue, none at the end.
    fn sourced_page(
        &self,
        from: Option<Place>,
        into: &mut VecDeque<SourcedMessage>,
    ) -> Option<Place> {
        let Place { shard, after } = from.unwrap_or_default();
        let guard = self.read(shard);
        let end = guard
            .messages
            .next_page_of_all(after.as_ref(), SOURCES_PAGE_VISITS, |kept| {
                into.extend(kept.source.as_ref().map(|source| SourcedMessage {
                    message: Arc::clone(&kept.message),
                    source: Arc::clone(source),
                }));
            });
        drop(guard);
        self.beyond(shard, end)
    }

    /// Replaces the source of a message, if the store still contains the message with the source
    /// that was found.
    fn replace_source(&self, found: &SourcedMessage, source: Arc<RetainedSource>) {
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

    /// Requests a review of the sources, because their rights may have changed.
    pub fn request_review(&self) {
        self.reviews_requested.fetch_add(1, Ordering::Release);
    }

    /// Number of requested reviews. A review that begins after this number was read finds all
    /// messages that were published before the request.
    pub fn reviews_requested(&self) -> u64 {
        self.reviews_requested.load(Ordering::Acquire)
    }

    /// Number of messages that new subscribers do not receive, because their publishers may no
    /// longer publish them.
    pub fn withheld(&self) -> usize {
        self.totals.withheld.load(Ordering::Relaxed)
    }

    /// Number of messages and their memory in bytes, without those of the node.
    pub fn size(&self) -> (usize, usize) {
        let Totals {
            messages, bytes, ..
        } = &*self.totals;
        (
            messages.load(Ordering::Relaxed),
            bytes.load(Ordering::Relaxed),
        )
    }

    /// Sets the limits for further messages.
    pub fn set_limits(&self, limits: RetainedLimits) {
        for shard in 0..self.shards.len() {
            self.write(shard).limits = limits;
        }
    }

    /// The index of the shard of a topic, which is the same in every process, as stored positions
    /// depend on it.
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
    /// Removes the message of a topic; returns it with the freed memory in bytes, without that of
    /// its source.
    fn remove(&mut self, topic: &str) -> Option<(Kept, usize)> {
        let before = self.messages.tree_bytes();
        let old = self.messages.remove(topic)?;
        self.expiring -= usize::from(will_expire(&old.message));
        let bytes = memory_bytes(&old.message) + before - self.messages.tree_bytes();
        Some((old, bytes))
    }
}

impl Kept {
    /// The message for new subscribers; none if it is withheld.
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
    message.is_expired(Time::from_millis(u64::MAX - 1))
}

impl Totals {
    /// Adds a topic with its levels and its message; false if the limits leave no room.
    fn add(&self, bytes: usize, limits: RetainedLimits) -> bool {
        let before = self.messages.fetch_add(1, Ordering::Relaxed);
        let fits = before < limits.message_count && self.resize(0, bytes, limits);
        if !fits {
            self.messages.fetch_sub(1, Ordering::Relaxed);
        }
        fits
    }

    /// Replaces the size of a message by another one; false if the limits leave no room. A smaller
    /// message always fits.
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

    /// Sets the source of a message. The memory of a source counts against the limit, but does not
    /// refuse the message itself; it may refuse the next message.
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
            self.bytes
                .fetch_add(source.add_reference(), Ordering::Relaxed);
        }
        if let Some(before) = std::mem::replace(&mut kept.source, source) {
            self.bytes
                .fetch_sub(before.remove_reference(), Ordering::Relaxed);
        }
        match (was_withheld, kept.is_withheld()) {
            (false, true) => self.withheld.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.withheld.fetch_sub(1, Ordering::Relaxed),
            (false, false) | (true, true) => return,
        };
    }

    /// Subtracts a topic that was removed.
    fn forget(&self, bytes: usize) {
        self.messages.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
