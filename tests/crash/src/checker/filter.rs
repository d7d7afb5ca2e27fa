//! An independent matcher of topic filters, so that an error of the broker's matcher cannot hide
//! itself.

/// Whether a topic name matches a filter without `$share`.
pub fn matches(filter: &str, topic: &str) -> bool {
    let mut levels = topic.split('/');
    for part in filter.split('/') {
        match (part, levels.next()) {
            ("#", _) => return true,
            ("+", Some(_)) => {}
            (part, Some(level)) if part == level => {}
            _ => return false,
        }
    }
    levels.next().is_none()
}

/// Group and filter of a shared subscription.
pub(super) fn split_shared(filter: &str) -> Option<(&str, &str)> {
    filter.strip_prefix("$share/")?.split_once('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_levels() {
        for (filter, topic, expected) in [
            ("a/b", "a/b", true),
            ("a/b", "a/b/c", false),
            ("a/b/c", "a/b", false),
            ("a/+", "a/b", true),
            ("+/+", "a/b", true),
            ("+", "a/b", false),
            ("a/#", "a/b/c", true),
            ("a/#", "a", true),
            ("#", "a/b", true),
            ("a/#", "b", false),
        ] {
            assert_eq!(matches(filter, topic), expected, "{filter} {topic}");
        }
    }

    #[test]
    fn shared_filter_is_split() {
        assert_eq!(split_shared("$share/g/a/#"), Some(("g", "a/#")));
        assert_eq!(split_shared("a/#"), None);
    }
}
