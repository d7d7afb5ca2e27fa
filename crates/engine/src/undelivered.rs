//! Which messages did not reach whom, and why: those that were dropped on their way to a client,
//! and those that were refused to their publisher. The most frequent combinations of reason,
//! client and topic, in bounded memory.
//!
//! Without such messages it costs two pointers. Messages with QoS 0 that were published while their
//! client was away are not in it: they may be as many as the deliveries, and no one has to act on
//! them.

use std::hash::{BuildHasher as _, Hash};

use thrum_protocol::Time;

use crate::hashing::HashBuilder;
use crate::refusals::Refusal;
use crate::top_counts::{Counted, TopCounts};

/// Combinations that one worker counts in each table: some hundred kilobytes with usual names.
pub const MESSAGE_KEYS_MAX: usize = 1024;
/// Bytes of a client identifier or topic that are kept; a longer one is shown cut. A table then
/// takes at most 1 MiB.
pub const MESSAGE_TEXT_BYTES_MAX: usize = 512;

/// The messages of a worker's sessions that were not delivered.
#[derive(Debug, Default)]
pub struct Undelivered {
    /// Messages that were dropped, by the client that did not get them. The reason is named as in
    /// `$SYS/broker/publish/messages/dropped/…`; the client is the shared filter for messages that
    /// no member of its group took.
    pub dropped: MessageCounts<&'static str>,
    /// Messages that were refused, by their publisher.
    pub refused: MessageCounts<Refusal>,
}

/// A combination of reason, client and topic.
#[derive(Clone, Debug)]
pub struct MessageKey<R> {
    /// The reason.
    pub reason: R,
    /// Client identifier.
    pub client: Box<str>,
    /// Topic; none if it is not known: the message was dropped with many others, or by another
    /// worker on behalf of the client.
    pub topic: Option<Box<str>>,
    /// When the last message came to this end.
    pub last: Time,
    hash: u64,
}

impl<R> MessageKey<R> {
    /// A number that no other combination of this worker has.
    pub const fn id(&self) -> u64 {
        self.hash
    }
}

/// A message, or several alike, that is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedMessage<'a, R> {
    pub(super) reason: R,
    pub(super) client: &'a str,
    pub(super) topic: Option<&'a str>,
    pub(super) count: u64,
}

/// Messages by reason, client and topic.
#[derive(Debug)]
pub struct MessageCounts<R>(Option<Box<Table<R>>>);

impl<R> Default for MessageCounts<R> {
    fn default() -> Self {
        Self(None)
    }
}

#[derive(Debug)]
struct Table<R> {
    counts: TopCounts<MessageKey<R>>,
    hasher: HashBuilder,
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Self {
            counts: TopCounts::new(MESSAGE_KEYS_MAX),
            hasher: HashBuilder::default(),
        }
    }
}

impl<R: Copy + Hash> MessageCounts<R> {
    /// The combinations in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Counted<MessageKey<R>>> {
        self.0.iter().flat_map(|table| table.counts.iter())
    }

    /// Combinations that lost their place to others.
    pub fn replaced(&self) -> u64 {
        self.0.as_ref().map_or(0, |table| table.counts.replaced())
    }

    /// Counts messages.
    pub(super) fn record(&mut self, message: CountedMessage<'_, R>, now: Time) {
        let CountedMessage {
            reason,
            client,
            topic,
            count,
        } = message;
        let table = self.0.get_or_insert_default();
        // The whole texts, so that texts with the same beginning differ. 64 bits with secret keys
        // are never the same by accident.
        let hash = table.hasher.hash_one((reason, client, topic));
        let make = || MessageKey {
            reason,
            client: cut(client).into(),
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
    &text[..text.floor_char_boundary(MESSAGE_TEXT_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<'a>(client: &'a str, topic: Option<&'a str>) -> CountedMessage<'a, &'static str> {
        CountedMessage {
            reason: "queue_full",
            client,
            topic,
            count: 1,
        }
    }

    #[test]
    fn drops_are_counted_by_client_and_topic() {
        let mut drops = MessageCounts::default();
        for second in 0..3 {
            drops.record(message("a", Some("t")), Time::from_millis(second * 1000));
        }
        drops.record(message("a", None), Time::default());
        drops.record(message("b", Some("t")), Time::default());
        let mut found: Vec<_> = drops.iter().collect();
        found.sort_by_key(|entry| (entry.key.client.clone(), entry.key.topic.clone()));
        let counts: Vec<_> = found.iter().map(|entry| entry.count).collect();
        assert_eq!(counts, [1, 3, 1]);
        assert_eq!(found[1].key.last, Time::from_millis(2000));
    }

    #[test]
    fn long_texts_are_cut_and_still_told_apart() {
        let mut drops = MessageCounts::default();
        let (one, other) = ("\u{fc}".repeat(40_000), "\u{fc}".repeat(40_001));
        for topic in [&one, &other] {
            drops.record(message("a", Some(topic)), Time::default());
        }
        assert_eq!(drops.iter().count(), 2);
        for entry in drops.iter() {
            let topic = entry.key.topic.as_deref().unwrap();
            assert_eq!(topic.len(), MESSAGE_TEXT_BYTES_MAX);
        }
    }

    #[test]
    fn the_table_is_bounded() {
        let mut drops = MessageCounts::default();
        for number in 0..5_000 {
            drops.record(message(&format!("c{number}"), Some("t")), Time::default());
        }
        assert_eq!(drops.iter().count(), MESSAGE_KEYS_MAX);
        assert_eq!(drops.replaced(), 5_000 - MESSAGE_KEYS_MAX as u64);
    }
}
