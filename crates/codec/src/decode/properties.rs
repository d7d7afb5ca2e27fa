//! The property block of each packet.
//!
//! Every identifier fits into one byte; one of two bytes is unknown, or not in its shortest form.

use core::num::NonZeroU16;

use crate::error::DecodeError;
use crate::packet::QoS;
use crate::properties::{
    AckProperties, AuthProperties, ConnAckProperties, ConnectProperties, DisconnectProperties,
    PublishProperties, SubscribeProperties, SubscriptionIdentifiers, UserProperties,
    WillProperties, id,
};
use crate::topic::has_forbidden;
use crate::wire::Reader;

type Outcome<T> = Result<T, DecodeError>;

/// The property block after its length field.
#[inline]
pub(super) fn block<'a>(reader: &mut Reader<'a>) -> Outcome<&'a [u8]> {
    // [MQTT-2.2.2-1]
    let len = reader.variable()?;
    reader.bytes(usize::try_from(len).unwrap_or(usize::MAX))
}

pub(super) fn connect(block: &[u8]) -> Outcome<ConnectProperties<'_>> {
    let mut found = ConnectProperties::default();
    let mut reader = Reader::new(block);
    while !reader.is_empty() {
        match reader.u8()? {
            id::SESSION_EXPIRY => once(&mut found.session_expiry, reader.u32()?)?,
            id::RECEIVE_MAXIMUM => once(&mut found.receive_maximum, positive(&mut reader)?)?,
            id::MAXIMUM_PACKET_SIZE => {
                once(&mut found.maximum_packet_size, packet_size(&mut reader)?)?;
            }
            id::TOPIC_ALIAS_MAXIMUM => once(&mut found.topic_alias_maximum, reader.u16()?)?,
            id::REQUEST_RESPONSE_INFORMATION => {
                once(&mut found.request_response_information, flag(&mut reader)?)?;
            }
            id::REQUEST_PROBLEM_INFORMATION => {
                once(&mut found.request_problem_information, flag(&mut reader)?)?;
            }
            id::AUTHENTICATION_METHOD => once(&mut found.authentication_method, reader.string()?)?,
            id::AUTHENTICATION_DATA => once(&mut found.authentication_data, reader.binary()?)?,
            id::USER_PROPERTY => found.user = user(&mut reader, block)?,
            _ => return Err(MISPLACED),
        }
    }
    if found.authentication_data.is_some() && found.authentication_method.is_none() {
        return Err(DecodeError::Protocol(
            "authentication data without authentication method",
        ));
    }
    Ok(found)
}

pub(super) fn will(block: &[u8]) -> Outcome<WillProperties<'_>> {
    let mut found = WillProperties::default();
    let mut reader = Reader::new(block);
    while !reader.is_empty() {
        match reader.u8()? {
            id::WILL_DELAY => once(&mut found.will_delay, reader.u32()?)?,
            id::PAYLOAD_FORMAT_INDICATOR => {
                once(&mut found.payload_format_indicator, flag(&mut reader)?)?;
            }
            id::MESSAGE_EXPIRY => once(&mut found.message_expiry, reader.u32()?)?,
            id::CONTENT_TYPE => once(&mut found.content_type, reader.string()?)?,
            id::RESPONSE_TOPIC => once(&mut found.response_topic, topic(&mut reader)?)?,
            id::CORRELATION_DATA => once(&mut found.correlation_data, reader.binary()?)?,
            id::USER_PROPERTY => found.user = user(&mut reader, block)?,
            _ => return Err(MISPLACED),
        }
    }
    Ok(found)
}

