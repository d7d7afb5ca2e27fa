//! Questions to a running node, and orders to it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use thrum_broker::config::QueuePolicy;
use thrum_broker::{
    Condition, Figure, Kicked, OperatorMessage, Presence, PublishOutcome, Published, Queries,
    QueryError, RetainedQuery, SessionFilter, SessionQuery, SortKey, SubscriptionQuery,
    WildcardText,
};
use thrum_codec::packet::SubscriptionOptions;
use thrum_codec::{QoS, ReasonCode, Version};

use crate::peer::{Peer, connect_packet, start, will};

/// Numbers of workers that answers are put together of.
const WORKERS: [u16; 2] = [1, 4];

fn query(limit: usize) -> SessionQuery {
    SessionQuery {
        limit,
        ..SessionQuery::default()
    }
}

fn clients(address: SocketAddr, count: usize) -> Vec<Peer> {
    let numbers = 0..count;
    numbers
        .map(|number| Peer::connect(address, &format!("c{number:02}")))
        .collect()
}

/// All pages of a query, and how many match it.
fn all_pages(queries: &Queries, mut query: SessionQuery) -> (Vec<String>, Option<u64>) {
    let mut names = Vec::new();
    loop {
        let found = queries.sessions(&query).expect("an answer");
        assert!(found.page.rows.len() <= query.limit);
        let rows = found.page.rows.into_iter();
        names.extend(rows.map(|row| row.client_id.into_string()));
        query.cursor = found.page.next;
        if query.cursor.is_none() {
            return (names, found.matching);
        }
    }
}

fn names(queries: &Queries, filter: SessionFilter) -> Vec<String> {
    let query = SessionQuery {
        filter,
        ..query(100)
    };
    all_pages(queries, query).0
}

#[test]
fn sessions_of_all_workers_are_listed_in_one_order() {
    for workers in WORKERS {
        let (broker, address) = start(workers, |_| {});
        let _clients = clients(address, 24);
        let expected: Vec<String> = (0..24).map(|number| format!("c{number:02}")).collect();
        let queries = broker.queries();
        for limit in [1, 7, 1000] {
            let (names, matching) = all_pages(&queries, query(limit));
            assert_eq!((names, matching), (expected.clone(), Some(24)));
        }
        for limit in [1, 7, 1000] {
            let unsorted = SessionQuery {
                sort: SortKey::Unsorted,
                ..query(limit)
            };
            let (mut names, matching) = all_pages(&queries, unsorted);
            names.sort();
            assert_eq!((names, matching), (expected.clone(), None));
        }
        let down = SessionQuery {
            is_descending: true,
            ..query(5)
        };
        let mut reversed = expected.clone();
        reversed.reverse();
        assert_eq!(all_pages(&queries, down).0, reversed);
        broker.stop();
        let after = queries.sessions(&query(1)).unwrap_err();
        assert_eq!(after, QueryError::Stopped);
    }
}

