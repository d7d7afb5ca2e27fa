//! A node and clients that a test controls packet by packet.

use std::time::Duration;

use thrum_codec::packet::{
    Ack, Connect, Disconnect, Packet, Publish, Subscribe, SubscriptionOptions, SubscriptionRequest,
    SubscriptionRequests, TopicFilters, Unsubscribe, Will,
};
use thrum_codec::properties::{
    AckProperties, ConnectProperties, DisconnectProperties, PublishProperties, SubscribeProperties,
    UserProperties, WillProperties,
};
use thrum_codec::{PacketId, QoS, ReasonCode, TopicFilter, Version, decode, frame};
use thrum_engine::node::metrics::Counter;
use thrum_storage::disk::sim::SimStorage;

use crate::shell::{LinkId, Plan, Shell};

/// The number of a client.
pub(crate) type Peer = usize;

/// A session is kept for longer than a test takes.
const SESSION_EXPIRY: u32 = 100_000;

/// A message that a client has received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedMessage {
    pub(crate) topic: String,
    pub(crate) payload: String,
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    pub(crate) dup: bool,
    pub(crate) packet_id: Option<PacketId>,
    pub(crate) identifiers: Vec<u32>,
    pub(crate) message_expiry: Option<u32>,
    pub(crate) user: Vec<(String, String)>,
}

/// Another packet that a client has received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Connected { session_present: bool },
    Puback(ReasonCode),
    Pubrec(ReasonCode),
    Pubcomp,
    Suback(Vec<ReasonCode>, bool),
    Unsuback(Vec<ReasonCode>),
    Pong,
    Disconnected(ReasonCode),
}

/// One client.
#[derive(Debug)]
struct TestClient {
    link: LinkId,
    version: Version,
    /// It acknowledges what it reads.
    acknowledges: bool,
    partial: Vec<u8>,
    last_id: u16,
    messages: Vec<ReceivedMessage>,
    answers: Vec<Answer>,
}

/// A node and its clients.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) shell: Shell,
    clients: Vec<TestClient>,
}

/// A PUBLISH that is not to be retained.
pub(crate) fn publish<'a>(topic: &'a str, payload: &'a str, qos: QoS) -> Publish<'a> {
    Publish {
        dup: false,
        qos,
        retain: false,
        topic,
        packet_id: None,
        properties: PublishProperties::default(),
        payload: payload.as_bytes(),
    }
}

/// A PUBLISH whose message expires after that time.
pub(crate) fn publish_expiring<'a>(topic: &'a str, payload: &'a str, seconds: u32) -> Publish<'a> {
    Publish {
        properties: PublishProperties {
            message_expiry: Some(seconds),
            ..PublishProperties::default()
        },
        ..publish(topic, payload, QoS::AtLeastOnce)
    }
}

/// The CONNECT of a client whose will has its client identifier as payload and a delay of 10 s.
pub(crate) fn connect_with_will(client_id: &str) -> Connect<'_> {
    Connect {
        will: Some(Will {
            topic: "wills",
            payload: client_id.as_bytes(),
            qos: QoS::AtLeastOnce,
            retain: false,
            properties: WillProperties {
                will_delay: Some(10),
                ..WillProperties::default()
            },
        }),
        ..connect(client_id)
    }
}

/// The CONNECT of a client that keeps its session.
pub(crate) fn connect(client_id: &str) -> Connect<'_> {
    Connect {
        version: Version::V5,
        is_bridge: false,
        clean_start: false,
        keep_alive: 0,
        client_id,
        will: None,
        username: None,
        password: None,
        properties: ConnectProperties {
            session_expiry: Some(SESSION_EXPIRY),
            ..ConnectProperties::default()
        },
    }
}

impl Node {
    pub(crate) fn new(workers: usize) -> Self {
        Self::planned(workers, |_| ())
    }

    pub(crate) fn planned(workers: usize, change: impl FnOnce(&mut Plan)) -> Self {
        Self::on(workers, None, change)
    }

