//! A session and a conforming client over a connection that breaks: the guarantees of QoS 1 and QoS
//! 2 in both directions.

use alloc::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;

use super::*;

const RECEIVE_MAXIMUM: u16 = 3;
const INFLIGHT_MAX: u16 = 4;

/// One event.
#[derive(Clone, Debug)]
enum Step {
    /// The node has a message for the client.
    Deliver(QoS),
    /// The client publishes.
    Publish(QoS),
    /// The server reads some of what the client wrote.
    ServerReads(usize),
    /// The client reads some of what the server wrote.
    ClientReads(usize),
    /// The client sends one of the acknowledgements it owes.
    ClientAnswers(usize),
    /// The node reports the outcome of a publish.
    NodeDone,
    /// The connection breaks; bytes that were not read are lost.
    Break,
    /// The client connects with this receive maximum.
    Connect(u16),
    Congested(bool),
    Pump(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let qos = || prop_oneof![Just(QOS1), Just(QOS2)];
    let step = prop_oneof![
        6 => qos().prop_map(Step::Deliver),
        6 => qos().prop_map(Step::Publish),
        6 => (1..4_usize).prop_map(Step::ServerReads),
        6 => (1..4_usize).prop_map(Step::ClientReads),
        8 => (0..8_usize).prop_map(Step::ClientAnswers),
        6 => Just(Step::NodeDone),
        2 => Just(Step::Break),
        3 => (1..5_u16).prop_map(Step::Connect),
        1 => any::<bool>().prop_map(Step::Congested),
        1 => (0..40_usize).prop_map(Step::Pump),
    ];
    proptest::collection::vec(step, 1..120)
}

/// The client's state of a message that it published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    New,
    Sent(u16),
    Released(u16),
    Done,
}

/// A client that conforms and keeps its state across connections.
#[derive(Debug, Default)]
struct Client {
    published: Vec<(QoS, Sending)>,
    last_id: u16,
    /// Number of messages that it may still send, counted by the specification: every PUBACK and
    /// PUBCOMP adds one.
    quota: u16,
    /// Messages of earlier connections for which this one has no room yet.
    to_send_again: VecDeque<usize>,
    /// Numbers of the received messages, in order, by QoS.
    got: [Vec<usize>; 3],
    /// QoS 2 identifiers between PUBREC and PUBREL.
    received: BTreeSet<u16>,
    /// Identifiers sent on this connection that have no PUBACK or PUBCOMP.
    unanswered: BTreeSet<u16>,
    receive_maximum: u16,
    owed: Vec<Packet<'static>>,
}

struct World {
    version: Version,
    peer: Peer,
    client: Client,
    connected: bool,
    to_client: Output,
    to_server: VecDeque<Vec<u8>>,
    delivered: Vec<QoS>,
    routing: VecDeque<(QoS, u16)>,
    /// Numbers of the messages that the node received, in order.
    routed: Vec<usize>,
}

impl World {
    fn new(version: Version) -> Self {
        let limits = Limits {
            receive_maximum: RECEIVE_MAXIMUM,
            inflight_max: INFLIGHT_MAX,
            ..Limits::default()
        };
        let (mut peer, _) = Peer::with(limits, &persistent(version));
        peer.lose();
        Self {
            version,
            peer,
            client: Client::default(),
            connected: false,
            to_client: Output::new(),
            to_server: VecDeque::new(),
            delivered: Vec::new(),
            routing: VecDeque::new(),
            routed: Vec::new(),
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Deliver(qos) => self.deliver(qos),
            Step::Publish(qos) => {
                self.client.published.push((qos, Sending::New));
                self.client_sends();
            }
            Step::ServerReads(count) => {
                (0..count).for_each(|_| self.server_reads());
            }
            Step::ClientReads(count) => {
                (0..count).for_each(|_| self.client_reads());
            }
            Step::ClientAnswers(pick) => self.client_answers(pick),
            Step::NodeDone => self.node_done(),
            Step::Break => self.break_off(),
            Step::Connect(receive_maximum) => self.connect(receive_maximum),
            Step::Congested(congested) => self.peer.session.link_mut().set_congested(congested),
            Step::Pump(bytes_max) => {
                let bytes_max = self.to_client.len() + bytes_max;
                self.peer
                    .session
                    .pump(self.peer.now, bytes_max, &mut self.to_client);
            }
        }
    }

    fn deliver(&mut self, qos: QoS) {
        let number = self.delivered.len().to_string();
        self.delivered.push(qos);
        let mut outgoing = Outgoing::new(publication("t", &number), &mut self.peer.frames);
        let session = &mut self.peer.session;
        let delivered = session.deliver(
            &mut outgoing,
            options(qos),
            self.peer.now,
            &mut self.to_client,
        );
        assert!(matches!(delivered, Delivered::Sent | Delivered::Queued));
    }

