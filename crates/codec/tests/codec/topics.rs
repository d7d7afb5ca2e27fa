//! Topic names, topic filters and matching.

use thrum_codec::topic::{TopicError, is_valid_name, level_count, levels, matches};
use thrum_codec::{FIELD_BYTES_MAX, SharedFilter, TopicFilter};

const FIT: [(&str, &str); 31] = [
    ("a", "a"),
    ("a/b", "a/b"),
    ("/", "/"),
    ("/a", "/a"),
    ("a/", "a/"),
    ("a//b", "a//b"),
    ("+", "a"),
    ("+", " "),
    ("+/+", "/a"),
    ("/+", "/a"),
    ("+/", "a/"),
    ("a/+", "a/"),
    ("a/+/c", "a//c"),
    ("+/b/+", "a/b/c"),
    ("#", "a"),
    ("#", "a/b/c"),
    ("#", "/"),
    ("/#", "/"),
    ("/#", "/a/b"),
    ("a/#", "a"),
    ("a/#", "a/"),
    ("a/#", "a/b/c"),
    ("a/+/#", "a/b"),
    ("+/#", "a"),
    ("+/#", "a/b/c"),
    ("$SYS/#", "$SYS"),
    ("$SYS/+/clients", "$SYS/broker/clients"),
    ("a/#", "a/$SYS"),
    ("a/+", "a/$b"),
    (
        "sport/tennis/player1/#",
        "sport/tennis/player1/score/wimbledon",
    ),
    ("ü/€/😀", "ü/€/😀"),
];

const DO_NOT_FIT: [(&str, &str); 30] = [
    ("a", "b"),
    ("a", "A"),
    ("a", "a/"),
    ("a", "/a"),
    ("a", "aa"),
    ("aa", "a"),
    ("a/b", "a"),
    ("a/b", "a/b/c"),
    ("a/b", "ab"),
    ("a//b", "a/b"),
    ("+", "a/b"),
    ("+", "/a"),
    ("+", "a/"),
    ("/+", "a"),
    ("+/+", "a"),
    ("a/+", "a"),
    ("a/+", "a/b/c"),
    ("a/+/c", "a/c"),
    ("a/#", "b"),
    ("a/#", "aa/b"),
    ("a/#", "/a"),
    ("a/+/#", "a"),
    ("a/b/#", "a"),
    ("sport/+", "sport"),
    // They look the same: composed and decomposed.
    ("\u{E9}", "e\u{301}"),
    ("a ", "a"),
    ("\u{FEFF}a", "a"),
    ("$SYS/#", "$sys/a"),
    ("$SYS", "SYS"),
    ("$SYS/+", "$SYS"),
];

/// [MQTT-4.7.3-4] [MQTT3-4.7.3-4]
#[test]
fn filters_match_level_by_level() {
    for (filter, topic) in FIT {
        assert!(
            TopicFilter::parse(filter).is_ok() && is_valid_name(topic),
            "{filter} {topic}"
        );
        assert!(matches(filter, topic), "{filter} matches {topic}");
    }
    for (filter, topic) in DO_NOT_FIT {
        assert!(
            TopicFilter::parse(filter).is_ok() && is_valid_name(topic),
            "{filter} {topic}"
        );
        assert!(!matches(filter, topic), "{filter} does not match {topic}");
    }
}

/// [MQTT-4.7.2-1] [MQTT3-4.7.2-1]
#[test]
fn wildcards_in_front_do_not_match_topics_that_begin_with_a_dollar() {
    for filter in ["#", "+", "+/#", "+/a", "+/+", "+/a/#"] {
        for topic in ["$SYS", "$SYS/a", "$", "$/a", "$a/a"] {
            assert!(!matches(filter, topic), "{filter} {topic}");
        }
    }
    assert!(matches("$SYS/a", "$SYS/a"));
    assert!(matches("+/a", "a$/a"));
}