    /// A node with a disk.
    pub(crate) fn durable(workers: usize, change: impl FnOnce(&mut Plan)) -> Self {
        Self::on(workers, Some(SimStorage::new(1)), change)
    }

    fn on(workers: usize, disk: Option<SimStorage>, change: impl FnOnce(&mut Plan)) -> Self {
        let mut plan = Plan::new(workers, disk);
        change(&mut plan);
        let now = thrum_protocol::Time::from_millis(1_000_000_000);
        Self {
            shell: Shell::begin(plan, now),
            clients: Vec::new(),
        }
    }

    /// Cuts the power of the machine and restarts the node, without any connection.
    pub(crate) fn crash(self) -> Self {
        Self {
            shell: self.shell.crash(),
            clients: Vec::new(),
        }
    }

    /// A client of version 5.0 that keeps its session.
    pub(crate) fn join(&mut self, worker: usize, client_id: &str) -> Peer {
        self.join_as(worker, &connect(client_id))
    }

    /// A client of version 3.1.1 with a clean session.
    pub(crate) fn join_old(&mut self, worker: usize, client_id: &str) -> Peer {
        let mut old = connect(client_id);
        old.version = Version::V311;
        old.properties.session_expiry = None;
        self.join_as(worker, &old)
    }

    pub(crate) fn join_as(&mut self, worker: usize, connect: &Connect<'_>) -> Peer {
        let peer = self.clients.len();
        let link = self.shell.connect(worker, connect);
        self.clients.push(TestClient {
            link,
            version: connect.version,
            acknowledges: true,
            partial: Vec::new(),
            last_id: 0,
            messages: Vec::new(),
            answers: Vec::new(),
        });
        self.settle();
        peer
    }

    /// A client that has subscribed to the filter with QoS 1, and acknowledges by hand.
    pub(crate) fn subscriber(&mut self, worker: usize, client_id: &str, filter: &str) -> Peer {
        let peer = self.join(worker, client_id);
        self.subscribe(peer, filter, QoS::AtLeastOnce);
        self.clients[peer].acknowledges = false;
        self.answers(peer);
        peer
    }

    pub(crate) fn set_acknowledges(&mut self, peer: Peer, acknowledges: bool) {
        self.clients[peer].acknowledges = acknowledges;
    }

    pub(crate) fn link(&self, peer: Peer) -> LinkId {
        self.clients[peer].link
    }

    pub(crate) fn set_slow(&mut self, peer: Peer, is_slow: bool) {
        let link = self.link(peer);
        self.shell.set_slow(link, is_slow);
        self.settle();
    }

    pub(crate) fn is_held(&self, peer: Peer) -> bool {
        self.shell.is_held(self.link(peer))
    }

    pub(crate) fn cut(&mut self, peer: Peer) {
        let link = self.link(peer);
        self.shell.cut(link);
        self.settle();
    }

    /// The same without the turns that follow it.
    pub(crate) fn cut_now(&mut self, peer: Peer) {
        let link = self.link(peer);
        self.shell.cut(link);
    }

    /// Reads and answers packets of a client, without a turn; returns those that are not messages.
    pub(crate) fn read(&mut self, peer: Peer) -> Vec<Answer> {
        self.read_packets(peer);
        self.answers(peer)
    }

    /// Sends DISCONNECT; with `with_will` so that the will is published.
    pub(crate) fn leave(&mut self, peer: Peer, with_will: bool) {
        let reason = if with_will {
            ReasonCode::DisconnectWithWill
        } else {
            ReasonCode::Success
        };
        let properties = DisconnectProperties::default();
        self.send(peer, &Packet::Disconnect(Disconnect { reason, properties }));
        self.settle();
    }

    pub(crate) fn send(&mut self, peer: Peer, packet: &Packet<'_>) {
        let link = self.link(peer);
        self.shell.send(link, packet);
    }

    fn next_id(&mut self, peer: Peer) -> PacketId {
        let last = &mut self.clients[peer].last_id;
        *last += 1;
        PacketId::new(*last).expect("a test has fewer requests")
    }

