//! PUBLISH.

use super::{packet_id, properties};
use crate::error::DecodeError;
use crate::frame::Frame;
use crate::packet::{Publish, QoS, Version};
use crate::properties::PublishProperties;
use crate::topic::has_forbidden;
use crate::wire::{Reader, utf8};

#[inline]
pub(super) fn publish(frame: Frame<'_>, version: Version) -> Result<Publish<'_>, DecodeError> {
    if frame.first >> 4 != 3 {
        return Err(DecodeError::Malformed("not a PUBLISH"));
    }
    // [MQTT-3.3.1-4] [MQTT3-3.3.1-4]
    let qos = QoS::from_u8(frame.first >> 1 & 0b11).ok_or(DecodeError::Malformed("QoS 3"))?;
    let dup = frame.first & 0b1000 != 0;
    // [MQTT-3.3.1-2] [MQTT3-3.3.1-2]
    if dup && qos == QoS::AtMostOnce {
        return Err(DecodeError::Malformed("DUP with QoS 0"));
    }
    let mut reader = Reader::new(frame.body);
    let topic = topic(&mut reader)?;
    // [MQTT-2.2.1-2] [MQTT3-2.3.1-5]
    let packet_id = if qos == QoS::AtMostOnce {
        None
    } else {
        Some(packet_id(&mut reader)?)
    };
    let properties = match version {
        Version::V31 | Version::V311 => PublishProperties::default(),
        Version::V5 => properties::publish(properties::block(&mut reader)?)?,
    };
    if topic.is_empty() {
        check_nameless(version, &properties)?;
    }
    let retain = frame.first & 0b1 != 0;
    Ok(Publish {
        dup,
        qos,
        retain,
        topic,
        packet_id,
        properties,
        payload: reader.rest(),
    })
}

// [MQTT-3.3.2-1] [MQTT3-3.3.2-1]
#[inline]
fn topic<'a>(reader: &mut Reader<'a>) -> Result<&'a str, DecodeError> {
    let bytes = reader.binary()?;
    // [MQTT-3.3.2-2] [MQTT3-3.3.2-2] [MQTT-1.5.4-2] [MQTT3-1.5.3-2]
    if has_forbidden(bytes) {
        return Err(DecodeError::Malformed(
            "topic name with a wildcard or U+0000",
        ));
    }
    utf8(bytes)
}

#[cold]
fn check_nameless(version: Version, properties: &PublishProperties<'_>) -> Result<(), DecodeError> {
    match (version, properties.topic_alias) {
        (Version::V5, Some(_)) => Ok(()),
        (Version::V5, None) => Err(DecodeError::Protocol("neither topic name nor topic alias")),
        // [MQTT-4.7.3-1] [MQTT3-4.7.3-1]
        (Version::V31 | Version::V311, _) => Err(DecodeError::Malformed("empty topic name")),
    }
}
