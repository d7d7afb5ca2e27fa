//! `%j` and `%J`: a message as one JSON object.

use std::fmt::Write as _;

use jiff::Zoned;
use serde::de::IgnoredAny;

use super::Received;

/// The payload as text if it is one JSON value; an empty payload is `null`.
pub(super) fn checked(payload: &[u8]) -> Option<&str> {
    if payload.is_empty() {
        return Some("null");
    }
    let text = str::from_utf8(payload).ok()?;
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    Some(text)
}

/// The object; the payload is a string of it unless it is given as JSON.
pub(super) fn object(received: Received<'_>, at: &Zoned, payload: Option<&str>) -> String {
    let publish = received.publish;
    let mut text = String::from("{");
    let time = at.strftime("%Y-%m-%dT%H:%M:%S.%6f%z").to_string();
    member(&mut text, "tst", &string(&time));
    member(&mut text, "topic", &string(received.topic));
    member(&mut text, "qos", &publish.qos.as_u8().to_string());
    member(&mut text, "retain", &u8::from(publish.retain).to_string());
    member(&mut text, "payloadlen", &publish.payload.len().to_string());
    if let Some(packet_id) = publish.packet_id {
        member(&mut text, "mid", &packet_id.as_u16().to_string());
    }
    let properties = properties(received);
    if properties != "{}" {
        member(&mut text, "properties", &properties);
    }
    let payload = match payload {
        Some(json) => json.to_owned(),
        None if publish.payload.is_empty() => "null".to_owned(),
        None => string(&String::from_utf8_lossy(publish.payload)),
    };
    member(&mut text, "payload", &payload);
    text.push('}');
    text
}

fn properties(received: Received<'_>) -> String {
    let properties = &received.publish.properties;
    let mut text = String::from("{");
    if let Some(alias) = properties.topic_alias {
        member(&mut text, "topic-alias", &alias.to_string());
    }
    if let Some(content_type) = properties.content_type {
        member(&mut text, "content-type", &string(content_type));
    }
    if !properties.user.is_empty() {
        let mut pairs = String::from("{");
        for (name, value) in &properties.user {
            member(&mut pairs, name, &string(value));
        }
        pairs.push('}');
        member(&mut text, "user-properties", &pairs);
    }
    if let Some(correlation) = properties.correlation_data {
        member(
            &mut text,
            "correlation-data",
            &string(&String::from_utf8_lossy(correlation)),
        );
    }
    if let Some(response_topic) = properties.response_topic {
        member(&mut text, "response-topic", &string(response_topic));
    }
    if let Some(is_text) = properties.payload_format_indicator {
        member(
            &mut text,
            "payload-format-indicator",
            &u8::from(is_text).to_string(),
        );
    }
    if let Some(expiry) = properties.message_expiry {
        member(&mut text, "message-expiry-interval", &expiry.to_string());
    }
    let identifiers: Vec<String> = properties
        .subscription_identifiers
        .iter()
        .map(|id| id.to_string())
        .collect();
    match &identifiers[..] {
        [] => {}
        [one] => member(&mut text, "subscription-identifier", one),
        many => member(
            &mut text,
            "subscription-identifier",
            &format!("[{}]", many.join(",")),
        ),
    }
    text.push('}');
    text
}

/// Appends a member to an object that is still open.
fn member(object: &mut String, name: &str, value: &str) {
    if !object.ends_with('{') {
        object.push(',');
    }
    object.push_str(&string(name));
    object.push(':');
    object.push_str(value);
}

/// A JSON string.
fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            control if u32::from(control) < 0x20 => {
                // Writing to a string cannot fail.
                write!(quoted, "\\u{:04x}", u32::from(control)).ok();
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// Valid JSON on one line without spaces, or spread out and indented with tabs.
pub(super) fn layout(json: &str, pretty: bool) -> String {
    let mut layout = Layout {
        out: String::with_capacity(json.len()),
        depth: 0,
        pretty,
    };
    let mut in_string = false;
    let mut escaped = false;
    let mut just_opened = false;
    for character in json.chars() {
        if in_string {
            layout.out.push(character);
            in_string = escaped || character != '"';
            escaped = character == '\\' && !escaped;
            continue;
        }
        if character.is_ascii_whitespace() {
            continue;
        }
        let closes = matches!(character, '}' | ']');
        if just_opened && !closes {
            layout.indent(1);
        } else if closes && !just_opened {
            layout.indent(-1);
        }
        just_opened = matches!(character, '{' | '[');
        in_string = character == '"';
        layout.out.push(character);
        match character {
            ',' => layout.indent(0),
            ':' if pretty => layout.out.push('\t'),
            _ => {}
        }
    }
    layout.out
}

struct Layout {
    out: String,
    depth: usize,
    pretty: bool,
}

impl Layout {
    /// Begins a new line, this many levels deeper.
    fn indent(&mut self, deeper: isize) {
        self.depth = self.depth.saturating_add_signed(deeper);
        if self.pretty {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n('\t', self.depth));
        }
    }
}
