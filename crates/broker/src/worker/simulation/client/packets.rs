//! Encoding of packets and payloads.

use thrum_codec::packet::{Ack, Packet, Publish};
use thrum_codec::properties::{AckProperties, PublishProperties};
use thrum_codec::{PacketId, ReasonCode, Version, encode};

use super::super::history::{Message, MessageNumber};

/// One message in this many has a payload that the node shares instead of copying.
const LARGE_EVERY: u32 = 7;
const LARGE_BYTES: usize = 3000;

pub(super) fn write(packet: &Packet<'_>, version: Version, out: &mut Vec<u8>) {
    encode(packet, version, out).unwrap();
}

pub(super) fn write_publish(
    message: &Message,
    packet_id: Option<PacketId>,
    dup: bool,
    version: Version,
    out: &mut Vec<u8>,
) {
    let payload = if message.is_empty {
        Vec::new()
    } else {
        let filler = message.number.to_be_bytes()[3];
        [
            &message.number.to_be_bytes()[..],
            &vec![filler; padding_bytes(message.number)],
        ]
        .concat()
    };
    let is_v5 = version == Version::V5;
    let publish = Publish {
        dup,
        qos: message.qos,
        retain: message.retain,
        topic: message.topic,
        packet_id,
        properties: PublishProperties {
            message_expiry: message.expiry_secs.filter(|_| is_v5),
            ..PublishProperties::default()
        },
        payload: &payload,
    };
    write(&Packet::Publish(publish), version, out);
}

/// The message of that number has a large payload.
pub(in super::super) fn is_large(number: MessageNumber) -> bool {
    number.is_multiple_of(LARGE_EVERY)
}

fn padding_bytes(number: MessageNumber) -> usize {
    if is_large(number) { LARGE_BYTES } else { 0 }
}

pub(super) fn is_padding(number: MessageNumber, padding: &[u8]) -> bool {
    padding.len() == padding_bytes(number) && begins_padding(number, padding)
}

/// Whether the bytes are a beginning of the padding.
pub(super) fn begins_padding(number: MessageNumber, padding: &[u8]) -> bool {
    let filler = number.to_be_bytes()[3];
    padding.len() <= padding_bytes(number) && padding.iter().all(|byte| *byte == filler)
}

pub(super) fn success<'a>(packet_id: PacketId) -> Ack<'a> {
    Ack {
        packet_id,
        reason: ReasonCode::Success,
        properties: AckProperties::default(),
    }
}
