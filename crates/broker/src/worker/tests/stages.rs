//! Stages of stamped messages at the edge: the time of the read, the last byte written, and the
//! topic with the figures.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use thrum_codec::packet::{
    Packet, Subscribe, SubscriptionOptions, SubscriptionRequest, SubscriptionRequests,
};
use thrum_codec::properties::SubscribeProperties;
use thrum_codec::{PacketId, TopicFilter};
use thrum_engine::access::Shared;
use thrum_engine::stages::MessageStage;
use thrum_transport::{Acceptor, WebSocketOptions};

use super::{Parts, bytes, connect, messages, publish, settle, subscriber, two_workers_with};
use crate::config::Config;
use crate::settings::Settings;
use crate::worker::Worker;
use crate::worker::simulation::websocket::WebSocket;

/// Two workers that stamp every message, and their clock.
fn stamping(change: impl FnOnce(&mut Parts)) -> ([Worker; 2], Arc<AtomicU64>) {
    let mut clock = None;
    let workers = two_workers_with(|parts| {
        parts.config.node.stamp_messages = 1;
        clock = Some(Arc::clone(&parts.millis));
        change(parts);
    });
    (workers, clock.unwrap())
}

/// Count and longest duration in whole milliseconds.
fn stage(worker: &Worker, stage: MessageStage) -> (u64, u64) {
    let figures = worker.node.state.stages.merged().unwrap();
    let histogram = &figures.series(stage).histogram;
    (histogram.len(), (histogram.max() + 100_000) / 1_000_000)
}

fn publisher(workers: &mut [Worker; 2]) -> UnixStream {
    let mut publisher = workers[0].accepted();
    publisher.write_all(&connect("publisher", None)).unwrap();
    settle(workers);
    publisher
}

#[test]
fn packets_that_wait_for_the_next_turn_count_from_their_read() {
    let (mut workers, millis) = stamping(|_| ());
    let mut subscriber = subscriber(&mut workers, 0);
    let mut publisher = publisher(&mut workers);
    messages(&mut subscriber);
    let worker = &mut workers[0];
    worker.traffic.engine.core.turn.limits_mut().portion_units = 8;
    publisher.write_all(&publish(b"x").repeat(10)).unwrap();
    let mut turns = 0;
    while stage(worker, MessageStage::Written).0 < 10 {
        worker.run_turn();
        millis.fetch_add(10, Ordering::Relaxed);
        turns += 1;
    }
    assert!(turns > 2, "{turns} turns");
    assert_eq!(messages(&mut subscriber).len(), 10);
    // The last one was read in the first turn.
    let (count, longest) = stage(worker, MessageStage::Routed);
    assert!(count == 10 && longest >= 20, "{count} in {longest} ms");
    assert_eq!(stage(worker, MessageStage::Queued), (10, 0));
    // The next one did not wait.
    let before = worker.node.state.stages.merged().unwrap();
    publisher.write_all(&publish(b"x")).unwrap();
    worker.run_turn();
    let after = worker.node.state.stages.merged().unwrap();
    let sum = |figures: &thrum_engine::stages::StageFigures| {
        figures.series(MessageStage::Broker).sum_ns / 1_000_000
    };
    assert_eq!(sum(&after), sum(&before));
}

#[test]
fn the_beginning_of_a_packet_counts_from_the_read_of_its_end() {
    let (mut workers, millis) = stamping(|_| ());
    let mut subscriber = subscriber(&mut workers, 0);
    let mut publisher = publisher(&mut workers);
    messages(&mut subscriber);
    let packet = publish(b"x");
    for half in [&packet[..3], &packet[3..]] {
        publisher.write_all(half).unwrap();
        settle(&mut workers);
        millis.fetch_add(500, Ordering::Relaxed);
    }
    assert_eq!(messages(&mut subscriber), [b"x"]);
    assert_eq!(stage(&workers[0], MessageStage::Broker), (1, 0));
}

#[test]
fn the_way_to_another_worker_is_part_of_the_time_until_a_message_is_queued() {
    let (mut workers, millis) = stamping(|_| ());
    let mut subscriber = subscriber(&mut workers, 1);
    let mut publisher = publisher(&mut workers);
    messages(&mut subscriber);
    publisher.write_all(&publish(b"x")).unwrap();
    workers[0].run_turn();
    millis.fetch_add(30, Ordering::Relaxed);
    workers[1].run_turn();
    assert_eq!(messages(&mut subscriber), [b"x"]);
    assert_eq!(stage(&workers[0], MessageStage::Routed), (1, 0));
    assert_eq!(stage(&workers[0], MessageStage::Queued), (1, 30));
    assert_eq!(stage(&workers[0], MessageStage::Broker), (1, 30));
}

