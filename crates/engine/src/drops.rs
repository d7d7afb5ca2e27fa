//! Which messages of which clients were dropped, and why: the most frequent combinations of reason,
//! client and topic, in bounded memory.
//!
//! Without drops it costs a pointer. Messages with QoS 0 that were published while their client was
//! away are not in it: they may be as many as the deliveries, and no one has to act on them.

use std::hash::BuildHasher as _;

use thrum_protocol::Time;

use crate::hashing::HashBuilder;
use crate::top_counts::{Counted, TopCounts};

/// Combinations that one worker counts: some hundred kilobytes with usual names.
pub const DROP_KEYS_MAX: usize = 1024;
/// Bytes of a client identifier or topic that are kept; a longer one is shown cut. The table then
/// takes at most 1 MiB.
pub const DROP_TEXT_BYTES_MAX: usize = 512;

/// A combination of reason, client and topic.
#[derive(Clone, Debug)]
pub struct DropKey {
    /// Name of the reason, as in `$SYS/broker/publish/messages/dropped/…`.
    pub reason: &'static str,
    /// Client identifier; the shared filter for messages that no member of its group took.
    pub receiver: Box<str>,
    /// Topic; none if it is not known: the message was dropped with many others, or by another
    /// worker on behalf of the client.
    pub topic: Option<Box<str>>,
    /// When the last one was dropped.
    pub last: Time,
    hash: u64,
}

impl DropKey {
    /// A number that no other combination of this worker has.
    pub const fn id(&self) -> u64 {
        self.hash
    }
}

/// A message that was dropped.
#[derive(Clone, Copy, Debug)]
pub(super) struct DroppedMessage<'a> {
    pub(super) reason: &'static str,
    pub(super) receiver: &'a str,
    pub(super) topic: Option<&'a str>,
    pub(super) count: u64,
}

/// The dropped messages of a worker's sessions.
#[derive(Debug, Default)]
pub struct Drops(Option<Box<Table>>);

#[derive(Debug)]
struct Table {
    counts: TopCounts<DropKey>,
    hasher: HashBuilder,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            counts: TopCounts::new(DROP_KEYS_MAX),
            hasher: HashBuilder::default(),
        }
    }
}

impl Drops {
    /// The combinations in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Counted<DropKey>> {
        self.0.iter().flat_map(|table| table.counts.iter())
    }

    /// Combinations that lost their place to others.
    pub fn replaced(&self) -> u64 {
        self.0.as_ref().map_or(0, |table| table.counts.replaced())
    }

    /// Counts dropped messages.
    pub(super) fn record(&mut self, dropped: DroppedMessage<'_>, now: Time) {
        let DroppedMessage {
            reason,
            receiver,
            topic,
            count,
        } = dropped;
        let table = self.0.get_or_insert_default();
        // The whole texts, so that texts with the same beginning differ. 64 bits with secret keys
        // are never the same by accident.
        let hash = table.hasher.hash_one((reason, receiver, topic));
        let make = || DropKey {
            reason,
            receiver: cut(receiver).into(),
            topic: topic.map(|topic| cut(topic).into()),
            last: now,
            hash,
        };
        let key = table.counts.add(hash, count, |key| key.hash == hash, make);
        key.last = now;
    }
}

/// The beginning of a text.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(DROP_TEXT_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<'a>(receiver: &'a str, topic: Option<&'a str>) -> DroppedMessage<'a> {
        DroppedMessage {
            reason: "queue_full",
            receiver,
            topic,
            count: 1,
        }
    }

    #[test]
    fn drops_are_counted_by_client_and_topic() {
        let mut drops = Drops::default();
        for second in 0..3 {
            drops.record(message("a", Some("t")), Time::from_millis(second * 1000));
        }
        drops.record(message("a", None), Time::default());
        drops.record(message("b", Some("t")), Time::default());
        let mut found: Vec<_> = drops.iter().collect();
        found.sort_by_key(|entry| (entry.key.receiver.clone(), entry.key.topic.clone()));
        let counts: Vec<_> = found.iter().map(|entry| entry.count).collect();
        assert_eq!(counts, [1, 3, 1]);
        assert_eq!(found[1].key.last, Time::from_millis(2000));
    }

    #[test]
    fn long_texts_are_cut_and_still_told_apart() {
        let mut drops = Drops::default();
        let (one, other) = ("\u{fc}".repeat(40_000), "\u{fc}".repeat(40_001));
        for topic in [&one, &other] {
            drops.record(message("a", Some(topic)), Time::default());
        }
        assert_eq!(drops.iter().count(), 2);
        for entry in drops.iter() {
            let topic = entry.key.topic.as_deref().unwrap();
            assert_eq!(topic.len(), DROP_TEXT_BYTES_MAX);
        }
    }

    #[test]
    fn the_table_is_bounded() {
        let mut drops = Drops::default();
        for number in 0..5_000 {
            drops.record(message(&format!("c{number}"), Some("t")), Time::default());
        }
        assert_eq!(drops.iter().count(), DROP_KEYS_MAX);
        assert_eq!(drops.replaced(), 5_000 - DROP_KEYS_MAX as u64);
    }
}
