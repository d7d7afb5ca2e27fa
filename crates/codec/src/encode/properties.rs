//! The property block of each packet, without its length.

use super::sink::Sink;
use crate::error::EncodeError;
use crate::packet::QoS;
use crate::properties::{
    AckProperties, AuthProperties, ConnAckProperties, ConnectProperties, DisconnectProperties,
    PublishProperties, SubscribeProperties, UserProperties, WillProperties, id,
};
use crate::wire::VARIABLE_MAX;

pub(super) fn connect(properties: &ConnectProperties<'_>, out: &mut dyn Sink) {
    four_bytes(id::SESSION_EXPIRY, properties.session_expiry, out);
    two_bytes(
        id::RECEIVE_MAXIMUM,
        properties.receive_maximum.map(Into::into),
        out,
    );
    packet_size(properties.maximum_packet_size, out);
    two_bytes(id::TOPIC_ALIAS_MAXIMUM, properties.topic_alias_maximum, out);
    flag(
        id::REQUEST_RESPONSE_INFORMATION,
        properties.request_response_information,
        out,
    );
    flag(
        id::REQUEST_PROBLEM_INFORMATION,
        properties.request_problem_information,
        out,
    );
    string(
        id::AUTHENTICATION_METHOD,
        properties.authentication_method,
        out,
    );
    binary(id::AUTHENTICATION_DATA, properties.authentication_data, out);
    user(&properties.user, out);
}

pub(super) fn will(properties: &WillProperties<'_>, out: &mut dyn Sink) {
    four_bytes(id::WILL_DELAY, properties.will_delay, out);
    flag(
        id::PAYLOAD_FORMAT_INDICATOR,
        properties.payload_format_indicator,
        out,
    );
    four_bytes(id::MESSAGE_EXPIRY, properties.message_expiry, out);
    string(id::CONTENT_TYPE, properties.content_type, out);
    string(id::RESPONSE_TOPIC, properties.response_topic, out);
    binary(id::CORRELATION_DATA, properties.correlation_data, out);
    user(&properties.user, out);
}

pub(super) fn connack(properties: &ConnAckProperties<'_>, out: &mut dyn Sink) {
    four_bytes(id::SESSION_EXPIRY, properties.session_expiry, out);
    two_bytes(
        id::RECEIVE_MAXIMUM,
        properties.receive_maximum.map(Into::into),
        out,
    );
    match properties.maximum_qos {
        // An absent property means 2; the value 2 itself is not allowed.
        None | Some(QoS::ExactlyOnce) => {}
        Some(QoS::AtMostOnce) => flag(id::MAXIMUM_QOS, Some(false), out),
        Some(QoS::AtLeastOnce) => flag(id::MAXIMUM_QOS, Some(true), out),
    }
    flag(id::RETAIN_AVAILABLE, properties.retain_available, out);
    packet_size(properties.maximum_packet_size, out);
    string(id::ASSIGNED_CLIENT_ID, properties.assigned_client_id, out);
    two_bytes(id::TOPIC_ALIAS_MAXIMUM, properties.topic_alias_maximum, out);
    string(id::REASON_STRING, properties.reason_string, out);
    let wildcards = properties.wildcard_subscription_available;
    flag(id::WILDCARD_SUBSCRIPTION_AVAILABLE, wildcards, out);
    let identifiers = properties.subscription_identifiers_available;
    flag(id::SUBSCRIPTION_IDENTIFIERS_AVAILABLE, identifiers, out);
    flag(
        id::SHARED_SUBSCRIPTION_AVAILABLE,
        properties.shared_subscription_available,
        out,
    );
    two_bytes(id::SERVER_KEEP_ALIVE, properties.server_keep_alive, out);
    string(
        id::RESPONSE_INFORMATION,
        properties.response_information,
        out,
    );
    string(id::SERVER_REFERENCE, properties.server_reference, out);
    string(
        id::AUTHENTICATION_METHOD,
        properties.authentication_method,
        out,
    );
    binary(id::AUTHENTICATION_DATA, properties.authentication_data, out);
    user(&properties.user, out);
}

