//! A client over a real socket that speaks in packets, and a broker on a free port.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use thrum_broker::config::{Anonymous, ListenerConfig, Workers};
use thrum_broker::{Access, Broker, Config};
use thrum_codec::packet::{
    Ack, Connect, Disconnect, Packet, Publish, Subscribe, SubscriptionOptions, SubscriptionRequest,
    SubscriptionRequests, TopicFilters, Unsubscribe, Will,
};
use thrum_codec::properties::{
    AckProperties, ConnectProperties, DisconnectProperties, PublishProperties, SubscribeProperties,
    UserProperties, WillProperties,
};
use thrum_codec::{PacketId, QoS, ReasonCode, TopicFilter, Version, decode, encode, frame};

/// Longer than any answer of a broker on this machine takes, shorter than a test's patience.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time to wait for packets that must not arrive.
const SILENCE: Duration = Duration::from_millis(150);

/// A free port on loopback, a number of workers, and every client is admitted.
pub(crate) fn configured(config: &mut Config, workers: u16) {
    config.node.workers = Workers::Count(workers);
    config.auth.anonymous = Anonymous::Allow;
    config.listeners.clear();
    let bind = vec![SocketAddr::from(([127, 0, 0, 1], 0)).into()];
    config.listeners.insert(
        "mqtt".to_owned(),
        ListenerConfig {
            bind,
            ..ListenerConfig::default()
        },
    );
}

pub(crate) fn start(workers: u16, change: impl FnOnce(&mut Config)) -> (Broker, SocketAddr) {
    start_with(Access::default(), workers, change)
}

/// As [`start`], with a gatekeeper.
pub(crate) fn start_with(
    access: Access,
    workers: u16,
    change: impl FnOnce(&mut Config),
) -> (Broker, SocketAddr) {
    let mut config = Config::default();
    configured(&mut config, workers);
    change(&mut config);
    let broker = Broker::start(config, access).expect("a free port on loopback");
    let addresses = broker.addresses();
    let address = addresses
        .iter()
        .find_map(thrum_broker::Listening::socket_address);
    let address = address.expect("it listens on TCP");
    (broker, address)
}

/// The parts of a received PUBLISH that a test checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) topic: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    pub(crate) dup: bool,
    pub(crate) identifiers: Vec<u32>,
    pub(crate) id: Option<PacketId>,
}

pub(crate) struct Peer {
    stream: TcpStream,
    version: Version,
    unread: Vec<u8>,
}

pub(crate) fn connect_packet(version: Version, client_id: &str) -> Connect<'_> {
    Connect {
        version,
        is_bridge: false,
        clean_start: true,
        keep_alive: 60,
        client_id,
        will: None,
        username: None,
        password: None,
        properties: ConnectProperties::default(),
    }
}

pub(crate) fn will<'a>(topic: &'a str, payload: &'a [u8]) -> Will<'a> {
    Will {
        topic,
        payload,
        qos: QoS::AtLeastOnce,
        retain: false,
        properties: WillProperties::default(),
    }
}

impl Peer {
    pub(crate) fn open(address: SocketAddr, version: Version) -> Self {
        let stream = TcpStream::connect(address).expect("the broker listens");
        stream.set_nodelay(true).expect("a socket option");
        Self {
            stream,
            version,
            unread: Vec::new(),
        }
    }

    /// As [`Self::open`], with a PROXY header that names an IPv4 address.
    pub(crate) fn open_for(address: SocketAddr, source: &str) -> Self {
        let mut peer = Self::open(address, Version::V5);
        peer.send_bytes(format!("PROXY TCP4 {source} 192.0.2.200 40000 1883\r\n").as_bytes());
        peer
    }

