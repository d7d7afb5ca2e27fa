//! The last events of each client with their causes, kept in memory, also for clients that have
//! gone.
//!
//! ```text
//!   connect, refuse, end, subscribe, deny, drop … -> tell -> Timelines (of this worker, by client)
//!                                                               |
//!   a query asks every worker for a client and merges the answers by time
//! ```
//!
//! Nothing happens here for a message that is delivered. Denials and refusals are counted in the
//! entry that they repeat. Drops are counted in the session, which is at hand then, and get their
//! entry when a minute has passed without one, or when the session ends.
//!
//! The memory of one worker's timelines is limited: for a new event, the timeline that has not
//! changed for the longest time is forgotten. Client identifiers that have appeared in refused
//! CONNECTs only, and that an attacker may have made up, take at most an eighth of it.

mod event;
mod order;
mod story;
mod tell;
#[cfg(test)]
mod tests;

use std::hash::BuildHasher as _;
use std::mem::discriminant;

use hashbrown::{DefaultHashBuilder, HashTable};
use slab::Slab;
use thrum_protocol::Time;

use order::Orders;
#[cfg(test)]
use story::PLACE_BYTES;
pub(crate) use story::REPEAT_TIME;
use story::Story;
pub(crate) use tell::{cut, tell_drops, tell_drops_over, tell_publish_denied};

pub use event::{ClientEvent, EndCause, NewConnection, RefusalCause, SessionEnd};
pub use story::{EVENTS_MAX, TimelineEntry};
pub use tell::{tell, tell_refused, timeline_of, trim_timelines};

/// The share of the memory that clients take of which only refused CONNECTs are known.
const STRANGERS_SHARE: usize = 8;
/// Stories that the table grows by at least.
const STORIES_MIN: usize = 4;
/// Longest client identifier with a timeline: that of a refused CONNECT may have 65,535 bytes.
const CLIENT_ID_BYTES_MAX: usize = 1024;

/// The timelines of the clients of one worker.
#[derive(Debug, Default)]
pub struct Timelines {
    stories: Slab<Story>,
    /// Numbers of stories by client identifier; the story contains the text.
    by_id: HashTable<u32>,
    hasher: DefaultHashBuilder,
    orders: Orders,
    /// The story that was changed last, which is often changed again.
    recent: Option<u32>,
}

/// The events of one client that a worker knows of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientTimeline {
    /// In the order in which they began.
    pub entries: Vec<TimelineEntry>,
    /// Events that were forgotten for later ones of this client.
    pub forgotten: u64,
}

impl Timelines {
    /// Records an event. The timelines take at most `bytes_max` bytes; with 0 there are none.
    /// Returns the number of events that are forgotten for it.
    fn record(&mut self, client_id: &str, entry: TimelineEntry, bytes_max: usize) -> u64 {
        let event = &entry.event;
        let kind = discriminant(event);
        let alike = Alike {
            same: |earlier: &ClientEvent| event.repeats(earlier),
            kind: |earlier: &ClientEvent| discriminant(earlier) == kind,
            is_refusal: matches!(event, ClientEvent::Refused { .. }),
        };
        if event.may_be_counted() && self.count(client_id, entry.at, alike) {
            return 0;
        }
        self.add(client_id, entry, bytes_max)
    }

    /// Counts an event with an earlier one, if it does not need an entry of its own.
    fn count<S, K>(&mut self, client_id: &str, now: Time, alike: Alike<S, K>) -> bool
    where
        S: Fn(&ClientEvent) -> bool,
        K: Fn(&ClientEvent) -> bool,
    {
        let Some(number) = self.find(client_id) else {
            return false;
        };
        self.recent = Some(number);
        let Alike {
            same,
            kind,
            is_refusal,
        } = alike;
        let story = &mut self.stories[number as usize];
        let is_of_stranger = story.is_of_stranger;
        let is_counted = story.count(now, same, kind);
        // As with events that are added.
        if is_counted && (!is_refusal || is_of_stranger) {
            let order = self.orders.of(is_of_stranger);
            order.remove(&mut self.stories, number);
            order.push(&mut self.stories, number);
        }
        is_counted
    }

