//! A retained message as a line of JSON, for `export` and `import`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use thrum_codec::QoS;
use thrum_codec::properties::{PublishProperties, UserProperties};
use thrum_codec::topic::is_valid_name;
use thrum_protocol::{Message, MessageParts, Publication};
use thrum_storage::{RecoveredMessage, WallMillis};

use crate::command::shown::{parse_time, time};

/// Longest text or field of a property, in bytes.
const FIELD_BYTES_MAX: usize = u16::MAX as usize;

/// The line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    topic: String,
    #[serde(default)]
    qos: u8,
    /// In base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    /// The payload if it is UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    published_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(default, skip_serializing_if = "Properties::is_empty")]
    properties: Properties,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Properties {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload_format_indicator: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response_topic: Option<String>,
    /// In base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    correlation_data: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    user: Vec<(String, String)>,
}

/// The checked contents of a line.
#[derive(Debug)]
pub(super) struct Read {
    /// Topic, property block and payload.
    pub(super) message: Message,
    pub(super) published_at: WallMillis,
    pub(super) expires_at: Option<WallMillis>,
}

impl Properties {
    fn is_empty(&self) -> bool {
        let Self {
            payload_format_indicator,
            content_type,
            response_topic,
            correlation_data,
            user,
        } = self;
        payload_format_indicator.is_none()
            && content_type.is_none()
            && response_topic.is_none()
            && correlation_data.is_none()
            && user.is_empty()
    }

