//! API keys.

use super::*;

/// Makes a key; returns a program that sends it, and its identifier.
async fn program(api: &TestApi, admin: &Client, body: Value) -> (Client, String) {
    let made = api.post(admin, "/keys", body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let key = made.body["key"].as_str().unwrap();
    let id = made.body["id"].as_str().unwrap();
    assert!(key.starts_with(&format!("thrum_{id}_")), "{key}");
    (Client::program("192.0.2.50").with_key(key), id.to_owned())
}

#[tokio::test]
async fn a_key_permits_its_scopes_without_cookie_and_token() {
    let api = TestApi::with_admin("scopes");
    let admin = api.admin().await;
    let scopes = json!({ "label": "ci", "scopes": ["messages:write"], "expires_secs": null });
    let (key, id) = program(&api, &admin, scopes).await;
    let message = || json!({ "topic": "a", "payload": "x" });
    assert_eq!(api.post(&key, "/publish", message()).await.status, 200);
    let refused = api.get(&key, "/status").await;
    assert_eq!(
        (refused.status, &refused.body["title"]),
        (403, &json!("not permitted"))
    );
    assert_eq!(api.get(&key, "/keys").await.status, 403);
    assert_eq!(
        api.get(&key, "/login/sessions").await.status,
        403,
        "a key has no sessions"
    );
    let who = api.get(&key, "/login").await.body;
    assert_eq!(who["name"], format!("key:{id}"));
    assert_eq!(
        (&who["means"], &who["token"]),
        (&json!("key"), &Value::Null)
    );
    let log = api.audit(&admin, 4).await;
    let published = json!([format!("key:{id}"), "message.publish", "a", "done"]);
    assert!(log.contains(&published), "{log:?}");
    // The password of a proxy in front of the broker is no key.
    let proxied = admin.with("authorization", "Basic YTpi");
    assert_eq!(api.get(&proxied, "/keys").await.status, 200);
    // A cookie beside the key changes nothing.
    let both = admin.with("authorization", &key.fields[0].1);
    assert_eq!(api.get(&both, "/keys").await.status, 403);
}

#[tokio::test]
async fn a_key_without_scope_label_or_future_is_not_made() {
    let api = TestApi::with_admin("no-scope");
    let admin = api.admin().await;
    for body in [
        json!({ "label": "a", "scopes": [], "expires_secs": null }),
        json!({ "label": "", "scopes": ["admin"], "expires_secs": null }),
        json!({ "label": "a\n", "scopes": ["admin"], "expires_secs": null }),
        json!({ "label": "a".repeat(101), "scopes": ["admin"], "expires_secs": null }),
        json!({ "label": "a", "scopes": ["root"], "expires_secs": null }),
        json!({ "label": "a", "scopes": ["admin"], "expires_secs": 0 }),
        json!({ "label": "a", "scopes": ["admin"], "expires_secs": 3_155_760_001_u64 }),
        json!({ "label": "a", "scopes": ["admin"], "expires_secs": u64::MAX }),
    ] {
        let refused = api.post(&admin, "/keys", body.clone()).await;
        assert_eq!(refused.status, 400, "{body}");
    }
    assert_eq!(api.get(&admin, "/keys").await.body, json!({ "keys": [] }));
}

#[tokio::test]
async fn a_key_of_which_nobody_says_when_it_expires_expires_in_90_days() {
    let api = TestApi::with_admin("expiry");
    let admin = api.admin().await;
    let body = json!({ "label": "silent", "scopes": ["metrics:read"] });
    let (silent, _) = program(&api, &admin, body).await;
    let body = json!({ "label": "never", "scopes": ["metrics:read"], "expires_secs": null });
    let (never, _) = program(&api, &admin, body).await;
    let status = async |client: &Client| api.get(client, "/status").await.status;
    api.move_on(Duration::from_hours(90 * 24) - Duration::from_secs(1));
    assert_eq!((status(&silent).await, status(&never).await), (200, 200));
    api.move_on(Duration::from_secs(1));
    assert_eq!((status(&silent).await, status(&never).await), (401, 200));
}

#[tokio::test]
async fn a_wrong_expired_or_removed_key_is_refused() {
    let api = TestApi::with_admin("refused");
    let admin = api.admin().await;
    let body = json!({ "label": "x", "scopes": ["metrics:read"], "expires_secs": 60 });
    let (short, _) = program(&api, &admin, body).await;
    let body = json!({ "label": "y", "scopes": ["metrics:read"], "expires_secs": null });
    let (long, id) = program(&api, &admin, body).await;
    let status = async |client: &Client| api.get(client, "/status").await.status;
    assert_eq!((status(&short).await, status(&long).await), (200, 200));
    let (name, field) = &long.fields[0];
    let wrong_secret = format!("{}{}", &field[..field.len() - 8], "aaaaaaaa");
    for wrong in [
        wrong_secret,
        field.replace(&id, "aaaaaaaa"),
        field.replace("Bearer", "Basic"),
        field.replace("thrum_", ""),
        "Bearer".to_owned(),
        String::new(),
    ] {
        let client = long.with("authorization", &wrong);
        assert_eq!(status(&client).await, 401, "{wrong}");
    }
    let mut twice = long.clone();
    twice.fields.push((name.clone(), field.clone()));
    assert_eq!(status(&twice).await, 401);
    api.move_on(Duration::from_mins(1));
    assert_eq!((status(&short).await, status(&long).await), (401, 200));
    let removed = api.delete(&admin, &format!("/keys/{id}")).await;
    assert_eq!(removed.status, 204);
    assert_eq!(status(&long).await, 401);
    assert_eq!(api.delete(&admin, &format!("/keys/{id}")).await.status, 404);
}

#[tokio::test]
async fn keys_are_listed_without_secrets_and_with_their_last_use() {
    let api = TestApi::with_admin("listed");
    let admin = api.admin().await;
    let body = json!({ "label": "grafana", "scopes": ["metrics:read", "logs:read"], "expires_secs": 3600 });
    let (key, id) = program(&api, &admin, body).await;
    let secret = key.fields[0].1.rsplit('_').next().unwrap().to_owned();
    let list = async || api.get(&admin, "/keys").await.body["keys"][0].clone();
    let before = list().await;
    assert_eq!(
        (&before["id"], &before["created_by"]),
        (&json!(id), &json!("admin"))
    );
    assert_eq!(before["scopes"], json!(["logs:read", "metrics:read"]));
    assert!(before["used_at"].is_null());
    api.move_on(Duration::from_mins(10));
    api.get(&key, "/status").await;
    assert_eq!(list().await["used_at"], "2033-05-18T03:43:20.000Z");
    api.move_on(Duration::from_mins(20));
    api.get(&key, "/status").await;
    assert_eq!(list().await["used_at"], "2033-05-18T04:03:20.000Z");
    let text = std::fs::read_to_string(api.folder.join("administrators.jsonl")).unwrap();
    assert!(!text.contains(&secret), "{text}");
    let kept = || {
        Login::open(Some(&api.folder), Clock::manual().0)
            .unwrap()
            .current()
    };
    let noted = async {
        while kept().key(&id).unwrap().used_at.is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), noted)
        .await
        .expect("it is on the disk");
    assert_eq!(kept().key(&id).unwrap().used_at, Some(2_000_000_600_000));
}

