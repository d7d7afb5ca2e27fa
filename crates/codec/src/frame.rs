//! Splits a byte stream into frames, one per packet.

use crate::error::DecodeError;
use crate::wire::{Variable, read_variable};

/// One complete packet at the start of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// First byte: packet type and flags.
    pub first: u8,
    /// The bytes after the fixed header.
    pub body: &'a [u8],
    /// Length of the fixed header and the body together.
    pub len: usize,
}

/// Splits the first frame off the buffer; returns `Ok(None)` if more bytes are needed.
///
/// `packet_size_max` limits the whole packet in bytes. It is checked as soon as the remaining
/// length is known, so an oversized packet is refused before its body arrives.
///
/// # Errors
/// The remaining length has more than four bytes, or the packet exceeds the limit.
#[inline]
pub fn split(buffer: &[u8], packet_size_max: u32) -> Result<Option<Frame<'_>>, DecodeError> {
    let Some((&first, rest)) = buffer.split_first() else {
        return Ok(None);
    };
    let Some(remaining) = read_variable(rest)? else {
        return Ok(None);
    };
    let len = frame_len(remaining);
    if u32::try_from(len).is_ok_and(|len| len > packet_size_max) {
        return Err(DecodeError::TooLarge);
    }
    let body = buffer.get(1 + remaining.bytes..len);
    Ok(body.map(|body| Frame { first, body, len }))
}

/// Total length in bytes of the packet at the start of the buffer, once its fixed header is known.
#[cfg(feature = "testing")]
pub fn announced_len(buffer: &[u8]) -> Option<usize> {
    let (_, rest) = buffer.split_first()?;
    read_variable(rest).ok().flatten().map(frame_len)
}

#[inline]
fn frame_len(remaining: Variable) -> usize {
    // The value has at most 28 bits, so it fits into `usize` on every supported machine.
    1 + remaining.bytes + usize::try_from(remaining.value).unwrap_or(usize::MAX >> 1)
}
