//! The fifteen control packets as borrowed values; one model for all protocol versions.

use core::num::NonZeroU16;

use crate::properties::{
    AckProperties, AuthProperties, ConnAckProperties, ConnectProperties, DisconnectProperties,
    PublishProperties, SubscribeProperties, UserProperties, WillProperties,
};
use crate::reason::ReasonCode;
use crate::topic::TopicFilter;

/// The protocol version of a connection, in the order of publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// MQTT 3.1: protocol name `MQIsdp`, level 3.
    V31,
    /// MQTT 3.1.1: protocol name `MQTT`, level 4.
    V311,
    /// MQTT 5.0: protocol name `MQTT`, level 5.
    V5,
}

/// Quality of service of a message or the highest one of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum QoS {
    /// At most once.
    #[default]
    AtMostOnce = 0,
    /// At least once.
    AtLeastOnce = 1,
    /// Exactly once.
    ExactlyOnce = 2,
}

/// A packet identifier, which is never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub NonZeroU16);

/// One control packet that borrows from the bytes it was decoded from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the packet of that name")]
pub enum Packet<'a> {
    Connect(Connect<'a>),
    ConnAck(ConnAck<'a>),
    Publish(Publish<'a>),
    PubAck(Ack<'a>),
    PubRec(Ack<'a>),
    PubRel(Ack<'a>),
    PubComp(Ack<'a>),
    Subscribe(Subscribe<'a>),
    SubAck(SubAck<'a>),
    Unsubscribe(Unsubscribe<'a>),
    UnsubAck(SubAck<'a>),
    PingReq,
    PingResp,
    Disconnect(Disconnect<'a>),
    Auth(Auth<'a>),
}

/// CONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect<'a> {
    /// Version named by protocol name and level.
    pub version: Version,
    /// The client is a bridge of another broker (3.x; the highest bit of the protocol level, a de
    /// facto convention). A bridge does not want its own messages back, and wants the retain flag
    /// as published.
    pub is_bridge: bool,
    /// Clean start (5.0) or clean session (3.x).
    pub clean_start: bool,
    /// Keep alive in seconds; 0 turns it off.
    pub keep_alive: u16,
    /// Client identifier, possibly empty.
    pub client_id: &'a str,
    /// Will message.
    pub will: Option<Will<'a>>,
    /// User name.
    pub username: Option<&'a str>,
    /// Password, binary.
    pub password: Option<&'a [u8]>,
    /// Properties (5.0; else the default).
    pub properties: ConnectProperties<'a>,
}

/// The will inside a CONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Will<'a> {
    /// Topic name: not empty, no wildcard.
    pub topic: &'a str,
    /// Application payload.
    pub payload: &'a [u8],
    /// Quality of service.
    pub qos: QoS,
    /// Publish as retained.
    pub retain: bool,
    /// Properties (5.0; else the default).
    pub properties: WillProperties<'a>,
}

/// CONNACK. The 3.x return code is converted to and from the reason code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnAck<'a> {
    /// The server had a session for this client.
    pub session_present: bool,
    /// Outcome.
    pub reason: ReasonCode,
    /// Properties (5.0; else the default).
    pub properties: ConnAckProperties<'a>,
}

/// PUBLISH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publish<'a> {
    /// Set on a retransmission.
    pub dup: bool,
    /// Quality of service.
    pub qos: QoS,
    /// Retain flag.
    pub retain: bool,
    /// Topic name without wildcards; empty only with a topic alias (5.0).
    pub topic: &'a str,
    /// Present when the quality of service is above 0.
    pub packet_id: Option<PacketId>,
    /// Properties (5.0; else the default).
    pub properties: PublishProperties<'a>,
    /// Application payload.
    pub payload: &'a [u8],
}

/// PUBACK, PUBREC, PUBREL or PUBCOMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// Packet identifier of the acknowledged PUBLISH.
    pub packet_id: PacketId,
    /// Outcome; `Success` in 3.x.
    pub reason: ReasonCode,
    /// Properties (5.0; else the default).
    pub properties: AckProperties<'a>,
}

/// SUBSCRIBE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribe<'a> {
    /// Packet identifier.
    pub packet_id: PacketId,
    /// Properties (5.0; else the default).
    pub properties: SubscribeProperties<'a>,
    /// At least one request.
    pub requests: SubscriptionRequests<'a>,
}

/// One filter of a SUBSCRIBE and its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionRequest<'a> {
    /// Checked filter, with its `$share/…/` prefix if it has one.
    pub filter: TopicFilter<'a>,
    /// Options; 3.x has only the quality of service.
    pub options: SubscriptionOptions,
}

/// Options of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SubscriptionOptions {
    /// Highest quality of service to deliver with.
    pub qos: QoS,
    /// Do not send this client's own messages.
    pub no_local: bool,
    /// Keep the retain flag as published.
    pub retain_as_published: bool,
    /// When to send retained messages.
    pub retain_handling: RetainHandling,
}

/// Whether a SUBSCRIBE causes retained messages to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RetainHandling {
    /// At every SUBSCRIBE.
    #[default]
    Send = 0,
    /// Only if the subscription is new.
    SendIfNew = 1,
    /// Never.
    Never = 2,
}

/// The requests of a SUBSCRIBE: wire bytes, or a list given by the sender.
#[derive(Clone, Copy, Debug)]
pub enum SubscriptionRequests<'a> {
    /// Checked wire bytes.
    Wire {
        /// The payload of the packet.
        bytes: &'a [u8],
        /// Version that defines the options byte.
        version: Version,
    },
    /// Listed.
    Listed(&'a [SubscriptionRequest<'a>]),
}

/// SUBACK or UNSUBACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubAck<'a> {
    /// Packet identifier of the acknowledged packet.
    pub packet_id: PacketId,
    /// Properties (5.0; else the default).
    pub properties: AckProperties<'a>,
    /// One per filter; empty in an UNSUBACK of 3.x.
    pub codes: ReasonCodes<'a>,
}

