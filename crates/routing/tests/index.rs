//! The index against examples of the specification and against a plain list.

mod deep;
mod oracle;

use std::collections::{BTreeMap, BTreeSet};

use proptest::bool::weighted;
use proptest::collection::vec;
use proptest::prelude::*;
use thrum_routing::{Destination, FilterId, Index};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Subscriber {
    session: u32,
    options: u8,
}

impl Destination for Subscriber {
    type Key = u32;

    fn key(&self) -> u32 {
        self.session
    }
}

fn session(session: u32) -> Subscriber {
    Subscriber {
        session,
        options: 0,
    }
}

#[test]
fn memory_of_an_index_grows_with_each_kind_of_filter() {
    for (prefix, suffix) in [("exact/", ""), ("+/wildcard/", ""), ("open/", "/#")] {
        let mut index = Index::new();
        let empty = index.memory_bytes();
        for number in 0..1000 {
            let filter = format!("{prefix}{number}{suffix}");
            index.insert(&filter, session(number));
        }
        let grown = index.memory_bytes() - empty;
        assert!((20_000..2_000_000).contains(&grown), "{prefix}: {grown}");
    }
}

fn index(filters: &[&str]) -> Index<Subscriber> {
    let mut index = Index::new();
    for filter in filters {
        index.insert(filter, session(1));
    }
    index
}

fn text(index: &Index<Subscriber>, filter: FilterId) -> String {
    let mut text = String::new();
    index.filter_text(filter, &mut text);
    text
}

fn matched(index: &Index<Subscriber>, topic: &str) -> Vec<String> {
    let mut ids = Vec::new();
    index.matches(topic, &mut ids);
    let mut filters: Vec<_> = ids.into_iter().map(|id| text(index, id)).collect();
    filters.sort();
    filters
}

#[track_caller]
fn check(filters: &[&str], topic: &str, expected: &[&str]) {
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(matched(&index(filters), topic), expected, "{topic}");
}

#[test]
fn multi_level_wildcard_matches_its_parent_and_everything_below() {
    let filters = [
        "sport/tennis/player1/#",
        "sport/#",
        "#",
        "sport/tennis/+",
        "sport/+/#",
    ];
    check(&filters, "sport/tennis/player1", &filters);
    check(
        &filters,
        "sport/tennis/player1/ranking",
        &["sport/tennis/player1/#", "sport/#", "#", "sport/+/#"],
    );
    check(&filters, "sport", &["sport/#", "#"]);
    check(&filters, "sports", &["#"]);
}

#[test]
fn single_level_wildcard_matches_exactly_one_level_even_an_empty_one() {
    check(&["sport/+"], "sport", &[]);
    check(&["sport/+"], "sport/", &["sport/+"]);
    check(&["sport/tennis/+"], "sport/tennis/player1/ranking", &[]);
    check(&["+", "/+", "+/+"], "/finance", &["/+", "+/+"]);
    check(
        &["+/tennis/#", "sport/+/player1"],
        "sport/tennis/player1",
        &["+/tennis/#", "sport/+/player1"],
    );
}

// [MQTT-4.7.2-1] [MQTT3-4.7.2-1]
#[test]
fn leading_wildcard_does_not_match_dollar_topics() {
    let filters = ["#", "+/monitor/Clients", "+/#", "$SYS/#", "$SYS/monitor/+"];
    check(
        &filters,
        "$SYS/monitor/Clients",
        &["$SYS/#", "$SYS/monitor/+"],
    );
    check(&filters, "$", &[]);
    // The rule applies only to the first level.
    check(
        &["a/+", "a/#", "+/+", "#"],
        "a/$SYS",
        &["a/+", "a/#", "+/+", "#"],
    );
}

// [MQTT-4.7.3-4] [MQTT3-4.7.3-4]
#[test]
fn levels_are_compared_byte_for_byte() {
    // The same letter composed and decomposed, a different case, a space, empty levels.
    let filters = [
        "caf\u{e9}",
        "cafe\u{301}",
        "CAF\u{e9}",
        "caf\u{e9} ",
        "caf\u{e9}/",
        "/caf\u{e9}",
    ];
    for filter in filters {
        check(&filters, filter, &[filter]);
    }
    let wild = filters.map(|filter| format!("{filter}/+"));
    let wild: Vec<_> = wild.iter().map(String::as_str).collect();
    for filter in &wild {
        check(&wild, &filter.replace('+', "x"), &[filter]);
    }
}