#[test]
fn filters_select_the_sessions_that_match_them() {
    let (broker, address) = start(4, |_| {});
    let queries = broker.queries();
    let _five = clients(address, 3);
    let mut old = Peer::open(address, Version::V311);
    assert!(old.handshake(&connect_packet(Version::V311, "old")).0 == ReasonCode::Success);
    old.subscribe("$share/g/a/+", QoS::AtMostOnce);
    let (mut away, _) = Peer::resume(address, "away");
    away.subscribe("a/+", QoS::AtLeastOnce);
    away.leave();
    let check = |filter: &str, expected: &[&str]| {
        let found = names(&queries, filter.parse().expect("a filter"));
        assert_eq!(found, expected, "{filter}");
    };
    check("client=c*1", &["c01"]);
    check("0 client!=c00", &["c01", "c02"]);
    check("state=disconnected", &["away"]);
    check("state=persistent", &["away"]);
    check(
        "state=connected state!=persistent version=5",
        &["c00", "c01", "c02"],
    );
    check("version=3.1.1", &["old"]);
    check("user=nobody", &[]);
    check("user!=*", &["away", "c00", "c01", "c02", "old"]);
    check("listener=mqtt version!=5.0", &["old"]);
    check("listener=other", &[]);
    check("subscribed=a/+", &["away"]);
    check("subscribed=$share/g/a/+", &["old"]);
    check("subscribed=a/b", &[]);
    check("subscriptions>0", &["away", "old"]);
    check("subscriptions=1 idle<1h expiry>=300", &["away"]);
    check("oldest>=0", &[]);
    check("problem=any", &[]);
    check(
        "address=127.0.0.0/8 state=connected",
        &["c00", "c01", "c02", "old"],
    );
    check("address=192.0.2.0/24", &[]);
    let subscribed = |filter: &str| {
        let condition = Condition::Subscribed(filter.to_owned());
        SessionFilter::default().and(condition)
    };
    let two = subscribed("a").and(Condition::Subscribed("b".to_owned()));
    let long = SessionFilter::default().and(Condition::User(WildcardText::new(&"u".repeat(1025))));
    for (filter, why) in [(two, "one condition about"), (long, "at most 1024 bytes")] {
        let query = SessionQuery { filter, ..query(1) };
        let refused = queries.sessions(&query).unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
    }
    let refused = queries.sessions(&SessionQuery {
        filter: subscribed("a/#/b"),
        ..query(1)
    });
    assert!(matches!(refused, Err(QueryError::Invalid(_))));
    broker.stop();
}

#[test]
fn sessions_are_sorted_by_what_waits_for_them() {
    for workers in WORKERS {
        let (broker, address) = start(workers, |_| {});
        for (name, messages) in [("few", 1), ("most", 5), ("some", 3)] {
            let (mut peer, _) = Peer::resume(address, name);
            peer.subscribe(&format!("to/{name}"), QoS::AtLeastOnce);
            peer.leave();
            let mut publisher = Peer::connect(address, "p");
            for _ in 0..messages {
                publisher.publish_acknowledged(&format!("to/{name}"), b"waits");
            }
            publisher.leave();
        }
        let queries = broker.queries();
        for figure in [Figure::QueuedMessages, Figure::QueuedBytes] {
            let query = SessionQuery {
                sort: SortKey::Figure(figure),
                is_descending: true,
                ..query(1)
            };
            assert_eq!(all_pages(&queries, query).0, ["most", "some", "few"]);
        }
        broker.stop();
    }
}

