//! Which publishers' topics a filter fits.

use std::collections::HashMap;
use std::sync::Arc;

use thrum_codec::TopicFilter;
use thrum_codec::topic::matches;

use super::Publisher;
use crate::ledger::as_index;

/// What a subscriber is to receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// Every message of these publishers.
    Each(Sources),
    /// A share of the messages of this shared subscription.
    Shared(u32),
}

impl Expectation {
    /// The publishers of a subscription of its own.
    pub const fn each(&self) -> Option<&Sources> {
        match self {
            Self::Each(sources) => Some(sources),
            Self::Shared(_) => None,
        }
    }
}

/// A set of publishers, numbered within the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sources {
    /// Neighbours.
    Range {
        /// The first.
        start: u32,
        /// How many.
        len: u32,
    },
    /// Any, ascending.
    List(Arc<[u32]>),
}

impl Sources {
    /// How many.
    pub fn len(&self) -> u32 {
        match self {
            Self::Range { len, .. } => *len,
            Self::List(list) => u32::try_from(list.len()).unwrap_or(u32::MAX),
        }
    }

    /// Whether there are none.
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
    publishers: &'a [Publisher],
    by_topic: HashMap<&'a str, Vec<u32>>,
    /// Of the subscribers so far, which mostly have the same filters.
    last: Option<(Vec<String>, Sources)>,
}

impl<'a> Routes<'a> {
    pub(super) fn new(publishers: &'a [Publisher]) -> Self {
        let mut by_topic: HashMap<&str, Vec<u32>> = HashMap::new();
        for (number, publisher) in (0..).zip(publishers) {
            by_topic.entry(&publisher.topic).or_default().push(number);
        }
        Self {
            publishers,
            by_topic,
            last: None,
        }
    }

    /// The publishers whose messages these filters fetch; none if one is no filter.
    pub(super) fn sources(&mut self, filters: &[String]) -> Option<Sources> {
        if let Some((last, sources)) = &self.last
            && last == filters
        {
            return Some(sources.clone());
        }
        let mut list = Vec::new();
        for filter in filters {
            let filter = TopicFilter::parse(filter).ok()?;
            if filter.has_wildcard() {
                let fitting = (0..).zip(self.publishers);
                let fitting = fitting
                    .filter(|(_, publisher)| matches(filter.matched_part(), &publisher.topic));
                list.extend(fitting.map(|(number, _)| number));
            } else if let Some(numbers) = self.by_topic.get(filter.matched_part()) {
                list.extend(numbers);
            }
        }
        list.sort_unstable();
        list.dedup();
        let sources = Sources::from_sorted(list);
        self.last = Some((filters.to_vec(), sources.clone()));
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
            fan_out: 0,
            group: 0,
            number,
        })
        .collect()
    }

    fn sources(topics: &[&str], filters: &[&str]) -> Vec<u32> {
        let publishers = publishers(topics);
        let filters: Vec<String> = filters.iter().map(|filter| (*filter).to_owned()).collect();
        let sources = Routes::new(&publishers).sources(&filters).unwrap();
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
