//! Workers that take their turns by hand: what may happen between them while both run.

mod certificates;
mod disconnects;
mod full_disk;
mod groups;
mod late_answers;
mod layers;
mod mail;
mod recheck;
mod rights;
mod rules;
mod sources;
mod stages;
mod stop;
mod timelines;
mod timers;
mod topics;
mod traces;

use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use mio::{Events, Poll};
use thrum_access::Certificate;
use thrum_codec::packet::{
    Connect, Packet, Publish, Subscribe, SubscriptionOptions, SubscriptionRequest,
    SubscriptionRequests, Will,
};
use thrum_codec::properties::{
    ConnectProperties, PublishProperties, SubscribeProperties, WillProperties,
};
use thrum_codec::{PacketId, QoS, TopicFilter, Version, decode, encode, frame};
use thrum_protocol::server::{Handshake, Session};

use super::Worker;
use thrum_engine::access::{Access, Shared};
use thrum_engine::client::Client;
use thrum_engine::hashing::repeatable::start_over;
use thrum_engine::ids::Slot;
use thrum_engine::node::Capacity;
use thrum_engine::peer::Peer;
use thrum_engine::workers::WorkerId;
use thrum_transport::Acceptor;

use crate::clock::Clock;
use crate::config::{CertificateName, Config};
use crate::edge::charge_connect;
use crate::listener::{Gate, GateParts};
use crate::mailbox::Arrived;
use crate::node::{Node, NodePlan};
use crate::read_gate::PauseReason;
use crate::settings::Settings;
use crate::socket::Socket;

const VERSION: Version = Version::V311;

/// When tests take place. The clock stands still, so that only work ends a portion of a turn: a
/// machine with much to do changes no outcome.
const NOW_MILLIS: u64 = 1_000_000_000;

/// Two workers of one node, without listeners.
pub(super) fn two_workers() -> [Worker; 2] {
    two_workers_with(|_| ())
}

/// The parts of two workers.
pub(super) struct Parts {
    pub(super) config: Config,
    access: Access,
    acceptor: Acceptor,
    username: CertificateName,
    /// The time of the node, which a test moves.
    millis: Arc<AtomicU64>,
}

/// The same with something else than usual.
pub(super) fn two_workers_with(change: impl FnOnce(&mut Parts)) -> [Worker; 2] {
    let mut parts = Parts {
        config: Config::default(),
        access: Access::default(),
        acceptor: Acceptor::new(None, None).unwrap(),
        username: CertificateName::None,
        millis: Arc::new(AtomicU64::new(NOW_MILLIS)),
    };
    change(&mut parts);
    let Parts {
        config,
        access,
        acceptor,
        username,
        millis,
    } = parts;
    let shared = Shared {
        access,
        generation: 0,
    };
    let settings = Arc::new(Settings::new(&config, &Arc::new(shared)));
    let plan = NodePlan {
        workers: 2,
        mailbox: Capacity {
            messages: 100,
            bytes: 1 << 20,
        },
        clock: Clock::manual(&millis, 0),
        ..NodePlan::new(&config)
    };
    start_over();
    let node = Node::new(plan, &settings.engine, None);
    let node = Arc::new(node);
    let gate = Gate::new(
        "mqtt",
        GateParts {
            config: &config.listeners["mqtt"],
            acceptor,
            username,
        },
        None,
    );
    node.gates.add(Arc::new(gate)).unwrap();
    [0, 1].map(|number| {
        let id = WorkerId::new(number);
        let poll = Poll::new().unwrap();
        node.open_mailbox(id, &poll).unwrap();
        Worker::new(id, Arc::clone(&node), &settings, poll)
    })
}

/// A node with a gate for plain TCP, whose tables hash alike in each run.
pub(super) fn node_with(plan: NodePlan, config: &Config, settings: &Settings) -> Arc<Node> {
    start_over();
    let node = Node::new(plan, &settings.engine, None);
    let parts = GateParts {
        config: &config.listeners["mqtt"],
        acceptor: Acceptor::new(None, None).unwrap(),
        username: CertificateName::None,
    };
    let gate = Arc::new(Gate::new("mqtt", parts, None));
    node.gates.add(gate).unwrap();
    Arc::new(node)
}

