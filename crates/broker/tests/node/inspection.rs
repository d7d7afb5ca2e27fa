//! What an operator sees of the messages of a running node: facets, queues, groups, drops, and
//! changes of retained messages.

use std::net::SocketAddr;

use thrum_broker::config::QueuePolicy;
use thrum_broker::{
    Broker, ClientProblem, DeliveryStage, DropQuery, Facets, Figure, GroupQuery, HeldQuery,
    OperatorMessage, PublishOutcome, Queries, QueryError, RetainedMessage, RetainedQuery,
    SessionFilter, SessionQuery, SessionState, SortKey, WildcardText,
};
use thrum_codec::{QoS, ReasonCode, Version};

use crate::peer::{Peer, connect_packet, start};

/// Numbers of workers that answers are put together of.
const WORKERS: [u16; 2] = [1, 4];

/// A broker whose clients may have two messages in flight and three in the queue.
fn narrow(workers: u16) -> (Broker, SocketAddr) {
    start(workers, |config| {
        config.limits.client.queue = 3;
        config.limits.client.inflight = 2;
        config.limits.client.queue_policy = QueuePolicy::RejectNew;
    })
}

/// A client that has got two messages and acknowledges none, with three in the queue, after two
/// that were dropped.
fn slow_client(address: SocketAddr, topic: &str) -> Peer {
    let (mut peer, _) = Peer::resume(address, "slow");
    peer.subscribe(topic, QoS::AtLeastOnce);
    let mut publisher = Peer::connect(address, "p");
    for number in 0..7_u8 {
        publisher.publish_acknowledged(topic, &[b'0' + number]);
    }
    publisher.leave();
    peer.message();
    peer.message();
    peer
}

fn facets(queries: &Queries, filter: &str) -> Facets {
    let filter: SessionFilter = filter.parse().expect("a filter");
    queries.facets(&filter).expect("an answer")
}

