//! Anchors against examples and against a simple implementation of matching.

mod oracle;

use proptest::prelude::*;
use thrum_routing::Anchors;

fn is_anchored(anchors: &Anchors, filter: &str, topic: &str) -> bool {
    let wanted = anchors.of_filter(filter);
    let mut found = false;
    anchors.of_topic(topic, |anchor| found |= anchor == wanted);
    found
}

#[test]
fn filters_with_different_prefixes_have_different_anchors() {
    let anchors = Anchors::new();
    let topic = "site/5/device/77/temperature";
    for filter in [
        "site/5/device/77/+",
        "site/5/device/77/temperature",
        "site/5/device/+/temperature",
        "site/5/#",
        "+/5/#",
        "#",
        // After the levels that distinguish anchors.
        "site/5/device/77/humidity/+",
    ] {
        assert!(is_anchored(&anchors, filter, topic), "{filter}");
    }
    for filter in [
        "site/5/device/78/+",
        "site/5/device/77/humidity",
        "site/6/#",
        "site/5/device/77",
        "site",
    ] {
        // The shorter exact filters share a prefix with the topic, and so an anchor.
        let is_beginning = topic.starts_with(filter);
        assert_eq!(
            is_anchored(&anchors, filter, topic),
            is_beginning,
            "{filter}"
        );
    }
}

proptest! {
    #[test]
    fn the_anchor_of_a_matching_filter_is_an_anchor_of_the_topic(
        filter in oracle::filter(),
        topic in oracle::topic(),
        tail in prop_oneof![Just(""), Just("/x/y"), Just("/x/y/z/$")],
    ) {
        let anchors = Anchors::new();
        let topic = format!("{topic}{tail}");
        let exact = is_anchored(&anchors, &topic, &topic);
        prop_assert!(exact, "{} at itself", topic);
        for filter in [filter.clone(), format!("{filter}{tail}"), format!("{topic}/#")] {
            let matches = oracle::matches(&filter, &topic);
            let anchored = is_anchored(&anchors, &filter, &topic);
            prop_assert!(anchored || !matches, "{} and {}", filter, topic);
        }
    }
}