    /// Adds an entry. Returns the number of events that are forgotten for it.
    fn add(&mut self, client_id: &str, entry: TimelineEntry, bytes_max: usize) -> u64 {
        if bytes_max == 0 || client_id.len() > CLIENT_ID_BYTES_MAX {
            return 0;
        }
        let is_refusal = matches!(entry.event, ClientEvent::Refused { .. });
        let number = match self.find(client_id) {
            Some(number) => number,
            None => self.begin(client_id, is_refusal),
        };
        self.recent = Some(number);
        let story = &self.stories[number as usize];
        let (bytes, was_of_stranger) = (story.bytes(), story.is_of_stranger);
        let is_of_stranger = was_of_stranger && is_refusal;
        // A refused CONNECT of someone else does not keep a timeline from being forgotten.
        if !is_refusal || was_of_stranger {
            let order = self.orders.of(was_of_stranger);
            order.remove(&mut self.stories, number);
            let order = self.orders.of(is_of_stranger);
            order.push(&mut self.stories, number);
        }
        let story = &mut self.stories[number as usize];
        story.is_of_stranger = is_of_stranger;
        let forgotten = story.push(entry);
        let bytes_now = story.bytes();
        self.orders.of(was_of_stranger).bytes -= bytes;
        self.orders.of(is_of_stranger).bytes += bytes_now;
        forgotten + self.fit(bytes_max, usize::MAX).events
    }

    /// Forgets the first timelines until the others take at most that memory, but no more than that
    /// many of them.
    fn fit(&mut self, bytes_max: usize, stories_max: usize) -> Forgotten {
        let strangers_max = bytes_max / STRANGERS_SHARE;
        let mut forgotten = Forgotten::default();
        self.forget(true, strangers_max, stories_max, &mut forgotten);
        self.forget(
            false,
            bytes_max - strangers_max,
            stories_max,
            &mut forgotten,
        );
        if bytes_max == 0 && self.stories.is_empty() {
            // Their memory is free, too.
            *self = Self::default();
        }
        forgotten
    }

    /// Whether the timelines take at most that memory.
    fn fits(&mut self, bytes_max: usize) -> bool {
        let strangers_max = bytes_max / STRANGERS_SHARE;
        self.orders.of(true).bytes <= strangers_max
            && self.orders.of(false).bytes <= bytes_max - strangers_max
    }

    fn find(&self, client_id: &str) -> Option<u32> {
        let is_it = |number: &u32| {
            let story = self.stories.get(*number as usize);
            story.is_some_and(|story| *story.client_id == *client_id)
        };
        if let Some(recent) = self.recent.filter(is_it) {
            return Some(recent);
        }
        let hash = self.hasher.hash_one(client_id);
        self.by_id.find(hash, is_it).copied()
    }

    /// Begins the timeline of a client.
    fn begin(&mut self, client_id: &str, is_of_stranger: bool) -> u32 {
        let story = Story::new(client_id, is_of_stranger);
        let bytes = story.bytes();
        if self.stories.len() == self.stories.capacity() {
            // The room of a doubled table would not be within the limit.
            let more = (self.stories.len() / 8).max(STORIES_MIN);
            self.stories.reserve_exact(more);
        }
        // A story takes over a hundred bytes: there are never 2^32 of them.
        let number = u32::try_from(self.stories.insert(story)).unwrap_or(u32::MAX);
        let (hasher, stories) = (&self.hasher, &self.stories);
        let hash = hasher.hash_one(client_id);
        self.by_id.insert_unique(hash, number, |number| {
            hasher.hash_one(&*stories[*number as usize].client_id)
        });
        let order = self.orders.of(is_of_stranger);
        order.bytes += bytes;
        order.push(&mut self.stories, number);
        number
    }

    /// Forgets the first timelines of a kind until the others take at most that memory.
    fn forget(
        &mut self,
        of_strangers: bool,
        bytes_max: usize,
        stories_max: usize,
        forgotten: &mut Forgotten,
    ) {
        while forgotten.stories < stories_max
            && let order = self.orders.of(of_strangers)
            && order.bytes > bytes_max
            && let Some(first) = order.first
        {
            forgotten.stories += 1;
            forgotten.events += self.remove(first);
        }
    }

    fn remove(&mut self, number: u32) -> u64 {
        let order = self.orders.of(self.stories[number as usize].is_of_stranger);
        order.remove(&mut self.stories, number);
        let story = self.stories.remove(number as usize);
        order.bytes -= story.bytes();
        let hash = self.hasher.hash_one(&*story.client_id);
        if let Ok(entry) = self.by_id.find_entry(hash, |other| *other == number) {
            entry.remove();
        }
        self.recent = self.recent.filter(|recent| *recent != number);
        story.events.len() as u64
    }
}

/// What an event is like, to be counted with earlier ones.
struct Alike<S, K> {
    /// Whether it repeats an earlier one.
    same: S,
    /// Whether an earlier one is of its kind.
    kind: K,
    /// It is a CONNECT that was refused.
    is_refusal: bool,
}

/// What was forgotten.
#[derive(Clone, Copy, Debug, Default)]
struct Forgotten {
    stories: usize,
    events: u64,
}
