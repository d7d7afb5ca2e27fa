//! The setup link, logins and sessions.

use tokio::join;

use super::*;

fn setup_token(api: &TestApi) -> String {
    let token = api.security.login.renew_setup().unwrap();
    token.to_string()
}

fn setup(token: &str, name: &str) -> Value {
    json!({ "token": token, "name": name, "password": PASSWORD })
}

#[tokio::test]
async fn a_setup_link_makes_the_first_administrator_once() {
    let api = TestApi::new("setup");
    let browser = Client::browser("192.0.2.1");
    let who = api.get(&browser, "/login").await;
    assert_eq!((who.status, &who.body["set_up"]), (200, &json!(false)));
    let token = setup_token(&api);
    let short = json!({ "token": token, "name": "alice", "password": "short" });
    let refused = api.post(&browser, "/login/setup", short).await;
    assert_eq!(refused.status, 400, "{}", refused.body);
    let wrong = api
        .post(&browser, "/login/setup", setup(&token[1..], "alice"))
        .await;
    assert_eq!(
        (wrong.status, &wrong.body["title"]),
        (403, &json!("setup link not valid"))
    );
    let made = api
        .post(&browser, "/login/setup", setup(&token, "alice"))
        .await;
    assert_eq!(made.status, 200, "{}", made.body);
    let alice = browser.with_session(&made);
    let who = api.get(&alice, "/login").await;
    assert_eq!(who.body["name"], "alice");
    assert_eq!(who.body["scopes"], json!(["admin"]));
    let again = api
        .post(&browser, "/login/setup", setup(&token, "mallory"))
        .await;
    assert_eq!(again.status, 403);
    let other = api.post(&alice, "/setup-link", Value::Null).await;
    assert_eq!(
        (other.status, &other.body["title"]),
        (409, &json!("already set up"))
    );
    let log = api.audit(&alice, 10).await;
    let made = json!(["anonymous", "administrator.add", "alice", "done"]);
    assert!(log.contains(&made), "{log:?}");
}

#[tokio::test]
async fn of_requests_with_the_same_setup_link_at_once_one_makes_an_administrator() {
    let api = TestApi::new("setup-race");
    let token = setup_token(&api);
    let browser = Client::browser("192.0.2.1");
    let one = api.post(&browser, "/login/setup", setup(&token, "alice"));
    let other = api.post(&browser, "/login/setup", setup(&token, "mallory"));
    let (one, other) = join!(one, other);
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert!(matches!(statuses, [200, 403 | 429]), "{statuses:?}");
    assert_eq!(api.security.login.current().administrators.len(), 1);
}

#[tokio::test]
async fn a_newer_setup_link_ends_the_one_before_and_an_administrator_ends_both() {
    let api = TestApi::new("setup-newer");
    let (first, second) = (setup_token(&api), setup_token(&api));
    let browser = Client::browser("192.0.2.1");
    let refused = api
        .post(&browser, "/login/setup", setup(&first, "alice"))
        .await;
    assert_eq!(refused.status, 403);
    let password = Secret::from(PASSWORD);
    assert!(api.security.make_first_administrator(&password).unwrap());
    assert!(!api.security.make_first_administrator(&password).unwrap());
    let refused = api
        .post(&browser, "/login/setup", setup(&second, "alice"))
        .await;
    assert_eq!(refused.status, 403);
}

#[tokio::test]
async fn a_wrong_name_and_a_wrong_password_have_the_same_answer() {
    let api = TestApi::with_admin("wrong");
    let browser = Client::browser("192.0.2.1");
    let password = api.log_in(&browser, "admin", "wrong").await;
    let name = api.log_in(&browser, "nobody", PASSWORD).await;
    assert_eq!((password.status, name.status), (401, 401));
    assert_eq!(password.body, name.body);
    assert!(password.cookie.is_none());
    let admin = api.admin().await;
    let log = api.audit(&admin, 3).await;
    assert_eq!(
        log,
        [
            json!(["admin", "login", "admin", "done"]),
            json!(["anonymous", "login", "nobody", "refused"]),
            json!(["anonymous", "login", "admin", "refused"]),
        ]
    );
}

