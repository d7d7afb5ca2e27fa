//! Scenarios of one client: packets of the server as input, packets and events of the client as
//! output, both as short text.

mod authentication;
mod connection;
mod keep_alive;
mod publish;
mod receive;
mod resume;
mod subscribe;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::packet::{Ack, ConnAck, Packet, Publish};
use thrum_codec::properties::{AckProperties, ConnAckProperties, PublishProperties};
use thrum_codec::{PacketId, QoS, ReasonCode, TopicFilter, Version, decode, frame};

use super::{Client, ClientOptions, Event, PublishError};
use crate::{Time, Violation};

/// A client and the bytes it wrote.
struct Peer {
    client: Client,
    out: Vec<u8>,
    now: Time,
}

impl Peer {
    fn new(options: ClientOptions) -> Self {
        let client = Client::new(Arc::new(options), "me");
        Self {
            client,
            out: Vec::new(),
            now: Time::from_millis(5000),
        }
    }

    /// Connects to a server without limits and without a session; the CONNECT is removed from
    /// `out`.
    fn connected(options: ClientOptions) -> Self {
        let mut peer = Self::new(options);
        peer.reconnect(&accept(false));
        peer
    }

    fn version(&self) -> Version {
        self.client.options().version
    }

    fn reconnect(&mut self, ack: &ConnAck<'_>) -> String {
        self.out.clear();
        self.client.connect(self.now, &mut self.out).unwrap();
        assert_eq!(self.sent(), ["CONNECT"]);
        self.receive(Packet::ConnAck(*ack)).unwrap()
    }

    #[expect(
        clippy::large_types_passed_by_value,
        reason = "the packet is built for the call"
    )]
    fn receive(&mut self, packet: Packet<'_>) -> Result<String, Violation> {
        let event = self.client.handle_packet(packet, self.now, &mut self.out)?;
        Ok(render_event(&event))
    }

    fn publish(&mut self, qos: QoS, topic: &str) -> Result<u16, PublishError> {
        let sent = self
            .client
            .publish(&message(qos, topic), self.now, &mut self.out)?;
        Ok(sent.map_or(0, PacketId::as_u16))
    }

    /// Packets that the client wrote since the last call.
    fn sent(&mut self) -> Vec<String> {
        let version = self.version();
        let bytes = core::mem::take(&mut self.out);
        let mut rest = &bytes[..];
        let mut packets = Vec::new();
        while let Some(frame) = frame::split(rest, u32::MAX).unwrap() {
            packets.push(render(&decode(frame, version).unwrap()));
            rest = &rest[frame.len..];
        }
        assert!(rest.is_empty(), "incomplete packet: {rest:?}");
        packets
    }

    fn timeout_at(&mut self, millis: u64) -> Result<Vec<String>, Violation> {
        self.now = Time::from_millis(millis);
        self.client.handle_timeout(self.now, &mut self.out)?;
        Ok(self.sent())
    }
}

fn persistent(version: Version) -> ClientOptions {
    ClientOptions {
        version,
        clean_start: false,
        session_expiry: 300,
        ..ClientOptions::default()
    }
}

fn clean(version: Version) -> ClientOptions {
    ClientOptions {
        version,
        ..ClientOptions::default()
    }
}

fn id(value: u16) -> PacketId {
    PacketId::new(value).unwrap()
}

fn message(qos: QoS, topic: &str) -> Publish<'_> {
    Publish {
        dup: false,
        qos,
        retain: false,
        topic,
        packet_id: None,
        properties: PublishProperties::default(),
        payload: b"payload",
    }
}

fn delivery(qos: QoS, packet_id: u16, topic: &str) -> Packet<'_> {
    Packet::Publish(Publish {
        packet_id: PacketId::new(packet_id),
        ..message(qos, topic)
    })
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

fn accept(session_present: bool) -> ConnAck<'static> {
    accept_with(session_present, ConnAckProperties::default())
}

fn accept_with(session_present: bool, properties: ConnAckProperties<'_>) -> ConnAck<'_> {
    ConnAck {
        session_present,
        reason: ReasonCode::Success,
        properties,
    }
}

fn code(reason: ReasonCode) -> String {
    match reason {
        ReasonCode::Success => String::new(),
        reason => format!(" {:#04x}", reason as u8),
    }
}

fn render(packet: &Packet<'_>) -> String {
    let acknowledgement = |name: &str, ack: &Ack<'_>| {
        format!("{name} #{}{}", ack.packet_id.as_u16(), code(ack.reason))
    };
    match packet {
        Packet::Connect(_) => "CONNECT".to_string(),
        Packet::Publish(publish) => render_publish(publish),
        Packet::PubAck(ack) => acknowledgement("PUBACK", ack),
        Packet::PubRec(ack) => acknowledgement("PUBREC", ack),
        Packet::PubRel(ack) => acknowledgement("PUBREL", ack),
        Packet::PubComp(ack) => acknowledgement("PUBCOMP", ack),
        Packet::Subscribe(subscribe) => {
            let filters: Vec<&str> = subscribe
                .requests
                .iter()
                .map(|request| request.filter.as_str())
                .collect();
            format!(
                "SUBSCRIBE #{} {}",
                subscribe.packet_id.as_u16(),
                filters.join(" ")
            )
        }
        Packet::Unsubscribe(unsubscribe) => {
            let filters: Vec<&str> = unsubscribe
                .filters
                .iter()
                .map(TopicFilter::as_str)
                .collect();
            format!(
                "UNSUBSCRIBE #{} {}",
                unsubscribe.packet_id.as_u16(),
                filters.join(" ")
            )
        }
        Packet::PingReq => "PINGREQ".to_string(),
        Packet::Disconnect(disconnect) => format!("DISCONNECT{}", code(disconnect.reason)),
        Packet::Auth(auth) => format!("AUTH{}", code(auth.reason)),
        Packet::ConnAck(_) | Packet::SubAck(_) | Packet::UnsubAck(_) | Packet::PingResp => {
            panic!("a client sent {packet:?}")
        }
    }
}

fn render_publish(publish: &Publish<'_>) -> String {
    let dup = if publish.dup { " dup" } else { "" };
    let id = publish
        .packet_id
        .map_or(String::new(), |id| format!(" #{}", id.as_u16()));
    let alias = publish
        .properties
        .topic_alias
        .map_or(String::new(), |alias| format!(" alias {alias}"));
    format!(
        "PUBLISH{dup} q{}{id} {}{alias}",
        publish.qos.as_u8(),
        publish.topic
    )
}

fn render_event(event: &Event<'_>) -> String {
    match event {
        Event::None | Event::Released => String::new(),
        Event::Connected(ack) => format!("connected, session {}", ack.session_present),
        Event::Refused(ack) => format!("refused{}", code(ack.reason)),
        Event::Message { publish, alias } => {
            let topic = alias.as_deref().unwrap_or(publish.topic);
            format!("message {topic}")
        }
        Event::Acknowledged { packet_id, reason } => {
            format!("acknowledged #{}{}", packet_id.as_u16(), code(*reason))
        }
        Event::Subscribed(ack) => format!("subscribed #{}", ack.packet_id.as_u16()),
        Event::Unsubscribed(ack) => format!("unsubscribed #{}", ack.packet_id.as_u16()),
        Event::Disconnected(disconnect) => format!("disconnected{}", code(disconnect.reason)),
        Event::Pong => "pong".to_string(),
        Event::Authenticate(auth) => format!("authenticate{}", code(auth.reason)),
    }
}
