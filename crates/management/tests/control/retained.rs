//! Retained messages: one with its payload, removal by filter, export and import.

use serde_json::{Value, json};

use super::{Answer, TestBroker, request};

fn retain(broker: &TestBroker, topics: impl IntoIterator<Item = String>) {
    let topics = topics.into_iter();
    let messages = topics.map(|topic| json!({ "topic": topic, "payload": "kept", "retain": true }));
    let messages: Vec<_> = messages.collect();
    for batch in messages.chunks(1000) {
        let body = json!({ "messages": batch }).to_string();
        assert_eq!(broker.post("/api/v1/publish/batch", &body).status, 200);
    }
}

fn import(broker: &TestBroker, lines: &str) -> Answer {
    request(
        &broker.socket(),
        "POST /api/v1/retained/import HTTP/1.1\r\n",
        lines,
    )
}

#[test]
fn one_message_is_shown_with_its_payload() {
    let broker = TestBroker::new("one-retained", 2);
    retain(&broker, ["a/b".to_owned()]);
    let found = broker.get_ok("/api/v1/retained/message?topic=a%2Fb");
    assert_eq!(
        (&found["content"]["text"], &found["content"]["payload"]),
        (&json!("kept"), &json!("a2VwdA=="))
    );
    assert_eq!(found["message"]["payload_bytes"], 4);
    assert!(found["message"]["publisher"].is_null());
    for (path, status, detail) in [
        ("?topic=a", 404, "the topic \"a\" has no retained message"),
        ("?topic=a%2F%2B", 400, "\"a/+\" is no topic name"),
        ("", 400, "missing field `topic`"),
    ] {
        let answer = broker.get(&format!("/api/v1/retained/message{path}"));
        let found = answer.body["detail"].as_str().unwrap();
        assert!(
            answer.status == status && found.contains(detail),
            "{path}: {found}"
        );
    }
}

#[test]
fn messages_are_removed_by_filter_after_a_dry_run() {
    let broker = TestBroker::new("remove", 2);
    let topics = (0..2500).map(|number| format!("r/{number}"));
    retain(&broker, topics.chain(["other".to_owned()]));
    let left = || {
        broker.get_ok("/api/v1/status")["retained_messages"]
            .as_u64()
            .unwrap()
    };
    let dry = broker.delete("/api/v1/retained?filter=r%2F%23&dry_run=true");
    let body = &dry.body;
    assert_eq!(
        (&body["matching"], &body["removed"]),
        (&json!(2500), &json!(0))
    );
    assert_eq!(body["payload_bytes"], 10_000);
    assert_eq!(body["examples"].as_array().unwrap().len(), 10);
    assert_eq!(left(), 2501);
    let removed = broker.delete("/api/v1/retained?filter=r%2F%23");
    assert_eq!(
        (&removed.body["matching"], &removed.body["removed"]),
        (&json!(2500), &json!(2500))
    );
    assert_eq!(left(), 1);
    for (query, detail) in [
        ("", "missing field `filter`"),
        ("?filter=a%2F%23%2Fb", "\"a/#/b\" is no topic filter"),
        ("?filter=%24share%2Fg%2Fa", "without $share/GROUP/"),
        ("?filter=a&all=true", "unknown field `all`"),
    ] {
        let refused = broker.delete(&format!("/api/v1/retained{query}"));
        let found = refused.body["detail"].as_str().unwrap();
        assert!(
            refused.status == 400 && found.contains(detail),
            "{query}: {found}"
        );
    }
    assert_eq!(left(), 1);
}

#[test]
fn an_export_is_streamed_and_imported_by_another_broker() {
    let one = TestBroker::new("export", 2);
    retain(&one, (0..1200).map(|number| format!("r/{number}")));
    let line = json!({
        "topic": "p", "qos": 2, "payload": "AP8=", "published_at": "2020-11-22T09:12:03.000Z",
        "properties": { "content_type": "x", "user": [["k", "v"]], "correlation_data": "AQ==" },
    });
    assert_eq!(
        import(&one, &line.to_string()).body,
        json!({ "imported": 1 })
    );
    let exported = one.get("/api/v1/retained/export");
    assert_eq!(
        (exported.status, &*exported.kind),
        (200, "application/jsonl")
    );
    assert_eq!(exported.text.lines().count(), 1201);
    let read = |text: &str| {
        let lines = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.collect::<Vec<_>>()
    };
    let found = read(&exported.text);
    assert!(found.contains(&line), "the properties are kept");
    let other = TestBroker::new("import", 1);
    assert_eq!(
        import(&other, &exported.text).body,
        json!({ "imported": 1201 })
    );
    let again = other.get("/api/v1/retained/export?filter=%23");
    let sorted = |mut lines: Vec<Value>| {
        lines.sort_by_key(ToString::to_string);
        lines
    };
    assert_eq!(sorted(read(&again.text)), sorted(found));
    assert_eq!(
        other
            .get("/api/v1/retained/export?filter=r%2F7")
            .text
            .lines()
            .count(),
        1
    );
    assert_eq!(
        other
            .get("/api/v1/retained/export?filter=a%2F%23%2Fb")
            .status,
        400
    );
}

#[test]
fn a_wrong_line_of_an_import_is_refused_with_its_number() {
    let broker = TestBroker::with("lines", 1, |config| {
        config.limits.retained.retained_messages = 2;
    });
    for (lines, status, detail) in [
        (
            "{\"topic\":\"a\"}",
            400,
            "line 1: a payload (base64) or a text is missing",
        ),
        (
            "\n\n{\"topic\":\"a\",\"text\":\"x\",\"qos\":3}",
            400,
            "line 3: qos is 0, 1 or 2",
        ),
        (
            "{\"topic\":\"a\",\"text\":\"x\",\"payload\":\"eQ==\"}",
            400,
            "payload and text differ",
        ),
        (
            "{\"topic\":\"a\",\"payload\":\"?\"}",
            400,
            "payload is no base64",
        ),
        (
            "{\"topic\":\"a\",\"text\":\"x\",\"published_at\":\"now\"}",
            400,
            "published_at is no time",
        ),
        (
            "{\"topic\":\"a/+\",\"text\":\"x\"}",
            400,
            "a topic name has",
        ),
        (
            "{\"topic\":\"$SYS/a\",\"text\":\"x\"}",
            400,
            "a topic of the broker itself",
        ),
        (
            "{\"topic\":\"a\",\"text\":\"\"}",
            400,
            "a retained message has a payload",
        ),
        (
            "{\"topic\":\"a\",\"colour\":1}",
            400,
            "line 1: unknown field `colour`",
        ),
        ("no json", 400, "line 1: expected"),
        (
            "[\"a\",0,null,\"x\"]",
            400,
            "line 1: the line is an array, not an object",
        ),
        (
            "{\"topic\":\"a\",\"text\":\"x\"}\n{\"topic\":\"b\",\"text\":\"x\"}\n{\"topic\":\"c\",\"text\":\"x\"}",
            507,
            "for the next message there is no room (limits.retained_messages, limits.retained_bytes, limits.memory or the disk); 2 messages are imported",
        ),
    ] {
        let answer = import(&broker, lines);
        let found = answer.body["detail"].as_str().unwrap_or_default();
        assert!(
            answer.status == status && found.contains(detail),
            "{lines}: {}",
            answer.text
        );
    }
}
