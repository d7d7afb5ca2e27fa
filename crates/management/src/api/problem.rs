//! Errors of requests as problem details (RFC 9457).

use axum::Json;
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use thrum_broker::QueryError;
use utoipa::ToSchema;

use crate::in_thread::Unfinished;

/// Media type of a problem.
pub(super) const PROBLEM_TYPE: &str = "application/problem+json";

/// What a program has to send; browsers show no dialog for it.
const CHALLENGE: HeaderValue = HeaderValue::from_static("Bearer realm=\"thrum\"");

/// Title of the problem that no session has the client identifier.
const NO_CLIENT: &str = "no such client";

/// What to do when the disk is full.
pub(super) const NO_ROOM_REMEDY: &str =
    "free space in the data directory, and ask again; nothing was changed";

/// An error with its cause and its remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Kind of the error.
    pub title: String,
    /// Status code of the response.
    pub status: u16,
    /// Cause of this error.
    pub detail: String,
    /// Remedy.
    pub remedy: String,
    /// Seconds after which the same request may succeed; also in the header `Retry-After`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_secs: Option<u64>,
}

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        title: &str,
        detail: impl Into<String>,
        remedy: &str,
    ) -> Self {
        Self {
            title: title.to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            remedy: remedy.to_owned(),
            retry_after_secs: None,
        }
    }

    /// A request that is invalid.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "bad request",
            detail,
            "correct the request; GET /api/v1/openapi.json describes each route",
        )
    }

    /// No session has that client identifier.
    pub(super) fn no_client(client_id: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            NO_CLIENT,
            format!("no session has the client identifier {client_id:?}"),
            "list the clients with GET /api/v1/clients",
        )
    }

    /// No session has that client identifier, and nothing is known of a client that had it.
    pub(super) fn no_events(client_id: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            NO_CLIENT,
            format!(
                "no session has the client identifier {client_id:?}, and no event of such a client \
                 is remembered"
            ),
            "list the clients with GET /api/v1/clients; node.timeline_bytes is the memory of \
             timelines, which begin with the broker",
        )
    }
}

/// No route has that path.
pub(super) fn no_route(request: &Request) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "no such route",
        format!("there is no route {}", request.uri().path()),
        "GET /api/v1/openapi.json lists the routes",
    )
}

/// The route has no such method.
pub(super) fn no_method(request: &Request) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method not allowed",
        format!(
            "{} does not take {}",
            request.uri().path(),
            request.method()
        ),
        "GET reads, POST adds or publishes, PUT and PATCH change, DELETE removes or disconnects",
    )
}

impl From<QueryError> for Problem {
    fn from(error: QueryError) -> Self {
        let (status, title, remedy) = match &error {
            QueryError::Busy => (
                StatusCode::TOO_MANY_REQUESTS,
                "too many questions",
                "ask again when others are answered",
            ),
            QueryError::TooManyTraces => (
                StatusCode::TOO_MANY_REQUESTS,
                "too many traces",
                "ask again when one of them has ended",
            ),
            QueryError::TooManyTopicMetrics => (
                StatusCode::CONFLICT,
                "too many topic metrics",
                "remove one with DELETE /api/v1/topic-metrics?filter=FILTER",
            ),
            QueryError::NotSaved(_) => (
                StatusCode::INSUFFICIENT_STORAGE,
                "not written down",
                "make room in the data directory, or correct its owner and mode, and ask again",
            ),
            QueryError::TimedOut { .. } => (
                StatusCode::GATEWAY_TIMEOUT,
                "no answer in time",
                "ask again later; GET /api/v1/metrics shows the load of the broker",
            ),
            QueryError::Stopped => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the broker is stopping",
                "start it again",
            ),
            QueryError::Failed(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "not done",
                "mend what the error names; nothing was changed",
            ),
            QueryError::Cursor(_) | QueryError::Invalid(_) => {
                return Self::bad_request(error.to_string());
            }
            _ => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "no answer",
                "read the log of the broker",
            ),
        };
        Self::new(status, title, error.to_string(), remedy)
    }
}

impl From<Unfinished> for Problem {
    fn from(unfinished: Unfinished) -> Self {
        let (status, title, remedy) = match unfinished {
            Unfinished::Stopped => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the broker is stopping",
                "start it again",
            ),
            Unfinished::Panicked => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "a defect of the broker",
                "look whether the change was made, and report the panic in the log of the broker",
            ),
        };
        Self::new(status, title, unfinished.to_string(), remedy)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after = self.retry_after_secs.map(HeaderValue::from);
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_TYPE));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, CHALLENGE);
        }
        if let Some(retry_after) = retry_after {
            headers.insert(RETRY_AFTER, retry_after);
        }
        response
    }
}
