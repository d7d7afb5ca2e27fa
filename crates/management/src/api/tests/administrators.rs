//! Administrators and their roles.

use super::*;

#[tokio::test]
async fn a_role_permits_what_it_permits_and_changes_at_once() {
    let api = TestApi::with_admin("roles");
    let admin = api.admin().await;
    api.add(&admin, "bob", "viewer").await;
    let bob = api
        .session(&Client::browser("198.51.100.1"), "bob", PASSWORD)
        .await;
    assert_eq!(api.get(&bob, "/clients").await.status, 200);
    let kick = api.delete(&bob, "/clients/a").await;
    assert_eq!(
        (kick.status, &kick.body["title"]),
        (403, &json!("not permitted"))
    );
    assert!(
        kick.body["detail"]
            .as_str()
            .unwrap()
            .contains("clients:write"),
        "{}",
        kick.body
    );
    assert_eq!(api.get(&bob, "/retained").await.status, 403);
    assert_eq!(api.get(&bob, "/audit").await.status, 403);
    let change = |body| api.ask(&admin, Method::PATCH, "/admins/bob", body);
    assert_eq!(change(json!({ "role": "operator" })).await.status, 204);
    assert_eq!(api.delete(&bob, "/clients/a").await.status, 404);
    assert_eq!(api.get(&bob, "/admins").await.status, 403);
    assert_eq!(change(json!({ "role": "king" })).await.status, 400);
    assert_eq!(change(json!({ "disabled": true })).await.status, 204);
    assert_eq!(api.get(&bob, "/clients").await.status, 401);
    let browser = Client::browser("198.51.100.1");
    let disabled = api.log_in(&browser, "bob", PASSWORD).await;
    assert_eq!(
        (disabled.status, &disabled.body["title"]),
        (401, &json!("wrong login"))
    );
    let page = api.get(&admin, "/audit?action=administrator.change").await;
    let entry = &page.body["entries"][0];
    assert_eq!(
        entry["before"],
        json!({ "role": "operator", "disabled": false, "totp": false })
    );
    assert_eq!(
        entry["after"],
        json!({ "role": "operator", "disabled": true, "totp": false })
    );
    let refused = api.get(&admin, "/audit?who=bob").await;
    let refused = refused.body["entries"].to_string();
    assert!(refused.contains("DELETE /api/v1/clients/a"), "{refused}");
}

#[tokio::test]
async fn the_last_administrator_stays() {
    let api = TestApi::with_admin("last");
    let admin = api.admin().await;
    api.add(&admin, "bob", "operator").await;
    for body in [json!({ "role": "operator" }), json!({ "disabled": true })] {
        let refused = api.ask(&admin, Method::PATCH, "/admins/admin", body).await;
        assert_eq!(
            (refused.status, &refused.body["title"]),
            (409, &json!("last administrator"))
        );
    }
    assert_eq!(api.delete(&admin, "/admins/admin").await.status, 409);
    api.add(&admin, "carol", "administrator").await;
    assert_eq!(api.delete(&admin, "/admins/admin").await.status, 204);
    assert_eq!(
        api.get(&admin, "/status").await.status,
        401,
        "its sessions have ended"
    );
    assert_eq!(api.delete(&admin, "/admins/bob").await.status, 401);
}

#[tokio::test]
async fn a_new_password_ends_the_other_sessions() {
    let api = TestApi::with_admin("password");
    let (one, other) = (api.admin().await, api.admin().await);
    let new = "another long password";
    let wrong = json!({ "password": "wrong", "new_password": new });
    assert_eq!(api.post(&one, "/login/password", wrong).await.status, 401);
    let short = json!({ "password": PASSWORD, "new_password": "short" });
    assert_eq!(api.post(&one, "/login/password", short).await.status, 400);
    let right = json!({ "password": PASSWORD, "new_password": new });
    assert_eq!(api.post(&one, "/login/password", right).await.status, 204);
    assert_eq!(api.get(&one, "/status").await.status, 200);
    assert_eq!(api.get(&other, "/status").await.status, 401);
    let browser = Client::browser("192.0.2.1");
    assert_eq!(api.log_in(&browser, "admin", PASSWORD).await.status, 401);
    assert_eq!(api.log_in(&browser, "admin", new).await.status, 200);
    let reset = json!({ "password": PASSWORD });
    assert_eq!(
        api.post(&one, "/admins/admin/password", reset).await.status,
        204
    );
    assert_eq!(api.get(&one, "/status").await.status, 401);
    let missing = api.admin().await;
    let answer = api
        .post(
            &missing,
            "/admins/eve/password",
            json!({ "password": PASSWORD }),
        )
        .await;
    assert_eq!(answer.status, 404);
}

#[tokio::test]
async fn administrators_are_listed_and_kept() {
    let api = TestApi::with_admin("kept");
    let admin = api.admin().await;
    api.add(&admin, "bob", "viewer").await;
    let twice = json!({ "name": "bob", "role": "viewer", "password": PASSWORD });
    assert_eq!(api.post(&admin, "/admins", twice).await.status, 409);
    for (name, password) in [("a b", PASSWORD), ("local", PASSWORD), ("carol", "short")] {
        let body = json!({ "name": name, "role": "viewer", "password": password });
        assert_eq!(
            api.post(&admin, "/admins", body).await.status,
            400,
            "{name}"
        );
    }
    let list = api.get(&admin, "/admins").await.body;
    assert!(!list.to_string().contains("argon2"), "{list}");
    let list = list["administrators"].as_array().unwrap();
    assert_eq!(
        (&list[0]["name"], &list[0]["sessions"]),
        (&json!("admin"), &json!(1))
    );
    assert_eq!(
        (&list[1]["name"], &list[1]["role"]),
        (&json!("bob"), &json!("viewer"))
    );
    let path = api.folder.join("administrators.jsonl");
    let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let kept = Login::open(Some(&api.folder), Clock::manual().0).unwrap();
    let accounts = kept.current();
    let names: Vec<&str> = accounts.administrators.keys().map(|name| &**name).collect();
    assert_eq!(names, ["admin", "bob"]);
    let text = std::fs::read_to_string(&path).unwrap();
    for (damage, expected) in [
        (text.replace("viewer", "king"), ":2: \"king\" is no role"),
        (
            text.replace("$argon2id", "$rot13"),
            ":1: no known password hash",
        ),
        (
            text.clone() + &text,
            ":3: this administrator or key is there twice",
        ),
        (
            text[..text.len() - 20].to_owned(),
            ":2: no line of administrators and keys",
        ),
    ] {
        std::fs::write(&path, damage).unwrap();
        let error = Login::open(Some(&api.folder), Clock::manual().0).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
