//! `/clients/{id}/queue`: the messages that the broker holds for one client.

use axum::Json;
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use thrum_broker::{DeliveryStage, HeldContent, HeldQuery, HeldRow};
use utoipa::ToSchema;

use super::entrance::Sender;
use super::openapi::{Asked, NotFound};
use super::request::{ClientId, Parameters, page};
use super::{ApiState, Problem};
use crate::login::{Refusal, Scope};
use crate::timestamp::timestamp;

/// Bytes of a payload that are shown; a longer one is cut.
const PAYLOAD_BYTES_MAX: usize = 64 * 1024;

/// A message that the broker holds for a client.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HeldMessage {
    /// `queued`, `awaits_puback`, `awaits_pubrec` or `awaits_pubcomp`.
    pub stage: String,
    /// Packet identifier; null if it was not sent.
    pub packet_id: Option<u16>,
    /// The message; null if the broker keeps no copy, because it will not send it again.
    pub message: Option<HeldContents>,
}

/// A message and its delivery.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HeldContents {
    /// Topic, with the mount point in front.
    pub topic: String,
    /// Quality of service of the delivery.
    #[schema(maximum = 2)]
    pub qos: u8,
    /// Retain flag of the delivery.
    pub retain: bool,
    /// When it was queued, or sent if it was not queued, in whole seconds.
    #[schema(format = DateTime)]
    pub since: String,
    /// Seconds since then.
    pub age_secs: u64,
    /// Time of expiry; null if it does not expire.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// The shared filter that the client was chosen for, with `$share/GROUP/`; null if there is
    /// none.
    pub group: Option<String>,
    /// Bytes of the payload.
    pub payload_bytes: u64,
    /// The payload as base64, its first 64 KiB; null without `payload=true`.
    pub payload_base64: Option<String>,
}

/// A page of messages: those in flight, then the queue in its order.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HeldPage {
    /// The messages.
    pub messages: Vec<HeldMessage>,
    /// The `cursor` of the next page; null on the last one, and behind 10,000 messages.
    pub next: Option<String>,
}

/// Parameters of a page.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct HeldParameters {
    /// Show payloads, which the caller must be allowed to read.
    pub(super) payload: bool,
    /// Rows of the page; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// Lists the messages that the broker holds for a client: those in flight, then its queue.
///
/// Payloads need the scope `messages:read` as well.
#[utoipa::path(
    get,
    path = "/clients/{id}/queue",
    operation_id = "list_client_queue",
    tag = "clients",
    params(ClientId, HeldParameters),
    responses((status = 200, body = HeldPage), NotFound, Asked),
)]
pub(super) async fn list(
    State(api): State<ApiState>,
    sender: Sender,
    ClientId(client_id): ClientId,
    Parameters(parameters): Parameters<HeldParameters>,
) -> Result<Json<HeldPage>, Problem> {
    let (limit, cursor) = page(parameters.limit, parameters.cursor.as_deref())?;
    if parameters.payload && !sender.caller.may(Scope::MessagesRead) {
        return Err(Refusal::NoScope(Scope::MessagesRead).into());
    }
    let query = HeldQuery {
        client_id: client_id.clone(),
        limit,
        cursor,
    };
    let found = api.query(move |queries| queries.held(&query)).await?;
    let found = found.ok_or_else(|| Problem::no_client(&client_id))?;
    let rows = found.rows.into_iter();
    let messages = rows.map(|row| HeldMessage::new(&row, parameters.payload));
    Ok(Json(HeldPage {
        messages: messages.collect(),
        next: found.next.map(|next| next.to_string()),
    }))
}

impl HeldMessage {
    fn new(row: &HeldRow, shows_payload: bool) -> Self {
        let stage = match row.stage {
            DeliveryStage::Queued => "queued",
            DeliveryStage::AwaitsPubAck => "awaits_puback",
            DeliveryStage::AwaitsPubRec => "awaits_pubrec",
            DeliveryStage::AwaitsPubComp => "awaits_pubcomp",
        };
        let message = row.message.as_ref();
        Self {
            stage: stage.to_owned(),
            packet_id: row.packet_id,
            message: message.map(|message| HeldContents::new(message, shows_payload)),
        }
    }
}

impl HeldContents {
    fn new(content: &HeldContent, shows_payload: bool) -> Self {
        let payload = content.payload();
        let shown = &payload[..payload.len().min(PAYLOAD_BYTES_MAX)];
        Self {
            topic: content.topic().to_owned(),
            qos: content.qos.as_u8(),
            retain: content.retain,
            since: timestamp(content.since),
            age_secs: content.age_secs,
            expires_at: content.expires_at.map(timestamp),
            group: content.group.clone(),
            payload_bytes: payload.len() as u64,
            payload_base64: shows_payload.then(|| STANDARD.encode(shown)),
        }
    }
}
