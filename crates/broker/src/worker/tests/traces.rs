//! What a live trace contains, what it leaves out, and that it ends.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thrum_codec::packet::{Connect, Disconnect, Packet, Publish};
use thrum_codec::properties::{ConnectProperties, DisconnectProperties, PublishProperties};
use thrum_codec::{QoS, ReasonCode, Version, encode};

use super::{
    bytes, connect, publish, settle, subscribe, subscriber, two_workers, two_workers_with,
};
use crate::control::QueryError;
use crate::control::test_queries::{queries, start_trace};
use crate::trace::{
    Direction, LiveTrace, TRACES_MAX, TraceEnd, TraceItem, TraceRequest, TraceSubject, TracedPacket,
};
use crate::worker::Worker;

fn of(subject: TraceSubject) -> TraceRequest {
    TraceRequest {
        subject,
        payloads: false,
        time: Duration::from_mins(1),
        packets_max: 10_000,
        bytes_max: 1 << 20,
    }
}

fn of_client(client_id: &str) -> TraceRequest {
    of(TraceSubject::Client(client_id.into()))
}

fn start(workers: &mut [Worker; 2], request: &TraceRequest) -> LiveTrace {
    let queries = queries(&workers[0].node);
    let (live, mut started) = start_trace(&queries, request).unwrap();
    settle(workers);
    assert!(started.take().is_some(), "both workers have begun");
    live
}

fn all(live: &mut LiveTrace) -> Vec<TraceItem> {
    std::iter::from_fn(|| live.poll()).collect()
}

/// Type of each packet, with `>` if it is from the client.
fn kinds(items: &[TraceItem]) -> String {
    let kind = |packet: &TracedPacket| {
        let names = "?CcPARLMSsUuTtDX";
        let name = names
            .chars()
            .nth(usize::from(packet.bytes[0] >> 4))
            .unwrap();
        match packet.direction {
            Direction::FromClient => format!("{name}>"),
            Direction::ToClient => format!("{name}<"),
        }
    };
    let kinds = items.iter().map(|item| match item {
        TraceItem::Packet(packet) => kind(packet),
        TraceItem::LeftOut(count) => format!("left{count}"),
        TraceItem::Ended(end) => format!("{end:?}"),
    });
    kinds.collect::<Vec<_>>().join(" ")
}

fn packets(items: &[TraceItem]) -> Vec<&TracedPacket> {
    let packets = items.iter().filter_map(|item| match item {
        TraceItem::Packet(packet) => Some(packet),
        _ => None,
    });
    packets.collect()
}

fn client(workers: &mut [Worker; 2], number: usize, client_id: &str) -> UnixStream {
    let mut client = workers[number].accepted();
    client.write_all(&connect(client_id, None)).unwrap();
    settle(workers);
    client
}

fn ping(client: &mut UnixStream) {
    client.write_all(&bytes(&Packet::PingReq)).unwrap();
}

#[test]
fn a_trace_of_a_client_has_its_packets_both_ways_and_no_others() {
    let mut workers = two_workers();
    let mut subscriber = subscriber(&mut workers, 1);
    let mut live = start(&mut workers, &of_client("client"));
    let mut client = workers[0].accepted();
    client.write_all(&connect("client", None)).unwrap();
    client.write_all(&publish(b"secret")).unwrap();
    ping(&mut client);
    ping(&mut subscriber);
    settle(&mut workers);
    let disconnect = Packet::Disconnect(Disconnect {
        reason: ReasonCode::Success,
        properties: DisconnectProperties::default(),
    });
    client.write_all(&bytes(&disconnect)).unwrap();
    settle(&mut workers);
    let items = all(&mut live);
    assert_eq!(kinds(&items), "C> P> T> c< t< D>");
    let packets = packets(&items);
    assert!(packets.iter().all(|packet| &*packet.client_id == "client"));
    let numbers: Vec<u64> = packets.iter().map(|packet| packet.connection).collect();
    assert!(numbers.iter().all(|number| *number == numbers[0]));
    assert_eq!(&*packets[1].bytes, b"\x30\x09\0\x01t", "no payload");
    assert_eq!(packets[1].packet_bytes, 11);
}

#[test]
fn a_trace_that_begins_later_has_the_packets_from_then_on_with_payloads_if_they_are_wanted() {
    let mut workers = two_workers();
    let mut subscriber = subscriber(&mut workers, 1);
    let request = TraceRequest {
        payloads: true,
        ..of_client("subscriber")
    };
    let mut live = start(&mut workers, &request);
    let mut publisher = client(&mut workers, 0, "publisher");
    publisher.write_all(&publish(b"one")).unwrap();
    ping(&mut subscriber);
    settle(&mut workers);
    let items = all(&mut live);
    let packets = packets(&items);
    let published = packets.iter().find(|packet| packet.bytes[0] == 0x30);
    assert_eq!(&*published.unwrap().bytes, b"\x30\x06\0\x01tone");
    assert_eq!(items.len(), 3, "{}", kinds(&items));
}

