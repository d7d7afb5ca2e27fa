//! Limits, replays in pages, and the sweep.

use thrum_codec::QoS;
use thrum_codec::properties::PublishProperties;
use thrum_protocol::Publication;

use super::*;

const LIMITS: RetainedLimits = RetainedLimits {
    message_count: 10_000,
    bytes: 1_000_000,
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
    let limits = RetainedLimits {
        message_count: 3,
        bytes: 40,
        payload_bytes: 20,
    };
    let store = RetainedStore::new(limits, 4);
    for topic in ["a", "b", "c"] {
        assert!(store.store(&message(topic, b"123", None)).kept);
    }
    assert!(!store.store(&message("d", b"1", None)).kept);
    assert_eq!(store.size(), (3, 12));
    assert!(store.store(&message("a", b"", None)).kept);
    assert!(store.store(&message("d", &[0; 20], None)).kept);
    assert!(!store.store(&message("b", &[0; 20], None)).kept);
    assert!(!store.store(&message("b", &[0; 21], None)).kept);
    assert!(store.store(&message("b", b"1", None)).kept);
    assert_eq!(store.size(), (3, 4 + 21 + 2));
    assert_eq!(replay(&store, "#", 100).0, ["b", "c", "d"]);
    store.set_limits(RetainedLimits {
        message_count: 4,
        ..limits
    });
    assert!(store.store(&message("e", b"1", None)).kept);
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
