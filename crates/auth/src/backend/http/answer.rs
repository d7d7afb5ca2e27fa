//! The answer of a service: a status, and for 200 an object in JSON.

use serde::Deserialize;
use serde_json::Value;
use thrum_access::Source;

use crate::backend::grants::{from_json, truth};
use crate::backend::{BackendError, Found, Verdict};

/// The object of an answer, as EMQX defines it; all is optional.
#[derive(Debug, Default, Deserialize)]
struct Answer {
    result: Option<String>,
    #[serde(default)]
    is_superuser: Value,
    acl: Option<Value>,
    expire_at: Option<u64>,
    #[serde(default)]
    roles: Vec<Box<str>>,
    #[serde(default)]
    groups: Vec<Box<str>>,
}

/// The meaning of a status without a body, or that the body has to be read.
enum Meaning {
    Body,
    Allow,
    Deny,
    Ignore,
}

/// Reads the answer to a question about a login.
pub(super) fn verdict(status: u16, body: &[u8], source: &Source) -> Result<Verdict, BackendError> {
    let answer = match meaning(status)? {
        Meaning::Body => parse(body)?,
        Meaning::Allow => return Ok(Verdict::Allow(Box::default())),
        Meaning::Deny => {
            return Ok(Verdict::Deny(
                format!("the service answered {status}").into(),
            ));
        }
        Meaning::Ignore => return Ok(Verdict::Ignore),
    };
    Ok(match decision(&answer)? {
        Some(true) => Verdict::Allow(Box::new(Found {
            is_superuser: is_superuser(&answer.is_superuser),
            rules: answer.acl.map(|acl| from_json(&acl, source)).transpose()?,
            expires_at: answer.expire_at,
            roles: answer.roles,
            groups: answer.groups,
            ..Found::default()
        })),
        Some(false) => Verdict::Deny("the service answered deny".into()),
        None => Verdict::Ignore,
    })
}

/// Reads the answer to a question about a decision.
pub(super) fn opinion(status: u16, body: &[u8]) -> Result<Option<bool>, BackendError> {
    match meaning(status)? {
        Meaning::Body => decision(&parse(body)?),
        Meaning::Allow => Ok(Some(true)),
        Meaning::Deny => Ok(Some(false)),
        Meaning::Ignore => Ok(None),
    }
}

/// A status that reports a failure of the service is an error: nothing was decided.
fn meaning(status: u16) -> Result<Meaning, BackendError> {
    match status {
        200 => Ok(Meaning::Body),
        204 => Ok(Meaning::Allow),
        401 | 403 => Ok(Meaning::Deny),
        408 | 429 => Err(BackendError::BadAnswer(format!("status {status}"))),
        400..500 => Ok(Meaning::Ignore),
        _ => Err(BackendError::BadAnswer(format!("status {status}"))),
    }
}

fn parse(body: &[u8]) -> Result<Answer, BackendError> {
    // The parser's text could repeat secret parts of the answer.
    serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        BackendError::BadAnswer(format!(
            "the body is not the expected JSON, at line {line}, column {column}"
        ))
    })
}

fn decision(answer: &Answer) -> Result<Option<bool>, BackendError> {
    match answer.result.as_deref() {
        Some("allow") => Ok(Some(true)),
        Some("deny") => Ok(Some(false)),
        Some("ignore") | None => Ok(None),
        Some(_) => {
            let what = "result must be \"allow\", \"deny\" or \"ignore\"";
            Err(BackendError::BadAnswer(what.to_owned()))
        }
    }
}

fn is_superuser(value: &Value) -> bool {
    match value {
        Value::Bool(is) => *is,
        Value::String(text) => truth(text).unwrap_or_default(),
        Value::Number(number) => number.as_u64() == Some(1),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn source() -> Source {
        Source::from(Arc::from("web acl"))
    }

    fn said(status: u16, body: &str) -> &'static str {
        match verdict(status, body.as_bytes(), &source()) {
            Ok(Verdict::Allow(_)) => "allow",
            Ok(Verdict::Deny(_)) => "deny",
            Ok(Verdict::Ignore) => "ignore",
            Err(_) => "error",
        }
    }

    #[test]
    fn statuses_and_results_are_read_as_documented() {
        for (status, body, expected) in [
            (200, r#"{"result":"allow"}"#, "allow"),
            (200, r#"{"result":"deny"}"#, "deny"),
            (200, r#"{"result":"ignore"}"#, "ignore"),
            (200, "{}", "ignore"),
            (200, r#"{"result":"yes"}"#, "error"),
            (200, "", "error"),
            (200, "allow", "error"),
            (204, "", "allow"),
            (301, "", "error"),
            (400, "", "ignore"),
            (401, "", "deny"),
            (403, r#"{"result":"allow"}"#, "deny"),
            (404, "", "ignore"),
            (408, "", "error"),
            (429, "", "error"),
            (500, r#"{"result":"allow"}"#, "error"),
            (503, "", "error"),
        ] {
            assert_eq!(said(status, body), expected, "{status} {body}");
        }
    }

    #[test]
    fn an_admission_has_the_fields_of_the_answer() {
        let body = br#"{"result": "allow", "is_superuser": "true", "expire_at": 1800000000, "roles": ["a", "b"],
            "acl": [{"permission": "deny", "action": "all", "topic": "eq t/#", "qos": [0, 1], "retain": true}]}"#;
        let Ok(Verdict::Allow(found)) = verdict(200, body, &source()) else {
            panic!("expected an admission");
        };
        assert!(found.is_superuser);
        assert_eq!(found.expires_at, Some(1_800_000_000));
        assert_eq!(found.roles, ["a", "b"].map(Box::<str>::from));
        assert!(found.rules.is_some());
    }

    #[test]
    fn a_rule_that_cannot_be_read_is_an_error() {
        for acl in [
            "{}",
            "[1]",
            r#"[{"action":"all","topic":"t"}]"#,
            r#"[{"permission":"maybe","action":"all","topic":"t"}]"#,
            r#"[{"permission":"deny","action":"read","topic":"t"}]"#,
            r#"[{"permission":"deny","action":"all","topic":"a/#/b"}]"#,
            r#"[{"permission":"deny","action":"all","topic":"t","qos":3}]"#,
        ] {
            let body = format!(r#"{{"result":"allow","acl":{acl}}}"#);
            assert_eq!(said(200, &body), "error", "{acl}");
        }
    }
}
