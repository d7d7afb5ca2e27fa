//! Clients while memory is short: slowed, refused or served.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use thrum_codec::packet::{
    Ack, Packet, Publish, Subscribe, SubscriptionOptions, SubscriptionRequest, SubscriptionRequests,
};
use thrum_codec::properties::{AckProperties, PublishProperties, SubscribeProperties};
use thrum_codec::{PacketId, QoS, ReasonCode, TopicFilter, Version, decode, encode, frame};
use thrum_engine::node::metrics::Counter;
use thrum_protection::MemoryLevel;

use super::Worker;
use super::tests::{connect_v5, settle, two_workers, two_workers_with};
use crate::edge::PRESSURE_CHECK;

const QOS1: QoS = QoS::AtLeastOnce;
/// More than a short queue takes.
static LARGE: [u8; 70_000] = [b'x'; 70_000];

fn encoded(packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(packet, Version::V5, &mut bytes).unwrap();
    bytes
}

fn publish(topic: &str, payload: &[u8]) -> Vec<u8> {
    publish_as((QOS1, false), topic, payload)
}

fn retain(qos: QoS, topic: &str, payload: &[u8]) -> Vec<u8> {
    publish_as((qos, true), topic, payload)
}

fn publish_as((qos, retain): (QoS, bool), topic: &str, payload: &[u8]) -> Vec<u8> {
    encoded(&Packet::Publish(Publish {
        dup: false,
        qos,
        retain,
        topic,
        packet_id: PacketId::new(7).filter(|_| qos != QoS::AtMostOnce),
        properties: PublishProperties::default(),
        payload,
    }))
}

fn subscribe(filter: &str) -> Vec<u8> {
    let requests = [SubscriptionRequest {
        filter: TopicFilter::parse(filter).unwrap(),
        options: SubscriptionOptions {
            qos: QOS1,
            ..SubscriptionOptions::default()
        },
    }];
    encoded(&Packet::Subscribe(Subscribe {
        packet_id: PacketId::new(1).unwrap(),
        properties: SubscribeProperties::default(),
        requests: SubscriptionRequests::Listed(&requests),
    }))
}

/// The parts of a broker's packet that a test checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Welcome(ReasonCode, bool),
    Acknowledged(ReasonCode),
    Granted(ReasonCode),
    Message(usize),
}

fn seen(stream: &mut UnixStream) -> Vec<Seen> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
    }
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(frame) = frame::split(&bytes[at..], u32::MAX).unwrap() {
        at += frame.len;
        found.push(match decode(frame, Version::V5).unwrap() {
            Packet::ConnAck(ack) => Seen::Welcome(ack.reason, ack.session_present),
            Packet::PubAck(ack) => Seen::Acknowledged(ack.reason),
            Packet::SubAck(ack) => Seen::Granted(ack.codes.iter().next().unwrap()),
            Packet::Publish(publish) => Seen::Message(publish.payload.len()),
            other => panic!("{other:?}"),
        });
    }
    found
}

/// Connects a client to one of the workers; returns the connection and the CONNACK.
fn connect_client(
    workers: &mut [Worker; 2],
    worker: usize,
    client_id: &str,
    expiry: u32,
) -> (UnixStream, Seen) {
    let mut stream = workers[worker].accepted();
    stream.write_all(&connect_v5(client_id, expiry)).unwrap();
    settle(workers);
    let answer = seen(&mut stream)[0];
    (stream, answer)
}

/// Sends something that is answered at once.
fn ask(workers: &mut [Worker; 2], stream: &mut UnixStream, packet: &[u8]) -> Vec<Seen> {
    stream.write_all(packet).unwrap();
    settle(workers);
    seen(stream)
}