    /// Bytes that need not be a packet.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the broker reads");
    }

    /// As [`Self::open`], with room for few unread bytes on this side.
    pub(crate) fn open_narrow(address: SocketAddr, version: Version) -> Self {
        let socket =
            Socket::new(Domain::for_address(address), Type::STREAM, None).expect("a socket more");
        socket.set_recv_buffer_size(4096).expect("a socket option");
        socket.connect(&address.into()).expect("the broker listens");
        Self {
            stream: socket.into(),
            version,
            unread: Vec::new(),
        }
    }

    /// Connects with a clean start and expects to be accepted.
    pub(crate) fn connect(address: SocketAddr, client_id: &str) -> Self {
        let mut peer = Self::open(address, Version::V5);
        assert_eq!(
            peer.handshake(&connect_packet(Version::V5, client_id)),
            (ReasonCode::Success, false)
        );
        peer
    }

    /// As [`Self::connect`], over a Unix socket.
    pub(crate) fn over(socket: UnixStream, client_id: &str) -> Self {
        let mut peer = Self {
            stream: TcpStream::from(OwnedFd::from(socket)),
            version: Version::V5,
            unread: Vec::new(),
        };
        assert_eq!(
            peer.handshake(&connect_packet(Version::V5, client_id)),
            (ReasonCode::Success, false)
        );
        peer
    }

    /// Connects with a session that outlives the connection; returns whether it was present.
    pub(crate) fn resume(address: SocketAddr, client_id: &str) -> (Self, bool) {
        let mut peer = Self::open(address, Version::V5);
        let mut connect = connect_packet(Version::V5, client_id);
        connect.clean_start = false;
        connect.properties.session_expiry = Some(300);
        let (reason, present) = peer.handshake(&connect);
        assert_eq!(reason, ReasonCode::Success);
        (peer, present)
    }

    /// Sends CONNECT; reason and session present of the CONNACK.
    pub(crate) fn handshake(&mut self, connect: &Connect<'_>) -> (ReasonCode, bool) {
        self.send(&Packet::Connect(*connect));
        self.receive(|packet| match packet {
            Packet::ConnAck(ack) => (ack.reason, ack.session_present),
            other => panic!("expected CONNACK, got {other:?}"),
        })
    }

    pub(crate) fn send(&mut self, packet: &Packet<'_>) {
        let mut bytes = Vec::new();
        encode(packet, self.version, &mut bytes).expect("a packet of the test fits the wire");
        self.stream.write_all(&bytes).expect("the broker reads");
    }

    pub(crate) fn subscribe(&mut self, filter: &str, qos: QoS) -> ReasonCode {
        self.subscribe_with(
            filter,
            SubscriptionOptions {
                qos,
                ..Default::default()
            },
            None,
        )
    }

    pub(crate) fn subscribe_with(
        &mut self,
        filter: &str,
        options: SubscriptionOptions,
        identifier: Option<u32>,
    ) -> ReasonCode {
        let filter = TopicFilter::parse(filter).expect("a filter of the test is valid");
        let requests = [SubscriptionRequest { filter, options }];
        self.send(&Packet::Subscribe(Subscribe {
            packet_id: PacketId::new(77).expect("not zero"),
            properties: SubscribeProperties {
                subscription_identifier: identifier,
                ..Default::default()
            },
            requests: SubscriptionRequests::Listed(&requests),
        }));
        self.receive(|packet| match packet {
            Packet::SubAck(ack) => ack.codes.iter().next().expect("one code"),
            other => panic!("expected SUBACK, got {other:?}"),
        })
    }

    pub(crate) fn unsubscribe(&mut self, filter: &str) {
        let filters = [TopicFilter::parse(filter).expect("a filter of the test is valid")];
        self.send(&Packet::Unsubscribe(Unsubscribe {
            packet_id: PacketId::new(78).expect("not zero"),
            user: UserProperties::default(),
            filters: TopicFilters::Listed(&filters),
        }));
        self.receive(|packet| assert!(matches!(packet, Packet::UnsubAck(_)), "{packet:?}"));
    }

    pub(crate) fn publish(&mut self, topic: &str, payload: &[u8], qos: QoS, retain: bool) {
        let packet_id = (qos != QoS::AtMostOnce).then(|| PacketId::new(9).expect("not zero"));
        let properties = PublishProperties::default();
        let dup = false;
        self.send(&Packet::Publish(Publish {
            dup,
            qos,
            retain,
            topic,
            packet_id,
            properties,
            payload,
        }));
    }

    /// Publishes with QoS 1 and returns the reason of the PUBACK.
    pub(crate) fn publish_acknowledged(&mut self, topic: &str, payload: &[u8]) -> ReasonCode {
        self.publish(topic, payload, QoS::AtLeastOnce, false);
        self.receive(|packet| match packet {
            Packet::PubAck(ack) => ack.reason,
            other => panic!("expected PUBACK, got {other:?}"),
        })
    }

    pub(crate) fn acknowledge(&mut self, id: Option<PacketId>) {
        let packet_id = id.expect("only QoS 1 is acknowledged here");
        let properties = AckProperties::default();
        self.send(&Packet::PubAck(Ack {
            packet_id,
            reason: ReasonCode::Success,
            properties,
        }));
    }

    pub(crate) fn message(&mut self) -> Received {
        self.receive(|packet| match packet {
            Packet::Publish(publish) => Received {
                topic: publish.topic.to_owned(),
                payload: publish.payload.to_vec(),
                qos: publish.qos,
                retain: publish.retain,
                dup: publish.dup,
                identifiers: publish.properties.subscription_identifiers.iter().collect(),
                id: publish.packet_id,
            },
            other => panic!("expected PUBLISH, got {other:?}"),
        })
    }

    pub(crate) fn disconnect_reason(&mut self) -> ReasonCode {
        self.receive(|packet| match packet {
            Packet::Disconnect(disconnect) => disconnect.reason,
            other => panic!("expected DISCONNECT, got {other:?}"),
        })
    }

    pub(crate) fn disconnect(mut self) {
        let properties = DisconnectProperties::default();
        self.send(&Packet::Disconnect(Disconnect {
            reason: ReasonCode::Success,
            properties,
        }));
    }

    /// As [`Self::leave`], and gives up a session that would have outlived the connection.
    pub(crate) fn end_session(mut self) {
        self.send(&Packet::Disconnect(Disconnect {
            reason: ReasonCode::Success,
            properties: DisconnectProperties {
                session_expiry: Some(0),
                ..DisconnectProperties::default()
            },
        }));
        self.assert_closed();
    }

    /// Sends DISCONNECT and waits until the broker has seen it.
    pub(crate) fn leave(mut self) {
        self.send(&Packet::Disconnect(Disconnect {
            reason: ReasonCode::Success,
            properties: DisconnectProperties::default(),
        }));
        self.assert_closed();
    }

    /// The next packet, whatever it is.
    pub(crate) fn receive<R>(&mut self, look: impl FnOnce(Packet<'_>) -> R) -> R {
        self.stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout above zero");
        loop {
            if let Some(frame) = frame::split(&self.unread, u32::MAX).expect("a whole frame") {
                let result =
                    look(decode(frame, self.version).expect("the broker sends valid packets"));
                let len = frame.len;
                self.unread.drain(..len);
                return result;
            }
            let mut buffer = [0; 8192];
            let len = self.stream.read(&mut buffer).expect("a packet in time");
            assert!(len > 0, "the broker closed the connection");
            self.unread.extend_from_slice(&buffer[..len]);
        }
    }

    /// Asserts that no more packets arrive, and that the connection stays open.
    pub(crate) fn assert_silent(&mut self) {
        assert!(
            self.unread.is_empty(),
            "unread packets: {:02x?}",
            self.unread
        );
        self.stream
            .set_read_timeout(Some(SILENCE))
            .expect("a timeout above zero");
        let mut buffer = [0; 64];
        match self.stream.read(&mut buffer) {
            Ok(0) => panic!("the broker closed the connection"),
            Ok(len) => panic!("unexpected bytes {:02x?}", &buffer[..len]),
            Err(error) => assert!(
                matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ),
                "{error}"
            ),
        }
    }

    /// The broker closes the connection, after whatever else it sends.
    pub(crate) fn assert_closed(&mut self) {
        self.stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout above zero");
        let mut rest = Vec::new();
        self.stream
            .read_to_end(&mut rest)
            .expect("the connection is closed in order");
    }
}
