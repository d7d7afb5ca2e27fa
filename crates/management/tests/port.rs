//! The HTTP port from outside: requests of browsers, programs, probes, proxies and MQTT clients.
#![expect(clippy::unwrap_used, reason = "a failed step of a test should panic")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};
use thrum_broker::config::{Anonymous, ListenerConfig, Transport, Workers};
use thrum_broker::{Access, Broker, Config, Listening};
use thrum_management::{HttpServer, Security};

/// CONNECT of an MQTT 3.1.1 client with a clean session and the identifier `a`, in a frame of a
/// WebSocket whose mask is zero.
const CONNECT_FRAME: &[u8] = b"\x82\x8f\0\0\0\0\x10\x0d\0\x04MQTT\x04\x02\0\0\0\x01a";
/// The CONNACK in a frame.
const CONNACK_FRAME: &[u8] = b"\x82\x04\x20\x02\0\0";
const UPGRADE: &str = "Host: thrum\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// A broker with an HTTP listener only.
struct TestBroker {
    broker: Broker,
    server: HttpServer,
    security: Security,
    address: SocketAddr,
}

fn config(change: impl FnOnce(&mut ListenerConfig)) -> Config {
    let mut config = Config::default();
    config.node.workers = Workers::Count(2);
    config.auth.anonymous = Anonymous::Allow;
    config.listeners.clear();
    let mut listener = ListenerConfig {
        bind: vec![SocketAddr::from(([127, 0, 0, 1], 0)).into()],
        transport: Transport::Http,
        ..ListenerConfig::default()
    };
    change(&mut listener);
    config.listeners.insert("http".to_owned(), listener);
    config
}

impl TestBroker {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut ListenerConfig)) -> Self {
        let broker = Broker::start(config(change), Access::default()).unwrap();
        let security = Security::open(None, None).unwrap();
        let ports = broker.http_ports();
        let address = ports[0].listening().socket_address().unwrap();
        let server = HttpServer::start(ports, broker.queries(), security.clone()).unwrap();
        Self {
            broker,
            server,
            security,
            address,
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        let limit = Some(Duration::from_secs(20));
        stream.set_read_timeout(limit).unwrap();
        stream
    }

    /// One request on a connection of its own.
    fn ask(&self, head: &str, body: &str) -> Answer {
        let mut stream = self.connect();
        let len = body.len();
        write!(
            stream,
            "{head}Host: thrum\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        Answer::read(&bytes)
    }

    fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path} HTTP/1.1\r\n"), "")
    }

    fn post(&self, path: &str, more: &str, body: &Value) -> Answer {
        let head = format!("POST {path} HTTP/1.1\r\nContent-Type: application/json\r\n{more}");
        self.ask(&head, &body.to_string())
    }

    /// Makes the first administrator; returns the header with its cookie.
    fn set_up(&self) -> String {
        let link = self.security.setup_link().unwrap().unwrap();
        let token = link.strip_prefix("setup?t=").unwrap();
        let body = json!({ "token": token, "name": "admin", "password": "correct horse battery" });
        let answer = self.post("/api/v1/login/setup", "", &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        let cookie = answer.field("set-cookie").unwrap();
        let cookie = cookie.split(';').next().unwrap();
        format!("Cookie: {cookie}\r\n")
    }

    /// In the order of a program that ends.
    fn stop(self) {
        self.server.close();
        self.broker.stop();
        self.server.stop();
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        Self {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.find_map(|(found, value)| found.eq_ignore_ascii_case(name).then_some(value))
    }
}

/// Reads the head of an answer, byte by byte, so that nothing behind it is read.
fn head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        bytes.extend(byte);
    }
    String::from_utf8(bytes).unwrap()
}

/// A request on a connection that stays open; returns the head of its answer.
fn ask_on(stream: &mut TcpStream) -> String {
    write!(stream, "GET /livez HTTP/1.1\r\nHost: thrum\r\n\r\n").unwrap();
    let answer = head(stream);
    let mut lens = answer.lines().filter_map(|line| line.split_once(": "));
    let len = lens.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let len = len.unwrap().1.parse().unwrap();
    stream.read_exact(&mut vec![0; len]).unwrap();
    answer
}

/// Upgrades a connection, and connects a client of MQTT over it.
fn connect_mqtt(stream: &mut TcpStream) {
    write!(stream, "GET /mqtt HTTP/1.1\r\n{UPGRADE}").unwrap();
    let answer = head(stream);
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    stream.write_all(CONNECT_FRAME).unwrap();
    let mut connack = [0; CONNACK_FRAME.len()];
    stream.read_exact(&mut connack).unwrap();
    assert_eq!(connack, *CONNACK_FRAME);
}