/// The topics of all messages that arrive while each is acknowledged.
fn drain(workers: &mut [Worker; 2], stream: &mut UnixStream) -> Vec<String> {
    let mut topics = Vec::new();
    loop {
        settle(workers);
        let mut bytes = Vec::new();
        let end = stream.read_to_end(&mut bytes).unwrap_err();
        assert_eq!(end.kind(), ErrorKind::WouldBlock);
        if bytes.is_empty() {
            return topics;
        }
        let mut at = 0;
        while let Some(frame) = frame::split(&bytes[at..], u32::MAX).unwrap() {
            at += frame.len;
            if let Packet::Publish(publish) = decode(frame, Version::V5).unwrap() {
                topics.push(publish.topic.to_owned());
                let ack = Ack {
                    packet_id: publish.packet_id.unwrap(),
                    reason: ReasonCode::Success,
                    properties: AckProperties::default(),
                };
                stream.write_all(&encoded(&Packet::PubAck(ack))).unwrap();
            }
        }
    }
}

/// A session on the first worker that waits for its client, subscribed to a topic of its name.
fn absent(workers: &mut [Worker; 2], client_id: &str) {
    let (mut stream, _) = connect_client(workers, 0, client_id, 300);
    let granted = ask(workers, &mut stream, &subscribe(client_id));
    assert_eq!(granted, [Seen::Granted(ReasonCode::GrantedQoS1)]);
    drop(stream);
    settle(workers);
}

fn queued(workers: &[Worker; 2], client_id: &str) -> usize {
    let slot = workers[0]
        .traffic
        .engine
        .core
        .sessions
        .find(client_id)
        .unwrap();
    workers[0].traffic.engine.core.sessions[slot]
        .session
        .outbound()
        .backlog()
        .0
}

fn set_level(workers: &[Worker; 2], hundredths: u64, expected: MemoryLevel) {
    let memory = &workers[0].node.state.memory;
    memory.observe(0, 100);
    assert_eq!(memory.observe(hundredths, 100).0, expected);
}

#[test]
fn only_a_publisher_whose_messages_wait_is_slowed_while_memory_is_low() {
    let mut workers = two_workers();
    absent(&mut workers, "away");
    let (mut filler, _) = connect_client(&mut workers, 0, "filler", 0);
    let (mut talker, _) = connect_client(&mut workers, 0, "talker", 0);
    let (mut listener, _) = connect_client(&mut workers, 0, "listener", 0);
    ask(&mut workers, &mut listener, &subscribe("talk"));
    set_level(&workers, 85, MemoryLevel::Low);
    filler.write_all(&publish("away", b"x").repeat(50)).unwrap();
    talker.write_all(&publish("talk", b"x").repeat(50)).unwrap();
    for _ in 0..100 {
        workers[0].run_turn();
    }
    assert_eq!(queued(&workers, "away"), 1);
    assert_eq!(seen(&mut listener), [Seen::Message(1); 50]);
    let wait = workers[0].wait().unwrap();
    assert!(!wait.is_zero() && wait <= PRESSURE_CHECK, "{wait:?}");
    // Enough again.
    set_level(&workers, 0, MemoryLevel::Ample);
    for _ in 0..4 {
        workers[0].run_turn();
    }
    assert_eq!(queued(&workers, "away"), 50);
}

