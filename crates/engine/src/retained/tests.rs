//! Limits, replays in pages, and the sweep.

use thrum_access::{Identity, Rules};
use thrum_codec::QoS;
use thrum_protocol::Publication;

use super::*;
use crate::access::{Access, Policy, Shared};

const LIMITS: RetainedLimits = RetainedLimits {
    message_count: 10_000,
    bytes: 100_000_000,
    payload_bytes: 100,
};

/// The time of all publications.
const NOW: Time = Time::from_millis(5);

fn message(topic: &str, payload: &[u8], expires_at: Option<u64>) -> Arc<Message> {
    Arc::new(Message::new(&Publication {
        retain: true,
        expires_at: expires_at.map(Time::from_millis),
        ..Publication::new(topic, payload, QoS::AtMostOnce)
    }))
}

fn replay(store: &RetainedStore, filter: &str, visits: usize) -> (Vec<String>, usize) {
    let (mut found, mut cursor, mut calls) = (Vec::new(), None, 0);
    loop {
        let mut allowance = Allowance {
            messages: 64,
            visits,
        };
        cursor = store.page(filter, cursor, &mut allowance, &mut found);
        calls += 1;
        if cursor.is_none() {
            break;
        }
    }
    let mut topics: Vec<_> = found.iter().map(|found| found.topic().to_owned()).collect();
    topics.sort();
    (topics, calls)
}

#[test]
fn every_shard_is_replayed_whatever_the_visits() {
    for workers in [1, 8] {
        let store = RetainedStore::new(LIMITS, workers);
        let mut topics: Vec<_> = (0..500).map(|number| format!("a/{number}/b")).collect();
        for topic in &topics {
            assert!(store.store(&message(topic, b"x", None), None, NOW).kept);
        }
        topics.sort();
        for visits in [1, 7, 100_000] {
            assert_eq!(replay(&store, "a/+/b", visits).0, topics);
        }
        assert_eq!(replay(&store, "a/7/b", 1), (vec!["a/7/b".to_owned()], 1));
        assert_eq!(replay(&store, "a/7", 1), (Vec::new(), 1));
    }
}

#[test]
fn a_filter_that_matches_nothing_takes_no_more_visits_than_it_is_given() {
    let store = RetainedStore::new(LIMITS, 1);
    for number in 0..5_000 {
        assert!(
            store
                .store(&message(&format!("{number}/x"), b"x", None), None, NOW)
                .kept
        );
    }
    let (found, calls) = replay(&store, "+/nothing", 100);
    assert!(found.is_empty());
    // The level does not exist, so no branch is visited.
    assert_eq!(calls, 1);
    assert!(store.store(&message("y", b"x", None), None, NOW).kept);
    assert!(replay(&store, "+/y", 100).1 >= 50);
}

#[test]
fn limits_count_what_all_shards_hold() {
    // A topic of one level, without its payload.
    let topic_bytes = {
        let store = RetainedStore::new(LIMITS, 1);
        assert!(store.store(&message("a", b"1", None), None, NOW).kept);
        store.size().1 - 1
    };
    let limits = RetainedLimits {
        message_count: 3,
        bytes: 3 * topic_bytes + 37,
        payload_bytes: 20,
    };
    let store = RetainedStore::new(limits, 4);
    for topic in ["a", "b", "c"] {
        assert!(store.store(&message(topic, b"123", None), None, NOW).kept);
    }
    assert!(!store.store(&message("d", b"1", None), None, NOW).kept);
    assert_eq!(store.size(), (3, 3 * topic_bytes + 9));
    assert!(store.store(&message("a", b"", None), None, NOW).kept);
    assert!(store.store(&message("d", &[0; 20], None), None, NOW).kept);
    assert!(!store.store(&message("b", &[0; 20], None), None, NOW).kept);
    assert!(!store.store(&message("b", &[0; 21], None), None, NOW).kept);
    assert!(store.store(&message("b", b"1", None), None, NOW).kept);
    assert_eq!(store.size(), (3, 3 * topic_bytes + 1 + 20 + 3));
    assert_eq!(replay(&store, "#", 100).0, ["b", "c", "d"]);
    store.set_limits(RetainedLimits {
        message_count: 4,
        bytes: limits.bytes + topic_bytes,
        ..limits
    });
    assert!(store.store(&message("e", b"1", None), None, NOW).kept);
}

