//! `/publish`: a message of the operator.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use thrum_broker::{OperatorMessage, PublishOutcome};
use thrum_codec::QoS;

use super::request::Body;
use super::{ApiState, Problem};

/// A message to publish.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Message {
    /// Topic name, with the mount point in front.
    pub topic: String,
    /// The payload as text.
    pub payload: Option<String>,
    /// The payload as base64, instead of text.
    pub payload_base64: Option<String>,
    /// Quality of service.
    pub qos: u8,
    /// It becomes the retained message of its topic; an empty payload removes that.
    pub retain: bool,
    /// Seconds after which it is no longer delivered.
    pub expiry_secs: Option<u32>,
}

/// The outcome of a message.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Published {
    /// Whether it was delivered.
    pub outcome: Outcome,
    /// It is the retained message of its topic, or has removed it.
    pub retained: bool,
}

/// Whether a message was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// To at least one subscriber, or to the worker of one.
    Delivered,
    /// No client has subscribed to its topic.
    NoSubscribers,
}

pub(super) async fn publish(
    State(api): State<ApiState>,
    Body(message): Body<Message>,
) -> Result<Json<Published>, Problem> {
    let message = message.read()?;
    let published = api.query(move |queries| queries.publish(&message)).await?;
    let outcome = match published.outcome {
        PublishOutcome::Delivered => Outcome::Delivered,
        PublishOutcome::NoSubscribers => Outcome::NoSubscribers,
        PublishOutcome::Refused(why) => {
            return Err(Problem::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "message refused",
                why,
                "free space, or raise the limit",
            ));
        }
    };
    Ok(Json(Published {
        outcome,
        retained: published.is_retained,
    }))
}

impl Message {
    /// Checks its fields.
    fn read(self) -> Result<OperatorMessage, Problem> {
        let payload = match (self.payload, self.payload_base64) {
            (Some(_), Some(_)) => {
                let what = "a message has payload or payload_base64, not both";
                return Err(Problem::bad_request(what));
            }
            (text, None) => text.unwrap_or_default().into_bytes(),
            (None, Some(text)) => STANDARD.decode(text).map_err(|error| {
                Problem::bad_request(format!("payload_base64 is no base64: {error}"))
            })?,
        };
        let qos = match self.qos {
            0 => QoS::AtMostOnce,
            1 => QoS::AtLeastOnce,
            2 => QoS::ExactlyOnce,
            other => {
                let what = format!("qos is 0, 1 or 2, and not {other}");
                return Err(Problem::bad_request(what));
            }
        };
        Ok(OperatorMessage {
            topic: self.topic,
            payload,
            qos,
            retain: self.retain,
            expiry_secs: self.expiry_secs,
        })
    }
}
