//! One-time codes and recovery codes.

use super::*;
use crate::api::refusals::CODE_NEEDED;
use crate::login::code_at;

/// Adds one-time codes; returns the secret and the recovery codes.
async fn enrol(api: &TestApi, admin: &Client) -> (String, Vec<String>) {
    let begun = api
        .post(admin, "/login/totp", json!({ "password": PASSWORD }))
        .await;
    assert_eq!(begun.status, 200, "{}", begun.body);
    let secret = begun.body["secret"].as_str().unwrap().to_owned();
    assert!(begun.body["address"].as_str().unwrap().contains(&secret));
    let wrong = api
        .post(admin, "/login/totp/confirm", json!({ "code": "000000x" }))
        .await;
    assert_eq!(wrong.status, 400);
    let code = code_at(&secret, api.now());
    let confirmed = api
        .post(admin, "/login/totp/confirm", json!({ "code": code }))
        .await;
    assert_eq!(confirmed.status, 200, "{}", confirmed.body);
    let codes = confirmed.body["recovery_codes"].as_array().unwrap().iter();
    let codes = codes
        .map(|code| code.as_str().unwrap().to_owned())
        .collect();
    (secret, codes)
}

impl TestApi {
    fn now(&self) -> u64 {
        self.security.login.now().wall_millis
    }

    async fn log_in_with(&self, client: &Client, code: &str) -> Answer {
        let body = json!({ "name": "admin", "password": PASSWORD, "code": code });
        self.post(client, "/login", body).await
    }
}

#[tokio::test]
async fn a_login_needs_the_code_which_works_once() {
    let api = TestApi::with_admin("totp");
    let admin = api.admin().await;
    let browser = Client::browser("192.0.2.1");
    let wrong = api
        .post(&admin, "/login/totp", json!({ "password": "wrong" }))
        .await;
    assert_eq!(wrong.status, 401, "a stolen session is not enough");
    let (secret, _) = enrol(&api, &admin).await;
    let needed = api.log_in(&browser, "admin", PASSWORD).await;
    assert_eq!(
        (needed.status, &needed.body["title"]),
        (401, &json!(CODE_NEEDED))
    );
    let wrong = api.log_in(&browser, "admin", "wrong").await;
    assert_eq!(
        wrong.body["title"], "wrong login",
        "only the right password is told of the code"
    );
    let used = code_at(&secret, api.now());
    assert_eq!(
        api.log_in_with(&browser, &used).await.status,
        401,
        "it confirmed the secret"
    );
    api.move_on(Duration::from_mins(1));
    let code = code_at(&secret, api.now());
    assert_eq!(api.log_in_with(&browser, &code).await.status, 200);
    assert_eq!(
        api.log_in_with(&browser, &code).await.status,
        401,
        "it was used"
    );
    api.move_on(Duration::from_secs(30));
    let code = code_at(&secret, api.now());
    assert_eq!(api.log_in_with(&browser, &code).await.status, 200);
    let kept = std::fs::read_to_string(api.folder.join("administrators.jsonl")).unwrap();
    assert!(kept.contains(&secret), "it is needed to verify codes");
    let log = std::fs::read_dir(api.folder.join("audit")).unwrap();
    for file in log {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains(&secret) && !text.contains(PASSWORD) && text.contains("totp.add"));
    }
}

#[tokio::test]
async fn a_recovery_code_works_once_also_after_a_restart() {
    let api = TestApi::with_admin("recovery");
    let admin = api.admin().await;
    let (_, codes) = enrol(&api, &admin).await;
    assert_eq!(codes.len(), 10);
    let browser = Client::browser("192.0.2.1");
    assert_eq!(api.log_in_with(&browser, &codes[0]).await.status, 200);
    assert_eq!(api.log_in_with(&browser, &codes[0]).await.status, 401);
    let kept = Login::open(Some(&api.folder), Clock::manual().0).unwrap();
    let admin = kept.current().administrator("admin").unwrap().clone();
    assert_eq!(admin.recovery_codes_left(), 9);
    let loose = codes[1].replace('-', "").to_lowercase();
    assert_eq!(api.log_in_with(&browser, &loose).await.status, 200);
}

#[tokio::test]
async fn guesses_of_codes_are_slowed_like_those_of_passwords() {
    let api = TestApi::with_admin("codes");
    let admin = api.admin().await;
    let (secret, _) = enrol(&api, &admin).await;
    api.move_on(Duration::from_mins(5));
    let guesser = Client::browser("198.51.100.1");
    for _ in 0..6 {
        assert_eq!(api.log_in_with(&guesser, "abcdefgh").await.status, 401);
    }
    let code = code_at(&secret, api.now());
    assert_eq!(api.log_in_with(&guesser, &code).await.status, 429);
}

#[tokio::test]
async fn codes_are_removed_with_the_password_and_by_an_administrator() {
    let api = TestApi::with_admin("totp-removed");
    let admin = api.admin().await;
    enrol(&api, &admin).await;
    let wrong = api
        .post(&admin, "/login/totp/remove", json!({ "password": "wrong" }))
        .await;
    assert_eq!(wrong.status, 401);
    let removed = api
        .post(
            &admin,
            "/login/totp/remove",
            json!({ "password": PASSWORD }),
        )
        .await;
    assert_eq!(removed.status, 204);
    let browser = Client::browser("192.0.2.1");
    assert_eq!(api.log_in(&browser, "admin", PASSWORD).await.status, 200);
    enrol(&api, &admin).await;
    let reset = json!({ "password": "another long password", "remove_totp": true });
    assert_eq!(
        api.post(&admin, "/admins/admin/password", reset)
            .await
            .status,
        204
    );
    assert_eq!(
        api.log_in(&browser, "admin", "another long password")
            .await
            .status,
        200
    );
}
