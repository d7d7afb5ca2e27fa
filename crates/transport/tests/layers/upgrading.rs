//! The opening handshake and the frames of a WebSocket, as a server sees them.

use proptest::prelude::{any, prop, proptest};
use thrum_codec::websocket::{Opcode, encode_frame};
use thrum_transport::{Acceptor, ClientFault, LayerError, ServerLayers, WebSocketOptions};

use crate::duplex::opened;

const WHOLE: usize = usize::MAX;
const KEY: Option<[u8; 4]> = Some([0x37, 0xFA, 0x21, 0x3D]);

/// The request of the example in RFC 6455 section 1.3, for MQTT.
const GOOD: [&str; 7] = [
    "GET /mqtt HTTP/1.1",
    "Host: server.example.com",
    "Upgrade: websocket",
    "Connection: keep-alive, Upgrade",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol: mqtt",
    "Sec-WebSocket-Version: 13",
];

/// All output of a server for bytes that arrive in pieces.
#[derive(Debug, PartialEq)]
struct Said {
    plain: Vec<u8>,
    wire: Vec<u8>,
    fault: Option<LayerError>,
    is_open: bool,
}

impl Said {
    fn wire(&self) -> &str {
        str::from_utf8(&self.wire).unwrap()
    }
}

fn server(options: &WebSocketOptions) -> ServerLayers {
    Acceptor::new(None, Some(options))
        .unwrap()
        .layers()
        .unwrap()
}

fn hear(options: &WebSocketOptions, bytes: &[u8], piece_bytes: usize) -> Said {
    let mut server = server(options);
    let (mut plain, mut wire) = (Vec::new(), Vec::new());
    let mut bytes = bytes.to_vec();
    let mut pieces = bytes.chunks_mut(piece_bytes);
    let fault = pieces.find_map(|piece| server.receive(piece, &mut plain, &mut wire).err());
    let is_open = server.is_open();
    Said {
        plain,
        wire,
        fault,
        is_open,
    }
}

/// The same however the bytes are split.
#[track_caller]
fn say(options: &WebSocketOptions, bytes: &[u8]) -> Said {
    let whole = hear(options, bytes, WHOLE);
    for piece_bytes in [1, 2, 3, 50] {
        assert_eq!(hear(options, bytes, piece_bytes), whole);
    }
    whole
}

fn request(lines: &[&str]) -> String {
    format!("{}\r\n\r\n", lines.join("\r\n"))
}

/// The valid request with one line replaced.
fn with(index: usize, line: &str) -> String {
    let mut lines = GOOD;
    lines[index] = line;
    request(&lines)
}

#[track_caller]
fn accepted(options: &WebSocketOptions, request: &str) -> Said {
    let said = say(options, request.as_bytes());
    assert_eq!(said.fault, None);
    assert!(said.is_open);
    assert!(
        said.wire()
            .starts_with("HTTP/1.1 101 Switching Protocols\r\n")
    );
    said
}

#[track_caller]
fn refused(options: &WebSocketOptions, request: &str, expected: u16, words: &str) -> Said {
    let said = say(options, request.as_bytes());
    let Some(LayerError::Client(ClientFault::Refused { status, why })) = &said.fault else {
        panic!("{said:?}");
    };
    assert_eq!(*status, expected, "{why}");
    assert!(why.contains(words), "{why}");
    let (head, body) = said.wire().split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with(&format!("HTTP/1.1 {expected} ")), "{head}");
    assert!(head.contains("\r\nConnection: close\r\n"), "{head}");
    assert!(
        head.ends_with(&format!("\r\nContent-Length: {}", body.len())),
        "{head}"
    );
    assert_eq!(body, format!("{why}\n"));
    assert!(!said.is_open && said.plain.is_empty());
    said
}

#[test]
fn the_example_of_the_rfc_is_answered() {
    // [MQTT-6.0.0-4] [MQTT3-6.0.0-4]
    let said = accepted(&WebSocketOptions::default(), &request(&GOOD));
    assert_eq!(
        said.wire(),
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
         Sec-WebSocket-Protocol: mqtt\r\n\r\n"
    );
}

