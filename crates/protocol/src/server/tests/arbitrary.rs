//! For any input of a client, the session replies with packets that a server may send, or with a
//! violation.

use alloc::vec;

use proptest::prelude::*;
use thrum_codec::TopicFilter;
use thrum_codec::encoded_len;
use thrum_codec::packet::{Auth, ConnAck, ReasonCodes, SubAck, TopicFilters};
use thrum_codec::properties::{
    AuthProperties, ConnAckProperties, SubscriptionIdentifiers, UserProperties,
};

use super::*;

/// One call of the node, with arbitrary wire data.
#[derive(Clone, Debug)]
enum Call {
    Publish {
        qos: u8,
        packet_id: u16,
        dup: bool,
        retain: bool,
        topic: usize,
        alias: u16,
        identifier: bool,
    },
    Ack {
        kind: u8,
        packet_id: u16,
        reason: u8,
    },
    Other(u8),
    Disconnect {
        reason: u8,
        expiry: Option<u32>,
    },
    Bytes(Vec<u8>),
    Done {
        qos: u8,
        packet_id: u16,
        reason: u8,
    },
    Deliver {
        qos: u8,
        topic: usize,
        payload: usize,
        group: Option<u32>,
        expires: bool,
    },
    ServerDisconnect(u8),
    Lost,
    Connect {
        clean: bool,
        expiry: u32,
        receive_maximum: u16,
        packet_bytes_max: u32,
        aliases: u16,
    },
    Timeout,
    Advance(u32),
    Congested(bool),
    Pump,
    TakeShared(Option<u32>),
    TakeWill,
}

const TOPICS: [&str; 5] = [
    "t",
    "a/long/topic",
    "another/long/topic",
    "",
    "x/x/x/x/x/x/x/x",
];

fn call() -> impl Strategy<Value = Call> {
    let publish = (
        0..3_u8,
        0..6_u16,
        any::<bool>(),
        any::<bool>(),
        0..5_usize,
        0..5_u16,
        0..20_u8,
    )
        .prop_map(
            |(qos, packet_id, dup, retain, topic, alias, identifier)| Call::Publish {
                qos,
                packet_id,
                dup,
                retain,
                topic,
                alias,
                identifier: identifier == 0,
            },
        );
    let deliver = (
        0..3_u8,
        0..5_usize,
        0..200_usize,
        proptest::option::of(0..3_u32),
        any::<bool>(),
    )
        .prop_map(|(qos, topic, payload, group, expires)| Call::Deliver {
            qos,
            topic,
            payload,
            group,
            expires,
        });
    let connect = (any::<bool>(), 0..3_u32, 1..5_u16, 20..300_u32, 0..3_u16).prop_map(
        |(clean, expiry, receive_maximum, packet_bytes_max, aliases)| Call::Connect {
            clean,
            expiry: expiry * 100,
            receive_maximum,
            packet_bytes_max,
            aliases,
        },
    );
    let reason = || prop_oneof![3 => Just(0_u8), 1 => any::<u8>()];
    prop_oneof![
        8 => publish,
        12 => (0..4_u8, 1..6_u16, reason())
            .prop_map(|(kind, packet_id, reason)| Call::Ack { kind, packet_id, reason }),
        1 => (0..8_u8).prop_map(Call::Other),
        1 => (reason(), proptest::option::of(any::<u32>()))
            .prop_map(|(reason, expiry)| Call::Disconnect { reason, expiry }),
        2 => proptest::collection::vec(any::<u8>(), 1..40).prop_map(Call::Bytes),
        6 => (0..3_u8, 0..6_u16, reason())
            .prop_map(|(qos, packet_id, reason)| Call::Done { qos, packet_id, reason }),
        12 => deliver,
        1 => any::<u8>().prop_map(Call::ServerDisconnect),
        2 => Just(Call::Lost),
        4 => connect,
        1 => Just(Call::Timeout),
        1 => (0..200_000_u32).prop_map(Call::Advance),
        2 => any::<bool>().prop_map(Call::Congested),
        2 => Just(Call::Pump),
        1 => proptest::option::of(0..3_u32).prop_map(Call::TakeShared),
        1 => Just(Call::TakeWill),
    ]
}

fn reason_code(byte: u8) -> ReasonCode {
    ReasonCode::from_u8(byte).unwrap_or(ReasonCode::Success)
}