#[inline]
pub(super) fn publish<S: Sink>(properties: &PublishProperties<'_>, out: &mut S) {
    flag(
        id::PAYLOAD_FORMAT_INDICATOR,
        properties.payload_format_indicator,
        out,
    );
    four_bytes(id::MESSAGE_EXPIRY, properties.message_expiry, out);
    // [MQTT-3.3.2-8]
    two_bytes(id::TOPIC_ALIAS, properties.topic_alias.map(Into::into), out);
    string(id::RESPONSE_TOPIC, properties.response_topic, out);
    binary(id::CORRELATION_DATA, properties.correlation_data, out);
    for identifier in &properties.subscription_identifiers {
        subscription_identifier(identifier, out);
    }
    string(id::CONTENT_TYPE, properties.content_type, out);
    user(&properties.user, out);
}

pub(super) fn ack(properties: &AckProperties<'_>, out: &mut dyn Sink) {
    string(id::REASON_STRING, properties.reason_string, out);
    user(&properties.user, out);
}

pub(super) fn subscribe(properties: &SubscribeProperties<'_>, out: &mut dyn Sink) {
    if let Some(identifier) = properties.subscription_identifier {
        subscription_identifier(identifier, out);
    }
    user(&properties.user, out);
}

pub(super) fn disconnect(properties: &DisconnectProperties<'_>, out: &mut dyn Sink) {
    four_bytes(id::SESSION_EXPIRY, properties.session_expiry, out);
    string(id::REASON_STRING, properties.reason_string, out);
    string(id::SERVER_REFERENCE, properties.server_reference, out);
    user(&properties.user, out);
}

pub(super) fn auth(properties: &AuthProperties<'_>, out: &mut dyn Sink) {
    string(
        id::AUTHENTICATION_METHOD,
        properties.authentication_method,
        out,
    );
    binary(id::AUTHENTICATION_DATA, properties.authentication_data, out);
    string(id::REASON_STRING, properties.reason_string, out);
    user(&properties.user, out);
}

#[inline]
pub(super) fn user<S: Sink + ?Sized>(properties: &UserProperties<'_>, out: &mut S) {
    for (name, value) in properties {
        out.u8(id::USER_PROPERTY);
        out.string(name);
        out.string(value);
    }
}

#[inline]
fn flag<S: Sink + ?Sized>(identifier: u8, value: Option<bool>, out: &mut S) {
    if let Some(value) = value {
        out.bytes(&[identifier, u8::from(value)]);
    }
}

#[inline]
fn two_bytes<S: Sink + ?Sized>(identifier: u8, value: Option<u16>, out: &mut S) {
    if let Some(value) = value {
        out.u8(identifier);
        out.u16(value);
    }
}

#[inline]
fn four_bytes<S: Sink + ?Sized>(identifier: u8, value: Option<u32>, out: &mut S) {
    if let Some(value) = value {
        out.u8(identifier);
        out.u32(value);
    }
}

#[inline]
fn string<S: Sink + ?Sized>(identifier: u8, value: Option<&str>, out: &mut S) {
    binary(identifier, value.map(str::as_bytes), out);
}

#[inline]
fn binary<S: Sink + ?Sized>(identifier: u8, value: Option<&[u8]>, out: &mut S) {
    if let Some(value) = value {
        out.u8(identifier);
        out.binary(value);
    }
}

#[inline]
fn subscription_identifier<S: Sink + ?Sized>(identifier: u32, out: &mut S) {
    if !(1..=VARIABLE_MAX).contains(&identifier) {
        out.fail(EncodeError::OutOfRange);
    }
    out.u8(id::SUBSCRIPTION_IDENTIFIER);
    out.variable(identifier);
}

fn packet_size(value: Option<u32>, out: &mut dyn Sink) {
    if value == Some(0) {
        out.fail(EncodeError::OutOfRange);
    }
    four_bytes(id::MAXIMUM_PACKET_SIZE, value, out);
}