#[test]
fn nobody_sees_anything_before_a_login_and_the_setup_link_makes_the_first_administrator() {
    let broker = TestBroker::new();
    for path in [
        "/api/v1/clients",
        "/api/v1/status",
        "/api/v1/metrics",
        "/api/v1/retained",
    ] {
        let answer = broker.get(path);
        assert_eq!(answer.status, 401, "{path} {answer:?}");
        assert_eq!(
            answer.field("content-type"),
            Some("application/problem+json")
        );
        assert!(answer.json()["remedy"].is_string());
    }
    let answers = broker.security.figures().answers;
    let refused = answers.iter().find(|one| one.label == "401");
    assert_eq!(refused.map(|one| one.value), Some(4), "each is counted");
    let cookie = broker.set_up();
    assert!(
        broker.security.setup_link().unwrap().is_none(),
        "the link has ended"
    );
    let answer = broker.ask(&format!("GET /api/v1/status HTTP/1.1\r\n{cookie}"), "");
    assert_eq!(answer.status, 200, "{answer:?}");
    broker.stop();
}

/// The scripts, styles and pictures that a page names.
fn files_of(page: &str) -> Vec<&str> {
    let values = page.split("=\"").skip(1);
    let values = values.filter_map(|rest| Some(rest.split_once('"')?.0));
    let is_file = |value: &&str| {
        [".js", ".css", ".svg"]
            .iter()
            .any(|end| value.ends_with(end))
    };
    let files = values.filter(is_file);
    files.map(|file| file.trim_start_matches("./")).collect()
}

#[test]
fn pages_and_probes_need_no_login_and_protect_the_browser() {
    let broker = TestBroker::new();
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/setup?t=1", "text/html; charset=utf-8"),
        ("/livez", "text/plain; charset=utf-8"),
        ("/readyz", "text/plain; charset=utf-8"),
    ] {
        let answer = broker.get(path);
        assert_eq!(answer.status, 200, "{path} {answer:?}");
        assert_eq!(answer.field("content-type"), Some(kind), "{path}");
        let policy = answer.field("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'self'"), "{policy}");
        assert_eq!(answer.field("referrer-policy"), Some("no-referrer"));
        // Below a path of a proxy only relative links work.
        for absolute in ["=\"/", "=\"http", "fetch(\"/", "url("] {
            assert!(!answer.body.contains(absolute), "{path} has {absolute}");
        }
        for file in files_of(&answer.body) {
            let answer = broker.get(&format!("/{file}"));
            assert_eq!(answer.status, 200, "{path} needs {file}: {answer:?}");
        }
    }
    assert!(!files_of(&broker.get("/setup").body).is_empty());
    assert_eq!(broker.get("/nothing").status, 404);
    let refused = broker.post("/livez", "", &json!({}));
    assert_eq!(refused.status, 405, "{refused:?}");
    assert!(refused.json()["remedy"].is_string());
    broker.stop();
}

#[test]
fn a_client_of_mqtt_connects_over_websocket_at_once_and_after_other_requests() {
    let broker = TestBroker::new();
    let mut first = broker.connect();
    connect_mqtt(&mut first);
    // A proxy may use a connection for requests first, and for a WebSocket then.
    let mut second = broker.connect();
    assert!(ask_on(&mut second).starts_with("HTTP/1.1 200 "));
    connect_mqtt(&mut second);
    // The same identifier: the first is disconnected by the second.
    let mut bytes = Vec::new();
    first.read_to_end(&mut bytes).unwrap();
    assert_eq!(broker.broker.clients_connected(), 1);
    drop(second);
    broker.stop();
}

#[test]
fn a_request_for_mqtt_that_is_no_websocket_is_refused_with_a_reason() {
    let broker = TestBroker::new();
    let answer = broker.get("/mqtt");
    assert!((400..500).contains(&answer.status), "{answer:?}");
    let answer = broker.post("/mqtt", "", &json!({}));
    assert_eq!(answer.status, 426, "{answer:?}");
    assert!(
        answer.json()["remedy"]
            .as_str()
            .unwrap()
            .contains("websocket")
    );
    broker.stop();
}

