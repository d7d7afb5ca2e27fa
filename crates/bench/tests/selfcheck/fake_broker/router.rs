//! The receivers of a message, and the number of copies.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::num::NonZeroU16;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use thrum_bench::clock;
use thrum_codec::packet::{Packet, PacketId, Publish, SubscriptionRequest};
use thrum_codec::properties::PublishProperties;
use thrum_codec::{QoS, Version, encode, topic};
use thrum_load::mark::Mark;

use super::delayed_delivery::Order;
use super::{Change, Fate, Laws};

/// A message that outlives its packet.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// What the filters of subscriptions are matched with.
    topic: String,
    delivered_topic: String,
    payload: Vec<u8>,
    qos: QoS,
    retain: bool,
}

/// The state of the broker that all connections share.
pub(super) struct Router {
    pub(super) laws: Laws,
    delivery: SyncSender<Order>,
    /// By filter without share prefix.
    subscriptions: BTreeMap<String, Subscription>,
    /// By publisher: the message that waits for the next one.
    delayed: BTreeMap<u32, Message>,
    first_publish_ns: Option<u64>,
}

#[derive(Default)]
struct Subscription {
    members: Vec<Member>,
    is_shared: bool,
    next_member: usize,
}

struct Member {
    connection: u64,
    stream: TcpStream,
    version: Version,
    qos: QoS,
    next_id: u16,
}

impl Router {
    pub(super) fn new(laws: Laws, delivery: SyncSender<Order>) -> Self {
        Self {
            laws,
            delivery,
            subscriptions: BTreeMap::new(),
            delayed: BTreeMap::new(),
            first_publish_ns: None,
        }
    }

    pub(super) fn stall_left(&self, now_ns: u64) -> Option<Duration> {
        self.laws.stall?.left(self.first_publish_ns?, now_ns)
    }

    pub(super) fn add(
        &mut self,
        request: &SubscriptionRequest<'_>,
        version: Version,
        (connection, stream): (u64, &TcpStream),
    ) {
        let filter = request.filter.matched_part().to_owned();
        let subscription = self.subscriptions.entry(filter).or_default();
        subscription.is_shared = request.filter.shared().is_some();
        subscription.members.push(Member {
            connection,
            stream: stream.try_clone().unwrap(),
            version,
            qos: request.options.qos.min(self.laws.granted),
            next_id: 0,
        });
    }

    /// Forgets a connection that has ended.
    pub(super) fn remove(&mut self, connection: u64) {
        for subscription in self.subscriptions.values_mut() {
            let members = &mut subscription.members;
            members.retain(|member| member.connection != connection);
        }
        self.subscriptions
            .retain(|_, subscription| !subscription.members.is_empty());
    }

    /// Applies the law to a message.
    pub(super) fn publish(&mut self, publish: &Publish<'_>) -> Fate {
        let now_ns = clock::monotonic_ns();
        self.first_publish_ns.get_or_insert(now_ns);
        let mark = Mark::read(publish.payload).unwrap();
        let fate = (self.laws.fate)(mark);
        let mut message = Message {
            topic: publish.topic.to_owned(),
            delivered_topic: publish.topic.to_owned(),
            payload: publish.payload.to_owned(),
            qos: publish.qos,
            retain: false,
        };
        match fate {
            Fate::Alter(change) => {
                message.alter(change);
                self.deliver(&message);
            }
            Fate::Deliver => self.deliver(&message),
            Fate::DoubleAltered(change) => {
                self.deliver(&message);
                message.alter(change);
                self.deliver(&message);
            }
            Fate::Double => {
                self.deliver(&message);
                self.deliver(&message);
            }
            Fate::Lose => {}
            Fate::Delay => {
                self.delayed.insert(mark.publisher, message);
                return fate;
            }
            Fate::After(delay) => {
                let delay_ns = u64::try_from(delay.as_nanos()).unwrap();
                self.delivery
                    .try_send((now_ns + delay_ns, message))
                    .unwrap();
            }
            Fate::Disconnect => return fate,
        }
        if let Some(late) = self.delayed.remove(&mark.publisher) {
            self.deliver(&late);
        }
        fate
    }

    /// Sends a message to all subscribers, or to one of a shared group.
    pub(super) fn deliver(&mut self, message: &Message) {
        let fitting = self
            .subscriptions
            .iter_mut()
            .find(|(filter, _)| topic::matches(filter, &message.topic));
        let Some((_, subscription)) = fitting else {
            return;
        };
        let count = subscription.members.len();
        let chosen = if subscription.is_shared {
            subscription.next_member += 1;
            let chosen = subscription.next_member % count;
            chosen..chosen + 1
        } else {
            0..count
        };
        for member in &mut subscription.members[chosen] {
            member.send(message);
        }
    }
}

impl Message {
    fn alter(&mut self, change: Change) {
        match change {
            Change::Qos(qos) => self.qos = qos,
            Change::Cut(bytes) => self.payload.truncate(bytes),
            Change::Byte(at) => self.payload[at] = self.payload[at].wrapping_add(1),
            Change::Topic => self.delivered_topic.push_str("/wrong"),
            Change::Retain => self.retain = true,
        }
    }
}

impl Member {
    fn send(&mut self, message: &Message) {
        let qos = message.qos.min(self.qos);
        let packet_id = (qos > QoS::AtMostOnce).then(|| {
            // 1 to 60 000, so that identifiers in flight differ.
            self.next_id = self.next_id % 60_000 + 1;
            PacketId(NonZeroU16::new(self.next_id).unwrap())
        });
        let publish = Publish {
            dup: false,
            qos,
            retain: message.retain,
            topic: &message.delivered_topic,
            packet_id,
            properties: PublishProperties::default(),
            payload: &message.payload,
        };
        // A connection that has just ended is forgotten by its own thread.
        drop(
            self.stream
                .write_all(&bytes_of(&Packet::Publish(publish), self.version)),
        );
    }
}

pub(super) fn bytes_of(packet: &Packet<'_>, version: Version) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(packet, version, &mut bytes).unwrap();
    bytes
}
