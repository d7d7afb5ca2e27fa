//! The retained store against examples and against a plain map, at once and in pages.

mod oracle;

use std::collections::{BTreeMap, BTreeSet};
use std::iter::repeat;

use proptest::bool::weighted;
use proptest::collection::vec;
use proptest::prelude::*;
use thrum_routing::{Allowance, Position, Retained};

/// A store in which the message of each topic is the topic itself.
fn retained<'a>(topics: &[&'a str]) -> Retained<&'a str> {
    let mut retained = Retained::new();
    for topic in topics {
        retained.insert(topic, *topic);
    }
    retained
}

/// A page with 16 visits for each message, so that a page of few messages ends soon.
fn next_page<M>(
    retained: &Retained<M>,
    filter: &str,
    after: Option<&Position>,
    messages: usize,
    each: impl FnMut(&M),
) -> Option<Position> {
    let visits = messages.saturating_mul(16);
    let mut allowance = Allowance { messages, visits };
    retained.next_page_within(filter, after, &mut allowance, each)
}

fn all_matches<M: Clone + Ord>(retained: &Retained<M>, filter: &str) -> Vec<M> {
    let mut found = Vec::new();
    let end = next_page(retained, filter, None, usize::MAX, |message| {
        found.push(message.clone());
    });
    assert!(end.is_none());
    found.sort();
    found
}

fn paged_matches<M: Clone + Ord>(retained: &Retained<M>, filter: &str, max: usize) -> Vec<M> {
    let mut found = Vec::new();
    let mut position = None;
    loop {
        let before = found.len();
        position = next_page(retained, filter, position.as_ref(), max, |message| {
            found.push(message.clone());
        });
        assert!(found.len() - before <= max);
        if position.is_none() {
            found.sort();
            return found;
        }
    }
}

#[track_caller]
fn check(topics: &[&str], filter: &str, expected: &[&str]) {
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    let retained = retained(topics);
    assert_eq!(all_matches(&retained, filter), expected, "{filter}");
    for max in 1..4 {
        assert_eq!(
            paged_matches(&retained, filter, max),
            expected,
            "{filter} in pages of {max}"
        );
    }
}

#[test]
fn message_is_found_replaced_and_removed_by_topic() {
    let mut retained = Retained::new();
    assert_eq!(retained.insert("a/b", 1), None);
    assert_eq!(retained.insert("a/b", 2), Some(1));
    assert_eq!(retained.insert("a", 3), None);
    assert_eq!(
        (retained.get("a/b"), retained.get("a"), retained.get("a/")),
        (Some(&2), Some(&3), None)
    );
    assert_eq!(retained.len(), 2);
    assert_eq!(retained.get_mut("a").map(|kept| *kept += 1), Some(()));
    assert_eq!(retained.get_mut("b"), None);
    assert_eq!(retained.remove("a"), Some(4));
    assert_eq!(retained.remove("a"), None);
    assert_eq!(retained.get("a/b"), Some(&2));
    assert_eq!(retained.remove("a/b"), Some(2));
    assert!(retained.is_empty());
}

#[test]
fn filter_without_wildcards_finds_its_topic_only() {
    check(&["a/b", "a", "a/b/c", "b"], "a/b", &["a/b"]);
    check(&["a/b"], "a/c", &[]);
    check(&[], "a", &[]);
}

#[test]
fn wildcards_find_topics_as_in_section_4_7() {
    let topics = ["a", "a/", "a/b", "a/b/c", "a/c/c", "/a", "b/b"];
    check(&topics, "a/#", &["a", "a/", "a/b", "a/b/c", "a/c/c"]);
    check(&topics, "a/+", &["a/", "a/b"]);
    check(&topics, "+/b", &["a/b", "b/b"]);
    check(&topics, "a/+/c", &["a/b/c", "a/c/c"]);
    check(&topics, "+", &["a"]);
    check(&topics, "/+", &["/a"]);
    check(
        &topics,
        "+/+/#",
        &["a/", "a/b", "a/b/c", "a/c/c", "/a", "b/b"],
    );
    check(&topics, "#", &topics);
}

// [MQTT-4.7.2-1] [MQTT3-4.7.2-1]
#[test]
fn leading_wildcard_does_not_find_dollar_topics() {
    let topics = ["$SYS/a", "$SYS", "a/$SYS", "b"];
    check(&topics, "#", &["a/$SYS", "b"]);
    check(&topics, "+/a", &[]);
    check(&topics, "+", &["b"]);
    check(&topics, "+/#", &["a/$SYS", "b"]);
    check(&topics, "$SYS/#", &["$SYS", "$SYS/a"]);
    check(&topics, "$SYS/+", &["$SYS/a"]);
    check(&topics, "a/+", &["a/$SYS"]);
}