#[test]
fn the_head_of_a_request_has_a_limit() {
    let broker = TestBroker::new();
    let long = "x".repeat(200 * 1024);
    let mut stream = broker.connect();
    // The answer may come before all was sent.
    write!(
        stream,
        "GET /livez HTTP/1.1\r\nHost: thrum\r\nX: {long}\r\n\r\n"
    )
    .ok();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok();
    let text = String::from_utf8_lossy(&bytes);
    assert!(
        text.is_empty() || text.starts_with("HTTP/1.1 431 "),
        "{text}"
    );
    assert_eq!(broker.get("/livez").status, 200);
    broker.stop();
}

#[test]
fn only_a_trusted_proxy_names_the_sender_of_a_request() {
    let wrong = |broker: &TestBroker, from: &str| {
        let body = json!({ "name": "nobody", "password": "wrong wrong wrong" });
        let more = format!("X-Forwarded-For: {from}\r\n");
        broker.post("/api/v1/login", &more, &body).status
    };
    let strict = TestBroker::new();
    strict.set_up();
    let statuses = (0..8).map(|number| wrong(&strict, &format!("192.0.2.{number}")));
    let statuses: Vec<_> = statuses.collect();
    assert!(statuses.contains(&429), "one sender: {statuses:?}");
    strict.stop();
    let proxied = TestBroker::with(|listener| {
        listener.proxy_from = vec!["127.0.0.0/8".parse().unwrap()];
    });
    proxied.set_up();
    // Networks that have nothing to do with each other.
    let statuses = (0..8).map(|number| wrong(&proxied, &format!("{}.7.7.7", 20 + number)));
    let statuses: Vec<_> = statuses.collect();
    assert!(statuses.iter().all(|status| *status == 401), "{statuses:?}");
    proxied.stop();
}

#[test]
fn a_reload_opens_and_closes_ports() {
    let mut test = TestBroker::new();
    let before = test.address;
    let mut old = test.connect();
    assert!(ask_on(&mut old).starts_with("HTTP/1.1 200 "));
    let addresses = test.broker.addresses();
    assert!(addresses.iter().any(|one| one.scheme == "http"));
    let mut other = config(|_| {});
    let moved = other.listeners.remove("http").unwrap();
    other.listeners.insert("other".to_owned(), moved);
    other
        .listeners
        .get_mut("other")
        .unwrap()
        .bind
        .push("127.0.0.2:0".parse::<SocketAddr>().unwrap().into());
    let (waiting, settling) = test.broker.reload(&other).unwrap();
    assert!(waiting.is_empty());
    settling.wait(Duration::from_secs(5)).unwrap();
    test.server.renew(test.broker.http_ports());
    // The address that both have is the same socket.
    assert!(
        test.broker
            .addresses()
            .iter()
            .any(|one| one.socket_address() == Some(before))
    );
    assert_eq!(test.get("/livez").status, 200);
    let second = test.broker.addresses();
    let second = second.iter().filter_map(Listening::socket_address);
    test.address = second.clone().find(|one| *one != before).unwrap();
    assert_eq!(test.get("/livez").status, 200);
    other.listeners.get_mut("other").unwrap().bind.remove(0);
    let (_, settling) = test.broker.reload(&other).unwrap();
    settling.wait(Duration::from_secs(5)).unwrap();
    test.server.renew(test.broker.http_ports());
    assert_eq!(test.get("/livez").status, 200);
    let refused = (0..100).any(|_| {
        let refused = TcpStream::connect(before).is_err();
        if !refused {
            std::thread::yield_now();
        }
        refused
    });
    assert!(refused, "{before} is closed, though a connection is left");
    let answer = ask_on(&mut old);
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    test.stop();
}

/// What a new connection at an address is answered, once the old sockets are closed.
fn answered(address: SocketAddr, request: &str, expected: &str) {
    let mut last = String::new();
    for _ in 0..200 {
        if let Ok(mut stream) = TcpStream::connect(address) {
            let limit = Some(Duration::from_secs(5));
            stream.set_read_timeout(limit).unwrap();
            let mut bytes = [0; 13];
            let sent = stream.write_all(request.as_bytes());
            let read = sent.and_then(|()| stream.read_exact(&mut bytes));
            last = read.map_or_else(
                |error| error.to_string(),
                |()| String::from_utf8_lossy(&bytes).into_owned(),
            );
            if last == expected {
                return;
            }
        }
        std::thread::yield_now();
    }
    panic!("{expected:?} is expected, and {last:?} is there");
}

