//! A client and a server session over a connection that loses all bytes in flight when it is cut:
//! QoS 1 arrives at least once, QoS 2 exactly once, and in order, in both directions.
//!
//! [MQTT-4.3.2-3] [MQTT-4.3.3-3] [MQTT-4.3.3-5] [MQTT-4.3.3-10] [MQTT-4.4.0-1] [MQTT-4.6.0-1]
//! [MQTT3-4.3.2-1] [MQTT3-4.3.3-1] [MQTT3-4.3.3-2] [MQTT3-4.4.0-1] [MQTT3-4.6.0-1]

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;
use thrum_codec::packet::{Connect, Packet, Publish};
use thrum_codec::properties::PublishProperties;
use thrum_codec::{PacketId, QoS, ReasonCode, Version, decode, frame};
use thrum_protocol::client::{Client, ClientOptions, Event, PublishError};
use thrum_protocol::message::FrameCache;
use thrum_protocol::server::{Action, ConnAckParts, DeliveryOptions, Handshake, Session};
use thrum_protocol::{Limits, Outgoing, Output, Publication, Time};

/// The next event.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The client wants to publish one more message.
    ClientPublishes(QoS),
    /// The node has one more message for the client.
    ServerDelivers(QoS),
    /// This number of the bytes in flight arrives at the server.
    ToServer(usize),
    /// This number of the bytes in flight arrives at the client.
    ToClient(usize),
    /// The node has routed the oldest unrouted message.
    Routed,
    /// The connection breaks; the server may detect it only with the next one.
    Cut { server_notices: bool },
    /// A new connection, if there is none.
    Connect,
}

fn step() -> impl Strategy<Value = Step> {
    let qos = prop_oneof![
        1 => Just(QoS::AtMostOnce),
        3 => Just(QoS::AtLeastOnce),
        4 => Just(QoS::ExactlyOnce),
    ];
    let bytes = prop_oneof![4 => 1_usize..8, 4 => 20_usize..200, 1 => 2000_usize..9000];
    prop_oneof![
        5 => qos.clone().prop_map(Step::ClientPublishes),
        5 => qos.prop_map(Step::ServerDelivers),
        8 => bytes.clone().prop_map(Step::ToServer),
        8 => bytes.prop_map(Step::ToClient),
        5 => Just(Step::Routed),
        1 => any::<bool>().prop_map(|server_notices| Step::Cut { server_notices }),
        3 => Just(Step::Connect),
    ]
}

/// Messages in one direction; each payload starts with the number of the message.
#[derive(Debug, Default)]
struct Traffic {
    /// Additional bytes of every third message, all filled with the same value, which differs
    /// between messages.
    padding: usize,
    sent: Vec<QoS>,
    received: Vec<u32>,
}

impl Traffic {
    fn next(&mut self, qos: QoS) -> Vec<u8> {
        let number = u32::try_from(self.sent.len()).unwrap();
        self.sent.push(qos);
        self.payload(number)
    }

    fn receive(&mut self, payload: &[u8]) {
        let (number, _) = payload.split_first_chunk().unwrap();
        let number = u32::from_be_bytes(*number);
        assert!(
            payload == self.payload(number),
            "message {number} is damaged"
        );
        self.received.push(number);
    }

    fn payload(&self, number: u32) -> Vec<u8> {
        let number = number.to_be_bytes();
        let padding = if number[3] % 3 == 2 { self.padding } else { 0 };
        [&number[..], &vec![number[3]; padding]].concat()
    }

    fn check(&self, direction: &str) {
        let mut seen = vec![0; self.sent.len()];
        let mut newest = None;
        for number in &self.received {
            let qos = self.sent[*number as usize];
            let count = &mut seen[*number as usize];
            *count += 1;
            assert!(
                qos == QoS::AtLeastOnce || *count == 1,
                "{direction}: message {number} with {qos:?} arrived twice in {:?}",
                self.received
            );
            if *count == 1 && qos != QoS::AtMostOnce {
                assert!(
                    newest < Some(*number),
                    "{direction}: message {number} arrived out of order in {:?}",
                    self.received
                );
                newest = Some(*number);
            }
        }
        for (number, qos) in self.sent.iter().enumerate() {
            assert!(
                *qos == QoS::AtMostOnce || seen[number] > 0,
                "{direction}: message {number} with {qos:?} was lost"
            );
        }
    }
}

