//! `/topic-metrics`: figures of the messages that match filters of the operator's choice.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use thrum_broker::TOPIC_METRICS_MAX;
use utoipa::ToSchema;

use super::entrance::Sender;
use super::openapi::{Asked, Audited, Conflict, NotFound};
use super::request::{Body, NoParameters, Parameters};
use super::topics::rounded;
use super::{ApiState, Problem};
use crate::audit::Change;
use crate::timestamp::timestamp;

/// Figures of the messages that match a filter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TopicMetric {
    /// The filter.
    pub filter: String,
    /// When counting began: when the filter was added, or the broker started.
    pub since: String,
    /// Messages that were published, by quality of service: 0, 1 and 2.
    pub received_by_qos: [u64; 3],
    /// Messages that were published.
    pub messages_received: u64,
    /// Bytes of their payloads.
    pub bytes_received: u64,
    /// Messages that sessions took: sent, or queued.
    pub messages_delivered: u64,
    /// Bytes of their payloads.
    pub bytes_delivered: u64,
    /// Messages that sessions did not get.
    pub messages_dropped: u64,
    /// Messages published in a second, of the last seconds.
    pub received_per_second: f64,
    /// Messages that sessions took in a second, of the last seconds.
    pub delivered_per_second: f64,
}

/// All filters with figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TopicMetricList {
    /// In the order of the filters.
    pub topic_metrics: Vec<TopicMetric>,
    /// How many filters there may be.
    pub most: usize,
}

/// A filter whose messages are to be counted.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTopicMetric {
    /// A topic filter, without a shared group.
    pub filter: String,
}

/// The filter whose messages are no longer counted.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveParameters {
    /// The filter.
    filter: String,
}

impl From<thrum_broker::TopicMetric> for TopicMetric {
    fn from(metric: thrum_broker::TopicMetric) -> Self {
        let figures = metric.figures;
        Self {
            filter: figures.filter.into(),
            since: timestamp(metric.since),
            received_by_qos: figures.received,
            messages_received: figures.received.iter().sum(),
            bytes_received: figures.received_bytes,
            messages_delivered: figures.delivered,
            bytes_delivered: figures.delivered_bytes,
            messages_dropped: figures.dropped,
            received_per_second: rounded(figures.received_per_second),
            delivered_per_second: rounded(figures.delivered_per_second),
        }
    }
}

/// Lists the filters whose messages are counted, with their figures.
#[utoipa::path(
    get,
    path = "/topic-metrics",
    operation_id = "list_topic_metrics",
    tag = "live",
    responses((status = 200, body = TopicMetricList)),
)]
pub(super) async fn list(
    State(api): State<ApiState>,
    Parameters(NoParameters {}): Parameters<NoParameters>,
) -> Json<TopicMetricList> {
    let metrics = api.queries.topic_metrics().into_iter();
    Json(TopicMetricList {
        topic_metrics: metrics.map(TopicMetric::from).collect(),
        most: TOPIC_METRICS_MAX,
    })
}

/// Counts the messages that match a filter, from now on and after restarts.
#[utoipa::path(
    post,
    path = "/topic-metrics",
    operation_id = "add_topic_metric",
    tag = "live",
    request_body = NewTopicMetric,
    responses((status = 201, body = TopicMetric), Conflict, Asked, Audited),
)]
pub(super) async fn add(
    State(api): State<ApiState>,
    sender: Sender,
    Body(NewTopicMetric { filter }): Body<NewTopicMetric>,
) -> Result<(StatusCode, Json<TopicMetric>), Problem> {
    let change = Change::new("topic_metric.add", &filter);
    let wanted = filter.clone();
    let asked = api.clone();
    let added = api.audited(&sender, change, async move {
        let name = filter.clone();
        let query = move |queries: &thrum_broker::Queries| queries.add_topic_metric(&name);
        if asked.query(query).await? {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::CONFLICT,
            "counted already",
            format!("the messages of {filter:?} are counted already"),
            "read their figures with GET /api/v1/topic-metrics",
        ))
    });
    added.await?;
    let found = one(&api, &wanted).ok_or_else(|| none(&wanted))?;
    Ok((StatusCode::CREATED, Json(found)))
}

/// Counts the messages of a filter no longer.
#[utoipa::path(
    delete,
    path = "/topic-metrics",
    operation_id = "remove_topic_metric",
    tag = "live",
    params(RemoveParameters),
    responses((status = 204), NotFound, Asked, Audited),
)]
pub(super) async fn remove(
    State(api): State<ApiState>,
    sender: Sender,
    Parameters(RemoveParameters { filter }): Parameters<RemoveParameters>,
) -> Result<StatusCode, Problem> {
    let before = one(&api, &filter);
    let change = Change::new("topic_metric.remove", &filter).before(json!(before));
    let asked = api.clone();
    let removed = api.audited(&sender, change, async move {
        let name = filter.clone();
        let query = move |queries: &thrum_broker::Queries| queries.remove_topic_metric(&name);
        if asked.query(query).await? {
            Ok(())
        } else {
            Err(none(&filter))
        }
    });
    removed.await?;
    Ok(StatusCode::NO_CONTENT)
}

fn one(api: &ApiState, filter: &str) -> Option<TopicMetric> {
    let mut metrics = api.queries.topic_metrics().into_iter();
    let found = metrics.find(|one| *one.figures.filter == *filter)?;
    Some(found.into())
}

/// The messages of a filter are not counted.
fn none(filter: &str) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "no such topic metric",
        format!("the messages of {filter:?} are not counted"),
        "list the filters with GET /api/v1/topic-metrics",
    )
}