#[test]
fn a_client_that_connects_to_another_worker_than_the_one_of_its_session_is_traced_on_both() {
    let mut workers = two_workers();
    let mut live = start(&mut workers, &of_client("subscriber"));
    let first = subscriber(&mut workers, 0);
    drop(first);
    settle(&mut workers);
    let mut second = workers[1].accepted();
    second.write_all(&connect("subscriber", None)).unwrap();
    second.write_all(&subscribe()).unwrap();
    settle(&mut workers);
    let items = all(&mut live);
    assert_eq!(kinds(&items), "C> S> c< s< C> S> c< s<");
    let packets = packets(&items);
    let numbers: Vec<u64> = packets.iter().map(|packet| packet.connection).collect();
    assert!(numbers[..4].iter().all(|number| *number == numbers[0]));
    let second = &numbers[4..];
    assert!(
        second.iter().all(|number| *number == second[0]),
        "{numbers:?}"
    );
    assert_ne!(numbers[0], second[0]);
}

#[test]
fn a_malformed_packet_is_shown_with_the_reason_and_without_what_may_be_secret() {
    let mut workers = two_workers();
    let mut live = start(&mut workers, &of_client("client"));
    let mut whole = start(&mut workers, &of(TraceSubject::Topic("#".into())));
    let mut client = client(&mut workers, 0, "client");
    // A SUBSCRIBE without filters.
    client.write_all(b"\x82\x02\0\x01").unwrap();
    settle(&mut workers);
    let items = all(&mut live);
    assert_eq!(kinds(&items), "C> c< S>");
    let packets = packets(&items);
    let malformed = packets[2];
    let reason = malformed.malformed.as_deref().unwrap();
    assert!(
        reason.contains("malformed") || reason.contains("protocol error"),
        "{reason}"
    );
    assert_eq!(
        (&*malformed.bytes, malformed.packet_bytes),
        (&b"\x82\x02"[..], 4)
    );
    assert!(packets[..2].iter().all(|packet| packet.malformed.is_none()));
    assert_eq!(kinds(&all(&mut whole)), "left1", "its topic is not known");
}

#[test]
fn bytes_without_a_length_are_shown_too() {
    let mut workers = two_workers();
    let mut live = start(&mut workers, &of_client("client"));
    let mut client = client(&mut workers, 0, "client");
    client.write_all(b"\x30\xff\xff\xff\xff\x7fsecret").unwrap();
    settle(&mut workers);
    let items = all(&mut live);
    assert_eq!(kinds(&items), "C> c< P>");
    let malformed = packets(&items)[2];
    assert!(malformed.malformed.is_some());
    assert_eq!(&*malformed.bytes, b"\x30\xff\xff\xff\xff");
    assert_eq!(malformed.packet_bytes, 12);
}

#[test]
fn a_trace_of_a_topic_has_its_messages_from_and_to_all_clients() {
    let mut workers = two_workers();
    let _before = subscriber(&mut workers, 1);
    let mut live = start(&mut workers, &of(TraceSubject::Topic("t".into())));
    let mut whole = start(&mut workers, &of_client("publisher"));
    let mut publisher = client(&mut workers, 0, "publisher");
    publisher.write_all(&publish(b"one")).unwrap();
    let other = Packet::Publish(Publish {
        dup: false,
        qos: QoS::AtMostOnce,
        retain: false,
        topic: "other",
        packet_id: None,
        properties: PublishProperties::default(),
        payload: b"x",
    });
    publisher.write_all(&bytes(&other)).unwrap();
    settle(&mut workers);
    let items = all(&mut live);
    assert_eq!(kinds(&items), "P> P<");
    assert_eq!(kinds(&all(&mut whole)), "C> c< P> P>", "its CONNECT too");
    let names: Vec<&str> = packets(&items)
        .iter()
        .map(|packet| &*packet.client_id)
        .collect();
    assert_eq!(names, ["publisher", "subscriber"]);
}

/// A client of 5.0 that publishes by an alias, of which the topic is told once.
#[test]
fn the_topic_of_an_alias_is_known() {
    let mut workers = two_workers();
    let mut live = start(&mut workers, &of(TraceSubject::Topic("a/+".into())));
    let mut client = workers[0].accepted();
    let mut sent = Vec::new();
    let connect = Packet::Connect(Connect {
        version: Version::V5,
        is_bridge: false,
        clean_start: true,
        keep_alive: 0,
        client_id: "client",
        will: None,
        username: None,
        password: None,
        properties: ConnectProperties::default(),
    });
    encode(&connect, Version::V5, &mut sent).unwrap();
    for topic in ["a/b", ""] {
        let publish = Packet::Publish(Publish {
            dup: false,
            qos: QoS::AtMostOnce,
            retain: false,
            topic,
            packet_id: None,
            properties: PublishProperties {
                topic_alias: std::num::NonZeroU16::new(1),
                ..PublishProperties::default()
            },
            payload: b"x",
        });
        encode(&publish, Version::V5, &mut sent).unwrap();
    }
    client.write_all(&sent).unwrap();
    settle(&mut workers);
    let items = all(&mut live);
    let topics: Vec<Option<&str>> = packets(&items)
        .iter()
        .map(|packet| packet.topic.as_deref())
        .collect();
    assert_eq!(topics, [None, Some("a/b")]);
}

