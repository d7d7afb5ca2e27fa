//! A simple implementation of topic matching, as an oracle for the fast one.

use alloc::vec::Vec;

/// Whether the topic matches the filter by definition, one level at a time.
pub fn naive_matches(filter: &str, topic: &str) -> bool {
    let filter_levels: Vec<&str> = filter.split('/').collect();
    let topic_levels: Vec<&str> = topic.split('/').collect();
    let hidden = topic.starts_with('$') && matches!(filter_levels.first(), Some(&("+" | "#")));
    !hidden && fits(&filter_levels, &topic_levels)
}

fn fits(filter: &[&str], topic: &[&str]) -> bool {
    match (filter.split_first(), topic.split_first()) {
        (Some((&"#", _)), _) => true,
        (Some((&"+", filter)), Some((_, topic))) => fits(filter, topic),
        (Some((wanted, filter)), Some((found, topic))) => wanted == found && fits(filter, topic),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}