// [MQTT-4.7.3-4] [MQTT3-4.7.3-4]
#[test]
fn retained_topics_are_compared_byte_for_byte() {
    let topics = [
        "caf\u{e9}",
        "cafe\u{301}",
        "CAF\u{e9}",
        "caf\u{e9} ",
        "caf\u{e9}/",
    ];
    for topic in topics {
        check(&topics, topic, &[topic]);
    }
}

#[test]
fn page_ends_after_many_branches_without_a_match() {
    let mut retained = Retained::new();
    for number in 0..1_000 {
        retained.insert(&format!("{number}/x"), number);
    }
    retained.insert("last/y", 1_000);
    let mut found = Vec::new();
    let mut first_page = next_page(&retained, "+/y", None, 2, |&message| found.push(message));
    assert!(first_page.is_some() && found.is_empty());
    let mut pages = 1;
    while let Some(position) = first_page {
        pages += 1;
        first_page = next_page(&retained, "+/y", Some(&position), 2, |&message| {
            found.push(message);
        });
    }
    assert_eq!(found, [1_000]);
    // 1,002 branches, 32 for each page of two messages, one of which is the lookup of its start
    // position.
    assert_eq!(pages, 33);
}

#[test]
fn a_page_visits_no_more_than_its_allowance() {
    let mut retained = Retained::new();
    for number in 0..1_000 {
        retained.insert(&format!("{number}/x"), number);
    }
    retained.insert("last/y", 1_000);
    let (mut found, mut position, mut pages) = (Vec::new(), None, 0);
    loop {
        let mut allowance = Allowance {
            messages: 64,
            visits: 100,
        };
        let each = |&message: &i32| found.push(message);
        position = retained.next_page_within("+/y", position.as_ref(), &mut allowance, each);
        pages += 1;
        if position.is_none() {
            // The end is found within the allowance.
            assert!(allowance.visits > 0);
            break;
        }
        assert_eq!(allowance.visits, 0);
    }
    assert_eq!((found, pages), (vec![1_000], 11));
}

#[test]
fn resuming_at_a_position_costs_visits() {
    let lead = "a/".repeat(126);
    let mut retained = Retained::new();
    for number in 0..10 {
        retained.insert(&format!("{lead}{number}/b"), number);
    }
    let filter = format!("{lead}+/b");
    let page = |after: Option<&Position>, visits: usize| {
        let (mut found, messages) = (0, 1);
        let mut allowance = Allowance { messages, visits };
        let end = retained.next_page_within(&filter, after, &mut allowance, |_| found += 1);
        (end, visits - allowance.visits, found)
    };
    // The filter's levels, four for a visit, and the descent to the first message.
    let (first, visits, found) = page(None, 1_000);
    assert_eq!((visits, found), (128 / 4 + 128, 1));
    // The same number of levels again, and two branches.
    let (_, visits, found) = page(first.as_ref(), 1_000);
    assert_eq!((visits, found), (128 / 4 + 128 + 2, 1));
    // Half of the visits remain for new branches.
    let (_, visits, found) = page(first.as_ref(), 4);
    assert_eq!((visits, found), (4, 1));
}

#[test]
fn a_page_continues_after_the_levels_of_its_position_are_removed() {
    let mut retained = retained(&["a/1", "a/2", "stays"]);
    let mut found = Vec::new();
    let position = next_page(&retained, "a/+", None, 1, |&message| found.push(message));
    // Other topics get the numbers that the levels of the position had.
    retained.remove("a/1");
    retained.remove("a/2");
    for topic in ["b/1", "b/2", "b/3", "a/2", "a/1"] {
        retained.insert(topic, topic);
    }
    next_page(&retained, "a/+", position.as_ref(), 9, |&message| {
        found.push(message);
    });
    found.sort_unstable();
    assert_eq!(found, ["a/1", "a/2"]);
}

#[test]
fn deepest_possible_topic_is_kept_and_found() {
    let topic = "/".repeat(65_534);
    let mut retained = Retained::new();
    retained.insert(&topic, 1);
    assert_eq!(all_matches(&retained, "#"), [1]);
    assert_eq!(all_matches(&retained, &["+"].repeat(65_535).join("/")), [1]);
    assert_eq!(paged_matches(&retained, "/#", 1_000), [1]);
    assert_eq!(retained.remove(&topic), Some(1));
    assert!(retained.is_empty());
}

