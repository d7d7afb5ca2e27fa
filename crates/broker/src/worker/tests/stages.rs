//! Stages of stamped messages at the edge: the time of the read, the last byte written, and the
//! topic with the figures.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use thrum_access::{Answer, Gatekeeper, Login, Question, Reply};
use thrum_codec::packet::{
    Packet, Subscribe, SubscriptionOptions, SubscriptionRequest, SubscriptionRequests,
};
use thrum_codec::properties::SubscribeProperties;
use thrum_codec::{PacketId, TopicFilter};
use thrum_engine::access::Shared;
use thrum_engine::ids::ConnectionKey;
use thrum_engine::stages::{self, MessageStage};
use thrum_transport::{Acceptor, Scheme, WebSocketOptions};

use super::{Parts, bytes, connect, messages, publish, settle, subscriber, two_workers_with};
use crate::config::Config;
use crate::settings::Settings;
use crate::worker::Worker;
use crate::worker::simulation::tls::{self, Connectors};
use crate::worker::simulation::websocket::{CLOSE, WebSocket};

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
    let series = figures.series(stage);
    (series.count(), (series.longest_ns() + 100_000) / 1_000_000)
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
    millis.fetch_add(1, Ordering::Relaxed);
    publisher.write_all(&publish(b"x").repeat(10)).unwrap();
    let mut turns = 0;
    while stage(worker, MessageStage::Written).0 < 10 {
        worker.run_turn();
        millis.fetch_add(10, Ordering::Relaxed);
        turns += 1;
    }
    assert!(turns > 2, "{turns} turns");
    assert_eq!(messages(&mut subscriber).len(), 10);
    // For those of later turns it is not known how long they lay in the socket.
    let waited = stage(worker, MessageStage::Waited).0;
    assert!((1..10).contains(&waited), "{waited}");
    // The last one was read in the first turn.
    let (count, longest) = stage(worker, MessageStage::Routed);
    assert!(count == 10 && longest >= 20, "{count} in {longest} ms");
    assert_eq!(stage(worker, MessageStage::Read), (10, longest));
    assert_eq!(stage(worker, MessageStage::Route), (10, 0));
    assert_eq!(stage(worker, MessageStage::Queued), (10, 0));
    // The next one did not wait.
    let before = worker.node.state.stages.merged().unwrap();
    publisher.write_all(&publish(b"x")).unwrap();
    worker.run_turn();
    let after = worker.node.state.stages.merged().unwrap();
    let sum =
        |figures: &stages::StageFigures| figures.series(MessageStage::Broker).sum_ns / 1_000_000;
    assert_eq!(sum(&after), sum(&before));
}

/// Answers questions about publishing when the test wants it.
#[derive(Default)]
struct Asked(Mutex<Vec<Reply<Option<bool>>>>);

impl fmt::Debug for Asked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Asked")
    }
}

impl Gatekeeper for Asked {
    fn login(&self, _login: Login, reply: Reply<Answer>) {
        drop(reply);
    }

    fn has_authorizers(&self) -> bool {
        true
    }

    fn authorize(&self, question: Question, reply: Reply<Option<bool>>) {
        if question.is_publish {
            self.0.lock().unwrap().push(reply);
        } else {
            reply(Some(true));
        }
    }
}

