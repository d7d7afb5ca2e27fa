//! An HTTP service that knows users.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use thrum_backends::client::{Authenticator, LoginAttempt, LoginResult, may_publish, secret_file};
use thrum_backends::http::{HttpService, Request, Response};
use thrum_backends::restart;
use thrum_backends::server::Tls;
use thrum_backends::silent_server::{self, SilentServer};
use thrum_codec::{QoS, ReasonCode};
use thrum_conformance::folder::Folder;

const DENIED: ReasonCode = ReasonCode::BadUserNameOrPassword;

fn settings(service: &HttpService) -> Value {
    json!({ "http": { "web": { "url": service.url("/auth") } } })
}

/// Knows `ann`, whose password is `secret`.
fn judge(request: &Request) -> Response {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    if request.path.starts_with("/decide") {
        let is_allowed =
            text("topic") == "a/b" && text("action") == "publish" && text("qos") == "1";
        return match text("topic").as_str() {
            "unknown" => (200, r#"{"result":"ignore"}"#.to_owned()),
            "broken" => (500, String::new()),
            _ if is_allowed => (204, String::new()),
            _ => (200, r#"{"result":"deny"}"#.to_owned()),
        };
    }
    match (text("username").as_str(), text("password").as_str()) {
        ("ann", "secret") => {
            let answer = json!({
                "result": "allow",
                "roles": ["a"],
                "expire_at": 4_000_000_000_u64,
                "acl": [
                    { "permission": "deny", "action": "publish", "topic": "up/secret", "qos": [0, 1] },
                    { "permission": "allow", "action": "all", "topic": "up/${username}/#" },
                ],
            });
            (200, answer.to_string())
        }
        ("root", "secret") => (200, r#"{"result":"allow","is_superuser":true}"#.to_owned()),
        ("plain", "secret") => (204, String::new()),
        ("ann" | "root" | "plain", _) => (200, r#"{"result":"deny"}"#.to_owned()),
        ("banned", _) => (403, String::new()),
        ("broken", _) => (500, r#"{"result":"allow"}"#.to_owned()),
        ("garbled", _) => (200, "allow".to_owned()),
        ("endless", _) => (200, " ".repeat(300 * 1024)),
        ("elsewhere", _) => (302, r#"{"result":"allow"}"#.to_owned()),
        _ => (404, String::new()),
    }
}

#[test]
fn the_service_decides_logins() {
    let service = HttpService::start(judge);
    let authenticator = Authenticator::open(&settings(&service));
    let ann = authenticator.admits("ann", "secret");
    assert_eq!(ann.identity.roles, ["a"].map(Box::<str>::from));
    assert_eq!(ann.expires_at, Some(4_000_000_000));
    assert_eq!(
        may_publish(&ann, "up/ann/x", QoS::AtMostOnce, false),
        Some(true)
    );
    assert_eq!(
        may_publish(&ann, "up/secret", QoS::AtMostOnce, false),
        Some(false)
    );
    assert!(authenticator.admits("root", "secret").identity.is_superuser);
    assert!(authenticator.admits("plain", "secret").rules.is_none());
    for (name, password) in [("ann", "wrong"), ("banned", "secret"), ("nobody", "secret")] {
        authenticator.refuses(name, password, DENIED);
    }
    for name in ["broken", "garbled", "endless", "elsewhere"] {
        authenticator.refuses(name, "secret", ReasonCode::ServerUnavailable);
    }
    let not_text = LoginAttempt {
        password: Some(vec![0xff]),
        ..LoginAttempt::new("plain", "")
    };
    assert!(matches!(
        authenticator.log_in(&not_text),
        LoginResult::Denied(DENIED)
    ));
}

#[test]
fn the_service_decides_permissions() {
    let service = HttpService::start(judge);
    let mut settings = settings(&service);
    settings["http"]["web"]["authorize_url"] = json!(service.url("/decide"));
    let authenticator = Authenticator::open(&settings);
    let ann = authenticator.admits("ann", "secret").identity;
    assert_eq!(authenticator.decides(&ann, true, "a/b"), Some(true));
    assert_eq!(authenticator.decides(&ann, false, "a/b"), Some(false));
    assert_eq!(authenticator.decides(&ann, true, "unknown"), None);
    assert_eq!(authenticator.decides(&ann, true, "broken"), Some(false));
}

#[test]
fn names_stay_where_they_are_put() {
    let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let service = HttpService::start(move |request| {
        kept.lock().expect("no panic").push(request.clone());
        (200, r#"{"result":"deny"}"#.to_owned())
    });
    let folder = Folder::new("http-names");
    let authenticator = Authenticator::open(&json!({ "http": { "web": {
        "url": service.url("/users/${username}/auth?client=${client_id}&fixed=1"),
        "headers": ["X-Site: north"],
        "bearer_file": secret_file(&folder, "token", "a-token"),
    }}}));
    for name in [
        "a/b",
        "a?b=c",
        "a&fixed=2",
        "a\r\nX-Evil: 1",
        "a#b",
        "%2e%2e",
        "\u{e4}",
        "a\"}",
    ] {
        let attempt = LoginAttempt {
            client_id: name.to_owned(),
            ..LoginAttempt::new(name, "secret")
        };
        assert!(matches!(
            authenticator.log_in(&attempt),
            LoginResult::Denied(DENIED)
        ));
        let request = seen.lock().expect("no panic").pop().expect("a request");
        let (path, query) = request.path.split_once('?').expect("parameters");
        assert_eq!(path.split('/').count(), 4, "{path}");
        assert_eq!(query.split('&').count(), 2, "{query}");
        assert!(query.ends_with("&fixed=1"), "{query}");
        assert_eq!(request.headers.get("x-evil"), None);
        assert_eq!(
            request.headers.get("x-site").map(String::as_str),
            Some("north")
        );
        assert_eq!(
            request.headers.get("authorization").map(String::as_str),
            Some("Bearer a-token")
        );
        let body: Value = serde_json::from_slice(&request.body).expect("JSON");
        assert_eq!(body["username"], json!(name));
        assert_eq!(body["peer"], json!("192.0.2.7"));
    }
    for name in [".", ".."] {
        authenticator.refuses(name, "secret", DENIED);
        assert_eq!(
            seen.lock().expect("no panic").len(),
            0,
            "asked about {name}"
        );
    }
}

#[test]
fn forms_and_parameters_carry_the_values_too() {
    let service = HttpService::start(|request| {
        let values = match request.method.as_str() {
            "POST" => String::from_utf8_lossy(&request.body).into_owned(),
            _ => request.path.replace("/auth?", ""),
        };
        let is_right = values == "pass=s%26c%C3%A4&user=ann";
        (if is_right { 204 } else { 401 }, String::new())
    });
    let mut settings = settings(&service);
    settings["http"]["web"]["body"] = json!(["pass=${password}", "user=${username}"]);
    for (method, content_type) in [("post", "form"), ("get", "json")] {
        settings["http"]["web"]["method"] = json!(method);
        settings["http"]["web"]["content_type"] = json!(content_type);
        let authenticator = Authenticator::open(&settings);
        authenticator.admits("ann", "s&c\u{e4}");
        authenticator.refuses("ann", "s", DENIED);
    }
}

#[test]
fn a_restarted_service_needs_no_restart_of_ours() {
    let mut service = HttpService::start(judge);
    let authenticator = Authenticator::open(&settings(&service));
    restart::logins_recover(
        &authenticator,
        "web",
        &LoginAttempt::new("ann", "secret"),
        &mut service,
    );
}

#[test]
fn logins_at_a_silent_service_are_bounded() {
    let silent = SilentServer::start();
    let authenticator = Authenticator::open(&json!({ "http": { "web": {
        "url": format!("http://127.0.0.1:{}/auth", silent.port()),
        "in_flight": 4,
        "timeout": "1s",
    }}}));
    silent_server::logins_are_bounded(&authenticator, 4);
}

#[test]
fn tls_is_checked_against_the_given_authority() {
    let (right, wrong) = (Tls::new(), Tls::new());
    let service = HttpService::start_tls(&right, judge);
    let folder = Folder::new("http-tls");
    let mut settings = settings(&service);
    settings["http"]["web"]["ca"] = json!(folder.write("right.pem", &right.certificate));
    Authenticator::open(&settings).admits("ann", "secret");
    settings["http"]["web"]["ca"] = json!(folder.write("wrong.pem", &wrong.certificate));
    Authenticator::open(&settings).refuses("ann", "secret", ReasonCode::ServerUnavailable);
}

#[test]
fn settings_that_cannot_work_are_refused_with_the_reason() {
    for (changes, expected) in [
        (
            json!({}),
            "auth.http.web.url: set url, authorize_url or both",
        ),
        (
            json!({ "url": "ftp://h/" }),
            "auth.http.web.url: must begin with http://",
        ),
        (
            json!({ "url": "https://${username}.h/" }),
            "auth.http.web.url: a placeholder stands in the server's name",
        ),
        (
            json!({ "url": "https://h/", "body": ["x=${topic}"] }),
            "auth.http.web.body: ${topic} has no value here",
        ),
        (
            json!({ "url": "https://h/", "headers": ["a b: c"] }),
            "auth.http.web.headers: number 1 is not \"name: value\"",
        ),
        (
            json!({ "url": "https://h/", "bearer_file": "/none" }),
            "auth.http.web.bearer_file: /none cannot be read",
        ),
    ] {
        let refusal = Authenticator::refusal(json!({ "http": { "web": changes } }));
        assert!(refusal.contains(expected), "{refusal}");
    }
}