    fn server_reads(&mut self) {
        let Some(wire) = self.to_server.pop_front() else {
            return;
        };
        let packet = decode(split(&wire, u32::MAX).unwrap().unwrap(), self.version).unwrap();
        let session = &mut self.peer.session;
        let action = session.handle_packet(packet, self.peer.now, &mut self.to_client);
        if let Action::Publish { publish, .. } = action.expect("the client keeps the rules") {
            let packet_id = publish.packet_id.unwrap().as_u16();
            self.routing.push_back((publish.qos, packet_id));
            self.routed.push(number(publish.payload));
        }
    }

    fn node_done(&mut self) {
        if let Some((qos, packet_id)) = self.routing.pop_front() {
            let outcome = ReasonCode::Success;
            let session = &mut self.peer.session;
            session.publish_done(qos, PacketId::new(packet_id), outcome, &mut self.to_client);
        }
    }

    fn break_off(&mut self) {
        if self.connected {
            self.connected = false;
            self.peer.session.connection_lost(self.peer.now);
        }
        self.to_server.clear();
        self.to_client.clear();
        self.client.owed.clear();
    }

    fn connect(&mut self, receive_maximum: u16) {
        if self.connected {
            return;
        }
        let mut connect = persistent(self.version);
        self.client.receive_maximum = INFLIGHT_MAX;
        if self.version == Version::V5 {
            connect.properties.receive_maximum = NonZeroU16::new(receive_maximum);
            self.client.receive_maximum = receive_maximum.min(INFLIGHT_MAX);
        }
        self.client.unanswered.clear();
        self.peer.reconnect_into(&connect, &mut self.to_client);
        let connack = split(&self.to_client.to_vec(), u32::MAX)
            .unwrap()
            .unwrap()
            .len;
        self.to_client.advance(connack);
        self.connected = true;
        self.client_sends_again();
        self.client_sends();
    }

    fn write(&mut self, packet: &Packet<'_>) {
        let mut wire = Vec::new();
        encode(packet, self.version, &mut wire).unwrap();
        self.to_server.push_back(wire);
    }

    fn quota_max(&self) -> u16 {
        match self.version {
            Version::V5 => RECEIVE_MAXIMUM,
            Version::V31 | Version::V311 => 100,
        }
    }

    fn client_sends_again(&mut self) {
        self.client.quota = self.quota_max();
        self.client.to_send_again.clear();
        for message in 0..self.client.published.len() {
            match self.client.published[message].1 {
                Sending::Released(packet_id) => self.write(&pubrel(packet_id)),
                Sending::Sent(_) => self.client.to_send_again.push_back(message),
                Sending::New | Sending::Done => {}
            }
        }
    }

    fn client_sends(&mut self) {
        while self.connected
            && self.client.quota > 0
            && let Some(message) = self.client.to_send_again.pop_front()
        {
            self.client_publish(message, true);
        }
        while let Some(message) = self.next_new().filter(|_| self.connected) {
            self.client.last_id = self.client.last_id % 12 + 1;
            let packet_id = self.client.last_id;
            let in_use = |(_, sending): &(QoS, Sending)| {
                [Sending::Sent(packet_id), Sending::Released(packet_id)].contains(sending)
            };
            if !self.client.published.iter().any(in_use) {
                self.client.published[message].1 = Sending::Sent(packet_id);
                self.client_publish(message, false);
            }
        }
    }

    fn next_new(&self) -> Option<usize> {
        let published = &self.client.published;
        let open = published
            .iter()
            .filter(|(_, sending)| matches!(sending, Sending::Sent(_) | Sending::Released(_)));
        let has_identifier = open.count() < 12;
        let is_new = |(_, sending): &(QoS, Sending)| *sending == Sending::New;
        let next = published.iter().position(is_new);
        next.filter(|_| self.client.quota > 0 && has_identifier)
    }

    fn client_publish(&mut self, message: usize, dup: bool) {
        self.client.quota -= 1;
        let payload = message.to_string();
        let (qos, Sending::Sent(packet_id)) = self.client.published[message] else {
            panic!("only messages in flight are sent");
        };
        let packet = Publish {
            dup,
            ..publish(qos, packet_id, "t", &payload)
        };
        self.write(&Packet::Publish(packet));
    }

    fn client_reads(&mut self) {
        let wire = self.to_client.to_vec();
        let Some(frame) = split(&wire, u32::MAX).unwrap() else {
            return;
        };
        self.to_client.advance(frame.len);
        match decode(frame, self.version).unwrap() {
            Packet::Publish(publish) => self.client_gets(&publish),
            Packet::PubRel(ack) => {
                let packet_id = ack.packet_id.as_u16();
                assert_eq!(ack.reason, ReasonCode::Success);
                self.client.received.remove(&packet_id);
                self.client.owed.push(pubcomp(packet_id));
            }
            Packet::PubAck(ack) => self.client_learns(ack.packet_id, QOS1, Sending::Done),
            Packet::PubRec(ack) => {
                let packet_id = ack.packet_id;
                self.client_learns(packet_id, QOS2, Sending::Released(packet_id.as_u16()));
                self.write(&pubrel(packet_id.as_u16()));
            }
            Packet::PubComp(ack) => self.client_completes(ack.packet_id.as_u16()),
            other => panic!("unexpected {other:?}"),
        }
    }

