//! Encoding and decoding of the packets that a busy broker reads and writes most.

use std::hint::black_box;

use thrum_codec::packet::{Ack, Publish};
use thrum_codec::properties::{AckProperties, PublishProperties};
use thrum_codec::{
    Packet, PacketId, QoS, ReasonCode, Version, decode, encode, encode_publish, frame,
};

use crate::repeat;

pub(crate) const TOPIC: &str = "site/7/device/1234";
/// The payload size of the public MQTT benchmarks.
pub(crate) const PAYLOAD: &[u8] = &[7; 16];

pub(crate) fn decode_publish_v311(times: u32) {
    decode_one(times, &Packet::Publish(publish()), Version::V311);
}

pub(crate) fn decode_publish_v5(times: u32) {
    decode_one(times, &Packet::Publish(expiring()), Version::V5);
}

pub(crate) fn decode_puback(times: u32) {
    decode_one(times, &puback(packet_id(7)), Version::V311);
}

pub(crate) fn encode_publish_v311(times: u32) {
    encode_one(times, &publish(), Version::V311);
}

pub(crate) fn encode_publish_v5(times: u32) {
    encode_one(times, &expiring(), Version::V5);
}

pub(crate) fn encode_puback(times: u32) {
    let packet = puback(packet_id(7));
    let mut out = Vec::with_capacity(4096);
    repeat(times, || {
        out.clear();
        encode(black_box(&packet), Version::V311, &mut out)
    });
}

/// With `QoS` 1, as most publishers that need reliable delivery send it.
pub(crate) fn publish() -> Publish<'static> {
    Publish {
        dup: false,
        qos: QoS::AtLeastOnce,
        retain: false,
        topic: TOPIC,
        packet_id: Some(packet_id(7)),
        properties: PublishProperties::default(),
        payload: PAYLOAD,
    }
}

pub(crate) fn puback(packet_id: PacketId) -> Packet<'static> {
    Packet::PubAck(Ack {
        packet_id,
        reason: ReasonCode::Success,
        properties: AckProperties::default(),
    })
}

pub(crate) fn packet_id(value: u16) -> PacketId {
    PacketId::new(value).expect("not 0")
}

/// A PUBLISH with one property.
fn expiring() -> Publish<'static> {
    let mut publish = publish();
    publish.properties.message_expiry = Some(60);
    publish
}

fn decode_one(times: u32, packet: &Packet<'_>, version: Version) {
    let mut bytes = Vec::new();
    encode(packet, version, &mut bytes).expect("a valid packet");
    repeat(times, || {
        let frame = frame::split(black_box(&bytes), 1 << 20)
            .expect("valid")
            .expect("whole");
        // A decoded packet is larger than the part that is inspected, so it is not moved out.
        black_box(&decode(frame, version)).is_ok()
    });
}

fn encode_one(times: u32, publish: &Publish<'_>, version: Version) {
    let mut out = Vec::with_capacity(4096);
    repeat(times, || {
        out.clear();
        encode_publish(black_box(publish), version, &mut out)
    });
}
