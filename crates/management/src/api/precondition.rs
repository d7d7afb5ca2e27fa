//! `If-Match` and `If-None-Match` (RFC 9110): a change is made only if its thing is as the caller
//! knows it, and what the caller knows already is not sent again.

use aws_lc_rs::digest::{SHA256, digest};
use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::header::{CACHE_CONTROL, ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
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
    These(Vec<Tag>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Tag {
    /// It names a content that is as good as this one, and not this one alone.
    is_weak: bool,
    /// With its quotes.
    opaque: String,
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

/// The headers in the description of a route that shows a thing.
#[derive(Debug, utoipa::IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(
    dead_code,
    reason = "utoipa reads the fields, the extractor the headers"
)]
pub(super) struct KnownParameters {
    /// The `etag` that it has: if it is another one, the answer is 412.
    #[param(rename = "If-Match")]
    if_match: Option<String>,
    /// The `etag` that the caller knows: if it is still that one, the answer is 304, without it.
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
        let lines = headers.get_all(name).into_iter();
        let lines: Vec<&[u8]> = lines.map(HeaderValue::as_bytes).collect();
        match lines[..] {
            [] => return Ok(None),
            [line] if line.trim_ascii() == b"*" => return Ok(Some(Self::Any)),
            _ => {}
        }
        // Several lines are one list.
        let tags = tags(&String::from_utf8_lossy(&lines.join(&b',')));
        let tags = tags.filter(|tags| !tags.is_empty());
        tags.map(|tags| Some(Self::These(tags)))
            .ok_or_else(|| unreadable(name))
    }

    /// Whether one of them names this very content: the strong comparison of RFC 9110, 8.8.3.2.
    /// Tags of this interface are strong.
    fn has(&self, current: Option<&str>) -> bool {
        self.names(current, |tag| !tag.is_weak)
    }

    /// Whether one of them names a content that is as good as this one: the weak comparison.
    fn has_weakly(&self, current: Option<&str>) -> bool {
        self.names(current, |_| true)
    }

    fn names(&self, current: Option<&str>, counts: impl Fn(&Tag) -> bool) -> bool {
        current.is_some_and(|current| match self {
            Self::Any => true,
            Self::These(tags) => tags.iter().any(|tag| counts(tag) && tag.opaque == current),
        })
    }
}

/// The tags of a list; none if it is not one. Its empty members are left out (RFC 9110, 5.6.1).
fn tags(list: &str) -> Option<Vec<Tag>> {
    let blank = [' ', '\t'];
    let mut tags = Vec::new();
    let mut rest = list;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return Some(tags);
        }
        let (is_weak, quoted) = match rest.strip_prefix("W/") {
            Some(quoted) => (true, quoted),
            None => (false, rest),
        };
        let (inner, after) = quoted.strip_prefix('"')?.split_once('"')?;
        if inner.contains(|one: char| one.is_ascii_control() || one == ' ') {
            return None;
        }
        tags.push(Tag {
            is_weak,
            opaque: format!("\"{inner}\""),
        });
        rest = after.trim_start_matches(blank);
        if !rest.is_empty() && !rest.starts_with(',') {
            return None;
        }
    }
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
            Some(tags) if tags.has_weakly(current) => Err(exists(kind, name)),
            _ => Ok(()),
        }
    }

    /// The answer to a question for a thing with this tag: 304 if the caller has it already.
    ///
    /// # Errors
    /// The caller wants another one: 412.
    pub(super) fn show(
        &self,
        kind: Thing,
        name: &str,
        etag: &str,
        thing: impl Serialize,
    ) -> Result<Response, Problem> {
        let current = Some(etag);
        if self.matches.as_ref().is_some_and(|tags| !tags.has(current)) {
            return Err(changed(kind, name, true));
        }
        // Whoever keeps it asks each time whether it has changed, and keeps it for itself.
        let head = [(ETAG, etag), (CACHE_CONTROL, "private, no-cache")];
        let known = self.matches_none.as_ref();
        Ok(if known.is_some_and(|tags| tags.has_weakly(current)) {
            (StatusCode::NOT_MODIFIED, head).into_response()
        } else {
            (head, Json(thing)).into_response()
        })
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
    use axum::http::Request;

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
            (IF_MATCH, ", \t\"x\",,\"a\" ,", 200, 412, 412),
            (IF_MATCH, "\"a,b\", \"b\"", 412, 200, 412),
            (IF_MATCH, "W/\"a\"", 412, 412, 412),
            (IF_NONE_MATCH, "*", 412, 412, 200),
            (IF_NONE_MATCH, "\"a\"", 412, 200, 200),
            (IF_NONE_MATCH, "W/\"a\"", 412, 200, 200),
            (IF_NONE_MATCH, "\"x,\", W/\"b\"", 200, 412, 200),
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
        for value in [
            "",
            ",",
            "a",
            "\"a",
            "\"a\"b\"",
            "\"a\" \"b\"",
            "a, *",
            "\"a\", *",
            "*, \"a\"",
            "w/\"a\"",
        ] {
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
        let read = tags(&one).unwrap();
        assert!(read.len() == 1 && read[0].opaque == one, "{one}");
    }

    #[tokio::test]
    async fn what_the_caller_has_already_is_not_sent_again() {
        for (name, value, status) in [
            (IF_NONE_MATCH, "\"a\"", 304),
            (IF_NONE_MATCH, "W/\"a\"", 304),
            (IF_NONE_MATCH, "*", 304),
            (IF_NONE_MATCH, "\"b\"", 200),
            (IF_MATCH, "\"a\"", 200),
            (IF_MATCH, "\"b\"", 412),
        ] {
            let given = of(&[(name.clone(), value)]).await.unwrap();
            let shown = given.show(Thing::Role, "r", "\"a\"", "the thing");
            let shown = shown.unwrap_or_else(IntoResponse::into_response);
            assert_eq!(shown.status(), status, "{name}: {value}");
            let tag = shown.headers().get(ETAG).map(|tag| tag.to_str().unwrap());
            assert_eq!(tag, (status != 412).then_some("\"a\""));
        }
    }
}
