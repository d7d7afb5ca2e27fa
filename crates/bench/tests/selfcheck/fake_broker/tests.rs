//! The broker itself, packet by packet.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::num::NonZeroU16;
use std::time::Duration;

use thrum_bench::clock;
use thrum_codec::packet::{
    Ack, Connect, Disconnect, Packet, PacketId, Publish, Subscribe, SubscriptionOptions,
    SubscriptionRequest, SubscriptionRequests,
};
use thrum_codec::properties::{
    AckProperties, ConnectProperties, DisconnectProperties, PublishProperties, SubscribeProperties,
};
use thrum_codec::{QoS, ReasonCode, TopicFilter, Version, decode, frame};
use thrum_load::mark::Mark;

use super::router::bytes_of;
use super::{FakeBroker, Fate, Laws, Stall};

/// Fails the test instead of waiting for an event that does not happen.
const ANSWER_MAX: Duration = Duration::from_secs(20);

struct Client {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Client {
    fn connect(broker: &FakeBroker) -> Self {
        let stream = TcpStream::connect(broker.address).unwrap();
        stream.set_read_timeout(Some(ANSWER_MAX)).unwrap();
        let mut client = Self {
            stream,
            received: Vec::new(),
        };
        client.send(&Packet::Connect(Connect {
            version: Version::V5,
            is_bridge: false,
            clean_start: true,
            keep_alive: 0,
            client_id: "c",
            will: None,
            username: None,
            password: None,
            properties: ConnectProperties::default(),
        }));
        assert!(client.next().starts_with("ConnAck"));
        client
    }

    fn subscribed(broker: &FakeBroker, filter: &str, qos: QoS) -> Self {
        let mut client = Self::connect(broker);
        let requests = [SubscriptionRequest {
            filter: TopicFilter::parse(filter).unwrap(),
            options: SubscriptionOptions {
                qos,
                ..SubscriptionOptions::default()
            },
        }];
        client.send(&Packet::Subscribe(Subscribe {
            packet_id: packet_id(9),
            properties: SubscribeProperties::default(),
            requests: SubscriptionRequests::Listed(&requests),
        }));
        assert!(client.next().starts_with("SubAck"));
        client
    }

    fn send(&mut self, packet: &Packet<'_>) {
        self.stream
            .write_all(&bytes_of(packet, Version::V5))
            .unwrap();
    }

    fn publish(&mut self, sequence: u32, qos: QoS) {
        let mut payload = [0; 16];
        let sent_ns = clock::monotonic_ns();
        let mark = Mark {
            publisher: 0,
            sequence,
            sent_ns,
            was_held_back: false,
        };
        mark.write(&mut payload);
        let id = packet_id(u16::try_from(sequence + 1).unwrap());
        self.send(&Packet::Publish(Publish {
            dup: false,
            qos,
            retain: false,
            topic: "t",
            packet_id: (qos > QoS::AtMostOnce).then_some(id),
            properties: PublishProperties::default(),
            payload: &payload,
        }));
    }

    /// The next packet as a short text; empty when the broker has ended the connection.
    fn next(&mut self) -> String {
        let mut buffer = [0; 4096];
        loop {
            if let Some(frame) = frame::split(&self.received, u32::MAX).unwrap() {
                let length = frame.len;
                let text = shown(&decode(frame, Version::V5).unwrap());
                self.received.drain(..length);
                return text;
            }
            let read = self.stream.read(&mut buffer).unwrap();
            if read == 0 {
                return String::new();
            }
            self.received.extend_from_slice(&buffer[..read]);
        }
    }