#[test]
fn deep_topics_count_with_their_levels() {
    let limits = RetainedLimits {
        bytes: 1_000_000,
        ..LIMITS
    };
    let store = RetainedStore::new(limits, 1);
    let topic = |number: usize| format!("{number}{}", "/x".repeat(127));
    let kept = |number: &usize| {
        store
            .store(&message(&topic(*number), b"x", None), None, NOW)
            .kept
    };
    let count = (0..1000).take_while(kept).count();
    assert!((10..100).contains(&count), "{count} topics of 128 levels");
    assert!(store.size().1 <= limits.bytes);
    // A topic below existing levels counts its own levels only.
    let beside = format!("{}/y", topic(0));
    assert!(store.store(&message(&beside, b"x", None), None, NOW).kept);
    for topic in (0..count).map(topic).chain([beside]) {
        assert!(store.remove(&topic).is_some());
    }
    assert_eq!(store.size(), (0, 0));
}

#[test]
fn topics_of_the_node_keep_to_no_limit_and_do_not_count() {
    let limits = RetainedLimits {
        message_count: 1,
        ..LIMITS
    };
    let store = RetainedStore::new(limits, 2);
    assert!(store.store(&message("a", b"x", None), None, NOW).kept);
    let size = store.size();
    for number in 0..100 {
        let topic = format!("$SYS/broker/{number}");
        assert!(
            store
                .store(&message(&topic, &[b'x'; 200], None), None, NOW)
                .kept
        );
    }
    assert!(!store.store(&message("b", b"x", None), None, NOW).kept);
    assert_eq!(store.size(), size);
}

#[test]
fn sweeps_remove_what_expired_and_nothing_else() {
    for workers in [1, 2] {
        let store = RetainedStore::new(LIMITS, workers);
        for number in 0..9_000_u64 {
            let expires_at = (number % 3 == 0).then_some(1_000 + number % 2);
            let root = if number % 5 == 0 { "$a" } else { "a" };
            assert!(
                store
                    .store(
                        &message(&format!("{root}/{number}"), b"x", expires_at),
                        None,
                        NOW
                    )
                    .kept
            );
        }
        let swept_at = |millis| {
            // The topics have two roots, each with several pages.
            for _ in 0..4 {
                store.sweep(Time::from_millis(millis), &mut Vec::new());
            }
            store.size().0
        };
        assert_eq!(swept_at(999), 9_000);
        assert_eq!(swept_at(1_000), 7_500);
        assert_eq!(swept_at(1_001), 6_000);
        // A message with an expiry is replaced by one without.
        assert!(
            store
                .store(&message("a/1", b"x", Some(1_002)), None, NOW)
                .kept
        );
        assert!(store.store(&message("a/1", b"x", None), None, NOW).kept);
        assert_eq!(swept_at(2_000), 6_000);
    }
}

fn source(client_id: &str) -> Arc<RetainedSource> {
    let identity = Identity {
        client_id: client_id.into(),
        ..Identity::default()
    };
    RetainedSource::new(&identity, None, false).unwrap()
}

/// Access settings that check the sources of retained messages.
fn shared(rules: &str) -> Shared {
    let policy = Policy {
        rules: Arc::new(Rules::parse(rules, "test").unwrap()),
        checks_retained_source: true,
        ..Policy::default()
    };
    let access = Access {
        gatekeeper: None,
        policy,
    };
    Shared {
        access,
        generation: 1,
    }
}

/// Does one step of a review without a gatekeeper.
fn step(review: &mut SourceReview, store: &RetainedStore, shared: &Shared) -> ReviewStep {
    review.step(store, shared, |_, identity| {
        panic!("{identity:?} is nobody's user")
    })
}

