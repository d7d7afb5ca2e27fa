//! SUBSCRIBE, SUBACK, UNSUBSCRIBE and UNSUBACK.

use super::{check_flags, checked_reason, packet_id, properties};
use crate::error::DecodeError;
use crate::frame::Frame;
use crate::packet::{
    QoS, ReasonCodes, RetainHandling, SubAck, Subscribe, SubscriptionRequests, TopicFilters,
    Unsubscribe, Version,
};
use crate::properties::{AckProperties, SubscribeProperties, UserProperties};
use crate::reason::Carrier;
use crate::topic::TopicFilter;
use crate::wire::Reader;

pub(super) fn subscribe(frame: Frame<'_>, version: Version) -> Result<Subscribe<'_>, DecodeError> {
    // [MQTT-3.8.1-1] [MQTT3-3.8.1-1]
    check_flags(frame.first, 0b0010, version)?;
    let mut reader = Reader::new(frame.body);
    let packet_id = packet_id(&mut reader)?;
    let properties = match version {
        Version::V31 | Version::V311 => SubscribeProperties::default(),
        Version::V5 => properties::subscribe(properties::block(&mut reader)?)?,
    };
    // [MQTT-3.8.3-2] [MQTT3-3.8.3-3]
    if reader.is_empty() {
        return Err(DecodeError::Protocol("SUBSCRIBE without topic filter"));
    }
    let bytes = reader.rest();
    while !reader.is_empty() {
        // [MQTT-3.8.3-1] [MQTT3-3.8.3-1]
        let filter = filter(&mut reader)?;
        let options = reader.u8()?;
        match version {
            Version::V31 => check_qos(options & 0b11)?,
            Version::V311 => check_qos(options)?,
            Version::V5 => check_options(options, filter)?,
        }
    }
    let requests = SubscriptionRequests::Wire { bytes, version };
    Ok(Subscribe {
        packet_id,
        properties,
        requests,
    })
}

/// The requested quality of service of 3.x; its upper six bits are reserved in 3.1.1, and in 3.1
/// without a meaning.
fn check_qos(bits: u8) -> Result<(), DecodeError> {
    // [MQTT3-3.8.3-4]
    match QoS::from_u8(bits) {
        Some(_) => Ok(()),
        None => Err(DecodeError::Malformed(
            "requested QoS above 2 or reserved bits",
        )),
    }
}

fn check_options(bits: u8, filter: TopicFilter<'_>) -> Result<(), DecodeError> {
    // [MQTT-3.8.3-5]
    if bits & 0b1100_0000 != 0 {
        return Err(DecodeError::Malformed(
            "reserved bits of the subscription options",
        ));
    }
    if QoS::from_u8(bits & 0b11).is_none() {
        return Err(DecodeError::Protocol("maximum QoS 3"));
    }
    if RetainHandling::from_u8(bits >> 4 & 0b11).is_none() {
        return Err(DecodeError::Protocol("retain handling 3"));
    }
    // [MQTT-3.8.3-4]
    if bits & 0b100 != 0 && filter.shared().is_some() {
        return Err(DecodeError::Protocol("no local on a shared subscription"));
    }
    Ok(())
}

fn filter<'a>(reader: &mut Reader<'a>) -> Result<TopicFilter<'a>, DecodeError> {
    let text = reader.string()?;
    TopicFilter::parse(text).map_err(|_| DecodeError::Malformed("invalid topic filter"))
}

pub(super) fn unsubscribe(
    frame: Frame<'_>,
    version: Version,
) -> Result<Unsubscribe<'_>, DecodeError> {
    // [MQTT-3.10.1-1] [MQTT3-3.10.1-1]
    check_flags(frame.first, 0b0010, version)?;
    let mut reader = Reader::new(frame.body);
    let packet_id = packet_id(&mut reader)?;
    let user = match version {
        Version::V31 | Version::V311 => UserProperties::default(),
        Version::V5 => properties::unsubscribe(properties::block(&mut reader)?)?,
    };
    // [MQTT-3.10.3-2] [MQTT3-3.10.3-2]
    if reader.is_empty() {
        return Err(DecodeError::Protocol("UNSUBSCRIBE without topic filter"));
    }
    let bytes = reader.rest();
    while !reader.is_empty() {
        // [MQTT-3.10.3-1] [MQTT3-3.10.3-1]
        filter(&mut reader)?;
    }
    Ok(Unsubscribe {
        packet_id,
        user,
        filters: TopicFilters::Wire(bytes),
    })
}

pub(super) fn suback(frame: Frame<'_>, version: Version) -> Result<SubAck<'_>, DecodeError> {
    check_flags(frame.first, 0, version)?;
    let mut reader = Reader::new(frame.body);
    let packet_id = packet_id(&mut reader)?;
    let properties = match version {
        Version::V31 | Version::V311 => AckProperties::default(),
        Version::V5 => properties::ack(properties::block(&mut reader)?)?,
    };
    for &code in reader.rest() {
        match version {
            Version::V31 | Version::V311 => check_return_code(code)?,
            Version::V5 => _ = checked_reason(code, Carrier::SubAck)?,
        }
    }
    Ok(SubAck {
        packet_id,
        properties,
        codes: codes(reader)?,
    })
}

fn check_return_code(code: u8) -> Result<(), DecodeError> {
    // [MQTT3-3.9.3-2]
    if matches!(code, 0..=2 | 0x80) {
        Ok(())
    } else {
        Err(DecodeError::Protocol("reserved SUBACK return code"))
    }
}

pub(super) fn unsuback(frame: Frame<'_>, version: Version) -> Result<SubAck<'_>, DecodeError> {
    check_flags(frame.first, 0, version)?;
    let mut reader = Reader::new(frame.body);
    let packet_id = packet_id(&mut reader)?;
    match version {
        Version::V31 | Version::V311 => {
            reader.finish()?;
            let properties = AckProperties::default();
            Ok(SubAck {
                packet_id,
                properties,
                codes: ReasonCodes::Listed(&[]),
            })
        }
        Version::V5 => {
            let properties = properties::ack(properties::block(&mut reader)?)?;
            for &code in reader.rest() {
                checked_reason(code, Carrier::UnsubAck)?;
            }
            Ok(SubAck {
                packet_id,
                properties,
                codes: codes(reader)?,
            })
        }
    }
}

/// Every request has at least one filter, so every answer at least one code.
fn codes(reader: Reader<'_>) -> Result<ReasonCodes<'_>, DecodeError> {
    if reader.is_empty() {
        return Err(DecodeError::Protocol("answer without reason code"));
    }
    Ok(ReasonCodes::Wire(reader.rest()))
}
