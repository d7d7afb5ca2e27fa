//! CONNECT and CONNACK.

use super::properties;
use super::sink::{Sink, block};
use crate::error::EncodeError;
use crate::packet::{ConnAck, Connect, Version, Will};
use crate::reason::ReasonCode;

/// Bit of the protocol level that a bridge sets to identify itself.
const BRIDGE: u8 = 0x80;

pub(super) fn connect(connect: &Connect<'_>, out: &mut dyn Sink) {
    let version = connect.version;
    let (name, level) = match version {
        Version::V31 => ("MQIsdp", 3),
        Version::V311 => ("MQTT", 4),
        Version::V5 => ("MQTT", 5),
    };
    // [MQTT-3.1.2-1] [MQTT3-3.1.2-1]
    out.string(name);
    if connect.is_bridge && version == Version::V5 {
        out.fail(EncodeError::NotInVersion);
    }
    out.u8(if connect.is_bridge {
        level | BRIDGE
    } else {
        level
    });
    // [MQTT3-3.1.2-22]
    if connect.password.is_some() && connect.username.is_none() && version != Version::V5 {
        out.fail(EncodeError::NotInVersion);
    }
    out.u8(flags(connect));
    out.u16(connect.keep_alive);
    if version == Version::V5 {
        block(out, &|out| properties::connect(&connect.properties, out));
    }
    // [MQTT-3.1.3-1] [MQTT-3.1.3-3] [MQTT3-3.1.3-1] [MQTT3-3.1.3-3]
    out.string(connect.client_id);
    if let Some(message) = &connect.will {
        will(message, version, out);
    }
    // [MQTT-3.1.2-16] [MQTT-3.1.2-17] [MQTT3-3.1.2-18] [MQTT3-3.1.2-19]
    if let Some(username) = connect.username {
        out.string(username);
    }
    // [MQTT-3.1.2-18] [MQTT-3.1.2-19] [MQTT3-3.1.2-20] [MQTT3-3.1.2-21]
    if let Some(password) = connect.password {
        out.binary(password);
    }
}

fn flags(connect: &Connect<'_>) -> u8 {
    // [MQTT-3.1.2-11] [MQTT-3.1.2-13] [MQTT3-3.1.2-13] [MQTT3-3.1.2-15]
    let will = connect.will.map_or(0, |will| {
        0b100 | will.qos.as_u8() << 3 | u8::from(will.retain) << 5
    });
    let username = u8::from(connect.username.is_some()) << 7;
    let password = u8::from(connect.password.is_some()) << 6;
    username | password | will | u8::from(connect.clean_start) << 1
}

// [MQTT-3.1.2-9] [MQTT3-3.1.2-9]
fn will(will: &Will<'_>, version: Version, out: &mut dyn Sink) {
    if version == Version::V5 {
        block(out, &|out| properties::will(&will.properties, out));
    }
    out.string(will.topic);
    out.binary(will.payload);
}

pub(super) fn connack(connack: &ConnAck<'_>, version: Version, out: &mut dyn Sink) {
    // [MQTT-3.2.2-6] [MQTT3-3.2.2-4]
    let session_present = connack.session_present && connack.reason == ReasonCode::Success;
    match version {
        // The byte is reserved in 3.1.
        Version::V31 => out.u8(0),
        Version::V311 | Version::V5 => out.u8(u8::from(session_present)),
    }
    match version {
        Version::V31 | Version::V311 => out.u8(connack.reason.return_code()),
        Version::V5 => {
            out.u8(connack.reason.as_u8());
            block(out, &|out| properties::connack(&connack.properties, out));
        }
    }
}
