//! Black-box tests of the session: packets as bytes in, replies as one line of text each out.

mod aliases;
mod arbitrary;
mod authentication;
mod denied;
mod exchange;
mod fan_out;
mod handshake;
mod held_messages;
mod inbound;
mod inbound_limits;
mod journal;
mod journal_arbitrary;
mod journal_model;
mod lines;
mod mounts;
mod outbound;
mod queue;
mod queue_policies;
mod queue_priorities;
mod redelivery;
mod refusal;
mod requests;
mod restore;
mod shared;
mod timeouts;
mod wills;

extern crate std;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU16;

use thrum_codec::frame::split;
use thrum_codec::packet::{Ack, Connect, Disconnect, Packet, Publish, Subscribe, Unsubscribe};
use thrum_codec::properties::{
    AckProperties, ConnectProperties, DisconnectProperties, PublishProperties,
};
use thrum_codec::{PacketId, QoS, ReasonCode, Version, decode, encode};

use self::lines::{line, lines, packets, step_line};
use super::held::ENTRY_BYTES;
use super::*;
use crate::limits::{QueueLimits, QueuePolicy, TopicPriority};
use crate::message::FrameCache;
use crate::{Limits, Message, Outgoing, Output, Publication, Time, Violation};

const QOS0: QoS = QoS::AtMostOnce;
const QOS1: QoS = QoS::AtLeastOnce;
const QOS2: QoS = QoS::ExactlyOnce;

const VERSIONS: [Version; 3] = [Version::V31, Version::V311, Version::V5];

/// One session with its connection, clock and node.
struct Peer {
    session: Session,
    now: Time,
    frames: FrameCache,
    /// Topics and payloads handed to the node, as `topic=payload`.
    routed: Vec<String>,
    /// The node's outcome of a publish; `None` leaves it open.
    outcome: Option<ReasonCode>,
    /// Data of the authentication steps handed to the node.
    authentications: Vec<String>,
}

impl Peer {
    /// A new session; returns it with the replies to CONNECT.
    fn with(limits: Limits, connect: &Connect<'_>) -> (Self, Vec<String>) {
        let limits = Arc::new(limits);
        let handshake = Handshake::new(connect, "assigned-1", &limits).unwrap();
        let mut peer = Self {
            session: Session::new(9, &handshake, &limits),
            now: Time::from_millis(1_000_000),
            frames: FrameCache::default(),
            routed: Vec::new(),
            outcome: Some(ReasonCode::Success),
            authentications: Vec::new(),
        };
        let mut out = Output::new();
        let parts = ConnAckParts::default();
        peer.session.connect(handshake, parts, peer.now, &mut out);
        (peer, lines(&out.to_vec(), connect.version))
    }

    fn new(connect: &Connect<'_>) -> Self {
        Self::with(Limits::default(), connect).0
    }

    /// A new session that records steps.
    fn durable(connect: &Connect<'_>) -> Self {
        let mut peer = Self::new(connect);
        peer.session.journal_mut().set_on(true);
        peer
    }

    /// Connects the same client again; returns the lines after CONNACK.
    fn reconnect(&mut self, connect: &Connect<'_>) -> Vec<String> {
        let mut out = Output::new();
        self.reconnect_into(connect, &mut out);
        let mut lines = lines(&out.to_vec(), connect.version);
        assert!(lines.remove(0).starts_with("CONNACK"));
        lines
    }

    fn reconnect_into(&mut self, connect: &Connect<'_>, out: &mut Output) {
        let handshake = Handshake::new(connect, "assigned-1", &self.session.limits).unwrap();
        let parts = ConnAckParts {
            session_present: true,
            ..ConnAckParts::default()
        };
        self.session.connect(handshake, parts, self.now, out);
    }

    fn lose(&mut self) -> ConnectionEnd {
        self.session.connection_lost(self.now)
    }

    /// The will, as if no time had passed.
    fn take_will(&mut self) -> Option<Message> {
        let seen = self.session.lifetime.last_activity();
        self.session.take_will_at(seen)
    }

