//! Guesses, floods, and who is not kept out by them.

use futures_util::future::join_all;

use super::*;

#[tokio::test]
async fn an_address_that_guesses_has_to_wait_and_others_have_not() {
    let api = TestApi::with_admin("guesses");
    let known = Client::browser("203.0.113.7");
    api.session(&known, "admin", PASSWORD).await;
    let guesser = Client::browser("192.0.2.1");
    for _ in 0..6 {
        assert_eq!(api.log_in(&guesser, "admin", "wrong").await.status, 401);
    }
    // Also the right password has to wait, else it could be guessed for ever.
    let slowed = api.log_in(&guesser, "admin", PASSWORD).await;
    assert_eq!(
        (slowed.status, slowed.retry_after),
        (429, Some(1)),
        "{}",
        slowed.body
    );
    assert_eq!(slowed.body["retry_after_secs"], 1);
    let unknown = api.log_in(&guesser, "nobody", PASSWORD).await;
    assert_eq!(unknown.status, 429);
    for other in [&known, &Client::browser("198.51.100.1")] {
        assert_eq!(api.log_in(other, "admin", PASSWORD).await.status, 200);
    }
    api.move_on(Duration::from_secs(1));
    assert_eq!(api.log_in(&guesser, "admin", PASSWORD).await.status, 200);
}

#[tokio::test]
async fn guesses_at_the_same_time_count_each_other() {
    let api = TestApi::with_admin("parallel");
    let guesser = Client::browser("192.0.2.1");
    let guesses = (0..50).map(|_| api.log_in(&guesser, "admin", "wrong"));
    let answers = join_all(guesses).await;
    let count = |status: u16| {
        answers
            .iter()
            .filter(|answer| answer.status == status)
            .count()
    };
    assert!(count(401) <= 6, "{} guesses were verified", count(401));
    assert_eq!(count(401) + count(429), 50);
}

#[tokio::test]
async fn a_flood_of_logins_runs_few_hashes_and_leaves_one_for_known_addresses() {
    let api = TestApi::with_admin("flood");
    let known = Client::browser("203.0.113.7");
    api.session(&known, "admin", PASSWORD).await;
    let flood: Vec<Client> = (0..15)
        .map(|place| Client::browser(&format!("198.51.{place}.1")))
        .collect();
    let guesses = flood
        .iter()
        .map(|client| api.log_in(client, "admin", "wrong"));
    let own = api.log_in(&known, "admin", PASSWORD);
    let (answers, own) = tokio::join!(join_all(guesses), own);
    let busy = answers
        .iter()
        .filter(|answer| answer.body["title"] == "too many logins");
    assert!(busy.clone().count() >= 10, "{answers:?}");
    assert!(busy.clone().all(|answer| answer.retry_after == Some(1)));
    assert_eq!(own.status, 200, "{}", own.body);
}

#[tokio::test]
async fn a_flood_of_refusals_does_not_fill_the_audit_log() {
    let api = TestApi::with_admin("refusals");
    let stranger = Client::program("192.0.2.9").with_key("thrum_abcdefgh_wrong");
    for _ in 0..200 {
        assert_eq!(api.get(&stranger, "/status").await.status, 401);
    }
    let admin = api.admin().await;
    let refused = api.audit(&admin, 1000).await;
    let refused = refused.iter().filter(|entry| entry[3] == "refused").count();
    assert_eq!(refused, 60);
    api.move_on(Duration::from_secs(10));
    api.get(&stranger, "/status").await;
    let page = api.get(&admin, "/audit?limit=1").await;
    let detail = page.body["entries"][0]["detail"].as_str().unwrap();
    assert!(
        detail.contains("(140 refusals before it are left out)"),
        "{detail}"
    );
}
