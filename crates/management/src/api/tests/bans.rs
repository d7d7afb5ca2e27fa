//! `/bans` and `/clients/{id}/ban`.

use super::*;

#[tokio::test]
async fn a_ban_is_listed_replaced_and_lifted() {
    let api = TestApi::with_admin("bans");
    let admin = api.admin().await;
    let body = json!({ "client_id": "meter-7", "reason": "sends garbage", "secs": 3600 });
    let added = api.post(&admin, "/bans", body).await;
    assert_eq!(added.status, 201, "{}", added.body);
    assert_eq!(added.body["replaced"], Value::Null);
    let ban = &added.body["ban"];
    assert_eq!(
        (&ban["client_id"], &ban["by"], &ban["temporary"]),
        (&json!("meter-7"), &json!("admin"), &json!(false))
    );
    assert!(ban["until"].as_str().unwrap() > ban["since"].as_str().unwrap());
    let again = api
        .post(&admin, "/bans", json!({ "client_id": "meter-7" }))
        .await;
    assert_eq!(again.body["replaced"]["reason"], "sends garbage");
    assert_eq!(again.body["ban"]["until"], Value::Null);
    let list = api.get(&admin, "/bans").await;
    assert_eq!(
        (&list.body["matching"], &list.body["next"]),
        (&json!(1), &Value::Null)
    );
    let lifted = api.delete(&admin, "/bans?client_id=meter-7").await;
    assert_eq!(lifted.status, 204, "{}", lifted.body);
    let missing = api.delete(&admin, "/bans?client_id=meter-7").await;
    assert_eq!(
        (missing.status, &missing.body["title"]),
        (404, &json!("not banned"))
    );
    assert_eq!(api.get(&admin, "/bans").await.body["bans"], json!([]));
    let log = api.audit(&admin, 4).await;
    assert_eq!(
        log[0],
        json!(["admin", "ban.remove", "client \"meter-7\"", "failed"])
    );
    assert_eq!(
        log[3],
        json!(["admin", "ban.add", "client \"meter-7\"", "done"])
    );
}

#[tokio::test]
async fn bans_are_listed_by_page_filter_and_order() {
    let api = TestApi::with_admin("bans-list");
    let admin = api.admin().await;
    for number in 0..7 {
        let body = json!({ "client_id": format!("c{number}"), "secs": 1000 - 100 * number });
        assert_eq!(api.post(&admin, "/bans", body).await.status, 201);
    }
    for body in [
        json!({ "user": "guest", "client_id": "c1" }),
        json!({ "address": "192.0.2.0/24" }),
        json!({ "address": "2001:db8::/32", "until": "2099-01-01T00:00:00Z" }),
    ] {
        let added = api.post(&admin, "/bans", body).await;
        assert_eq!(added.status, 201, "{}", added.body);
    }
    let all = api.pages(&admin, "/bans?limit=3", "bans").await;
    assert_eq!(all.len(), 10);
    let soonest = api.pages(&admin, "/bans?limit=4&sort=until", "bans").await;
    assert_eq!(soonest[0]["client_id"], "c6");
    assert_eq!(soonest.len(), 10);
    let mut reversed = api
        .pages(&admin, "/bans?limit=4&sort=until&descending=true", "bans")
        .await;
    reversed.reverse();
    assert_eq!(reversed, soonest);
    for (filter, count) in [
        ("client_id=c1", 2),
        ("user=guest", 1),
        ("address=192.0.2.7", 1),
        ("address=192.0.0.0/16", 1),
        ("address=198.51.100.1", 0),
        ("temporary=true", 0),
        ("temporary=false", 10),
    ] {
        let page = api.get(&admin, &format!("/bans?{filter}")).await;
        assert_eq!(page.body["matching"], count, "{filter}");
    }
}