    /// The steps recorded since the last call, one line each.
    fn steps(&mut self) -> Vec<String> {
        let steps = self.session.journal_mut().take_steps().unwrap_or_default();
        steps.iter().map(step_line).collect()
    }

    /// The authentication steps since the last call.
    fn authentications(&mut self) -> Vec<String> {
        core::mem::take(&mut self.authentications)
    }

    /// The messages that the session dropped since the last call.
    fn dropped(&mut self) -> Vec<(DropReason, u32)> {
        self.session.outbound_mut().take_dropped().collect()
    }

    fn advance_millis(&mut self, millis: u64) {
        self.now = Time::from_millis(self.now.as_millis() + millis);
    }

    /// Sends a packet and returns the replies.
    fn send(&mut self, packet: &Packet<'_>) -> Result<Vec<String>, Violation> {
        let mut out = Output::new();
        self.send_into(packet, &mut out)?;
        Ok(lines(&out.to_vec(), self.session.link().version()))
    }

    fn send_into(&mut self, packet: &Packet<'_>, out: &mut Output) -> Result<(), Violation> {
        let version = self.session.link().version();
        let mut wire = Vec::new();
        encode(packet, version, &mut wire).unwrap();
        let frame = split(&wire, u32::MAX).unwrap().unwrap();
        let packet = decode(frame, version)?;
        match self.session.handle_packet(packet, self.now, out)? {
            Action::Publish { publish, alias } => {
                let topic = alias.as_deref().unwrap_or(publish.topic);
                let payload = String::from_utf8_lossy(publish.payload);
                self.routed.push(format!("{topic}={payload}"));
                if let Some(outcome) = self.outcome {
                    let Publish { qos, packet_id, .. } = publish;
                    self.session.publish_done(qos, packet_id, outcome, out);
                }
            }
            Action::Subscribe(Subscribe {
                packet_id,
                requests,
                ..
            }) => {
                let codes: Vec<_> = requests
                    .iter()
                    .map(|request| request.options.qos.granted())
                    .collect();
                self.session.link_mut().suback(packet_id, &codes, None, out);
            }
            Action::Unsubscribe(Unsubscribe {
                packet_id, filters, ..
            }) => {
                let codes: Vec<_> = filters.iter().map(|_| ReasonCode::Success).collect();
                self.session.link_mut().unsuback(packet_id, &codes, out);
            }
            Action::Authenticate(auth) => {
                let step = auth.properties.authentication_data.unwrap_or_default();
                let step = String::from_utf8_lossy(step);
                self.authentications.push(step.to_string());
            }
            Action::None | Action::Disconnected => {}
        }
        Ok(())
    }

    fn done(&mut self, qos: QoS, packet_id: u16, outcome: ReasonCode) -> Vec<String> {
        let mut out = Output::new();
        self.session
            .publish_done(qos, Some(id(packet_id)), outcome, &mut out);
        lines(&out.to_vec(), self.session.link().version())
    }

    /// Delivers `payload` on topic `t`; returns the result and the packets that were sent.
    fn deliver(&mut self, qos: QoS, payload: &str) -> (Delivered, Vec<String>) {
        self.deliver_publication(&publication("t", payload), &options(qos))
    }

    fn deliver_publication(
        &mut self,
        publication: &Publication<'_>,
        options: &DeliveryOptions<'_>,
    ) -> (Delivered, Vec<String>) {
        let mut out = Output::new();
        let mut outgoing = Outgoing::new(*publication, &mut self.frames);
        let delivered = self
            .session
            .deliver(&mut outgoing, *options, self.now, &mut out);
        (
            delivered,
            lines(&out.to_vec(), self.session.link().version()),
        )
    }

    /// Delivers a message and checks that it was sent at once.
    fn sent(&mut self, qos: QoS, payload: &str) -> String {
        let (delivered, mut lines) = self.deliver(qos, payload);
        assert_eq!(delivered, Delivered::Sent);
        assert_eq!(lines.len(), 1);
        lines.remove(0)
    }

    /// Delivers a message and checks that it is queued.
    fn queued(&mut self, qos: QoS, payload: &str) {
        assert_eq!(self.deliver(qos, payload), (Delivered::Queued, [].to_vec()));
    }