#[test]
fn insert_reports_what_it_replaced_and_whether_the_filter_is_new() {
    for filter in ["a/b", "a/+", "#"] {
        let mut index = Index::new();
        let first = index.insert(filter, session(1));
        assert!(first.first && first.replaced.is_none());
        let again = index.insert(
            filter,
            Subscriber {
                session: 1,
                options: 2,
            },
        );
        assert!(!again.first && again.filter == first.filter);
        assert_eq!(again.replaced, Some(session(1)));
        let second = index.insert(filter, session(2));
        assert!(!second.first && second.replaced.is_none());
        assert_eq!(index.destination_count(), 2);
        assert_eq!(index.filter_count(), 1);
        assert_eq!(
            index
                .destination(first.filter, 1)
                .map(|found| found.options),
            Some(2)
        );
        assert_eq!(index.find(filter), Some(first.filter));
    }
}

#[test]
fn remove_reports_the_last_destination_and_invalidates_the_id() {
    for filter in ["a/b", "a/+", "#", "$SYS/#"] {
        let mut index = index(&[filter]);
        let id = index.insert(filter, session(2)).filter;
        assert_eq!(index.remove(filter, 3), None);
        let removed = index.remove_by_id(id, 1).expect("it was inserted");
        assert!(!removed.last && removed.destination == session(1));
        assert_eq!(index.remove_by_id(id, 1), None);
        let removed = index.remove(filter, 2).expect("it was inserted");
        assert!(removed.last && removed.destination == session(2));
        assert_eq!(index.find(filter), None);
        assert_eq!(index.destinations(id), []);
        assert_eq!(index.remove_by_id(id, 2), None);
        assert_eq!((index.filter_count(), index.destination_count()), (0, 0));
    }
}

#[test]
fn generation_changes_with_the_set_of_filters_only() {
    for filter in ["a/b", "a/+"] {
        let mut index = Index::new();
        let empty = index.generation();
        index.insert(filter, session(1));
        let one = index.generation();
        assert_ne!(one, empty);
        index.insert(filter, session(1));
        index.insert(filter, session(2));
        index.remove(filter, 1);
        index.remove(filter, 9);
        index.remove("other", 1);
        assert_eq!(index.generation(), one);
        index.remove(filter, 2);
        assert_ne!(index.generation(), one);
        assert_ne!(index.generation(), empty);
    }
}

#[test]
fn has_wildcards_is_true_while_there_are_some() {
    let mut index = index(&["a/b", "a/#"]);
    assert!(index.has_wildcards());
    index.remove("a/#", 1);
    assert!(!index.has_wildcards());
}

#[test]
fn every_filter_of_a_full_tree_matches() {
    // All 2^10 filters of `a` and `+` in ten levels: the trie is a full binary tree.
    let filters: Vec<_> = (0..1 << 10)
        .map(|bits| {
            let levels: Vec<_> = (0..10)
                .map(|level| if bits >> level & 1 == 0 { "a" } else { "+" })
                .collect();
            levels.join("/")
        })
        .collect();
    let filters: Vec<_> = filters.iter().map(String::as_str).collect();
    check(&filters, &["a"; 10].join("/"), &filters);
    check(&filters, &["a"; 11].join("/"), &[]);
}

#[test]
fn deepest_possible_topics_and_filters_are_matched() {
    // A topic of the greatest length has at most 65,535 levels.
    let topic = "/".repeat(65_534);
    let deep = ["+"].repeat(32_768).join("/");
    let deeper = format!("{}#", "/".repeat(65_534));
    let beside = format!("{}+/x", "/".repeat(40_000));
    check(
        &[&deep, &deeper, &beside, "/#", "#", "+/+"],
        &topic,
        &[&deeper, "/#", "#"],
    );
    check(&[&deep], &"/".repeat(32_767), &[&deep]);
}

#[test]
fn branches_beyond_the_cached_levels_are_matched() {
    let lead = "level/".repeat(20);
    let filters: Vec<_> = [
        "+/b/c/#", "a/+/c/#", "a/b/+/#", "+/+/+/d", "a/b/c/d", "+/x/+/d",
    ]
    .iter()
    .map(|tail| format!("{lead}{tail}"))
    .collect();
    let filters: Vec<_> = filters.iter().map(String::as_str).collect();
    check(&filters, &format!("{lead}a/b/c/d"), &filters[..5]);
}

/// A walk with more cached levels can take over at any level. It must know the level where it
/// started when it returns to it.
#[test]
fn walks_continue_after_returning_to_their_start_level() {
    for begin in 8..300 {
        let lead = "a/".repeat(begin);
        let halves = ["a/".repeat(begin / 2), lead.clone()];
        let mut filters = halves.map(|half| half + "+/elsewhere/b").to_vec();
        filters.push(format!("{lead}a/+/b/b"));
        filters.push(format!("{lead}a/+/c/b"));
        filters.push(format!("{lead}+/a/a/#"));
        let filters: Vec<_> = filters.iter().map(String::as_str).collect();
        check(&filters, &format!("{lead}a/a/a"), &filters[4..]);
    }
}

