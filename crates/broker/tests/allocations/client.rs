//! A broker with one worker, and clients that send in bursts and know when the worker is done with
//! them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use thrum_broker::config::{Anonymous, ListenerConfig, Workers};
use thrum_broker::{Access, Broker, Config};
use thrum_codec::packet::{
    Ack, Connect, Publish, Subscribe, SubscriptionOptions, SubscriptionRequest,
    SubscriptionRequests,
};
use thrum_codec::properties::{
    AckProperties, ConnectProperties, PublishProperties, SubscribeProperties,
};
use thrum_codec::{Packet, PacketId, QoS, ReasonCode, TopicFilter, Version, decode, encode, frame};

/// Longer than any answer of a broker takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A broker that publishes nothing by itself, unless `change` says so.
pub(crate) fn start(change: impl FnOnce(&mut Config)) -> (Broker, SocketAddr) {
    let mut config = Config::default();
    config.node.workers = Workers::Count(1);
    config.auth.anonymous = Anonymous::Allow;
    config.sys.interval = Duration::ZERO;
    config.limits.connect_rate = 0;
    config.listeners.clear();
    let listener = ListenerConfig {
        bind: vec![SocketAddr::from(([127, 0, 0, 1], 0)).into()],
        ..ListenerConfig::default()
    };
    config.listeners.insert("mqtt".to_owned(), listener);
    change(&mut config);
    let broker = Broker::start(config, Access::default()).expect("a free port on loopback");
    let address = broker.addresses()[0]
        .socket_address()
        .expect("it listens on TCP");
    (broker, address)
}

/// A client with a session that ends with its connection.
pub(crate) struct Client {
    stream: TcpStream,
    version: Version,
    unread: Vec<u8>,
    bytes: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr, version: Version, client_id: &str) -> Self {
        let stream = TcpStream::connect(address).expect("the broker listens");
        stream.set_nodelay(true).expect("a socket option");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout above zero");
        let mut client = Self {
            stream,
            version,
            unread: Vec::new(),
            bytes: Vec::new(),
        };
        client.send(&[Packet::Connect(Connect {
            version,
            is_bridge: false,
            clean_start: true,
            keep_alive: 3_600,
            client_id,
            will: None,
            username: None,
            password: None,
            properties: ConnectProperties::default(),
        })]);
        let reason = client.receive(|packet| match packet {
            Packet::ConnAck(ack) => ack.reason,
            other => panic!("expected CONNACK, got {other:?}"),
        });
        assert_eq!(reason, ReasonCode::Success);
        client
    }

    pub(crate) fn subscribe(&mut self, filter: &str, qos: QoS) {
        let filter = TopicFilter::parse(filter).expect("a filter of the test is valid");
        let options = SubscriptionOptions {
            qos,
            ..SubscriptionOptions::default()
        };
        self.send(&[Packet::Subscribe(Subscribe {
            packet_id: PacketId::new(1).expect("not zero"),
            properties: SubscribeProperties::default(),
            requests: SubscriptionRequests::Listed(&[SubscriptionRequest { filter, options }]),
        })]);
        let code = self.receive(|packet| match packet {
            Packet::SubAck(ack) => ack.codes.iter().next(),
            other => panic!("expected SUBACK, got {other:?}"),
        });
        assert_eq!(code, Some(qos.granted()));
    }

    /// Sends so many messages in one write, with the packet identifiers 1, 2, 3 and so on.
    pub(crate) fn publish(&mut self, topic: &str, qos: QoS, count: u16) {
        let publish = |number| {
            Packet::Publish(Publish {
                dup: false,
                qos,
                retain: false,
                topic,
                packet_id: PacketId::new(number).filter(|_| qos != QoS::AtMostOnce),
                properties: PublishProperties::default(),
                payload: &[7; 16],
            })
        };
        let packets: Vec<_> = (1..=count).map(publish).collect();
        self.send(&packets);
    }

    /// Takes the answers to as many messages, and ends their exchanges.
    pub(crate) fn finish(&mut self, qos: QoS, count: u16) {
        match qos {
            QoS::AtMostOnce => {}
            QoS::AtLeastOnce => {
                self.receive_ids(count, "PUBACK");
            }
            QoS::ExactlyOnce => {
                let ids = self.receive_ids(count, "PUBREC");
                self.answer(&ids, Packet::PubRel);
                self.receive_ids(count, "PUBCOMP");
            }
        }
    }

    /// Takes so many messages and answers them.
    pub(crate) fn take(&mut self, qos: QoS, count: u16) {
        let ids = self.receive_ids(count, "PUBLISH");
        match qos {
            QoS::AtMostOnce => {}
            QoS::AtLeastOnce => self.answer(&ids, Packet::PubAck),
            QoS::ExactlyOnce => {
                self.answer(&ids, Packet::PubRec);
                self.receive_ids(count, "PUBREL");
                self.answer(&ids, Packet::PubComp);
            }
        }
    }

    /// Returns once the worker has handled everything that this client sent; messages on their way
    /// are passed over.
    pub(crate) fn settle(&mut self) {
        self.send(&[Packet::PingReq]);
        while self.receive(|packet| packet != Packet::PingResp) {}
    }

    fn answer(&mut self, ids: &[PacketId], packet: fn(Ack<'static>) -> Packet<'static>) {
        let ack = |packet_id: &PacketId| {
            packet(Ack {
                packet_id: *packet_id,
                reason: ReasonCode::Success,
                properties: AckProperties::default(),
            })
        };
        let packets: Vec<_> = ids.iter().map(ack).collect();
        self.send(&packets);
    }

    /// Identifiers of the next packets, which must be of that kind; none for `QoS` 0.
    fn receive_ids(&mut self, count: u16, kind: &str) -> Vec<PacketId> {
        let one = |packet: Packet<'_>| {
            let (found, id) = match packet {
                Packet::Publish(publish) => ("PUBLISH", publish.packet_id),
                Packet::PubAck(ack) => ("PUBACK", Some(ack.packet_id)),
                Packet::PubRec(ack) => ("PUBREC", Some(ack.packet_id)),
                Packet::PubRel(ack) => ("PUBREL", Some(ack.packet_id)),
                Packet::PubComp(ack) => ("PUBCOMP", Some(ack.packet_id)),
                other => panic!("expected {kind}, got {other:?}"),
            };
            assert_eq!(found, kind);
            id
        };
        (0..count).filter_map(|_| self.receive(one)).collect()
    }

    fn send(&mut self, packets: &[Packet<'_>]) {
        self.bytes.clear();
        for packet in packets {
            encode(packet, self.version, &mut self.bytes).expect("it fits the wire");
        }
        self.stream
            .write_all(&self.bytes)
            .expect("the broker reads");
    }

    pub(crate) fn receive<R>(&mut self, look: impl FnOnce(Packet<'_>) -> R) -> R {
        loop {
            if let Some(frame) = frame::split(&self.unread, u32::MAX).expect("a whole frame") {
                let len = frame.len;
                let packet = decode(frame, self.version).expect("the broker sends valid packets");
                let result = look(packet);
                self.unread.drain(..len);
                return result;
            }
            let mut buffer = [0; 8192];
            let len = self.stream.read(&mut buffer).expect("a packet in time");
            assert!(len > 0, "the broker closed the connection");
            self.unread.extend_from_slice(&buffer[..len]);
        }
    }
}