#[test]
fn an_address_goes_from_http_to_a_websocket_listener_and_back_in_one_reload() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let bind = |listener: &mut ListenerConfig| listener.bind = vec![address.into()];
    let mut test = TestBroker::with(bind);
    assert_eq!(test.get("/livez").status, 200);
    let mut reload = |config: &Config| {
        let (_, settling) = test.broker.reload(config).unwrap();
        settling.wait(Duration::from_secs(20)).unwrap();
        test.server.renew(test.broker.http_ports());
    };
    let mut other = config(bind);
    let mut listener = other.listeners.remove("http").unwrap();
    listener.transport = Transport::WebSocket;
    other.listeners.insert("ws".to_owned(), listener);
    reload(&other);
    let upgrade = format!("GET /mqtt HTTP/1.1\r\n{UPGRADE}");
    answered(address, &upgrade, "HTTP/1.1 101 ");
    let probe = "GET /livez HTTP/1.1\r\nHost: thrum\r\n\r\n";
    answered(address, probe, "HTTP/1.1 426 ");
    reload(&config(bind));
    answered(address, probe, "HTTP/1.1 200 ");
    test.stop();
}

#[test]
fn a_refusal_reaches_a_client_that_sends_its_body_later() {
    let broker = TestBroker::new();
    for _ in 0..20 {
        let mut stream = broker.connect();
        let head = "POST /api/v1/publish HTTP/1.1\r\nHost: thrum\r\nContent-Type: application/json\r\n\
            Content-Length: 2\r\nConnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        std::thread::yield_now();
        stream.write_all(b"{}").unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        assert_eq!(Answer::read(&bytes).status, 401);
    }
    broker.stop();
}

#[test]
fn clients_are_told_that_the_broker_ends_however_they_came_in() {
    // CONNECT of MQTT 5.0 in a frame.
    let connect = b"\x82\x90\0\0\0\0\x10\x0e\0\x04MQTT\x05\x02\0\0\0\0\x01";
    let broker = TestBroker::new();
    let mut streams = [broker.connect(), broker.connect()];
    assert!(ask_on(&mut streams[1]).starts_with("HTTP/1.1 200 "));
    for (stream, client_id) in streams.iter_mut().zip(*b"ab") {
        write!(stream, "GET /mqtt HTTP/1.1\r\n{UPGRADE}").unwrap();
        assert!(head(stream).starts_with("HTTP/1.1 101 "));
        stream
            .write_all(&[connect.as_slice(), &[client_id]].concat())
            .unwrap();
        let mut connack = [0; 3];
        stream.read_exact(&mut connack).unwrap();
        assert_eq!((connack[0], connack[2]), (0x82, 0x20));
    }
    broker.stop();
    for stream in &mut streams {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        let text = String::from_utf8_lossy(&rest);
        // DISCONNECT 0x8B with its reason.
        assert!(text.contains("shutting down"), "{text:?}");
    }
}

#[test]
fn the_path_of_mqtt_is_none_of_the_interface() {
    for path in ["/", "/livez", "/api/v1/clients"] {
        let config = config(|listener| path.clone_into(&mut listener.path));
        let checked = thrum_broker::check(&config);
        let refused = checked.refused.iter().map(ToString::to_string);
        let refused: Vec<_> = refused.collect();
        assert_eq!(refused.len(), 1, "{path}: {refused:?}");
        assert!(refused[0].contains("choose another path"), "{refused:?}");
    }
}

/// The next event of a stream, without its comments.
fn event(stream: &mut TcpStream, text: &mut String) -> String {
    loop {
        if let Some((event, rest)) = text.split_once("\n\n") {
            let found = event.contains("event: ").then(|| event.to_owned());
            *text = rest.to_owned();
            if let Some(found) = found {
                return found;
            }
            continue;
        }
        // Chunks of HTTP/1.1: lines with their lengths are between the events.
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "the stream ended: {text}");
        let more = String::from_utf8_lossy(&bytes[..count]).into_owned();
        text.push_str(&more.replace("\r\n", ""));
    }
}

#[test]
fn a_live_stream_outlives_a_request_and_ends_with_the_broker() {
    let broker = TestBroker::new();
    let cookie = broker.set_up();
    let mut stream = broker.connect();
    write!(
        stream,
        "GET /api/v1/stream?figures=clients,cpu_percent&clients=&every=250ms HTTP/1.1\r\nHost: thrum\r\n{cookie}\r\n"
    )
    .unwrap();
    let answer = head(&mut stream);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(
        answer.to_lowercase().contains("x-accel-buffering: no"),
        "{answer}"
    );
    let mut text = String::new();
    let mut mqtt = broker.connect();
    connect_mqtt(&mut mqtt);
    let mut seen = false;
    for _ in 0..40 {
        let event = event(&mut stream, &mut text);
        seen |= event.contains("\"client_id\":\"a\"");
        if seen && event.contains("\"clients\":1.0") {
            break;
        }
    }
    assert!(seen, "the client is in the list");
    let history = broker.ask(&format!("GET /api/v1/history HTTP/1.1\r\n{cookie}"), "");
    assert_eq!(history.status, 200, "{history:?}");
    assert_eq!(history.json()["seconds_max"], 900);
    broker.server.close();
    broker.broker.stop();
    let ended = (0..20).any(|_| event(&mut stream, &mut text).contains("\"stopping\""));
    assert!(ended);
    broker.server.stop();
}