impl Worker {
    /// A connection that this worker accepted; the client's end of it. What one end of such a pair
    /// writes is at the other end at once.
    pub(super) fn accepted(&mut self) -> UnixStream {
        self.accepted_with(None)
    }

    /// The same of a client with a certificate that was verified outside.
    pub(super) fn accepted_with(&mut self, certificate: Option<Arc<Certificate>>) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_nonblocking(true).unwrap();
        let socket = Socket::from(OwnedFd::from(ours));
        let traffic = &mut self.traffic;
        let arrived = Arrived {
            socket,
            peer: Peer::Local,
            gate: 0,
            certificate,
        };
        traffic.edge.open(&mut traffic.engine, arrived);
        theirs
    }

    pub(super) fn ready_sockets(&mut self) -> Events {
        let mut events = Events::with_capacity(16);
        self.traffic
            .edge
            .poll
            .poll(&mut events, Some(Duration::ZERO))
            .unwrap();
        events
    }

    /// The first half of a turn.
    pub(super) fn read_inputs(&mut self) {
        let events = self.ready_sockets();
        self.handle_inputs(&events);
    }

    pub(super) fn run_turn(&mut self) {
        self.read_inputs();
        self.send_outputs();
        self.run_queries();
    }
}

/// Turns of both workers until nothing more can happen.
pub(super) fn settle(workers: &mut [Worker; 2]) {
    for _ in 0..4 {
        workers.iter_mut().for_each(Worker::run_turn);
    }
}

pub(super) fn bytes(packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(packet, VERSION, &mut bytes).unwrap();
    bytes
}

pub(super) fn connect(client_id: &str, will: Option<Will<'_>>) -> Vec<u8> {
    bytes(&Packet::Connect(Connect {
        version: VERSION,
        is_bridge: false,
        clean_start: true,
        keep_alive: 60,
        client_id,
        will,
        username: None,
        password: None,
        properties: ConnectProperties::default(),
    }))
}

/// CONNECT of 5.0; with an expiry it resumes an existing session.
pub(super) fn connect_v5(client_id: &str, session_expiry: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let packet = Packet::Connect(Connect {
        version: Version::V5,
        is_bridge: false,
        clean_start: session_expiry == 0,
        keep_alive: 0,
        client_id,
        will: None,
        username: None,
        password: None,
        properties: ConnectProperties {
            session_expiry: Some(session_expiry),
            ..ConnectProperties::default()
        },
    });
    encode(&packet, Version::V5, &mut bytes).unwrap();
    bytes
}

pub(super) fn publish(payload: &[u8]) -> Vec<u8> {
    bytes(&Packet::Publish(Publish {
        dup: false,
        qos: QoS::AtMostOnce,
        retain: false,
        topic: "t",
        packet_id: None,
        properties: PublishProperties::default(),
        payload,
    }))
}

pub(super) fn subscribe() -> Vec<u8> {
    let requests = [SubscriptionRequest {
        filter: TopicFilter::parse("t").unwrap(),
        options: SubscriptionOptions::default(),
    }];
    bytes(&Packet::Subscribe(Subscribe {
        packet_id: PacketId::new(1).unwrap(),
        properties: SubscribeProperties::default(),
        requests: SubscriptionRequests::Listed(&requests),
    }))
}

/// Payloads of the messages that have reached a client.
pub(super) fn messages(client: &mut UnixStream) -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    let end = client.read_to_end(&mut bytes).unwrap_err();
    assert_eq!(end.kind(), ErrorKind::WouldBlock);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(frame) = frame::split(&bytes[at..], u32::MAX).unwrap() {
        at += frame.len;
        if let Packet::Publish(publish) = decode(frame, VERSION).unwrap() {
            found.push(publish.payload.to_vec());
        }
    }
    assert_eq!(at, bytes.len());
    found
}

