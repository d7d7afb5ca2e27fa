//! Changes are in the audit log before they are made.

use super::*;

#[tokio::test]
async fn a_change_that_cannot_be_written_down_is_not_made() {
    let api = TestApi::with_admin("full");
    let admin = api.admin().await;
    let healthy = api.security.audit.break_disk();
    let message = || json!({ "topic": "kept", "payload": "secret payload", "retain": true });
    for (path, body) in [
        ("/publish", message()),
        (
            "/admins",
            json!({ "name": "bob", "role": "viewer", "password": PASSWORD }),
        ),
        (
            "/keys",
            json!({ "label": "a", "scopes": ["admin"], "expires_secs": null }),
        ),
        (
            "/admins/admin/password",
            json!({ "password": "another long password" }),
        ),
    ] {
        let refused = api.post(&admin, path, body).await;
        assert_eq!(
            (refused.status, &refused.body["title"]),
            (507, &json!("audit log not available")),
            "{path}"
        );
    }
    assert_eq!(api.delete(&admin, "/clients/a").await.status, 507);
    assert_eq!(
        api.get(&admin, "/retained").await.body["messages"],
        json!([])
    );
    assert_eq!(api.get(&admin, "/keys").await.body["keys"], json!([]));
    assert_eq!(api.security.login.current().administrators.len(), 1);
    // Whoever looks for the cause can log in.
    let second = api.admin().await;
    api.security.audit.mend_disk(healthy);
    let done = api.post(&second, "/publish", message()).await;
    assert_eq!(done.status, 200, "{}", done.body);
    let page = api.get(&admin, "/audit?limit=1").await;
    let entry = &page.body["entries"][0];
    assert_eq!(
        (&entry["action"], &entry["target"]),
        (&json!("message.publish"), &json!("kept"))
    );
    assert_eq!(
        entry["after"],
        json!({ "qos": 0, "retain": true, "payload_bytes": 14 })
    );
    assert_eq!(
        (&entry["outcome"], &entry["address"]),
        (&json!("done"), &json!("192.0.2.1"))
    );
}

#[tokio::test]
async fn a_change_that_fails_is_there_with_its_reason() {
    let api = TestApi::with_admin("failed");
    let admin = api.admin().await;
    assert_eq!(api.delete(&admin, "/clients/nobody").await.status, 404);
    let page = api.get(&admin, "/audit?action=client.*&limit=1").await;
    let entry = &page.body["entries"][0];
    assert_eq!(
        (&entry["target"], &entry["outcome"]),
        (&json!("nobody"), &json!("failed"))
    );
    let detail = entry["detail"].as_str().unwrap();
    assert!(
        detail.contains("no session has the client identifier"),
        "{detail}"
    );
}

#[tokio::test]
async fn pages_of_the_log_have_an_end_and_bad_parameters_are_refused() {
    let api = TestApi::with_admin("pages");
    let admin = api.admin().await;
    for _ in 0..5 {
        api.delete(&admin, "/clients/nobody").await;
    }
    let mut numbers = Vec::new();
    let mut path = "/audit?limit=3".to_owned();
    loop {
        let page = api.get(&admin, &path).await.body;
        let entries = page["entries"].as_array().unwrap();
        numbers.extend(
            entries
                .iter()
                .map(|entry| entry["number"].as_u64().unwrap()),
        );
        let Some(next) = page["next"].as_str() else {
            break;
        };
        path = format!("/audit?limit=3&cursor={next}");
    }
    assert_eq!(numbers, [7, 6, 5, 4, 3, 2, 1]);
    for bad in [
        "limit=0",
        "limit=1001",
        "cursor=x",
        "since=yesterday",
        "colour=red",
    ] {
        let refused = api.get(&admin, &format!("/audit?{bad}")).await;
        assert_eq!(refused.status, 400, "{bad}");
    }
}

/// Routes that strangers may not ask.
const CLOSED: [(Method, &str); 54] = [
    (Method::GET, "/clients"),
    (Method::GET, "/clients/a"),
    (Method::DELETE, "/clients/a"),
    (Method::GET, "/clients/facets"),
    (Method::GET, "/clients/a/queue"),
    (Method::DELETE, "/clients/a/session"),
    (Method::GET, "/clients/a/subscriptions"),
    (Method::GET, "/clients/a/timeline"),
    (Method::GET, "/trace?client=a"),
    (Method::POST, "/explain/publish"),
    (Method::POST, "/explain/subscribe"),
    (Method::POST, "/explain/drops"),
    (Method::GET, "/groups"),
    (Method::GET, "/drops"),
    (Method::GET, "/refused-publishes"),
    (Method::GET, "/slow"),
    (Method::POST, "/why"),
    (Method::DELETE, "/retained?filter=a"),
    (Method::GET, "/retained/message?topic=a"),
    (Method::GET, "/retained/export"),
    (Method::POST, "/retained/import"),
    (Method::POST, "/publish/batch"),
    (Method::GET, "/subscriptions"),
    (Method::GET, "/retained"),
    (Method::POST, "/publish"),
    (Method::GET, "/status"),
    (Method::GET, "/metrics"),
    (Method::GET, "/audit"),
    (Method::GET, "/stream?figures=all"),
    (Method::GET, "/history"),
    (Method::GET, "/topics"),
    (Method::GET, "/topics/search?text=a"),
    (Method::GET, "/topics/topic?topic=a"),
    (Method::GET, "/topic-metrics"),
    (Method::POST, "/topic-metrics"),
    (Method::DELETE, "/topic-metrics?filter=a"),
    (Method::GET, "/admins"),
    (Method::POST, "/admins"),
    (Method::PATCH, "/admins/admin"),
    (Method::DELETE, "/admins/admin"),
    (Method::POST, "/admins/admin/password"),
    (Method::POST, "/setup-link"),
    (Method::GET, "/sessions"),
    (Method::DELETE, "/sessions/a"),
    (Method::GET, "/keys"),
    (Method::POST, "/keys"),
    (Method::DELETE, "/keys/a"),
    (Method::DELETE, "/login"),
    (Method::POST, "/login/password"),
    (Method::POST, "/login/totp"),
    (Method::POST, "/login/totp/confirm"),
    (Method::POST, "/login/totp/remove"),
    (Method::GET, "/login/sessions"),
    (Method::DELETE, "/login/sessions/a"),
];

#[tokio::test]
async fn every_route_but_the_login_is_closed_to_strangers() {
    let api = TestApi::with_admin("strangers");
    let stranger = Client::program("192.0.2.9");
    for (method, path) in CLOSED {
        let body = match path {
            "/login/password" => json!({ "password": "x", "new_password": "y" }),
            "/login/totp" | "/login/totp/remove" => json!({ "password": "x" }),
            "/login/totp/confirm" => json!({ "code": "x" }),
            _ => Value::Null,
        };
        let refused = api.ask(&stranger, method.clone(), path, body).await;
        assert_eq!(
            (refused.status, &refused.body["title"]),
            (401, &json!("login needed")),
            "{method} {path}: {}",
            refused.body
        );
    }
    assert_eq!(api.get(&stranger, "/login").await.status, 200);
}
