//! One parameter of a message, in its field.

use jiff::Zoned;

use super::{Layout, Parameter, Received, iso};

/// The value of a parameter for one message.
enum Value<'a> {
    /// Can be cut and padded.
    Text(String),
    /// Can be padded, with zeros too; none is printed as nothing.
    Number(Option<u64>),
    /// Digits that can be padded like a number.
    Hex(Vec<u8>),
    /// Can be padded.
    Bytes(&'a [u8]),
    /// Is never padded.
    Bare(Vec<u8>),
}

pub(super) fn write(
    parameter: Parameter,
    layout: Layout,
    received: Received<'_>,
    at: &Zoned,
    out: &mut Vec<u8>,
) {
    match value(parameter, received, at) {
        Value::Text(text) => {
            let end = layout
                .precision
                .and_then(|most| text.char_indices().nth(most));
            let text = end.map_or(&text[..], |(at, _)| &text[..at]);
            field(layout, text.chars().count(), false, text.as_bytes(), out);
        }
        Value::Number(number) => {
            let digits = number.map_or(String::new(), |number| number.to_string());
            field(
                layout,
                digits.len(),
                number.is_some(),
                digits.as_bytes(),
                out,
            );
        }
        Value::Hex(digits) => field(layout, digits.len(), true, &digits, out),
        Value::Bytes(bytes) => field(layout, bytes.len(), false, bytes, out),
        Value::Bare(bytes) => out.extend_from_slice(&bytes),
    }
}

fn value<'a>(parameter: Parameter, received: Received<'a>, at: &Zoned) -> Value<'a> {
    let publish = received.publish;
    let properties = &publish.properties;
    let text = |text: Option<&str>| Value::Text(text.unwrap_or_default().to_owned());
    match parameter {
        Parameter::TopicAlias => {
            Value::Number(properties.topic_alias.map(|alias| alias.get().into()))
        }
        Parameter::ContentType => text(properties.content_type),
        Parameter::CorrelationData => {
            Value::Bare(properties.correlation_data.unwrap_or_default().to_vec())
        }
        Parameter::MessageExpiry => Value::Number(properties.message_expiry.map(u64::from)),
        Parameter::PayloadFormat => {
            Value::Number(properties.payload_format_indicator.map(u64::from))
        }
        Parameter::IsoTime => Value::Text(iso(at)),
        Parameter::Length => Value::Number(u64::try_from(publish.payload.len()).ok()),
        Parameter::PacketId => {
            Value::Number(Some(publish.packet_id.map_or(0, |id| id.as_u16().into())))
        }
        Parameter::Payload => Value::Bytes(publish.payload),
        Parameter::UserProperties => {
            let pairs = properties
                .user
                .iter()
                .map(|(name, value)| format!("{name}:{value}"));
            Value::Bare(joined(pairs).into_bytes())
        }
        Parameter::QoS => Value::Bare(vec![b'0' + publish.qos.as_u8()]),
        Parameter::ResponseTopic => text(properties.response_topic),
        Parameter::Retain => Value::Bare(vec![b'0' + u8::from(publish.retain)]),
        Parameter::SubscriptionIdentifiers => {
            let identifiers = properties.subscription_identifiers.iter();
            Value::Text(joined(identifiers.map(|identifier| identifier.to_string())))
        }
        Parameter::Topic => text(Some(received.topic)),
        Parameter::UnixTime => {
            let since = at.timestamp();
            let text = format!("{}.{:09}", since.as_second(), since.subsec_nanosecond());
            Value::Bare(text.into_bytes())
        }
        Parameter::LowerHex => Value::Hex(hex(publish.payload, b"0123456789abcdef")),
        Parameter::UpperHex => Value::Hex(hex(publish.payload, b"0123456789ABCDEF")),
        // Written by the caller, which knows how JSON is laid out.
        Parameter::Json | Parameter::JsonPayload => Value::Bare(Vec::new()),
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<String>>().join(" ")
}

/// Pads what is `width` characters wide to the field.
fn field(layout: Layout, width: usize, numeric: bool, bytes: &[u8], out: &mut Vec<u8>) {
    let missing = layout.width.saturating_sub(width);
    if layout.left {
        out.extend_from_slice(bytes);
        out.extend(std::iter::repeat_n(b' ', missing));
    } else {
        let padding = if layout.zeros && numeric { b'0' } else { b' ' };
        out.extend(std::iter::repeat_n(padding, missing));
        out.extend_from_slice(bytes);
    }
}

fn hex(bytes: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    let digit = |value: u8| digits[usize::from(value)];
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 0b1111)])
        .collect()
}