    /// A value that is too long for a packet, or an invalid topic.
    fn check(&self, correlation_data: Option<&[u8]>) -> Result<(), String> {
        let texts = [&self.content_type, &self.response_topic];
        let texts = texts.into_iter().flatten();
        let pairs = self.user.iter().flat_map(|(name, value)| [name, value]);
        if let Some(text) = texts.chain(pairs).find(|text| !is_text(text)) {
            let begin: String = text.chars().take(20).collect();
            return Err(format!(
                "the property {begin:?} has a U+0000, or more than {FIELD_BYTES_MAX} bytes"
            ));
        }
        if correlation_data.is_some_and(|bytes| bytes.len() > FIELD_BYTES_MAX) {
            return Err(format!(
                "correlation_data has more than {FIELD_BYTES_MAX} bytes"
            ));
        }
        match &self.response_topic {
            Some(topic) if !is_valid_name(topic) => {
                Err("response_topic is not a topic name".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl Line {
    /// Of a message that is kept.
    pub(super) fn new(message: &RecoveredMessage) -> Self {
        let content = &message.content;
        let (topic, block, payload) = (content.topic(), content.properties(), content.payload());
        let copy = Message::from_parts(MessageParts {
            bytes: [topic.as_bytes(), block].concat().into_boxed_slice(),
            topic_len: topic.len(),
            properties_len: block.len(),
            publisher: 0,
            expires_at: None,
            qos: message.qos,
            retain: true,
        });
        let properties = copy.publication().properties;
        let user = properties.user.iter();
        Self {
            topic: topic.to_owned(),
            qos: message.qos.as_u8(),
            payload: Some(STANDARD.encode(payload)),
            text: str::from_utf8(payload).ok().map(str::to_owned),
            published_at: Some(time(message.published_at)),
            expires_at: message.expires_at.map(time),
            properties: Properties {
                payload_format_indicator: properties.payload_format_indicator.map(u8::from),
                content_type: properties.content_type.map(str::to_owned),
                response_topic: properties.response_topic.map(str::to_owned),
                correlation_data: properties
                    .correlation_data
                    .map(|data| STANDARD.encode(data)),
                user: user
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .collect(),
            },
        }
    }

    /// Checks the contents; `now` is the time of the publish if the line has none.
    pub(super) fn read(&self, now: WallMillis) -> Result<Read, String> {
        if !is_valid_name(&self.topic) {
            return Err(format!(
                "{:?} is not a topic name: it must not be empty, longer than 65535 bytes or have + # or U+0000 in it",
                self.topic
            ));
        }
        let qos = match self.qos {
            0 => QoS::AtMostOnce,
            1 => QoS::AtLeastOnce,
            2 => QoS::ExactlyOnce,
            other => return Err(format!("qos is 0, 1 or 2, not {other}")),
        };
        let payload = self.payload()?;
        let correlation_data = self.properties.correlation_data.as_deref();
        let correlation_data = correlation_data
            .map(|text| decode("correlation_data", text))
            .transpose()?;
        self.properties.check(correlation_data.as_deref())?;
        let user = self.properties.user.iter();
        let user: Vec<(&str, &str)> = user.map(|(name, value)| (&**name, &**value)).collect();
        Ok(Read {
            message: Message::new(&Publication {
                topic: &self.topic,
                payload: &payload,
                properties: PublishProperties {
                    payload_format_indicator: format_indicator(&self.properties)?,
                    content_type: self.properties.content_type.as_deref(),
                    response_topic: self.properties.response_topic.as_deref(),
                    correlation_data: correlation_data.as_deref(),
                    user: UserProperties::Listed(&user),
                    ..PublishProperties::default()
                },
                qos,
                retain: true,
                expires_at: None,
                publisher: 0,
                publisher_hash: 0,
            }),
            published_at: moment("published_at", self.published_at.as_deref())?.unwrap_or(now),
            expires_at: moment("expires_at", self.expires_at.as_deref())?,
        })
    }

    fn payload(&self) -> Result<Vec<u8>, String> {
        let payload = self.payload.as_deref();
        let payload = payload.map(|text| decode("payload", text)).transpose()?;
        match (payload, &self.text) {
            (Some(payload), Some(text)) if payload != text.as_bytes() => {
                Err("payload and text differ; remove the wrong one".to_owned())
            }
            (Some(payload), _) => Ok(payload),
            (None, Some(text)) => Ok(text.clone().into_bytes()),
            (None, None) => Err("a payload (base64) or a text is missing".to_owned()),
        }
    }
}

fn moment(name: &str, text: Option<&str>) -> Result<Option<WallMillis>, String> {
    let Some(text) = text else {
        return Ok(None);
    };
    let expected = || format!("{name} is a time such as \"2026-11-22T09:12:03Z\", not {text:?}");
    parse_time(text).map(Some).ok_or_else(expected)
}

fn decode(name: &str, text: &str) -> Result<Vec<u8>, String> {
    let decoded = STANDARD.decode(text);
    decoded.map_err(|error| format!("{name} is not base64: {error}"))
}

fn format_indicator(properties: &Properties) -> Result<Option<bool>, String> {
    match properties.payload_format_indicator {
        None => Ok(None),
        Some(0) => Ok(Some(false)),
        Some(1) => Ok(Some(true)),
        Some(other) => Err(format!("payload_format_indicator is 0 or 1, not {other}")),
    }
}

fn is_text(text: &str) -> bool {
    text.len() <= FIELD_BYTES_MAX && !text.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Read, String> {
        let line: Line = serde_json::from_str(line).map_err(|error| error.to_string())?;
        line.read(7)
    }

    fn check_refused(line: &str, part: &str) {
        let error = read(line).unwrap_err();
        assert!(error.contains(part), "{line}: {error}");
    }

    #[test]
    fn a_line_written_by_hand_needs_topic_and_text_only() {
        let line = read(r#"{"topic":"a/b","text":"on"}"#).unwrap();
        let message = &line.message;
        assert_eq!((message.topic(), message.payload()), ("a/b", &b"on"[..]));
        assert_eq!((message.qos(), line.published_at), (QoS::AtMostOnce, 7));
        assert_eq!(message.properties_block(), b"");
        assert_eq!(line.expires_at, None);
    }

    #[test]
    fn a_wrong_line_is_refused_with_its_error() {
        check_refused(r#"{"topic":"a/#","text":""}"#, "is not a topic name");
        check_refused(r#"{"topic":"","text":""}"#, "is not a topic name");
        check_refused(
            r#"{"topic":"a"}"#,
            "a payload (base64) or a text is missing",
        );
        check_refused(r#"{"topic":"a","payload":"?"}"#, "payload is not base64");
        check_refused(r#"{"topic":"a","payload":"b24=","text":"off"}"#, "differ");
        check_refused(r#"{"topic":"a","text":"","qos":3}"#, "qos is 0, 1 or 2");
        check_refused(
            r#"{"topic":"a","text":"","expires_at":"soon"}"#,
            "expires_at is a time such as",
        );
        check_refused(r#"{"topic":"a","txt":""}"#, "unknown field `txt`");
        check_refused(
            r#"{"topic":"a","text":"","properties":{"payload_format_indicator":2}}"#,
            "is 0 or 1",
        );
        check_refused(
            r#"{"topic":"a","text":"","properties":{"response_topic":"+"}}"#,
            "response_topic is not a topic name",
        );
        let long = "x".repeat(70_000);
        check_refused(
            &format!(r#"{{"topic":"a","text":"","properties":{{"user":[["k","{long}"]]}}}}"#),
            "more than 65535 bytes",
        );
    }
}
