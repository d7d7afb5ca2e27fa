//! The routes below `/api/v1`, and their JSON.
//!
//! The router does not depend on the socket.

mod clients;
mod metrics;
mod problem;
mod publish;
mod request;
mod retained;
mod status;
mod subscriptions;

use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use thrum_broker::{Queries, QueryError};

pub use clients::{Client, ClientDetail, ClientPage, Connection, Dropped, Kicked, Queue, Will};
pub use metrics::{CommitTime, Metrics, Storage};
pub use problem::{NO_CLIENT, Problem};
pub use publish::{Message, Outcome, Published};
pub use retained::{Publisher, Retained, RetainedPage};
pub use status::{Connections, Listener, Memory, Status};
pub use subscriptions::{Subscription, SubscriptionPage};

/// The beginning of the path of every route.
pub const PREFIX: &str = "/api/v1";

/// Bytes of the body of a request: a message with a payload, written as base64.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// A request without an answer is given up after this time, also if its body is incomplete.
const REQUEST_TIME: Duration = Duration::from_secs(15);
/// Time of the broker for an answer: less, so that the error names the workers that did not answer.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// Rows of a page without `limit`.
const ROWS: usize = 100;

/// All routes, answered by a broker.
pub fn router(queries: Queries) -> Router {
    let routes = Router::new()
        .route("/clients", get(clients::list))
        .route("/clients/{id}", get(clients::show).delete(clients::kick))
        .route("/clients/{id}/subscriptions", get(subscriptions::of_client))
        .route("/subscriptions", get(subscriptions::list))
        .route("/retained", get(retained::list))
        .route("/publish", post(publish::publish))
        .route("/status", get(status::show))
        .route("/metrics", get(metrics::show))
        .with_state(queries.with_timeout(ANSWER_TIME));
    Router::new()
        .nest(PREFIX, routes)
        .fallback(|request: Request| async move { problem::no_route(&request) })
        .method_not_allowed_fallback(|request: Request| async move { problem::no_method(&request) })
        .layer(middleware::from_fn(in_time))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
}

async fn in_time(request: Request, next: Next) -> Response {
    let answered = tokio::time::timeout(REQUEST_TIME, next.run(request)).await;
    answered.unwrap_or_else(|_| {
        let seconds = REQUEST_TIME.as_secs();
        Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "request took too long",
            format!("the request was not read and answered within {seconds} s"),
            "send the whole body at once, or ask again later",
        )
        .into_response()
    })
}

/// Asks the broker in another thread, so that the thread of the socket does not wait.
async fn ask<T: Send + 'static>(
    queries: Queries,
    question: impl FnOnce(&Queries) -> Result<T, QueryError> + Send + 'static,
) -> Result<T, Problem> {
    let asked = tokio::task::spawn_blocking(move || question(&queries)).await;
    asked
        .unwrap_or(Err(QueryError::Stopped))
        .map_err(Problem::from)
}
