//! The input: every packet that a client may send, and every way to spoil it.

mod frames;
mod handshake;
mod messages;
mod properties;
mod samples;
mod sequence;
mod strings;
mod subscriptions;

pub use frames::{flags, lengths, trailing_bytes, truncations, valid};
pub use handshake::handshake;
pub use messages::messages;
pub use properties::properties;
pub use sequence::sequence;
pub use strings::strings;
pub use subscriptions::subscriptions;

/// Malformed Packet.
pub(crate) const MALFORMED: &[u8] = &[0x81];
/// Protocol Error.
pub(crate) const PROTOCOL: &[u8] = &[0x82];
/// For rules of the specification that name no reason code.
pub(crate) const MALFORMED_OR_PROTOCOL: &[u8] = &[0x81, 0x82];
