//! Lists of clients, of their messages, of groups and of drops.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};
use thrum_broker::Config;
use thrum_broker::config::QueuePolicy;

use super::TestBroker;

/// A queue of three messages and a window of two.
pub(super) fn narrow(config: &mut Config) {
    config.limits.client.queue = 3;
    config.limits.client.inflight = 2;
    config.limits.client.queue_policy = QueuePolicy::RejectNew;
}

/// Subscribes with QoS 1 to a filter of one letter.
pub(super) fn subscribe(stream: &mut TcpStream, filter: u8) {
    stream.write_all(&[0x82, 6, 0, 1, 0, 1, filter, 1]).unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
}

/// Publishes messages with QoS 1, whose payloads are their numbers.
pub(super) fn publish(broker: &TestBroker, topic: &str, messages: usize) {
    for number in 0..messages {
        let message = json!({ "topic": topic, "payload": number.to_string(), "qos": 1 });
        let answer = broker.post("/api/v1/publish", &message.to_string());
        // The last ones find a full queue.
        assert!([200, 507].contains(&answer.status), "{}", answer.text);
    }
}

/// The values of a key on all pages of a list.
fn all(broker: &TestBroker, path: &str, list: &str, key: &str) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = broker.get_ok(&format!("/api/v1/{path}{cursor}"));
        let rows = page[list].as_array().unwrap();
        found.extend(rows.iter().map(|row| row[key].clone()));
        let Some(next) = page["next"].as_str() else {
            return found;
        };
        cursor = format!("&cursor={next}");
    }
}

/// A slow client, one that is away with messages in its queue, and one without any.
pub(super) fn three_clients(broker: &TestBroker) -> Vec<TcpStream> {
    let mut slow = broker.client(b's', 0);
    subscribe(&mut slow, b's');
    let mut away = broker.client(b'w', 0);
    subscribe(&mut away, b'w');
    away.write_all(b"\xE0\0").unwrap();
    assert_eq!(away.read(&mut [0]).unwrap(), 0);
    publish(broker, "s", 7);
    publish(broker, "w", 2);
    vec![slow, broker.client(b'x', 0x02)]
}

#[test]
fn clients_are_filtered_by_text_and_sorted_by_any_column_both_ways() {
    let broker = TestBroker::with("filters", 1, narrow);
    let _streams = three_clients(&broker);
    let listed = |query: &str| {
        let path = format!("clients?limit=1&{query}");
        let names = all(&broker, &path, "clients", "client_id");
        let names: Vec<_> = names.iter().map(|name| name.as_str().unwrap()).collect();
        names.concat()
    };
    assert_eq!(listed("filter=queue%3E0"), "sw");
    assert_eq!(listed("filter=queue%3E0%20state%3Dconnected"), "s");
    assert_eq!(listed("filter=queue%3E0&state=disconnected"), "w");
    assert_eq!(listed("state=persistent"), "sw");
    assert_eq!(listed("problem=dropping"), "s");
    assert_eq!(listed("listener=mq*"), "sx");
    assert_eq!(listed("subscribed=w"), "w");
    for (sort, up, down) in [
        ("client_id", "swx", "xws"),
        ("user", "swx", "xws"),
        ("protocol_version", "swx", "xws"),
        ("listener", "sxw", "wxs"),
        ("queued_messages", "xws", "swx"),
        ("queue_percent", "xws", "swx"),
        ("messages_dropped", "wxs", "sxw"),
        ("inflight", "wxs", "sxw"),
        ("subscriptions", "xsw", "wsx"),
        ("session_expiry_secs", "xsw", "wsx"),
    ] {
        let sorted = format!("sort={sort}");
        assert_eq!(listed(&sorted), up, "{sort}");
        assert_eq!(listed(&format!("{sorted}&descending=true")), down, "{sort}");
    }
    for sort in [
        "address",
        "connected_at",
        "away_since",
        "idle_secs",
        "oldest_queued_secs",
    ] {
        let mut found: Vec<_> = listed(&format!("sort={sort}")).chars().collect();
        found.sort_unstable();
        assert_eq!(found, ['s', 'w', 'x'], "{sort}");
    }
    let slow = broker.get_ok("/api/v1/clients?client=s");
    let problems = &slow["clients"][0]["problems"];
    assert_eq!(problems, &json!(["queue", "slow", "dropping"]));
}

