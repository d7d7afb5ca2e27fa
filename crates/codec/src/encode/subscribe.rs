//! SUBSCRIBE, SUBACK, UNSUBSCRIBE and UNSUBACK.

use super::properties;
use super::sink::{Sink, block};
use crate::error::EncodeError;
use crate::packet::{SubAck, Subscribe, SubscriptionOptions, Unsubscribe, Version};
use crate::reason::ReasonCode;

pub(super) fn subscribe(subscribe: &Subscribe<'_>, version: Version, out: &mut dyn Sink) {
    out.u16(subscribe.packet_id.as_u16());
    if version == Version::V5 {
        block(out, &|out| {
            properties::subscribe(&subscribe.properties, out);
        });
    }
    // [MQTT-3.8.3-2] [MQTT3-3.8.3-3]
    if subscribe.requests.is_empty() {
        out.fail(EncodeError::Incomplete);
    }
    for request in &subscribe.requests {
        out.string(request.filter.as_str());
        out.u8(bits(request.options, version));
    }
}

fn bits(options: SubscriptionOptions, version: Version) -> u8 {
    let qos = options.qos.as_u8();
    match version {
        Version::V31 | Version::V311 => qos,
        Version::V5 => {
            qos | u8::from(options.no_local) << 2
                | u8::from(options.retain_as_published) << 3
                | options.retain_handling.as_u8() << 4
        }
    }
}

pub(super) fn suback(suback: &SubAck<'_>, version: Version, out: &mut dyn Sink) {
    answer(suback, version, out);
    for code in &suback.codes {
        out.u8(match version {
            // [MQTT3-3.9.3-2]
            Version::V31 | Version::V311 if code.is_error() => ReasonCode::UnspecifiedError.as_u8(),
            Version::V31 | Version::V311 | Version::V5 => code.as_u8(),
        });
    }
    if suback.codes.is_empty() {
        out.fail(EncodeError::Incomplete);
    }
}

pub(super) fn unsubscribe(unsubscribe: &Unsubscribe<'_>, version: Version, out: &mut dyn Sink) {
    out.u16(unsubscribe.packet_id.as_u16());
    if version == Version::V5 {
        block(out, &|out| properties::user(&unsubscribe.user, out));
    }
    // [MQTT-3.10.3-2] [MQTT3-3.10.3-2]
    if unsubscribe.filters.is_empty() {
        out.fail(EncodeError::Incomplete);
    }
    for filter in &unsubscribe.filters {
        out.string(filter.as_str());
    }
}

pub(super) fn unsuback(unsuback: &SubAck<'_>, version: Version, out: &mut dyn Sink) {
    answer(unsuback, version, out);
    if version == Version::V5 {
        for code in &unsuback.codes {
            out.u8(code.as_u8());
        }
        if unsuback.codes.is_empty() {
            out.fail(EncodeError::Incomplete);
        }
    }
}

fn answer(answer: &SubAck<'_>, version: Version, out: &mut dyn Sink) {
    // [MQTT-2.2.1-6] [MQTT3-2.3.1-7]
    out.u16(answer.packet_id.as_u16());
    if version == Version::V5 {
        block(out, &|out| properties::ack(&answer.properties, out));
    }
}