    fn pump(&mut self, bytes_max: usize) -> (bool, Vec<String>) {
        let mut out = Output::new();
        let more = self.session.pump(self.now, bytes_max, &mut out);
        (more, lines(&out.to_vec(), self.session.link().version()))
    }

    fn disconnect(&mut self, reason: ReasonCode, what: Option<&str>) -> Vec<String> {
        let mut out = Output::new();
        self.session.disconnect(reason, what, &mut out);
        lines(&out.to_vec(), self.session.link().version())
    }
}

/// A CONNECT with clean start and defaults.
fn connect(version: Version) -> Connect<'static> {
    Connect {
        version,
        is_bridge: false,
        clean_start: true,
        keep_alive: 60,
        client_id: "client",
        will: None,
        username: None,
        password: None,
        properties: ConnectProperties::default(),
    }
}

/// A session that outlives its connection.
fn persistent(version: Version) -> Connect<'static> {
    let session_expiry = (version == Version::V5).then_some(3600);
    Connect {
        is_bridge: false,
        clean_start: false,
        properties: ConnectProperties {
            session_expiry,
            ..ConnectProperties::default()
        },
        ..connect(version)
    }
}

/// A CONNECT for a persistent 5.0 session with this receive maximum.
fn windowed(receive_maximum: u16) -> Connect<'static> {
    let mut connect = persistent(Version::V5);
    connect.properties.receive_maximum = NonZeroU16::new(receive_maximum);
    connect
}

fn priorities(list: &[(&str, u8)]) -> Vec<TopicPriority> {
    let rule = |&(filter, priority): &(&str, u8)| TopicPriority {
        filter: filter.into(),
        priority,
    };
    list.iter().map(rule).collect()
}

/// Memory of this number of queued messages, which have `text` bytes of topics and payloads in
/// total.
fn queue_bytes(messages: usize, text: usize) -> usize {
    messages * ENTRY_BYTES + text
}

/// The queue limit for them.
fn queue_bytes_max(messages: usize, text: usize) -> u32 {
    u32::try_from(queue_bytes(messages, text)).unwrap()
}

fn id(value: u16) -> PacketId {
    PacketId::new(value).unwrap()
}

fn publish<'a>(qos: QoS, packet_id: u16, topic: &'a str, payload: &'a str) -> Publish<'a> {
    Publish {
        dup: false,
        qos,
        retain: false,
        topic,
        packet_id: PacketId::new(packet_id),
        properties: PublishProperties::default(),
        payload: payload.as_bytes(),
    }
}

fn ack(packet_id: u16) -> Ack<'static> {
    ack_with(packet_id, ReasonCode::Success)
}

fn ack_with(packet_id: u16, reason: ReasonCode) -> Ack<'static> {
    Ack {
        packet_id: id(packet_id),
        reason,
        properties: AckProperties::default(),
    }
}

fn puback(packet_id: u16) -> Packet<'static> {
    Packet::PubAck(ack(packet_id))
}

fn pubrec(packet_id: u16) -> Packet<'static> {
    Packet::PubRec(ack(packet_id))
}

fn pubrel(packet_id: u16) -> Packet<'static> {
    Packet::PubRel(ack(packet_id))
}

fn pubcomp(packet_id: u16) -> Packet<'static> {
    Packet::PubComp(ack(packet_id))
}

fn client_disconnect(reason: ReasonCode) -> Packet<'static> {
    Packet::Disconnect(Disconnect {
        reason,
        properties: DisconnectProperties::default(),
    })
}

fn publication<'a>(topic: &'a str, payload: &'a str) -> Publication<'a> {
    Publication {
        publisher: 1,
        ..Publication::new(topic, payload.as_bytes(), QOS2)
    }
}

fn options(qos: QoS) -> DeliveryOptions<'static> {
    DeliveryOptions {
        qos,
        retain: false,
        identifiers: &[],
        group: None,
        is_acknowledged: false,
    }
}

fn reason<T: core::fmt::Debug>(outcome: Result<T, Violation>) -> ReasonCode {
    outcome.unwrap_err().reason
}
