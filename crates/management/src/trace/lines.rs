//! A trace as JSON lines: a packet, a gap, or the end in each.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use thrum_broker::{Direction, TraceEnd, TraceItem, TracedPacket};
use thrum_codec::packet::{Ack, Connect, Publish, SubAck};
use thrum_codec::{Packet, PacketId};

use super::excerpt::{cut, packet};
use crate::timestamp::timestamp_micros;

/// A line of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// A packet.
    Packet(PacketLine),
    /// So many packets are missing here: the trace could not keep up.
    LeftOut(u64),
    /// Nothing follows: `time`, `packets` or `bytes` is reached, or the broker has `stopped`.
    Ended(String),
}

/// A packet of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketLine {
    /// When it was decoded, or offered to the socket.
    pub at: String,
    /// `from_client` or `to_client`.
    pub direction: String,
    /// Number of the connection in this trace.
    pub connection: u64,
    /// Client identifier; empty before it is known.
    pub client_id: String,
    /// Address and port of the client, or the kind of connection if it has none.
    pub peer: String,
    /// Bytes of the packet.
    pub packet_bytes: u32,
    /// The packet.
    #[serde(flatten)]
    pub body: TracedBody,
}

/// A packet; reason codes are those of 5.0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "packet", rename_all = "UPPERCASE")]
#[expect(
    missing_docs,
    reason = "the variants and fields are those of the specification"
)]
pub enum TracedBody {
    Connect {
        connect_client_id: String,
        clean_start: bool,
        keep_alive_secs: u16,
        session_expiry_secs: Option<u32>,
        username: Option<String>,
        has_password: bool,
        will: Option<TracedWill>,
    },
    ConnAck {
        session_present: bool,
        reason_code: u8,
    },
    Publish {
        topic: String,
        qos: u8,
        retain: bool,
        dup: bool,
        packet_id: Option<u16>,
        payload_bytes: usize,
        /// The payload as text; null unless it was asked for and is UTF-8.
        payload: Option<String>,
        /// The payload, or its beginning; null unless it was asked for and is no text.
        payload_base64: Option<String>,
    },
    PubAck(TracedAck),
    PubRec(TracedAck),
    PubRel(TracedAck),
    PubComp(TracedAck),
    Subscribe {
        packet_id: u16,
        filters: Vec<TracedFilter>,
    },
    SubAck(TracedSubAck),
    Unsubscribe {
        packet_id: u16,
        filters: Vec<String>,
    },
    UnsubAck(TracedSubAck),
    PingReq,
    PingResp,
    Disconnect {
        reason_code: u8,
    },
    Auth {
        reason_code: u8,
    },
    /// Bytes that are no packet.
    Malformed {
        /// The first byte: type and flags.
        first_byte: u8,
        /// What is wrong with it, in words.
        reason: String,
    },
    /// A packet that is too long for a trace.
    Cut {
        /// Its first byte: type and flags.
        first_byte: u8,
    },
}

/// PUBACK, PUBREC, PUBREL or PUBCOMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedAck {
    /// Packet identifier.
    pub packet_id: u16,
    /// Reason code.
    pub reason_code: u8,
}

/// SUBACK or UNSUBACK.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedSubAck {
    /// Packet identifier.
    pub packet_id: u16,
    /// A reason code for each filter; none in an UNSUBACK before 5.0.
    pub reason_codes: Vec<u8>,
}

impl From<&Ack<'_>> for TracedAck {
    fn from(ack: &Ack<'_>) -> Self {
        Self {
            packet_id: ack.packet_id.as_u16(),
            reason_code: ack.reason as u8,
        }
    }
}

impl From<&SubAck<'_>> for TracedSubAck {
    fn from(ack: &SubAck<'_>) -> Self {
        Self {
            packet_id: ack.packet_id.as_u16(),
            reason_codes: ack.codes.iter().map(|code| code as u8).collect(),
        }
    }
}

/// The will in a CONNECT.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedWill {
    /// Topic.
    pub topic: String,
    /// Quality of service.
    pub qos: u8,
    /// It will be retained.
    pub retain: bool,
    /// Bytes of its payload.
    pub payload_bytes: usize,
}

/// A filter of a SUBSCRIBE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedFilter {
    /// The filter as the client sent it.
    pub filter: String,
    /// The quality of service that it asked for.
    pub qos: u8,
}

