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

/// Queries that wait for answers of workers, each in a thread; more requests wait for a permit.
pub(crate) const QUERIES_MAX: usize = 8;
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
        .with_state(ApiState::new(queries));
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

/// Sends the queries of requests to the broker.
#[derive(Clone, Debug)]
struct ApiState {
    queries: Queries,
    permits: Arc<Semaphore>,
}

impl ApiState {
    fn new(queries: Queries) -> Self {
        Self {
            queries: queries.with_timeout(ANSWER_TIME),
            permits: Arc::new(Semaphore::new(QUERIES_MAX)),
        }
    }

    /// Runs a query in another thread, so that the thread of the socket does not wait. If a request
    /// ends early, because its client disconnected or its time is over, a query that waits for a
    /// permit is not sent, and one that waits for answers is cancelled.
    async fn query<T: Send + 'static>(
        self,
        query: impl FnOnce(&Queries) -> Result<T, QueryError> + Send + 'static,
    ) -> Result<T, Problem> {
        // The semaphore is never closed.
        let permit = self.permits.acquire_owned().await;
        let cancel = CancelOnDrop(Cancellation::default());
        let queries = self.queries.with_cancellation(cancel.0.clone());
        let task = tokio::task::spawn_blocking(move || {
            let answer = query(&queries);
            drop(permit);
            answer
        });
        let answer = task.await.unwrap_or(Err(QueryError::Stopped));
        answer.map_err(Problem::from)
    }
}

/// Cancels a query when its request ends.
struct CancelOnDrop(Cancellation);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use thrum_broker::config::Workers;
    use thrum_broker::{Access, Broker, Config};
    use tokio::runtime::Runtime;
    use tokio::time::timeout;

    use super::*;

    /// Much longer than the broker takes for an answer.
    const LONG: Duration = Duration::from_secs(30);

    /// More answers than a broker gives before a request that has ended is noticed.
    const ANSWERS_MAX: u32 = 100_000;

    /// A broker without listeners, and the state of its interface.
    fn broker_and_api() -> (Broker, ApiState) {
        let mut config = Config::default();
        config.node.workers = Workers::Count(1);
        config.listeners.clear();
        let broker = Broker::start(config, Access::default()).expect("it needs no port");
        let api = ApiState::new(broker.queries());
        (broker, api)
    }

    fn runtime() -> Runtime {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build();
        runtime.expect("a runtime")
    }

    #[test]
    fn a_request_that_ends_while_it_waits_for_a_permit_sends_no_query() {
        let (broker, api) = broker_and_api();
        let is_sent = Arc::new(AtomicBool::new(false));
        runtime().block_on(async {
            let permits = Arc::clone(&api.permits);
            let all = u32::try_from(QUERIES_MAX).expect("a few");
            let taken = permits.acquire_many(all).await.expect("it is open");
            let sends = Arc::clone(&is_sent);
            let waits = api.clone().query(move |queries| {
                sends.store(true, Ordering::SeqCst);
                queries.status()
            });
            let ended = timeout(Duration::from_millis(50), waits).await;
            assert!(ended.is_err(), "it waits for a permit");
            drop(taken);
            // All permits are free again, and the other query is later than the one that has ended.
            let other = timeout(LONG, api.query(Queries::status)).await;
            assert!(matches!(other, Ok(Ok(_))), "{other:?}");
        });
        assert!(!is_sent.load(Ordering::SeqCst));
        broker.stop();
    }

    #[test]
    fn a_query_is_cancelled_when_its_request_ends() {
        let (broker, api) = broker_and_api();
        let (begins, begun) = mpsc::channel();
        let (ends, ended) = mpsc::channel();
        runtime().block_on(async {
            let request = api.query(move |queries| -> Result<(), QueryError> {
                begins.send(()).expect("the test listens");
                let mut answers = (0..ANSWERS_MAX).map(|_| queries.status());
                let error = answers.find_map(Result::err);
                ends.send(error.clone()).expect("the test listens");
                error.map_or(Ok(()), Err)
            });
            let request = tokio::spawn(request);
            begun.recv_timeout(LONG).expect("it is sent");
            request.abort();
            assert!(request.await.is_err_and(|error| error.is_cancelled()));
        });
        let error = ended.recv_timeout(LONG).expect("it is answered");
        assert_eq!(error, Some(QueryError::Cancelled));
        broker.stop();
    }
}