#[test]
fn short_memory_refuses_messages_for_long_queues_and_full_memory_for_all_queues() {
    let refused = [Seen::Acknowledged(ReasonCode::QuotaExceeded)];
    let taken = [Seen::Acknowledged(ReasonCode::Success)];
    let mut workers = two_workers();
    absent(&mut workers, "long");
    absent(&mut workers, "brief");
    let (mut publisher, _) = connect_client(&mut workers, 0, "publisher", 0);
    assert_eq!(
        ask(&mut workers, &mut publisher, &publish("long", &LARGE)),
        taken
    );
    set_level(&workers, 95, MemoryLevel::Short);
    assert_eq!(
        ask(&mut workers, &mut publisher, &publish("long", b"x")),
        refused
    );
    assert_eq!(
        ask(&mut workers, &mut publisher, &publish("brief", b"x")),
        taken
    );
    set_level(&workers, 105, MemoryLevel::Full);
    let (mut publisher, _) = connect_client(&mut workers, 0, "publisher", 0);
    assert_eq!(
        ask(&mut workers, &mut publisher, &publish("brief", b"x")),
        refused
    );
    assert_eq!(
        (queued(&workers, "long"), queued(&workers, "brief")),
        (1, 1)
    );
    let row = &workers[0].node.state.metrics;
    assert_eq!(row.total(Counter::DroppedMemoryShort), 2);
    // A client that takes its messages gets them.
    let (mut listener, _) = connect_client(&mut workers, 0, "listener", 0);
    ask(&mut workers, &mut listener, &subscribe("talk"));
    assert_eq!(
        ask(&mut workers, &mut publisher, &publish("talk", b"x")),
        taken
    );
    assert_eq!(seen(&mut listener), [Seen::Message(1)]);
}

#[test]
fn a_client_with_a_session_is_admitted_and_served_at_every_memory_level() {
    let full = ReasonCode::QuotaExceeded;
    let mut workers = two_workers();
    absent(&mut workers, "owner");
    let (mut publisher, _) = connect_client(&mut workers, 0, "publisher", 0);
    ask(&mut workers, &mut publisher, &publish("owner", b"x"));
    set_level(&workers, 95, MemoryLevel::Short);
    assert_eq!(
        connect_client(&mut workers, 0, "new", 300).1,
        Seen::Welcome(full, false)
    );
    let (clean, answer) = connect_client(&mut workers, 0, "clean", 0);
    assert_eq!(answer, Seen::Welcome(ReasonCode::Success, false));
    drop(clean);
    settle(&mut workers);
    set_level(&workers, 200, MemoryLevel::Exhausted);
    assert_eq!(
        connect_client(&mut workers, 0, "clean", 0).1,
        Seen::Welcome(full, false)
    );
    let mut owner = workers[0].accepted();
    owner.write_all(&connect_v5("owner", 300)).unwrap();
    settle(&mut workers);
    let welcome = Seen::Welcome(ReasonCode::Success, true);
    assert_eq!(seen(&mut owner), [welcome, Seen::Message(1)]);
    assert_eq!(
        workers[0]
            .node
            .state
            .metrics
            .total(Counter::LimitMemorySessions),
        2
    );
}

#[test]
fn a_publisher_is_refused_if_the_sessions_of_another_worker_have_no_memory() {
    let mut workers = two_workers();
    absent(&mut workers, "long");
    let (mut publisher, _) = connect_client(&mut workers, 1, "publisher", 0);
    ask(&mut workers, &mut publisher, &publish("long", &LARGE));
    set_level(&workers, 95, MemoryLevel::Short);
    let answer = ask(&mut workers, &mut publisher, &publish("long", b"x"));
    assert_eq!(answer, [Seen::Acknowledged(ReasonCode::QuotaExceeded)]);
}

// [MQTT-4.8.2-4]
#[test]
fn messages_of_the_only_member_of_a_group_wait_for_it_at_any_memory_level() {
    for hundredths in [95, 105] {
        let mut workers = two_workers();
        let (mut member, _) = connect_client(&mut workers, 0, "member", 300);
        ask(&mut workers, &mut member, &subscribe("$share/g/t"));
        let (mut publisher, _) = connect_client(&mut workers, 1, "publisher", 0);
        for _ in 0..3 {
            let answer = ask(&mut workers, &mut publisher, &publish("t", &LARGE));
            assert_eq!(answer, [Seen::Acknowledged(ReasonCode::Success)]);
            assert_eq!(seen(&mut member), [Seen::Message(LARGE.len())]);
        }
        workers[0].node.state.memory.observe(hundredths, 100);
        drop(member);
        settle(&mut workers);
        assert_eq!(queued(&workers, "member"), 3, "{hundredths}");
        let mut member = workers[0].accepted();
        member.write_all(&connect_v5("member", 300)).unwrap();
        assert_eq!(drain(&mut workers, &mut member).len(), 3, "{hundredths}");
        let dropped = Counter::DroppedMemoryShort;
        assert_eq!(workers[0].node.state.metrics.total(dropped), 0);
    }
}

