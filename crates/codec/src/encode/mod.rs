//! Encodes one packet into bytes.
//!
//! The layout of each packet is defined once, as a function over a `Sink`. A run over a counter
//! yields the length and every error; the run over the output then cannot fail.
//!
//! The encoder does not check the contents of strings: a broker sends strings that it checked when
//! it received them, and a client checks its arguments with [`crate::topic`].

mod connect;
mod properties;
mod publish;
mod sink;
mod subscribe;

use alloc::vec::Vec;

pub use self::publish::{PublishFrame, encode_publish, encode_publish_head};
use self::sink::{Counter, Sink, block};
use crate::error::EncodeError;
use crate::packet::{Ack, Auth, Disconnect, Packet, Version};
use crate::properties::{AckProperties, AuthProperties, DisconnectProperties};
use crate::reason::ReasonCode;
use crate::wire::variable_len;

/// Appends the packet to `out`; nothing is appended on error.
///
/// Properties and reason codes that `version` does not have are omitted. CONNECT is written in the
/// version that it contains.
///
/// # Errors
/// A field or the packet is too long for the wire format, a part that the specification requires is
/// missing, or the packet does not exist in this version.
#[inline]
pub fn encode(packet: &Packet<'_>, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    match packet {
        Packet::Publish(publish) => encode_publish(publish, version, out).map(|_| ()),
        Packet::PubAck(ack) => encode_ack(packet, ack, version, out),
        Packet::PubRec(ack) => encode_ack(packet, ack, version, out),
        Packet::PubRel(ack) => encode_ack(packet, ack, version, out),
        Packet::PubComp(ack) => encode_ack(packet, ack, version, out),
        Packet::Connect(_)
        | Packet::ConnAck(_)
        | Packet::Subscribe(_)
        | Packet::SubAck(_)
        | Packet::Unsubscribe(_)
        | Packet::UnsubAck(_)
        | Packet::PingReq
        | Packet::PingResp
        | Packet::Disconnect(_)
        | Packet::Auth(_) => encode_counted(packet, version, out),
    }
}

/// Number of bytes that [`encode`] would append.
///
/// # Errors
/// As [`encode`].
pub fn encoded_len(packet: &Packet<'_>, version: Version) -> Result<usize, EncodeError> {
    if let Packet::Publish(publish) = packet {
        return publish::frame_len(publish, version);
    }
    let remaining = remaining_len(packet, version)?;
    Ok(1 + variable_len(remaining) + usize::try_from(remaining).unwrap_or(usize::MAX))
}

#[inline]
fn encode_ack(
    packet: &Packet<'_>,
    ack: &Ack<'_>,
    version: Version,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    if version == Version::V5 && !is_short(ack.reason, &ack.properties) {
        return encode_counted(packet, version, out);
    }
    let [high, low] = ack.packet_id.as_u16().to_be_bytes();
    out.extend_from_slice(&[first_byte(packet), 2, high, low]);
    Ok(())
}

fn encode_counted(
    packet: &Packet<'_>,
    version: Version,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let remaining = remaining_len(packet, version)?;
    out.reserve(5 + usize::try_from(remaining).unwrap_or(0));
    out.u8(first_byte(packet));
    out.variable(remaining);
    body(packet, version, out);
    Ok(())
}

fn remaining_len(packet: &Packet<'_>, version: Version) -> Result<u32, EncodeError> {
    let mut counter = Counter::default();
    body(packet, version, &mut counter);
    counter.finish()
}

/// Packet type and fixed flags; those of PUBLISH are computed separately.
#[inline]
const fn first_byte(packet: &Packet<'_>) -> u8 {
    match packet {
        Packet::Connect(_) => 0x10,
        Packet::ConnAck(_) => 0x20,
        Packet::Publish(publish) => publish::first_byte(publish),
        Packet::PubAck(_) => 0x40,
        Packet::PubRec(_) => 0x50,
        // [MQTT-3.6.1-1] [MQTT3-3.6.1-1]
        Packet::PubRel(_) => 0x62,
        // [MQTT-3.8.1-1] [MQTT3-3.8.1-1]
        Packet::Subscribe(_) => 0x82,
        Packet::SubAck(_) => 0x90,
        // [MQTT-3.10.1-1] [MQTT3-3.10.1-1]
        Packet::Unsubscribe(_) => 0xA2,
        Packet::UnsubAck(_) => 0xB0,
        Packet::PubComp(_) => 0x70,
        Packet::PingReq => 0xC0,
        Packet::PingResp => 0xD0,
        Packet::Disconnect(_) => 0xE0,
        Packet::Auth(_) => 0xF0,
    }
}

/// Everything after the fixed header.
fn body(packet: &Packet<'_>, version: Version, out: &mut dyn Sink) {
    match packet {
        Packet::Connect(packet) => connect::connect(packet, out),
        Packet::ConnAck(packet) => connect::connack(packet, version, out),
        // These are written elsewhere and never counted.
        Packet::Publish(_) | Packet::PingReq | Packet::PingResp => {}
        Packet::PubAck(packet)
        | Packet::PubRec(packet)
        | Packet::PubRel(packet)
        | Packet::PubComp(packet) => ack(packet, version, out),
        Packet::Subscribe(packet) => subscribe::subscribe(packet, version, out),
        Packet::SubAck(packet) => subscribe::suback(packet, version, out),
        Packet::Unsubscribe(packet) => subscribe::unsubscribe(packet, version, out),
        Packet::UnsubAck(packet) => subscribe::unsuback(packet, version, out),
        Packet::Disconnect(packet) => disconnect(packet, version, out),
        Packet::Auth(packet) => auth(packet, version, out),
    }
}

/// Whether the reason code and properties may be omitted: success without properties.
#[inline]
fn is_short(reason: ReasonCode, properties: &AckProperties<'_>) -> bool {
    reason == ReasonCode::Success
        && properties.reason_string.is_none()
        && properties.user.is_empty()
}

fn ack(ack: &Ack<'_>, version: Version, out: &mut dyn Sink) {
    // [MQTT-2.2.1-5] [MQTT3-2.3.1-6]
    out.u16(ack.packet_id.as_u16());
    if version == Version::V5 && !is_short(ack.reason, &ack.properties) {
        out.u8(ack.reason.as_u8());
        if ack.properties != AckProperties::default() {
            block(out, &|out| properties::ack(&ack.properties, out));
        }
    }
}

fn disconnect(disconnect: &Disconnect<'_>, version: Version, out: &mut dyn Sink) {
    let has_properties = disconnect.properties != DisconnectProperties::default();
    if version == Version::V5 && (disconnect.reason != ReasonCode::Success || has_properties) {
        out.u8(disconnect.reason.as_u8());
        if has_properties {
            block(out, &|out| {
                properties::disconnect(&disconnect.properties, out);
            });
        }
    }
}

fn auth(auth: &Auth<'_>, version: Version, out: &mut dyn Sink) {
    if version != Version::V5 {
        out.fail(EncodeError::NotInVersion);
    } else if auth.reason != ReasonCode::Success || auth.properties != AuthProperties::default() {
        if auth.properties.authentication_method.is_none() {
            out.fail(EncodeError::Incomplete);
        }
        out.u8(auth.reason.as_u8());
        block(out, &|out| properties::auth(&auth.properties, out));
    }
}
