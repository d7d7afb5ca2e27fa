//! `If-Match` and `If-None-Match` (RFC 9110): a change is made only if its thing is as the caller
//! knows it.

use aws_lc_rs::digest::{SHA256, digest};
use axum::extract::FromRequestParts;
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

use super::Problem;
use crate::thing::Thing;

/// Bytes of a digest that are in a tag: nobody finds two contents with the same.
const TAG_BYTES: usize = 16;

/// Names the content of a thing, as `ETag` would.
pub(super) fn etag_of(content: &impl Serialize) -> String {
    // What is shown as JSON elsewhere can be written as JSON here.
    let text = serde_json::to_vec(content).unwrap_or_default();
    let digest = digest(&SHA256, &text);
    format!(
        "\"{}\"",
        URL_SAFE_NO_PAD.encode(&digest.as_ref()[..TAG_BYTES])
    )
}

/// What has to be true of a thing when it is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Precondition {
    /// It has one of these tags.
    matches: Option<Tags>,
    /// It has none of these tags.
    matches_none: Option<Tags>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Tags {
    /// `*`: that of whatever there is.
    Any,
    These(Vec<String>),
}

/// The headers in the description of a route.
#[derive(Debug, utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(
    dead_code,
    reason = "utoipa reads the fields, the extractor the headers"
)]
pub(super) struct PreconditionParameters {
    /// The `etag` that it has: if it has changed since, the answer is 412, and nothing is done.
    #[param(rename = "If-Match")]
    if_match: Option<String>,
    /// `*`: if there is one of this name, the answer is 412, and nothing is done.
    #[param(rename = "If-None-Match")]
    if_none_match: Option<String>,
}

impl<S: Sync> FromRequestParts<S> for Precondition {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        Ok(Self {
            matches: Tags::of(&parts.headers, &IF_MATCH)?,
            matches_none: Tags::of(&parts.headers, &IF_NONE_MATCH)?,
        })
    }
}

impl Tags {
    fn of(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Self>, Problem> {
        let mut these = Vec::new();
        let mut is_there = false;
        for line in headers.get_all(name) {
            is_there = true;
            let line = line.to_str();
            let line = line.map_err(|_| unreadable(name))?;
            for tag in line.split(',').map(str::trim) {
                match tag {
                    "*" => return Ok(Some(Self::Any)),
                    tag if is_tag(tag) => these.push(tag.to_owned()),
                    _ => return Err(unreadable(name)),
                }
            }
        }
        Ok(is_there.then_some(Self::These(these)))
    }

    fn has(&self, current: Option<&str>) -> bool {
        current.is_some_and(|current| match self {
            Self::Any => true,
            Self::These(tags) => tags.iter().any(|tag| tag == current),
        })
    }
}

/// A tag in quotes. Tags of this interface have no comma in them.
fn is_tag(text: &str) -> bool {
    let text = text.strip_prefix("W/").unwrap_or(text);
    let inner = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    inner.is_some_and(|inner| !inner.contains('"'))
}

impl Precondition {
    /// Checks it against the tag that a thing has; none if it is not there.
    ///
    /// # Errors
    /// It does not hold: 412.
    pub(super) fn check(
        &self,
        kind: Thing,
        name: &str,
        current: Option<&str>,
    ) -> Result<(), Problem> {
        if let Some(tags) = &self.matches
            && !tags.has(current)
        {
            return Err(changed(kind, name, current.is_some()));
        }
        match &self.matches_none {
            Some(tags) if tags.has(current) => Err(exists(kind, name)),
            _ => Ok(()),
        }
    }
}

fn unreadable(name: &HeaderName) -> Problem {
    Problem::bad_request(format!(
        "the header {name} is neither * nor a list of tags in quotes"
    ))
}

fn changed(kind: Thing, name: &str, is_there: bool) -> Problem {
    let what = if is_there {
        format!("the {kind} {name:?} has changed since it was read")
    } else {
        format!("the {kind} {name:?} is no longer there")
    };
    Problem::new(
        StatusCode::PRECONDITION_FAILED,
        "changed meanwhile",
        format!("{what}; nothing was changed"),
        "read it again, look at what is different, and send the change with its new etag",
    )
}

fn exists(kind: Thing, name: &str) -> Problem {
    Problem::new(
        StatusCode::PRECONDITION_FAILED,
        "exists already",
        format!("there is a {kind} {name:?} already; nothing was changed"),
        "choose another name, or change the one that is there",
    )
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderValue, Request};

    use super::*;

    async fn of(fields: &[(HeaderName, &'static str)]) -> Result<Precondition, Problem> {
        let (mut parts, ()) = Request::new(()).into_parts();
        for (name, value) in fields {
            let value = HeaderValue::from_static(value);
            parts.headers.append(name.clone(), value);
        }
        Precondition::from_request_parts(&mut parts, &()).await
    }

    fn status(checked: Result<(), Problem>) -> u16 {
        checked.map_or_else(|problem| problem.status, |()| 200)
    }

    #[tokio::test]
    async fn a_precondition_holds_for_the_tags_that_it_names() {
        for (name, value, of_a, of_b, of_none) in [
            (IF_MATCH, "\"a\"", 200, 412, 412),
            (IF_MATCH, "\"x\", \"a\"", 200, 412, 412),
            (IF_MATCH, "*", 200, 200, 412),
            (IF_MATCH, "W/\"a\"", 412, 412, 412),
            (IF_NONE_MATCH, "*", 412, 412, 200),
            (IF_NONE_MATCH, "\"a\"", 412, 200, 200),
        ] {
            let given = of(&[(name.clone(), value)]).await.unwrap();
            let found = [Some("\"a\""), Some("\"b\""), None]
                .map(|current| status(given.check(Thing::Role, "r", current)));
            assert_eq!(found, [of_a, of_b, of_none], "{name}: {value}");
        }
        let none = of(&[]).await.unwrap();
        assert_eq!(none, Precondition::default());
        assert_eq!(status(none.check(Thing::Role, "r", None)), 200);
    }

    #[tokio::test]
    async fn a_header_that_holds_no_tag_is_refused() {
        for value in ["", "a", "\"a", "\"a\"b\"", "a, *"] {
            let refused = of(&[(IF_MATCH, value)]).await.unwrap_err();
            assert_eq!(refused.status, 400, "{value}");
            assert!(refused.detail.contains("if-match"), "{}", refused.detail);
        }
        let both = [(IF_MATCH, "\"a\""), (IF_MATCH, "\"b\"")];
        let both = of(&both).await.unwrap();
        assert_eq!(status(both.check(Thing::Role, "r", Some("\"b\""))), 200);
    }

    #[test]
    fn a_tag_names_the_content() {
        let one = etag_of(&("a", ["x"]));
        assert_eq!(one, etag_of(&("a", ["x"])));
        assert_ne!(one, etag_of(&("a", ["y"])));
        assert!(is_tag(&one), "{one}");
    }
}