    fn client_gets(&mut self, publish: &Publish<'_>) {
        let packet_id = publish.packet_id.unwrap().as_u16();
        let client = &mut self.client;
        client.unanswered.insert(packet_id);
        // [MQTT-3.3.4-9] [MQTT-4.9.0-2]
        assert!(client.unanswered.len() <= usize::from(client.receive_maximum));
        let is_new = publish.qos == QOS1 || client.received.insert(packet_id);
        if is_new {
            client.got[usize::from(publish.qos.as_u8())].push(number(publish.payload));
        }
        client.owed.push(if publish.qos == QOS1 {
            puback(packet_id)
        } else {
            pubrec(packet_id)
        });
    }

    fn client_answers(&mut self, pick: usize) {
        if self.client.owed.is_empty() {
            return;
        }
        let packet = self.client.owed.remove(pick % self.client.owed.len());
        if let Packet::PubAck(ack) | Packet::PubComp(ack) = &packet {
            self.client.unanswered.remove(&ack.packet_id.as_u16());
        }
        self.write(&packet);
    }

    /// Checks that an acknowledgement is for a message that the node has, and arrives once.
    fn client_learns(&mut self, packet_id: PacketId, qos: QoS, then: Sending) {
        let wanted = (qos, Sending::Sent(packet_id.as_u16()));
        let message = self
            .client
            .published
            .iter()
            .position(|entry| *entry == wanted)
            .expect("an acknowledgement answers a message of this connection");
        assert!(
            self.routed.contains(&message),
            "acknowledged, but the node does not have it"
        );
        self.client.published[message].1 = then;
        if then == Sending::Done {
            self.client_gains_room();
        }
    }

    fn client_completes(&mut self, packet_id: u16) {
        let wanted = (QOS2, Sending::Released(packet_id));
        let published = &mut self.client.published;
        let message = published.iter().position(|entry| *entry == wanted).unwrap();
        published[message].1 = Sending::Done;
        self.client_gains_room();
    }

    fn client_gains_room(&mut self) {
        self.client.quota = (self.client.quota + 1).min(self.quota_max());
        self.client_sends();
    }

    /// Lets all exchanges complete on one last connection.
    fn finish(&mut self) {
        self.break_off();
        self.connect(4);
        for _ in 0..10_000 {
            let is_quiet = self.to_client.is_empty()
                && self.to_server.is_empty()
                && self.routing.is_empty()
                && self.client.owed.is_empty();
            if is_quiet {
                return;
            }
            self.server_reads();
            self.node_done();
            self.client_reads();
            self.client_answers(0);
        }
        panic!("the exchanges do not complete");
    }

    fn check(&self) {
        assert_eq!(self.peer.session.outbound().backlog(), (0, 0, 0));
        let all_done = |(_, sending): &(QoS, Sending)| *sending == Sending::Done;
        assert!(self.client.published.iter().all(all_done));
        for qos in [QOS1, QOS2] {
            let of_qos = |list: &[QoS]| -> Vec<usize> {
                (0..list.len())
                    .filter(|&number| list[number] == qos)
                    .collect()
            };
            let got = &self.client.got[usize::from(qos.as_u8())];
            check_arrivals(qos, &of_qos(&self.delivered), got);
            let published: Vec<QoS> = self.client.published.iter().map(|(qos, _)| *qos).collect();
            let expected = of_qos(&published);
            let routed: Vec<usize> = self
                .routed
                .iter()
                .copied()
                .filter(|number| published[*number] == qos)
                .collect();
            check_arrivals(qos, &expected, &routed);
        }
    }
}

/// QoS 1: all, in order except for repetitions. QoS 2: all, in order, once.
fn check_arrivals(qos: QoS, expected: &[usize], arrived: &[usize]) {
    let mut seen = BTreeSet::new();
    let first: Vec<usize> = arrived
        .iter()
        .copied()
        .filter(|number| seen.insert(*number))
        .collect();
    assert_eq!(first, expected);
    if qos == QOS2 {
        assert_eq!(
            arrived.len(),
            expected.len(),
            "delivered more than once: {arrived:?}"
        );
    }
}

fn number(payload: &[u8]) -> usize {
    core::str::from_utf8(payload).unwrap().parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    // [MQTT-4.3.2-3] [MQTT-4.3.2-4] [MQTT-4.3.3-3] [MQTT-4.3.3-5] [MQTT-4.3.3-10] [MQTT-4.4.0-1]
    // [MQTT-4.6.0-5]
    // [MQTT3-4.3.2-1] [MQTT3-4.3.2-2] [MQTT3-4.3.3-1] [MQTT3-4.3.3-2] [MQTT3-4.4.0-1]
    // [MQTT3-4.6.0-6]
    #[test]
    fn delivery_guarantees_hold_across_broken_connections(
        version in prop_oneof![Just(Version::V31), Just(Version::V311), Just(Version::V5)],
        steps in steps(),
    ) {
        let mut world = World::new(version);
        for step in &steps {
            world.step(step);
        }
        world.finish();
        world.check();
    }
}
