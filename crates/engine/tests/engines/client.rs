//! A client that follows the specification: it acknowledges the messages that it reads, and resumes
//! its session.

use std::collections::{BTreeMap, BTreeSet};

use thrum_codec::packet::{
    Ack, Connect, Packet, Publish, Subscribe, SubscriptionOptions, SubscriptionRequest,
    SubscriptionRequests, TopicFilters, Unsubscribe,
};
use thrum_codec::properties::{
    AckProperties, ConnectProperties, PublishProperties, SubscribeProperties, UserProperties,
};
use thrum_codec::{PacketId, QoS, ReasonCode, TopicFilter, Version, decode, frame};

use crate::shell::{LinkId, Shell};

/// Session expiry interval in seconds, longer than a test takes.
const SESSION_EXPIRY: u32 = 3600;

/// A message that a client publishes or has read.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) topic: String,
    pub(crate) payload: String,
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    /// The message was read before, and its acknowledgement was lost.
    pub(crate) is_repeated: bool,
}

/// The state of one client.
#[derive(Debug)]
pub(crate) struct Client {
    id: String,
    version: Version,
    link: Option<LinkId>,
    /// Bytes of a packet that was received in part.
    partial: Vec<u8>,
    /// Payloads of the last messages with QoS 1, by packet identifier.
    acknowledged: BTreeMap<PacketId, String>,
    /// Packet identifiers of messages with QoS 2 without PUBREL.
    unreleased: BTreeSet<PacketId>,
    next_packet_id: u16,
    /// Packet identifiers of requests without an answer.
    pub(crate) unanswered: BTreeSet<PacketId>,
}

impl Client {
    pub(crate) fn new(id: &str, version: Version) -> Self {
        Self {
            id: id.to_owned(),
            version,
            link: None,
            partial: Vec::new(),
            acknowledged: BTreeMap::new(),
            unreleased: BTreeSet::new(),
            next_packet_id: 0,
            unanswered: BTreeSet::new(),
        }
    }

    /// Whether the client has a connection that it does not know to be closed.
    pub(crate) const fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    /// Connects, and abandons the current connection.
    pub(crate) fn connect(&mut self, shell: &mut Shell, worker: usize, clean_start: bool) {
        if clean_start {
            self.acknowledged.clear();
            self.unreleased.clear();
        }
        if let Some(link) = self.link {
            shell.abandon(link);
        }
        self.forget_link();
        let is_v5 = self.version == Version::V5;
        let connect = Connect {
            version: self.version,
            is_bridge: false,
            clean_start,
            keep_alive: 0,
            client_id: &self.id,
            will: None,
            username: None,
            password: None,
            properties: ConnectProperties {
                session_expiry: is_v5.then_some(SESSION_EXPIRY),
                ..ConnectProperties::default()
            },
        };
        self.link = Some(shell.connect(worker, &connect));
    }

    /// Closes the connection as a network failure does.
    pub(crate) fn cut(&mut self, shell: &mut Shell) {
        if let Some(link) = self.link {
            shell.cut(link);
        }
        self.forget_link();
    }

    /// Forgets the connection and everything in transit on it.
    pub(crate) fn forget_link(&mut self) {
        self.link = None;
        self.partial.clear();
        self.unanswered.clear();
    }

    pub(crate) fn publish(&mut self, shell: &mut Shell, message: &Message) {
        let packet_id = (message.qos != QoS::AtMostOnce).then(|| self.request());
        let publish = Publish {
            dup: false,
            qos: message.qos,
            retain: message.retain,
            topic: &message.topic,
            packet_id,
            properties: PublishProperties::default(),
            payload: message.payload.as_bytes(),
        };
        self.send(shell, &Packet::Publish(publish));
    }