/// Reads at most that many bytes.
fn read_some(client: &mut UnixStream, bytes: usize) -> usize {
    match client.read(&mut vec![0; bytes]) {
        Ok(len) => len,
        Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_message_is_written_when_the_socket_has_its_last_byte() {
    let (mut workers, millis) = stamping(|_| ());
    let mut subscriber = subscriber(&mut workers, 0);
    let mut publisher = publisher(&mut workers);
    messages(&mut subscriber);
    // Larger than the buffers of a socket.
    let worker = &mut workers[0];
    let packet = publish(&vec![b'x'; 900_000]);
    let mut left = &packet[..];
    let key = {
        let core = &worker.traffic.engine.core;
        let slot = core.sessions.find("subscriber").unwrap();
        core.sessions[slot].connection.unwrap()
    };
    let mut was_waiting = false;
    while stage(worker, MessageStage::Written).0 == 0 {
        match publisher.write(left) {
            Ok(len) => left = &left[len..],
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        worker.run_turn();
        let waiting = worker.traffic.engine.core.outputs[key].waiting();
        let is_written = left.is_empty() && stage(worker, MessageStage::Written).0 == 1;
        assert!(!is_written || waiting == 0, "{waiting} bytes wait");
        was_waiting |= waiting > 0;
        if waiting > 0 {
            millis.fetch_add(1, Ordering::Relaxed);
            read_some(&mut subscriber, 20_000);
        }
    }
    assert!(was_waiting);
    let (count, longest) = stage(worker, MessageStage::Written);
    assert!(count == 1 && longest > 5, "{count} in {longest} ms");
}

#[test]
fn a_message_in_the_layers_is_not_written_yet() {
    let (mut workers, _) = stamping(|parts| {
        parts.acceptor = Acceptor::new(None, Some(&WebSocketOptions::default())).unwrap();
    });
    let wrapped = |packets: &[u8]| {
        let mut wire = Vec::new();
        WebSocket::wrap(packets, &mut wire);
        wire
    };
    let [mut subscriber, mut publisher] = ["subscriber", "publisher"].map(|name| {
        let mut client = workers[0].accepted();
        client.write_all(&WebSocket::request()).unwrap();
        workers[0].run_turn();
        let hello = [connect(name, None), super::subscribe()].concat();
        client.write_all(&wrapped(&hello)).unwrap();
        settle(&mut workers);
        client
    });
    while read_some(&mut publisher, 100_000) + read_some(&mut subscriber, 100_000) > 0 {}
    let worker = &mut workers[0];
    let keys = ["subscriber", "publisher"].map(|name| {
        let core = &worker.traffic.engine.core;
        let slot = core.sessions.find(name).unwrap();
        core.sessions[slot].connection.unwrap()
    });
    let packet = wrapped(&publish(&vec![b'x'; 900_000]));
    let mut left = &packet[..];
    // One of the two receivers is followed, for both.
    while stage(worker, MessageStage::Written).0 < 2 {
        match publisher.write(left) {
            Ok(len) => left = &left[len..],
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        worker.run_turn();
        let is_written = stage(worker, MessageStage::Written).0 == 2;
        let waiting = keys.map(|key| {
            let output = worker.traffic.engine.core.outputs[key].waiting();
            let layers = worker.traffic.edge.connections[key].layers_waiting();
            output + layers
        });
        assert!(
            !is_written || waiting.contains(&0),
            "{waiting:?} bytes wait"
        );
        for client in [&mut subscriber, &mut publisher] {
            read_some(client, 7_001);
        }
    }
}

/// The texts at the topic that a new subscriber receives.
fn topic(workers: &mut [Worker; 2]) -> Vec<Value> {
    let mut client = workers[0].accepted();
    client.write_all(&connect("reader", None)).unwrap();
    let requests = [SubscriptionRequest {
        filter: TopicFilter::parse("$SYS/broker/stages").unwrap(),
        options: SubscriptionOptions::default(),
    }];
    let subscribe = Packet::Subscribe(Subscribe {
        packet_id: PacketId::new(1).unwrap(),
        properties: SubscribeProperties::default(),
        requests: SubscriptionRequests::Listed(&requests),
    });
    client.write_all(&bytes(&subscribe)).unwrap();
    settle(workers);
    let texts = messages(&mut client).into_iter();
    texts
        .map(|text| serde_json::from_slice(&text).unwrap())
        .collect()
}

#[test]
fn the_figures_are_a_retained_message_while_messages_are_stamped() {
    let (mut workers, _) = stamping(|_| ());
    workers[0].publish_stages();
    let [first] = &topic(&mut workers)[..] else {
        panic!("one message");
    };
    assert_eq!((&first["every"], &first["stamped"]), (&1.into(), &0.into()));
    let _subscriber = subscriber(&mut workers, 1);
    let mut publisher = publisher(&mut workers);
    publisher.write_all(&publish(b"x")).unwrap();
    settle(&mut workers);
    workers[0].publish_stages();
    let [second] = &topic(&mut workers)[..] else {
        panic!("one message");
    };
    assert_eq!(second["stamped"], 1);
    let written = &second["stages"]["written"];
    assert_eq!(written["count"], 1);
    assert_eq!(written["counts"].as_array().unwrap().len(), 1);
    // A reload turns stamping off: nothing outdated stays.
    let settings = Settings::new(&Config::default(), &Arc::new(Shared::default()));
    for worker in &mut workers {
        worker.reload(&settings);
    }
    workers[0].publish_stages();
    assert_eq!(topic(&mut workers), Vec::<Value>::new());
    assert!(workers[0].node.state.stages.merged().is_none());
}

#[test]
fn nothing_is_published_where_the_sys_topics_are_off_or_nothing_is_stamped() {
    let (mut workers, _) = stamping(|parts| {
        parts.config.sys.interval = std::time::Duration::ZERO;
    });
    workers[0].publish_stages();
    assert_eq!(topic(&mut workers), Vec::<Value>::new());
    let mut workers = two_workers_with(|_| ());
    workers[0].publish_stages();
    assert_eq!(topic(&mut workers), Vec::<Value>::new());
}
