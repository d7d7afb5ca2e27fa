//! The tree of topics and figures of filters, over all workers.

use std::collections::BTreeMap;
use std::time::Duration;

use thrum_broker::{
    Cancellation, Queries, QueryError, TOPIC_METRICS_MAX, TopicOrder, TopicPage, TopicQuery,
};
use thrum_codec::QoS;

use crate::peer::{Peer, start};

const WORKERS: [u16; 2] = [1, 4];

fn query(under: Option<&str>, limit: usize) -> TopicQuery {
    TopicQuery {
        under: under.map(ToOwned::to_owned),
        limit,
        ..TopicQuery::default()
    }
}

fn page(queries: &Queries, query: &TopicQuery) -> TopicPage {
    queries.topics().list(query).expect("an answer")
}

/// Names and messages of all children of a level, page by page.
fn children(queries: &Queries, mut query: TopicQuery) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    loop {
        let found = page(queries, &query);
        assert!(found.rows.len() <= query.limit);
        let rows = found.rows.iter();
        all.extend(rows.map(|row| (row.name.to_string(), row.figures.messages)));
        query.cursor = found.next;
        if query.cursor.is_none() {
            return all;
        }
    }
}

#[test]
fn the_tree_has_the_messages_of_clients_on_all_workers() {
    for workers in WORKERS {
        let (broker, address) = start(workers, |_| {});
        let queries = broker.queries();
        let empty = page(&queries, &query(None, 10));
        assert!(empty.rows.is_empty() && empty.next.is_none());
        let mut expected = BTreeMap::new();
        for number in 0..12_u8 {
            let mut peer = Peer::connect(address, &format!("p{number}"));
            for topic in ["a/b", "a/c", "d"] {
                peer.publish_acknowledged(topic, &[number; 10]);
            }
            peer.publish_acknowledged(&format!("n/{number:02}"), b"");
            expected.insert(format!("{number:02}"), 1);
        }
        let top = children(&queries, query(None, 2));
        let names = |name: &str, count| (name.to_owned(), count);
        assert_eq!(top, [names("a", 24), names("d", 12), names("n", 12)]);
        for limit in [1, 5, 12, 1000] {
            let found = children(&queries, query(Some("n"), limit));
            assert_eq!(found, expected.clone().into_iter().collect::<Vec<_>>());
        }
        let down = TopicQuery {
            is_descending: true,
            ..query(Some("n"), 5)
        };
        let found = children(&queries, down);
        assert_eq!(found, expected.into_iter().rev().collect::<Vec<_>>());
        let busy = TopicQuery {
            order: TopicOrder::Messages,
            is_descending: true,
            ..query(None, 1)
        };
        assert_eq!(
            children(&queries, busy),
            [names("a", 24), names("n", 12), names("d", 12)]
        );
        let a = page(&queries, &query(Some("a"), 10));
        let node = a.node.expect("it is there");
        assert_eq!(
            (node.figures.messages, node.figures.payload_bytes),
            (24, 240)
        );
        assert_eq!((a.others, node.last), (Some(0), None));
        let b = a.rows[0].last.as_ref().expect("a message had this topic");
        assert_eq!(
            (b.messages, b.qos, b.payload_bytes),
            (12, QoS::AtLeastOnce, 10)
        );
        assert_eq!(b.preview.len(), 10);
        assert!(a.rows[0].figures.messages_per_second > 0.0);
        assert!(page(&queries, &query(Some("x"), 10)).node.is_none());
        broker.stop();
    }
}

#[test]
fn a_cursor_belongs_to_one_order_and_wildcards_are_no_topic() {
    let (broker, address) = start(1, |_| {});
    let queries = broker.queries();
    page(&queries, &query(None, 10));
    let mut peer = Peer::connect(address, "p");
    for topic in ["a", "b", "c"] {
        peer.publish_acknowledged(topic, b"");
    }
    let first = page(&queries, &query(None, 2));
    let other = TopicQuery {
        cursor: first.next,
        is_descending: true,
        ..query(None, 2)
    };
    assert!(matches!(
        queries.topics().list(&other),
        Err(QueryError::Cursor(_))
    ));
    for topic in ["a/+", "#"] {
        let error = queries.topics().list(&query(Some(topic), 2)).unwrap_err();
        assert!(matches!(error, QueryError::Invalid(_)), "{error}");
        assert!(queries.topics().show(topic).is_err());
    }
    broker.stop();
}