fn qos(bits: u8) -> QoS {
    QoS::from_u8(bits).unwrap()
}

struct Subject {
    peer: Peer,
    version: Version,
    packet_bytes_max: u32,
    out: Output,
}

impl Subject {
    fn new(version: Version, is_generous: bool) -> Self {
        let queue_policy = if is_generous {
            QueuePolicy::DropOldest
        } else {
            QueuePolicy::RejectNew
        };
        let limits = Limits {
            receive_maximum: 3,
            topic_alias_maximum: 3,
            topic_levels_max: 5,
            queue: QueueLimits {
                policy: queue_policy,
                qos0: is_generous,
                age_max: is_generous.then_some(150),
                priorities: priorities(&[("a/#", 7)]),
                messages_max: 5,
                bytes_max: queue_bytes_max(4, 300),
            },
            ..Limits::default()
        };
        let (peer, _) = Peer::with(limits, &persistent(version));
        Self {
            peer,
            version,
            packet_bytes_max: u32::MAX,
            out: Output::new(),
        }
    }

    fn call(&mut self, call: &Call) {
        match call {
            Call::Publish { .. } => self.publish(call),
            Call::Ack {
                kind,
                packet_id,
                reason,
            } => {
                let ack = ack_with(*packet_id, reason_code(*reason));
                let packet = match kind {
                    0 => Packet::PubAck(ack),
                    1 => Packet::PubRec(ack),
                    2 => Packet::PubRel(ack),
                    _ => Packet::PubComp(ack),
                };
                self.packet(&packet);
            }
            Call::Other(kind) => self.other(*kind),
            Call::Disconnect { reason, expiry } => {
                let properties = DisconnectProperties {
                    session_expiry: *expiry,
                    ..DisconnectProperties::default()
                };
                let reason = reason_code(*reason);
                self.packet(&Packet::Disconnect(Disconnect { reason, properties }));
            }
            Call::Bytes(bytes) => {
                let bytes = bytes.clone();
                let frame = split(&bytes, 1000);
                if let Ok(Some(frame)) = frame
                    && let Ok(packet) = decode(frame, self.version)
                {
                    self.packet(&packet);
                }
            }
            Call::Done {
                qos: bits,
                packet_id,
                reason,
            } => self.peer.session.publish_done(
                qos(*bits),
                PacketId::new(*packet_id),
                reason_code(*reason),
                &mut self.out,
            ),
            Call::Deliver { .. } => self.deliver(call),
            Call::Connect { .. } => self.connect(call),
            _ => self.event(call),
        }
    }

    fn event(&mut self, call: &Call) {
        let now = self.peer.now;
        let session = &mut self.peer.session;
        match call {
            Call::ServerDisconnect(byte) => {
                session.disconnect(reason_code(*byte), Some("any reason"), &mut self.out);
            }
            Call::Lost => {
                session.connection_lost(now);
                assert!(!session.link.is_connected());
            }
            Call::Timeout => {
                session.handle_timeout(now);
            }
            Call::Advance(millis) => self.peer.advance_millis(u64::from(*millis)),
            Call::Congested(congested) => session.link_mut().set_congested(*congested),
            Call::Pump => {
                session.pump(now, 200, &mut self.out);
            }
            Call::TakeShared(group) => {
                session
                    .outbound_mut()
                    .take_shared(group.as_ref().map(std::slice::from_ref));
            }
            Call::TakeWill => {
                session.take_will_at(session.lifetime.last_activity());
            }
            other => unreachable!("{other:?}"),
        }
    }

    fn packet(&mut self, packet: &Packet<'_>) {
        let session = &mut self.peer.session;
        let is_connected = session.link.is_connected();
        let outcome = session.handle_packet(*packet, self.peer.now, &mut self.out);
        if let Err(violation) = outcome {
            assert!(is_connected);
            assert!(violation.reason.is_error());
            session.disconnect(violation.reason, Some(violation.what), &mut self.out);
            session.connection_lost(self.peer.now);
        }
    }