#[test]
fn facets_count_the_clients_of_each_kind() {
    let broker = TestBroker::with("facets", 1, narrow);
    let _streams = three_clients(&broker);
    let all = broker.get_ok("/api/v1/clients/facets");
    assert_eq!(all["matching"], 3);
    assert_eq!(all["listeners"], json!([{ "value": "mqtt", "clients": 2 }]));
    let states = json!([
        { "value": "connected", "clients": 2 },
        { "value": "disconnected", "clients": 1 },
        { "value": "persistent", "clients": 2 },
    ]);
    assert_eq!(all["states"], states);
    assert_eq!(
        all["versions"][1],
        json!({ "value": "3.1.1", "clients": 3 })
    );
    assert_eq!(all["problems"][1], json!({ "value": "slow", "clients": 1 }));
    assert_eq!(
        (&all["queued"]["messages"], &all["inflight"]),
        (&json!(5), &json!(2))
    );
    assert_eq!(
        (&all["users"], &all["other_users"]),
        (&json!([]), &json!(0))
    );
    let some = broker.get_ok("/api/v1/clients/facets?filter=state%3Ddisconnected");
    assert_eq!(
        (&some["matching"], &some["subscriptions"]),
        (&json!(1), &json!(1))
    );
}

#[test]
fn a_client_named_as_a_route_is_reached_with_an_escaped_letter() {
    let broker = TestBroker::new("escaped", 1);
    let _stream = broker.client_named("facets");
    assert_eq!(
        broker.get_ok("/api/v1/clients/%66acets")["client_id"],
        "facets"
    );
}

#[test]
fn the_queue_of_a_client_is_listed_page_by_page_and_shows_payloads_on_demand() {
    let broker = TestBroker::with("queue", 1, narrow);
    let _streams = three_clients(&broker);
    let stages = all(&broker, "clients/s/queue?limit=2", "messages", "stage");
    let (sent, queued) = (json!("awaits_puback"), json!("queued"));
    assert_eq!(
        stages,
        [&sent, &sent, &queued, &queued, &queued].map(Value::clone)
    );
    let page = broker.get_ok("/api/v1/clients/s/queue?limit=1");
    let message = &page["messages"][0]["message"];
    assert_eq!(
        (&message["topic"], &message["payload_bytes"]),
        (&json!("s"), &json!(1))
    );
    assert!(message["payload_base64"].is_null() && message["expires_at"].is_null());
    let page = broker.get_ok("/api/v1/clients/s/queue?payload=true");
    let payloads = page["messages"].as_array().unwrap().iter();
    let payloads: Vec<_> = payloads
        .map(|row| row["message"]["payload_base64"].clone())
        .collect();
    assert_eq!(
        payloads,
        ["MA==", "MQ==", "Mg==", "Mw==", "NA=="].map(|text| json!(text))
    );
    assert!(page["next"].is_null());
}

