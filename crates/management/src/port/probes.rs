//! Probes of orchestrators. They need no proof of who asks, and tell nothing but whether the broker
//! works.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use thrum_broker::{Queries, QueryError};
use tokio::sync::Semaphore;

/// Time of the workers to answer a probe; orchestrators wait about as long.
const PROBE_TIME: Duration = Duration::from_secs(2);
/// Probes that wait for workers at a time; more are answered that the broker is busy.
const PROBES_MAX: usize = 4;

/// Health of a storage that takes everything.
const HEALTHY: &str = "healthy";

const TEXT: &str = "text/plain; charset=utf-8";

#[derive(Clone, Debug)]
struct Probed {
    queries: Queries,
    permits: Arc<Semaphore>,
}

/// The routes of the probes.
pub(super) fn router(queries: Queries) -> Router {
    let probed = Probed {
        queries: queries.with_timeout(PROBE_TIME),
        permits: Arc::new(Semaphore::new(PROBES_MAX)),
    };
    Router::new()
        .route("/livez", get(|| async { text(StatusCode::OK, "alive\n") }))
        .route("/readyz", get(ready))
        .with_state(probed)
}

/// Whether clients can be served: all workers answer, and what is acknowledged can be stored.
async fn ready(State(probed): State<Probed>) -> Response {
    let Ok(permit) = probed.permits.try_acquire_owned() else {
        return text(StatusCode::SERVICE_UNAVAILABLE, "busy with other probes\n");
    };
    let status = tokio::task::spawn_blocking(move || {
        let status = probed.queries.status();
        drop(permit);
        status
    });
    match status.await.unwrap_or(Err(QueryError::Stopped)) {
        Ok(status) => match status.storage {
            Some(health) if health != HEALTHY => {
                let why = format!("the storage is {health}\n");
                text(StatusCode::SERVICE_UNAVAILABLE, why)
            }
            _ => text(StatusCode::OK, "ready\n"),
        },
        Err(error) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
    }
}

fn text(status: StatusCode, text: impl Into<String>) -> Response {
    let head = [(CONTENT_TYPE, TEXT), (CACHE_CONTROL, "no-store")];
    (status, head, text.into()).into_response()
}