#[test]
fn a_search_finds_topics_of_all_workers_and_says_when_there_are_more() {
    for workers in WORKERS {
        let (broker, address) = start(workers, |_| {});
        let queries = broker.queries();
        let search = |text: &str, limit| queries.topics().search(text, limit).expect("an answer");
        let empty = search("line", 100);
        assert!(empty.rows.is_empty() && !empty.is_cut);
        for number in 0..12_u8 {
            let mut peer = Peer::connect(address, &format!("p{number}"));
            peer.publish_acknowledged(&format!("site/{number:02}/Line3/temp"), b"1");
            peer.publish_acknowledged("all/line", b"1");
        }
        let names = |text: &str, limit| {
            let found = search(text, limit);
            let rows = found.rows.iter();
            let rows = rows.map(|row| (row.name.to_string(), row.figures.messages));
            (rows.collect::<Vec<_>>(), found.is_cut)
        };
        let site = |number: u8| (format!("site/{number:02}/Line3"), 1);
        let mut expected = vec![("all/line".to_owned(), 12)];
        expected.extend((0..12).map(site));
        assert_eq!(names("line", 100), (expected.clone(), false));
        expected.truncate(5);
        assert_eq!(names("LINE", 5), (expected, true));
        assert_eq!(names("07/line", 100), (vec![site(7)], false));
        let (found, is_cut) = names("site/+/Line3/#", 12);
        assert_eq!((found.len(), is_cut), (12, false));
        assert_eq!(found[0].0, "site/00/Line3/temp");
        for wrong in ["", "a+", "#/a"] {
            let error = queries.topics().search(wrong, 100);
            assert!(matches!(error, Err(QueryError::Invalid(_))), "{wrong}");
        }
        broker.stop();
    }
}

#[test]
fn a_topic_that_somebody_looks_at_has_its_last_values_and_publishers() {
    for workers in WORKERS {
        let (broker, address) = start(workers, |_| {});
        let queries = broker.queries();
        let before = queries.topics().show("t/1").expect("an answer");
        assert!(before.row.is_none() && before.values.is_empty() && !before.is_retained);
        let mut subscriber = Peer::connect(address, "s");
        subscriber.subscribe("t/+", QoS::AtMostOnce);
        subscriber.subscribe("$share/g/t/1", QoS::AtMostOnce);
        for (name, times) in [("one", 3), ("other", 30)] {
            let mut peer = Peer::connect(address, name);
            for number in 0..times {
                peer.publish_acknowledged("t/1", &[number]);
            }
        }
        let mut peer = Peer::connect(address, "keeps");
        peer.publish("t/1", b"kept", QoS::AtMostOnce, true);
        peer.publish_acknowledged("u", b"");
        let found = queries.topics().show("t/1").expect("an answer");
        assert_eq!(found.row.expect("figures").figures.messages, 34);
        let publishers: Vec<_> = found
            .publishers
            .iter()
            .map(|(name, count)| (&**name, *count))
            .collect();
        assert_eq!(publishers, [("other", 30), ("one", 3), ("keeps", 1)]);
        assert_eq!(found.values.len(), 20);
        // Those of several workers in one millisecond have no order.
        if workers == 1 {
            let (_, last) = found.values.last().expect("20 of them");
            assert_eq!((&*last.preview, last.retain), (&b"kept"[..], true));
            assert_eq!(last.publisher.as_deref(), Some("keeps"));
        }
        assert_eq!((found.subscribers, found.groups), (1, 1));
        assert!(found.is_retained);
        broker.stop();
    }
}

#[test]
fn filters_count_what_comes_in_and_what_sessions_take() {
    for workers in WORKERS {
        let (broker, address) = start(workers, |_| {});
        let queries = broker.queries();
        assert_eq!(queries.add_topic_metric("a/#"), Ok(true));
        assert_eq!(queries.add_topic_metric("a/#"), Ok(false));
        assert_eq!(queries.add_topic_metric("+/x"), Ok(true));
        let mut subscribers: Vec<_> = (0..6)
            .map(|number| Peer::connect(address, &format!("s{number}")))
            .collect();
        for subscriber in &mut subscribers {
            subscriber.subscribe("a/+", QoS::AtLeastOnce);
        }
        let mut member = Peer::connect(address, "member");
        member.subscribe("$share/g/a/x", QoS::AtMostOnce);
        let mut peer = Peer::connect(address, "p");
        peer.publish_acknowledged("a/x", b"12345");
        peer.publish("a/y", b"1", QoS::AtMostOnce, false);
        peer.publish_acknowledged("b/y", b"1");
        for subscriber in &mut subscribers {
            let id = subscriber.message().id;
            subscriber.acknowledge(id);
            subscriber.message();
        }
        member.message();
        let counted = queries.topic_metrics();
        let figures = |filter: &str| {
            let found = counted.iter().find(|one| *one.figures.filter == *filter);
            found.expect("it is counted").figures.clone()
        };
        let a = figures("a/#");
        assert_eq!((a.received, a.received_bytes), ([1, 1, 0], 6));
        assert_eq!((a.delivered, a.delivered_bytes), (13, 6 * 6 + 5));
        let x = figures("+/x");
        assert_eq!((x.received, x.delivered, x.dropped), ([0, 1, 0], 7, 0));
        assert!(x.received_per_second > 0.0);
        assert_eq!(queries.remove_topic_metric("a/#"), Ok(true));
        assert_eq!(queries.remove_topic_metric("a/#"), Ok(false));
        assert_eq!(queries.topic_metrics().len(), 1);
        broker.stop();
    }
}