#[test]
fn one_session_is_shown_in_full_with_its_full_queue() {
    let (broker, address) = start(1, |config| {
        config.limits.client.queue = 3;
        config.limits.client.inflight = 2;
        config.limits.client.queue_policy = QueuePolicy::RejectNew;
    });
    let mut peer = Peer::open(address, Version::V5);
    let mut connect = connect_packet(Version::V5, "slow");
    connect.clean_start = false;
    connect.properties.session_expiry = Some(300);
    connect.will = Some(will("gone", b"bye"));
    assert_eq!(peer.handshake(&connect).0, ReasonCode::Success);
    peer.subscribe_with(
        "a/+",
        SubscriptionOptions {
            qos: QoS::AtLeastOnce,
            no_local: true,
            ..SubscriptionOptions::default()
        },
        Some(7),
    );
    let mut publisher = Peer::connect(address, "p");
    for number in 0..7_u8 {
        publisher.publish_acknowledged("a/b", &[number]);
    }
    // It has got two, and acknowledges none.
    peer.message();
    peer.message();
    let queries = broker.queries();
    let detail = queries
        .session("slow")
        .expect("an answer")
        .expect("it is there");
    assert_eq!(detail.row.queued.messages, 3);
    assert_eq!((detail.queue_limit.messages, detail.row.inflight), (3, 2));
    assert_eq!(detail.dropped, [("queue_full", 2)]);
    assert_eq!((detail.row.messages_sent, detail.row.expiry_secs), (2, 300));
    let subscription = &detail.subscriptions[0];
    assert_eq!(
        (&*subscription.filter, subscription.identifier),
        ("a/+", Some(7))
    );
    assert!(subscription.options.no_local && !detail.is_clean_start);
    let will = detail.will.expect("it left one");
    assert_eq!((&*will.topic, will.payload_bytes), ("gone", 3));
    let connection = detail.connection.expect("it is connected");
    assert_eq!(
        (connection.scheme, connection.keep_alive_secs),
        (Some("mqtt"), 60)
    );
    let window = "its window is full: messages wait until it acknowledges some";
    assert!(
        connection.limited.iter().any(|one| one.0 == window),
        "{connection:?}"
    );
    let tcp = connection.tcp.expect("it is TCP");
    assert!(
        tcp.bytes_received > 40 && tcp.round_trip_micros > 0,
        "{tcp:?}"
    );
    let Presence::Connected {
        since,
        peer: shown,
        listener,
    } = &detail.row.presence
    else {
        panic!("{:?}", detail.row);
    };
    assert!(*since > 1_577_836_800_000 && shown.starts_with("127.0.0.1:"));
    assert_eq!(&**listener, "mqtt");
    assert!(queries.session("nobody").expect("an answer").is_none());
    broker.stop();
}

#[test]
fn a_client_of_either_version_is_disconnected() {
    for workers in WORKERS {
        let (broker, address) = start(workers, |_| {});
        let queries = broker.queries();
        let kick = |name, session| queries.kick(name, session).expect("an answer");
        let kicked = |was_connected, session_ended| {
            Some(Kicked {
                was_connected,
                session_ended,
            })
        };
        let mut old = Peer::open(address, Version::V311);
        assert!(old.handshake(&connect_packet(Version::V311, "old")).0 == ReasonCode::Success);
        assert_eq!(kick("old", false), kicked(true, true), "it was clean");
        old.assert_closed();
        let (mut new, _) = Peer::resume(address, "new");
        assert_eq!(kick("new", false), kicked(true, false));
        assert_eq!(new.disconnect_reason(), ReasonCode::AdministrativeAction);
        new.assert_closed();
        let (mut again, present) = Peer::resume(address, "new");
        assert!(present, "its session was kept");
        assert_eq!(kick("new", true), kicked(true, true));
        assert_eq!(again.disconnect_reason(), ReasonCode::AdministrativeAction);
        let (_, present) = Peer::resume(address, "new");
        assert!(!present, "its session has ended");
        assert_eq!(kick("nobody", true), None);
        broker.stop();
    }
}

#[test]
fn the_will_of_a_client_whose_session_is_ended_is_published() {
    let (broker, address) = start(4, |_| {});
    let mut watcher = Peer::connect(address, "watcher");
    watcher.subscribe("gone", QoS::AtLeastOnce);
    let mut peer = Peer::open(address, Version::V5);
    let mut connect = connect_packet(Version::V5, "peer");
    connect.properties.session_expiry = Some(300);
    let mut left = will("gone", b"bye");
    left.properties.will_delay = Some(200);
    connect.will = Some(left);
    assert_eq!(peer.handshake(&connect).0, ReasonCode::Success);
    let queries = broker.queries();
    queries.kick("peer", false).expect("an answer");
    watcher.assert_silent();
    queries.kick("peer", true).expect("an answer");
    assert_eq!(watcher.message().payload, b"bye");
    broker.stop();
}

fn message(topic: &str, payload: &[u8]) -> OperatorMessage {
    OperatorMessage {
        topic: topic.to_owned(),
        payload: payload.to_owned(),
        qos: QoS::AtLeastOnce,
        retain: false,
        expiry_secs: None,
    }
}