#[tokio::test]
async fn payloads_need_a_scope_of_their_own_whatever_route_shows_them() {
    let api = TestApi::with_admin("payloads");
    let admin = api.admin().await;
    let clients = json!({ "label": "c", "scopes": ["clients:read"], "expires_secs": null });
    let (clients, _) = program(&api, &admin, clients).await;
    let both = ["clients:read", "messages:read"];
    let both = json!({ "label": "b", "scopes": both, "expires_secs": null });
    let (both, _) = program(&api, &admin, both).await;
    for path in [
        "/clients/a/queue?payload=true",
        "/trace?client=a&seconds=1&payloads=true",
        "/trace?client=a&seconds=1&payloads=true&format=pcapng",
    ] {
        let refused = api.get(&clients, path).await;
        assert_eq!(refused.status, 403, "{path}: {}", refused.body);
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains("messages:read"), "{detail}");
    }
    // No such client: it was looked for.
    let found = api.get(&both, "/clients/a/queue?payload=true").await;
    assert_eq!(found.status, 404, "{}", found.body);
    assert_eq!(api.get(&clients, "/clients/a/queue").await.status, 404);
}

#[tokio::test]
async fn a_measurement_needs_the_scope_of_clients() {
    let api = TestApi::with_admin("why-scope");
    let admin = api.admin().await;
    let question = || json!({ "seconds": 1 });
    let scopes = json!({ "label": "m", "scopes": ["metrics:read"], "expires_secs": null });
    let (key, _) = program(&api, &admin, scopes).await;
    let refused = api.post(&key, "/why", question()).await;
    assert_eq!(
        (refused.status, &refused.body["title"]),
        (403, &json!("not permitted"))
    );
    let scopes = json!({ "label": "c", "scopes": ["clients:read"], "expires_secs": null });
    let (key, _) = program(&api, &admin, scopes).await;
    let answer = api.post(&key, "/why", question()).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.body["latency"]["causes"], json!([]));
}
