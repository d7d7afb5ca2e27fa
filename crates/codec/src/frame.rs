//! Where one packet ends and the next begins.

use crate::error::DecodeError;

/// One whole packet at the start of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// First byte: packet type and flags.
    pub first: u8,
    /// The bytes after the fixed header.
    pub body: &'a [u8],
    /// Fixed header and body together.
    pub len: usize,
}

/// Splits the first frame off the buffer; `Ok(None)` when more bytes are needed.
///
/// `packet_size_max` bounds the whole packet in bytes; it is checked as soon as the remaining
/// length is known, so an oversized packet is refused before its body arrives.
///
/// # Errors
/// A remaining length of more than four bytes, or a packet over the limit.
pub fn split(_buffer: &[u8], _packet_size_max: u32) -> Result<Option<Frame<'_>>, DecodeError> {
    todo!()
}

/// Bytes that the packet at the start of the buffer needs in all, once its fixed header is known.
pub fn announced_len(_buffer: &[u8]) -> Option<usize> {
    todo!()
}