#[test]
fn a_live_stream_ends_with_its_address_and_says_so() {
    let mut test = TestBroker::new();
    let cookie = test.set_up();
    let mut stream = test.connect();
    write!(
        stream,
        "GET /api/v1/stream?figures=clients&every=250ms HTTP/1.1\r\nHost: thrum\r\n{cookie}\r\n"
    )
    .unwrap();
    assert!(head(&mut stream).starts_with("HTTP/1.1 200 "));
    let mut text = String::new();
    event(&mut stream, &mut text);
    let mut other = config(|_| {});
    let elsewhere = SocketAddr::from(([127, 0, 0, 2], 0));
    other.listeners.get_mut("http").unwrap().bind = vec![elsewhere.into()];
    let (_, settling) = test.broker.reload(&other).unwrap();
    settling.wait(Duration::from_secs(5)).unwrap();
    test.server.renew(test.broker.http_ports());
    let ended = (0..20).any(|_| event(&mut stream, &mut text).contains("\"listener_removed\""));
    assert!(ended, "it goes on");
    test.stop();
}

#[test]
fn a_stranger_sends_no_long_body() {
    let broker = TestBroker::new();
    let of_len = |len| {
        let body = json!({ "name": "x".repeat(len), "password": "wrong wrong wrong" });
        broker.post("/api/v1/login", "", &body).status
    };
    assert_eq!(of_len(17 * 1024), 413);
    assert!([400, 401].contains(&of_len(15 * 1024)));
    broker.stop();
}

#[test]
fn a_request_over_http_1_1_names_its_host_once() {
    let broker = TestBroker::new();
    let status = |head: &str| {
        let mut stream = broker.connect();
        write!(stream, "{head}Connection: close\r\n\r\n").unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        Answer::read(&bytes).status
    };
    assert_eq!(status("GET /livez HTTP/1.1\r\n"), 400);
    let twice = "GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n";
    assert_eq!(status(twice), 400);
    assert_eq!(status("GET /livez HTTP/1.1\r\nHost: a\r\n"), 200);
    assert_eq!(status("GET /livez HTTP/1.0\r\n"), 200);
    broker.stop();
}

#[test]
fn a_client_that_waits_for_continue_is_told_to_go_on_or_why_not() {
    let broker = TestBroker::new();
    broker.set_up();
    let body = json!({ "name": "nobody", "password": "wrong wrong wrong" }).to_string();
    let ask = |path: &str, len: usize| {
        let mut stream = broker.connect();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: thrum\r\nContent-Type: application/json\r\n\
             Expect: 100-continue\r\nContent-Length: {len}\r\n\r\n"
        )
        .unwrap();
        let answer = head(&mut stream);
        (stream, answer)
    };
    let (mut stream, told) = ask("/api/v1/login", body.len());
    assert!(told.starts_with("HTTP/1.1 100 "), "{told}");
    stream.write_all(body.as_bytes()).unwrap();
    let answer = head(&mut stream);
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    // Nothing of a body that is too long, or of a stranger, is asked for.
    for (path, status) in [("/api/v1/login", "413"), ("/api/v1/publish", "401")] {
        let (mut stream, answer) = ask(path, 17 * 1024);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
    }
    broker.stop();
}

#[test]
fn the_port_speaks_http2_as_well() {
    let broker = TestBroker::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let client = reqwest::Client::builder()
        .http2_prior_knowledge()
        .no_proxy()
        .build()
        .unwrap();
    let url = |path: &str| format!("http://{}{path}", broker.address);
    let found = runtime.block_on(async {
        let probe = client.get(url("/livez")).send().await.unwrap();
        let refused = client.get(url("/api/v1/clients")).send().await.unwrap();
        [probe, refused].map(|answer| (answer.version(), answer.status().as_u16()))
    });
    let version = reqwest::Version::HTTP_2;
    assert_eq!(found, [(version, 200), (version, 401)]);
    drop((client, runtime));
    broker.stop();
}
