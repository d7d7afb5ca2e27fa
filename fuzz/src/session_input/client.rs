//! The client's view of the server: frames, checked one by one as they arrive.

use std::collections::BTreeSet;

use thrum_codec::packet::{Ack, Auth, Publish};
use thrum_codec::{Packet, PacketId, QoS, ReasonCode, Version, decode, frame};

/// One connection as its client sees it.
#[derive(Debug)]
pub(super) struct Client {
    version: Version,
    packet_bytes_max: u32,
    receive_maximum: u16,
    topic_alias_maximum: u16,
    is_accepted: bool,
    is_ended: bool,
    /// The authentication method.
    method: Option<String>,
    /// Identifiers of the server's messages whose exchange this client has not completed.
    unacknowledged: BTreeSet<PacketId>,
    /// Identifiers that this client has used for its own messages and requests.
    used: BTreeSet<PacketId>,
    aliases: BTreeSet<u16>,
}

impl Client {
    pub(super) fn new(connect: &thrum_codec::packet::Connect<'_>, inflight_max: u16) -> Self {
        let properties = &connect.properties;
        let receive_maximum = properties
            .receive_maximum
            .map_or(u16::MAX, core::num::NonZeroU16::get);
        Self {
            version: connect.version,
            packet_bytes_max: properties.maximum_packet_size.unwrap_or(u32::MAX),
            receive_maximum: receive_maximum.min(inflight_max),
            topic_alias_maximum: properties.topic_alias_maximum.unwrap_or(0),
            is_accepted: false,
            is_ended: false,
            method: properties.authentication_method.map(str::to_owned),
            unacknowledged: BTreeSet::new(),
            used: BTreeSet::new(),
            aliases: BTreeSet::new(),
        }
    }

    /// Records a packet of the client before the session handles it.
    pub(super) fn sends(&mut self, packet: &Packet<'_>) {
        match packet {
            Packet::Publish(publish) => self.used.extend(publish.packet_id),
            Packet::PubRel(ack) => _ = self.used.insert(ack.packet_id),
            Packet::Subscribe(subscribe) => _ = self.used.insert(subscribe.packet_id),
            Packet::Unsubscribe(unsubscribe) => _ = self.used.insert(unsubscribe.packet_id),
            Packet::PubAck(ack) | Packet::PubComp(ack) => self.acknowledges(ack),
            Packet::PubRec(ack) if ack.reason.is_error() => self.acknowledges(ack),
            _ => {}
        }
    }

    fn acknowledges(&mut self, ack: &Ack<'_>) {
        self.unacknowledged.remove(&ack.packet_id);
    }

    /// Checks bytes of the server; returns a set of the frames' kinds for the observed behaviour.
    pub(super) fn reads(&mut self, mut bytes: &[u8]) -> u16 {
        let mut kinds = 0;
        while !bytes.is_empty() {
            let frame = frame::split(bytes, self.packet_bytes_max)
                .expect("no frame is over the client's maximum packet size")
                .expect("only whole frames are written");
            kinds |= 1 << (frame.first >> 4);
            let packet = decode(frame, self.version).expect("only valid packets are written");
            self.check(&packet);
            bytes = &bytes[frame.len..];
        }
        kinds
    }

    /// [MQTT-3.2.0-1] [MQTT-3.2.0-2] [MQTT-3.14.4-1], based on the flags.
    fn check(&mut self, packet: &Packet<'_>) {
        assert!(!self.is_ended, "{packet:?} after the last packet");
        if let Packet::Auth(auth) = packet {
            self.check_auth(auth);
            return;
        }
        if !self.is_accepted {
            let Packet::ConnAck(connack) = packet else {
                panic!("{packet:?} before CONNACK")
            };
            self.is_accepted = connack.reason == ReasonCode::Success;
            self.is_ended = !self.is_accepted;
            let method = self.method.as_deref().filter(|_| self.is_accepted);
            assert_eq!(connack.properties.authentication_method, method);
            return;
        }
        match packet {
            Packet::Publish(publish) => self.check_publish(publish),
            Packet::PubAck(ack) | Packet::PubRec(ack) | Packet::PubComp(ack) => {
                assert!(
                    self.used.contains(&ack.packet_id),
                    "{packet:?} without a request"
                );
            }
            Packet::SubAck(answer) | Packet::UnsubAck(answer) => {
                assert!(
                    self.used.contains(&answer.packet_id),
                    "{packet:?} without a request"
                );
            }
            Packet::PubRel(_) | Packet::PingResp | Packet::Auth(_) => {}
            Packet::Disconnect(_) => {
                assert_eq!(
                    self.version,
                    Version::V5,
                    "3.x has no DISCONNECT of the server"
                );
                self.is_ended = true;
            }
            Packet::Connect(_)
            | Packet::ConnAck(_)
            | Packet::Subscribe(_)
            | Packet::Unsubscribe(_)
            | Packet::PingReq => panic!("{packet:?} from the server"),
        }
    }

    /// [MQTT-4.12.0-2] [MQTT-4.12.0-5] [MQTT-4.12.0-6], based on the names.
    fn check_auth(&self, auth: &Auth<'_>) {
        assert!(self.method.is_some(), "AUTH to a client without method");
        let method = auth.properties.authentication_method;
        assert_eq!(method, self.method.as_deref());
        let is_done = auth.reason == ReasonCode::Success;
        assert!(is_done || auth.reason == ReasonCode::ContinueAuthentication);
        assert!(self.is_accepted || !is_done, "success before CONNACK");
    }

    fn check_publish(&mut self, publish: &Publish<'_>) {
        if let Some(alias) = publish.properties.topic_alias {
            assert!(
                alias.get() <= self.topic_alias_maximum,
                "alias above the maximum"
            );
            let is_known = !self.aliases.insert(alias.get());
            assert!(
                is_known || !publish.topic.is_empty(),
                "alias without a topic"
            );
        }
        let Some(packet_id) = publish.packet_id else {
            return;
        };
        assert!(publish.qos > QoS::AtMostOnce);
        let is_new = self.unacknowledged.insert(packet_id);
        assert!(is_new, "{packet_id:?} is in use");
        let count = self.unacknowledged.len();
        assert!(
            count <= usize::from(self.receive_maximum),
            "{count} unacknowledged messages"
        );
    }
}

/// The packet type on the wire.
pub(super) fn kind(packet: &Packet<'_>) -> u8 {
    match packet {
        Packet::Connect(_) => 1,
        Packet::ConnAck(_) => 2,
        Packet::Publish(_) => 3,
        Packet::PubAck(_) => 4,
        Packet::PubRec(_) => 5,
        Packet::PubRel(_) => 6,
        Packet::PubComp(_) => 7,
        Packet::Subscribe(_) => 8,
        Packet::SubAck(_) => 9,
        Packet::Unsubscribe(_) => 10,
        Packet::UnsubAck(_) => 11,
        Packet::PingReq => 12,
        Packet::PingResp => 13,
        Packet::Disconnect(_) => 14,
        Packet::Auth(_) => 15,
    }
}
