//! Why bytes are not a packet, or a packet cannot be written.

use crate::reason::ReasonCode;

/// Why bytes are refused; each variant has the reason code that the connection is closed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Against the grammar of the packet.
    #[error("malformed packet: {0}")]
    Malformed(&'static str),
    /// Well formed but forbidden.
    #[error("protocol error: {0}")]
    Protocol(&'static str),
    /// Remaining length over the limit of the receiver.
    #[error("packet too large")]
    TooLarge,
    /// CONNECT with an unknown protocol name or level.
    #[error("unsupported protocol version")]
    UnsupportedVersion,
}

impl DecodeError {
    /// The reason code to close the connection with.
    pub const fn reason(self) -> ReasonCode {
        match self {
            Self::Malformed(_) => ReasonCode::MalformedPacket,
            Self::Protocol(_) => ReasonCode::ProtocolError,
            Self::TooLarge => ReasonCode::PacketTooLarge,
            Self::UnsupportedVersion => ReasonCode::UnsupportedProtocolVersion,
        }
    }
}

/// Why a packet cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A string or binary field over 65,535 bytes.
    #[error("field over 65,535 bytes")]
    FieldTooLong,
    /// A packet over 268,435,455 bytes.
    #[error("packet over 268,435,455 bytes")]
    PacketTooLong,
    /// AUTH, a topic alias in place of the topic name, or a password without user name in 3.x.
    #[error("not expressible in this protocol version")]
    NotInVersion,
    /// A `QoS` above 0 without packet identifier, no filter, no reason code, or AUTH without
    /// method.
    #[error("packet lacks a part that it must have")]
    Incomplete,
    /// A subscription identifier of 0 or above 268,435,455, or a maximum packet size of 0.
    #[error("property value out of range")]
    OutOfRange,
}
