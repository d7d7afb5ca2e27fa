//! Simple and slow implementations of the rules, as an oracle, and topics and filters to test with.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Few and similar levels, so that filters often match topics; one is too long to be stored inline.
const LEVELS: [&str; 7] = [
    "",
    "a",
    "b",
    "ab",
    "$SYS",
    "$a",
    "a level of more than twenty-two bytes",
];

/// Matches level by level, as section 4.7 specifies.
pub(crate) fn matches(filter: &str, topic: &str) -> bool {
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let filter: Vec<_> = filter.split('/').collect();
    let topic: Vec<_> = topic.split('/').collect();
    levels_match(&filter, &topic)
}

fn levels_match(filter: &[&str], topic: &[&str]) -> bool {
    match (filter, topic) {
        (["#"], _) => true,
        ([], []) => true,
        (["+", filter @ ..], [_, topic @ ..]) => levels_match(filter, topic),
        ([wanted, filter @ ..], [level, topic @ ..]) => {
            wanted == level && levels_match(filter, topic)
        }
        _ => false,
    }
}

/// A topic name.
pub(crate) fn topic() -> impl Strategy<Value = String> {
    vec(select(&LEVELS[..]), 1..5)
        .prop_map(|levels| levels.join("/"))
        .prop_filter("a topic has at least one character", |topic| {
            !topic.is_empty()
        })
}

/// A topic filter, with wildcards more often than not.
pub(crate) fn filter() -> impl Strategy<Value = String> {
    let level = prop_oneof![3 => select(&LEVELS[..]), 1 => Just("+")];
    (vec(level, 0..5), any::<bool>())
        .prop_map(|(mut levels, multi_level)| {
            if multi_level {
                levels.push("#");
            }
            levels.join("/")
        })
        .prop_filter("a filter has at least one character", |filter| {
            !filter.is_empty()
        })
}
