//! PUBLISH, written in one pass because it is the most frequent packet.

use alloc::vec::Vec;

use super::properties;
use super::sink::{Counter, Sink};
use crate::error::EncodeError;
use crate::packet::{PacketId, Publish, QoS, Version};
use crate::properties::PublishProperties;
use crate::wire::{VARIABLE_MAX, variable_len};

/// Position of a PUBLISH in the output, so that a copy can be given another packet identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishFrame {
    /// Length of the frame in bytes.
    pub len: usize,
    /// Offset of the packet identifier from the start of the frame; `None` with `QoS` 0.
    pub packet_id_at: Option<usize>,
}

/// Appends a PUBLISH and returns the position of its packet identifier.
///
/// # Errors
/// As [`encode`](super::encode).
#[inline]
pub fn encode_publish(
    publish: &Publish<'_>,
    version: Version,
    out: &mut Vec<u8>,
) -> Result<PublishFrame, EncodeError> {
    let plan = Plan::new(publish, version)?;
    out.reserve(plan.frame.len);
    plan.write_head(publish, version, out);
    out.extend_from_slice(publish.payload);
    Ok(plan.frame)
}

/// Appends a PUBLISH without its payload, for callers that write the payload from its own buffer.
///
/// The length in the result is that of the whole frame, payload included.
///
/// # Errors
/// As [`encode`](super::encode).
#[inline]
pub fn encode_publish_head(
    publish: &Publish<'_>,
    version: Version,
    out: &mut Vec<u8>,
) -> Result<PublishFrame, EncodeError> {
    let plan = Plan::new(publish, version)?;
    out.reserve(plan.frame.len - publish.payload.len());
    plan.write_head(publish, version, out);
    Ok(plan.frame)
}

/// Number of bytes that [`encode_publish`] would append.
pub(super) fn frame_len(publish: &Publish<'_>, version: Version) -> Result<usize, EncodeError> {
    Plan::new(publish, version).map(|plan| plan.frame.len)
}

#[inline]
pub(super) const fn first_byte(publish: &Publish<'_>) -> u8 {
    // [MQTT-3.3.1-2] [MQTT3-3.3.1-2]
    let dup = publish.dup && !matches!(publish.qos, QoS::AtMostOnce);
    0x30 | (dup as u8) << 3 | publish.qos.as_u8() << 1 | publish.retain as u8
}

/// All lengths of a frame, computed before the first byte is written.
struct Plan {
    frame: PublishFrame,
    topic_len: u16,
    packet_id: Option<PacketId>,
    properties_len: u32,
    remaining: u32,
}

#[expect(
    clippy::inline_always,
    reason = "every PUBLISH takes this path, and with two callers the compiler would not inline it"
)]
impl Plan {
    #[inline(always)]
    fn new(publish: &Publish<'_>, version: Version) -> Result<Self, EncodeError> {
        let topic_len =
            u16::try_from(publish.topic.len()).map_err(|_| EncodeError::FieldTooLong)?;
        let packet_id = match (publish.qos, publish.packet_id) {
            // [MQTT-2.2.1-2] [MQTT3-2.3.1-5]
            (QoS::AtMostOnce, _) => None,
            (QoS::AtLeastOnce | QoS::ExactlyOnce, Some(packet_id)) => Some(packet_id),
            // [MQTT-2.2.1-3] [MQTT-2.2.1-4] [MQTT3-2.3.1-1]
            (QoS::AtLeastOnce | QoS::ExactlyOnce, None) => return Err(EncodeError::Incomplete),
        };
        let (properties_len, block_len) = match version {
            Version::V31 | Version::V311 => (0, 0),
            Version::V5 => block_len(&publish.properties)?,
        };
        if publish.topic.is_empty() {
            check_nameless(publish, version)?;
        }
        let topic_end = 2 + publish.topic.len();
        let packet_id_len = if packet_id.is_some() { 2 } else { 0 };
        let body_len = topic_end + packet_id_len + block_len + publish.payload.len();
        let Ok(remaining @ 0..=VARIABLE_MAX) = u32::try_from(body_len) else {
            return Err(EncodeError::PacketTooLong);
        };
        let header_len = 1 + variable_len(remaining);
        let packet_id_at = packet_id.map(|_| header_len + topic_end);
        let frame = PublishFrame {
            len: header_len + body_len,
            packet_id_at,
        };
        Ok(Self {
            frame,
            topic_len,
            packet_id,
            properties_len,
            remaining,
        })
    }

    /// Writes everything before the payload; [`Plan::new`] has reported every error.
    #[inline(always)]
    fn write_head(&self, publish: &Publish<'_>, version: Version, out: &mut Vec<u8>) {
        out.u8(first_byte(publish));
        out.variable(self.remaining);
        // [MQTT-3.3.2-1] [MQTT3-3.3.2-1]
        out.u16(self.topic_len);
        out.bytes(publish.topic.as_bytes());
        if let Some(packet_id) = self.packet_id {
            out.u16(packet_id.as_u16());
        }
        if version == Version::V5 {
            // [MQTT-2.2.2-1]
            out.variable(self.properties_len);
            if self.properties_len > 0 {
                properties::publish(&publish.properties, out);
            }
        }
    }
}

/// Length of the properties, and of the block with its length field.
#[inline]
fn block_len(properties: &PublishProperties<'_>) -> Result<(u32, usize), EncodeError> {
    let mut counter = Counter::default();
    properties::publish(properties, &mut counter);
    let len = counter.finish()?;
    Ok((
        len,
        variable_len(len) + usize::try_from(len).unwrap_or(usize::MAX >> 1),
    ))
}

#[cold]
const fn check_nameless(publish: &Publish<'_>, version: Version) -> Result<(), EncodeError> {
    match (version, publish.properties.topic_alias) {
        (Version::V5, Some(_)) => Ok(()),
        // [MQTT-4.7.3-1] [MQTT3-4.7.3-1]
        (Version::V5, None) => Err(EncodeError::Incomplete),
        (Version::V31 | Version::V311, _) => Err(EncodeError::NotInVersion),
    }
}
