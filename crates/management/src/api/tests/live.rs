//! Live streams, history, topics and topic metrics, through the whole router.

use std::time::Duration;

use http_body_util::BodyExt as _;
use thrum_broker::{LIVE_FIGURES, OperatorMessage};
use tokio::time::timeout;

use super::*;

/// Much longer than a tick; the clock of streams is a virtual one.
const LONG: Duration = Duration::from_mins(2);

/// A stream that is open.
struct Events {
    body: Body,
    text: String,
}

impl Events {
    /// The next event: its name and its data. None at the end.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            let Some((event, rest)) = self.text.split_once("\n\n") else {
                self.receive().await?;
                continue;
            };
            let (found, rest) = (read(event), rest.to_owned());
            self.text = rest;
            if found.is_some() {
                return found;
            }
        }
    }

    /// Waits for more; none at the end.
    async fn receive(&mut self) -> Option<()> {
        let frame = timeout(LONG, self.body.frame()).await.unwrap()?;
        let bytes = frame.unwrap().into_data().unwrap();
        self.text.push_str(std::str::from_utf8(&bytes).unwrap());
        Some(())
    }

    /// The next event of that name.
    async fn of(&mut self, name: &str) -> Value {
        for _ in 0..200 {
            let (found, data) = self.next().await.unwrap();
            if found == name {
                return data;
            }
        }
        panic!("no event {name}");
    }
}

/// An event with its data; none for a comment.
fn read(event: &str) -> Option<(String, Value)> {
    let field = |name: &str| {
        let mut lines = event.lines().filter_map(|line| line.split_once(": "));
        lines.find_map(|(found, value)| (found == name).then(|| value.to_owned()))
    };
    let name = field("event")?;
    Some((name, serde_json::from_str(&field("data")?).unwrap()))
}

impl TestApi {
    /// The answer to a request for a stream.
    async fn stream(&self, client: &Client, path: &str, more: &[(&str, &str)]) -> Response {
        let mut request = Request::builder().uri(format!("{PREFIX}{path}"));
        request = request.header(HOST, "broker.example");
        for (name, value) in &client.fields {
            request = request.header(name, HeaderValue::from_str(value).unwrap());
        }
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        let peer = Peer {
            address: client.address,
            is_tls: false,
        };
        let request = request.extension(peer).body(Body::empty()).unwrap();
        let service = TowerToHyperService::new(self.router.clone());
        service.call(request).await.unwrap()
    }

    /// A stream that is answered.
    async fn open(&self, client: &Client, query: &str) -> Events {
        let answer = self.stream(client, &format!("/stream?{query}"), &[]).await;
        assert_eq!(answer.status(), 200, "{query}");
        Events {
            body: answer.into_body(),
            text: String::new(),
        }
    }

    fn queries(&self) -> Queries {
        self.broker.as_ref().unwrap().queries()
    }

    fn publish(&self, topic: &str, payload: &str) {
        let message = OperatorMessage {
            topic: topic.to_owned(),
            payload: payload.as_bytes().to_vec(),
            qos: thrum_codec::QoS::AtMostOnce,
            retain: false,
            expiry_secs: None,
        };
        self.queries().publish(&message).unwrap();
    }

    fn counter(&self, name: &str) -> u64 {
        let figures = self.queries().figures();
        let mut counters = figures.counters.iter();
        counters.find(|(found, _)| found == name).unwrap().1
    }