/// A line about what the trace tells.
pub(crate) fn line(item: &TraceItem, has_payloads: bool) -> Line {
    match item {
        TraceItem::Packet(traced) => Line::Packet(packet_line(traced, has_payloads)),
        TraceItem::LeftOut(packets) => Line::LeftOut(*packets),
        TraceItem::Ended(end) => Line::Ended(
            match end {
                TraceEnd::Time => "time",
                TraceEnd::Packets => "packets",
                TraceEnd::Bytes => "bytes",
                TraceEnd::Stopped => "stopped",
            }
            .to_owned(),
        ),
    }
}

fn packet_line(traced: &TracedPacket, has_payloads: bool) -> PacketLine {
    let direction = match traced.direction {
        Direction::FromClient => "from_client",
        Direction::ToClient => "to_client",
    };
    let first_byte = traced.bytes.first().copied().unwrap_or_default();
    let body = match (&traced.malformed, packet(traced)) {
        (Some(reason), _) => TracedBody::Malformed {
            first_byte,
            reason: reason.to_string(),
        },
        (None, None) => TracedBody::Cut { first_byte },
        (None, Some(packet)) => body(traced, &packet, has_payloads),
    };
    PacketLine {
        at: timestamp_micros(traced.at_micros),
        direction: direction.to_owned(),
        connection: traced.connection,
        client_id: traced.client_id.to_string(),
        peer: traced.peer.to_string(),
        packet_bytes: traced.packet_bytes,
        body,
    }
}

fn body(traced: &TracedPacket, packet: &Packet<'_>, has_payloads: bool) -> TracedBody {
    match packet {
        Packet::Connect(connect) => connected(connect),
        Packet::ConnAck(connack) => TracedBody::ConnAck {
            session_present: connack.session_present,
            reason_code: connack.reason as u8,
        },
        Packet::Publish(publish) => published(traced, publish, has_payloads),
        Packet::PubAck(ack) => TracedBody::PubAck(ack.into()),
        Packet::PubRec(ack) => TracedBody::PubRec(ack.into()),
        Packet::PubRel(ack) => TracedBody::PubRel(ack.into()),
        Packet::PubComp(ack) => TracedBody::PubComp(ack.into()),
        Packet::SubAck(ack) => TracedBody::SubAck(ack.into()),
        Packet::UnsubAck(ack) => TracedBody::UnsubAck(ack.into()),
        other => simple(other),
    }
}

/// The other packets.
fn simple(packet: &Packet<'_>) -> TracedBody {
    match packet {
        Packet::Subscribe(subscribe) => TracedBody::Subscribe {
            packet_id: subscribe.packet_id.as_u16(),
            filters: subscribe
                .requests
                .iter()
                .map(|request| TracedFilter {
                    filter: request.filter.as_str().to_owned(),
                    qos: request.options.qos.as_u8(),
                })
                .collect(),
        },
        Packet::Unsubscribe(unsubscribe) => TracedBody::Unsubscribe {
            packet_id: unsubscribe.packet_id.as_u16(),
            filters: unsubscribe
                .filters
                .iter()
                .map(|filter| filter.as_str().to_owned())
                .collect(),
        },
        Packet::PingResp => TracedBody::PingResp,
        Packet::Disconnect(disconnect) => TracedBody::Disconnect {
            reason_code: disconnect.reason as u8,
        },
        Packet::Auth(auth) => TracedBody::Auth {
            reason_code: auth.reason as u8,
        },
        _ => TracedBody::PingReq,
    }
}

fn connected(connect: &Connect<'_>) -> TracedBody {
    TracedBody::Connect {
        connect_client_id: connect.client_id.to_owned(),
        clean_start: connect.clean_start,
        keep_alive_secs: connect.keep_alive,
        session_expiry_secs: connect.properties.session_expiry,
        username: connect.username.map(ToOwned::to_owned),
        has_password: connect.password.is_some(),
        will: connect.will.map(|will| TracedWill {
            topic: will.topic.to_owned(),
            qos: will.qos.as_u8(),
            retain: will.retain,
            payload_bytes: will.payload.len(),
        }),
    }
}

fn published(traced: &TracedPacket, publish: &Publish<'_>, has_payloads: bool) -> TracedBody {
    let payload = publish.payload;
    let cut = cut(traced);
    let text = std::str::from_utf8(payload).ok().filter(|_| cut == 0);
    TracedBody::Publish {
        topic: traced.topic.as_deref().unwrap_or(publish.topic).to_owned(),
        qos: publish.qos.as_u8(),
        retain: publish.retain,
        dup: publish.dup,
        packet_id: publish.packet_id.map(PacketId::as_u16),
        payload_bytes: payload.len() + cut,
        payload: text.filter(|_| has_payloads).map(ToOwned::to_owned),
        payload_base64: (has_payloads && text.is_none()).then(|| STANDARD.encode(payload)),
    }
}