    pub(crate) fn subscribe(&mut self, peer: Peer, filter: &str, qos: QoS) {
        let options = SubscriptionOptions {
            qos,
            ..SubscriptionOptions::default()
        };
        self.subscribe_with(peer, &[filter], options, None);
    }

    pub(crate) fn subscribe_with(
        &mut self,
        peer: Peer,
        filters: &[&str],
        options: SubscriptionOptions,
        identifier: Option<u32>,
    ) {
        let requests: Vec<SubscriptionRequest<'_>> = filters
            .iter()
            .map(|filter| SubscriptionRequest {
                filter: TopicFilter::parse(filter).expect("it is valid"),
                options,
            })
            .collect();
        let packet_id = self.next_id(peer);
        self.send(
            peer,
            &Packet::Subscribe(Subscribe {
                packet_id,
                properties: SubscribeProperties {
                    subscription_identifier: identifier,
                    ..SubscribeProperties::default()
                },
                requests: SubscriptionRequests::Listed(&requests),
            }),
        );
        self.settle();
    }

    pub(crate) fn unsubscribe(&mut self, peer: Peer, filters: &[&str]) {
        let filters = filters
            .iter()
            .map(|filter| TopicFilter::parse(filter).expect("it is valid"));
        let filters: Vec<TopicFilter<'_>> = filters.collect();
        let packet_id = self.next_id(peer);
        self.send(
            peer,
            &Packet::Unsubscribe(Unsubscribe {
                packet_id,
                user: UserProperties::default(),
                filters: TopicFilters::Listed(&filters),
            }),
        );
        self.settle();
    }

    /// A PUBLISH without the turns that follow it.
    pub(crate) fn post(&mut self, peer: Peer, mut publish: Publish<'_>) {
        if publish.qos != QoS::AtMostOnce {
            publish.packet_id = Some(self.next_id(peer));
        }
        self.send(peer, &Packet::Publish(publish));
    }

    /// A PUBLISH and all that it leads to.
    pub(crate) fn publish(&mut self, peer: Peer, topic: &str, payload: &str, qos: QoS) {
        self.post(peer, publish(topic, payload, qos));
        self.settle();
    }

    /// Sends a PUBLISH to its worker; returns whether that writes to the disk.
    pub(crate) fn writes(&mut self, worker: usize, peer: Peer, publish: Publish<'_>) -> bool {
        self.post(peer, publish);
        self.shell.read_inputs(worker);
        let writes = self.shell.engine(worker).core.durable.has_changes();
        self.settle();
        writes
    }

    pub(crate) fn retain(&mut self, peer: Peer, topic: &str, payload: &str) {
        let publish = publish(topic, payload, QoS::AtLeastOnce);
        self.post(
            peer,
            Publish {
                retain: true,
                ..publish
            },
        );
        self.settle();
    }

    pub(crate) fn acknowledge(&mut self, peer: Peer, message: &ReceivedMessage) {
        self.confirm(peer, message);
        self.settle();
    }

    /// The same without the turns that follow it.
    pub(crate) fn confirm(&mut self, peer: Peer, message: &ReceivedMessage) {
        let packet_id = message.packet_id.expect("it wants an answer");
        self.send(peer, &Packet::PubAck(ack(packet_id)));
    }

    /// Time passes, and what falls due happens.
    pub(crate) fn advance_time(&mut self, time: Duration) {
        self.shell.advance_time(time);
        self.settle();
    }

    /// Runs turns of all workers, and lets clients read, until nothing more can happen.
    pub(crate) fn settle(&mut self) {
        loop {
            self.shell.settle();
            let mut is_over = true;
            for peer in 0..self.clients.len() {
                is_over &= !self.read_packets(peer);
            }
            if is_over {
                return;
            }
        }
    }

    /// Reads and answers the packets that have arrived; true if the client has answered one.
    fn read_packets(&mut self, peer: Peer) -> bool {
        let client = &mut self.clients[peer];
        let mut bytes = std::mem::take(&mut client.partial);
        bytes.extend(self.shell.receive(client.link));
        let mut at = 0;
        let mut has_sent = false;
        while let Some(frame) = frame::split(&bytes[at..], u32::MAX).expect("it is well formed") {
            at += frame.len;
            let packet = decode(frame, self.clients[peer].version).expect("it is well formed");
            has_sent |= self.take(peer, &packet);
        }
        self.clients[peer].partial = bytes.split_off(at);
        has_sent
    }