#[test]
fn requests_that_differ_where_they_may_are_answered() {
    let options = WebSocketOptions::default();
    for (index, line) in [
        (0, "GET /mqtt?token=1 HTTP/1.1"),
        (0, "GET http://server.example.com/mqtt HTTP/1.1"),
        (2, "upgrade: WebSocket"),
        (3, "CONNECTION: upgrade"),
        (3, "Connection: Upgrade\r\nConnection: close"),
        (
            3,
            "Connection: Upgrade\r\nSec-WebSocket-Extensions: permessage-deflate",
        ),
        (5, "Sec-WebSocket-Protocol: chat, mqtt"),
        (5, "Sec-WebSocket-Protocol: mqttv3.1, mqtt"),
        (
            5,
            "Sec-WebSocket-Protocol: mqttv3.1\r\nSec-WebSocket-Protocol: mqtt",
        ),
    ] {
        let said = accepted(&options, &with(index, line));
        assert!(
            said.wire()
                .ends_with("Sec-WebSocket-Protocol: mqtt\r\n\r\n")
        );
        assert!(!said.wire().contains("Extensions"));
    }
    let root = WebSocketOptions {
        path: "/".to_owned(),
        ..options
    };
    accepted(&root, &with(0, "GET http://server.example.com HTTP/1.1"));
}

#[test]
fn the_name_of_older_clients_is_chosen_if_it_is_all_they_offer() {
    let options = WebSocketOptions::default();
    let said = accepted(&options, &with(5, "Sec-WebSocket-Protocol: mqttv3.1"));
    assert!(
        said.wire()
            .contains("\r\nSec-WebSocket-Protocol: mqttv3.1\r\n")
    );
    // A client that offers no protocol gets none.
    let said = accepted(&options, &with(5, "X: y"));
    assert!(!said.wire().contains("Protocol:"));
    for other in ["chat", "", "MQTT", "mqtt5 "] {
        let line = format!("Sec-WebSocket-Protocol: {other}");
        refused(&options, &with(5, &line), 400, "offer 'mqtt'");
    }
}

#[test]
fn a_browser_or_a_health_check_gets_an_explanation() {
    let options = WebSocketOptions::default();
    let page = "GET / HTTP/1.1\r\nHost: broker\r\n\r\n";
    let said = refused(
        &options,
        page,
        426,
        "this is an MQTT-over-WebSocket listener",
    );
    assert!(said.wire().contains("\r\nUpgrade: websocket\r\n"));
    refused(&options, &with(2, "Upgrade: h2c"), 426, "no page here");
    refused(&options, &with(3, "Connection: close"), 426, "no page here");
    let posted = refused(
        &options,
        &with(0, "POST /mqtt HTTP/1.1"),
        405,
        "begins with GET",
    );
    assert!(posted.wire().contains("\r\nAllow: GET\r\n"));
}

#[test]
fn requests_against_the_rules_are_refused() {
    let options = WebSocketOptions::default();
    let version = refused(
        &options,
        &with(6, "Sec-WebSocket-Version: 8"),
        426,
        "only version 13",
    );
    assert!(version.wire().contains("\r\nSec-WebSocket-Version: 13\r\n"));
    refused(&options, &with(6, "X: y"), 426, "only version 13");
    for (index, line, words) in [
        (0, "GET /mqtt HTTP/1.0", "not HTTP/1.1"),
        (0, "GET /mqtt HTTP/2", "not HTTP/1.1"),
        (0, "GET /mqtt", "not HTTP/1.1"),
        (1, "X: y", "no header field Host"),
        (1, "Host: a\r\nHost: b", "no header field Host"),
        (4, "X: y", "Sec-WebSocket-Key"),
        (4, "Sec-WebSocket-Key: AAAA", "not 16 bytes in base64"),
        (
            4,
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ",
            "not 16 bytes in base64",
        ),
        (1, "Host: a\nX: y\n", "do not end with CR LF"),
        (1, "Host a", "not HTTP/1.1"),
    ] {
        refused(&options, &with(index, line), 400, words);
    }
}