#[test]
fn due_retained_messages_arrive_as_their_subscriber_reads_them_while_memory_is_full() {
    let mut workers = two_workers();
    let (mut publisher, _) = connect_client(&mut workers, 0, "publisher", 0);
    for number in 0..40 {
        let topic = format!("r/{number}");
        ask(&mut workers, &mut publisher, &retain(QOS1, &topic, b"x"));
    }
    let (mut subscriber, _) = connect_client(&mut workers, 0, "subscriber", 300);
    set_level(&workers, 105, MemoryLevel::Full);
    subscriber.write_all(&subscribe("r/+")).unwrap();
    let mut topics = drain(&mut workers, &mut subscriber);
    topics.sort();
    topics.dedup();
    assert_eq!(topics.len(), 40);
    let dropped = Counter::DroppedMemoryShort;
    assert_eq!(workers[0].node.state.metrics.total(dropped), 0);
}

#[test]
fn due_retained_messages_wait_for_room_in_a_small_queue() {
    let mut workers = two_workers_with(|parts| {
        parts.config.limits.client.queue_bytes = 160_000;
        parts.config.limits.client.inflight = 1;
    });
    let (mut publisher, _) = connect_client(&mut workers, 0, "publisher", 0);
    for number in 0..10 {
        let topic = format!("r/{number}");
        ask(&mut workers, &mut publisher, &retain(QOS1, &topic, &LARGE));
    }
    let (mut subscriber, _) = connect_client(&mut workers, 0, "subscriber", 300);
    subscriber.write_all(&subscribe("r/+")).unwrap();
    let mut topics = drain(&mut workers, &mut subscriber);
    topics.sort();
    topics.dedup();
    assert_eq!(topics.len(), 10);
    let dropped = Counter::DroppedQueueFull;
    assert_eq!(workers[0].node.state.metrics.total(dropped), 0);
}

#[test]
fn full_memory_refuses_only_retained_messages_that_are_larger_than_before() {
    let mut workers = two_workers();
    let (mut publisher, _) = connect_client(&mut workers, 0, "publisher", 0);
    let kept = [Seen::Acknowledged(ReasonCode::NoMatchingSubscribers)];
    let refused = [Seen::Acknowledged(ReasonCode::QuotaExceeded)];
    let first = retain(QOS1, "r", b"12.5");
    assert_eq!(ask(&mut workers, &mut publisher, &first), kept);
    set_level(&workers, 105, MemoryLevel::Full);
    for (payload, answer) in [
        (&b"12.6"[..], kept),
        (b"9", kept),
        (b"130.5", refused),
        (b"8", kept),
    ] {
        let packet = retain(QOS1, "r", payload);
        assert_eq!(ask(&mut workers, &mut publisher, &packet), answer);
    }
    let packet = retain(QOS1, "new", b"1");
    assert_eq!(ask(&mut workers, &mut publisher, &packet), refused);
    let packet = retain(QoS::AtMostOnce, "r", b"7");
    assert_eq!(ask(&mut workers, &mut publisher, &packet), []);
    assert_eq!(workers[0].node.state.retained.size().0, 1);
}