    fn take(&mut self, peer: Peer, packet: &Packet<'_>) -> bool {
        let client = &mut self.clients[peer];
        let answer = match packet {
            Packet::Publish(publish) => return self.take_publish(peer, publish),
            Packet::PubRel(pubrel) => {
                self.send(peer, &Packet::PubComp(ack(pubrel.packet_id)));
                return true;
            }
            Packet::PubRec(pubrec) => {
                client.answers.push(Answer::Pubrec(pubrec.reason));
                let is_taken = (pubrec.reason as u8) < 0x80;
                if is_taken {
                    self.send(peer, &Packet::PubRel(ack(pubrec.packet_id)));
                }
                return is_taken;
            }
            Packet::ConnAck(connack) => Answer::Connected {
                session_present: connack.session_present,
            },
            Packet::PubAck(puback) => Answer::Puback(puback.reason),
            Packet::PubComp(_) => Answer::Pubcomp,
            Packet::SubAck(suback) => Answer::Suback(
                suback.codes.iter().collect(),
                suback.properties.reason_string.is_some(),
            ),
            Packet::UnsubAck(unsuback) => Answer::Unsuback(unsuback.codes.iter().collect()),
            Packet::PingResp => Answer::Pong,
            Packet::Disconnect(disconnect) => Answer::Disconnected(disconnect.reason),
            other => panic!("a server does not send {other:?}"),
        };
        client.answers.push(answer);
        false
    }

    fn take_publish(&mut self, peer: Peer, publish: &Publish<'_>) -> bool {
        let client = &mut self.clients[peer];
        let identifiers = &publish.properties.subscription_identifiers;
        let user = publish.properties.user.iter();
        client.messages.push(ReceivedMessage {
            topic: publish.topic.to_owned(),
            payload: String::from_utf8(publish.payload.to_vec()).expect("it is text"),
            qos: publish.qos,
            retain: publish.retain,
            dup: publish.dup,
            packet_id: publish.packet_id,
            identifiers: identifiers.iter().collect(),
            message_expiry: publish.properties.message_expiry,
            user: user
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        });
        let Some(packet_id) = publish.packet_id.filter(|_| client.acknowledges) else {
            return false;
        };
        let answer = ack(packet_id);
        let packet = if publish.qos == QoS::AtLeastOnce {
            Packet::PubAck(answer)
        } else {
            Packet::PubRec(answer)
        };
        self.send(peer, &packet);
        true
    }

    /// Returns the messages received since the last call.
    pub(crate) fn messages(&mut self, peer: Peer) -> Vec<ReceivedMessage> {
        std::mem::take(&mut self.clients[peer].messages)
    }

    /// Their payloads.
    pub(crate) fn payloads(&mut self, peer: Peer) -> Vec<String> {
        let messages = self.messages(peer).into_iter();
        messages.map(|message| message.payload).collect()
    }

    /// All that waits for a client that acknowledges by hand: it takes one after the other.
    pub(crate) fn drain(&mut self, peer: Peer) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let messages = self.messages(peer);
            if messages.is_empty() {
                return all;
            }
            for message in messages.iter().filter(|one| one.packet_id.is_some()) {
                self.acknowledge(peer, message);
            }
            all.extend(messages.into_iter().map(|message| message.payload));
        }
    }

    /// Returns the other packets received since the last call.
    pub(crate) fn answers(&mut self, peer: Peer) -> Vec<Answer> {
        std::mem::take(&mut self.clients[peer].answers)
    }

    pub(crate) fn count(&self, counter: Counter) -> u64 {
        self.shell.node.metrics.total(counter)
    }
}

fn ack<'a>(packet_id: PacketId) -> Ack<'a> {
    Ack {
        packet_id,
        reason: ReasonCode::Success,
        properties: AckProperties::default(),
    }
}