#[test]
fn another_path_is_not_found() {
    let options = WebSocketOptions {
        path: "/mqtt/v5".to_owned(),
        ..WebSocketOptions::default()
    };
    accepted(&options, &with(0, "GET /mqtt/v5?x=/mqtt HTTP/1.1"));
    for path in ["/mqtt", "/mqtt/v5/", "/MQTT/v5", "/", "*", "http://mqtt/v5"] {
        let line = format!("GET {path} HTTP/1.1");
        refused(
            &options,
            &with(0, &line),
            404,
            "this listener answers on '/mqtt/v5'",
        );
    }
    let long = format!("GET /{} HTTP/1.1", "x".repeat(500));
    let said = refused(&options, &with(0, &long), 404, "xxx…");
    assert!(said.wire.len() < 400);
}

#[test]
fn pages_of_other_origins_are_refused() {
    let options = WebSocketOptions {
        origins: vec![
            "https://App.example.org".to_owned(),
            "http://localhost:3000".to_owned(),
        ],
        ..WebSocketOptions::default()
    };
    for origin in [
        "https://app.Example.org",
        "HTTPS://app.example.org:443",
        "http://LOCALHOST:3000",
    ] {
        accepted(&options, &with(5, &format!("Origin: {origin}")));
    }
    // Clients other than browsers send none.
    accepted(&options, &request(&GOOD));
    for origin in [
        "https://example.org",
        "http://app.example.org",
        "null",
        "",
        "http://localhost",
    ] {
        let line = format!("Origin: {origin}");
        refused(&options, &with(5, &line), 403, "may not connect");
    }
    let two = "Origin: https://app.example.org\r\nOrigin: https://evil.example";
    refused(&options, &with(5, two), 403, "'https://evil.example'");
    accepted(&WebSocketOptions::default(), &with(5, "Origin: null"));
}

#[test]
fn heads_over_the_limits_are_refused() {
    let options = WebSocketOptions {
        head_bytes_max: 1000,
        ..WebSocketOptions::default()
    };
    let long = format!("Cookie: {}", "x".repeat(1000));
    refused(&options, &with(5, &long), 431, "over 1000 bytes");
    let endless = format!("GET /{}", "x".repeat(5000));
    refused(&options, &endless, 431, "over 1000 bytes");
    let fields = ["X: y"; 70].join("\r\n");
    refused(&options, &with(5, &fields), 431, "over 64 header fields");
    // To the byte.
    let filled = |bytes: usize| with(5, &format!("X: {}", "x".repeat(bytes)));
    let room = 1000 - filled(0).len();
    accepted(&options, &filled(room));
    refused(&options, &filled(room + 1), 431, "over 1000 bytes");
}

fn frame(fin: bool, opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_frame(opcode, KEY, payload, &mut out);
    if !fin {
        out[0] &= 0x7F;
    }
    out
}

/// The answer to these frames behind a valid request.
#[track_caller]
fn say_frames(frames: &[Vec<u8>]) -> Said {
    let mut bytes = request(&GOOD).into_bytes();
    bytes.extend(frames.concat());
    let mut said = say(&WebSocketOptions::default(), &bytes);
    let end = said
        .wire
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    said.wire.drain(..end + 4);
    said
}

#[test]
fn packets_are_a_stream_independent_of_frames() {
    // [MQTT-6.0.0-2] [MQTT3-6.0.0-2]
    let said = say_frames(&[
        frame(true, Opcode::Binary, b"two packets in one frame, one pac"),
        frame(false, Opcode::Binary, b"ket in two"),
        frame(true, Opcode::Ping, b"still there?"),
        frame(false, Opcode::Continuation, b""),
        frame(true, Opcode::Pong, b"unasked"),
        frame(true, Opcode::Continuation, b" frames"),
        frame(true, Opcode::Binary, b""),
    ]);
    assert_eq!(
        said.plain,
        b"two packets in one frame, one packet in two frames"
    );
    assert_eq!(
        said.wire,
        [&[0x8A, 12], b"still there?".as_slice()].concat()
    );
    assert!(said.is_open && said.fault.is_none());
}