#[tokio::test]
async fn a_name_that_does_not_exist_takes_as_long_as_one_that_does() {
    let api = TestApi::with_admin("timing");
    let took = async |name: &str, place: u8| {
        let browser = Client::browser(&format!("198.51.{place}.1"));
        let began = tokio::time::Instant::now();
        let answer = api.log_in(&browser, name, "wrong").await;
        assert_eq!(answer.status, 401);
        began.elapsed()
    };
    let (mut known, mut unknown) = (Duration::MAX, Duration::MAX);
    // The shortest of each count, so that other work of the machine does not.
    for place in 0..4 {
        known = known.min(took("admin", 2 * place).await);
        unknown = unknown.min(took("nobody", 2 * place + 1).await);
    }
    assert!(unknown * 3 > known, "{unknown:?} and {known:?}");
    assert!(known * 3 > unknown, "{unknown:?} and {known:?}");
}

#[tokio::test]
async fn a_login_begins_a_new_session_and_ends_the_one_of_before() {
    let api = TestApi::with_admin("fixation");
    let first = api.admin().await;
    let planted =
        Client::browser("192.0.2.1").with("cookie", &format!("thrum_session={}", "A".repeat(43)));
    let answer = api.log_in(&planted, "admin", PASSWORD).await;
    assert_eq!(answer.status, 200);
    assert!(!answer.cookie.as_deref().unwrap().contains("AAAAAAAAAA"));
    let after = api.get(&planted, "/login").await;
    assert_eq!(
        after.body["means"], "anonymous",
        "the planted cookie is worth nothing"
    );
    let answer = api.log_in(&first, "admin", PASSWORD).await;
    assert_eq!(answer.status, 200);
    assert_eq!(api.get(&first, "/login").await.body["means"], "anonymous");
    let second = Client::browser("192.0.2.1").with_session(&answer);
    assert_eq!(api.get(&second, "/login").await.body["means"], "session");
}

#[tokio::test]
async fn a_change_by_cookie_needs_a_page_of_ours_and_the_token_of_the_session() {
    let api = TestApi::with_admin("csrf");
    let admin = api.admin().await;
    let other = api.admin().await;
    let body = || json!({ "topic": "a", "payload": "x" });
    let site = HeaderName::from_static("sec-fetch-site");
    let token = HeaderName::from_static(TOKEN_HEADER);
    let value_of = |client: &Client, name: &HeaderName| {
        let mut fields = client.fields.iter();
        fields.find(|(other, _)| other == name).unwrap().1.clone()
    };
    for (client, title) in [
        (admin.with("sec-fetch-site", "cross-site"), "other origin"),
        (admin.with("sec-fetch-site", "same-site"), "other origin"),
        (
            admin.without(&site).with("origin", "http://evil.example"),
            "other origin",
        ),
        (admin.without(&site).with("origin", "null"), "other origin"),
        (admin.without(&site), "no origin"),
        (admin.without(&token), "no token"),
        (
            admin.with(TOKEN_HEADER, &value_of(&other, &token)),
            "no token",
        ),
        (admin.with(TOKEN_HEADER, ""), "no token"),
    ] {
        let refused = api.post(&client, "/publish", body()).await;
        assert_eq!(
            (refused.status, &refused.body["title"]),
            (403, &json!(title)),
            "{client:?}"
        );
        // Reading needs no token: other pages cannot read the answer.
        assert_eq!(api.get(&client, "/status").await.status, 200);
        let log = api.audit(&other, 1).await;
        let tried = json!(["admin", "request", "POST /api/v1/publish", "refused"]);
        assert_eq!(log, [tried], "the cookie tells who it was");
    }
    let program = api.post(&admin.without(&site), "/publish", body()).await;
    let remedy = program.body["remedy"].as_str().unwrap();
    assert!(remedy.contains("Authorization: Bearer KEY"), "{remedy}");
    let own = admin.without(&site).with("origin", "http://broker.example");
    for client in [admin, own] {
        let done = api.post(&client, "/publish", body()).await;
        assert_eq!(done.status, 200, "{}", done.body);
    }
}