    /// A program with a key of these scopes.
    async fn program(&self, admin: &Client, scopes: &[&str]) -> (Client, String) {
        let body = json!({ "label": "live", "scopes": scopes, "expires_secs": null });
        let made = self.post(admin, "/keys", body).await;
        let key = made.body["key"].as_str().unwrap();
        let id = made.body["id"].as_str().unwrap().to_owned();
        (Client::program("192.0.2.60").with_key(key), id)
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_shows_what_it_declared_and_then_what_changes() {
    let api = TestApi::with_admin("stream");
    let admin = api.admin().await;
    let query = "figures=clients,messages_in&clients=&topics=&topic=site/a&every=250ms";
    let answer = api.stream(&admin, &format!("/stream?{query}"), &[]).await;
    let field = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(field("content-type"), "text/event-stream");
    assert_eq!(field("cache-control"), "no-store");
    assert_eq!(field("x-accel-buffering"), "no");
    let mut events = Events {
        body: answer.into_body(),
        text: String::new(),
    };
    let figures = events.of("figures").await;
    assert_eq!(figures["figures"]["clients"], 0.0);
    assert!(figures["at_ms"].is_u64());
    assert_eq!(figures["figures"].as_object().unwrap().len(), 2);
    let clients = events.of("clients").await;
    assert_eq!(
        (&clients["whole"], &clients["order"]),
        (&json!(true), &json!([]))
    );
    let topics = events.of("topics").await;
    assert_eq!(
        (&topics["under"], &topics["rows"]),
        (&json!(""), &json!([]))
    );
    let observed_since = topics["observed_since"].clone();
    assert!(observed_since.is_string(), "{topics}");
    assert_eq!(events.of("topic").await["topic"], "site/a");
    api.publish("site/a", "21.5");
    let (mut topics, mut topic) = (Value::Null, Value::Null);
    while topics.is_null() || topic.is_null() {
        match events.next().await.unwrap() {
            (name, data) if name == "topics" && topics.is_null() => topics = data,
            (name, data) if name == "topic" => topic = data,
            _ => {}
        }
    }
    assert_eq!(topics["order"], json!(["site"]));
    assert_eq!(topics["rows"][0]["messages"], 1);
    assert_eq!(topics["observed_since"], observed_since);
    assert_eq!(topic["detail"]["values"][0]["payload"], "21.5");
    assert_eq!(topic["detail"]["publishers"][0]["client_id"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn each_part_needs_its_scope_and_payloads_theirs() {
    let api = TestApi::with_admin("stream-scopes");
    let admin = api.admin().await;
    let (metrics, _) = api.program(&admin, &["metrics:read"]).await;
    for (query, status) in [
        ("figures=all", 200),
        ("clients=", 403),
        ("topics=", 403),
        ("figures=all&topic=a", 403),
        ("figures=none", 400),
    ] {
        let answer = api.stream(&metrics, &format!("/stream?{query}"), &[]).await;
        assert_eq!(answer.status(), status, "{query}");
    }
    let stranger = Client::program("192.0.2.9");
    let refused = api.get(&stranger, "/stream?figures=none").await;
    assert_eq!(
        (refused.status, &refused.body["title"]),
        (401, &json!("login needed"))
    );
    let (reader, _) = api.program(&admin, &["clients:read"]).await;
    let mut events = api.open(&reader, "topic=t&every=250ms").await;
    events.of("topic").await;
    api.publish("t", "secret");
    let topic = events.of("topic").await;
    let value = &topic["detail"]["values"][0];
    assert_eq!(
        (&value["payload"], &value["payload_bytes"]),
        (&Value::Null, &json!(6))
    );
    assert!(!topic.to_string().contains("secret"), "{topic}");
    let why = json!("they need the scope messages:read");
    assert_eq!(topic["payloads_left_out"], why);
    let mut level = api.open(&reader, "topics=&every=250ms").await;
    assert_eq!(level.of("topics").await["payloads_left_out"], why);
    // Another viewer of the same topic sees it.
    let mut events = api.open(&admin, "topic=t&every=250ms").await;
    let topic = events.of("topic").await;
    assert!(topic.to_string().contains("secret"), "{topic}");
    assert_eq!(topic["payloads_left_out"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_its_session_its_key_and_its_scope() {
    let api = TestApi::with_admin("stream-ends");
    let admin = api.admin().await;
    let (program, id) = api.program(&admin, &["metrics:read"]).await;
    let mut by_key = api.open(&program, "figures=all").await;
    by_key.of("figures").await;
    assert_eq!(api.delete(&admin, &format!("/keys/{id}")).await.status, 204);
    assert_eq!(by_key.of("end").await["reason"], "login_ended");
    assert!(by_key.next().await.is_none());
    api.add(&admin, "bob", "operator").await;
    let bob = api
        .session(&Client::browser("192.0.2.3"), "bob", PASSWORD)
        .await;
    let mut of_bob = api.open(&bob, "topics=&every=250ms").await;
    of_bob.of("topics").await;
    let role = json!({ "role": "viewer" });
    let changed = api.ask(&admin, Method::PATCH, "/admins/bob", role).await;
    assert_eq!(changed.status, 204, "{}", changed.body);
    let end = of_bob.of("end").await;
    assert_eq!(end["reason"], "scope_lost", "{end}");
    // A stream is no use of its session, which ends after an hour without a request.
    let mut of_admin = api.open(&admin, "figures=all").await;
    of_admin.of("figures").await;
    api.move_on(Duration::from_secs(3601));
    assert_eq!(of_admin.of("end").await["reason"], "login_ended");
}

#[tokio::test(start_paused = true)]
async fn viewers_are_bounded_for_each_login_and_for_all() {
    let api = TestApi::with_admin("stream-places");
    let admin = api.admin().await;
    let mut open = Vec::new();
    for _ in 0..12 {
        open.push(api.open(&admin, "figures=all").await);
    }
    let refused = api.get(&admin, "/stream?figures=all").await;
    assert_eq!((refused.status, refused.retry_after), (429, Some(5)));
    assert_eq!(refused.body["title"], "too many live streams");
    for number in 0..5 {
        let (program, _) = api.program(&admin, &["metrics:read"]).await;
        let places = if number < 4 { 12 } else { 4 };
        for _ in 0..places {
            open.push(api.open(&program, "figures=all").await);
        }
    }
    let (program, _) = api.program(&admin, &["metrics:read"]).await;
    let refused = api.get(&program, "/stream?figures=all").await;
    assert_eq!((refused.status, refused.retry_after), (503, Some(5)));
    assert_eq!(api.counter("streams/refused"), 2);
    open.pop();
    tokio::time::sleep(Duration::from_secs(1)).await;
    api.open(&program, "figures=all").await;
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_pauses_gets_the_newest_state_and_is_told_what_it_missed() {
    let api = TestApi::with_admin("stream-slow");
    let admin = api.admin().await;
    let mut events = api.open(&admin, "topics=&every=250ms").await;
    events.of("topics").await;
    for number in 0..5 {
        api.publish("t", &number.to_string());
        tokio::time::sleep(Duration::from_secs(1)).await;
        api.move_on(Duration::from_secs(1));
    }
    let mut skipped = 0;
    loop {
        let next = events.of("topics").await;
        skipped += next["skipped"].as_u64().unwrap_or(0);
        let payload = &next["rows"][0]["value"]["payload"];
        assert!(
            payload != "2" && payload != "3",
            "they passed while nobody read: {next}"
        );
        if payload == "4" {
            break;
        }
    }
    assert!(skipped >= 1, "{skipped}");
    assert!(api.counter("streams/states_skipped") >= 1);
    assert_eq!(api.counter("streams/cut"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_takes_nothing_is_cut_off_and_counted() {
    let api = TestApi::with_admin("stream-cut");
    let admin = api.admin().await;
    let mut events = api.open(&admin, "figures=all&every=250ms").await;
    events.of("figures").await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    events.of("figures").await;
    assert_eq!(api.counter("streams/cut"), 0, "it reads slowly");
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!(api.counter("streams/cut"), 1);
    let mut left = 0;
    while events.next().await.is_some() {
        left += 1;
    }
    assert!(left <= 2, "what waited for it: {left}");
    // One that reads and leaves is not counted.
    let mut events = api.open(&admin, "figures=all").await;
    events.of("figures").await;
    drop(events);
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!(api.counter("streams/cut"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_comes_back_gets_the_seconds_that_it_missed() {
    let api = TestApi::with_admin("stream-again");
    let admin = api.admin().await;
    let none = api.get(&admin, "/history").await;
    assert_eq!(
        (none.status, &none.body["title"]),
        (404, &json!("no history"))
    );
    for _ in 0..3 {
        api.queries().live().enter_second();
        pause(Duration::from_millis(2));
    }
    let history = api
        .get(&admin, "/history?figure=clients,memory_bytes")
        .await;
    assert_eq!(history.status, 200);
    assert_eq!(history.body["figures"].as_object().unwrap().len(), 2);
    assert_eq!(history.body["figures"]["clients"], json!([0.0, 0.0]));
    assert_eq!(history.body["units"]["memory_bytes"], "bytes");
    let first = history.body["at_ms"][0].as_u64().unwrap();
    let later = api.get(&admin, &format!("/history?since={first}")).await;
    assert_eq!(later.body["at_ms"].as_array().unwrap().len(), 1);
    assert_eq!(
        later.body["figures"].as_object().unwrap().len(),
        LIVE_FIGURES.len()
    );
    for wrong in ["figure=colour", "since=yesterday", "until=1"] {
        assert_eq!(
            api.get(&admin, &format!("/history?{wrong}")).await.status,
            400
        );
    }
    let last = first.to_string();
    let again = [("last-event-id", last.as_str())];
    let answer = api.stream(&admin, "/stream?figures=clients", &again).await;
    let mut events = Events {
        body: answer.into_body(),
        text: String::new(),
    };
    let missed = events.of("history").await;
    assert_eq!(missed["figures"], json!({ "clients": [0.0] }));
    let (reader, _) = api.program(&admin, &["clients:read"]).await;
    assert_eq!(api.get(&reader, "/history").await.status, 403);
}

#[tokio::test]
async fn topics_are_listed_by_page_and_shown_in_full() {
    let api = TestApi::with_admin("topics");
    let admin = api.admin().await;
    let empty = api.get(&admin, "/topics").await;
    assert_eq!((empty.status, &empty.body["topics"]), (200, &json!([])));
    assert_eq!(
        (&empty.body["next"], &empty.body["node"]["messages"]),
        (&Value::Null, &json!(0))
    );
    for topic in ["site/a", "site/b", "site/c/d"] {
        api.publish(topic, "x");
    }
    let page = api.get(&admin, "/topics?under=site/&limit=2").await.body;
    let names = |page: &Value| {
        let rows = page["topics"].as_array().unwrap().iter();
        rows.map(|row| row["topic"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&page), ["site/a", "site/b"]);
    assert_eq!(
        (&page["node"]["topic"], &page["others"]),
        (&json!("site"), &json!(0))
    );
    let next = page["next"].as_str().unwrap();
    let rest = api
        .get(&admin, &format!("/topics?under=site&limit=2&cursor={next}"))
        .await;
    assert_eq!(names(&rest.body), ["site/c"]);
    assert_eq!(
        (&rest.body["next"], &rest.body["topics"][0]["children"]),
        (&Value::Null, &json!(1))
    );
    for wrong in [
        "under=a/%2B",
        "sort=colour",
        "limit=0",
        "limit=1001",
        "cursor=zz",
        &format!("sort=rate&cursor={next}"),
        "colour=red",
    ] {
        let answer = api.get(&admin, &format!("/topics?{wrong}")).await;
        assert_eq!(answer.status, 400, "{wrong}");
        assert!(answer.body["remedy"].is_string());
    }
    let shown = api.get(&admin, "/topics/topic?topic=site/a").await.body;
    assert_eq!(shown["figures"]["value"]["payload"], "x");
    api.publish("site/a", "y");
    let shown = api.get(&admin, "/topics/topic?topic=site/a").await.body;
    assert_eq!(
        shown["values"][0]["payload"], "y",
        "looked at since the first request"
    );
    assert_eq!(
        (&shown["subscribers"], &shown["retained"]),
        (&json!(0), &json!(false))
    );
    assert_eq!(api.get(&admin, "/topics/topic").await.status, 400);
    assert_eq!(api.get(&admin, "/topics/topic?topic=%23").await.status, 400);
    let (reader, _) = api.program(&admin, &["clients:read"]).await;
    let shown = api.get(&reader, "/topics/topic?topic=site/a").await.body;
    assert_eq!(shown["values"][0]["payload"], Value::Null);
    let page = api.get(&reader, "/topics?under=site").await.body;
    assert_eq!(page["topics"][0]["value"]["payload"], Value::Null);
    let (other, _) = api.program(&admin, &["metrics:read"]).await;
    for path in ["/topics", "/topics/topic?topic=a"] {
        assert_eq!(api.get(&other, path).await.status, 403);
    }
}

#[tokio::test]
async fn filters_are_counted_and_their_changes_written_down() {
    let api = TestApi::with_admin("topic-metrics");
    let admin = api.admin().await;
    let filter = |filter: &str| json!({ "filter": filter });
    let made = api.post(&admin, "/topic-metrics", filter("site/#")).await;
    assert_eq!((made.status, &made.body["filter"]), (201, &json!("site/#")));
    api.publish("site/a", "12345");
    let list = api.get(&admin, "/topic-metrics").await.body;
    let one = &list["topic_metrics"][0];
    assert_eq!(
        (&one["filter"], &one["messages_received"]),
        (&json!("site/#"), &json!(1))
    );
    assert_eq!(
        (&one["received_by_qos"], &one["bytes_received"]),
        (&json!([1, 0, 0]), &json!(5))
    );
    assert_eq!(list["most"], 32);
    let figures = api.queries().figures();
    let text = crate::metrics::exposition(&figures, None, &[], crate::metrics::Format::Text);
    let text = String::from_utf8(text).unwrap();
    let line = "thrum_topic_messages_received_total{filter=\"site/#\",qos=\"0\"} 1\n";
    assert!(text.contains(line), "{text}");
    for (body, status) in [
        (filter("site/#"), 409),
        (filter("a/#/b"), 400),
        (filter("$share/g/a"), 400),
        (json!({}), 400),
        (json!({ "filter": "a", "colour": 1 }), 400),
    ] {
        let refused = api.post(&admin, "/topic-metrics", body.clone()).await;
        assert_eq!(refused.status, status, "{body}");
        assert!(refused.body["remedy"].is_string());
    }
    let (reader, _) = api.program(&admin, &["metrics:read"]).await;
    assert_eq!(api.get(&reader, "/topic-metrics").await.status, 200);
    assert_eq!(
        api.post(&reader, "/topic-metrics", filter("x"))
            .await
            .status,
        403
    );
    let path = "/topic-metrics?filter=site/%23";
    assert_eq!(api.delete(&reader, path).await.status, 403);
    assert_eq!(api.delete(&admin, path).await.status, 204);
    let list = api.get(&admin, "/topic-metrics").await.body;
    assert_eq!(list["topic_metrics"], json!([]));
    assert_eq!(api.delete(&admin, path).await.status, 404);
    assert_eq!(api.delete(&admin, "/topic-metrics").await.status, 400);
    let log = api.audit(&admin, 20).await;
    for action in ["topic_metric.add", "topic_metric.remove"] {
        let entry = json!(["admin", action, "site/#", "done"]);
        assert!(log.contains(&entry), "{log:?}");
    }
    for number in 0..32 {
        api.post(&admin, "/topic-metrics", filter(&number.to_string()))
            .await;
    }
    let full = api.post(&admin, "/topic-metrics", filter("more")).await;
    assert_eq!(
        (full.status, &full.body["title"]),
        (409, &json!("too many topic metrics"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_trace_is_a_stream_of_events_if_that_is_asked_for() {
    let api = TestApi::with_admin("trace-events");
    let admin = api.admin().await;
    let events = [("accept", "text/event-stream")];
    let answer = api
        .stream(&admin, "/trace?client=a&seconds=1", &events)
        .await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut trace = Events {
        body: answer.into_body(),
        text: String::new(),
    };
    // Time passes for the broker as well.
    let reason = loop {
        pause(Duration::from_millis(20));
        if let Some((name, data)) = trace.next_or_tick().await {
            assert_eq!(name, "end");
            break data;
        }
    };
    assert_eq!(reason, json!({ "ended": "time" }));
    assert!(trace.next().await.is_none());
    for wrong in [
        "client=a&format=pcapng",
        "client=a&seconds=3601",
        "client=a&packets=1000001",
        "seconds=1",
    ] {
        let answer = api
            .stream(&admin, &format!("/trace?{wrong}"), &events)
            .await;
        assert_eq!(answer.status(), 400, "{wrong}");
    }
    let (metrics, _) = api.program(&admin, &["metrics:read"]).await;
    assert_eq!(
        api.stream(&metrics, "/trace?client=a", &events)
            .await
            .status(),
        403
    );
    let (reader, _) = api.program(&admin, &["clients:read"]).await;
    let payloads = "/trace?client=a&payloads=true";
    assert_eq!(api.stream(&reader, payloads, &events).await.status(), 403);
    let mut open = Vec::new();
    for _ in 0..8 {
        let answer = api
            .stream(&reader, "/trace?client=a&seconds=3600", &events)
            .await;
        assert_eq!(answer.status(), 200);
        open.push(answer);
    }
    let many = api.stream(&reader, "/trace?client=a", &events).await;
    assert_eq!(many.status(), 429, "there are eight traces");
}

impl Events {
    /// An event that is there within some ticks.
    async fn next_or_tick(&mut self) -> Option<(String, Value)> {
        let next = timeout(Duration::from_millis(500), self.next()).await;
        next.unwrap_or(None)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "time passes for a broker that runs"
)]
pub(super) fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// The looks at payloads that the audit log has, the newest first.
async fn looks(api: &TestApi, admin: &Client) -> Vec<(String, String)> {
    let page = api.get(admin, "/audit?action=messages.watched").await;
    let entries = page.body["entries"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    entries
        .map(|entry| (text(&entry["who"]), text(&entry["target"])))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn whoever_looks_at_payloads_is_in_the_audit_log_once_for_each_thing() {
    let api = TestApi::with_admin("looks");
    let admin = api.admin().await;
    let (reader, _) = api.program(&admin, &["clients:read"]).await;
    for (client, query) in [
        (&reader, "topic=a"),
        (&admin, "figures=all&clients=&client=a"),
        (&admin, "topic=a&topics=b/"),
        // A page that connects again.
        (&admin, "topics=b/"),
        (&admin, "topics="),
    ] {
        drop(api.open(client, query).await);
    }
    let by_trace = [
        "?client=a",
        "?client=a&payloads=true",
        "?topic=%23&payloads=true",
    ];
    for query in by_trace {
        let events = [("accept", "text/event-stream")];
        let path = format!("/trace{query}");
        let answer = api.stream(&admin, &path, &events).await;
        assert_eq!(answer.status(), 200);
    }
    let expected = [
        "topic #",
        "client a",
        "the top level",
        "level b/ and 1 more",
    ];
    let expected = expected.map(|target| ("admin".to_owned(), target.to_owned()));
    assert_eq!(looks(&api, &admin).await, expected);
    api.move_on(Duration::from_mins(10));
    drop(api.open(&admin, "topics=b/").await);
    assert_eq!(looks(&api, &admin).await[0].1, "level b/");
}

#[tokio::test(start_paused = true)]
async fn payloads_that_are_not_in_the_audit_log_are_not_shown() {
    let api = TestApi::with_admin("looks-refused");
    let admin = api.admin().await;
    let mut kept = api.open(&admin, "topic=t&every=250ms").await;
    kept.of("topic").await;
    api.publish("t", "secret");
    let healthy = api.security.audit.break_disk();
    let refused = api.get(&admin, "/trace?client=a&payloads=true").await;
    assert_eq!(refused.status, 507, "{}", refused.body);
    let mut events = api.open(&admin, "topic=t&topic=u&every=250ms").await;
    let topic = events.of("topic").await;
    assert_eq!(topic["detail"]["values"][0]["payload_bytes"], 6, "{topic}");
    assert!(!topic.to_string().contains("secret"), "{topic}");
    let why = topic["payloads_left_out"].as_str().unwrap();
    assert!(why.contains("audit log"), "{why}");
    api.security.audit.mend_disk(healthy);
    drop(api.open(&admin, "topic=t&every=250ms").await);
    // Another thing each time: the log would be full of them.
    for number in 0..70 {
        let path = format!("/trace?client={number}&payloads=true&seconds=1&packets=0");
        assert_eq!(api.get(&admin, &path).await.status, 400, "no look");
        drop(api.open(&admin, &format!("topics=n/{number}/")).await);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    // 60 at once, less the two that could not be written.
    assert_eq!(looks(&api, &admin).await.len(), 58);
    let refused = api.get(&admin, "/trace?client=a&payloads=true").await;
    assert_eq!((refused.status, refused.retry_after), (429, Some(10)));
    assert_eq!(refused.body["title"], "too many looks at payloads");
    assert!(api.security.figures().audit_looks_refused > 9);
    // It is known.
    let mut again = api.open(&admin, "topic=t&every=250ms").await;
    again.of("topic").await;
    api.publish("t", "secret");
    let topic = again.of("topic").await;
    assert!(topic.to_string().contains("secret"), "{topic}");
}
