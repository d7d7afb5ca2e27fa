//! `/access`: rules in force, the tester, and a login that is tried.

use super::*;

async fn with_rules(name: &str) -> (TestApi, Client) {
    let api = TestApi::with_users(name);
    let admin = api.admin().await;
    let role = json!({ "rules": ["allow sub meters/#"] });
    assert_eq!(api.put(&admin, "/roles/ops", role).await.status, 200);
    let user = json!({
        "name": "alice", "password": "secret", "roles": ["ops"], "rules": ["allow pub a/%u", "deny pub b"],
    });
    let added = api.post(&admin, "/users", user).await;
    assert_eq!(added.status, 201, "{}", added.body);
    (api, admin)
}

#[tokio::test]
async fn the_rules_of_a_client_are_listed_in_their_order_with_their_origin() {
    let (api, admin) = with_rules("rules").await;
    let all = api
        .pages(&admin, "/access/rules?user=alice&limit=2", "rules")
        .await;
    let shown: Vec<_> = all
        .iter()
        .map(|rule| {
            (
                rule["position"].as_u64().unwrap(),
                rule["source"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [(1, "user alice"), (2, "user alice"), (3, "role ops")]
    );
    assert_eq!(all[2]["rule"], "allow all sub meters/#");
    assert_eq!(all[0]["of"], "client");
    let page = api.get(&admin, "/access/rules").await.body;
    assert_eq!(page["rules"], json!([]), "there are none for all clients");
    assert_eq!(page["order"], json!(["rules", "client", "remote"]));
    assert_eq!(page["otherwise"], "denied");
    for bad in ["limit=0", "cursor=x", "address=here", "colour=red"] {
        assert_eq!(
            api.get(&admin, &format!("/access/rules?{bad}"))
                .await
                .status,
            400,
            "{bad}"
        );
    }
}

#[tokio::test]
async fn the_tester_names_the_rule_that_decides() {
    let (api, admin) = with_rules("tester").await;
    let test = async |action: &str, topic: &str, user: Value| {
        let body = json!({ "client_id": "c", "user": user, "action": action, "topic": topic });
        let answer = api.post(&admin, "/access/test", body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    };
    let allowed = test("publish", "a/alice", json!("alice")).await;
    assert_eq!(
        (&allowed["allowed"], &allowed["verdict"]),
        (&json!(true), &json!("allowed"))
    );
    assert_eq!(allowed["rules"][0]["source"], "user alice");
    assert_eq!(
        (&allowed["rights_of"], &allowed["roles"]),
        (&json!("store"), &json!(["ops"]))
    );
    let denied = test("publish", "b", json!("alice")).await;
    assert_eq!(denied["rules"][0]["rule"], "deny all pub b");
    let default = test("publish", "c", json!("alice")).await;
    assert_eq!(default["allowed"], false);
    assert!(
        default["otherwise"]
            .as_str()
            .unwrap()
            .contains("acl.default")
    );
    let part = test("subscribe", "#", json!("alice")).await;
    assert_eq!(
        (&part["allowed"], &part["verdict"]),
        (&json!(true), &json!("allowed in part"))
    );
    assert_eq!(
        test("subscribe", "meters/#", json!("eve")).await["rights_of"],
        "name"
    );
    assert_eq!(
        test("subscribe", "meters/#", Value::Null).await["allowed"],
        false
    );
}

#[tokio::test]
async fn a_test_of_something_else_than_a_topic_and_of_a_disabled_user_is_refused() {
    let (api, admin) = with_rules("tester-wrong").await;
    for (body, said) in [
        (
            json!({ "client_id": "c", "action": "publish", "topic": "a/+" }),
            "is not a topic name",
        ),
        (
            json!({ "client_id": "c", "action": "subscribe", "topic": "a/#/b" }),
            "is not a topic filter",
        ),
        (
            json!({ "client_id": "c", "action": "read", "topic": "a" }),
            "publish or subscribe",
        ),
        (
            json!({ "client_id": "c", "action": "publish", "topic": "a", "qos": 3 }),
            "qos is 0, 1 or 2",
        ),
        (json!({ "client_id": "c", "topic": "a" }), "action"),
    ] {
        let refused = api.post(&admin, "/access/test", body.clone()).await;
        let detail = refused.body["detail"].as_str().unwrap_or_default();
        assert!(
            refused.status == 400 && detail.contains(said),
            "{body}: {detail}"
        );
    }
    let disable = json!({ "disabled": true });
    assert_eq!(api.patch(&admin, "/users/alice", disable).await.status, 200);
    let body = json!({ "client_id": "c", "user": "alice", "action": "publish", "topic": "a" });
    let refused = api.post(&admin, "/access/test", body).await;
    assert!(
        refused.body["detail"]
            .as_str()
            .unwrap()
            .contains("disabled"),
        "{}",
        refused.body
    );
}

#[tokio::test]
async fn a_login_is_tried_step_by_step_and_its_password_is_in_no_log() {
    let (api, admin) = with_rules("login-test").await;
    let test = async |body: Value| api.post(&admin, "/access/login-test", body).await;
    let right = test(json!({ "user": "alice", "password": "secret" })).await;
    assert_eq!(
        (right.status, &right.body["accepted"]),
        (200, &json!(true)),
        "{}",
        right.body
    );
    let step = &right.body["steps"][0];
    assert_eq!(
        (&step["backend"], &step["verdict"]),
        (&json!("users"), &json!("accepted"))
    );
    let identity = &right.body["identity"];
    assert_eq!(
        (&identity["roles"], &identity["backend"]),
        (&json!(["ops"]), &json!("users"))
    );
    let wrong = test(json!({ "user": "alice", "password": "geheim-geheim" })).await;
    assert_eq!(wrong.body["accepted"], false);
    assert_eq!(wrong.body["steps"][0]["verdict"], "refused");
    assert_eq!(wrong.body["steps"][0]["reason"], "wrong password");
    assert_eq!(wrong.body["told"], "bad user name or password");
    let unknown = test(json!({ "user": "eve", "password": "secret" })).await;
    assert_eq!(unknown.body["steps"][0]["verdict"], "not_responsible");
    assert_eq!(unknown.body["reason"], "no backend knows the client");
    let certificate = test(json!({ "user": "alice", "by_certificate": true })).await;
    assert_eq!(certificate.body["accepted"], true, "{}", certificate.body);
    let anonymous = test(json!({ "address": "192.0.2.1" })).await;
    assert_eq!(anonymous.body["accepted"], false);
    for body in [
        json!({ "by_certificate": true }),
        json!({ "user": "a", "password": "b", "by_certificate": true }),
        json!({ "user": "a", "address": "here" }),
        json!({ "user": "a", "listener": "nosuch" }),
        json!({ "user": "x".repeat(65_536) }),
        json!({ "colour": "red" }),
    ] {
        let refused = test(body).await;
        assert_eq!(refused.status, 400, "{}", refused.body);
    }
    for file in std::fs::read_dir(api.folder.join("audit")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains("geheim-geheim"), "{text}");
        assert!(text.contains("\"login.test\""), "{text}");
    }
}

#[tokio::test]
async fn guesses_by_the_login_test_are_slowed_and_do_not_slow_administrators() {
    let (api, admin) = with_rules("login-test-slowed").await;
    let guess = async |password: &str| {
        let body = json!({ "user": "alice", "password": password });
        api.post(&admin, "/access/login-test", body).await
    };
    for _ in 0..20 {
        assert_eq!(
            guess("secret").await.status,
            200,
            "a right one costs nothing"
        );
    }
    for _ in 0..6 {
        assert_eq!(guess("wrong").await.status, 200);
    }
    let slowed = guess("secret").await;
    assert_eq!(
        (slowed.status, slowed.retry_after),
        (429, Some(1)),
        "{}",
        slowed.body
    );
    let browser = Client::browser("192.0.2.1");
    assert_eq!(api.log_in(&browser, "admin", PASSWORD).await.status, 200);
    let operator = api.key(&admin, &["users:write", "users:read"]).await;
    let refused = api
        .post(&operator, "/access/login-test", json!({ "user": "alice" }))
        .await;
    assert_eq!(refused.status, 403, "it needs the scope admin");
    let reader = api.key(&admin, &["clients:read"]).await;
    assert_eq!(api.get(&reader, "/access/rules").await.status, 403);
    let tested = api.post(&reader, "/access/test", json!({})).await;
    assert_eq!(tested.status, 403);
}