#[test]
fn the_time_of_a_service_that_decides_is_a_stage_of_its_own() {
    let asked = Arc::new(Asked::default());
    let (mut workers, millis) = stamping(|parts| {
        parts.access.gatekeeper = Some(Arc::clone(&asked) as Arc<dyn Gatekeeper>);
    });
    let mut subscriber = subscriber(&mut workers, 0);
    let mut publisher = publisher(&mut workers);
    messages(&mut subscriber);
    // A time of 0 is that of no read.
    millis.fetch_add(1, Ordering::Relaxed);
    // The second packet waits behind the first one, about which the service is asked.
    publisher.write_all(&publish(b"x").repeat(2)).unwrap();
    settle(&mut workers);
    millis.fetch_add(40, Ordering::Relaxed);
    let replies = std::mem::take(&mut *asked.0.lock().unwrap());
    assert_eq!(replies.len(), 1);
    for reply in replies {
        reply(Some(true));
    }
    settle(&mut workers);
    let worker = &workers[0];
    assert_eq!(messages(&mut subscriber).len(), 2);
    assert_eq!(stage(worker, MessageStage::Authorize), (2, 40));
    assert_eq!(stage(worker, MessageStage::Broker), (2, 40));
    for other in [MessageStage::Read, MessageStage::Route, MessageStage::Queue] {
        let (count, longest) = stage(worker, other);
        assert!(count == 2 && longest < 41, "{other:?} {longest}");
    }
    let sums = [MessageStage::Authorize, MessageStage::Read].map(|stage| {
        let figures = worker.node.state.stages.merged().unwrap();
        figures.series(stage).sum_ns / 1_000_000
    });
    assert_eq!(sums.iter().sum::<u64>(), 80);
    assert!(sums[0] >= 40, "{sums:?}");
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
    let key = connection_of(worker, "subscriber");
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

fn connection_of(worker: &Worker, client_id: &str) -> ConnectionKey {
    let core = &worker.traffic.engine.core;
    let slot = core.sessions.find(client_id).unwrap();
    core.sessions[slot].connection.unwrap()
}

/// Packets in a WebSocket frame of a client.
fn wrapped(packets: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    WebSocket::wrap(packets, &mut wire);
    wire
}

/// Two workers behind WebSocket, and two subscribers of the first one.
fn behind_web_socket() -> ([Worker; 2], [UnixStream; 2]) {
    let (mut workers, _) = stamping(|parts| {
        parts.acceptor = Acceptor::new(None, Some(&WebSocketOptions::default())).unwrap();
    });
    let mut clients = ["subscriber", "publisher"].map(|name| {
        let mut client = workers[0].accepted();
        client.write_all(&WebSocket::request()).unwrap();
        workers[0].run_turn();
        let hello = [connect(name, None), super::subscribe()].concat();
        client.write_all(&wrapped(&hello)).unwrap();
        settle(&mut workers);
        client
    });
    for client in &mut clients {
        while read_some(client, 100_000) > 0 {}
    }
    (workers, clients)
}

#[test]
fn a_message_in_the_layers_is_not_written_yet() {
    let (mut workers, [mut subscriber, mut publisher]) = behind_web_socket();
    let worker = &mut workers[0];
    let keys = ["subscriber", "publisher"].map(|name| connection_of(worker, name));
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

#[test]
fn output_that_the_layers_drop_is_not_written() {
    let (mut workers, [mut subscriber, mut publisher]) = behind_web_socket();
    let worker = &mut workers[0];
    let keys = ["subscriber", "publisher"].map(|name| connection_of(worker, name));
    let packet = wrapped(&publish(&vec![b'x'; 900_000]));
    let mut left = &packet[..];
    while !left.is_empty() {
        match publisher.write(left) {
            Ok(len) => left = &left[len..],
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        worker.run_turn();
    }
    while worker.node.state.stages.merged().unwrap().stamped == 0 {
        worker.run_turn();
    }
    let edge = &mut worker.traffic.edge;
    for key in keys {
        assert!(worker.traffic.engine.core.outputs[key].waiting() > 0);
        // Both clients end the WebSocket, and read on.
        let layered = edge.connections[key].layered.as_mut().unwrap();
        let mut close = Vec::new();
        WebSocket::frame(CLOSE, &[], &mut close);
        layered.receive(&mut close, &mut Vec::new()).unwrap();
    }
    for _ in 0..100 {
        for client in [&mut subscriber, &mut publisher] {
            read_some(client, 100_000);
        }
        worker.run_turn();
    }
    let engine = &mut worker.traffic.engine;
    assert!(keys.map(|key| engine.core.outputs[key].waiting()) == [0; 2]);
    stages::sweep_is_due(&mut engine.core);
    let figures = worker.node.state.stages.merged().unwrap();
    assert_eq!((figures.stamped, figures.unfinished), (1, 1));
    assert_eq!(stage(worker, MessageStage::Written).0, 0);
}

/// A client of a worker behind TLS.
struct TlsClient {
    stream: UnixStream,
    layers: thrum_transport::Layers,
}

impl TlsClient {
    fn join(worker: &mut Worker, client_id: &str) -> Self {
        let layers = Connectors::default().layers(0, Scheme::Mqtts, false);
        let stream = worker.accepted();
        let mut client = Self { stream, layers };
        let mut wire = Vec::new();
        client.layers.start(&mut wire).unwrap();
        while !client.layers.is_open() {
            client.stream.write_all(&wire).unwrap();
            wire.clear();
            worker.run_turn();
            let mut bytes = vec![0; 100_000];
            if let Ok(len) = client.stream.read(&mut bytes) {
                let (layers, plain) = (&mut client.layers, &mut Vec::new());
                layers.receive(&mut bytes[..len], plain, &mut wire).unwrap();
            }
        }
        client.stream.write_all(&wire).unwrap();
        let hello = client.wire(&connect(client_id, None));
        client.stream.write_all(&hello).unwrap();
        worker.run_turn();
        client
    }

    fn wire(&mut self, packets: &[u8]) -> Vec<u8> {
        let mut wire = Vec::new();
        self.layers.send(packets, &mut wire).unwrap();
        wire
    }
}

#[test]
fn a_record_is_read_with_its_last_byte_and_packets_in_it_are_near() {
    let (mut workers, millis) = stamping(|parts| {
        parts.config.node.stamp_messages = 50;
        parts.acceptor = tls::acceptor(Scheme::Mqtts);
    });
    let worker = &mut workers[0];
    let mut publisher = TlsClient::join(worker, "publisher");
    let wire = publisher.wire(&publish(b"x").repeat(1_000));
    let (last, first) = wire.split_last().unwrap();
    publisher.stream.write_all(first).unwrap();
    worker.run_turn();
    assert_eq!(worker.node.state.stages.merged().unwrap().stamped, 0);
    millis.fetch_add(500, Ordering::Relaxed);
    publisher.stream.write_all(&[*last]).unwrap();
    for _ in 0..20 {
        worker.run_turn();
    }
    let stamped = worker.node.state.stages.merged().unwrap().stamped;
    assert!((10..40).contains(&stamped), "{stamped}");
    // Their read is known: it was in the turn that read the last byte.
    let (waited, longest) = stage(worker, MessageStage::Waited);
    assert_eq!((waited, longest), (stamped, 0));
}

#[test]
fn the_time_of_a_read_ends_with_it_where_its_bytes_become_no_input() {
    let (mut workers, millis) = stamping(|parts| {
        parts.acceptor = tls::acceptor(Scheme::Mqtts);
    });
    let worker = &mut workers[0];
    let mut publisher = TlsClient::join(worker, "publisher");
    let wire = publisher.wire(&publish(b"x"));
    // A time of 0 is that of no read.
    millis.fetch_add(1, Ordering::Relaxed);
    publisher.stream.write_all(&wire[..10]).unwrap();
    worker.run_turn();
    let time_of_next = |worker: &Worker| stages::time_of_left_bytes(&worker.traffic.engine.core);
    let before = time_of_next(worker);
    millis.fetch_add(50, Ordering::Relaxed);
    assert_eq!(time_of_next(worker) - before, 50_000_000);
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
    let mut config = Config::default();
    config.node.stamp_messages = 0;
    let settings = Settings::new(&config, &Arc::new(Shared::default()));
    for worker in &mut workers {
        worker.reload(&settings);
    }
    workers[0].publish_stages();
    assert_eq!(topic(&mut workers), Vec::<Value>::new());
    assert!(workers[0].node.state.stages.merged().is_none());
}

#[test]
fn no_figures_stay_when_a_reload_turns_the_sys_topics_off() {
    let (mut workers, _) = stamping(|_| ());
    workers[0].publish_stages();
    assert_eq!(topic(&mut workers).len(), 1);
    let mut config = Config::default();
    config.node.stamp_messages = 1;
    config.sys.interval = std::time::Duration::ZERO;
    let settings = Settings::new(&config, &Arc::new(Shared::default()));
    for worker in &mut workers {
        worker.reload(&settings);
    }
    workers[0].publish_stages();
    assert_eq!(topic(&mut workers), Vec::<Value>::new());
}

#[test]
fn the_longest_text_of_the_figures_fits_a_packet_that_the_benchmark_reads() {
    let bytes = crate::stage_topic::longest_text_bytes();
    assert!((100_000..1024 * 1024).contains(&bytes), "{bytes}");
}

#[test]
fn nothing_is_published_where_the_sys_topics_are_off_or_nothing_is_stamped() {
    let (mut workers, _) = stamping(|parts| {
        parts.config.sys.interval = std::time::Duration::ZERO;
    });
    workers[0].publish_stages();
    assert_eq!(topic(&mut workers), Vec::<Value>::new());
    let mut workers = two_workers_with(|parts| parts.config.node.stamp_messages = 0);
    workers[0].publish_stages();
    assert_eq!(topic(&mut workers), Vec::<Value>::new());
}
