//! A transport that is not the one of the port.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::thread;

use crate::fixture::Fixture;

const MESSAGE: &str = "-t a -q 1 -m one";

#[test]
fn the_wrong_scheme_for_a_port_is_explained() {
    let fixture = Fixture::new("schemes");
    let trusted = "--cafile ca.pem";
    for (to, words) in [
        ("mqtt://{mqtts}", "use mqtts://"),
        ("mqtt://{ws}", "check that it speaks MQTT without TLS"),
        ("ws://{mqtt}", "check that it speaks WebSocket on this port"),
        ("ws://{wss}", "use wss://"),
        (
            "ws://{odd}",
            "the server answered 404 Not Found: check port and path",
        ),
    ] {
        fixture.fails(&format!("pub -L {to} {MESSAGE}"), 5, words);
    }
    for (to, words) in [
        ("mqtts://{mqtt}", "check that it speaks TLS on this port"),
        ("mqtts://{ws}", "check that it speaks TLS on this port"),
        ("mqtts://{wss}", "inside TLS, without WebSocket"),
        ("wss://{ws}", "check that it speaks TLS on this port"),
        (
            "wss://{mqtts}",
            "check that it speaks WebSocket on this port",
        ),
    ] {
        fixture.fails(&format!("pub -L {to} {trusted} {MESSAGE}"), 5, words);
    }
}

/// Answers one connection with these bytes, once bytes have arrived.
fn answering(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut heard = [0; 4096];
        let _length = stream.read(&mut heard).unwrap();
        stream.write_all(answer).unwrap();
        // Until the client disconnects.
        while stream.read(&mut heard).is_ok_and(|length| length > 0) {}
    });
    port
}

#[test]
fn a_server_of_another_protocol_is_recognized_by_its_answer() {
    let fixture = Fixture::new("answers");
    let alert = b"\x15\x03\x01\x00\x02\x02\x46";
    let bad_request = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    let page = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let banner = b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n";
    for (scheme, answer, words) in [
        (
            "mqtt",
            &alert[..],
            "the server speaks TLS on this port: use mqtts://",
        ),
        (
            "mqtt",
            bad_request,
            "the server speaks HTTP on this port: use ws://",
        ),
        (
            "ws",
            alert,
            "the server speaks TLS on this port: use wss://",
        ),
        (
            "ws",
            page,
            "no WebSocket here, the server answered 200 OK: check port and path",
        ),
        ("ws", banner, "does not speak HTTP on this port"),
        ("mqtts", bad_request, "does not speak TLS on this port"),
        ("mqtts", banner, "does not speak TLS on this port"),
        ("mqtts", alert, "no TLS version"),
    ] {
        let port = answering(answer);
        let trust = if scheme == "mqtts" { "--insecure" } else { "" };
        let line = format!("pub -L {scheme}://127.0.0.1:{port} {trust} {MESSAGE}");
        fixture.fails(&line, 5, words);
    }
}

#[test]
fn the_time_limit_holds_while_a_server_keeps_silent() {
    let fixture = Fixture::new("silence");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    for scheme in ["mqtts", "ws"] {
        let trust = if scheme == "mqtts" { "--insecure" } else { "" };
        let line = format!("sub -L {scheme}://127.0.0.1:{port} {trust} -t a -W 1");
        fixture.fails(&line, 27, "timed out");
    }
}

#[test]
fn sockets_of_this_machine_that_lead_nowhere_are_explained() {
    let fixture = Fixture::new("nowhere");
    fixture.write("file.sock", b"");
    // The socket file remains, and no process listens.
    drop(UnixListener::bind(fixture.path("left.sock")).unwrap());
    let long = format!("{}.sock", "x".repeat(120));
    for (path, words) in [
        (
            "none.sock",
            "there is no such socket; is the broker running",
        ),
        (
            "file.sock",
            "no process listens there any more, or it is not a socket",
        ),
        ("left.sock", "no process listens there any more"),
        (&long, "107 bytes are the most"),
    ] {
        fixture.fails(&format!("pub --unix {path} {MESSAGE}"), 5, words);
    }
}

#[test]
fn flags_that_contradict_the_transport_are_wrong_usage() {
    let fixture = Fixture::new("usage");
    for (flags, words) in [
        (
            "-L mqtt://{mqtt} --cafile ca.pem",
            "has no TLS: use mqtts://",
        ),
        (
            "-L unix:plain.sock --insecure",
            "unix:plain.sock has no TLS",
        ),
        ("-L quic://{quic} --unix plain.sock", "QUIC goes over UDP"),
        (
            "-L http://{mqtt}",
            "use mqtt://, mqtts://, ws://, wss:// or quic://",
        ),
        ("-L ws://{ws}/#", "must be percent-encoded"),
    ] {
        fixture.fails(&format!("pub {flags} {MESSAGE}"), 2, words);
    }
}
