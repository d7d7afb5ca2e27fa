//! One frame to one packet.

use crate::error::DecodeError;
use crate::frame::Frame;
use crate::packet::{Packet, Version};

/// Decodes one frame; `version` is ignored for CONNECT, which names its own.
///
/// # Errors
/// Everything the specification calls malformed or a protocol error and that shows in the packet alone.
pub fn decode(_frame: Frame<'_>, _version: Version) -> Result<Packet<'_>, DecodeError> {
    todo!()
}