#[test]
fn a_trace_ends_with_its_packets_and_the_connection_is_as_before() {
    let mut workers = two_workers();
    let request = TraceRequest {
        packets_max: 3,
        ..of_client("client")
    };
    let mut live = start(&mut workers, &request);
    let mut client = client(&mut workers, 0, "client");
    for _ in 0..5 {
        ping(&mut client);
        settle(&mut workers);
    }
    assert_eq!(kinds(&all(&mut live)), "C> c< T> Packets");
    assert_eq!(live.poll(), None);
    drop(live);
    settle(&mut workers);
    ping(&mut client);
    settle(&mut workers);
    for worker in &workers {
        let edge = &worker.traffic.edge;
        assert!(!edge.traces.are_on());
        let key = thrum_engine::ids::ConnectionKey::FIRST;
        let connection = edge.connections.get(key);
        assert!(connection.is_none_or(|connection| !connection.is_traced));
    }
}

#[test]
fn a_trace_ends_with_its_time_whether_or_not_packets_pass() {
    let mut millis = Arc::new(AtomicU64::new(0));
    let mut workers = two_workers_with(|parts| millis.clone_from(&parts.millis));
    let mut live = start(&mut workers, &of_client("client"));
    let mut silent = start(&mut workers, &of_client("nobody"));
    let mut client = client(&mut workers, 0, "client");
    millis.fetch_add(61_000, Ordering::Relaxed);
    ping(&mut client);
    settle(&mut workers);
    assert_eq!(kinds(&all(&mut live)), "C> c< Time");
    assert_eq!(all(&mut silent), [TraceItem::Ended(TraceEnd::Time)]);
}

#[test]
fn packets_for_which_the_reader_is_too_slow_are_counted_and_nobody_waits() {
    let mut workers = two_workers();
    let mut live = start(&mut workers, &of_client("client"));
    let mut client = client(&mut workers, 0, "client");
    client.read_exact(&mut [0; 4]).unwrap();
    for _ in 0..1500 {
        ping(&mut client);
        settle(&mut workers);
        client.read_exact(&mut [0; 2]).unwrap();
    }
    let items = all(&mut live);
    let left_out: u64 = items
        .iter()
        .map(|item| match item {
            TraceItem::LeftOut(count) => *count,
            _ => 0,
        })
        .sum();
    assert!(left_out > 0);
    let traced = packets(&items).len() as u64;
    assert_eq!(traced + left_out, 2 + 2 * 1500);
    ping(&mut client);
    settle(&mut workers);
    assert_eq!(kinds(&all(&mut live)), "T> t<", "it goes on");
}

#[test]
fn there_are_at_most_eight_traces_and_the_place_of_one_that_ended_is_free() {
    let mut workers = two_workers();
    let queries = queries(&workers[0].node);
    let mut running = Vec::new();
    for _ in 0..TRACES_MAX {
        running.push(start_trace(&queries, &of_client("client")).unwrap());
    }
    settle(&mut workers);
    let more = start_trace(&queries, &of_client("client"));
    assert!(matches!(more, Err(QueryError::TooManyTraces)));
    let _client = client(&mut workers, 0, "client");
    for (live, _) in &mut running {
        assert_eq!(kinds(&all(live)), "C> c<");
    }
    running.remove(3);
    settle(&mut workers);
    assert!(start_trace(&queries, &of_client("client")).is_ok());
}

#[test]
fn a_request_without_sense_is_refused_with_the_reason() {
    let workers = two_workers();
    let queries = queries(&workers[0].node);
    let refused = |request: &TraceRequest| match start_trace(&queries, request) {
        Err(QueryError::Invalid(what)) => what,
        other => panic!("{other:?}"),
    };
    let topic = refused(&of(TraceSubject::Topic("a/#/b".into())));
    assert!(topic.contains("no topic filter"), "{topic}");
    let long = TraceRequest {
        time: Duration::from_secs(3601),
        ..of_client("client")
    };
    assert!(refused(&long).contains("3600 s"));
    let none = TraceRequest {
        packets_max: 0,
        ..of_client("client")
    };
    assert!(refused(&none).contains("packets"));
}
