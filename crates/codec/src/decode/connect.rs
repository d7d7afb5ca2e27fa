//! CONNECT and CONNACK.

use super::{check_flags, check_header_len, properties, reason};
use crate::error::DecodeError;
use crate::frame::Frame;
use crate::packet::{ConnAck, Connect, QoS, Version, Will};
use crate::properties::{ConnAckProperties, ConnectProperties, WillProperties};
use crate::reason::{Carrier, ReasonCode};
use crate::topic::has_forbidden;
use crate::wire::Reader;

pub(super) fn connect(frame: Frame<'_>) -> Result<Connect<'_>, DecodeError> {
    let mut reader = Reader::new(frame.body);
    // The version is read first, so that a newer protocol version is distinguished from garbage.
    let (version, is_bridge) = version(&mut reader)?;
    check_header_len(frame, version)?;
    check_flags(frame.first, 0, version)?;
    let flags = Flags::read(reader.u8()?, version)?;
    let keep_alive = reader.u16()?;
    let properties = match version {
        Version::V31 | Version::V311 => ConnectProperties::default(),
        Version::V5 => properties::connect(properties::block(&mut reader)?)?,
    };
    // [MQTT-3.1.3-1] [MQTT-3.1.3-3] [MQTT-3.1.3-4] [MQTT3-3.1.3-1] [MQTT3-3.1.3-3] [MQTT3-3.1.3-4]
    let client_id = reader.string()?;
    let will = flags
        .will
        .map(|(qos, retain)| will(&mut reader, version, qos, retain))
        .transpose()?;
    // 3.1: the remaining length takes precedence over the flags; a missing string is valid.
    let may_be_missing = version == Version::V31;
    let is_present =
        |flag: bool, reader: &Reader<'_>| flag && !(may_be_missing && reader.is_empty());
    // [MQTT-3.1.2-17] [MQTT-3.1.3-12] [MQTT3-3.1.2-19] [MQTT3-3.1.3-11]
    let username = if is_present(flags.username, &reader) {
        Some(reader.string()?)
    } else {
        None
    };
    // [MQTT-3.1.2-19] [MQTT3-3.1.2-21]
    let password = if is_present(flags.password, &reader) {
        Some(reader.binary()?)
    } else {
        None
    };
    // [MQTT-3.1.2-16] [MQTT-3.1.2-18] [MQTT3-3.1.2-18] [MQTT3-3.1.2-20]
    reader.finish()?;
    let clean_start = flags.clean_start;
    Ok(Connect {
        version,
        is_bridge,
        clean_start,
        keep_alive,
        client_id,
        will,
        username,
        password,
        properties,
    })
}

/// Protocol name and level, and whether the client identifies itself as a bridge.
fn version(reader: &mut Reader<'_>) -> Result<(Version, bool), DecodeError> {
    // [MQTT-3.1.2-1] [MQTT-3.1.2-2] [MQTT3-3.1.2-1] [MQTT3-3.1.2-2]
    match (reader.binary()?, reader.u8()?) {
        (b"MQTT", 5) => Ok((Version::V5, false)),
        (b"MQTT", level @ (4 | 0x84)) => Ok((Version::V311, level != 4)),
        (b"MQIsdp", level @ (3 | 0x83)) => Ok((Version::V31, level != 3)),
        _ => Err(DecodeError::UnsupportedVersion),
    }
}

/// The connect flags.
struct Flags {
    clean_start: bool,
    will: Option<(QoS, bool)>,
    username: bool,
    password: bool,
}

impl Flags {
    fn read(bits: u8, version: Version) -> Result<Self, DecodeError> {
        // 3.1 ignores the reserved bit, and the will bits without the will flag.
        let strict = version != Version::V31;
        // [MQTT-3.1.2-3] [MQTT3-3.1.2-3]
        if strict && bits & 0b1 != 0 {
            return Err(DecodeError::Malformed("reserved connect flag"));
        }
        let will = if bits & 0b100 != 0 {
            // [MQTT-3.1.2-12] [MQTT3-3.1.2-14]
            let qos = QoS::from_u8(bits >> 3 & 0b11).ok_or(DecodeError::Malformed("will QoS 3"))?;
            Some((qos, bits & 0b10_0000 != 0))
        } else {
            // [MQTT-3.1.2-11] [MQTT-3.1.2-13] [MQTT3-3.1.2-11] [MQTT3-3.1.2-13] [MQTT3-3.1.2-15]
            if strict && bits & 0b11_1000 != 0 {
                return Err(DecodeError::Malformed(
                    "will QoS or will retain without will flag",
                ));
            }
            None
        };
        let username = bits & 0b1000_0000 != 0;
        let password = bits & 0b0100_0000 != 0;
        // [MQTT3-3.1.2-22]
        if password && !username && version != Version::V5 {
            return Err(DecodeError::Malformed("password without user name"));
        }
        Ok(Self {
            clean_start: bits & 0b10 != 0,
            will,
            username,
            password,
        })
    }
}

// [MQTT-3.1.2-9] [MQTT3-3.1.2-9]
fn will<'a>(
    reader: &mut Reader<'a>,
    version: Version,
    qos: QoS,
    retain: bool,
) -> Result<Will<'a>, DecodeError> {
    let properties = match version {
        Version::V31 | Version::V311 => WillProperties::default(),
        Version::V5 => properties::will(properties::block(reader)?)?,
    };
    // [MQTT-3.1.3-11] [MQTT3-3.1.3-10]
    let topic = reader.string()?;
    // [MQTT-4.7.3-1] [MQTT3-4.7.3-1]
    if topic.is_empty() || has_forbidden(topic.as_bytes()) {
        return Err(DecodeError::Malformed(
            "will topic that is empty or has a wildcard",
        ));
    }
    let payload = reader.binary()?;
    Ok(Will {
        topic,
        payload,
        qos,
        retain,
        properties,
    })
}

pub(super) fn connack(frame: Frame<'_>, version: Version) -> Result<ConnAck<'_>, DecodeError> {
    check_flags(frame.first, 0, version)?;
    let mut reader = Reader::new(frame.body);
    let flags = reader.u8()?;
    let session_present = match version {
        // The byte is reserved in 3.1.
        Version::V31 => false,
        Version::V311 | Version::V5 => {
            // [MQTT-3.2.2-1]
            if flags > 1 {
                return Err(DecodeError::Malformed("reserved connect acknowledge flags"));
            }
            flags == 1
        }
    };
    let (reason, properties) = match version {
        Version::V31 | Version::V311 => {
            let reason = ReasonCode::from_return_code(reader.u8()?)
                .ok_or(DecodeError::Protocol("reserved connect return code"))?;
            (reason, ConnAckProperties::default())
        }
        Version::V5 => {
            let reason = reason(&mut reader, Carrier::ConnAck)?;
            (
                reason,
                properties::connack(properties::block(&mut reader)?)?,
            )
        }
    };
    reader.finish()?;
    // [MQTT-3.2.2-6] [MQTT3-3.2.2-4]
    if session_present && reason != ReasonCode::Success {
        return Err(DecodeError::Protocol(
            "session present although the connection is refused",
        ));
    }
    Ok(ConnAck {
        session_present,
        reason,
        properties,
    })
}
