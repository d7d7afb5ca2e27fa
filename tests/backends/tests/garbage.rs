//! Servers that send garbage. In a program of its own, because panics are counted per program.

use serde_json::json;
use thrum_backends::garbage_server::{is_refused, without_panic};

#[test]
fn garbage_from_a_directory_is_harmless() {
    let settings = |port| {
        json!({ "ldap": { "dir": {
            "url": format!("ldap://127.0.0.1:{port}"),
            "base": "dc=x",
            "timeout": "2s",
        }}})
    };
    let answers: [&[u8]; 12] = [
        b"",
        b"\x30\x00",
        b"\x30\x80\x00\x00",
        b"\x30\x84\xff\xff\xff\xff",
        b"\x30\x85\x01\x01\x01\x01\x01",
        b"\x30\x03\x02\x01\x01",
        b"\x30\x05\x02\x01\x01\x65\x00",
        b"\x30\x05\x02\x01\x01\x64\x00",
        b"\x30\x0c\x02\x01\x01\x65\x07\x0a\x01\x01\x04\x00\x04\x00",
        // The notice of disconnection, which has no number of a request.
        b"\x30\x0c\x02\x01\x00\x78\x07\x0a\x01\x34\x04\x00\x04\x00",
        // The answer to another request.
        b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x00\x04\x00\x04\x00",
        // An entry with invalid attributes.
        b"\x30\x0d\x02\x01\x01\x64\x08\x04\x02dn\x30\x02\x30\x00",
    ];
    without_panic(|| is_refused(settings, &answers));
}

#[test]
fn garbage_from_redis_is_harmless() {
    let settings = |port| {
        json!({ "redis": { "db": {
            "url": format!("redis://:p@127.0.0.1:{port}/0"),
            "timeout": "2s",
        }}})
    };
    let answers: [&[u8]; 9] = [
        b"",
        b"+OK\r\n",
        b"+OK\r\n*-2\r\n",
        b"+OK\r\n*9999999999\r\n",
        b"+OK\r\n$-5\r\n",
        b"+OK\r\n$99999999999\r\n",
        b"+OK\r\n+OK\r\n+OK\r\n:1\r\n",
        b"+OK\r\n+OK\r\n+OK\r\n*3\r\n*1\r\n$1\r\na\r\n$1\r\nb\r\n:1\r\n",
        b"-ERR no\r\n",
    ];
    without_panic(|| is_refused(settings, &answers));
}

#[test]
fn garbage_from_an_http_service_is_harmless() {
    let settings = |port| {
        json!({ "http": { "web": {
            "url": format!("http://127.0.0.1:{port}/"),
            "timeout": "2s",
        }}})
    };
    let answers: [&[u8]; 7] = [
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"result\":\"allow\"}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n[[[[",
        b"HTTP/1.1 999 Odd\r\n\r\n",
    ];
    without_panic(|| is_refused(settings, &answers));
}
