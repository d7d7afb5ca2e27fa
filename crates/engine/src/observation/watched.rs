//! Topics that somebody looks at: their last values, and who publishes them.

use std::collections::VecDeque;
use std::time::Duration;

use thrum_codec::QoS;
use thrum_protocol::Time;

use super::tree::{PREVIEW_BYTES_MAX, Seen};
use crate::top_counts::{Counted, TopCounts};

/// Topics of a worker that are looked at: each is compared with each message.
pub const WATCHED_TOPICS_MAX: usize = 64;
/// Values of a topic that are kept.
pub const VALUES_MAX: usize = 20;
/// Publishers of a topic that are told apart.
pub const PUBLISHERS_MAX: usize = 8;
/// Bytes of a client identifier that are kept.
const NAME_BYTES_MAX: usize = 256;

/// A message of a watched topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedValue {
    /// When it came.
    pub at: Time,
    /// Its quality of service.
    pub qos: QoS,
    /// Its RETAIN flag.
    pub retain: bool,
    /// Bytes of its payload.
    pub payload_bytes: u32,
    /// Their beginning.
    pub preview: Box<[u8]>,
    /// Client identifier of its publisher; none if the broker published it.
    pub publisher: Option<Box<str>>,
}

/// A topic that is looked at.
#[derive(Debug)]
pub struct WatchedTopic {
    topic: Box<str>,
    /// It is looked at until then, at least.
    until: Time,
    values: VecDeque<WatchedValue>,
    publishers: TopCounts<Box<str>>,
}

/// The topics of a worker that are looked at.
#[derive(Debug, Default)]
pub(super) struct WatchedTopics(Vec<WatchedTopic>);

impl WatchedTopics {
    /// Looks at a topic for some time; false if there are too many.
    pub(super) fn watch(&mut self, topic: &str, now: Time, time: Duration) -> bool {
        self.0.retain(|one| one.until > now || *one.topic == *topic);
        let until = now.plus(time);
        if let Some(one) = self.0.iter_mut().find(|one| *one.topic == *topic) {
            one.until = until;
            return true;
        }
        if self.0.len() >= WATCHED_TOPICS_MAX {
            return false;
        }
        self.0.push(WatchedTopic {
            topic: topic.into(),
            until,
            values: VecDeque::new(),
            publishers: TopCounts::new(PUBLISHERS_MAX),
        });
        true
    }

    pub(super) fn find(&self, topic: &str) -> Option<&WatchedTopic> {
        self.0.iter().find(|one| *one.topic == *topic)
    }

    /// Keeps a message, if somebody looks at its topic.
    pub(super) fn count(&mut self, seen: &Seen<'_>, publisher: Option<&str>) {
        let found = self.0.iter_mut().find(|one| *one.topic == *seen.topic);
        if let Some(watched) = found {
            watched.keep(seen, publisher);
        }
    }
}

impl WatchedTopic {
    /// Its last values, the oldest one first.
    pub fn values(&self) -> impl Iterator<Item = &WatchedValue> {
        self.values.iter()
    }

    /// Its publishers since somebody looks at it, in no order; those of the broker have no name.
    pub fn publishers(&self) -> impl Iterator<Item = &Counted<Box<str>>> {
        self.publishers.iter()
    }

    fn keep(&mut self, seen: &Seen<'_>, publisher: Option<&str>) {
        if self.values.len() == VALUES_MAX {
            self.values.pop_front();
        }
        let publisher = publisher.map(|name| &name[..name.floor_char_boundary(NAME_BYTES_MAX)]);
        let shown = seen.payload.len().min(PREVIEW_BYTES_MAX);
        self.values.push_back(WatchedValue {
            at: seen.now,
            qos: seen.qos,
            retain: seen.retain,
            payload_bytes: u32::try_from(seen.payload.len()).unwrap_or(u32::MAX),
            preview: seen.payload[..shown].into(),
            publisher: publisher.map(Into::into),
        });
        let name = publisher.unwrap_or_default();
        // Eight names at most: equal hashes cost a comparison.
        let hash = thrum_routing::stable_hash(name.as_bytes());
        self.publishers
            .add(hash, 1, |other| **other == *name, || name.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Time {
        Time::from_millis(secs * 1000)
    }

    fn publish(watched: &mut WatchedTopics, topic: &str, payload: &[u8], from: Option<&str>) {
        let seen = Seen {
            topic,
            payload,
            qos: QoS::AtMostOnce,
            retain: true,
            now: at(3),
        };
        watched.count(&seen, from);
    }

    #[test]
    fn the_last_values_of_a_watched_topic_are_kept_with_their_publishers() {
        let mut watched = WatchedTopics::default();
        assert!(watched.watch("t", at(0), Duration::from_mins(1)));
        for number in 0..30_u8 {
            let from = if number < 20 { "one" } else { "other" };
            publish(&mut watched, "t", &vec![number; 300], Some(from));
            publish(&mut watched, "u", b"", Some("third"));
        }
        publish(&mut watched, "t", b"x", None);
        let found = watched.find("t").unwrap();
        let values: Vec<_> = found.values().collect();
        assert_eq!(values.len(), VALUES_MAX);
        assert_eq!(*values[0].preview, [11; PREVIEW_BYTES_MAX]);
        assert_eq!(values[0].payload_bytes, 300);
        assert_eq!(values[0].publisher.as_deref(), Some("one"));
        assert_eq!(values[VALUES_MAX - 1].publisher, None);
        let mut counts: Vec<_> = found
            .publishers()
            .map(|one| (&*one.key, one.count))
            .collect();
        counts.sort_unstable();
        assert_eq!(counts, [("", 1), ("one", 20), ("other", 10)]);
        assert!(watched.find("u").is_none());
    }

    #[test]
    fn watched_topics_are_bounded_and_end() {
        let mut watched = WatchedTopics::default();
        for number in 0..WATCHED_TOPICS_MAX {
            assert!(watched.watch(&number.to_string(), at(0), Duration::from_mins(1)));
        }
        assert!(!watched.watch("more", at(59), Duration::from_mins(1)));
        assert!(
            watched.watch("7", at(59), Duration::from_mins(1)),
            "it is there"
        );
        assert!(watched.watch("more", at(61), Duration::from_mins(1)));
        assert!(watched.find("7").is_some() && watched.find("8").is_none());
    }
}
