//! Any filter and any topic: validity, share prefix and matching agree with their definitions.
//!
//! An input with an even first byte is a series of decisions that yields a valid filter and topic.
//! Other inputs are text: filter and topic, separated by the byte FF, which never occurs in UTF-8.

use thrum_codec::TopicFilter;
use thrum_codec::testing::{Choices, naive_matches};
use thrum_codec::topic::{is_valid_name, level_count, levels, matches};

use crate::{Sight, sight};

/// Checks the input's filter and topic.
///
/// # Panics
/// If one of the functions disagrees with its definition.
pub fn target(input: &[u8]) -> Sight {
    let (first, rest) = input.split_first().unwrap_or((&0, &[]));
    if first % 2 == 0 {
        let mut choices = Choices::new(rest);
        let filter = format!("{}{}", choices.share_prefix(), choices.filter());
        let topic = choices.topic();
        assert!(TopicFilter::parse(&filter).is_ok(), "{filter}");
        assert!(is_valid_name(&topic), "{topic}");
        return check(&filter, &topic);
    }
    let mut parts = rest
        .splitn(2, |byte| *byte == 0xFF)
        .map(String::from_utf8_lossy);
    let filter = parts.next().unwrap_or_default();
    let topic = parts.next().unwrap_or_default();
    check(&filter, &topic)
}

fn check(filter: &str, topic: &str) -> Sight {
    assert_eq!(level_count(filter), levels(filter).count());
    assert_eq!(
        is_valid_name(topic),
        !topic.is_empty() && !topic.contains(['+', '#', '\0'])
    );
    let Ok(parsed) = TopicFilter::parse(filter) else {
        assert!(!is_valid_filter(filter), "refused: {filter:?}");
        // For an unchecked filter the result may be wrong, but the function must not panic.
        matches(filter, topic);
        return sight(&levels(filter).count());
    };
    assert!(is_valid_filter(filter), "accepted: {filter:?}");
    assert_eq!(parsed.as_str(), filter);
    if let Some(shared) = parsed.shared() {
        let whole = if filter.starts_with("$queue/") {
            format!("$queue/{}", shared.filter)
        } else {
            format!("$share/{}/{}", shared.group, shared.filter)
        };
        assert_eq!(whole, filter);
    }
    let part = parsed.matched_part();
    assert_eq!(parsed.has_wildcard(), part.contains(['+', '#']));
    let fits = matches(part, topic);
    assert_eq!(fits, naive_matches(part, topic), "{part:?} {topic:?}");
    sight(&(
        fits,
        parsed.shared().is_some(),
        parsed.has_wildcard(),
        level_count(part),
    ))
}

/// The rules of sections 4.7 and 4.8.2, word by word.
fn is_valid_filter(filter: &str) -> bool {
    let plain = match filter.strip_prefix("$share/") {
        Some(shared) => match shared.split_once('/') {
            Some((group, plain)) if !group.is_empty() && !group.contains(['+', '#', '\0']) => plain,
            _ => return false,
        },
        None => filter.strip_prefix("$queue/").unwrap_or(filter),
    };
    let levels: Vec<&str> = plain.split('/').collect();
    !plain.is_empty()
        && !plain.contains('\0')
        && filter.len() <= 65_535
        && levels
            .iter()
            .all(|level| level.len() < 2 || !level.contains(['+', '#']))
        && levels
            .iter()
            .position(|level| *level == "#")
            .is_none_or(|at| at + 1 == levels.len())
}