#[test]
fn a_client_in_full_has_its_limits_its_socket_and_its_rates() {
    let broker = TestBroker::with("whole", 1, narrow);
    let mut streams = three_clients(&broker);
    let client = broker.get_ok("/api/v1/clients/s");
    assert_eq!(client["limits"]["inflight"], 2);
    let dropped = json!([{ "reason": "queue_full", "messages": 2 }]);
    assert_eq!(
        (&client["dropped"], &client["messages_dropped"]),
        (&dropped, &json!(2))
    );
    // No key is there twice, and programs can read it.
    let text = broker.get("/api/v1/clients/s").text;
    let read = serde_json::from_str::<thrum_management::api::ClientDetail>(&text);
    assert_eq!(read.unwrap().client.messages_dropped, 2);
    assert!(client["rates"].is_null());
    let tcp = &client["connection"]["tcp"];
    assert!(tcp["congestion_window"].as_u64().unwrap() > 0, "{tcp}");
    assert_eq!(tcp["unsent_bytes"], 0);
    // On a busy machine loopback repeats a segment, too.
    assert!(tcp["retransmitted"].as_u64().unwrap() < 10, "{tcp}");
    assert!(client["connection"]["certificate_details"].is_null());
    // Two messages arrive while the rates are measured.
    let mut stream = streams.pop().unwrap();
    let publisher = std::thread::spawn(move || {
        while stream.write_all(b"\x30\x03\0\x01t").is_ok() {
            std::thread::yield_now();
        }
    });
    let client = broker.get_ok("/api/v1/clients/x?sample_ms=200");
    let rates = &client["rates"];
    // Both moments are those of turns of the worker.
    assert!(rates["millis"].as_u64().unwrap() >= 150, "{rates}");
    assert!(
        rates["messages_received"].as_f64().unwrap() > 0.0,
        "{rates}"
    );
    assert!(rates["bytes_received"].as_f64().unwrap() > 0.0, "{rates}");
    let away = broker.get_ok("/api/v1/clients/w?sample_ms=1");
    assert!(away["rates"].is_null() && away["connection"].is_null());
    assert_eq!(broker.delete("/api/v1/clients/x").status, 200);
    publisher.join().unwrap();
}

#[test]
fn a_session_is_ended_with_its_queue() {
    let broker = TestBroker::with("end", 1, narrow);
    let _streams = three_clients(&broker);
    let ended = broker.delete("/api/v1/clients/w/session");
    let expected = json!({ "disconnected": false, "session_ended": true });
    assert_eq!((ended.status, ended.body), (200, expected));
    assert_eq!(broker.delete("/api/v1/clients/w/session").status, 404);
    assert_eq!(broker.get("/api/v1/clients/w/queue").status, 404);
}

#[test]
fn shared_groups_are_listed_with_their_members_page_by_page() {
    let broker = TestBroker::new("groups", 1);
    let mut stream = broker.client(b'm', 0);
    for group in [b'a', b'b', b'c'] {
        let mut packet = *b"\x82\x0F\0\x01\0\x0A$share/g/t\x01";
        packet[13] = group;
        stream.write_all(&packet).unwrap();
        stream.read_exact(&mut [0; 5]).unwrap();
    }
    let found = all(&broker, "groups?limit=1", "groups", "group");
    assert_eq!(found, ["a", "b", "c"].map(|name| json!(name)));
    publish(&broker, "t", 1);
    let page = broker.get_ok("/api/v1/groups?group=b&filter=t*");
    let group = &page["groups"][0];
    assert_eq!(
        (&group["members"], &group["connected"]),
        (&json!(1), &json!(1))
    );
    let member = &group["member_list"][0];
    // One message for each of its groups.
    assert_eq!(
        (&member["client_id"], &member["inflight"]),
        (&json!("m"), &json!(3))
    );
    assert!(member["oldest_unacknowledged_secs"].is_u64(), "{member}");
    assert_eq!(
        broker.get_ok("/api/v1/groups?group=none")["groups"],
        json!([])
    );
}