#[tokio::test]
async fn a_wrong_ban_is_refused_with_what_is_wrong() {
    let api = TestApi::with_admin("bans-wrong");
    let admin = api.admin().await;
    for (body, said) in [
        (json!({}), "name client_id, user or address"),
        (
            json!({ "user": "a", "address": "192.0.2.1" }),
            "name client_id, user or address",
        ),
        (json!({ "client_id": "" }), "client_id has 1 to"),
        (json!({ "address": "here" }), "address: expected an address"),
        (
            json!({ "client_id": "a", "address": "192.0.2.0/24" }),
            "takes one address",
        ),
        (
            json!({ "client_id": "a", "secs": 0 }),
            "would have ended already",
        ),
        (
            json!({ "client_id": "a", "until": "2001-01-01T00:00:00Z" }),
            "would have ended already",
        ),
        (
            json!({ "client_id": "a", "secs": 5, "until": "2099-01-01T00:00:00Z" }),
            "not both",
        ),
        (
            json!({ "client_id": "a", "until": "soon" }),
            "until: expected",
        ),
        (
            json!({ "client_id": "a", "until": "9999-12-31T00:00:00Z" }),
            "before 9999-12-30",
        ),
        (
            json!({ "client_id": "a\u{0}" }),
            "client_id has no character",
        ),
        (
            json!({ "client_id": "a", "reason": "x".repeat(1025) }),
            "at most 1024 bytes",
        ),
        (json!({ "client_id": "a", "colour": "red" }), "colour"),
    ] {
        let refused = api.post(&admin, "/bans", body.clone()).await;
        let detail = refused.body["detail"].as_str().unwrap_or_default();
        assert_eq!(refused.status, 400, "{body}");
        assert!(detail.contains(said), "{body}: {detail}");
        assert!(!refused.body["remedy"].as_str().unwrap().is_empty());
    }
    for bad in [
        "limit=0",
        "cursor=x",
        "sort=size",
        "address=x",
        "colour=red",
    ] {
        assert_eq!(
            api.get(&admin, &format!("/bans?{bad}")).await.status,
            400,
            "{bad}"
        );
    }
    assert_eq!(api.get(&admin, "/bans").await.body["matching"], 0);
}

#[tokio::test]
async fn a_ban_disconnects_unless_it_says_no() {
    let api = TestApi::with_admin("bans-kept");
    let admin = api.admin().await;
    for (path, body, expected) in [
        ("/bans", json!({ "client_id": "a" }), true),
        (
            "/bans",
            json!({ "client_id": "b", "disconnect": true }),
            true,
        ),
        (
            "/bans",
            json!({ "client_id": "c", "disconnect": false }),
            false,
        ),
        ("/clients/d/ban", json!({}), true),
        ("/clients/e/ban", json!({ "disconnect": false }), false),
    ] {
        let added = api.post(&admin, path, body.clone()).await;
        assert_eq!(added.status, 201, "{}", added.body);
        assert_eq!(added.body["ban"]["disconnect"], expected, "{path} {body}");
    }
    let list = api.get(&admin, "/bans").await;
    let kept: Vec<_> = list.body["bans"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ban| ban["disconnect"].clone())
        .collect();
    assert_eq!(json!(kept), json!([true, true, false, true, false]));
    let wrong = json!({ "client_id": "a", "disconnect": "no" });
    assert_eq!(api.post(&admin, "/bans", wrong).await.status, 400);
}

#[tokio::test]
async fn a_client_is_banned_by_its_identifier_or_not_at_all_without_a_session() {
    let api = TestApi::with_admin("bans-client");
    let admin = api.admin().await;
    let banned = api
        .post(&admin, "/clients/meter%2F7/ban", json!({ "reason": "x" }))
        .await;
    assert_eq!(banned.status, 201, "{}", banned.body);
    assert_eq!(banned.body["ban"]["client_id"], "meter/7");
    let missing = api
        .post(&admin, "/clients/nobody/ban", json!({ "by": "user" }))
        .await;
    assert_eq!(
        (missing.status, &missing.body["title"]),
        (404, &json!("no such client"))
    );
    let wrong = api
        .post(&admin, "/clients/a/ban", json!({ "by": "colour" }))
        .await;
    assert_eq!(wrong.status, 400, "{}", wrong.body);
    // Reading needs another scope than changing.
    let reader = api.key(&admin, &["clients:read"]).await;
    assert_eq!(api.get(&reader, "/bans").await.status, 200);
    for refused in [
        api.post(&reader, "/bans", json!({ "client_id": "a" }))
            .await,
        api.post(&reader, "/clients/a/ban", json!({})).await,
        api.delete(&reader, "/bans?client_id=a").await,
    ] {
        assert_eq!(
            (refused.status, &refused.body["title"]),
            (403, &json!("not permitted"))
        );
    }
}