struct World {
    client: Client,
    session: Option<Session>,
    limits: Arc<Limits>,
    frames: FrameCache,
    is_linked: bool,
    /// Whether the server knows of this connection; until then it writes to the last one, where all
    /// bytes are lost.
    is_accepted: bool,
    to_server: Vec<u8>,
    to_client: Output,
    server_input: Vec<u8>,
    client_input: Vec<u8>,
    /// Messages that the client could not send yet.
    waiting: VecDeque<(QoS, Vec<u8>)>,
    /// Messages that the node has not routed yet.
    unrouted: VecDeque<(QoS, Option<PacketId>)>,
    up: Traffic,
    /// Number of the client's messages whose completion was reported.
    acknowledged: usize,
    down: Traffic,
}

const NOW: Time = Time::from_millis(1000);

impl World {
    fn new(version: Version, server_window: u16, client_window: u16) -> Self {
        let options = ClientOptions {
            version,
            clean_start: false,
            keep_alive: 0,
            session_expiry: u32::MAX,
            receive_maximum: client_window,
            topic_alias_maximum: client_window % 2,
            ..ClientOptions::default()
        };
        let limits = Limits {
            receive_maximum: server_window,
            inflight_max: client_window,
            ..Limits::default()
        };
        Self {
            client: Client::new(Arc::new(options), "pair"),
            session: None,
            limits: Arc::new(limits),
            frames: FrameCache::default(),
            is_linked: false,
            is_accepted: false,
            to_server: Vec::new(),
            to_client: Output::new(),
            server_input: Vec::new(),
            client_input: Vec::new(),
            waiting: VecDeque::new(),
            unrouted: VecDeque::new(),
            up: Traffic::default(),
            acknowledged: 0,
            // Too large to be copied for each receiver.
            down: Traffic {
                padding: 4000,
                ..Traffic::default()
            },
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::ClientPublishes(qos) => {
                let payload = self.up.next(qos);
                self.waiting.push_back((qos, payload));
                self.client_sends();
            }
            Step::ServerDelivers(qos) => self.server_delivers(qos),
            Step::ToServer(bytes) => self.carry_to_server(bytes),
            Step::ToClient(bytes) => self.carry_to_client(bytes),
            Step::Routed => self.route(),
            Step::Cut { server_notices } => self.cut(server_notices),
            Step::Connect => self.connect(),
        }
    }

    fn client_sends(&mut self) {
        while let Some((qos, payload)) = self.waiting.front() {
            let publish = Publish {
                dup: false,
                qos: *qos,
                retain: false,
                topic: "up",
                packet_id: None,
                properties: PublishProperties::default(),
                payload,
            };
            match self.client.publish(&publish, NOW, &mut self.to_server) {
                Ok(_) => self.waiting.pop_front(),
                Err(PublishError::WindowFull | PublishError::NotConnected) => return,
                Err(error) => panic!("{error}"),
            };
        }
    }

    fn server_delivers(&mut self, qos: QoS) {
        let Some(session) = &mut self.session else {
            return;
        };
        let payload = self.down.next(qos);
        let publication = Publication::new("down", &payload, qos);
        let options = DeliveryOptions {
            qos,
            retain: false,
            identifiers: &[],
            group: None,
            is_acknowledged: false,
        };
        let mut outgoing = Outgoing::new(publication, &mut self.frames);
        let mut lost = Output::new();
        let out = if self.is_accepted {
            &mut self.to_client
        } else {
            &mut lost
        };
        session.deliver(&mut outgoing, options, NOW, out);
    }

    fn carry_to_server(&mut self, bytes: usize) {
        let bytes = bytes.min(self.to_server.len());
        self.server_input.extend(self.to_server.drain(..bytes));
        let input = std::mem::take(&mut self.server_input);
        let mut rest = &input[..];
        let version = self.client.options().version;
        while let Some(frame) = frame::split(rest, u32::MAX).unwrap() {
            self.server_handles(&decode(frame, version).unwrap());
            rest = &rest[frame.len..];
        }
        self.server_input = rest.to_vec();
    }

    fn server_handles(&mut self, packet: &Packet<'_>) {
        if let Packet::Connect(connect) = packet {
            self.accept(connect);
            return;
        }
        let session = self.session.as_mut().unwrap();
        match session
            .handle_packet(*packet, NOW, &mut self.to_client)
            .unwrap()
        {
            Action::None => {}
            Action::Publish { publish, .. } => {
                self.up.receive(publish.payload);
                self.unrouted.push_back((publish.qos, publish.packet_id));
            }
            other => panic!("{other:?}"),
        }
    }

