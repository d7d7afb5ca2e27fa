//! A retained message as a line of JSON, as `thrum retained export` writes it and
//! `thrum retained import` reads it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thrum_broker::{RetainedMessage, RetainedRow};
use thrum_codec::QoS;
use utoipa::ToSchema;

use crate::timestamp::timestamp;

/// A retained message.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetainedLine {
    /// Topic.
    pub topic: String,
    /// Quality of service.
    #[serde(default)]
    #[schema(maximum = 2)]
    pub qos: u8,
    /// The payload in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The payload if it is UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Time of publication; none is the time of the import.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub published_at: Option<String>,
    /// Time of expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Properties of MQTT 5.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<LineProperties>,
}

/// Properties of a retained message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LineProperties {
    /// 1: the payload is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_format_indicator: Option<u8>,
    /// Kind of the payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Topic for answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_topic: Option<String>,
    /// In base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_data: Option<String>,
    /// User properties.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub user: Vec<(String, String)>,
}

impl RetainedLine {
    pub(super) fn new(row: &RetainedRow) -> Self {
        let payload = row.payload();
        let properties = row.properties();
        let user = properties.user.iter();
        let correlation_data = properties.correlation_data;
        let properties = LineProperties {
            payload_format_indicator: properties.payload_format_indicator.map(u8::from),
            content_type: properties.content_type.map(str::to_owned),
            response_topic: properties.response_topic.map(str::to_owned),
            correlation_data: correlation_data.map(|bytes| STANDARD.encode(bytes)),
            user: user
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        };
        Self {
            topic: row.topic.clone(),
            qos: row.qos.as_u8(),
            payload: Some(STANDARD.encode(payload)),
            text: str::from_utf8(payload).ok().map(str::to_owned),
            published_at: Some(timestamp(row.published_at)),
            expires_at: row.expires_at.map(timestamp),
            properties: Some(properties).filter(|all| *all != LineProperties::default()),
        }
    }

    /// The message of a line.
    pub(super) fn read(self) -> Result<RetainedMessage, String> {
        let qos = match self.qos {
            0 => QoS::AtMostOnce,
            1 => QoS::AtLeastOnce,
            2 => QoS::ExactlyOnce,
            other => return Err(format!("qos is 0, 1 or 2, not {other}")),
        };
        let payload = self.payload.map(|text| decoded("payload", &text));
        let payload = match (payload.transpose()?, self.text) {
            (Some(payload), Some(text)) if payload != text.as_bytes() => {
                return Err("payload and text differ; remove the wrong one".to_owned());
            }
            (Some(payload), _) => payload,
            (None, Some(text)) => text.into_bytes(),
            (None, None) => return Err("a payload (base64) or a text is missing".to_owned()),
        };
        let properties = self.properties.unwrap_or_default();
        let payload_format_indicator = match properties.payload_format_indicator {
            None => None,
            Some(0) => Some(false),
            Some(1) => Some(true),
            Some(other) => {
                return Err(format!("payload_format_indicator is 0 or 1, not {other}"));
            }
        };
        let correlation_data = properties.correlation_data;
        let correlation_data = correlation_data.map(|text| decoded("correlation_data", &text));
        Ok(RetainedMessage {
            topic: self.topic,
            payload,
            qos,
            published_at: moment("published_at", self.published_at.as_deref())?,
            expires_at: moment("expires_at", self.expires_at.as_deref())?,
            payload_format_indicator,
            content_type: properties.content_type,
            response_topic: properties.response_topic,
            correlation_data: correlation_data.transpose()?,
            user_properties: properties.user,
        })
    }
}

fn decoded(name: &str, text: &str) -> Result<Vec<u8>, String> {
    let decoded = STANDARD.decode(text);
    decoded.map_err(|error| format!("{name} is no base64: {error}"))
}

/// Milliseconds of the Unix epoch.
fn moment(name: &str, text: Option<&str>) -> Result<Option<u64>, String> {
    let Some(text) = text else {
        return Ok(None);
    };
    let at: Timestamp = text
        .parse()
        .map_err(|error| format!("{name} is no time as 2026-11-22T09:12:03Z: {error}"))?;
    let millis = u64::try_from(at.as_millisecond());
    millis
        .map(Some)
        .map_err(|_| format!("{name} is before 1970"))
}
