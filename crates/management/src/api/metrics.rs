//! `/metrics`: every counter and histogram of the broker, as JSON below `/api/v1`, and as
//! Prometheus and `OpenMetrics` read them at the top.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use thrum_broker::StorageFigures;
use utoipa::ToSchema;

use super::ApiState;
use crate::metrics::{Format, Measured};

/// Counters of the broker since its start.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Metrics {
    /// Counters and gauges by their names below `$SYS/broker/`.
    pub counters: BTreeMap<String, u64>,
    /// Requests to backends of authentication and their answers, by their names below
    /// `$SYS/broker/`.
    pub backends: BTreeMap<String, u64>,
    /// The storage; null of a broker that keeps everything in memory.
    pub storage: Option<Storage>,
}

/// The work of the storage.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Storage {
    /// `healthy`, `full` or `failing`.
    pub health: String,
    /// Counters by their names below `$SYS/broker/`.
    pub counters: BTreeMap<String, u64>,
    /// Commits by their time.
    pub commit_times: Vec<CommitTime>,
    /// Sum of their times in microseconds.
    pub commit_micros: u64,
}

/// A class of commits by their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommitTime {
    /// Upper bound of the class, exclusive; null for the last class.
    pub micros_below: Option<u64>,
    /// Commits of the class.
    pub commits: u64,
}

/// Shows every counter of the broker since its start.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "show_metrics",
    tag = "status",
    responses((status = 200, body = Metrics)),
)]
pub(super) async fn show(State(api): State<ApiState>) -> Json<Metrics> {
    let figures = api.queries.figures();
    Json(Metrics {
        counters: figures.counters.into_iter().collect(),
        backends: figures.backends.into_iter().collect(),
        storage: figures.storage.map(Storage::from),
    })
}

/// All metrics in the format that the `Accept` header asks for.
pub(super) async fn scrape(State(api): State<ApiState>, headers: HeaderMap) -> impl IntoResponse {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    let format = Format::from_accept(accept);
    let measured = Measured {
        queries: api.queries.clone(),
        alarms: api.managed.alarms(),
        security: api.security,
        program: api.managed.program.clone(),
    };
    let body = measured.exposition(format);
    ([(CONTENT_TYPE, format.content_type())], body)
}

impl From<StorageFigures> for Storage {
    fn from(figures: StorageFigures) -> Self {
        let counters = figures.counters.into_iter();
        let times = figures.commit_times.into_iter();
        Self {
            health: figures.health.to_owned(),
            counters: counters
                .map(|(name, count)| (name.to_owned(), count))
                .collect(),
            commit_times: times
                .map(|class| CommitTime {
                    micros_below: class.micros_below,
                    commits: class.count,
                })
                .collect(),
            commit_micros: figures.commit_micros,
        }
    }
}
