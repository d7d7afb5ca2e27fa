//! Reasons why bytes are not a packet, or why a packet cannot be written.

use crate::reason::ReasonCode;

/// Reason why bytes are refused; each variant has a reason code for closing the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes violate the grammar of the packet.
    #[error("malformed packet: {0}")]
    Malformed(&'static str),
    /// The packet is well formed but forbidden.
    #[error("protocol error: {0}")]
    Protocol(&'static str),
    /// The packet exceeds the limit of the receiver.
    #[error("packet too large")]
    TooLarge,
    /// The CONNECT has an unknown protocol name or level.
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

/// Reason why a packet cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A string or binary field exceeds 65,535 bytes.
    #[error("field over 65,535 bytes")]
    FieldTooLong,
    /// The packet exceeds 268,435,455 bytes.
    #[error("packet over 268,435,455 bytes")]
    PacketTooLong,
    /// AUTH, a topic alias without a topic name, or a password without a user name in 3.x.
    #[error("not expressible in this protocol version")]
    NotInVersion,
    /// A `QoS` above 0 without packet identifier, no filter, no reason code, or AUTH without
    /// method.
    #[error("packet lacks a required part")]
    Incomplete,
    /// A subscription identifier of 0 or above 268,435,455, or a maximum packet size of 0.
    #[error("property value out of range")]
    OutOfRange,
}
