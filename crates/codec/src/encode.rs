//! One packet to bytes.

use alloc::vec::Vec;

use crate::error::EncodeError;
use crate::packet::{Packet, Publish, Version};

/// Where a PUBLISH was written in the output, so that a copy can be given another packet identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishFrame {
    /// Length of the frame in bytes.
    pub len: usize,
    /// Offset of the packet identifier from the frame's start; none with QoS 0.
    pub packet_id_at: Option<usize>,
}

/// Appends the packet to `out`; nothing is appended on error.
///
/// # Errors
/// A field or the packet is too long for the wire format.
pub fn encode(
    _packet: &Packet<'_>,
    _version: Version,
    _out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    todo!()
}

/// Appends a PUBLISH and tells where its packet identifier stands.
///
/// # Errors
/// As [`encode`].
pub fn encode_publish(
    _publish: &Publish<'_>,
    _version: Version,
    _out: &mut Vec<u8>,
) -> Result<PublishFrame, EncodeError> {
    todo!()
}

/// Bytes that [`encode`] would append.
///
/// # Errors
/// As [`encode`].
pub fn encoded_len(_packet: &Packet<'_>, _version: Version) -> Result<usize, EncodeError> {
    todo!()
}
