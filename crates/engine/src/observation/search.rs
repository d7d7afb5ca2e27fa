//! Topics of the tree that contain a text, or match a filter. The tree is visited place by place,
//! as slowly as the caller wants.

use thrum_codec::TopicFilter;

use super::tree::{TOPIC_LEVELS_MAX, TopicNodeId, TopicTree};

/// Longest text that is searched for, in bytes.
pub const TOPIC_PATTERN_BYTES_MAX: usize = 256;
/// Bytes of a level that are compared with a text: a longer level is searched in part, so that no
/// step takes long.
const LEVEL_BYTES_SEEN: usize = 256;

/// What is searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicPattern {
    /// The levels of a text: a topic has it, upper and lower case of ASCII being the same. The last
    /// level is a part of it, so that what is below a level that is found is not found as well.
    Text(Vec<Box<str>>),
    /// The levels of a topic filter with wildcards.
    Filter(Vec<Box<str>>),
}

/// The text cannot be searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicPatternError {
    /// It is empty.
    Empty,
    /// It is longer than [`TOPIC_PATTERN_BYTES_MAX`].
    TooLong,
    /// It has a wildcard and is no filter.
    NoFilter,
}

impl TopicPatternError {
    /// The same in words.
    pub const fn what(self) -> &'static str {
        match self {
            Self::Empty => "name a part of a topic, or a topic filter with + or #",
            Self::TooLong => "a text to search for has at most 256 bytes",
            Self::NoFilter => {
                "+ and # stand alone between slashes, # at the end, as in site/+/temp/#"
            }
        }
    }
}

impl TopicPattern {
    /// A text with `+` or `#` is a filter, as no topic has these.
    ///
    /// # Errors
    /// The text is empty, too long, or has wildcards and is no filter.
    pub fn parse(text: &str) -> Result<Self, TopicPatternError> {
        if text.is_empty() {
            return Err(TopicPatternError::Empty);
        }
        if text.len() > TOPIC_PATTERN_BYTES_MAX {
            return Err(TopicPatternError::TooLong);
        }
        let levels = text.split('/').map(Into::into).collect();
        if !text.contains(['+', '#']) {
            return Ok(Self::Text(levels));
        }
        match TopicFilter::parse(text) {
            Ok(filter) if filter.shared().is_none() => Ok(Self::Filter(levels)),
            _ => Err(TopicPatternError::NoFilter),
        }
    }
}

impl TopicTree {
    /// Whether a node is one that is searched for.
    pub fn is_match(&self, id: TopicNodeId, pattern: &TopicPattern) -> bool {
        match pattern {
            TopicPattern::Text(levels) => self.has_text(id, levels),
            TopicPattern::Filter(levels) => self.has_message(id) && self.fits(id, levels),
        }
    }

    /// The whole topic of a node.
    pub fn topic(&self, id: TopicNodeId) -> String {
        let (levels, count) = self.levels(id);
        let levels: Vec<&str> = levels[..count].iter().rev().copied().collect();
        levels.join("/")
    }

    /// Whether a message had exactly the topic of a node: one without a value may have found no
    /// room for it.
    fn has_message(&self, id: TopicNodeId) -> bool {
        let node = self.show(id);
        node.value.is_some() || node.children == 0
    }

    fn has_text(&self, id: TopicNodeId, levels: &[Box<str>]) -> bool {
        let Some((last, before)) = levels.split_last() else {
            return false;
        };
        let name = self.show(id).name.as_bytes();
        let seen = &name[..name.len().min(LEVEL_BYTES_SEEN)];
        let Some((first, between)) = before.split_first() else {
            return contains(seen, last.as_bytes());
        };
        if !starts_with(seen, last.as_bytes()) {
            return false;
        }
        let mut at = id;
        for level in between.iter().rev() {
            match self.parent(at) {
                Some(parent) if self.show(parent).name.eq_ignore_ascii_case(level) => at = parent,
                _ => return false,
            }
        }
        let parent = self.parent(at);
        parent.is_some_and(|parent| ends_with(self.show(parent).name.as_bytes(), first.as_bytes()))
    }

    fn fits(&self, id: TopicNodeId, filter: &[Box<str>]) -> bool {
        let (levels, count) = self.levels(id);
        let mut levels = levels[..count].iter().rev().copied();
        let is_reserved = levels
            .clone()
            .next()
            .is_some_and(|one| one.starts_with('$'));
        for (place, wanted) in filter.iter().enumerate() {
            let is_wildcard = matches!(&**wanted, "+" | "#");
            // [MQTT-4.7.2-1]
            if is_wildcard && place == 0 && is_reserved {
                return false;
            }
            if &**wanted == "#" {
                return true;
            }
            match levels.next() {
                Some(level) if is_wildcard || *level == **wanted => {}
                _ => return false,
            }
        }
        levels.next().is_none()
    }

    /// The levels of a node, the last one first, and their number.
    fn levels(&self, id: TopicNodeId) -> ([&str; TOPIC_LEVELS_MAX], usize) {
        let mut levels = [""; TOPIC_LEVELS_MAX];
        let mut count = 0;
        let mut at = Some(id);
        while let Some(here) = at.filter(|_| count < TOPIC_LEVELS_MAX) {
            levels[count] = self.show(here).name;
            count += 1;
            at = self.parent(here);
        }
        (levels, count)
    }
}

fn starts_with(text: &[u8], beginning: &[u8]) -> bool {
    let first = text.get(..beginning.len());
    first.is_some_and(|first| first.eq_ignore_ascii_case(beginning))
}

