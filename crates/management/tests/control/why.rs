//! Causes that are provoked, and named first.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use thrum_broker::Listening;
use thrum_broker::config::{QueuePolicy, Rate, Transport};

use super::{TestBroker, request};

/// Subscribes to a filter of one letter.
fn subscribe(stream: &mut TcpStream, filter: u8, qos: u8) {
    stream
        .write_all(&[0x82, 6, 0, 1, 0, 1, filter, qos])
        .unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
}

/// Publishes messages of that many bytes.
fn publish(broker: &TestBroker, topic: &str, qos: u8, payloads: &[usize]) {
    for bytes in payloads {
        let message = json!({ "topic": topic, "payload": "x".repeat(*bytes), "qos": qos });
        let answer = broker.post("/api/v1/publish", &message.to_string());
        assert!([200, 507].contains(&answer.status), "{}", answer.text);
    }
}

/// Reads that many bytes, and sends something: with it, what was read is acknowledged on the
/// network, and waits no longer.
fn take(stream: &mut TcpStream, bytes: usize) {
    let mut read = vec![0; bytes + 2];
    stream.read_exact(&mut read[..bytes]).unwrap();
    stream.write_all(&[0xC0, 0]).unwrap();
    stream.read_exact(&mut read[bytes..]).unwrap();
    assert_eq!(read[bytes..], [0xD0, 0]);
}

/// What is answered to a question about one second.
fn why(broker: &TestBroker, more: &Value) -> Value {
    ask(&broker.socket(), more)
}

fn ask(socket: &Path, more: &Value) -> Value {
    let mut question = json!({ "seconds": 1 });
    for (key, value) in more.as_object().unwrap() {
        question[key] = value.clone();
    }
    let head = "POST /api/v1/why HTTP/1.1\r\nContent-Type: application/json\r\n";
    let answer = request(socket, head, &question.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text);
    for found in [&answer.body["latency"], &answer.body["drops"]] {
        let shares: f64 = ["causes", "not_causes"]
            .iter()
            .flat_map(|list| found[list].as_array().into_iter().flatten())
            .map(|cause| cause["share"].as_f64().unwrap())
            .sum();
        assert!(shares == 0.0 || (shares - 1.0).abs() < 1e-6, "{shares}");
    }
    answer.body
}

/// The first cause of latency.
fn first(why: &Value) -> &Value {
    &why["latency"]["causes"][0]
}

#[test]
fn a_quiet_broker_has_no_cause_and_says_what_is_none() {
    let broker = TestBroker::new("why-quiet", 2);
    let _client = broker.client(b'a', 0x02);
    let found = why(&broker, &json!({}));
    let latency = &found["latency"];
    assert_eq!(latency["causes"], json!([]), "{latency}");
    assert_eq!(
        latency["verdict"],
        "nothing was measured: no message was delivered"
    );
    assert_eq!(latency["state"], "not_measured");
    let lists = ["not_causes", "not_measured"].map(|list| latency[list].as_array().unwrap());
    assert_eq!(lists[0].len() + lists[1].len(), 12);
    let unmeasured = lists[1].iter().map(|one| one["name"].as_str().unwrap());
    let unmeasured: Vec<&str> = unmeasured.collect();
    assert!(
        unmeasured.contains(&"authorization") && unmeasured.contains(&"routing"),
        "{unmeasured:?}"
    );
    assert_eq!(found["drops"]["verdict"], "no message was dropped");
    assert!(found["seconds"].as_f64().unwrap() >= 1.0);
    let drops = why(&broker, &json!({ "what": "drops" }));
    assert!(drops["latency"].is_null() && drops["drops"].is_object());
}

#[test]
fn a_client_that_does_not_acknowledge_is_named_with_its_window() {
    let broker = TestBroker::with("why-window", 2, |config| config.limits.client.inflight = 1);
    let mut slow = broker.client(b's', 0);
    subscribe(&mut slow, b's', 1);
    let mut other = broker.client(b'o', 0x02);
    subscribe(&mut other, b'o', 0);
    publish(&broker, "s", 1, &[10; 20]);
    publish(&broker, "o", 0, &[10; 20]);
    take(&mut slow, 17);
    take(&mut other, 20 * 15);
    for question in [json!({}), json!({ "client": "s" }), json!({ "topic": "s" })] {
        let found = why(&broker, &question);
        let cause = first(&found);
        assert_eq!(cause["name"], "full_windows", "{found}");
        assert!(cause["share"].as_f64().unwrap() > 0.9, "{cause}");
        let verdict = found["latency"]["verdict"].as_str().unwrap();
        assert!(
            verdict.starts_with("no message has moved in 1"),
            "{verdict}"
        );
        assert!(verdict.contains("19 messages wait"), "{verdict}");
        let sentence = cause["sentence"].as_str().unwrap();
        assert!(
            sentence.contains("s (window 1, 19 messages wait"),
            "{sentence}"
        );
        assert_eq!(cause["evidence"]["clients"][0]["client_id"], "s");
        assert!(
            cause["remedy"]
                .as_str()
                .unwrap()
                .contains("limits.client.inflight")
        );
    }
    let healthy = why(&broker, &json!({ "client": "o", "what": "slow" }));
    assert_eq!(healthy["latency"]["causes"], json!([]), "{healthy}");
}