    fn take(&mut self, packets: usize) -> Vec<String> {
        (0..packets).map(|_| self.next()).collect()
    }
}

fn packet_id(id: u16) -> PacketId {
    PacketId(NonZeroU16::new(id).unwrap())
}

fn ack<'a>(id: u16) -> Ack<'a> {
    Ack {
        packet_id: packet_id(id),
        reason: ReasonCode::Success,
        properties: AckProperties::default(),
    }
}

/// Kind and packet identifier; of a message its sequence and quality of service.
fn shown(packet: &Packet<'_>) -> String {
    match packet {
        Packet::ConnAck(_) => "ConnAck".to_owned(),
        Packet::SubAck(ack) => format!("SubAck {}", ack.packet_id.0),
        Packet::PubAck(ack) => format!("PubAck {}", ack.packet_id.0),
        Packet::PubRec(ack) => format!("PubRec {}", ack.packet_id.0),
        Packet::PubRel(ack) => format!("PubRel {}", ack.packet_id.0),
        Packet::PubComp(ack) => format!("PubComp {}", ack.packet_id.0),
        Packet::Disconnect(disconnect) => format!("Disconnect {:?}", disconnect.reason),
        Packet::Publish(publish) => {
            let mark = Mark::read(publish.payload).unwrap();
            format!("message {} {:?}", mark.sequence, publish.qos)
        }
        other => format!("{other:?}"),
    }
}

fn lawful(_: Mark) -> Fate {
    Fate::Deliver
}

#[test]
fn a_message_has_the_lower_quality_of_both_sides() {
    let broker = FakeBroker::start(ReasonCode::Success, lawful);
    let mut publisher = Client::connect(&broker);
    for (most, expected) in [
        (QoS::AtMostOnce, ["AtMostOnce", "AtMostOnce", "AtMostOnce"]),
        (
            QoS::AtLeastOnce,
            ["AtMostOnce", "AtLeastOnce", "AtLeastOnce"],
        ),
        (
            QoS::ExactlyOnce,
            ["AtMostOnce", "AtLeastOnce", "ExactlyOnce"],
        ),
    ] {
        let mut subscriber = Client::subscribed(&broker, "t", most);
        let sent = [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce];
        for (sequence, qos) in (0..).zip(sent) {
            publisher.publish(sequence, qos);
        }
        let expected: Vec<String> = (0..)
            .zip(expected)
            .map(|(sequence, qos): (u32, _)| format!("message {sequence} {qos}"))
            .collect();
        assert_eq!(subscriber.take(3), expected);
        assert_eq!(publisher.take(2), ["PubAck 2", "PubRec 3"]);
    }
}

#[test]
fn quality_of_service_2_takes_four_packets_on_each_side() {
    let broker = FakeBroker::start(ReasonCode::Success, lawful);
    let mut subscriber = Client::subscribed(&broker, "t", QoS::ExactlyOnce);
    let mut publisher = Client::connect(&broker);
    publisher.publish(4, QoS::ExactlyOnce);
    assert_eq!(publisher.next(), "PubRec 5");
    publisher.send(&Packet::PubRel(ack(5)));
    assert_eq!(publisher.next(), "PubComp 5");
    assert_eq!(subscriber.next(), "message 4 ExactlyOnce");
    subscriber.send(&Packet::PubRec(ack(1)));
    assert_eq!(subscriber.next(), "PubRel 1");
}

#[test]
fn a_client_that_leaves_gets_nothing_more() {
    let broker = FakeBroker::start(ReasonCode::Success, lawful);
    let mut leaving = Client::subscribed(&broker, "$share/g/t", QoS::AtMostOnce);
    let mut staying = Client::subscribed(&broker, "$share/g/t", QoS::AtMostOnce);
    leaving.send(&Packet::Disconnect(Disconnect {
        reason: ReasonCode::Success,
        properties: DisconnectProperties::default(),
    }));
    assert_eq!(leaving.next(), "");
    let mut publisher = Client::connect(&broker);
    publisher.publish(0, QoS::AtMostOnce);
    publisher.publish(1, QoS::AtMostOnce);
    assert_eq!(
        staying.take(2),
        ["message 0 AtMostOnce", "message 1 AtMostOnce"]
    );
}

#[test]
fn a_publisher_is_disconnected_at_the_message_of_the_law() {
    let broker = FakeBroker::start(ReasonCode::Success, |mark| match mark.sequence {
        1 => Fate::Disconnect,
        _ => Fate::Deliver,
    });
    let mut subscriber = Client::subscribed(&broker, "t", QoS::AtLeastOnce);
    let mut publisher = Client::connect(&broker);
    publisher.publish(0, QoS::AtLeastOnce);
    publisher.publish(1, QoS::AtLeastOnce);
    assert_eq!(
        publisher.take(3),
        ["PubAck 1", "Disconnect AdministrativeAction", ""]
    );
    let mut again = Client::connect(&broker);
    again.publish(2, QoS::AtLeastOnce);
    assert_eq!(
        subscriber.take(2),
        ["message 0 AtLeastOnce", "message 2 AtLeastOnce"]
    );
}

#[test]
fn messages_arrive_not_before_their_delay_and_in_order_of_it() {
    let broker = FakeBroker::start(ReasonCode::Success, |mark| match mark.sequence {
        0 => Fate::After(Duration::from_millis(500)),
        1 => Fate::After(Duration::from_millis(20)),
        _ => Fate::Deliver,
    });
    let mut subscriber = Client::subscribed(&broker, "t", QoS::AtMostOnce);
    let mut publisher = Client::connect(&broker);
    let start_ns = clock::monotonic_ns();
    for sequence in 0..3 {
        publisher.publish(sequence, QoS::AtLeastOnce);
    }
    // An acknowledgement is not delayed with its message.
    assert_eq!(publisher.take(3), ["PubAck 1", "PubAck 2", "PubAck 3"]);
    for (sequence, delay_ms) in [(2, 0), (1, 20), (0, 500)] {
        let message = subscriber.next();
        assert_eq!(message, format!("message {sequence} AtMostOnce"));
        assert!(clock::monotonic_ns() >= start_ns + delay_ms * 1_000_000);
    }
}

#[test]
fn a_stall_lasts_from_its_start_to_its_end() {
    let stall = Stall {
        from_ms: 2,
        for_ms: 3,
    };
    let left = |now_ns| stall.left(1_000_000, now_ns);
    assert_eq!(left(0), None);
    assert_eq!(left(2_999_999), None);
    assert_eq!(left(3_000_000), Some(Duration::from_millis(3)));
    assert_eq!(left(5_999_999), Some(Duration::from_nanos(1)));
    assert_eq!(left(6_000_000), None);
}

#[test]
fn nothing_is_handled_during_a_stall_and_nothing_is_lost() {
    let broker = FakeBroker::with(Laws {
        connack: ReasonCode::Success,
        fate: lawful,
        granted: QoS::ExactlyOnce,
        stall: Some(Stall {
            from_ms: 0,
            for_ms: 100,
        }),
    });
    let mut subscriber = Client::subscribed(&broker, "t", QoS::AtMostOnce);
    let mut publisher = Client::connect(&broker);
    let start_ns = clock::monotonic_ns();
    for sequence in 0..3 {
        publisher.publish(sequence, QoS::AtMostOnce);
    }
    // The first message starts the count and is handled.
    assert_eq!(subscriber.next(), "message 0 AtMostOnce");
    assert_eq!(subscriber.next(), "message 1 AtMostOnce");
    assert!(clock::monotonic_ns() >= start_ns + 100_000_000);
    assert_eq!(subscriber.next(), "message 2 AtMostOnce");
}