/// A client on the other worker that publishes to it, and what it is answered.
fn publish_afar(workers: &mut [Worker; 2], stream: &mut UnixStream, topic: &str) -> ReasonCode {
    match ask(workers, stream, &publish(topic, b"x"))[..] {
        [Seen::Acknowledged(outcome)] => outcome,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn short_memory_refuses_the_first_message_of_each_topic_and_drops_nothing_that_it_acknowledged() {
    for is_shared in [false, true] {
        let mut workers = two_workers();
        for number in 0..20 {
            let client_id = format!("c{number}");
            absent(&mut workers, &client_id);
            if is_shared {
                let (mut stream, _) = connect_client(&mut workers, 0, &client_id, 300);
                let filter = format!("$share/g/s{number}");
                ask(&mut workers, &mut stream, &subscribe(&filter));
                drop(stream);
                settle(&mut workers);
            }
        }
        let (mut publisher, _) = connect_client(&mut workers, 1, "publisher", 0);
        set_level(&workers, 105, MemoryLevel::Full);
        for number in 0..20 {
            let kind = if is_shared { 's' } else { 'c' };
            let topic = format!("{kind}{number}");
            let outcome = publish_afar(&mut workers, &mut publisher, &topic);
            assert_eq!(outcome, ReasonCode::QuotaExceeded, "{topic}");
            assert_eq!(queued(&workers, &format!("c{number}")), 0);
        }
    }
}

#[test]
fn connected_clients_are_served_from_another_worker_at_any_memory_level() {
    for filter in ["t", "$share/g/t"] {
        let mut workers = two_workers();
        absent(&mut workers, "away");
        let (mut subscriber, _) = connect_client(&mut workers, 0, "subscriber", 300);
        ask(&mut workers, &mut subscriber, &subscribe(filter));
        let (mut publisher, _) = connect_client(&mut workers, 1, "publisher", 0);
        set_level(&workers, 105, MemoryLevel::Full);
        for _ in 0..40 {
            let outcome = publish_afar(&mut workers, &mut publisher, "t");
            assert_eq!(outcome, ReasonCode::Success, "{filter}");
            assert_eq!(drain(&mut workers, &mut subscriber), ["t"], "{filter}");
            // One refusal does not affect other topics.
            let outcome = publish_afar(&mut workers, &mut publisher, "away");
            assert_eq!(outcome, ReasonCode::QuotaExceeded, "{filter}");
        }
        assert_eq!(queued(&workers, "away"), 0);
    }
}

#[test]
fn messages_acknowledged_before_memory_was_full_are_accepted_after_it() {
    for (filter, client_id) in [("away", "away"), ("$share/g/t", "away")] {
        let mut workers = two_workers();
        absent(&mut workers, "away");
        let (mut stream, _) = connect_client(&mut workers, 0, client_id, 300);
        ask(&mut workers, &mut stream, &subscribe(filter));
        drop(stream);
        settle(&mut workers);
        let (mut publisher, _) = connect_client(&mut workers, 1, "publisher", 0);
        let topic = if filter == "away" { "away" } else { "t" };
        publisher.write_all(&publish(topic, b"x")).unwrap();
        workers[1].run_turn();
        assert_eq!(
            seen(&mut publisher),
            [Seen::Acknowledged(ReasonCode::Success)]
        );
        set_level(&workers, 105, MemoryLevel::Full);
        settle(&mut workers);
        assert_eq!(queued(&workers, "away"), 1, "{filter}");
    }
}

#[test]
fn a_publisher_is_slowed_for_messages_that_wait_on_another_worker_on_any_topics() {
    let mut workers = two_workers();
    let (mut stream, _) = connect_client(&mut workers, 0, "away", 300);
    ask(&mut workers, &mut stream, &subscribe("many/+"));
    drop(stream);
    let (mut filler, _) = connect_client(&mut workers, 1, "filler", 0);
    set_level(&workers, 85, MemoryLevel::Low);
    let before = workers[1].node.state.metrics.total(Counter::OverloadPaused);
    for number in 0..3 {
        let topic = format!("many/{number}");
        filler.write_all(&publish(&topic, b"x")).unwrap();
        settle(&mut workers);
    }
    let paused = workers[1].node.state.metrics.total(Counter::OverloadPaused);
    assert_eq!(paused - before, 1, "the second one waits");
    assert_eq!(queued(&workers, "away"), 2);
}
