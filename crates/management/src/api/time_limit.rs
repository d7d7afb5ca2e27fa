//! The time of a request, which a handler whose work has limits of its own may lift.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::{FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tokio::time::sleep;

use super::Problem;

/// A request without an answer is given up after this time, also if its body is incomplete.
pub(super) const REQUEST_TIME: Duration = Duration::from_secs(15);

/// The time limit of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct TimeLimit(Arc<AtomicBool>);

impl TimeLimit {
    /// The handler ends by itself: each of its steps has a limit.
    pub(super) fn lift(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_lifted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TimeLimit {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        // Only a mistake in the router leaves it out; the limit stays then.
        let limit = parts.extensions.get::<Self>().cloned();
        Ok(limit.unwrap_or_default())
    }
}

/// Gives up a request that takes too long.
pub(super) async fn in_time(mut request: Request, next: Next) -> Response {
    let limit = TimeLimit::default();
    request.extensions_mut().insert(limit.clone());
    let mut answer = pin!(next.run(request));
    tokio::select! {
        answer = answer.as_mut() => return answer,
        () = sleep(REQUEST_TIME) => {}
    }
    if limit.is_lifted() {
        return answer.await;
    }
    let seconds = REQUEST_TIME.as_secs();
    Problem::new(
        StatusCode::REQUEST_TIMEOUT,
        "request took too long",
        format!("the request was not read and answered within {seconds} s"),
        "send the whole body at once, or ask again later; a change that has begun goes on, and its \
         end is in the audit log",
    )
    .into_response()
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use axum::{Router, middleware};
    use tower::ServiceExt as _;

    use super::*;

    async fn status(path: &str) -> StatusCode {
        let long = Duration::from_hours(1);
        let router = Router::new()
            .route("/limited", get(move || sleep(long)))
            .route(
                "/lifted",
                get(move |limit: TimeLimit| async move {
                    limit.lift();
                    sleep(long).await;
                }),
            )
            .layer(middleware::from_fn(in_time));
        let request = Request::get(path).body(axum::body::Body::empty()).unwrap();
        router.oneshot(request).await.unwrap().status()
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_given_up_unless_its_handler_lifts_the_limit() {
        assert_eq!(status("/limited").await, StatusCode::REQUEST_TIMEOUT);
        assert_eq!(status("/lifted").await, StatusCode::OK);
    }
}
