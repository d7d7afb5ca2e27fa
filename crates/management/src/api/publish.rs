//! `/publish`: a message of the operator, or several of them.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::json;
use thrum_broker::{OperatorMessage, PublishOutcome};
use thrum_codec::QoS;
use utoipa::ToSchema;

use super::entrance::Sender;
use super::openapi::{Asked, Audited};
use super::request::Body;
use super::{ApiState, Problem};
use crate::audit::Change;

/// A message to publish.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Topic name, with the mount point in front.
    pub topic: String,
    /// The payload as text.
    #[serde(default)]
    pub payload: Option<String>,
    /// The payload as base64, instead of text.
    #[serde(default)]
    pub payload_base64: Option<String>,
    /// Quality of service.
    #[serde(default)]
    #[schema(maximum = 2)]
    pub qos: u8,
    /// It becomes the retained message of its topic; an empty payload removes that.
    #[serde(default)]
    pub retain: bool,
    /// Seconds after which it is no longer delivered.
    #[serde(default)]
    pub expiry_secs: Option<u32>,
}

/// The outcome of a message.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct Published {
    /// Whether it was delivered.
    pub outcome: Outcome,
    /// It is the retained message of its topic, or has removed it.
    pub retained: bool,
}

/// Whether a message was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// To at least one subscriber, or to the worker of one.
    Delivered,
    /// No client has subscribed to its topic.
    NoSubscribers,
}

/// Publishes a message.
#[utoipa::path(
    post,
    path = "/publish",
    operation_id = "publish_message",
    tag = "messages",
    request_body = Message,
    responses((status = 200, body = Published), Asked, Audited),
)]
pub(super) async fn publish(
    State(api): State<ApiState>,
    sender: Sender,
    Body(message): Body<Message>,
) -> Result<Json<Published>, Problem> {
    let message = message.read()?;
    let change = Change::new("message.publish", &message.topic);
    let change = change.after(json!({
        "qos": message.qos.as_u8(),
        "retain": message.retain,
        "payload_bytes": message.payload.len(),
    }));
    let make = send(api.clone(), message);
    Ok(Json(api.audited(&sender, change, make).await?))
}

async fn send(api: ApiState, message: OperatorMessage) -> Result<Published, Problem> {
    let published = api.query(move |queries| queries.publish(&message)).await?;
    match outcome(published) {
        Ok(published) => Ok(published),
        Err(why) => Err(Problem::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "message refused",
            why,
            "free space, or raise the limit",
        )),
    }
}

/// The outcome of a message, or why it was refused.
fn outcome(published: thrum_broker::Published) -> Result<Published, &'static str> {
    let outcome = match published.outcome {
        PublishOutcome::Delivered => Outcome::Delivered,
        PublishOutcome::NoSubscribers => Outcome::NoSubscribers,
        PublishOutcome::Refused(why) => return Err(why),
    };
    Ok(Published {
        outcome,
        retained: published.is_retained,
    })
}

/// Messages to publish in their order, at most 1,000.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// The messages.
    pub messages: Vec<Message>,
}

/// The outcomes of the messages of a batch.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PublishedBatch {
    /// One for each message, in their order.
    pub outcomes: Vec<BatchItem>,
    /// Messages that were refused.
    pub refused: usize,
}

/// The outcome of one message of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BatchItem {
    /// Whether it was delivered; null if it was refused.
    pub outcome: Option<Outcome>,
    /// It is the retained message of its topic, or has removed it.
    pub retained: bool,
    /// Why it was refused; null if it was not.
    pub refused: Option<String>,
}

/// Publishes several messages in their order; none of them if one is invalid.
#[utoipa::path(
    post,
    path = "/publish/batch",
    operation_id = "publish_batch",
    tag = "messages",
    request_body = Batch,
    responses((status = 200, body = PublishedBatch), Asked, Audited),
)]
pub(super) async fn batch(
    State(api): State<ApiState>,
    sender: Sender,
    Body(batch): Body<Batch>,
) -> Result<Json<PublishedBatch>, Problem> {
    let messages = batch.messages.into_iter().enumerate();
    let messages = messages.map(|(number, message)| {
        message.read().map_err(|problem| {
            let detail = format!("message {number}: {}", problem.detail);
            Problem { detail, ..problem }
        })
    });
    let messages: Vec<OperatorMessage> = messages.collect::<Result<_, _>>()?;
    let count = messages.len();
    let change = Change::new(
        "message.publish_batch",
        messages.first().map_or("", |one| &one.topic),
    );
    let change = change.after(json!({ "messages": count }));
    let asked = api.clone();
    let make = async move {
        let published = asked.query(move |queries| queries.publish_all(&messages));
        published.await
    };
    let published = api.audited(&sender, change, make).await?;
    let outcomes = published
        .into_iter()
        .map(|published| match outcome(published) {
            Ok(published) => BatchItem {
                outcome: Some(published.outcome),
                retained: published.retained,
                refused: None,
            },
            Err(why) => BatchItem {
                outcome: None,
                retained: false,
                refused: Some(why.to_owned()),
            },
        });
    let outcomes: Vec<_> = outcomes.collect();
    let refused = outcomes.iter().filter(|item| item.refused.is_some());
    Ok(Json(PublishedBatch {
        refused: refused.count(),
        outcomes,
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
