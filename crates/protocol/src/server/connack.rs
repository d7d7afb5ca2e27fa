//! CONNACK of an accepted and of a refused connection.

use core::num::NonZeroU16;

use thrum_codec::packet::{ConnAck, Connect, Packet};
use thrum_codec::properties::ConnAckProperties;
use thrum_codec::reason::Carrier;
use thrum_codec::{QoS, ReasonCode, Version, encode, encoded_len};

use super::{ConnAckParts, Handshake};
use crate::{Limits, Output, Violation};

/// Appends the CONNACK of a refusal in the form of the version. 3.x has return codes for few
/// causes; for all others nothing is written. [`refuse_connect`] adds the reason string.
pub fn refuse(version: Version, violation: &Violation, out: &mut Output) {
    append_refusal(version, violation.reason, "", u32::MAX, out);
}

/// Appends the CONNACK that refuses this CONNECT, with a reason string if the client's maximum
/// packet size allows it.
pub fn refuse_connect(connect: &Connect<'_>, violation: &Violation, out: &mut Output) {
    let bytes_max = connect.properties.maximum_packet_size.unwrap_or(u32::MAX);
    append_refusal(
        connect.version,
        violation.reason,
        violation.what,
        bytes_max,
        out,
    );
}

pub(super) fn append_refusal(
    version: Version,
    reason: ReasonCode,
    what: &str,
    bytes_max: u32,
    out: &mut Output,
) {
    let reason = match version {
        // Only DISCONNECT may have the code for a server that is shutting down.
        Version::V5 if reason == ReasonCode::ServerShuttingDown => ReasonCode::ServerUnavailable,
        // [MQTT-3.2.2-8]
        Version::V5 if reason.may_be_in(Carrier::ConnAck) && reason.is_error() => reason,
        Version::V5 => ReasonCode::UnspecifiedError,
        Version::V31 | Version::V311 => match return_code_v3(reason) {
            Some(reason) => reason,
            // [MQTT3-3.2.2-6] [MQTT3-3.1.4-1]
            None => return,
        },
    };
    let mut connack = ConnAck {
        // [MQTT-3.2.2-6] [MQTT3-3.2.2-4]
        session_present: false,
        reason,
        properties: ConnAckProperties {
            reason_string: Some(what).filter(|what| !what.is_empty()),
            // [MQTT-3.2.2-20]
            ..ConnAckProperties::default()
        },
    };
    // [MQTT-3.2.2-19]
    if !fits(&connack, version, bytes_max) {
        connack.properties.reason_string = None;
    }
    append(&connack, version, bytes_max, out);
}

/// The reason whose 3.x return code has the same meaning; `None` if every return code would mislead
/// the client.
fn return_code_v3(reason: ReasonCode) -> Option<ReasonCode> {
    match reason {
        // [MQTT3-3.1.2-2] [MQTT3-3.1.3-8] [MQTT3-3.1.3-9]
        ReasonCode::UnsupportedProtocolVersion
        | ReasonCode::ClientIdentifierNotValid
        | ReasonCode::BadUserNameOrPassword
        | ReasonCode::NotAuthorized => Some(reason),
        ReasonCode::Banned => Some(ReasonCode::NotAuthorized),
        ReasonCode::ServerUnavailable
        | ReasonCode::ServerBusy
        | ReasonCode::ServerShuttingDown
        | ReasonCode::UseAnotherServer
        | ReasonCode::ServerMoved
        | ReasonCode::QuotaExceeded
        | ReasonCode::ConnectionRateExceeded => Some(ReasonCode::ServerUnavailable),
        _ => None,
    }
}

/// Appends the CONNACK of an accepted connection. [MQTT-3.1.4-5] [MQTT3-3.1.4-4] [MQTT-3.2.0-1]
/// [MQTT3-3.2.0-1]
pub(super) fn append_accepted(
    handshake: &Handshake,
    parts: ConnAckParts<'_>,
    limits: &Limits,
    out: &mut Output,
) {
    let mut connack = accepted_packet(handshake, parts, limits);
    let bytes_max = handshake.packet_bytes_max;
    if !fits(&connack, handshake.version, bytes_max) {
        connack.properties.response_information = None;
    }
    // The client may need the authentication data to verify the server, and then ends the
    // connection; without a CONNACK it would wait.
    if !fits(&connack, handshake.version, bytes_max) {
        connack.properties.authentication_data = None;
    }
    append(&connack, handshake.version, bytes_max, out);
}

/// Whether the required CONNACK fits into the client's maximum packet size.
pub(super) fn connack_fits(handshake: &Handshake, limits: &Limits) -> bool {
    let parts = ConnAckParts::default();
    let connack = accepted_packet(handshake, parts, limits);
    fits(&connack, handshake.version, handshake.packet_bytes_max)
}

fn accepted_packet<'a>(
    handshake: &'a Handshake,
    parts: ConnAckParts<'a>,
    limits: &Limits,
) -> ConnAck<'a> {
    let unless_default = |available: bool| if available { None } else { Some(false) };
    let properties = ConnAckProperties {
        session_expiry: handshake.changed_session_expiry,
        receive_maximum: NonZeroU16::new(limits.receive_maximum.max(1))
            .filter(|maximum| *maximum != NonZeroU16::MAX),
        // [MQTT-3.2.2-9]
        maximum_qos: Some(limits.maximum_qos).filter(|qos| *qos < QoS::ExactlyOnce),
        retain_available: unless_default(handshake.retain_available),
        maximum_packet_size: Some(limits.packet_bytes_max).filter(|bytes| *bytes > 0),
        // [MQTT-3.1.3-7] [MQTT-3.2.2-16]
        assigned_client_id: handshake
            .is_client_id_assigned
            .then_some(&*handshake.client_id),
        topic_alias_maximum: Some(limits.topic_alias_maximum).filter(|maximum| *maximum > 0),
        wildcard_subscription_available: unless_default(limits.wildcard_available),
        shared_subscription_available: unless_default(limits.shared_available),
        server_keep_alive: handshake.server_keep_alive,
        // [MQTT-3.1.2-28]
        response_information: parts
            .response_information
            .filter(|_| handshake.wants_response_information),
        // [MQTT-4.12.0-5] [MQTT-4.12.0-6]
        authentication_method: handshake.authentication_method(),
        authentication_data: parts
            .authentication_data
            .filter(|_| handshake.method.is_some()),
        ..ConnAckProperties::default()
    };
    ConnAck {
        // [MQTT-3.2.2-2] [MQTT-3.2.2-3] [MQTT3-3.2.2-1] [MQTT3-3.2.2-2] [MQTT3-3.2.2-3]
        session_present: parts.session_present && !handshake.clean_start,
        reason: ReasonCode::Success,
        properties,
    }
}

fn fits(connack: &ConnAck<'_>, version: Version, bytes_max: u32) -> bool {
    encoded_len(&Packet::ConnAck(*connack), version)
        .is_ok_and(|len| u32::try_from(len).is_ok_and(|len| len <= bytes_max))
}

/// Appends the packet if it fits; a client whose limit is below a minimal CONNACK gets none.
/// [MQTT-3.1.2-24]
fn append(connack: &ConnAck<'_>, version: Version, bytes_max: u32, out: &mut Output) {
    if fits(connack, version, bytes_max) {
        // Its length was checked, so encoding succeeds.
        encode(&Packet::ConnAck(*connack), version, out.own()).ok();
    }
}
