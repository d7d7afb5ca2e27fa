//! PUBACK, PUBREC, PUBREL, PUBCOMP, DISCONNECT and AUTH: a reason and a few properties.

use super::{check_flags, check_header_len, packet_id, properties, reason};
use crate::error::DecodeError;
use crate::frame::Frame;
use crate::packet::{Ack, Auth, Disconnect, Version};
use crate::properties::{AckProperties, AuthProperties, DisconnectProperties};
use crate::reason::{Carrier, ReasonCode};
use crate::wire::Reader;

#[inline]
pub(super) fn ack(
    frame: Frame<'_>,
    version: Version,
    carrier: Carrier,
) -> Result<Ack<'_>, DecodeError> {
    check_header_len(frame, version)?;
    // [MQTT-3.6.1-1] [MQTT3-3.6.1-1]
    let flags = if carrier == Carrier::PubRel {
        0b0010
    } else {
        0
    };
    check_flags(frame.first, flags, version)?;
    let mut reader = Reader::new(frame.body);
    let packet_id = packet_id(&mut reader)?;
    // Without a reason code the response means success: the only form in 3.x, the short form in
    // 5.0.
    if reader.is_empty() {
        let reason = ReasonCode::Success;
        return Ok(Ack {
            packet_id,
            reason,
            properties: AckProperties::default(),
        });
    }
    match version {
        Version::V31 | Version::V311 => Err(DecodeError::Malformed("bytes after the last field")),
        Version::V5 => {
            let reason = reason(&mut reader, carrier)?;
            let properties = if reader.is_empty() {
                AckProperties::default()
            } else {
                properties::ack(properties::block(&mut reader)?)?
            };
            reader.finish()?;
            Ok(Ack {
                packet_id,
                reason,
                properties,
            })
        }
    }
}

pub(super) fn disconnect(
    frame: Frame<'_>,
    version: Version,
) -> Result<Disconnect<'_>, DecodeError> {
    // [MQTT-3.14.1-1] [MQTT3-3.14.1-1]
    check_flags(frame.first, 0, version)?;
    let mut reader = Reader::new(frame.body);
    let mut disconnect = Disconnect {
        reason: ReasonCode::Success,
        properties: DisconnectProperties::default(),
    };
    if version == Version::V5 {
        if !reader.is_empty() {
            disconnect.reason = reason(&mut reader, Carrier::Disconnect)?;
        }
        if !reader.is_empty() {
            disconnect.properties = properties::disconnect(properties::block(&mut reader)?)?;
        }
    }
    reader.finish()?;
    Ok(disconnect)
}

pub(super) fn auth(frame: Frame<'_>) -> Result<Auth<'_>, DecodeError> {
    // [MQTT-3.15.1-1]
    check_flags(frame.first, 0, Version::V5)?;
    let mut reader = Reader::new(frame.body);
    if reader.is_empty() {
        let reason = ReasonCode::Success;
        return Ok(Auth {
            reason,
            properties: AuthProperties::default(),
        });
    }
    let reason = reason(&mut reader, Carrier::Auth)?;
    let properties = properties::auth(properties::block(&mut reader)?)?;
    reader.finish()?;
    // A success without properties may be omitted, and may also be written out.
    let is_short_form = reason == ReasonCode::Success && properties == AuthProperties::default();
    if properties.authentication_method.is_none() && !is_short_form {
        return Err(DecodeError::Protocol("AUTH without authentication method"));
    }
    Ok(Auth { reason, properties })
}