/// A client of a worker that is subscribed to the topic of these tests.
pub(super) fn subscriber(workers: &mut [Worker; 2], number: usize) -> UnixStream {
    let mut subscriber = workers[number].accepted();
    subscriber.write_all(&connect("subscriber", None)).unwrap();
    subscriber.write_all(&subscribe()).unwrap();
    settle(workers);
    subscriber
}

/// The first worker has a message of the publisher for a subscriber of the second one, and has seen
/// the end of the publisher's connection and session, but has not finished its turn.
fn publisher_gone_in_the_middle_of_a_turn(workers: &mut [Worker; 2]) {
    let mut publisher = workers[0].accepted();
    publisher.write_all(&connect("publisher", None)).unwrap();
    settle(workers);
    publisher.write_all(&publish(b"old")).unwrap();
    drop(publisher);
    workers[0].read_inputs();
}

// [MQTT-4.6.0-6] [MQTT3-4.6.0-6]
#[test]
fn a_client_that_reconnects_to_another_worker_does_not_overtake_its_own_messages() {
    let mut workers = two_workers();
    let mut subscriber = subscriber(&mut workers, 1);
    publisher_gone_in_the_middle_of_a_turn(&mut workers);
    let mut publisher = workers[1].accepted();
    publisher.write_all(&connect("publisher", None)).unwrap();
    workers[1].run_turn();
    publisher.write_all(&publish(b"new")).unwrap();
    workers[1].run_turn();
    workers[0].send_outputs();
    settle(&mut workers);
    assert_eq!(messages(&mut subscriber), [b"old", b"new"]);
}

// [MQTT-4.6.0-6] [MQTT3-4.6.0-6]
#[test]
fn packets_right_behind_a_connect_do_not_overtake_the_mail_of_the_last_session() {
    let mut workers = two_workers();
    let mut subscriber = subscriber(&mut workers, 1);
    publisher_gone_in_the_middle_of_a_turn(&mut workers);
    workers[0].send_outputs();
    let mut publisher = workers[1].accepted();
    publisher.write_all(&connect("publisher", None)).unwrap();
    publisher.write_all(&publish(b"new")).unwrap();
    settle(&mut workers);
    assert_eq!(messages(&mut subscriber), [b"old", b"new"]);
}

#[test]
fn a_session_that_ended_is_free_for_any_worker_after_the_turn() {
    let mut workers = two_workers();
    publisher_gone_in_the_middle_of_a_turn(&mut workers);
    let [first, second] = [0, 1].map(WorkerId::new);
    let registry = &workers[0].node.state.registry;
    assert_eq!(registry.claim("publisher", second), first);
    workers[0].send_outputs();
    assert_eq!(
        workers[0].node.state.registry.claim("publisher", second),
        second
    );
}

#[test]
fn a_client_that_reconnects_within_the_turn_keeps_its_worker() {
    let mut workers = two_workers();
    publisher_gone_in_the_middle_of_a_turn(&mut workers);
    let mut publisher = workers[0].accepted();
    publisher.write_all(&connect("publisher", None)).unwrap();
    workers[0].run_turn();
    let [first, second] = [0, 1].map(WorkerId::new);
    assert_eq!(
        workers[0].node.state.registry.claim("publisher", second),
        first
    );
    assert!(
        workers[0]
            .traffic
            .engine
            .core
            .sessions
            .find("publisher")
            .is_some()
    );
}

// [MQTT-3.1.2-8] [MQTT3-3.1.2-8]
#[test]
fn the_will_of_a_client_that_cannot_be_written_leaves_in_the_next_turn_which_comes_at_once() {
    let mut workers = two_workers();
    let mut subscriber = subscriber(&mut workers, 1);
    let will = Will {
        topic: "t",
        payload: b"will",
        qos: QoS::AtMostOnce,
        retain: false,
        properties: WillProperties::default(),
    };
    let mut leaving = workers[0].accepted();
    leaving.write_all(&connect("leaving", Some(will))).unwrap();
    settle(&mut workers);
    leaving.write_all(&subscribe()).unwrap();
    let events = workers[0].ready_sockets();
    // Gone before the SUBACK, and after the worker has learned which sockets are ready.
    drop(leaving);
    workers[0].handle_inputs(&events);
    workers[0].send_outputs();
    assert_eq!(workers[0].wait(), Some(Duration::ZERO));
    workers[0].run_turn();
    workers[1].run_turn();
    assert_eq!(messages(&mut subscriber), [b"will"]);
}