#[test]
fn drops_are_listed_by_reason_client_and_topic_page_by_page() {
    let broker = TestBroker::with("drops", 1, narrow);
    let _streams = three_clients(&broker);
    publish(&broker, "w", 4);
    let found = all(&broker, "drops?limit=1", "drops", "client_id");
    assert_eq!(found, [json!("w"), json!("s")]);
    let page = broker.get_ok("/api/v1/drops?client=s&reason=queue_full&topic=%23");
    let row = &page["drops"][0];
    assert_eq!((&row["messages"], &row["topic"]), (&json!(2), &json!("s")));
    assert!(row["last_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(
        (&page["matching"], &page["left_out"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(broker.get_ok("/api/v1/drops?reason=expired")["matching"], 0);
}

#[test]
fn refused_publishes_are_listed_by_reason_publisher_and_topic_apart_from_drops() {
    let broker = TestBroker::with("refused", 1, narrow);
    let _streams = three_clients(&broker);
    publish(&broker, "w", 4);
    let page = broker.get_ok("/api/v1/refused-publishes");
    assert_eq!(
        (&page["total"], &page["refused"]),
        (&json!(0), &json!([])),
        "the operator is told by the answer"
    );
    let mut publisher = broker.client(b'p', 0x02);
    for id in 1..=2 {
        let message = [0x32, 6, 0, 1, b'w', 0, id, b'x'];
        publisher.write_all(&message).unwrap();
        publisher.read_exact(&mut [0; 4]).unwrap();
    }
    let page = broker.get_ok("/api/v1/refused-publishes?client=p&topic=%23");
    let row = &page["refused"][0];
    assert_eq!(
        (&row["reason"], &row["client_id"], &row["topic"]),
        (&json!("queues_full"), &json!("p"), &json!("w"))
    );
    assert_eq!((&row["messages"], &row["told"]), (&json!(2), &json!(false)));
    assert_eq!((&page["total"], &page["untold"]), (&json!(2), &json!(2)));
    assert_eq!(
        page["by_reason"],
        json!([{ "reason": "queues_full", "code": 0x97, "messages": 2 }])
    );
    let none = broker.get_ok("/api/v1/refused-publishes?reason=not_allowed");
    assert_eq!(
        (&none["matching"], &none["total"]),
        (&json!(0), &json!(2)),
        "the sums are of all"
    );
    let client = broker.get_ok("/api/v1/clients/p");
    let refused = json!([{ "reason": "queues_full", "messages": 2 }]);
    assert_eq!(
        (&client["refused"], &client["dropped"]),
        (&refused, &json!([]))
    );
}

#[test]
fn slow_clients_are_ranked() {
    let broker = TestBroker::with("slow", 1, narrow);
    let _streams = three_clients(&broker);
    for by in ["queue", "bytes", "oldest", "unacknowledged"] {
        let page = broker.get_ok(&format!("/api/v1/slow?by={by}&limit=1"));
        assert_eq!(
            (&page["matching"], &page["next"]),
            (&json!(1), &Value::Null),
            "{by}"
        );
        let client = &page["clients"][0];
        assert_eq!(
            (&client["client_id"], &client["queued_messages"]),
            (&json!("s"), &json!(3))
        );
        assert!(client["oldest_unacknowledged_secs"].is_u64(), "{client}");
    }
    assert_eq!(
        broker.get_ok("/api/v1/slow?filter=client%3Dx")["matching"],
        0
    );
}

#[test]
fn a_batch_is_published_in_order_with_the_outcome_of_each_message() {
    let broker = TestBroker::with("batch", 2, |config| {
        config.limits.retained.retained_messages = 1;
    });
    let mut stream = broker.client(b'b', 0x02);
    subscribe(&mut stream, b'a');
    let retained = |topic: &str| json!({ "topic": topic, "payload": "x", "retain": true });
    let messages = json!({ "messages": [
        { "topic": "a", "payload": "1" }, { "topic": "n" }, retained("r"), retained("q"),
    ] });
    let answer = broker.post("/api/v1/publish/batch", &messages.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text);
    let outcomes = &answer.body["outcomes"];
    assert_eq!(answer.body["refused"], 1);
    assert_eq!(
        outcomes[0],
        json!({ "outcome": "delivered", "retained": false, "refused": null })
    );
    assert_eq!(outcomes[1]["outcome"], "no_subscribers");
    assert_eq!(outcomes[2]["retained"], true);
    let refused = outcomes[3]["refused"].as_str().unwrap();
    assert!(outcomes[3]["outcome"].is_null() && refused.contains("limits.retained_messages"));
    let mut got = [0; 6];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"\x30\x04\0\x01a1");
    for (wrong, what) in [
        (
            json!({ "messages": [{ "topic": "a" }, { "topic": "+" }] }),
            "message 1: a topic name",
        ),
        (
            json!({ "messages": [{ "topic": "a", "qos": 3 }] }),
            "message 0: qos is 0, 1 or 2",
        ),
        (
            json!({ "messages": vec![json!({ "topic": "a" }); 1001] }),
            "at most 1000 messages",
        ),
    ] {
        let refused = broker.post("/api/v1/publish/batch", &wrong.to_string());
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(refused.status == 400 && detail.contains(what), "{detail}");
    }
}

/// Paths with their status and a part of the reason.
const WRONG: [(&str, u16, &str); 24] = [
    (
        "clients?filter=usr%3Da",
        400,
        "there is no key usr; did you mean user?",
    ),
    (
        "clients?filter=queue%3Ex",
        400,
        "queue is compared with a number",
    ),
    (
        "clients?state=up",
        400,
        "state is one of connected, disconnected, persistent",
    ),
    ("clients?problem=x", 400, "problem is one of any, queue,"),
    (
        "clients?sort=colour",
        400,
        "sort is one of client_id, user,",
    ),
    (
        "clients/facets?filter=%22",
        400,
        "the closing quote is missing",
    ),
    ("clients/facets?limit=1", 400, "unknown field `limit`"),
    (
        "clients/facets?subscribed=a%2F%23%2Fb",
        400,
        "\"a/#/b\" is no topic filter",
    ),
    (
        "clients/a?sample_ms=0",
        400,
        "sample_ms is a number from 1 to 5000, not 0",
    ),
    (
        "clients/a?sample_ms=5001",
        400,
        "sample_ms is a number from 1 to 5000, not 5001",
    ),
    (
        "clients/b?sample_ms=1",
        404,
        "no session has the client identifier \"b\"",
    ),
    (
        "clients/a/queue?limit=0",
        400,
        "limit is a number from 1 to 1000",
    ),
    (
        "clients/a/queue?cursor=01",
        400,
        "cursor is not one of this listing",
    ),
    ("clients/a/queue?payload=maybe", 400, "`true` or `false`"),
    (
        "clients/b/queue",
        404,
        "no session has the client identifier \"b\"",
    ),
    ("groups?cursor=05", 400, "cursor is not one of this listing"),
    ("groups?limit=1001", 400, "limit is a number from 1 to 1000"),
    ("groups?colour=red", 400, "unknown field `colour`"),
    (
        "drops?topic=a%2F%23%2Fb",
        400,
        "\"a/#/b\" is no topic filter",
    ),
    ("drops?topic=%24share%2Fg%2Fa", 400, "without $share/GROUP/"),
    ("drops?cursor=07", 400, "cursor is not one of this listing"),
    (
        "slow?by=size",
        400,
        "by is one of queue, bytes, oldest, unacknowledged",
    ),
    ("slow?filter=x%3D1", 400, "there is no key x"),
    ("slow?limit=0", 400, "limit is a number from 1 to 1000"),
];

#[test]
fn invalid_parameters_of_lists_are_refused_with_the_reason() {
    let broker = TestBroker::new("list-problems", 1);
    let _stream = broker.client(b'a', 0x02);
    for (path, status, detail) in WRONG {
        let answer = broker.get(&format!("/api/v1/{path}"));
        let found = answer.body["detail"].as_str().unwrap_or_default();
        assert_eq!(
            (answer.status, &*answer.kind),
            (status, "application/problem+json"),
            "{path}"
        );
        assert!(found.contains(detail), "{path}: {found}");
        assert!(!answer.body["remedy"].as_str().unwrap().is_empty());
    }
    let refused = broker.delete("/api/v1/clients/a/session?all=true");
    assert_eq!(refused.status, 400, "{}", refused.text);
}