#[derive(Clone, Debug)]
enum Change {
    Insert(String),
    Remove(usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        oracle::topic().prop_map(Change::Insert),
        any::<usize>().prop_map(Change::Remove),
    ]
}

/// Applies a change to both stores and returns the topic.
fn apply(
    retained: &mut Retained<String>,
    plain: &mut BTreeSet<String>,
    change: &Change,
) -> Option<String> {
    match change {
        Change::Insert(topic) => {
            let replaced = retained.insert(topic, topic.clone());
            assert_eq!(replaced.is_none(), plain.insert(topic.clone()));
            Some(topic.clone())
        }
        Change::Remove(number) => {
            let topic = plain.iter().nth(number.checked_rem(plain.len())?)?.clone();
            plain.remove(&topic);
            assert_eq!(retained.remove(&topic).as_ref(), Some(&topic));
            Some(topic)
        }
    }
}

proptest! {
    #[test]
    fn retained_equals_a_plain_map(
        changes in vec(change(), 1..150),
        filters in vec(oracle::filter(), 1..12),
        page in 1..5_usize,
    ) {
        let mut retained = Retained::new();
        let mut plain = BTreeSet::new();
        for change in &changes {
            apply(&mut retained, &mut plain, change);
            prop_assert_eq!(retained.len(), plain.len());
        }
        for topic in &plain {
            prop_assert_eq!(retained.get(topic), Some(topic));
        }
        for filter in &filters {
            let expected: Vec<_> =
                plain.iter().filter(|topic| oracle::matches(filter, topic)).cloned().collect();
            prop_assert_eq!(&all_matches(&retained, filter), &expected);
            prop_assert_eq!(&paged_matches(&retained, filter, page), &expected);
        }
    }

    #[test]
    fn pages_of_all_return_every_topic(
        topics in vec(oracle::topic(), 0..60),
        visits in 1..9_usize,
    ) {
        let mut retained = Retained::new();
        for topic in &topics {
            retained.insert(topic, topic.clone());
        }
        let mut found = Vec::new();
        let mut position = None;
        loop {
            position = retained.next_page_of_all(position.as_ref(), visits, |topic| {
                found.push(topic.clone());
            });
            if position.is_none() {
                break;
            }
        }
        found.sort();
        let topics: BTreeSet<_> = topics.into_iter().collect();
        prop_assert_eq!(found, topics.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn pages_return_each_lasting_message_once_during_changes(
        topics in vec(oracle::topic(), 1..60),
        rounds in vec((vec(change(), 0..6), 0..4_usize, 0..9_usize, weighted(0.2)), 1..60),
        filter in prop_oneof![Just("#".to_owned()), Just("+/#".to_owned()), oracle::filter()],
    ) {
        let mut retained = Retained::new();
        let mut plain = BTreeSet::new();
        for topic in &topics {
            apply(&mut retained, &mut plain, &Change::Insert(topic.clone()));
        }
        let mut stayed = plain.clone();
        let mut removed = BTreeSet::new();
        let mut times: BTreeMap<String, u32> = BTreeMap::new();
        let mut position = None;
        let later = (Vec::new(), 1, 1, false);
        for (changes, messages, visits, restarts) in rounds.iter().chain(repeat(&later)) {
            let mut allowance = Allowance { messages: *messages, visits: *visits };
            let each = |topic: &String| *times.entry(topic.clone()).or_default() += 1;
            position = retained.next_page_within(&filter, position.as_ref(), &mut allowance, each);
            let Some(stopped) = &position else {
                break;
            };
            if *restarts {
                // Levels get other numbers, and only the path of the position is kept.
                position = stopped.path().map(|path| Position::of(&filter, path));
                retained = Retained::new();
                for topic in plain.iter().rev() {
                    retained.insert(topic, topic.clone());
                }
            }
            for change in changes {
                let topic = apply(&mut retained, &mut plain, change);
                if let Some(topic) = topic.filter(|topic| !plain.contains(topic)) {
                    stayed.remove(&topic);
                    removed.insert(topic);
                }
            }
        }
        for topic in stayed.iter().filter(|topic| oracle::matches(&filter, topic)) {
            prop_assert_eq!(times.get(topic), Some(&1), "{} for {}", topic, filter);
        }
        for (topic, &times) in times.iter().filter(|(topic, _)| !removed.contains(*topic)) {
            prop_assert_eq!(times, 1, "{}", topic);
        }
        for topic in times.keys() {
            prop_assert!(oracle::matches(&filter, topic));
        }
    }
}
