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

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use thrum_broker::{Cancellation, Queries, QueryError};
use tokio::sync::Semaphore;

pub use clients::{Client, ClientDetail, ClientPage, Connection, Dropped, Kicked, Queue, Will};
pub use metrics::{CommitTime, Metrics, Storage};
pub use problem::{NO_CLIENT, Problem};
pub use publish::{Message, Outcome, Published};
pub use retained::{Publisher, Retained, RetainedPage};
pub use status::{Connections, Listener, Memory, Status};
pub use subscriptions::{Subscription, SubscriptionPage};

/// The beginning of the path of every route.
pub const PREFIX: &str = "/api/v1";

/// Questions that wait for answers of workers, each in a thread; more requests wait for a place.
pub(crate) const QUESTIONS_MAX: usize = 8;
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
        .with_state(Questions::new(queries));
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

/// Asks the broker for the requests.
#[derive(Clone, Debug)]
struct Questions {
    queries: Queries,
    places: Arc<Semaphore>,
}

impl Questions {
    fn new(queries: Queries) -> Self {
        Self {
            queries: queries.with_timeout(ANSWER_TIME),
            places: Arc::new(Semaphore::new(QUESTIONS_MAX)),
        }
    }

    /// Asks the broker in another thread, so that the thread of the socket does not wait. A request
    /// that ends early, since its client has gone or its time is over, asks nothing any more: a
    /// question that waits for a place is not asked, and one that waits for answers is cancelled.
    async fn ask<T: Send + 'static>(
        self,
        question: impl FnOnce(&Queries) -> Result<T, QueryError> + Send + 'static,
    ) -> Result<T, Problem> {
        // The semaphore is never closed.
        let place = self.places.acquire_owned().await;
        let cancel = CancelOnDrop(Cancellation::default());
        let queries = self.queries.with_cancellation(cancel.0.clone());
        let asked = tokio::task::spawn_blocking(move || {
            let answer = question(&queries);
            drop(place);
            answer
        });
        let answer = asked.await.unwrap_or(Err(QueryError::Stopped));
        answer.map_err(Problem::from)
    }
}

/// Cancels a question when its request ends.
struct CancelOnDrop(Cancellation);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