#[test]
fn a_close_frame_is_answered_with_its_code() {
    for (payload, answer) in [
        (b"".as_slice(), [0x88, 2, 3, 0xE8]),
        (b"\x03\xE9going away", [0x88, 2, 3, 0xE9]),
    ] {
        let last = frame(true, Opcode::Close, payload);
        let said = say_frames(&[
            frame(true, Opcode::Binary, b"bye"),
            last,
            b"ignored".to_vec(),
        ]);
        assert_eq!((said.plain, said.wire), (b"bye".to_vec(), answer.to_vec()));
        assert!(!said.is_open && said.fault.is_none());
    }
}

#[test]
fn frames_against_the_rules_close_with_their_code() {
    let unmasked = vec![0x82, 1, b'x'];
    let long = vec![0x82, 0xFF, 0, 0, 0, 0, 0x10, 0, 0, 5, 1, 2, 3, 4];
    for (bad, code, words) in [
        // [MQTT-6.0.0-1] [MQTT3-6.0.0-1]
        (frame(true, Opcode::Text, b"text"), 1003_u16, "text frame"),
        (unmasked, 1002, "a client must mask"),
        (
            frame(true, Opcode::Continuation, b"x"),
            1002,
            "continuation without a message",
        ),
        (vec![0x83, 0x80], 1002, "unknown opcode"),
        (vec![0xC2, 0x80], 1002, "reserved bits"),
        (vec![0x09, 0x80], 1002, "control frame fragmented"),
        (long, 1009, "the limit is"),
    ] {
        let said = say_frames(&[frame(true, Opcode::Binary, b"good"), bad]);
        let message = said.fault.unwrap().to_string();
        let begin = "the client broke the WebSocket protocol: ";
        assert!(
            message.starts_with(begin) && message.contains(words),
            "{message}"
        );
        let [high, low] = code.to_be_bytes();
        assert_eq!(said.wire, [0x88, 2, high, low], "{message}");
        assert_eq!(said.plain, b"good");
    }
}

#[test]
fn the_limit_of_a_frame_is_that_of_the_options() {
    let options = WebSocketOptions {
        frame_bytes_max: 5,
        ..WebSocketOptions::default()
    };
    let said = |payload: &[u8]| {
        let frame = frame(true, Opcode::Binary, payload);
        say(&options, &[request(&GOOD).as_bytes(), &frame].concat())
    };
    assert_eq!(said(b"12345").plain, b"12345");
    assert!(
        said(b"123456")
            .fault
            .unwrap()
            .to_string()
            .contains("the limit is 5")
    );
}

#[test]
fn nothing_is_sent_after_the_close_frame() {
    let mut duplex = opened("ws", WHOLE);
    duplex.server_closes();
    let mut out = Vec::new();
    let mut ping = frame(true, Opcode::Ping, b"late");
    duplex
        .server
        .receive(&mut ping, &mut Vec::new(), &mut out)
        .unwrap();
    duplex.server.close(&mut out);
    assert_eq!(out, b"");
    // Bytes that were in flight still arrive.
    let mut last = frame(true, Opcode::Binary, b"last");
    duplex
        .server
        .receive(&mut last, &mut duplex.to_server, &mut out)
        .unwrap();
    assert_eq!(duplex.to_server, b"last");
}

proptest! {
    #[test]
    fn any_bytes_are_heard_alike_however_they_are_cut(
        front in prop::sample::select(vec!["", "GET ", "GET /mqtt HTTP/1.1\r\n"]),
        is_upgraded in any::<bool>(),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        piece_bytes in 1_usize..40,
    ) {
        let options = WebSocketOptions { head_bytes_max: 250, ..WebSocketOptions::default() };
        let front = if is_upgraded { request(&GOOD) } else { front.to_owned() };
        let bytes = [front.as_bytes(), &bytes].concat();
        let whole = hear(&options, &bytes, WHOLE);
        assert_eq!(hear(&options, &bytes, piece_bytes), whole);
    }
}
