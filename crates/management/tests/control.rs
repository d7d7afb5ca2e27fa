//! The interface from outside: requests over the socket of a running broker.
#![expect(clippy::unwrap_used, reason = "a failed step of a test should panic")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thrum_broker::config::{Anonymous, ListenerConfig, Workers};
use thrum_broker::{Access, Broker, Config, Listening};
use thrum_management::{ControlSocket, SOCKET};

/// A broker with its socket in a directory of its own.
struct TestBroker {
    folder: PathBuf,
    inner: Option<Broker>,
    control: Option<ControlSocket>,
    address: SocketAddr,
}

impl TestBroker {
    fn new(name: &str, workers: u16) -> Self {
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
        let broker = Broker::start(config, Access::default()).unwrap();
        let addresses = broker.addresses();
        let address = addresses.iter().find_map(Listening::socket_address);
        let control = ControlSocket::start(&folder, broker.queries()).unwrap();
        Self {
            folder,
            address: address.unwrap(),
            inner: Some(broker),
            control: Some(control),
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
    body: Value,
}

fn request(socket: &Path, head: &str, body: &str) -> Answer {
    let mut stream = UnixStream::connect(socket).unwrap();
    let len = body.len();
    let text =
        format!("{head}Host: thrum\r\nConnection: close\r\nContent-Length: {len}\r\n\r\n{body}");
    // A server that refuses a request may not read all of it.
    stream.write_all(text.as_bytes()).ok();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok();
    let mut fields = [httparse::EMPTY_HEADER; 16];
    let mut answer = httparse::Response::new(&mut fields);
    let httparse::Status::Complete(len) = answer.parse(&bytes).unwrap() else {
        panic!("{bytes:?}");
    };
    let mut fields = answer.headers.iter();
    let kind = fields.find(|field| field.name.eq_ignore_ascii_case("content-type"));
    let kind = kind.map_or(&b""[..], |field| field.value);
    Answer {
        status: answer.code.unwrap(),
        kind: String::from_utf8(kind.to_vec()).unwrap(),
        body: serde_json::from_slice(&bytes[len..]).unwrap_or(Value::Null),
    }
}

#[test]
fn only_the_owner_may_use_the_socket_which_is_removed_with_the_broker() {
    let mut broker = TestBroker::new("mode", 1);
    let found = std::fs::metadata(broker.socket()).unwrap();
    assert_eq!(found.mode() & 0o777, 0o600);
    let queries = broker.inner.as_ref().unwrap().queries();
    let second = ControlSocket::start(&broker.folder, queries.clone()).unwrap_err();
    assert!(second.is_in_use(), "{second}");
    broker.control.take().unwrap().stop();
    assert!(!broker.socket().exists());
    // A stale socket is replaced.
    drop(std::os::unix::net::UnixListener::bind(broker.socket()).unwrap());
    broker.control = Some(ControlSocket::start(&broker.folder, queries).unwrap());
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
            "length limit",
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
