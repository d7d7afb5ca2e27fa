//! `/retained`: retained messages, without their payloads, and one of them with it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use thrum_broker::{RetainedQuery, RetainedRow};
use utoipa::ToSchema;

use super::openapi::{Asked, NotFound};
use super::request::{FilterParameters, Parameters, page};
use super::retained_line::RetainedLine;
use super::{ApiState, Problem};
use crate::timestamp::timestamp;

/// A retained message.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Retained {
    /// Topic.
    pub topic: String,
    /// Quality of service as published.
    #[schema(maximum = 2)]
    pub qos: u8,
    /// Bytes of the payload.
    pub payload_bytes: u64,
    /// Time of publication.
    #[schema(format = DateTime)]
    pub published_at: String,
    /// Time of expiry; null if it does not expire.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Its publisher; null without `acl.check_retained_source`.
    pub publisher: Option<Publisher>,
    /// It is not sent to new subscribers: its publisher may no longer publish it.
    pub withheld: bool,
}

/// The publisher of a retained message.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Publisher {
    /// Client identifier.
    pub client_id: String,
    /// User; null if no user was verified.
    pub user: Option<String>,
    /// Address; null if it is not known.
    pub address: Option<String>,
}

/// A page of retained messages, in the order of the store.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RetainedPage {
    /// The messages; fewer than `limit`, or none, if the filter matches few of many topics.
    pub messages: Vec<Retained>,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
}

/// Lists retained messages without their payloads, in the order of the store.
#[utoipa::path(
    get,
    path = "/retained",
    operation_id = "list_retained",
    tag = "messages",
    params(FilterParameters),
    responses((status = 200, body = RetainedPage), Asked),
)]
pub(super) async fn list(
    State(api): State<ApiState>,
    Parameters(parameters): Parameters<FilterParameters>,
) -> Result<Json<RetainedPage>, Problem> {
    let (limit, cursor) = page(parameters.limit, parameters.cursor.as_deref())?;
    let query = RetainedQuery {
        filter: parameters.filter.unwrap_or_else(|| "#".to_owned()),
        limit,
        cursor,
    };
    let page = api.query(move |queries| queries.retained(&query)).await?;
    Ok(Json(RetainedPage {
        messages: page.rows.into_iter().map(Retained::from).collect(),
        next: page.next.map(|next| next.to_string()),
    }))
}

/// A retained message with its payload and its properties.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RetainedDetail {
    /// Its row in a listing.
    pub message: Retained,
    /// Its line in an export.
    pub content: RetainedLine,
}

/// Parameters of one message.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct TopicParameters {
    /// Topic, with the mount point in front.
    topic: String,
}

/// Shows the retained message of a topic with its payload and its properties.
#[utoipa::path(
    get,
    path = "/retained/message",
    operation_id = "show_retained",
    tag = "messages",
    params(TopicParameters),
    responses((status = 200, body = RetainedDetail), NotFound, Asked),
)]
pub(super) async fn show(
    State(api): State<ApiState>,
    Parameters(TopicParameters { topic }): Parameters<TopicParameters>,
) -> Result<Json<RetainedDetail>, Problem> {
    let name = topic.clone();
    let found = api.query(move |queries| queries.retained_message(&name));
    let row = found.await?.ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "no retained message",
            format!("the topic {topic:?} has no retained message"),
            "list them with GET /api/v1/retained",
        )
    })?;
    Ok(Json(RetainedDetail {
        content: RetainedLine::new(&row),
        message: row.into(),
    }))
}

impl From<RetainedRow> for Retained {
    fn from(row: RetainedRow) -> Self {
        Self {
            topic: row.topic,
            qos: row.qos.as_u8(),
            payload_bytes: row.payload_bytes,
            published_at: timestamp(row.published_at),
            expires_at: row.expires_at.map(timestamp),
            publisher: row.publisher.map(|publisher| Publisher {
                client_id: publisher.client_id.into(),
                user: publisher.user.map(Into::into),
                address: publisher.address.map(|address| address.to_string()),
            }),
            withheld: row.is_withheld,
        }
    }
}