pub(super) fn connack(block: &[u8]) -> Outcome<ConnAckProperties<'_>> {
    let mut found = ConnAckProperties::default();
    let mut reader = Reader::new(block);
    while !reader.is_empty() {
        match reader.u8()? {
            id::SESSION_EXPIRY => once(&mut found.session_expiry, reader.u32()?)?,
            id::RECEIVE_MAXIMUM => once(&mut found.receive_maximum, positive(&mut reader)?)?,
            id::MAXIMUM_QOS => {
                let qos = if flag(&mut reader)? {
                    QoS::AtLeastOnce
                } else {
                    QoS::AtMostOnce
                };
                once(&mut found.maximum_qos, qos)?;
            }
            id::RETAIN_AVAILABLE => once(&mut found.retain_available, flag(&mut reader)?)?,
            id::MAXIMUM_PACKET_SIZE => {
                once(&mut found.maximum_packet_size, packet_size(&mut reader)?)?;
            }
            id::ASSIGNED_CLIENT_ID => once(&mut found.assigned_client_id, reader.string()?)?,
            id::TOPIC_ALIAS_MAXIMUM => once(&mut found.topic_alias_maximum, reader.u16()?)?,
            id::REASON_STRING => once(&mut found.reason_string, reader.string()?)?,
            id::WILDCARD_SUBSCRIPTION_AVAILABLE => {
                once(
                    &mut found.wildcard_subscription_available,
                    flag(&mut reader)?,
                )?;
            }
            id::SUBSCRIPTION_IDENTIFIERS_AVAILABLE => {
                once(
                    &mut found.subscription_identifiers_available,
                    flag(&mut reader)?,
                )?;
            }
            id::SHARED_SUBSCRIPTION_AVAILABLE => {
                once(&mut found.shared_subscription_available, flag(&mut reader)?)?;
            }
            id::SERVER_KEEP_ALIVE => once(&mut found.server_keep_alive, reader.u16()?)?,
            id::RESPONSE_INFORMATION => once(&mut found.response_information, reader.string()?)?,
            id::SERVER_REFERENCE => once(&mut found.server_reference, reader.string()?)?,
            id::AUTHENTICATION_METHOD => once(&mut found.authentication_method, reader.string()?)?,
            id::AUTHENTICATION_DATA => once(&mut found.authentication_data, reader.binary()?)?,
            id::USER_PROPERTY => found.user = user(&mut reader, block)?,
            _ => return Err(MISPLACED),
        }
    }
    Ok(found)
}

#[inline]
pub(super) fn publish(block: &[u8]) -> Outcome<PublishProperties<'_>> {
    let mut found = PublishProperties::default();
    let mut reader = Reader::new(block);
    while !reader.is_empty() {
        match reader.u8()? {
            id::PAYLOAD_FORMAT_INDICATOR => {
                once(&mut found.payload_format_indicator, flag(&mut reader)?)?;
            }
            id::MESSAGE_EXPIRY => once(&mut found.message_expiry, reader.u32()?)?,
            // [MQTT-3.3.2-8]
            id::TOPIC_ALIAS => once(&mut found.topic_alias, positive(&mut reader)?)?,
            // [MQTT-3.3.2-13] [MQTT-3.3.2-14]
            id::RESPONSE_TOPIC => once(&mut found.response_topic, topic(&mut reader)?)?,
            id::CORRELATION_DATA => once(&mut found.correlation_data, reader.binary()?)?,
            id::SUBSCRIPTION_IDENTIFIER => {
                subscription_identifier(&mut reader)?;
                found.subscription_identifiers = SubscriptionIdentifiers::Wire(block);
            }
            // [MQTT-3.3.2-19]
            id::CONTENT_TYPE => once(&mut found.content_type, reader.string()?)?,
            id::USER_PROPERTY => found.user = user(&mut reader, block)?,
            _ => return Err(MISPLACED),
        }
    }
    Ok(found)
}

pub(super) fn ack(block: &[u8]) -> Outcome<AckProperties<'_>> {
    let mut found = AckProperties::default();
    let mut reader = Reader::new(block);
    while !reader.is_empty() {
        match reader.u8()? {
            id::REASON_STRING => once(&mut found.reason_string, reader.string()?)?,
            id::USER_PROPERTY => found.user = user(&mut reader, block)?,
            _ => return Err(MISPLACED),
        }
    }
    Ok(found)
}

