//! `/roles` and `/user-groups`, and the tags of what they and `/users` show.

use thrum_auth::Credential;
use thrum_auth::users::LockedStore;
use tower::ServiceExt as _;

use super::*;

/// Status, tag and body of what is shown to somebody.
async fn show(api: &TestApi, client: &Client, path: &str) -> (u16, Option<String>, Value) {
    let request = client.request(Method::GET, path).body(Body::empty());
    let answer = api.router.clone().oneshot(request.unwrap()).await.unwrap();
    let tag = answer.headers().get("etag");
    let tag = tag.map(|tag| tag.to_str().unwrap().to_owned());
    let status = answer.status().as_u16();
    let bytes = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    (status, tag, body)
}

#[tokio::test]
async fn what_is_shown_has_its_tag_and_is_not_sent_to_whoever_knows_it() {
    let api = TestApi::with_users("tags");
    let admin = api.admin().await;
    let user = json!({ "name": "a", "roles": ["r"] });
    assert_eq!(api.post(&admin, "/users", user).await.status, 201);
    let rules = json!({ "rules": ["allow sub #"] });
    for path in ["/roles/a", "/user-groups/a"] {
        assert_eq!(api.put(&admin, path, rules.clone()).await.status, 200);
    }
    let other = json!({ "rules": [] });
    for path in ["/users/a", "/roles/a", "/user-groups/a"] {
        let (status, tag, body) = show(&api, &admin, path).await;
        let tag = tag.unwrap();
        assert_eq!((status, &body["etag"]), (200, &json!(tag)), "{path}");
        let knowing = admin.with("if-none-match", &format!("\"x\", W/{tag}"));
        let known = (304, Some(tag.clone()), Value::Null);
        assert_eq!(show(&api, &knowing, path).await, known, "{path}");
        let method = if path == "/users/a" {
            Method::PATCH
        } else {
            Method::PUT
        };
        let body = if path == "/users/a" {
            json!({ "roles": [] })
        } else {
            other.clone()
        };
        assert_eq!(api.ask(&admin, method, path, body).await.status, 200);
        let (status, now, _) = show(&api, &knowing, path).await;
        assert_eq!(status, 200, "{path}");
        assert_ne!(now, Some(tag));
        assert_eq!(show(&api, &knowing, &format!("{path}b")).await.0, 404);
    }
}

#[tokio::test]
async fn the_tag_of_a_user_covers_what_is_kept_for_scram() {
    let api = TestApi::with_users("tag-scram");
    let admin = api.admin().await;
    let user = json!({ "name": "a", "password": "secret", "scram": true });
    assert_eq!(api.post(&admin, "/users", user).await.status, 201);
    let before = show(&api, &admin, "/users/a").await.1;
    let mut locked = LockedStore::open(&api.folder.join("users.jsonl")).unwrap();
    let mut user = locked.store.user("a").unwrap().clone();
    user.scram = Some(Credential::of("another").unwrap());
    locked.store.set_user("a", user);
    locked.save().unwrap();
    drop(locked);
    // The store is read again before it is changed.
    let other = json!({ "name": "b" });
    assert_eq!(api.post(&admin, "/users", other).await.status, 201);
    assert_ne!(show(&api, &admin, "/users/a").await.1, before);
}

#[tokio::test]
async fn the_audit_log_has_what_a_role_and_a_group_were_before_each_change() {
    let api = TestApi::with_users("members-audit");
    let admin = api.admin().await;
    let role: fn(&str) -> Value = |rule| json!({ "rules": [rule] });
    let group: fn(&str) -> Value = |rule| json!({ "rules": [rule], "roles": [] });
    for (path, action, shown) in [
        ("/roles/a", "role", role),
        ("/user-groups/a", "user-group", group),
    ] {
        for rule in ["allow pub a", "allow pub b"] {
            assert_eq!(api.put(&admin, path, shown(rule)).await.status, 200);
        }
        assert_eq!(api.delete(&admin, path).await.status, 204);
        let page = api.get(&admin, &format!("/audit?action={action}.*")).await;
        let entries = page.body["entries"].as_array().unwrap().iter();
        let states: Vec<Value> = entries
            .map(|entry| json!([entry["action"], entry["before"], entry["after"]]))
            .collect();
        let (a, b) = (shown("allow pub a"), shown("allow pub b"));
        let (set, remove) = (format!("{action}.set"), format!("{action}.remove"));
        let expected = [
            json!([remove, b, null]),
            json!([set, a, b]),
            json!([set, null, a]),
        ];
        assert_eq!(states, expected);
    }
}