    fn accept(&mut self, connect: &Connect<'_>) {
        let handshake = Handshake::new(connect, "assigned", &self.limits).unwrap();
        let parts = ConnAckParts {
            session_present: self.session.is_some(),
            ..ConnAckParts::default()
        };
        let limits = &self.limits;
        let session = self
            .session
            .get_or_insert_with(|| Session::new(1, &handshake, limits));
        session.connect(handshake, parts, NOW, &mut self.to_client);
        self.is_accepted = true;
    }

    fn carry_to_client(&mut self, bytes: usize) {
        let bytes = bytes.min(self.to_client.len());
        self.client_input.extend(&self.to_client.to_vec()[..bytes]);
        self.to_client.advance(bytes);
        let input = std::mem::take(&mut self.client_input);
        let mut rest = &input[..];
        let version = self.client.options().version;
        while let Some(frame) = frame::split(rest, u32::MAX).unwrap() {
            let packet = decode(frame, version).unwrap();
            match self
                .client
                .handle_packet(packet, NOW, &mut self.to_server)
                .unwrap()
            {
                Event::Message { publish, .. } => self.down.receive(publish.payload),
                Event::None | Event::Released | Event::Connected(_) => {}
                Event::Acknowledged { reason, .. } => {
                    assert_eq!(reason, ReasonCode::Success);
                    self.acknowledged += 1;
                }
                other => panic!("{other:?}"),
            }
            rest = &rest[frame.len..];
        }
        self.client_input = rest.to_vec();
        self.client_sends();
    }

    fn route(&mut self) {
        let Some((qos, packet_id)) = self.unrouted.pop_front() else {
            return;
        };
        let mut lost = Output::new();
        let out = if self.is_accepted {
            &mut self.to_client
        } else {
            &mut lost
        };
        let session = self.session.as_mut().unwrap();
        session.publish_done(qos, packet_id, ReasonCode::Success, out);
    }

    fn cut(&mut self, server_notices: bool) {
        if !self.is_linked {
            return;
        }
        self.is_linked = false;
        for bytes in [
            &mut self.to_server,
            &mut self.server_input,
            &mut self.client_input,
        ] {
            bytes.clear();
        }
        self.to_client.clear();
        self.client.connection_lost();
        if let Some(session) = &mut self.session
            && server_notices
        {
            session.connection_lost(NOW);
        }
        self.is_accepted = false;
    }

    fn connect(&mut self) {
        if !self.is_linked {
            self.is_linked = true;
            self.client.connect(NOW, &mut self.to_server).unwrap();
        }
    }

    /// Runs an unbroken connection until no exchange is in progress.
    fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 10_000, "the exchange does not end");
            self.connect();
            self.carry_to_server(usize::MAX);
            while !self.unrouted.is_empty() {
                self.route();
            }
            if let Some(session) = &mut self.session {
                session.pump(NOW, usize::MAX, &mut self.to_client);
            }
            self.carry_to_client(usize::MAX);
            if self.to_server.is_empty() && self.to_client.is_empty() {
                break;
            }
        }
        assert!(self.waiting.is_empty(), "{:?}", self.waiting);
        assert_eq!(self.client.inflight(), 0);
        let expected = self
            .up
            .sent
            .iter()
            .filter(|qos| **qos != QoS::AtMostOnce)
            .count();
        assert_eq!(self.acknowledged, expected, "each message is done once");
        let (queued, _, inflight) = self.session.as_ref().unwrap().outbound().backlog();
        assert_eq!((queued, inflight), (0, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn delivery_guarantees_hold_over_a_connection_that_breaks(
        version in prop_oneof![Just(Version::V311), Just(Version::V5)],
        windows in (1_u16..5, 1_u16..5),
        steps in proptest::collection::vec(step(), 1..300),
    ) {
        let mut world = World::new(version, windows.0, windows.1);
        // A session exists from the start, so that the node may have messages at any time.
        world.connect();
        world.carry_to_server(usize::MAX);
        world.carry_to_client(usize::MAX);
        for step in steps {
            world.run(step);
        }
        world.settle();
        world.up.check("client to server");
        world.down.check("server to client");
    }
}