    fn publish(&mut self, call: &Call) {
        let Call::Publish {
            qos: bits,
            packet_id,
            dup,
            retain,
            topic,
            alias,
            identifier,
        } = *call
        else {
            unreachable!()
        };
        let identifiers: &[u32] = if identifier { &[1] } else { &[] };
        let properties = PublishProperties {
            topic_alias: NonZeroU16::new(alias),
            subscription_identifiers: SubscriptionIdentifiers::Listed(identifiers),
            ..PublishProperties::default()
        };
        let publish = publish(qos(bits), packet_id, TOPICS[topic], "payload");
        self.packet(&Packet::Publish(Publish {
            dup,
            retain,
            properties,
            ..publish
        }));
    }

    fn other(&mut self, kind: u8) {
        let codes = ReasonCodes::Listed(&[ReasonCode::Success]);
        let suback = SubAck {
            packet_id: id(1),
            properties: AckProperties::default(),
            codes,
        };
        let filters = [TopicFilter::parse("a/#").unwrap()];
        let packet = match kind {
            0 => Packet::Connect(connect(self.version)),
            1 => Packet::ConnAck(ConnAck {
                session_present: false,
                reason: ReasonCode::Success,
                properties: ConnAckProperties::default(),
            }),
            2 => Packet::SubAck(suback),
            3 => Packet::UnsubAck(suback),
            4 => Packet::PingResp,
            5 => Packet::Auth(Auth {
                reason: ReasonCode::ReAuthenticate,
                properties: AuthProperties::default(),
            }),
            6 => Packet::Unsubscribe(Unsubscribe {
                packet_id: id(3),
                user: UserProperties::default(),
                filters: TopicFilters::Listed(&filters),
            }),
            _ => Packet::PingReq,
        };
        self.packet(&packet);
    }

    fn deliver(&mut self, call: &Call) {
        let Call::Deliver {
            qos: bits,
            topic,
            payload,
            group,
            expires,
        } = *call
        else {
            unreachable!()
        };
        let topic = if TOPICS[topic].is_empty() {
            "t"
        } else {
            TOPICS[topic]
        };
        let payload = "x".repeat(payload);
        let expires_at = expires.then(|| self.peer.now.plus_secs(100));
        let publication = Publication {
            expires_at,
            ..publication(topic, &payload)
        };
        let options = DeliveryOptions {
            group,
            is_acknowledged: false,
            identifiers: &[5],
            ..options(qos(bits))
        };
        let before = self.out.len();
        let mut outgoing = Outgoing::new(publication, &mut self.peer.frames);
        let session = &mut self.peer.session;
        let delivered = session.deliver(&mut outgoing, options, self.peer.now, &mut self.out);
        assert_eq!(delivered == Delivered::Sent, self.out.len() > before);
        let (messages, bytes, inflight) = session.outbound().backlog();
        assert!(messages <= 5 && bytes <= queue_bytes(4, 300) && inflight <= 1024);
    }

    fn connect(&mut self, call: &Call) {
        let Call::Connect {
            clean,
            expiry,
            receive_maximum,
            packet_bytes_max,
            aliases,
        } = *call
        else {
            unreachable!()
        };
        self.peer.session.connection_lost(self.peer.now);
        self.check();
        let mut connect = Connect {
            is_bridge: false,
            clean_start: clean,
            ..persistent(self.version)
        };
        if self.version == Version::V5 {
            connect.properties.session_expiry = Some(expiry);
            connect.properties.receive_maximum = NonZeroU16::new(receive_maximum);
            connect.properties.maximum_packet_size = Some(packet_bytes_max);
            connect.properties.topic_alias_maximum = Some(aliases);
            self.packet_bytes_max = packet_bytes_max;
        }
        self.peer.reconnect_into(&connect, &mut self.out);
    }

    /// Checks that the output since the last connect contains only packets that a server may send,
    /// within the client's maximum packet size.
    fn check(&mut self) {
        for packet in packets(&self.out.to_vec(), self.version) {
            line(&packet);
            let len = encoded_len(&packet, self.version).unwrap();
            assert!(u32::try_from(len).unwrap() <= self.packet_bytes_max);
        }
        self.out.clear();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn no_packet_and_no_order_of_calls_makes_the_session_panic(
        version in prop_oneof![Just(Version::V31), Just(Version::V311), Just(Version::V5)],
        is_generous in any::<bool>(),
        calls in proptest::collection::vec(call(), 1..150),
    ) {
        let mut subject = Subject::new(version, is_generous);
        for call in &calls {
            subject.call(call);
        }
        subject.check();
    }
}