/// The visits of a match determine the delay of its publisher.
#[test]
fn visits_of_a_match_count_levels_independently_of_node_splits() {
    let deep = format!("{}/+", ["a"; 40].join("/"));
    let topic = ["a"; 41].join("/");
    let mut index = index(&[&deep]);
    let visits = |index: &Index<_>, topic: &str| index.matches(topic, &mut Vec::new());
    assert_eq!(visits(&index, &topic), 40);
    assert_eq!(visits(&index, "a/a/a/b"), 2);
    for number in 1..40 {
        let beside = format!("{}/b/+", ["a"; 40][..number].join("/"));
        index.insert(&beside, session(1));
        assert_eq!(visits(&index, &topic), 40);
    }
}

#[test]
fn memory_is_freed_when_the_filters_are_removed() {
    let mut index = Index::new();
    let empty = index.memory_bytes();
    let filters: Vec<_> = (0..10_000)
        .flat_map(|number| {
            [
                format!("site/{number}/state"),
                format!("site/{number}/+/state"),
            ]
        })
        .collect();
    for filter in &filters {
        for key in 0..3 {
            index.insert(filter, session(key));
        }
    }
    let full = index.memory_bytes();
    assert!(full > filters.len() * 3 * size_of::<Subscriber>());
    for filter in &filters {
        for key in 0..3 {
            assert!(index.remove(filter, key).is_some());
        }
    }
    assert!(
        index.memory_bytes() <= empty + 1024,
        "{} of {full}",
        index.memory_bytes()
    );
}

#[test]
fn a_filter_costs_at_most_120_bytes() {
    let filters = 100_000;
    let mut index = Index::new();
    for number in 0..filters {
        let site = number % 100;
        let filter = match number % 4 {
            0 => format!("site/{site}/device/{number}/#"),
            2 => format!("site/+/device/{number}"),
            _ => format!("site/{site}/device/{number}"),
        };
        index.insert(&filter, session(1));
    }
    assert_eq!(index.filter_count(), filters);
    assert!(
        index.memory_bytes() <= 120 * filters,
        "{} bytes",
        index.memory_bytes()
    );
}

#[test]
fn memory_of_removed_filters_is_reused() {
    let mut index = index(&["stays/+", "stays"]);
    let churn = |index: &mut Index<Subscriber>, round: u32| {
        let filters: Vec<_> = (0..1_000)
            .flat_map(|number| {
                [
                    format!("{round}/{round}-{number}/+"),
                    format!("{round}/{number}"),
                ]
            })
            .collect();
        for filter in &filters {
            index.insert(filter, session(1));
        }
        let full = index.memory_bytes();
        for filter in &filters {
            index.remove(filter, 1);
        }
        full
    };
    let first = churn(&mut index, 0);
    for round in 1..5 {
        assert_eq!(churn(&mut index, round), first);
    }
}

#[derive(Clone, Debug)]
enum Change {
    Insert(usize, Subscriber),
    Remove(usize, u32),
}

/// Enough sessions for the destinations of a filter to exceed the scanned list.
fn change() -> impl Strategy<Value = Change> {
    let subscriber =
        (0..60_u32, any::<u8>()).prop_map(|(session, options)| Subscriber { session, options });
    prop_oneof![
        3 => (any::<usize>(), subscriber).prop_map(|(filter, new)| Change::Insert(filter, new)),
        2 => (any::<usize>(), 0..60_u32).prop_map(|(filter, key)| Change::Remove(filter, key)),
    ]
}

type Plain = BTreeMap<String, BTreeMap<u32, Subscriber>>;

fn apply(index: &mut Index<Subscriber>, plain: &mut Plain, filters: &[String], change: &Change) {
    let filters_before: BTreeSet<_> = plain.keys().cloned().collect();
    let generation = index.generation();
    match *change {
        Change::Insert(filter, new) => {
            let filter = &filters[filter % filters.len()];
            let known = plain.entry(filter.clone()).or_default();
            let inserted = index.insert(filter, new);
            assert_eq!(inserted.first, known.is_empty());
            assert_eq!(inserted.replaced, known.insert(new.session, new));
        }
        Change::Remove(filter, key) => {
            let filter = &filters[filter % filters.len()];
            let known = plain.entry(filter.clone()).or_default();
            let removed = index.remove(filter, key);
            assert_eq!(
                removed.map(|removed| removed.destination),
                known.remove(&key)
            );
            assert_eq!(removed.is_some_and(|removed| removed.last), {
                removed.is_some() && known.is_empty()
            });
            if known.is_empty() {
                plain.remove(filter);
            }
        }
    }
    let same_filters = filters_before.iter().eq(plain.keys());
    assert_eq!(index.generation() == generation, same_filters);
}