/// [MQTT-4.7.0-1] [MQTT-4.7.3-1] [MQTT-4.7.3-2] [MQTT-4.7.3-3]
/// [MQTT3-4.7.1-1] [MQTT3-4.7.3-1] [MQTT3-4.7.3-2] [MQTT3-4.7.3-3]
#[test]
fn topic_names_have_text_and_no_wildcards() {
    for name in ["a", "/", " ", "$SYS/a", "a//b", "\u{FEFF}", "$share/g/a"] {
        assert!(is_valid_name(name), "{name}");
    }
    for name in ["", "#", "+", "a/#", "a+b", "\0", "a\0b"] {
        assert!(!is_valid_name(name), "{name:?}");
    }
    assert!(is_valid_name(&"a".repeat(FIELD_BYTES_MAX)));
    assert!(!is_valid_name(&"a".repeat(FIELD_BYTES_MAX + 1)));
    assert!(
        !is_valid_name(&"ü".repeat(FIELD_BYTES_MAX / 2 + 1)),
        "bytes count, not characters"
    );
}

/// [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.3-1] [MQTT-4.7.3-2] [MQTT-4.7.3-3]
/// [MQTT3-4.7.1-2] [MQTT3-4.7.1-3] [MQTT3-4.7.3-1] [MQTT3-4.7.3-2] [MQTT3-4.7.3-3]
#[test]
fn filters_have_wildcards_as_whole_levels() {
    for text in [
        "a", "/", "#", "+", "/#", "+/+/#", "a/+/b", "//", "$SYS/#", "a b", "$share", "$queue",
    ] {
        let filter = TopicFilter::parse(text).expect(text);
        assert_eq!(filter.as_str(), text);
        assert_eq!(filter.matched_part(), text);
        assert_eq!(filter.shared(), None);
        assert_eq!(filter.has_wildcard(), text.contains(['+', '#']));
    }
    for text in [
        "", "a#", "#a", "#/a", "a/#/", "##", "a+", "+a", "++", "a/+b/c", "\0", "a/\0", "+\0",
    ] {
        assert_eq!(TopicFilter::parse(text), Err(TopicError), "{text:?}");
    }
    assert!(TopicFilter::parse(&"a".repeat(FIELD_BYTES_MAX)).is_ok());
    assert!(TopicFilter::parse(&"a".repeat(FIELD_BYTES_MAX + 1)).is_err());
}

/// [MQTT-4.8.2-1] [MQTT-4.8.2-2]
#[test]
fn shared_filters_have_a_group_and_a_filter() {
    for (text, group, filter) in [
        ("$share/g/a", "g", "a"),
        ("$share/g/a/+/#", "g", "a/+/#"),
        ("$share/g//", "g", "/"),
        ("$share/g//a", "g", "/a"),
        ("$share/ /#", " ", "#"),
        ("$share/$share/$SYS/a", "$share", "$SYS/a"),
        ("$share/ü/$share/x", "ü", "$share/x"),
        ("$queue/a/#", "$queue", "a/#"),
        ("$queue//", "$queue", "/"),
    ] {
        let parsed = TopicFilter::parse(text).expect(text);
        assert_eq!(
            parsed.shared(),
            Some(SharedFilter { group, filter }),
            "{text}"
        );
        assert_eq!(parsed.matched_part(), filter);
        assert_eq!(parsed.as_str(), text);
        assert_eq!(parsed.has_wildcard(), filter.contains(['+', '#']));
    }
    for text in [
        "$share/",
        "$share//",
        "$share//a",
        "$share/g",
        "$share/g/",
        "$share/+/a",
        "$share/#/a",
        "$share/a+/a",
        "$share/a#/a",
        "$share/\0/a",
        "$share/#",
        "$share/+",
        "$share/g/a#",
        "$share/g/#/a",
        "$queue/",
        "$queue/a#",
    ] {
        assert_eq!(TopicFilter::parse(text), Err(TopicError), "{text:?}");
    }
    // A prefix that differs slightly makes an ordinary filter.
    for text in [
        "$Share/g/a",
        "$shared/g/a",
        "share/g/a",
        "/$share/g/a",
        "$queues/a",
    ] {
        assert_eq!(TopicFilter::parse(text).expect(text).shared(), None);
    }
}

#[test]
fn empty_levels_count() {
    for (text, expected) in [
        ("a", 1),
        ("/", 2),
        ("a/b", 2),
        ("/a", 2),
        ("a/", 2),
        ("a//b", 3),
        ("", 1),
    ] {
        assert_eq!(level_count(text), expected, "{text}");
        assert_eq!(levels(text).count(), expected, "{text}");
    }
    assert_eq!(levels("/a//b/").collect::<Vec<_>>(), ["", "a", "", "b", ""]);
}
