//! The log as a stream of events, and what is looked for in it.

use http_body_util::BodyExt as _;

use super::*;

/// A stream of events.
async fn follow(operated: &Operated, path: &str, last: Option<&str>) -> Response {
    follow_as(operated, &operated.admin, path, last).await
}

async fn follow_as(
    operated: &Operated,
    client: &Client,
    path: &str,
    last: Option<&str>,
) -> Response {
    let request = client.request(Method::GET, path);
    let mut request = request.header("accept", "text/event-stream");
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    let service = TowerToHyperService::new(operated.api.router.clone());
    let request = request.body(Body::empty()).unwrap();
    service.call(request).await.unwrap()
}

async fn piece(answer: &mut Response) -> Option<String> {
    let frame = answer.body_mut().frame().await?.unwrap();
    let data = frame.into_data().unwrap();
    Some(String::from_utf8(data.to_vec()).unwrap())
}

#[tokio::test]
async fn a_text_is_found_in_any_case_and_is_short() {
    let operated = Operated::new("text").await;
    operated.logs.push(event(1, LogLevel::Info));
    let found = operated.get("/logs?text=EvEnT").await;
    assert_eq!(found.body["events"].as_array().unwrap().len(), 1);
    let longest = format!("/logs?text={}", "x".repeat(256));
    assert_eq!(operated.get(&longest).await.status, 200);
    let refused = operated.get(&format!("{longest}x")).await;
    assert_eq!(refused.status, 400);
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(detail.contains("256 bytes, not 257"), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn followers_get_events_as_they_come_and_are_told_what_they_missed() {
    let operated = Operated::new("follow").await;
    operated.logs.push(event(1, LogLevel::Info));
    let mut answer = follow(&operated, "/logs?level=warn", None).await;
    assert_eq!(answer.headers()[CONTENT_TYPE], "text/event-stream");
    operated.logs.push(event(2, LogLevel::Info));
    operated.logs.push(event(3, LogLevel::Error));
    let text = piece(&mut answer).await.unwrap();
    assert!(text.starts_with("id: 3\nevent: log\ndata: {"), "{text}");
    assert!(text.ends_with("}\n\n"), "{text}");
    // Nothing comes: a comment, so that the end of the reader is noticed.
    assert_eq!(piece(&mut answer).await.as_deref(), Some(":\n\n"));
    let long = "x".repeat(4000);
    for number in 4..=1000 {
        let mut event = event(number, LogLevel::Error);
        event.text.clone_from(&long);
        operated.logs.push(event);
    }
    let text = piece(&mut answer).await.unwrap();
    assert!(
        text.starts_with("event: missed\ndata: {\"events\":"),
        "{}",
        &text[..60]
    );
    let resumed = follow(&operated, "/logs", Some("998")).await;
    let text = piece(&mut { resumed }).await.unwrap();
    assert!(text.starts_with("id: 999\n"), "{}", &text[..60]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_after_its_time_and_one_caller_has_few() {
    let operated = Operated::new("streams").await;
    let mut streams = Vec::new();
    loop {
        let answer = follow(&operated, "/logs", None).await;
        if answer.status() != 200 {
            assert_eq!(answer.status(), 429, "places are left for others");
            break;
        }
        streams.push(answer);
    }
    assert_eq!(streams.len(), 12);
    let mut first = streams.swap_remove(0);
    let mut comments = 0;
    while let Some(text) = piece(&mut first).await {
        assert_eq!(text, ":\n\n");
        comments += 1;
    }
    assert!((30..60).contains(&comments), "{comments}");
    drop(first);
    assert_eq!(follow(&operated, "/logs", None).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_the_log_ends_with_its_key_and_with_the_broker() {
    let mut operated = Operated::new("ended-streams").await;
    let key = operated.api.key(&operated.admin, &["logs:read"]).await;
    let mut of_key = follow_as(&operated, &key, "/logs", None).await;
    let mut of_admin = follow(&operated, "/logs", None).await;
    let keys = operated.get("/keys").await;
    let id = keys.body["keys"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/keys/{id}");
    assert_eq!(
        operated.api.delete(&operated.admin, &path).await.status,
        204
    );
    let end = piece(&mut of_key).await.unwrap();
    assert!(
        end.contains("event: end") && end.contains("login_ended"),
        "{end}"
    );
    assert_eq!(piece(&mut of_key).await, None);
    operated.api.broker.take().unwrap().stop();
    let end = loop {
        let text = piece(&mut of_admin).await.unwrap();
        if text != ":\n\n" {
            break text;
        }
    };
    assert!(
        end.contains("event: end") && end.contains("stopping"),
        "{end}"
    );
    assert_eq!(piece(&mut of_admin).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_the_log_gets_its_share_and_no_line_twice() {
    let operated = Operated::new("share").await;
    let mut answer = follow(&operated, "/logs", None).await;
    let long = "x".repeat(4000);
    for number in 1..=200 {
        let mut event = event(number, LogLevel::Info);
        event.text.clone_from(&long);
        operated.logs.push(event);
    }
    let begin = tokio::time::Instant::now();
    let (mut text, mut at_once) = (String::new(), 0);
    while !text.contains("id: 200\n") {
        text.push_str(&piece(&mut answer).await.unwrap());
        if begin.elapsed() < Duration::from_millis(500) {
            at_once = text.len();
        }
    }
    assert!(at_once < 320 * 1024, "{at_once}");
    // 200 lines of 4 KB, of which 256 KiB come at once.
    assert!(
        begin.elapsed() >= Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("id: "))
        .collect();
    assert_eq!(lines.len(), 200);
}