#[test]
fn a_message_of_the_operator_is_answered_with_its_outcome() {
    for workers in WORKERS {
        let (broker, address) = start(workers, |config| {
            config.limits.packet.max_payload = 100;
            config.limits.retained.retained_messages = 1;
        });
        let queries = broker.queries();
        let publish = |message| queries.publish(&message).expect("an answer");
        let published = |outcome, is_retained| Published {
            outcome,
            is_retained,
        };
        assert_eq!(
            publish(message("a", b"x")),
            published(PublishOutcome::NoSubscribers, false)
        );
        let mut subscribers = clients(address, 6);
        for subscriber in &mut subscribers {
            subscriber.subscribe("a", QoS::AtLeastOnce);
        }
        assert_eq!(
            publish(message("a", b"y")),
            published(PublishOutcome::Delivered, false)
        );
        for subscriber in &mut subscribers {
            let got = subscriber.message();
            assert_eq!((&*got.payload, got.qos), (&b"y"[..], QoS::AtLeastOnce));
        }
        let retained = |topic| OperatorMessage {
            retain: true,
            ..message(topic, b"kept")
        };
        assert_eq!(
            publish(retained("r/1")),
            published(PublishOutcome::NoSubscribers, true)
        );
        assert!(matches!(
            publish(retained("r/2")).outcome,
            PublishOutcome::Refused(_)
        ));
        for wrong in [
            message("", b""),
            message("a/#", b""),
            message("$SYS/x", b""),
            message("$other", b""),
            message("a\0b", b""),
            message("a", &[0; 101]),
        ] {
            let refused = queries.publish(&wrong).unwrap_err();
            assert!(matches!(refused, QueryError::Invalid(_)), "{refused:?}");
        }
        broker.stop();
    }
}

/// Client identifiers and filters on all pages of a query.
fn all_subscriptions(queries: &Queries, mut query: SubscriptionQuery) -> Vec<(String, String)> {
    let mut found = Vec::new();
    loop {
        let page = queries.subscriptions(&query).expect("an answer");
        let rows = page.rows.iter();
        found.extend(rows.map(|row| (row.client_id.to_string(), row.filter.to_string())));
        query.cursor = page.next;
        if query.cursor.is_none() {
            return found;
        }
    }
}

#[test]
fn subscriptions_are_listed_by_client_and_by_filter() {
    for workers in WORKERS {
        let (broker, address) = start(workers, |_| {});
        let mut clients = clients(address, 8);
        for client in &mut clients {
            client.subscribe("all", QoS::AtMostOnce);
            client.subscribe("$share/g/jobs", QoS::AtLeastOnce);
        }
        clients[3].subscribe("a/#", QoS::ExactlyOnce);
        let queries = broker.queries();
        let listed = |query| all_subscriptions(&queries, query);
        let any = || SubscriptionQuery {
            limit: 3,
            ..SubscriptionQuery::default()
        };
        let all = listed(any());
        assert!(all.is_sorted() && all.len() == 17, "{all:?}");
        let once: BTreeSet<_> = all.iter().collect();
        assert_eq!(once.len(), 17);
        let of_one = listed(SubscriptionQuery {
            client_id: Some("c03".to_owned()),
            ..any()
        });
        let filters: Vec<_> = of_one.iter().map(|(_, filter)| &**filter).collect();
        assert_eq!(filters, ["$share/g/jobs", "a/#", "all"]);
        for (filter, count) in [("all", 8), ("$share/g/jobs", 8), ("a/#", 1), ("a", 0)] {
            let found = listed(SubscriptionQuery {
                filter: Some(filter.to_owned()),
                ..any()
            });
            assert_eq!(found.len(), count, "{filter}");
            assert!(found.iter().all(|(_, found)| found == filter));
        }
        broker.stop();
    }
}