    pub(crate) fn subscribe(&mut self, shell: &mut Shell, filter: &str, qos: QoS) {
        let requests = [SubscriptionRequest {
            filter: TopicFilter::parse(filter).expect("it is valid"),
            options: SubscriptionOptions {
                qos,
                ..SubscriptionOptions::default()
            },
        }];
        let subscribe = Subscribe {
            packet_id: self.request(),
            properties: SubscribeProperties::default(),
            requests: SubscriptionRequests::Listed(&requests),
        };
        self.send(shell, &Packet::Subscribe(subscribe));
    }

    pub(crate) fn unsubscribe(&mut self, shell: &mut Shell, filter: &str) {
        let filters = [TopicFilter::parse(filter).expect("it is valid")];
        let unsubscribe = Unsubscribe {
            packet_id: self.request(),
            user: UserProperties::default(),
            filters: TopicFilters::Listed(&filters),
        };
        self.send(shell, &Packet::Unsubscribe(unsubscribe));
    }

    /// Returns a packet identifier for a request whose answer is awaited.
    fn request(&mut self) -> PacketId {
        self.next_packet_id += 1;
        let id = PacketId::new(self.next_packet_id).expect("a test has fewer requests");
        self.unanswered.insert(id);
        id
    }

    fn send(&self, shell: &mut Shell, packet: &Packet<'_>) {
        if let Some(link) = self.link {
            shell.send(link, packet);
        }
    }

    /// Reads and answers the received packets; returns the messages among them.
    pub(crate) fn read(&mut self, shell: &mut Shell) -> Vec<Message> {
        let Some(link) = self.link else {
            return Vec::new();
        };
        let mut bytes = std::mem::take(&mut self.partial);
        bytes.extend(shell.receive(link));
        let mut messages = Vec::new();
        let mut at = 0;
        while let Some(frame) = frame::split(&bytes[at..], u32::MAX).expect("it is well formed") {
            at += frame.len;
            let packet = decode(frame, self.version).expect("it is well formed");
            messages.extend(self.take(shell, &packet));
        }
        self.partial = bytes.split_off(at);
        if !shell.is_open(link) {
            self.forget_link();
        }
        messages
    }

    fn take(&mut self, shell: &mut Shell, packet: &Packet<'_>) -> Option<Message> {
        match packet {
            Packet::Publish(publish) => return self.take_publish(shell, publish),
            Packet::PubRel(ack) => {
                self.unreleased.remove(&ack.packet_id);
                self.send(shell, &Packet::PubComp(answer(ack.packet_id)));
            }
            Packet::PubRec(ack) => self.send(shell, &Packet::PubRel(answer(ack.packet_id))),
            Packet::PubAck(ack) | Packet::PubComp(ack) => {
                self.unanswered.remove(&ack.packet_id);
            }
            Packet::SubAck(suback) | Packet::UnsubAck(suback) => {
                self.unanswered.remove(&suback.packet_id);
            }
            _ => {}
        }
        None
    }

    fn take_publish(&mut self, shell: &mut Shell, publish: &Publish<'_>) -> Option<Message> {
        let payload = String::from_utf8(publish.payload.to_vec()).expect("it is text");
        let mut is_repeated = false;
        match (publish.qos, publish.packet_id) {
            (QoS::AtLeastOnce, Some(id)) => {
                self.send(shell, &Packet::PubAck(answer(id)));
                let before = self.acknowledged.insert(id, payload.clone());
                is_repeated = publish.dup && before.as_ref() == Some(&payload);
            }
            (QoS::ExactlyOnce, Some(id)) => {
                self.send(shell, &Packet::PubRec(answer(id)));
                if !self.unreleased.insert(id) {
                    return None;
                }
            }
            _ => {}
        }
        Some(Message {
            topic: publish.topic.to_owned(),
            payload,
            qos: publish.qos,
            retain: publish.retain,
            is_repeated,
        })
    }
}

fn answer<'a>(packet_id: PacketId) -> Ack<'a> {
    Ack {
        packet_id,
        reason: ReasonCode::Success,
        properties: AckProperties::default(),
    }
}
