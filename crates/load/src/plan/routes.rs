//! Which publishers' topics a filter fits.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thrum_codec::TopicFilter;
use thrum_codec::topic::matches;
use thrum_figures::as_index;

use super::{Plan, Publisher};

/// The expected messages of a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// Every message of these publishers.
    Each(Sources),
    /// A share of the messages of this shared subscription.
    Shared(u32),
}

impl Expectation {
    /// The publishers of an unshared subscription.
    pub const fn each(&self) -> Option<&Sources> {
        match self {
            Self::Each(sources) => Some(sources),
            Self::Shared(_) => None,
        }
    }
}

/// A set of publishers, numbered within the set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sources {
    /// Neighbours.
    Range {
        /// The first.
        start: u32,
        /// Their number.
        len: u32,
    },
    /// Any, ascending.
    List(Arc<[u32]>),
}

impl Sources {
    /// Their number.
    pub fn len(&self) -> u32 {
        match self {
            Self::Range { len, .. } => *len,
            Self::List(list) => u32::try_from(list.len()).unwrap_or(u32::MAX),
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of a publisher within the set.
    pub fn position(&self, publisher: u32) -> Option<u32> {
        match self {
            Self::Range { start, len } => publisher
                .checked_sub(*start)
                .filter(|position| position < len),
            Self::List(list) => list
                .binary_search(&publisher)
                .ok()
                .and_then(|index| u32::try_from(index).ok()),
        }
    }

    /// The publisher with a number of the set.
    pub fn publisher(&self, position: u32) -> Option<u32> {
        match self {
            Self::Range { start, len } => (position < *len).then(|| start + position),
            Self::List(list) => list.get(as_index(position)).copied(),
        }
    }

    fn from_sorted(list: Vec<u32>) -> Self {
        let (start, end) = (list.first().copied(), list.last().copied());
        match (start, end) {
            (Some(start), Some(end)) if as_index(end - start) + 1 == list.len() => Self::Range {
                start,
                len: end - start + 1,
            },
            (Some(_), Some(_)) => Self::List(list.into()),
            _ => Self::Range { start: 0, len: 0 },
        }
    }
}

/// Finds the publishers of filters; exact filters by hash, so that a million pairs take a second.
pub(super) struct Routes<'a> {
    publishers: Vec<(u32, &'a Publisher)>,
    by_topic: HashMap<&'a str, Vec<u32>>,
    /// Of the subscribers so far, which mostly have the same filters.
    last: Option<(Vec<String>, String, Sources)>,
}

impl<'a> Routes<'a> {
    /// The publishers of a broker, or of the other brokers.
    pub(super) fn new(plan: &'a Plan, target: usize, over_bridge: bool) -> Self {
        let groups = &plan.scenario.groups;
        let is_seen = |publisher: &Publisher| {
            let of_target = groups
                .get(publisher.group)
                .is_some_and(|group| group.target == target);
            of_target != over_bridge
        };
        Self::of(&plan.publishers, is_seen)
    }

    fn of(publishers: &'a [Publisher], is_seen: impl Fn(&Publisher) -> bool) -> Self {
        let seen: Vec<_> = (0..)
            .zip(publishers)
            .filter(|(_, publisher)| is_seen(publisher))
            .collect();
        let mut by_topic: HashMap<&str, Vec<u32>> = HashMap::new();
        for (number, publisher) in &seen {
            by_topic.entry(&publisher.topic).or_default().push(*number);
        }
        Self {
            publishers: seen,
            by_topic,
            last: None,
        }
    }

    /// The publishers whose messages these filters match, if topics arrive with a prefix; none if
    /// one is not a filter.
    pub(super) fn sources(&mut self, filters: &[String], prefix: &str) -> Option<Sources> {
        if let Some((last, last_prefix, sources)) = &self.last
            && last == filters
            && last_prefix == prefix
        {
            return Some(sources.clone());
        }
        let mut list = Vec::new();
        for filter in filters {
            let filter = TopicFilter::parse(filter).ok()?;
            let Some(wanted) = filter.matched_part().strip_prefix(prefix) else {
                continue;
            };
            if filter.has_wildcard() {
                let fitting = self
                    .publishers
                    .iter()
                    .filter(|(_, publisher)| matches(wanted, &publisher.topic));
                list.extend(fitting.map(|(number, _)| *number));
            } else if let Some(numbers) = self.by_topic.get(wanted) {
                list.extend(numbers);
            }
        }
        list.sort_unstable();
        list.dedup();
        let sources = Sources::from_sorted(list);
        self.last = Some((filters.to_vec(), prefix.to_owned(), sources.clone()));
        Some(sources)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publishers(topics: &[&str]) -> Vec<Publisher> {
        let each = topics.iter().zip(0..);
        each.map(|(topic, number)| Publisher {
            topic: (*topic).into(),
            response: None,
            fan_out: 0,
            measured_fan_out: 0,
            group: 0,
            number,
        })
        .collect()
    }

    fn sources(topics: &[&str], filters: &[&str]) -> Vec<u32> {
        let publishers = publishers(topics);
        let filters: Vec<String> = filters.iter().map(|filter| (*filter).to_owned()).collect();
        let sources = Routes::of(&publishers, |_| true)
            .sources(&filters, "")
            .unwrap();
        (0..sources.len())
            .filter_map(|position| sources.publisher(position))
            .collect()
    }

    #[test]
    fn filters_fetch_the_topics_they_match() {
        let topics = ["g/1", "g/2", "g/1", "h/1"];
        assert_eq!(sources(&topics, &["g/1"]), [0, 2]);
        assert_eq!(sources(&topics, &["g/+"]), [0, 1, 2]);
        assert_eq!(sources(&topics, &["$share/x/#"]), [0, 1, 2, 3]);
        assert_eq!(sources(&topics, &["g/1", "+/1"]), [0, 2, 3]);
        assert_eq!(sources(&topics, &["k"]), [0; 0]);
    }

    #[test]
    fn the_same_filter_after_another_prefix_is_another_one() {
        let publishers = publishers(&["g/1"]);
        let mut routes = Routes::of(&publishers, |_| true);
        let filter = ["a/g/1".to_owned()];
        for (prefix, expected) in [("a/", 1), ("b/", 0), ("", 0), ("a/", 1)] {
            let sources = routes.sources(&filter, prefix).unwrap();
            assert_eq!(sources.len(), expected, "{prefix}");
        }
    }

    #[test]
    fn positions_and_publishers_are_each_others_inverse() {
        for sources in [
            Sources::Range { start: 3, len: 4 },
            Sources::List([1, 5, 9].as_slice().into()),
        ] {
            for position in 0..sources.len() {
                let publisher = sources.publisher(position).unwrap();
                assert_eq!(sources.position(publisher), Some(position));
            }
            assert_eq!(sources.publisher(sources.len()), None);
            assert_eq!((sources.position(2), sources.position(100)), (None, None));
        }
    }
}