fn ends_with(text: &[u8], end: &[u8]) -> bool {
    let last = text.len().checked_sub(end.len());
    last.is_some_and(|from| text[from..].eq_ignore_ascii_case(end))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    (0..=text.len().saturating_sub(part.len())).any(|from| starts_with(&text[from..], part))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use thrum_codec::{QoS, topic};
    use thrum_protocol::Time;

    use super::super::tree::Seen;
    use super::*;

    fn tree(topics: &[&str]) -> TopicTree {
        let mut tree = TopicTree::new(1, Time::default());
        for topic in topics {
            let seen = Seen {
                topic,
                payload: b"1",
                qos: QoS::AtMostOnce,
                retain: false,
                now: Time::default(),
            };
            assert!(tree.count(&seen), "{topic}");
        }
        tree
    }

    fn found(tree: &TopicTree, text: &str) -> Vec<String> {
        let pattern = TopicPattern::parse(text).expect("it can be searched for");
        let places = 1..u32::try_from(tree.places()).unwrap();
        let nodes = places.filter_map(|place| tree.at_place(place));
        let mut topics: Vec<String> = nodes
            .filter(|id| tree.is_match(*id, &pattern))
            .map(|id| tree.topic(id))
            .collect();
        topics.sort();
        topics
    }

    #[test]
    fn a_text_finds_levels_and_topics_at_any_depth_and_not_what_is_below_them() {
        let tree = tree(&[
            "site/a/line3/temp",
            "site/a/line3/Vib",
            "site/b/line4",
            "plant/TEMP/x",
            "/temp",
        ]);
        let expected = ["/temp", "plant/TEMP", "site/a/line3/temp"];
        assert_eq!(found(&tree, "temp"), expected);
        assert_eq!(found(&tree, "EM"), expected);
        assert_eq!(found(&tree, "line"), ["site/a/line3", "site/b/line4"]);
        assert_eq!(found(&tree, "a/LINE3/v"), ["site/a/line3/Vib"]);
        assert_eq!(found(&tree, "te/a"), ["site/a"]);
        assert_eq!(found(&tree, "te/a/"), ["site/a/line3"]);
        assert_eq!(found(&tree, "/temp"), expected);
        assert!(found(&tree, "e/temp").is_empty());
        assert!(found(&tree, "line3/temp/").is_empty());
        assert!(found(&tree, "nothing").is_empty());
    }

    #[test]
    fn a_filter_finds_topics_that_had_a_message() {
        let tree = tree(&["site/a/temp", "site/a", "site/b/temp", "$app/a"]);
        assert_eq!(found(&tree, "site/+/temp"), ["site/a/temp", "site/b/temp"]);
        assert_eq!(found(&tree, "site/a/#"), ["site/a", "site/a/temp"]);
        let all = ["site/a", "site/a/temp", "site/b/temp"];
        assert_eq!(found(&tree, "#"), all, "levels without a message are none");
        assert_eq!(found(&tree, "$app/+"), ["$app/a"]);
        assert!(found(&tree, "SITE/+").is_empty());
    }

    #[test]
    fn what_cannot_be_searched_for_is_said() {
        let of = |text: &str| TopicPattern::parse(text).unwrap_err();
        assert_eq!(of(""), TopicPatternError::Empty);
        assert_eq!(of(&"x".repeat(257)), TopicPatternError::TooLong);
        for text in ["a+", "#/a", "$share/g/+"] {
            assert_eq!(of(text), TopicPatternError::NoFilter, "{text}");
        }
    }

    fn a_topic() -> impl Strategy<Value = String> {
        let level = prop::sample::select(vec!["", "a", "b", "aB", "$x"]);
        prop::collection::vec(level, 1..4)
            .prop_map(|levels| levels.join("/"))
            .prop_filter("no topic is empty", |topic| !topic.is_empty())
    }

    fn a_filter() -> impl Strategy<Value = String> {
        let level = prop::sample::select(vec!["", "a", "aB", "$x", "+"]);
        let end = prop::sample::select(vec!["+", "#", "a/+", "b/#"]);
        (prop::collection::vec(level, 0..3), end).prop_map(|(mut levels, end)| {
            levels.push(end);
            levels.join("/")
        })
    }

    proptest! {
        #[test]
        fn a_filter_finds_what_it_matches(
            topics in prop::collection::btree_set(a_topic(), 1..12),
            filter in a_filter(),
        ) {
            let list: Vec<&str> = topics.iter().map(String::as_str).collect();
            let expected: Vec<String> = topics
                .iter()
                .filter(|topic| topic::matches(&filter, topic))
                .cloned()
                .collect();
            prop_assert_eq!(found(&tree(&list), &filter), expected);
        }

        #[test]
        fn a_text_finds_every_topic_whose_end_has_it(
            topics in prop::collection::btree_set(a_topic(), 1..12),
            text in "[aAbB/]{1,4}",
        ) {
            let list: Vec<&str> = topics.iter().map(String::as_str).collect();
            let found = found(&tree(&list), &text);
            let (small, last) = (text.to_ascii_lowercase(), |topic: &str| {
                topic.rfind('/').map_or(0, |slash| slash + 1)
            });
            let mut expected: Vec<String> = topics
                .iter()
                .flat_map(|topic| {
                    let ends = topic.match_indices('/').map(|(end, _)| end);
                    let ends: Vec<usize> = ends.chain([topic.len()]).collect();
                    ends.into_iter().map(|end| topic[..end].to_owned())
                })
                .filter(|topic| {
                    let lower = topic.to_ascii_lowercase();
                    let from = (0..lower.len()).filter(|from| lower[*from..].starts_with(&small));
                    from.map(|from| from + small.len()).any(|end| end >= last(topic))
                })
                .collect();
            expected.sort();
            expected.dedup();
            prop_assert_eq!(found, expected);
        }
    }
}