fn reviewed(store: &RetainedStore, shared: &Shared) {
    let mut review = SourceReview::new();
    while step(&mut review, store, shared) != ReviewStep::Done {}
}

#[test]
fn the_memory_of_a_source_counts_once_and_as_long_as_a_message_names_it() {
    let store = RetainedStore::new(LIMITS, 2);
    let bytes_of = |topics: &[&str]| {
        let other = RetainedStore::new(LIMITS, 1);
        for topic in topics {
            assert!(other.store(&message(topic, b"x", None), None, NOW).kept);
        }
        other.size().1
    };
    let one = source("one");
    for topic in ["a", "b"] {
        let stored = store.store(&message(topic, b"x", None), Some(Arc::clone(&one)), NOW);
        assert!(stored.kept);
    }
    let source_bytes = store.size().1 - bytes_of(&["a", "b"]);
    assert!((100..200).contains(&source_bytes), "{source_bytes}");
    assert!(store.store(&message("a", b"x", None), None, NOW).kept);
    assert_eq!(store.size().1, bytes_of(&["a", "b"]) + source_bytes);
    assert!(store.remove("b").is_some());
    assert_eq!(store.size().1, bytes_of(&["a"]));
}

#[test]
fn messages_are_withheld_while_their_publisher_may_not_publish_them() {
    for workers in [1, 4] {
        let store = RetainedStore::new(LIMITS, workers);
        let mut topics = Vec::new();
        for number in 0..1_000 {
            let topic = format!("{}/{number}", if number % 3 == 0 { "a" } else { "b" });
            let from = (number % 2 == 0).then(|| source("one"));
            assert!(store.store(&message(&topic, b"x", None), from, NOW).kept);
            topics.push(topic);
        }
        let size = store.size();
        let is_withheld = |number: usize| number.is_multiple_of(6);
        reviewed(&store, &shared("deny client:one pub a/#"));
        let shown = topics.iter().enumerate();
        let shown = shown.filter(|(number, _)| !is_withheld(*number));
        let mut shown: Vec<_> = shown.map(|(_, topic)| topic.clone()).collect();
        shown.sort();
        assert_eq!(replay(&store, "#", 64).0, shown);
        assert_eq!(replay(&store, "a/6", 64).0, Vec::<String>::new());
        assert_eq!(store.withheld(), 167);
        assert_eq!(store.size().0, 1_000, "they are there");
        reviewed(&store, &shared("allow all pub #"));
        assert_eq!(replay(&store, "#", 64).0.len(), 1_000);
        assert_eq!(store.withheld(), 0);
        for topic in &topics {
            assert!(store.remove(topic).is_some());
        }
        assert_eq!(store.size(), (0, 0));
        assert!(size.1 > 0);
    }
}

#[test]
fn a_message_that_replaces_another_during_a_review_is_shown() {
    let store = RetainedStore::new(LIMITS, 1);
    let denied = shared("deny all pub a");
    let old = message("a", b"old", None);
    assert!(store.store(&old, Some(source("one")), NOW).kept);
    let mut review = SourceReview::new();
    // The first step reads the page, the second looks its source up.
    step(&mut review, &store, &denied);
    step(&mut review, &store, &denied);
    assert!(
        store
            .store(&message("a", b"new", None), Some(source("two")), NOW)
            .kept
    );
    while step(&mut review, &store, &denied) != ReviewStep::Done {}
    assert_eq!((replay(&store, "a", 1).0.len(), store.withheld()), (1, 0));
    // The next review finds the message, as it was published under the old rules.
    reviewed(&store, &denied);
    assert_eq!((replay(&store, "a", 1).0.len(), store.withheld()), (0, 1));
    assert!(store.store(&message("a", b"newer", None), None, NOW).kept);
    assert_eq!((replay(&store, "a", 1).0.len(), store.withheld()), (1, 0));
}
