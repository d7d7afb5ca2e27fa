//! Packets from the excerpts of traces, in which payloads may be cut.

use thrum_broker::TracedPacket;
use thrum_codec::frame::Frame;
use thrum_codec::{Packet, decode};

/// The packet; none if it is cut in another place than its payload.
pub(super) fn packet(traced: &TracedPacket) -> Option<Packet<'_>> {
    let (first, rest) = traced.bytes.split_first()?;
    // The remaining length takes one to four bytes, all but the last one with the highest bit.
    let len = rest.iter().take(4).position(|byte| *byte < 0x80)? + 1;
    let body = rest.get(len..)?;
    // What is cut is not counted, or the length would be refused as not the shortest.
    let shortest = match body.len() {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        _ => 4,
    };
    let frame = Frame {
        first: *first,
        body,
        len: 1 + shortest + body.len(),
    };
    decode(frame, traced.version).ok()
}

/// Bytes of the packet that are not in the excerpt.
pub(super) fn cut(traced: &TracedPacket) -> usize {
    (traced.packet_bytes as usize).saturating_sub(traced.bytes.len())
}