#[test]
fn sessions_are_counted_by_kind_in_one_pass() {
    for workers in WORKERS {
        let (broker, address) = narrow(workers);
        let queries = broker.queries();
        let _slow = slow_client(address, "a");
        let mut old = Peer::open(address, Version::V311);
        assert_eq!(
            old.handshake(&connect_packet(Version::V311, "old")).0,
            ReasonCode::Success
        );
        Peer::resume(address, "away").0.leave();
        let all = facets(&queries, "");
        assert_eq!(all.matching, 3);
        assert_eq!(all.listeners, [("mqtt".to_owned(), 2)]);
        let versions = [(Version::V31, 0), (Version::V311, 1), (Version::V5, 2)];
        assert_eq!(all.versions, versions);
        let states = [
            (SessionState::Connected, 2),
            (SessionState::Disconnected, 1),
            (SessionState::Persistent, 2),
        ];
        assert_eq!(all.states, states);
        let found = all.problems.into_iter().filter(|(_, count)| *count > 0);
        let expected = [
            (ClientProblem::Queue, 1),
            (ClientProblem::Slow, 1),
            (ClientProblem::Dropping, 1),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!((all.queued.messages, all.inflight, all.dropped), (3, 2, 2));
        assert_eq!(
            (all.without_user, all.users.len(), all.other_users),
            (3, 0, Some(0))
        );
        let some = facets(&queries, "problem=slow queue_percent=100 dropped=2");
        assert_eq!((some.matching, some.subscriptions), (1, 1));
        broker.stop();
    }
}

#[test]
fn slow_clients_are_ranked_by_the_age_of_their_messages() {
    let (broker, address) = narrow(2);
    let _slow = slow_client(address, "a");
    let query = SessionQuery {
        filter: "problem=slow".parse().expect("a filter"),
        sort: SortKey::Figure(Figure::OldestUnacknowledged),
        is_descending: true,
        limit: 10,
        cursor: None,
    };
    let found = broker.queries().sessions(&query).expect("an answer");
    let [row] = &found.page.rows[..] else {
        panic!("{found:?}");
    };
    assert_eq!((&*row.client_id, row.dropped), ("slow", 2));
    assert!(row.oldest_queued_secs.is_some() && row.oldest_unacknowledged_secs.is_some());
    assert!(row.problems.contains(ClientProblem::Slow));
    broker.stop();
}

#[test]
fn the_messages_of_a_session_are_listed_page_by_page() {
    let (broker, address) = narrow(2);
    let queries = broker.queries();
    let _slow = slow_client(address, "a");
    let mut query = HeldQuery {
        client_id: "slow".to_owned(),
        limit: 2,
        cursor: None,
    };
    let mut listed = Vec::new();
    loop {
        let page = queries
            .held(&query)
            .expect("an answer")
            .expect("it is there");
        assert!(page.rows.len() <= 2);
        listed.extend(page.rows);
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    let shown: Vec<_> = listed
        .iter()
        .map(|row| {
            let message = row.message.as_ref().expect("it is kept");
            assert_eq!((message.topic(), message.qos), ("a", QoS::AtLeastOnce));
            assert!(message.since > 1_577_836_800_000 && message.age_secs < 60);
            (row.stage, row.packet_id, message.payload())
        })
        .collect();
    let (sent, queued) = (DeliveryStage::AwaitsPubAck, DeliveryStage::Queued);
    let expected: [(_, _, &[u8]); 5] = [
        (sent, Some(1), b"0"),
        (sent, Some(2), b"1"),
        (queued, None, b"2"),
        (queued, None, b"3"),
        (queued, None, b"4"),
    ];
    assert_eq!(shown, expected);
    query.client_id = "nobody".to_owned();
    assert!(queries.held(&query).expect("an answer").is_none());
    let _other = Peer::connect(address, "other");
    let sessions = SessionQuery {
        limit: 1,
        ..SessionQuery::default()
    };
    query.cursor = queries.sessions(&sessions).expect("an answer").page.next;
    assert!(matches!(queries.held(&query), Err(QueryError::Cursor(_))));
    broker.stop();
}

#[test]
fn shared_groups_are_listed_with_the_lag_of_each_member() {
    for workers in WORKERS {
        let (broker, address) = narrow(workers);
        let queries = broker.queries();
        let mut members: Vec<_> = (0..5)
            .map(|n| Peer::resume(address, &format!("m{n}")).0)
            .collect();
        for member in &mut members {
            member.subscribe("$share/jobs/a/+", QoS::AtLeastOnce);
        }
        members[0].subscribe("$share/logs/b", QoS::AtLeastOnce);
        members.pop().expect("five").leave();
        let mut publisher = Peer::connect(address, "p");
        for _ in 0..12 {
            publisher.publish_acknowledged("a/b", b"job");
        }
        let mut query = GroupQuery {
            limit: 1,
            ..GroupQuery::default()
        };
        let first = queries.groups(&query).expect("an answer");
        let jobs = &first.rows[0];
        assert_eq!((&*jobs.name, &*jobs.filter), ("jobs", "a/+"));
        assert_eq!((jobs.members, jobs.connected, jobs.shown.len()), (5, 4, 5));
        let mut names: Vec<_> = jobs.shown.iter().map(|member| &*member.client_id).collect();
        names.sort_unstable();
        assert_eq!(names, ["m0", "m1", "m2", "m3", "m4"]);
        let lag = jobs
            .shown
            .iter()
            .map(|member| member.queued.messages + member.inflight as u64);
        assert_eq!(lag.sum::<u64>(), 12, "{jobs:?}");
        let busy = jobs
            .shown
            .iter()
            .find(|member| member.inflight > 0)
            .expect("some are");
        assert!(busy.is_connected && busy.oldest_unacknowledged_secs.is_some());
        query.cursor = first.next;
        let second = queries.groups(&query).expect("an answer");
        assert_eq!(&*second.rows[0].name, "logs");
        assert!(second.next.is_none());
        let named = |name: &str| {
            let query = GroupQuery {
                name: Some(WildcardText::new(name)),
                limit: 10,
                ..GroupQuery::default()
            };
            queries.groups(&query).expect("an answer").rows.len()
        };
        assert_eq!((named("*o*"), named("l*"), named("x")), (2, 1, 0));
        broker.stop();
    }
}

#[test]
fn drops_are_listed_by_reason_client_and_topic() {
    for workers in WORKERS {
        let (broker, address) = narrow(workers);
        let queries = broker.queries();
        let _slow = slow_client(address, "a/b");
        let (mut away, _) = Peer::resume(address, "away");
        away.subscribe("a/c", QoS::AtLeastOnce);
        away.leave();
        let mut publisher = Peer::connect(address, "p");
        for _ in 0..8 {
            publisher.publish_acknowledged("a/c", b"x");
        }
        let listed = |query: &DropQuery| {
            let found = queries.drops(query).expect("an answer");
            assert_eq!(found.left_out, 0);
            let rows = found.page.rows.iter();
            let rows = rows.map(|row| {
                assert_eq!((row.reason, row.at_most_less), ("queue_full", 0));
                assert!(row.last_at > 1_577_836_800_000);
                (
                    row.client.to_string(),
                    row.topic.as_deref().map(str::to_owned),
                    row.messages,
                )
            });
            (rows.collect::<Vec<_>>(), found.matching, found.page.next)
        };
        let row =
            |client: &str, topic: &str, count| (client.to_owned(), Some(topic.to_owned()), count);
        let mut query = DropQuery {
            limit: 1,
            ..DropQuery::default()
        };
        // On several workers the queue of another worker's client is known to be full, and the drop
        // is counted without a topic.
        let (rows, matching, next) = listed(&query);
        if workers == 1 {
            assert_eq!((rows, matching), (vec![row("away", "a/c", 5)], 2));
            query.cursor = next;
            assert_eq!(listed(&query).0, [row("slow", "a/b", 2)]);
        }
        query = DropQuery {
            limit: 100,
            ..DropQuery::default()
        };
        let messages = |query: &DropQuery| {
            let (rows, _, _) = listed(query);
            rows.iter().map(|(_, _, count)| *count).sum::<u64>()
        };
        assert_eq!(messages(&query), 7);
        query.client = Some(WildcardText::new("sl*"));
        assert_eq!(messages(&query), 2);
        query.reason = Some("expired".to_owned());
        assert_eq!(messages(&query), 0);
        let wrong = DropQuery {
            topic: Some("a/#/b".to_owned()),
            ..DropQuery::default()
        };
        assert!(matches!(queries.drops(&wrong), Err(QueryError::Invalid(_))));
        broker.stop();
    }
}

#[test]
fn a_batch_is_published_in_order_or_not_at_all() {
    let (broker, address) = start(4, |_| {});
    let queries = broker.queries();
    let mut subscriber = Peer::connect(address, "s");
    subscriber.subscribe("a/#", QoS::AtLeastOnce);
    let message = |topic: &str, number: u16| OperatorMessage {
        topic: topic.to_owned(),
        payload: number.to_string().into_bytes(),
        qos: QoS::AtLeastOnce,
        retain: false,
        expiry_secs: None,
    };
    let batch: Vec<_> = (0..100).map(|number| message("a/b", number)).collect();
    let outcomes = queries.publish_all(&batch).expect("an answer");
    assert_eq!(outcomes.len(), 100);
    assert!(
        outcomes
            .iter()
            .all(|one| one.outcome == PublishOutcome::Delivered)
    );
    for number in 0..100 {
        let got = subscriber.message();
        assert_eq!(got.payload, number.to_string().as_bytes());
        subscriber.acknowledge(got.id);
    }
    let wrong = [message("a/b", 1), message("a/+", 2)];
    let refused = queries.publish_all(&wrong).unwrap_err();
    assert!(refused.to_string().starts_with("message 1: "), "{refused}");
    subscriber.assert_silent();
    let many = vec![message("a", 0); 1001];
    assert!(matches!(
        queries.publish_all(&many),
        Err(QueryError::Invalid(_))
    ));
    broker.stop();
}

#[test]
fn retained_messages_are_stored_shown_and_removed_without_a_message_to_subscribers() {
    for workers in WORKERS {
        let (broker, address) = start(workers, |config| {
            config.limits.retained.retained_messages = 3;
        });
        let queries = broker.queries();
        let mut subscriber = Peer::connect(address, "s");
        subscriber.subscribe("r/#", QoS::AtLeastOnce);
        let message = |topic: &str| RetainedMessage {
            topic: topic.to_owned(),
            payload: b"kept".to_vec(),
            qos: QoS::AtLeastOnce,
            published_at: Some(1_600_000_000_123),
            content_type: Some("text".to_owned()),
            user_properties: vec![("k".to_owned(), "v".to_owned())],
            ..RetainedMessage::default()
        };
        let stored = queries.store_retained(&[message("r/1"), message("r/2")]);
        assert_eq!(stored, Ok(2));
        let found = queries
            .retained_message("r/1")
            .expect("an answer")
            .expect("it is stored");
        assert_eq!(
            (found.payload(), found.published_at),
            (&b"kept"[..], 1_600_000_000_123)
        );
        let properties = found.properties();
        assert_eq!(properties.content_type, Some("text"));
        assert_eq!(properties.user.iter().collect::<Vec<_>>(), [("k", "v")]);
        assert!(queries.retained_message("r").expect("an answer").is_none());
        assert!(queries.retained_message("r/+").is_err());
        // One more than the limit.
        let stored = queries.store_retained(&[message("r/3"), message("r/4"), message("r/5")]);
        assert_eq!(stored, Ok(1));
        for wrong in [
            message("r/#"),
            message("$SYS/a"),
            RetainedMessage {
                payload: Vec::new(),
                ..message("r/1")
            },
            RetainedMessage {
                response_topic: Some("a/+".to_owned()),
                ..message("r/1")
            },
            RetainedMessage {
                content_type: Some("\0".to_owned()),
                ..message("r/1")
            },
        ] {
            let refused = queries.store_retained(std::slice::from_ref(&wrong));
            assert!(matches!(refused, Err(QueryError::Invalid(_))), "{wrong:?}");
        }
        let topics = ["r/1", "r/2", "r/9"].map(str::to_owned).to_vec();
        let removed = queries.remove_retained(topics).expect("an answer");
        assert_eq!((removed.messages, removed.missing), (2, 1));
        let own = queries.remove_retained(vec!["$SYS/broker/version".to_owned()]);
        assert!(matches!(own, Err(QueryError::Invalid(_))));
        let query = RetainedQuery {
            filter: "r/#".to_owned(),
            limit: 10,
            cursor: None,
        };
        let left = queries.retained(&query).expect("an answer").rows;
        assert_eq!(
            left.iter().map(|row| &*row.topic).collect::<Vec<_>>(),
            ["r/3"]
        );
        subscriber.assert_silent();
        broker.stop();
    }
}