pub(super) fn subscribe(block: &[u8]) -> Outcome<SubscribeProperties<'_>> {
    let mut found = SubscribeProperties::default();
    let mut reader = Reader::new(block);
    while !reader.is_empty() {
        match reader.u8()? {
            id::SUBSCRIPTION_IDENTIFIER => {
                once(
                    &mut found.subscription_identifier,
                    subscription_identifier(&mut reader)?,
                )?;
            }
            id::USER_PROPERTY => found.user = user(&mut reader, block)?,
            _ => return Err(MISPLACED),
        }
    }
    Ok(found)
}

pub(super) fn unsubscribe(block: &[u8]) -> Outcome<UserProperties<'_>> {
    let mut found = UserProperties::default();
    let mut reader = Reader::new(block);
    while !reader.is_empty() {
        match reader.u8()? {
            id::USER_PROPERTY => found = user(&mut reader, block)?,
            _ => return Err(MISPLACED),
        }
    }
    Ok(found)
}

pub(super) fn disconnect(block: &[u8]) -> Outcome<DisconnectProperties<'_>> {
    let mut found = DisconnectProperties::default();
    let mut reader = Reader::new(block);
    while !reader.is_empty() {
        match reader.u8()? {
            id::SESSION_EXPIRY => once(&mut found.session_expiry, reader.u32()?)?,
            id::REASON_STRING => once(&mut found.reason_string, reader.string()?)?,
            id::SERVER_REFERENCE => once(&mut found.server_reference, reader.string()?)?,
            id::USER_PROPERTY => found.user = user(&mut reader, block)?,
            _ => return Err(MISPLACED),
        }
    }
    Ok(found)
}

pub(super) fn auth(block: &[u8]) -> Outcome<AuthProperties<'_>> {
    let mut found = AuthProperties::default();
    let mut reader = Reader::new(block);
    while !reader.is_empty() {
        match reader.u8()? {
            id::AUTHENTICATION_METHOD => once(&mut found.authentication_method, reader.string()?)?,
            id::AUTHENTICATION_DATA => once(&mut found.authentication_data, reader.binary()?)?,
            id::REASON_STRING => once(&mut found.reason_string, reader.string()?)?,
            id::USER_PROPERTY => found.user = user(&mut reader, block)?,
            _ => return Err(MISPLACED),
        }
    }
    Ok(found)
}

const MISPLACED: DecodeError = DecodeError::Malformed("property that this packet cannot have");

/// Sets a property that may occur only once.
#[inline]
fn once<T>(slot: &mut Option<T>, value: T) -> Outcome<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(DecodeError::Protocol("property more than once")),
    }
}

#[inline]
fn flag(reader: &mut Reader<'_>) -> Outcome<bool> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(DecodeError::Protocol("property that is neither 0 nor 1")),
    }
}

#[inline]
fn positive(reader: &mut Reader<'_>) -> Outcome<NonZeroU16> {
    NonZeroU16::new(reader.u16()?).ok_or(DecodeError::Protocol("property that is 0"))
}

fn packet_size(reader: &mut Reader<'_>) -> Outcome<u32> {
    match reader.u32()? {
        0 => Err(DecodeError::Protocol("property that is 0")),
        size => Ok(size),
    }
}

fn subscription_identifier(reader: &mut Reader<'_>) -> Outcome<u32> {
    match reader.variable()? {
        0 => Err(DecodeError::Protocol("subscription identifier 0")),
        identifier => Ok(identifier),
    }
}

fn topic<'a>(reader: &mut Reader<'a>) -> Outcome<&'a str> {
    let topic = reader.string()?;
    // [MQTT-4.7.3-1]
    if topic.is_empty() || has_forbidden(topic.as_bytes()) {
        return Err(DecodeError::Malformed(
            "response topic that is empty or has a wildcard",
        ));
    }
    Ok(topic)
}

/// Checks one user property; the result refers to the whole block.
#[inline]
fn user<'a>(reader: &mut Reader<'a>, block: &'a [u8]) -> Outcome<UserProperties<'a>> {
    reader.pair()?;
    Ok(UserProperties::Wire(block))
}