fn compare_all(index: &Index<Subscriber>, plain: &Plain, topics: &[String]) {
    for topic in topics {
        compare(index, plain, topic);
    }
}

fn compare(index: &Index<Subscriber>, plain: &Plain, topic: &str) {
    let mut ids = Vec::new();
    index.matches(topic, &mut ids);
    let found: BTreeMap<_, _> = ids
        .iter()
        .map(|&id| {
            let mut destinations = index.destinations(id).to_vec();
            destinations.sort();
            (text(index, id), destinations)
        })
        .collect();
    assert_eq!(found.len(), ids.len(), "a filter was found twice");
    let expected: BTreeMap<_, _> = plain
        .iter()
        .filter(|(filter, _)| oracle::matches(filter, topic))
        .map(|(filter, known)| (filter.clone(), known.values().copied().collect::<Vec<_>>()))
        .collect();
    assert_eq!(found, expected, "{topic}");
}

proptest! {
    #[test]
    fn index_equals_a_plain_list(
        filters in vec(oracle::filter(), 1..8),
        topics in vec(oracle::topic(), 1..12),
        changes in vec(change(), 1..500),
    ) {
        let mut index = Index::with_seed(7);
        let mut plain = Plain::new();
        for (number, change) in changes.iter().enumerate() {
            apply(&mut index, &mut plain, &filters, change);
            if number % 50 == 0 {
                compare_all(&index, &plain, &topics);
            }
        }
        compare_all(&index, &plain, &topics);
        prop_assert_eq!(index.filter_count(), plain.len());
        prop_assert_eq!(index.destination_count(), plain.values().map(BTreeMap::len).sum());
        for (filter, known) in &plain {
            let id = index.find(filter).expect("the plain list has it");
            for (key, subscriber) in known {
                prop_assert_eq!(index.destination(id, *key), Some(subscriber));
                prop_assert!(index.remove_by_id(id, *key).is_some());
            }
        }
        prop_assert_eq!((index.filter_count(), index.destination_count()), (0, 0));
    }

    #[test]
    fn changing_deep_filters_equal_a_plain_list(
        (filters, topics) in deep::filters_and_topics(),
        changes in vec((any::<usize>(), weighted(0.7)), 1..50),
    ) {
        let mut index = Index::with_seed(7);
        let empty = index.memory_bytes();
        let mut plain = Plain::new();
        // The lists are compared once, not after each change.
        let fitting = |topic: &String| -> BTreeSet<_> {
            filters.iter().filter(|filter| oracle::matches(filter, topic)).collect()
        };
        let fitting: Vec<_> = topics.iter().map(fitting).collect();
        for (filter, comes) in changes {
            let change = if comes {
                Change::Insert(filter, session(1))
            } else {
                Change::Remove(filter, 1)
            };
            apply(&mut index, &mut plain, &filters, &change);
            for (topic, fitting) in topics.iter().zip(&fitting) {
                let expected = fitting.iter().filter(|filter| plain.contains_key(**filter));
                prop_assert!(matched(&index, topic).iter().eq(expected.copied()), "{}", topic);
            }
            let filter = &filters[filter % filters.len()];
            let found = index.find(filter).map(|id| text(&index, id));
            prop_assert_eq!(found, plain.contains_key(filter).then(|| filter.clone()));
        }
        for filter in &filters {
            let removed = index.remove(filter, 1).is_some();
            prop_assert_eq!(removed, plain.remove(filter).is_some());
        }
        prop_assert_eq!(index.memory_bytes(), empty);
    }

    #[test]
    fn many_filters_equal_a_plain_list(
        filters in vec(oracle::filter(), 1..120),
        gone in vec(any::<bool>(), 120),
        topics in vec(oracle::topic(), 1..20),
    ) {
        let mut index = Index::new();
        let mut plain = Plain::new();
        for filter in 0..filters.len() {
            apply(&mut index, &mut plain, &filters, &Change::Insert(filter, session(1)));
        }
        compare_all(&index, &plain, &topics);
        for filter in (0..filters.len()).filter(|&filter| gone[filter]) {
            apply(&mut index, &mut plain, &filters, &Change::Remove(filter, 1));
        }
        compare_all(&index, &plain, &topics);
    }
}
