//! Delivery through each transport.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;

use crate::fixture::{Fixture, LIMIT};
use crate::forwarder::Forwarder;

/// Transports by the arguments that lead there.
const TRANSPORTS: [&str; 10] = [
    "-L mqtt://{mqtt}",
    "-L ws://{ws}",
    "-L ws://{odd}/a/b",
    "-L mqtts://{mqtts} --cafile ca.pem",
    "-L wss://{wss}/mqtt --cafile ca.pem",
    "-L quic://{quic} --cafile ca.pem",
    "-L unix:plain.sock",
    "--unix plain.sock",
    "--unix ws.sock -L ws://anything",
    "--unix tls.sock -L mqtts://localhost --cafile ca.pem",
];

#[test]
fn messages_go_both_ways_over_every_transport() {
    let fixture = Fixture::new("both-ways");
    for (number, transport) in TRANSPORTS.iter().enumerate() {
        fixture.runs(&format!("pub {transport} -t t/{number} -q 2 -r -m hello"));
        let kept = format!("sub {transport} -t t/{number} -q 1 -C 1 -W {LIMIT}");
        assert_eq!(fixture.runs(&kept), "hello\n", "{transport}");
        // The request and response topics are equal, so the requester receives its own request.
        let asked = format!("rr {transport} -t r/{number} -e r/{number} -m ping -W {LIMIT}");
        assert_eq!(fixture.runs(&asked), "ping\n", "{transport}");
    }
}

#[test]
fn the_topic_follows_the_host_but_not_in_a_websocket() {
    let fixture = Fixture::new("url-topic");
    fixture.runs("pub -L mqtts://{mqtts}/a/b --cafile ca.pem -q 1 -r -m one");
    let read = format!("sub -L unix:plain.sock -t a/# -v -C 1 -W {LIMIT}");
    assert_eq!(fixture.runs(&read), "a/b one\n");
    fixture.fails("pub -L ws://{ws}/mqtt -m one", 2, "give one with -t");
}

#[test]
fn the_flags_of_the_mosquitto_commands_turn_tls_and_websocket_on() {
    let fixture = Fixture::new("flags");
    let (mqtts, ws, wss) = (
        fixture.port("mqtts"),
        fixture.port("ws"),
        fixture.port("wss"),
    );
    for flags in [
        format!("-h localhost -p {mqtts} --cafile ca.pem"),
        format!("-p {mqtts} --insecure"),
        format!("-p {ws} --ws"),
        format!("-p {wss} --ws --cafile ca.pem --tls-version tlsv1.2"),
        "--unix plain.sock".to_owned(),
        "--unix ws.sock --ws".to_owned(),
        "--unix tls.sock --cafile ca.pem".to_owned(),
    ] {
        fixture.runs(&format!("pub {flags} -t a -q 1 -m one"));
    }
}

#[test]
fn payloads_larger_than_every_buffer_pass_unchanged() {
    let fixture = Fixture::new("large");
    let payload: Vec<u8> = (0..=250).cycle().take(900_000).collect();
    fixture.write("payload", &payload);
    for transport in TRANSPORTS {
        fixture.runs(&format!("pub {transport} -t large -q 1 -r -f payload"));
        let line = format!("sub {transport} -t large -N -C 1 -W {LIMIT}");
        let output = fixture.command(&line).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{transport}");
        assert!(output.stdout == payload, "{transport}");
    }
}

#[test]
fn every_line_of_the_input_arrives_in_order() {
    let fixture = Fixture::new("lines");
    let numbered: Vec<String> = (0..3000).map(|number| format!("line {number}\n")).collect();
    let input = numbered.concat();
    for transport in ["-L wss://{wss}", "-L mqtts://{mqtts}"] {
        let line = format!("sub {transport} --insecure -d -t lines -q 1 -C 3000 -W {LIMIT}");
        let mut subscriber = fixture.command(&line).spawn().unwrap();
        let mut trace = BufReader::new(subscriber.stderr.take().unwrap()).lines();
        let is_there = |line: String| line.contains("received SUBACK");
        assert!(trace.by_ref().map_while(Result::ok).any(is_there));
        // Tracing must not block it.
        std::thread::spawn(move || trace.count());
        let line = format!("pub {transport} --insecure -t lines -q 1 -l");
        let mut publisher = fixture
            .command(&line)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut to_publisher = publisher.stdin.take().unwrap();
        to_publisher.write_all(input.as_bytes()).unwrap();
        drop(to_publisher);
        assert_eq!(publisher.wait().unwrap().code(), Some(0));
        let mut printed = String::new();
        let mut output = subscriber.stdout.take().unwrap();
        output.read_to_string(&mut printed).unwrap();
        assert_eq!(subscriber.wait().unwrap().code(), Some(0));
        assert!(printed == input, "{} bytes", printed.len());
    }
}

#[test]
fn the_outcome_of_the_handshake_is_printed_with_debug() {
    let fixture = Fixture::new("debug");
    let ended = fixture.run("pub -L mqtts://{modern}/a --cafile ca.pem -d -m one");
    assert!(
        ended.said.contains("debug: connected by TLSv1.3, TLS13_"),
        "{}",
        ended.said
    );
}

#[test]
fn a_subscriber_comes_back_over_tls() {
    let fixture = Fixture::new("back");
    let forwarder = Forwarder::new(fixture.place("wss"));
    let port = forwarder.port();
    let line = format!("sub -L wss://localhost:{port} --cafile ca.pem -t news -C 1 -W {LIMIT}");
    let mut subscriber = fixture.command(&line).arg("-d").spawn().unwrap();
    let mut trace = BufReader::new(subscriber.stderr.take().unwrap()).lines();
    let mut waits_for = |words: &str| {
        let mut lines = trace.by_ref().map_while(Result::ok);
        assert!(lines.any(|line| line.contains(words)), "{words}");
    };
    waits_for("received SUBACK");
    forwarder.cut();
    waits_for("connecting again in 1 s");
    waits_for("received SUBACK");
    fixture.runs("pub -L mqtt://{mqtt}/news -q 1 -m back");
    let output = subscriber.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "back\n");
    assert_eq!(output.status.code(), Some(0));
}