#[test]
fn memory_of_many_disconnected_clients_is_returned_and_the_others_are_found() {
    const CROWD: u32 = 20_000;
    let [mut worker, _] = two_workers();
    let limits = Arc::clone(&worker.traffic.engine.core.settings.session);
    for number in 0..CROWD {
        let connect = connect(&format!("c{number}"), None);
        let frame = frame::split(&connect, u32::MAX).unwrap().unwrap();
        let Packet::Connect(connect) = decode(frame, VERSION).unwrap() else {
            panic!("it is a CONNECT");
        };
        let handshake = Handshake::new(&connect, "", &limits).unwrap();
        let session = Session::new(u64::from(number) + 1, &handshake, &limits);
        worker
            .traffic
            .engine
            .core
            .sessions
            .insert(Client::new(session));
        worker.client_peak.watch(&mut worker.traffic);
    }
    let (first, rest) = {
        let slots: Vec<Slot> = worker
            .traffic
            .engine
            .core
            .sessions
            .iter()
            .map(|(slot, _)| slot)
            .collect();
        (slots[0], slots[1..].to_vec())
    };
    for slot in rest {
        worker.traffic.engine.core.sessions.remove(slot);
        worker.client_peak.watch(&mut worker.traffic);
    }
    let mut fired = Vec::new();
    let later = worker
        .traffic
        .engine
        .core
        .turn
        .now
        .plus(Duration::from_secs(10));
    worker.traffic.engine.core.timers.advance(later, &mut fired);
    assert!(worker.traffic.engine.core.sessions.capacity() >= CROWD as usize);
    for target in fired {
        worker.timer(target);
    }
    assert!(worker.traffic.engine.core.sessions.capacity() < 100);
    assert_eq!(worker.traffic.engine.core.sessions.find("c0"), Some(first));
    assert_eq!(worker.traffic.engine.core.sessions.find("c1"), None);
}

#[test]
fn a_client_that_waits_for_the_gatekeeper_does_not_exceed_its_keep_alive() {
    let mut workers = two_workers();
    let mut client = workers[0].accepted();
    client.write_all(&connect("a", None)).unwrap();
    settle(&mut workers);
    let worker = &mut workers[0];
    let slot = worker.traffic.engine.core.sessions.find("a").unwrap();
    let id = worker.traffic.engine.core.sessions[slot].session.id();
    let key = worker.traffic.engine.core.sessions[slot]
        .connection
        .unwrap();
    let mut wait = |is_deciding| {
        let reading = &mut worker.traffic.edge.connections[key].reading;
        if is_deciding {
            reading.close(PauseReason::Decision);
        } else {
            reading.open(PauseReason::Decision);
        }
        worker.traffic.engine.core.turn.now = worker
            .traffic
            .engine
            .core
            .turn
            .now
            .plus(Duration::from_secs(100));
        worker.traffic.engine.core.sessions[slot].armed = worker.traffic.engine.core.turn.now;
        worker.traffic.session_due(slot);
        worker.traffic.engine.core.sessions.is_connected(slot, id)
    };
    assert_eq!([wait(true), wait(true), wait(false)], [true, true, false]);
}

#[test]
fn the_connect_rate_is_of_the_node_however_many_workers_it_has() {
    let [mut first, mut second] = two_workers_with(|parts| parts.config.limits.connect_rate = 1);
    let may_accept = |worker: &mut Worker| {
        let traffic = &mut worker.traffic;
        worker
            .accepting
            .may_accept(&traffic.edge, &mut traffic.engine)
    };
    assert!(may_accept(&mut first) && may_accept(&mut second));
    let traffic = &mut first.traffic;
    charge_connect(&mut traffic.edge, &mut traffic.engine, 0);
    assert!(!may_accept(&mut first) && !may_accept(&mut second));
}