#[test]
fn a_filter_is_counted_although_its_caller_goes_away() {
    let (broker, address) = start(2, |_| {});
    let gone = Cancellation::default();
    gone.cancel();
    let queries = broker.queries().with_cancellation(gone);
    assert_eq!(queries.add_topic_metric("a"), Ok(true));
    let mut peer = Peer::connect(address, "p");
    peer.publish_acknowledged("a", b"1");
    assert_eq!(queries.topic_metrics()[0].figures.received, [0, 1, 0]);
    assert_eq!(queries.remove_topic_metric("a"), Ok(true));
    broker.stop();
}

#[test]
fn a_filter_that_the_workers_do_not_take_is_not_listed() {
    let (broker, _) = start(2, |_| {});
    let hasty = broker.queries().with_timeout(Duration::ZERO);
    let number = (0..TOPIC_METRICS_MAX).find(|number| {
        // A worker may be faster than no time at all.
        hasty.add_topic_metric(&number.to_string()).is_err()
    });
    let number = number.expect("a worker that is late").to_string();
    let listed = hasty.topic_metrics();
    assert!(listed.iter().all(|one| *one.figures.filter != *number));
    assert_eq!(broker.queries().add_topic_metric(&number), Ok(true));
    broker.stop();
}

#[test]
fn messages_that_a_full_queue_drops_are_counted_for_their_filter() {
    let (broker, address) = start(1, |config| config.limits.client.queue = 2);
    let queries = broker.queries();
    queries.add_topic_metric("a").expect("it is counted");
    let (mut away, _) = Peer::resume(address, "away");
    away.subscribe("a", QoS::AtLeastOnce);
    away.leave();
    let mut peer = Peer::connect(address, "p");
    for _ in 0..5 {
        peer.publish_acknowledged("a", b"");
    }
    let counted = &queries.topic_metrics()[0].figures;
    assert_eq!((counted.delivered, counted.dropped), (2, 3));
    broker.stop();
}

#[test]
fn filters_that_are_counted_are_bounded_and_plain() {
    let (broker, _) = start(1, |_| {});
    let queries = broker.queries();
    for wrong in ["", "a/#/b", "$share/g/a", "a\nb", "a\r"] {
        let error = queries.add_topic_metric(wrong).unwrap_err();
        assert!(matches!(error, QueryError::Invalid(_)), "{wrong:?} {error}");
    }
    for number in 0..TOPIC_METRICS_MAX {
        assert_eq!(queries.add_topic_metric(&number.to_string()), Ok(true));
    }
    let error = queries.add_topic_metric("more").unwrap_err();
    assert_eq!(error, QueryError::TooManyTopicMetrics);
    broker.stop();
}

#[test]
fn filters_are_counted_after_a_restart_too() {
    let folder = std::env::temp_dir();
    let folder = folder.join(format!("thrum-topic-metrics-{}", std::process::id()));
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut filters = Vec::new();
    for _ in 0..2 {
        let (broker, address) = start(2, |config| config.node.data_dir.clone_from(&folder));
        let queries = broker.queries();
        let before = queries.topic_metrics();
        filters.push(
            before
                .iter()
                .map(|one| one.figures.filter.to_string())
                .collect::<Vec<_>>(),
        );
        queries.add_topic_metric("b/+").expect("it is written");
        queries.add_topic_metric("a").expect("it is written");
        queries.add_topic_metric("c").expect("it is written");
        queries.remove_topic_metric("c").expect("it is written");
        let mut peer = Peer::connect(address, "p");
        peer.publish_acknowledged("b/1", b"");
        assert_eq!(queries.topic_metrics()[1].figures.received, [0, 1, 0]);
        broker.stop();
    }
    assert_eq!(filters[0], [""; 0]);
    assert_eq!(filters[1], ["a", "b/+"]);
    std::fs::remove_dir_all(&folder).ok();
}

#[test]
fn pulses_and_the_history_have_the_rates_of_the_node() {
    let (broker, address) = start(2, |_| {});
    let queries = broker.queries();
    assert!(queries.live().history(0).is_none());
    queries.live().enter_second();
    let before = queries.live().pulse();
    let mut peer = Peer::connect(address, "p");
    for _ in 0..50 {
        peer.publish_acknowledged("a", b"x");
    }
    let second = queries.live().pulse().since(&before);
    queries.live().enter_second();
    let value = |name: &str| {
        let figures = thrum_broker::LIVE_FIGURES.iter();
        let place = figures.clone().position(|figure| figure.name == name);
        second.values[place.expect("a figure")]
    };
    assert!(value("messages_in") > 0.0 && value("connects") > 0.0);
    assert!((value("clients") - 1.0).abs() < f32::EPSILON);
    assert!(value("memory_bytes") > 100_000.0);
    assert_eq!(queries.live().history(0).expect("a second").len(), 1);
    broker.stop();
}
