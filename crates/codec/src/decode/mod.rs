//! Decodes one frame into one packet.
//!
//! The decoder refuses every malformed packet and every protocol error that is visible in the
//! packet alone. The session decides whether a client or server may send a packet at this point.

mod acks;
mod connect;
mod properties;
mod publish;
mod subscribe;

use crate::error::DecodeError;
use crate::frame::Frame;
use crate::packet::{Packet, PacketId, Publish, Version};
use crate::reason::{Carrier, ReasonCode};
use crate::wire::{Reader, variable_len};

/// Decodes one frame; `version` is ignored for CONNECT, which contains its own.
///
/// # Errors
/// Every malformed packet, and every protocol error that is visible in the packet alone.
#[inline]
pub fn decode(frame: Frame<'_>, version: Version) -> Result<Packet<'_>, DecodeError> {
    match frame.first >> 4 {
        3 => decode_publish(frame, version).map(Packet::Publish),
        4 => acks::ack(frame, version, Carrier::PubAck).map(Packet::PubAck),
        5 => acks::ack(frame, version, Carrier::PubRec).map(Packet::PubRec),
        6 => acks::ack(frame, version, Carrier::PubRel).map(Packet::PubRel),
        7 => acks::ack(frame, version, Carrier::PubComp).map(Packet::PubComp),
        _ => decode_rare(frame, version),
    }
}

/// Decodes a frame that the caller knows to be a PUBLISH.
///
/// # Errors
/// As [`decode`]; any other packet type is malformed.
#[inline]
pub fn decode_publish(frame: Frame<'_>, version: Version) -> Result<Publish<'_>, DecodeError> {
    check_header_len(frame, version)?;
    publish::publish(frame, version)
}

fn decode_rare(frame: Frame<'_>, version: Version) -> Result<Packet<'_>, DecodeError> {
    let packet_type = frame.first >> 4;
    if packet_type != 1 {
        check_header_len(frame, version)?;
    }
    match packet_type {
        1 => connect::connect(frame).map(Packet::Connect),
        2 => connect::connack(frame, version).map(Packet::ConnAck),
        8 => subscribe::subscribe(frame, version).map(Packet::Subscribe),
        9 => subscribe::suback(frame, version).map(Packet::SubAck),
        10 => subscribe::unsubscribe(frame, version).map(Packet::Unsubscribe),
        11 => subscribe::unsuback(frame, version).map(Packet::UnsubAck),
        12 => empty(frame, version).map(|()| Packet::PingReq),
        13 => empty(frame, version).map(|()| Packet::PingResp),
        14 => acks::disconnect(frame, version).map(Packet::Disconnect),
        15 if version == Version::V5 => acks::auth(frame).map(Packet::Auth),
        _ => Err(DecodeError::Malformed("reserved packet type")),
    }
}

/// A packet that consists of its fixed header only.
fn empty(frame: Frame<'_>, version: Version) -> Result<(), DecodeError> {
    check_flags(frame.first, 0, version)?;
    Reader::new(frame.body).finish()
}

/// Only 5.0 requires the shortest form of the remaining length.
#[inline]
fn check_header_len(frame: Frame<'_>, version: Version) -> Result<(), DecodeError> {
    let body_len = frame.body.len();
    let shortest = u32::try_from(body_len).map_or(4, variable_len);
    // [MQTT-1.5.5-1]
    if version == Version::V5 && frame.len != 1 + shortest + body_len {
        return Err(DecodeError::Malformed(
            "remaining length not in its shortest form",
        ));
    }
    Ok(())
}

/// Checks the low four bits of the first byte, which are fixed for every packet except PUBLISH.
#[inline]
fn check_flags(first: u8, expected: u8, version: Version) -> Result<(), DecodeError> {
    let flags = first & 0x0F;
    // 3.1 marks a repeated PUBREL, SUBSCRIBE or UNSUBSCRIBE with DUP.
    let repeated = version == Version::V31 && expected == 0b0010 && flags == 0b1010;
    // [MQTT-2.1.3-1] [MQTT3-2.2.2-1] [MQTT3-2.2.2-2]
    if flags == expected || repeated {
        Ok(())
    } else {
        Err(DecodeError::Malformed("reserved flags of the fixed header"))
    }
}

#[inline]
fn packet_id(reader: &mut Reader<'_>) -> Result<PacketId, DecodeError> {
    // [MQTT-2.2.1-3] [MQTT-2.2.1-4] [MQTT3-2.3.1-1]
    PacketId::new(reader.u16()?).ok_or(DecodeError::Protocol("packet identifier 0"))
}

/// The reason code of a 5.0 packet.
#[inline]
fn reason(reader: &mut Reader<'_>, carrier: Carrier) -> Result<ReasonCode, DecodeError> {
    checked_reason(reader.u8()?, carrier)
}

#[inline]
fn checked_reason(byte: u8, carrier: Carrier) -> Result<ReasonCode, DecodeError> {
    // [MQTT-3.2.2-8] [MQTT-3.4.2-1] [MQTT-3.5.2-1] [MQTT-3.6.2-1] [MQTT-3.7.2-1] [MQTT-3.9.3-2]
    // [MQTT-3.11.3-2] [MQTT-3.14.2-1] [MQTT-3.15.2-1]
    ReasonCode::from_u8(byte)
        .filter(|reason| reason.may_be_in(carrier))
        .ok_or(DecodeError::Protocol(
            "reason code that this packet cannot have",
        ))
}