/// The reason codes of a SUBACK or UNSUBACK: checked wire bytes, or a list.
#[derive(Clone, Copy, Debug)]
pub enum ReasonCodes<'a> {
    /// Checked wire bytes.
    Wire(&'a [u8]),
    /// Listed.
    Listed(&'a [ReasonCode]),
}

/// UNSUBSCRIBE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsubscribe<'a> {
    /// Packet identifier.
    pub packet_id: PacketId,
    /// User properties (5.0).
    pub user: UserProperties<'a>,
    /// At least one filter.
    pub filters: TopicFilters<'a>,
}

/// The filters of an UNSUBSCRIBE.
#[derive(Clone, Copy, Debug)]
pub enum TopicFilters<'a> {
    /// Checked wire bytes: the payload of the packet.
    Wire(&'a [u8]),
    /// Listed.
    Listed(&'a [TopicFilter<'a>]),
}

/// DISCONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disconnect<'a> {
    /// Reason; `Success` (normal disconnection) in 3.x.
    pub reason: ReasonCode,
    /// Properties (5.0; else the default).
    pub properties: DisconnectProperties<'a>,
}

/// AUTH (5.0 only).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auth<'a> {
    /// `Success`, `ContinueAuthentication` or `ReAuthenticate`.
    pub reason: ReasonCode,
    /// Properties.
    pub properties: AuthProperties<'a>,
}

impl Version {
    /// All versions, in the order of publication.
    pub const ALL: [Self; 3] = [Self::V31, Self::V311, Self::V5];

    /// Its name without `MQTT` in front: `3.1`, `3.1.1`, `5.0`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V31 => "3.1",
            Self::V311 => "3.1.1",
            Self::V5 => "5.0",
        }
    }

    /// The version of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }
}

impl QoS {
    /// The quality of service of two wire bits; `None` for 3 and above.
    #[inline]
    pub const fn from_u8(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::AtMostOnce),
            1 => Some(Self::AtLeastOnce),
            2 => Some(Self::ExactlyOnce),
            _ => None,
        }
    }

    /// 0, 1 or 2.
    #[inline]
    pub const fn as_u8(self) -> u8 {
        self as u8
    }

    /// The reason code of a SUBACK that grants this quality of service.
    #[inline]
    pub const fn granted(self) -> ReasonCode {
        match self {
            Self::AtMostOnce => ReasonCode::Success,
            Self::AtLeastOnce => ReasonCode::GrantedQoS1,
            Self::ExactlyOnce => ReasonCode::GrantedQoS2,
        }
    }
}

impl From<QoS> for u8 {
    fn from(qos: QoS) -> Self {
        qos.as_u8()
    }
}

impl TryFrom<u8> for QoS {
    type Error = u8;

    fn try_from(bits: u8) -> Result<Self, u8> {
        Self::from_u8(bits).ok_or(bits)
    }
}

impl PacketId {
    /// A packet identifier; `None` for zero.
    #[inline]
    pub const fn new(value: u16) -> Option<Self> {
        match NonZeroU16::new(value) {
            Some(value) => Some(Self(value)),
            None => None,
        }
    }

    /// The number on the wire.
    #[inline]
    pub const fn as_u16(self) -> u16 {
        self.0.get()
    }
}

impl RetainHandling {
    /// The retain handling of two wire bits; `None` for 3 and above.
    #[inline]
    pub const fn from_u8(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::Send),
            1 => Some(Self::SendIfNew),
            2 => Some(Self::Never),
            _ => None,
        }
    }

    /// 0, 1 or 2.
    #[inline]
    pub const fn as_u8(self) -> u8 {
        self as u8
    }
}