#[test]
fn a_client_that_does_not_read_is_named_with_what_waits() {
    let broker = TestBroker::new("why-reader", 2);
    let mut slow = broker.client(b's', 0x02);
    subscribe(&mut slow, b's', 0);
    // More than the buffers of both sockets take.
    publish(&broker, "s", 0, &[200_000; 60]);
    let found = why(&broker, &json!({}));
    let cause = first(&found);
    assert_eq!(cause["name"], "slow_readers", "{found}");
    let sentence = cause["sentence"].as_str().unwrap();
    assert!(sentence.contains("1 client behind: s ("), "{sentence}");
    assert!(sentence.contains("round trip"), "{sentence}");
    let remedy = cause["remedy"].as_str().unwrap();
    assert!(remedy.starts_with("thrum clients get s shows"), "{remedy}");
}

#[test]
fn a_publisher_that_has_used_up_its_rate_is_named_with_the_limit() {
    let broker = TestBroker::with("why-rate", 2, |config| {
        config.limits.client.messages = Rate::new(1, Duration::from_secs(10), 1).unwrap();
    });
    let mut fast = broker.client(b'f', 0x02);
    for _ in 0..50 {
        fast.write_all(b"\x30\x04\0\x01tx").unwrap();
    }
    let found = why(&broker, &json!({}));
    let cause = first(&found);
    assert_eq!(cause["name"], "rate_limits", "{found}");
    let sentence = cause["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("f (") && sentence.contains("unread"),
        "{sentence}"
    );
    let unread = cause["evidence"]["waiting_messages"].as_f64().unwrap();
    assert!(unread > 10.0, "what lies in its socket counts: {cause}");
}

#[test]
fn a_publisher_that_waits_for_a_full_queue_is_named_as_such() {
    let broker = TestBroker::with("why-held", 2, |config| {
        config.limits.client.queue = 1;
        config.limits.client.inflight = 1;
        config.limits.client.queue_policy = QueuePolicy::Hold;
    });
    let mut slow = broker.client(b's', 0x02);
    subscribe(&mut slow, b's', 1);
    let mut publisher = broker.client(b'p', 0x02);
    for id in 1..20_u8 {
        publisher
            .write_all(&[0x32, 6, 0, 1, b's', 0, id, b'x'])
            .unwrap();
    }
    let found = why(&broker, &json!({}));
    let names: Vec<&Value> = found["latency"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| &cause["name"])
        .collect();
    assert!(names.contains(&&json!("full_queues")), "{found}");
    assert!(names.contains(&&json!("full_windows")), "{found}");
}

#[test]
fn half_open_handshakes_that_keep_new_clients_out_are_named() {
    let broker = TestBroker::with("why-handshakes", 1, |config| {
        config.limits.handshakes = 2;
        config.limits.handshake_timeout = Duration::from_mins(5);
        let mut web = config.listeners["mqtt"].clone();
        web.transport = Transport::WebSocket;
        config.listeners.insert("ws".to_owned(), web);
    });
    let addresses = broker.inner.as_ref().unwrap().addresses();
    let mut sockets = addresses.iter().filter(|one| one.scheme == "ws");
    let web = sockets.find_map(Listening::socket_address).unwrap();
    let half_open: Vec<TcpStream> = (0..3)
        .map(|_| {
            let mut stream = TcpStream::connect(web).unwrap();
            stream.write_all(b"GET /mqtt HTTP/1.1\r\n").unwrap();
            stream
        })
        .collect();
    let found = why(&broker, &json!({}));
    let cause = first(&found);
    assert_eq!(cause["name"], "handshakes", "{found}");
    assert_eq!(cause["evidence"]["workers_without_place"], 1, "{cause}");
    let open = cause["evidence"]["handshakes_unfinished"].as_u64().unwrap();
    assert!((2..=3).contains(&open), "{cause}");
    let verdict = found["latency"]["verdict"].as_str().unwrap();
    assert!(
        verdict.starts_with("new connections wait: 1 worker has accepted none"),
        "{verdict}"
    );
    drop(half_open);
}

#[test]
fn dropped_messages_are_ranked_by_reason_with_client_and_topic() {
    let broker = TestBroker::with("why-drops", 1, |config| {
        config.limits.client.queue = 3;
        config.limits.client.inflight = 1;
    });
    let mut slow = broker.client(b's', 0);
    subscribe(&mut slow, b's', 1);
    publish(&broker, "s", 1, &[10; 4]);
    let found = std::thread::scope(|scope| {
        let socket = broker.socket();
        let asked = scope.spawn(move || ask(&socket, &json!({ "what": "drops" })));
        // Until the answer is there, so that some are within the measurement.
        while !asked.is_finished() {
            publish(&broker, "s", 1, &[10]);
        }
        asked.join().unwrap()
    });
    let cause = &found["drops"]["causes"][0];
    assert_eq!(cause["name"], "queue_full", "{found}");
    assert!(found["drops"]["dropped"].as_u64().unwrap() > 0);
    assert_eq!(cause["evidence"]["of"][0]["client_id"], "s");
    assert_eq!(cause["evidence"]["of"][0]["topic"], "s");
}

#[test]
fn drops_for_a_client_that_is_away_are_told_with_a_cure_for_that() {
    let broker = TestBroker::with("why-away", 2, |config| config.limits.client.queue = 3);
    let mut away = broker.client(b'w', 0);
    subscribe(&mut away, b'w', 1);
    away.write_all(&[0xE0, 0]).unwrap();
    let rest = away.read(&mut [0; 16]).unwrap();
    assert_eq!(rest, 0, "the broker closes the connection");
    publish(&broker, "w", 1, &[10; 4]);
    for question in [json!({}), json!({ "client": "w" })] {
        let found = std::thread::scope(|scope| {
            let socket = broker.socket();
            let asked = scope.spawn(move || ask(&socket, &question));
            while !asked.is_finished() {
                publish(&broker, "w", 1, &[10]);
            }
            asked.join().unwrap()
        });
        let cause = &found["drops"]["causes"][0];
        assert_eq!(cause["name"], "queue_full_away", "{found}");
        assert_eq!(cause["evidence"]["away"][0]["client_id"], "w", "{cause}");
        assert_eq!(cause["commands"][0], "thrum clients kick --session w");
        let request = "DELETE /api/v1/clients/w?session=true";
        assert_eq!(cause["requests"][0], request);
        let latency = &found["latency"];
        let verdict = latency["verdict"].as_str().unwrap();
        assert!(
            verdict.contains("a second are dropped; nothing was measured"),
            "{verdict}"
        );
        assert!(verdict.contains("the client is away"), "{verdict}");
        assert_eq!(latency["state"], "not_measured");
    }
}

#[test]
fn bad_questions_are_refused_with_the_reason() {
    let broker = TestBroker::new("why-bad", 1);
    for (body, status, expected) in [
        (json!({ "seconds": 0 }), 400, "from 1 to 10"),
        (json!({ "seconds": 11 }), 400, "from 1 to 10"),
        (json!({ "client": "a", "topic": "t" }), 400, "not both"),
        (json!({ "topic": "a/#/b" }), 400, "no topic filter"),
        (json!({ "what": "weather" }), 422, "weather"),
        (json!({ "colour": "red" }), 422, "colour"),
        (json!({ "client": "nobody" }), 404, "nobody"),
    ] {
        let answer = broker.post("/api/v1/why", &body.to_string());
        assert!(
            answer.status == status || (status == 422 && answer.status == 400),
            "{body}: {}",
            answer.text
        );
        assert_eq!(answer.kind, "application/problem+json", "{body}");
        let detail = answer.body["detail"].as_str().unwrap();
        assert!(detail.contains(expected), "{body}: {detail}");
        assert!(!answer.body["remedy"].as_str().unwrap().is_empty());
    }
}

#[test]
fn measurements_are_few_at_a_time_and_end_with_their_requests() {
    let broker = TestBroker::new("why-busy", 1);
    let socket = broker.socket();
    let begin = || {
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        stream
            .write_all(
                b"POST /api/v1/why HTTP/1.1\r\nHost: thrum\r\nContent-Type: application/json\r\n\
                  Content-Length: 14\r\n\r\n{\"seconds\": 9}",
            )
            .unwrap();
        stream
    };
    let running = [begin(), begin()];
    let short = json!({ "seconds": 1 }).to_string();
    let ask = || broker.post("/api/v1/why", &short);
    let refused = (0..1000).any(|_| {
        // One that is admitted before both have begun delays a second.
        let answer = ask();
        answer.status == 429 && answer.body["retry_after_secs"] == 1
    });
    assert!(refused, "the third one is refused");
    drop(running);
    let admitted = (0..1000).any(|_| ask().status == 200);
    assert!(
        admitted,
        "their places are free before nine seconds are over"
    );
}
