//! Extractors of the parts of a request; an unreadable part is a [`Problem`].

use std::fmt::Display;
use std::str::FromStr;

use axum::body::{self, Bytes};
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::{Extension, Json};
use hyper::body::Body as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use thrum_access::Secret;
use thrum_broker::Cursor;
use zeroize::Zeroizing;

use super::{Problem, ROWS};

/// Parameters of the query.
#[derive(Debug)]
pub(super) struct Parameters<T>(pub(super) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let query = Query::try_from_uri(&parts.uri);
        query
            .map(|Query(parameters)| Self(parameters))
            .map_err(|error| Problem::bad_request(with_cause(&error)))
    }
}

/// A route without parameters.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoParameters {}

/// Parameters of a page that a topic filter selects.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct FilterParameters {
    /// A topic filter; everything if absent.
    pub(super) filter: Option<String>,
    /// Rows of the page; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    pub(super) limit: Option<usize>,
    /// `next` of the page before.
    pub(super) cursor: Option<String>,
}

/// The client identifier in the path.
#[derive(Debug, utoipa::IntoParams)]
#[into_params(names("id"), parameter_in = Path)]
pub(super) struct ClientId(
    /// Client identifier.
    pub(super) String,
);

impl<S: Send + Sync> FromRequestParts<S> for ClientId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::from_request_parts(parts, state).await;
        path.map(|Path(client_id)| Self(client_id))
            .map_err(|error| Problem::bad_request(error.body_text()))
    }
}

/// The name or identifier in the path.
#[derive(Debug)]
pub(super) struct Named(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let ClientId(name) = ClientId::from_request_parts(parts, state).await?;
        Ok(Self(name))
    }
}

/// The identifier of a run and the name of its file, in the path.
#[derive(Debug)]
pub(super) struct FileOfRun {
    pub(super) id: String,
    pub(super) name: String,
}

impl<S: Send + Sync> FromRequestParts<S> for FileOfRun {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        path.map(|Path((id, name))| Self { id, name })
            .map_err(|error| Problem::bad_request(error.body_text()))
    }
}

/// A text of a body that is overwritten when it is dropped, and never printed.
#[derive(Debug)]
pub(super) struct SecretText(pub(super) Secret);

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Zeroizing::new(String::deserialize(from)?);
        Ok(Self(Secret::from(text.as_str())))
    }
}

/// A body of JSON.
#[derive(Debug)]
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        check_length(&request)?;
        let (parts, body) = request.into_parts();
        let limit = parts.extensions.get::<BodyLimit>().copied();
        let read = Request::from_parts(parts.clone(), body);
        let bytes = Bytes::from_request(read, state).await;
        let bytes = bytes.map_err(|error| match limit {
            Some(limit) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => limit.exceeded(None),
            _ => Problem::new(
                error.status(),
                "body not read",
                error.body_text(),
                "send it again, as a whole",
            ),
        })?;
        // Serde would take its values for the fields in their order.
        if is_array(&bytes) {
            return Err(Problem::bad_request("the body is an array, not an object"));
        }
        let request = Request::from_parts(parts, body::Body::from(bytes));
        match Json::from_request(request, state).await {
            Ok(Json(body)) => Ok(Self(body)),
            Err(JsonRejection::MissingJsonContentType(_)) => Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "no JSON",
                "the body has another type than JSON",
                "send it with Content-Type: application/json",
            )),
            Err(error) => Err(Problem::bad_request(error.body_text())),
        }
    }
}

/// Most bytes of the body of a request. Axum knows it, and does not tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyLimit(pub(super) usize);

impl BodyLimit {
    /// For these handlers; a limit within counts instead of one around it.
    pub(super) fn layer(self) -> (DefaultBodyLimit, Extension<Self>) {
        (DefaultBodyLimit::max(self.0), Extension(self))
    }

    /// A body is longer; its length may be unknown, because it comes in chunks.
    fn exceeded(self, len: Option<u64>) -> Problem {
        let most = self.0;
        let has = len.map_or_else(
            || format!("more than {most} bytes"),
            |len| format!("{len} bytes"),
        );
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body not read",
            format!("the body has {has}, and this route takes at most {most}"),
            "send a shorter one",
        )
    }
}

/// Refuses a body whose length is known to be too large, before any of it is read: a client that
/// waits for `100 Continue` does not send it.
pub(super) fn check_length(request: &Request) -> Result<(), Problem> {
    let len = request.body().size_hint().lower();
    match request.extensions().get::<BodyLimit>() {
        Some(limit) if len > limit.0 as u64 => Err(limit.exceeded(Some(len))),
        _ => Ok(()),
    }
}

/// Whether a text is an array, if it is JSON.
pub(super) fn is_array(text: &[u8]) -> bool {
    text.trim_ascii_start().starts_with(b"[")
}

/// Parameters of a page.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct PageParameters {
    /// Rows of the page; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    pub(super) limit: Option<usize>,
    /// `next` of the page before.
    pub(super) cursor: Option<String>,
}

/// Returns the number of rows of a page, and its start.
pub(super) fn page(
    limit: Option<usize>,
    cursor: Option<&str>,
) -> Result<(usize, Option<Cursor>), Problem> {
    Ok((
        rows(limit)?,
        cursor.map(|text| parsed("cursor", text)).transpose()?,
    ))
}

/// Returns the number of rows of a page.
pub(super) fn rows(limit: Option<usize>) -> Result<usize, Problem> {
    let limit = limit.unwrap_or(ROWS);
    if (1..=thrum_broker::ROWS_MAX).contains(&limit) {
        return Ok(limit);
    }
    let most = thrum_broker::ROWS_MAX;
    let what = format!("limit is a number from 1 to {most}, not {limit}");
    Err(Problem::bad_request(what))
}

/// The value of a parameter.
pub(super) fn parsed<T: FromStr<Err: Display>>(name: &str, text: &str) -> Result<T, Problem> {
    let parsed = text.parse();
    parsed.map_err(|error| Problem::bad_request(format!("{name}: {error}")))
}

fn with_cause(error: &dyn std::error::Error) -> String {
    let cause = error.source().map(ToString::to_string);
    cause.unwrap_or_else(|| error.to_string())
}