#[tokio::test]
async fn another_page_can_neither_log_in_nor_set_up() {
    let api = TestApi::with_admin("login-csrf");
    let page = Client::program("192.0.2.1").with("origin", "https://evil.example");
    let refused = api.log_in(&page, "admin", PASSWORD).await;
    assert_eq!(
        (refused.status, &refused.body["title"]),
        (403, &json!("other origin"))
    );
    assert!(refused.cookie.is_none());
    let refused = api.post(&page, "/login/setup", setup("a", "alice")).await;
    assert_eq!(refused.body["title"], "other origin");
    let program = Client::program("192.0.2.1");
    assert_eq!(api.log_in(&program, "admin", PASSWORD).await.status, 200);
}

#[tokio::test]
async fn a_session_ends_by_time_by_its_owner_and_by_an_administrator() {
    let api = TestApi::with_admin("ends");
    let admin = api.admin().await;
    api.add(&admin, "bob", "viewer").await;
    let bob = api
        .session(&Client::browser("198.51.100.1"), "bob", PASSWORD)
        .await;
    let out = api.delete(&bob, "/login").await;
    assert_eq!(out.status, 204);
    assert!(out.cookie.unwrap().contains("Max-Age=0"));
    assert_eq!(api.get(&bob, "/status").await.status, 401);
    let bob = api
        .session(&Client::browser("198.51.100.1"), "bob", PASSWORD)
        .await;
    let own = api.get(&bob, "/login/sessions").await;
    let own = own.body["sessions"].as_array().unwrap();
    assert_eq!((own.len(), &own[0]["current"]), (1, &json!(true)));
    assert_eq!(own[0]["address"], "198.51.100.1");
    let all = api.get(&admin, "/sessions").await;
    let all = all.body["sessions"].as_array().unwrap().clone();
    let names: Vec<&Value> = all.iter().map(|one| &one["administrator"]).collect();
    assert_eq!(names, ["admin", "bob"]);
    assert_eq!(api.get(&bob, "/sessions").await.status, 403);
    let id = |one: &Value| one["id"].as_str().unwrap().to_owned();
    let others = api
        .delete(&bob, &format!("/login/sessions/{}", id(&all[0])))
        .await;
    assert_eq!(others.status, 404, "it is not bob's");
    let ended = api
        .delete(&admin, &format!("/sessions/{}", id(&all[1])))
        .await;
    assert_eq!(ended.status, 204);
    assert_eq!(api.get(&bob, "/status").await.status, 401);
    api.move_on(Duration::from_mins(59));
    assert_eq!(api.get(&admin, "/status").await.status, 200);
    api.move_on(Duration::from_hours(1));
    assert_eq!(api.get(&admin, "/status").await.status, 401);
}

#[tokio::test]
async fn the_cookie_of_tls_is_another_one() {
    let api = TestApi::with_admin("tls");
    let mut browser = Client::browser("192.0.2.1");
    browser.is_tls = true;
    let answer = api.log_in(&browser, "admin", PASSWORD).await;
    let cookie = answer.cookie.as_deref().unwrap();
    assert!(
        cookie.starts_with("__Host-thrum_session=") && cookie.ends_with("; Secure"),
        "{cookie}"
    );
    let mut admin = browser.with_session(&answer);
    assert_eq!(api.get(&admin, "/status").await.status, 200);
    admin.is_tls = false;
    assert_eq!(api.get(&admin, "/status").await.status, 401);
}

#[tokio::test]
async fn a_broker_without_provider_says_so() {
    let api = TestApi::with_admin("no-provider");
    let browser = Client::browser("192.0.2.1");
    assert_eq!(api.get(&browser, "/login").await.body["oidc"], false);
    for path in ["/login/oidc", "/login/oidc/callback?code=a&state=b"] {
        assert_eq!(api.get(&browser, path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn a_request_without_a_known_address_is_an_error_and_not_a_login() {
    let api = TestApi::with_admin("no-peer");
    let request = Request::builder().uri("/api/v1/login").body(Body::empty());
    let service = TowerToHyperService::new(api.router.clone());
    let answer = service.call(request.unwrap()).await.unwrap();
    assert_eq!(answer.status().as_u16(), 500);
}
