//! WebSocket framing of MQTT for both roles, RFC 6455: bytes to payload and back.
//!
//! ```text
//!   bytes of the peer --FrameReader::read--> payload (a stream of MQTT bytes) + control frames
//!   payload           --encode_frame-------> bytes for the peer
//! ```
//!
//! The opening handshake is HTTP and belongs to the owner of the connection.

mod frame;
mod mask;
mod reader;

pub use frame::{CONTROL_BYTES_MAX, HEADER_BYTES_MAX, Header, Opcode, encode_frame};
pub use mask::apply_mask;
pub use reader::{Control, FrameReader};

/// The name of MQTT in the header `Sec-WebSocket-Protocol`.
pub const SUBPROTOCOL: &str = "mqtt";

/// The close code of a normal end, RFC 6455 section 7.4.1.
pub const CLOSE_NORMAL: u16 = 1000;

/// The end of the connection that reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Writes masked frames and reads unmasked ones.
    Client,
    /// Writes unmasked frames and reads masked ones.
    Server,
}

/// Reason why the frames of a peer are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The frame or the order of frames violates the protocol.
    #[error("malformed frame: {0}")]
    Malformed(&'static str),
    /// The peer sent a text frame.
    #[error("text frame: MQTT uses binary frames only")]
    NotBinary,
    /// The payload exceeds the limit of the receiver.
    #[error("frame of {bytes} bytes, the limit is {bytes_max}")]
    TooLarge {
        /// Length of the payload that the header announces.
        bytes: u64,
        /// Limit of the receiver.
        bytes_max: u64,
    },
}

impl FrameError {
    /// The code to close the connection with, RFC 6455 section 7.4.1.
    pub const fn close_code(self) -> u16 {
        match self {
            Self::Malformed(_) => 1002,
            Self::NotBinary => 1003,
            Self::TooLarge { .. } => 1009,
        }
    }
}
