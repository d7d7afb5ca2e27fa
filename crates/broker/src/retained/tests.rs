//! Limits, replays in pages, and the sweep.

use thrum_codec::QoS;
use thrum_codec::properties::PublishProperties;
use thrum_protocol::Publication;

use super::*;

const LIMITS: RetainedLimits = RetainedLimits {
    message_count: 10_000,
    bytes: 100_000_000,
    payload_bytes: 100,
};

fn message(topic: &str, payload: &[u8], expires_at: Option<u64>) -> Arc<Message> {
    Arc::new(Message::new(&Publication {
        topic,
        payload,
        properties: PublishProperties::default(),
        qos: QoS::AtMostOnce,
        retain: true,
        expires_at: expires_at.map(Time::from_millis),
        publisher: 0,
        publisher_hash: 0,
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
            assert!(store.store(&message(topic, b"x", None)).kept);
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
                .store(&message(&format!("{number}/x"), b"x", None))
                .kept
        );
    }
    let (found, calls) = replay(&store, "+/nothing", 100);
    assert!(found.is_empty());
    // The level is unknown, so nothing is walked.
    assert_eq!(calls, 1);
    assert!(store.store(&message("y", b"x", None)).kept);
    assert!(replay(&store, "+/y", 100).1 >= 50);
}

#[test]
fn limits_count_what_all_shards_hold() {
    // A topic of one level, without its payload.
    let topic_bytes = {
        let store = RetainedStore::new(LIMITS, 1);
        assert!(store.store(&message("a", b"1", None)).kept);
        store.size().1 - 1
    };
    let limits = RetainedLimits {
        message_count: 3,
        bytes: 3 * topic_bytes + 37,
        payload_bytes: 20,
    };
    let store = RetainedStore::new(limits, 4);
    for topic in ["a", "b", "c"] {
        assert!(store.store(&message(topic, b"123", None)).kept);
    }
    assert!(!store.store(&message("d", b"1", None)).kept);
    assert_eq!(store.size(), (3, 3 * topic_bytes + 9));
    assert!(store.store(&message("a", b"", None)).kept);
    assert!(store.store(&message("d", &[0; 20], None)).kept);
    assert!(!store.store(&message("b", &[0; 20], None)).kept);
    assert!(!store.store(&message("b", &[0; 21], None)).kept);
    assert!(store.store(&message("b", b"1", None)).kept);
    assert_eq!(store.size(), (3, 3 * topic_bytes + 1 + 20 + 3));
    assert_eq!(replay(&store, "#", 100).0, ["b", "c", "d"]);
    store.set_limits(RetainedLimits {
        message_count: 4,
        bytes: limits.bytes + topic_bytes,
        ..limits
    });
    assert!(store.store(&message("e", b"1", None)).kept);
}

#[test]
fn deep_topics_count_with_their_levels() {
    let limits = RetainedLimits {
        bytes: 1_000_000,
        ..LIMITS
    };
    let store = RetainedStore::new(limits, 1);
    let topic = |number: usize| format!("{number}{}", "/x".repeat(127));
    let kept = |number: &usize| store.store(&message(&topic(*number), b"x", None)).kept;
    let count = (0..1000).take_while(kept).count();
    assert!((10..100).contains(&count), "{count} topics of 128 levels");
    assert!(store.size().1 <= limits.bytes);
    // What is below levels that are there costs its own alone.
    let beside = format!("{}/y", topic(0));
    assert!(store.store(&message(&beside, b"x", None)).kept);
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
    assert!(store.store(&message("a", b"x", None)).kept);
    let size = store.size();
    for number in 0..100 {
        let topic = format!("$SYS/broker/{number}");
        assert!(store.store(&message(&topic, &[b'x'; 200], None)).kept);
    }
    assert!(!store.store(&message("b", b"x", None)).kept);
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
                    .store(&message(&format!("{root}/{number}"), b"x", expires_at))
                    .kept
            );
        }
        let swept_at = |millis| {
            // Two roots, each in pages.
            for _ in 0..4 {
                store.sweep(Time::from_millis(millis), &mut Vec::new());
            }
            store.size().0
        };
        assert_eq!(swept_at(999), 9_000);
        assert_eq!(swept_at(1_000), 7_500);
        assert_eq!(swept_at(1_001), 6_000);
        // Replaced by one that lasts.
        assert!(store.store(&message("a/1", b"x", Some(1_002))).kept);
        assert!(store.store(&message("a/1", b"x", None)).kept);
        assert_eq!(swept_at(2_000), 6_000);
    }
}
