//! Extractors of the parts of a request; an unreadable part is a [`Problem`].

use std::fmt::Display;
use std::str::FromStr;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
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
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct FilterParameters {
    pub(super) filter: Option<String>,
    pub(super) limit: Option<usize>,
    pub(super) cursor: Option<String>,
}

/// The client identifier in the path.
#[derive(Debug)]
pub(super) struct ClientId(pub(super) String);

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
        match Json::from_request(request, state).await {
            Ok(Json(body)) => Ok(Self(body)),
            Err(JsonRejection::BytesRejection(error)) => Err(Problem::new(
                error.status(),
                "body not read",
                error.body_text(),
                "send at most 1 MiB, the payload written as base64 among it",
            )),
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

/// Parameters of a page.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageParameters {
    pub(super) limit: Option<usize>,
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
