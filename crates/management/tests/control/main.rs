//! The interface from outside: requests over the socket of a running broker.
#![expect(clippy::unwrap_used, reason = "a failed step of a test should panic")]

mod lists;
mod live;
mod paging;
mod retained;
mod scrapes;
mod why;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thrum_broker::config::{Anonymous, ListenerConfig, Workers};
use thrum_broker::{Access, Broker, Config, Listening};
use thrum_management::{ControlSocket, SOCKET, Security};

/// A broker with its socket in a directory of its own.
struct TestBroker {
    folder: PathBuf,
    inner: Option<Broker>,
    control: Option<ControlSocket>,
    security: Security,
    address: SocketAddr,
}

impl TestBroker {
    fn new(name: &str, workers: u16) -> Self {
        Self::with(name, workers, |_| {})
    }

    /// With another configuration.
    fn with(name: &str, workers: u16, change: impl FnOnce(&mut Config)) -> Self {
        let folder = std::env::temp_dir();
        let folder = folder.join(format!("thrum-control-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&folder).ok();
        std::fs::create_dir_all(&folder).unwrap();
        let mut config = Config::default();
        config.node.workers = Workers::Count(workers);
        config.auth.anonymous = Anonymous::Allow;
        config.limits.packet.client_id_length = u16::MAX;
        config.listeners.clear();
        let listener = ListenerConfig {
            bind: vec![SocketAddr::from(([127, 0, 0, 1], 0)).into()],
            ..ListenerConfig::default()
        };
        config.listeners.insert("mqtt".to_owned(), listener);
        change(&mut config);
        let broker = Broker::start(config, Access::default()).unwrap();
        let addresses = broker.addresses();
        let address = addresses.iter().find_map(Listening::socket_address);
        let security = Security::open(Some(&folder), None).unwrap();
        let security = security.with_clients(paging::clients(&folder));
        let control = ControlSocket::start(&folder, broker.queries(), security.clone()).unwrap();
        Self {
            folder,
            address: address.unwrap(),
            inner: Some(broker),
            control: Some(control),
            security,
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.join(SOCKET)
    }

    /// Connects an MQTT 3.1.1 client with an identifier of one letter; `flags` are those of its
    /// CONNECT.
    fn client(&self, client_id: u8, flags: u8) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let mut connect = *b"\x10\x0d\0\x04MQTT\x04\x02\0\0\0\x01a";
        (connect[9], connect[14]) = (flags, client_id);
        stream.write_all(&connect).unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        stream
    }

    /// Connects an MQTT 3.1.1 client with a clean session and an identifier of any length.
    fn client_named(&self, client_id: &str) -> TcpStream {
        let id_len = u16::try_from(client_id.len()).unwrap();
        let mut rest = 10 + 2 + client_id.len();
        let mut connect = vec![0x10];
        while rest >= 0x80 {
            connect.push(u8::try_from(rest % 0x80).unwrap() | 0x80);
            rest /= 0x80;
        }
        connect.push(u8::try_from(rest).unwrap());
        connect.extend_from_slice(b"\0\x04MQTT\x04\x02\0\0");
        connect.extend_from_slice(&id_len.to_be_bytes());
        connect.extend_from_slice(client_id.as_bytes());
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(&connect).unwrap();
        let mut connack = [0; 4];
        stream.read_exact(&mut connack).unwrap();
        assert_eq!(connack, [0x20, 2, 0, 0]);
        stream
    }

    /// Returns the client identifiers on all pages of a listing, in order.
    fn listed(&self, path: &str) -> Vec<String> {
        let mut listed = Vec::new();
        let mut page = self.get_ok(path);
        loop {
            for client in page["clients"].as_array().unwrap() {
                listed.push(client["client_id"].as_str().unwrap().to_owned());
            }
            let Some(next) = page["next"].as_str() else {
                return listed;
            };
            page = self.get_ok(&format!("{path}&cursor={next}"));
        }
    }

    fn get(&self, path: &str) -> Answer {
        request(&self.socket(), &format!("GET {path} HTTP/1.1\r\n"), "")
    }

    fn delete(&self, path: &str) -> Answer {
        request(&self.socket(), &format!("DELETE {path} HTTP/1.1\r\n"), "")
    }

    fn post(&self, path: &str, body: &str) -> Answer {
        let head = format!("POST {path} HTTP/1.1\r\nContent-Type: application/json\r\n");
        request(&self.socket(), &head, body)
    }

    /// Returns the body of the answer to a request that must succeed.
    fn get_ok(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(
            (answer.status, &*answer.kind),
            (200, "application/json"),
            "{path}: {}",
            answer.body
        );
        answer.body
    }
}

impl Drop for TestBroker {
    fn drop(&mut self) {
        if let Some(control) = self.control.take() {
            control.stop();
        }
        if let Some(broker) = self.inner.take() {
            broker.stop();
        }
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

struct Answer {
    status: u16,
    kind: String,
    /// Null if it is no JSON.
    body: Value,
    text: String,
}

/// The bytes of an answer.
fn raw_request(socket: &Path, head: &str, body: &str) -> Vec<u8> {
    let mut stream = UnixStream::connect(socket).unwrap();
    let len = body.len();
    let text =
        format!("{head}Host: thrum\r\nConnection: close\r\nContent-Length: {len}\r\n\r\n{body}");
    // A server that refuses a request may not read all of it.
    stream.write_all(text.as_bytes()).ok();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok();
    bytes
}

/// Where the body of an answer begins.
fn end_of_head(answer: &[u8]) -> usize {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    end.unwrap() + 4
}

fn request(socket: &Path, head: &str, body: &str) -> Answer {
    let bytes = raw_request(socket, head, body);
    let mut fields = [httparse::EMPTY_HEADER; 16];
    let mut answer = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(len) = answer.parse(&bytes).unwrap() else {
        panic!("{bytes:?}");
    };
    let field = |name: &str| {
        let mut fields = answer.headers.iter();
        let field = fields.find(|field| field.name.eq_ignore_ascii_case(name));
        field.map_or(&b""[..], |field| field.value)
    };
    let mut body = bytes[len..].to_vec();
    if field("transfer-encoding") == b"chunked" {
        body = put_together(&body);
    }
    Answer {
        status: answer.code.unwrap(),
        kind: String::from_utf8(field("content-type").to_vec()).unwrap(),
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        text: String::from_utf8(body).unwrap(),
    }
}

/// The body of chunks, each with its size in front.
fn put_together(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(httparse::Status::Complete((at, size))) = httparse::parse_chunk_size(chunks) {
        let size = usize::try_from(size).unwrap();
        body.extend_from_slice(&chunks[at..at + size]);
        chunks = &chunks[at + size + 2..];
        if size == 0 {
            break;
        }
    }
    body
}

#[test]
fn only_the_owner_may_use_the_socket_which_is_removed_with_the_broker() {
    let mut broker = TestBroker::new("mode", 1);
    let found = std::fs::metadata(broker.socket()).unwrap();
    assert_eq!(found.mode() & 0o777, 0o600);
    let queries = broker.inner.as_ref().unwrap().queries();
    let security = broker.security.clone();
    let second =
        ControlSocket::start(&broker.folder, queries.clone(), security.clone()).unwrap_err();
    assert!(second.is_in_use(), "{second}");
    broker.control.take().unwrap().stop();
    assert!(!broker.socket().exists());
    // A stale socket is replaced.
    drop(std::os::unix::net::UnixListener::bind(broker.socket()).unwrap());
    broker.control = Some(ControlSocket::start(&broker.folder, queries, security).unwrap());
    assert_eq!(broker.get_ok("/api/v1/status")["workers"], 1);
}

#[test]
fn clients_are_listed_page_by_page_and_shown_one_by_one() {
    let broker = TestBroker::new("clients", 4);
    let streams: Vec<_> = (b'a'..=b'e').map(|id| broker.client(id, 0x02)).collect();
    drop(broker.client(b'z', 0));
    let mut path = "/api/v1/clients?limit=2&connected=true".to_owned();
    let mut listed = Vec::new();
    loop {
        let page = broker.get_ok(&path);
        assert_eq!(page["matching"], 5);
        for client in page["clients"].as_array().unwrap() {
            listed.push(client["client_id"].as_str().unwrap().to_owned());
            assert_eq!(client["protocol_version"], "3.1.1");
            assert!(client["connected_at"].as_str().unwrap().ends_with('Z'));
            assert!(client["away_since"].is_null());
        }
        let Some(next) = page["next"].as_str() else {
            break;
        };
        path = format!("/api/v1/clients?limit=2&connected=true&cursor={next}");
    }
    assert_eq!(listed, ["a", "b", "c", "d", "e"]);
    let down = broker.get_ok("/api/v1/clients?sort=client_id&descending=true&client=%5B*");
    assert_eq!(down["matching"], 0, "a pattern is decoded");
    let one = broker.get_ok("/api/v1/clients/c");
    assert_eq!(
        (&one["client_id"], &one["clean_start"]),
        (&json!("c"), &json!(true))
    );
    assert_eq!(one["connection"]["scheme"], "mqtt");
    assert_eq!(one["subscription_list"], json!([]));
    drop(streams);
}

#[test]
fn clients_are_listed_page_by_page_without_an_order() {
    let broker = TestBroker::new("unsorted", 4);
    let _streams: Vec<_> = (b'a'..=b'k').map(|id| broker.client(id, 0x02)).collect();
    let page = broker.get_ok("/api/v1/clients?sort=none&limit=2");
    assert!(page["matching"].is_null());
    let mut listed = broker.listed("/api/v1/clients?sort=none&limit=2");
    listed.sort();
    let expected: Vec<String> = (b'a'..=b'k').map(|id| char::from(id).to_string()).collect();
    assert_eq!(listed, expected);
    let other = broker.get_ok("/api/v1/clients?limit=2")["next"].clone();
    let cursor = other.as_str().unwrap();
    let refused = broker.get(&format!("/api/v1/clients?sort=none&cursor={cursor}"));
    assert_eq!(refused.status, 400);
}

#[test]
fn the_longest_client_identifiers_are_listed_page_by_page() {
    let broker = TestBroker::new("longest", 2);
    let names = [1, 2, 3].map(|number| format!("{}{number}", "x".repeat(65_534)));
    let _streams = names.each_ref().map(|name| broker.client_named(name));
    for order in ["sort=client_id", "sort=queued_bytes", "sort=none"] {
        let mut listed = broker.listed(&format!("/api/v1/clients?{order}&limit=1"));
        listed.sort();
        assert!(listed == names, "{order}: {} clients", listed.len());
    }
}

#[test]
fn a_client_is_kicked_and_its_session_ended() {
    let broker = TestBroker::new("kick", 4);
    let mut stream = broker.client(b'k', 0);
    let kick = |session: bool| {
        let line = format!("DELETE /api/v1/clients/k?session={session} HTTP/1.1\r\n");
        request(&broker.socket(), &line, "")
    };
    let kicked = kick(false);
    let expected = json!({ "disconnected": true, "session_ended": false });
    assert_eq!((kicked.status, kicked.body), (200, expected));
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    let expected = json!({ "disconnected": false, "session_ended": true });
    assert_eq!(kick(true).body, expected);
    let gone = kick(true);
    assert_eq!(
        (gone.status, &*gone.kind),
        (404, "application/problem+json")
    );
    assert_eq!(
        gone.body["detail"],
        "no session has the client identifier \"k\""
    );
}

#[test]
fn the_timeline_of_a_client_that_has_gone_is_told_in_words_and_as_data() {
    let broker = TestBroker::new("timeline", 4);
    let path = "/api/v1/clients/t/timeline";
    let unknown = broker.get(path);
    assert_eq!(
        (unknown.status, &*unknown.kind),
        (404, "application/problem+json")
    );
    assert_eq!(unknown.body["title"], "no such client");
    let first = broker.client(b't', 0x02);
    let mut second = broker.client(b't', 0x02);
    second.write_all(b"\xe0\0").unwrap();
    assert_eq!(second.read(&mut [0]).unwrap(), 0);
    let timeline = broker.get_ok(path);
    let events = timeline["events"].as_array().unwrap();
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    let visit = ["connected", "disconnected"];
    assert_eq!(kinds, [visit, visit].concat(), "{timeline:#}");
    assert_eq!(
        (&timeline["client_id"], &timeline["forgotten"]),
        (&json!("t"), &json!(0))
    );
    let (connected, taken_over, left) = (&events[0], &events[1], &events[3]);
    assert_eq!(connected["protocol_version"], "3.1.1");
    let other = events[2]["peer"].as_str().unwrap();
    assert_eq!(
        taken_over["cause"],
        json!({ "kind": "taken_over", "by": other })
    );
    assert_eq!(taken_over["session_ended"], true);
    let text = taken_over["text"].as_str().unwrap();
    assert!(
        text.contains("taken over") && text.contains(other),
        "{text}"
    );
    assert_eq!(
        left["cause"],
        json!({ "kind": "by_client", "with_will": false })
    );
    assert!(left["at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(left["count"], 1);
    drop(first);
}

#[test]
fn the_packets_of_some_seconds_are_traced_as_lines_and_for_wireshark() {
    let broker = TestBroker::new("trace", 2);
    let mut client = broker.client(b'c', 0x02);
    let socket = broker.socket();
    let trace = |query: &str| {
        let line = format!("GET /api/v1/trace?{query} HTTP/1.1\r\n");
        let socket = socket.clone();
        std::thread::spawn(move || raw_request(&socket, &line, ""))
    };
    let lines = trace("client=c&packets=2&seconds=10&payloads=true");
    let capture = trace("address=127.0.0.1&packets=2&seconds=10&format=pcapng");
    while !(lines.is_finished() && capture.is_finished()) {
        // QoS 0, and a PING that is answered.
        client.write_all(b"\x30\x05\0\x01thi\xc0\0").unwrap();
        client.read_exact(&mut [0; 2]).unwrap();
    }
    let lines = lines.join().unwrap();
    let (head, body) = lines.split_at(end_of_head(&lines));
    assert!(String::from_utf8_lossy(head).contains("application/jsonl"));
    let lines: Vec<Value> = String::from_utf8_lossy(body)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.last().unwrap(), &json!({ "ended": "packets" }));
    let packets: Vec<&Value> = lines.iter().filter_map(|line| line.get("packet")).collect();
    assert_eq!(packets.len(), 2, "{lines:?}");
    let published = packets.iter().find(|packet| packet["packet"] == "PUBLISH");
    if let Some(published) = published {
        assert_eq!(published["topic"], "t");
        assert_eq!(
            (&published["payload"], &published["payload_bytes"]),
            (&json!("hi"), &json!(2))
        );
        assert_eq!(published["direction"], "from_client");
        assert_eq!(published["client_id"], "c");
    }
    let capture = capture.join().unwrap();
    let body = &capture[end_of_head(&capture)..];
    assert_eq!(body[..4], [0x0A, 0x0D, 0x0D, 0x0A], "a section of pcapng");
    let looks = broker.get_ok("/api/v1/audit?action=messages.watched");
    let looks = looks["entries"].as_array().unwrap();
    assert_eq!(looks.len(), 1, "only one of them shows payloads: {looks:?}");
    assert_eq!(
        (&looks[0]["who"], &looks[0]["target"]),
        (&json!("local"), &json!("client c"))
    );
    for (query, what) in [
        ("", "one of client, topic and address"),
        ("client=c&topic=t", "one of client, topic and address"),
        ("topic=a/%23/b", "no topic filter"),
        ("client=c&seconds=11", "1 to 10"),
        ("client=c&packets=0", "1 to 10000"),
    ] {
        let refused = broker.get(&format!("/api/v1/trace?{query}"));
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(
            refused.status == 400 && detail.contains(what),
            "{query}: {detail}"
        );
    }
}

#[test]
fn packets_are_explained_step_by_step_without_being_sent() {
    let broker = TestBroker::new("explain", 4);
    let mut client = broker.client(b'c', 0x02);
    client.write_all(b"\x82\x06\0\x01\0\x01t\x01").unwrap();
    client.read_exact(&mut [0; 5]).unwrap();
    let ok = |path: &str, body: Value| {
        let answer = broker.post(path, &body.to_string());
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    };
    let asked = json!({ "client_id": "c", "topic": "t", "qos": 1 });
    let publish = ok("/api/v1/explain/publish", asked);
    assert_eq!(publish["accepted"], true);
    assert_eq!(publish["receivers"][0]["client_id"], "c");
    assert_eq!(publish["receivers"][0]["outcome"], "sent");
    assert_eq!(publish["receivers"][0]["filters"], json!(["t"]));
    let asked = json!({ "client_id": "c", "topic": "$SYS/x" });
    let reserved = ok("/api/v1/explain/publish", asked);
    assert_eq!(reserved["accepted"], false);
    let last = reserved["steps"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["check"], &last["reason_code"]),
        (&json!("reserved"), &json!(0x87))
    );
    let asked = json!({ "client_id": "c", "filter": "t", "qos": 2 });
    let subscribe = ok("/api/v1/explain/subscribe", asked);
    assert_eq!(
        (&subscribe["granted"], &subscribe["qos"]),
        (&json!(true), &json!(2))
    );
    assert_eq!(subscribe["replaces"], true);
    let drops = ok("/api/v1/explain/drops", json!({ "client_id": "c" }));
    assert_eq!(
        (&drops["dropped"], &drops["last"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(drops["now"][1], "QoS 1: sent at once");
    for path in ["publish", "subscribe", "drops"] {
        let path = format!("/api/v1/explain/{path}");
        let unknown = json!({ "client_id": "x", "topic": "t", "filter": "t" });
        let mut unknown = unknown;
        for key in ["topic", "filter"] {
            let is_wanted = path.ends_with("publish") && key == "topic"
                || path.ends_with("subscribe") && key == "filter";
            if !is_wanted {
                unknown.as_object_mut().unwrap().remove(key);
            }
        }
        let answer = broker.post(&path, &unknown.to_string());
        assert_eq!(
            (answer.status, &answer.body["title"]),
            (404, &json!("no such client"))
        );
        let bad = broker.post(&path, "{}");
        assert_eq!((bad.status, &*bad.kind), (400, "application/problem+json"));
    }
}

#[test]
fn a_message_is_published_and_retained() {
    let broker = TestBroker::new("publish", 4);
    let publish = |body: Value| broker.post("/api/v1/publish", &body.to_string());
    let no_subscribers = publish(json!({ "topic": "a", "payload": "x", "qos": 1 }));
    let expected = json!({ "outcome": "no_subscribers", "retained": false });
    assert_eq!(
        (no_subscribers.status, no_subscribers.body),
        (200, expected)
    );
    let mut stream = broker.client(b's', 0x02);
    stream.write_all(b"\x82\x06\0\x01\0\x01a\0").unwrap();
    stream.read_exact(&mut [0; 5]).unwrap();
    let kept = publish(json!({ "topic": "a", "payload_base64": "AP8=", "retain": true }));
    let expected = json!({ "outcome": "delivered", "retained": true });
    assert_eq!((kept.status, kept.body), (200, expected));
    let mut got = [0; 7];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"\x30\x05\0\x01a\x00\xFF");
    let retained = broker.get_ok("/api/v1/retained?filter=%23");
    let message = &retained["messages"][0];
    assert_eq!(
        (&message["topic"], &message["payload_bytes"]),
        (&json!("a"), &json!(2))
    );
    assert!(message["publisher"].is_null() && retained["next"].is_null());
    let subscriptions = broker.get_ok("/api/v1/clients/s/subscriptions");
    assert_eq!(
        subscriptions,
        broker.get_ok("/api/v1/subscriptions?filter=a")
    );
    assert_eq!(subscriptions["subscriptions"][0]["filter"], "a");
}

#[test]
fn an_invalid_request_is_refused_with_the_reason() {
    let broker = TestBroker::new("problems", 1);
    for (path, status, detail) in [
        (
            "/api/v1/clients?limit=0",
            400,
            "limit is a number from 1 to 1000, not 0",
        ),
        (
            "/api/v1/clients?limit=1001",
            400,
            "limit is a number from 1 to 1000, not 1001",
        ),
        (
            "/api/v1/clients?sort=size",
            400,
            "sort is one of client_id,",
        ),
        ("/api/v1/clients?version=4", 400, "version is one of 3.1,"),
        ("/api/v1/clients?address=here", 400, "address: "),
        (
            "/api/v1/clients?cursor=xyz",
            400,
            "cursor: the cursor is not one of this listing",
        ),
        ("/api/v1/clients?colour=red", 400, "unknown field `colour`"),
        (
            "/api/v1/clients?subscribed=a%2F%23%2Fb",
            400,
            "\"a/#/b\" is no topic filter",
        ),
        (
            "/api/v1/retained?filter=%24share%2Fg%2Fa",
            400,
            "retained messages are found by",
        ),
        (
            "/api/v1/clients/nobody/subscriptions",
            404,
            "no session has the",
        ),
        ("/api/v1/nothing", 404, "there is no route /api/v1/nothing"),
        ("/api/v1/publish", 405, "/api/v1/publish does not take GET"),
    ] {
        let answer = broker.get(path);
        assert_eq!(
            (answer.status, &*answer.kind),
            (status, "application/problem+json"),
            "{path}"
        );
        assert_eq!(answer.body["status"], status);
        let detail_text = answer.body["detail"].as_str().unwrap();
        assert!(detail_text.contains(detail), "{path}: {detail_text}");
        assert!(!answer.body["remedy"].as_str().unwrap().is_empty());
    }
}

#[test]
fn an_invalid_body_is_refused_with_the_reason() {
    let broker = TestBroker::new("bodies", 1);
    for (body, status, detail) in [
        (r#"{"topic":"a/+"}"#.to_owned(), 400, "neither +, # nor"),
        (
            r#"{"topic":"a","qos":3}"#.to_owned(),
            400,
            "qos is 0, 1 or 2",
        ),
        (
            r#"{"topic":"a","payload":"","payload_base64":""}"#.to_owned(),
            400,
            "not both",
        ),
        (
            r#"{"topic":"a","payload_base64":"?"}"#.to_owned(),
            400,
            "no base64",
        ),
        ("{".to_owned(), 400, "EOF"),
        (
            format!("{{\"topic\":\"{}\"}}", "a".repeat(1024 * 1024)),
            413,
            "at most 1048576",
        ),
    ] {
        let answer = broker.post("/api/v1/publish", &body);
        let detail_text = answer.body["detail"].as_str().unwrap_or_default();
        assert_eq!(answer.status, status, "{detail_text}");
        assert!(detail_text.contains(detail), "{detail_text}");
    }
    let untyped = request(&broker.socket(), "POST /api/v1/publish HTTP/1.1\r\n", "{}");
    assert_eq!(untyped.status, 415);
}

#[test]
fn a_head_that_is_too_long_is_refused() {
    let broker = TestBroker::new("head", 1);
    let long = broker.get(&format!("/api/v1/clients?client={}", "a".repeat(100_000)));
    assert_eq!(long.status, 414);
    let field = "a".repeat(200_000);
    let head = format!("GET /api/v1/status HTTP/1.1\r\nX-Long: {field}\r\n");
    assert_eq!(request(&broker.socket(), &head, "").status, 431);
    let fields = "X-Many: a\r\n".repeat(100);
    let head = format!("GET /api/v1/status HTTP/1.1\r\n{fields}");
    assert_eq!(request(&broker.socket(), &head, "").status, 431);
}

#[test]
fn the_metrics_have_every_counter_by_its_name() {
    let broker = TestBroker::new("metrics", 4);
    let _stream = broker.client(b'a', 0x02);
    let metrics = broker.get_ok("/api/v1/metrics");
    assert_eq!(metrics["counters"]["connections/accepted"], 1);
    assert_eq!(
        metrics["counters"]["publish/messages/dropped/queue_full"],
        0
    );
    assert!(metrics["storage"].is_null());
    let status = broker.get_ok("/api/v1/status");
    assert_eq!(status["connections"]["established"], 1);
    let listener = &status["listeners"][0];
    let address = format!("mqtt://{}", broker.address);
    assert_eq!(
        (&listener["name"], &listener["address"]),
        (&json!("mqtt"), &json!(address))
    );
}

/// The head and the body of the answer at `/metrics`.
fn scrape(broker: &TestBroker, accept: &str) -> (String, String) {
    let mut stream = UnixStream::connect(broker.socket()).unwrap();
    let head = "GET /metrics HTTP/1.1\r\nHost: thrum\r\nConnection: close\r\n";
    let head = format!("{head}Accept: {accept}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[test]
fn a_scrape_has_the_format_that_its_reader_accepts() {
    let broker = TestBroker::new("scrape", 2);
    let _stream = broker.client(b'a', 0x02);
    for (accept, kind, end) in [
        ("*/*", "text/plain; version=0.0.4", "\n"),
        (
            "application/openmetrics-text;version=1.0.0,*/*;q=0.1",
            "application/openmetrics-text; version=1.0.0",
            "\n# EOF\n",
        ),
    ] {
        let (head, body) = scrape(&broker, accept);
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(head.contains(&format!("content-type: {kind}; ")), "{head}");
        assert!(body.contains("\nthrum_clients_connected 1\n"), "{body}");
        let listener = "\nthrum_listener_connections{listener=\"mqtt\"} 1\n";
        assert!(body.contains(listener) && body.ends_with(end), "{body}");
    }
    let accept = "application/vnd.google.protobuf;encoding=delimited";
    let (head, body) = scrape(&broker, accept);
    assert!(head.contains("proto=io.prometheus.client.MetricFamily; encoding=delimited"));
    assert!(body.contains("thrum_message_stage_seconds"));
}