#[test]
fn retained_messages_are_listed_page_by_page() {
    for workers in WORKERS {
        let (broker, address) = start(workers, |_| {});
        let mut publisher = Peer::connect(address, "p");
        for number in 0..40 {
            publisher.publish(&format!("r/{number}/x"), b"kept", QoS::AtMostOnce, true);
        }
        publisher.publish_acknowledged("end", b"");
        let queries = broker.queries();
        let mut query = RetainedQuery {
            filter: "r/+/x".to_owned(),
            limit: 7,
            cursor: None,
        };
        let mut topics = BTreeSet::new();
        let mut count = 0;
        loop {
            let page = queries.retained(&query).expect("an answer");
            for row in page.rows {
                assert_eq!((row.payload_bytes, row.publisher), (4, None));
                assert!(row.published_at > 1_577_836_800_000 && row.expires_at.is_none());
                topics.insert(row.topic);
                count += 1;
            }
            query.cursor = page.next;
            if query.cursor.is_none() {
                break;
            }
        }
        assert_eq!((topics.len(), count), (40, 40));
        broker.stop();
    }
}

#[test]
fn a_page_of_retained_messages_ends_after_a_limit_of_bytes() {
    let (broker, address) = start(1, |config| {
        config.limits.packet.topic_length = u16::MAX;
    });
    let mut publisher = Peer::connect(address, "p");
    let long = "x".repeat(8000);
    for number in 0..300 {
        publisher.publish(
            &format!("r/{number}/{long}"),
            b"kept",
            QoS::AtMostOnce,
            true,
        );
    }
    publisher.publish_acknowledged("end", b"");
    let queries = broker.queries();
    let mut query = RetainedQuery {
        filter: "r/#".to_owned(),
        limit: 1000,
        cursor: None,
    };
    let mut topics = BTreeSet::new();
    let mut pages = 0;
    loop {
        let page = queries.retained(&query).expect("an answer");
        let bytes: usize = page.rows.iter().map(|row| row.topic.len()).sum();
        // The limit is checked after each portion of 64 messages.
        assert!(bytes < 1024 * 1024 + 64 * 8010, "{bytes}");
        topics.extend(page.rows.into_iter().map(|row| row.topic));
        pages += 1;
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    assert_eq!(topics.len(), 300);
    assert!((2..=3).contains(&pages), "{pages}");
    broker.stop();
}

#[test]
fn the_status_and_the_figures_are_those_of_the_node() {
    let (broker, address) = start(4, |_| {});
    let _clients = clients(address, 3);
    let _silent = Peer::open(address, Version::V5);
    let queries = broker.queries().with_timeout(Duration::from_mins(1));
    let status = queries.status().expect("an answer");
    assert_eq!(
        (status.workers, status.sessions, status.clients_connected),
        (4, 3, 3)
    );
    assert_eq!((status.connections.established, status.storage), (3, None));
    assert_eq!(status.listeners, broker.addresses());
    let figures = queries.figures();
    let counted = |name: &str| {
        let mut found = figures.counters.iter();
        found
            .find(|(known, _)| known == name)
            .map(|(_, count)| *count)
    };
    assert_eq!(counted("connections/accepted"), Some(3));
    assert_eq!(counted("clients/connected"), Some(3));
    assert!(figures.storage.is_none());
    let of_workers = figures.workers.iter();
    let clients: u64 = of_workers.map(|worker| worker.clients).sum();
    assert_eq!((figures.workers.len(), clients), (4, 3));
    let listeners = figures.listeners.iter();
    let connections: u64 = listeners.map(|listener| listener.connections).sum();
    // The silent one may still be in the backlog.
    assert!((3..=4).contains(&connections), "{connections}");
    assert!(figures.process.resident_bytes.is_some());
    broker.stop();
    // No worker is needed for them.
    assert_eq!(queries.status().err(), Some(QueryError::Stopped));
    assert_eq!(queries.figures().counters.len(), figures.counters.len());
}
