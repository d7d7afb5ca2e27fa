//! Databases that talk nonsense. The library that speaks to them may panic; clients are answered nevertheless.

use serde_json::json;
use thrum_backends::babble::is_refused;

#[test]
fn whoever_plays_postgresql_lets_nobody_in() {
    let settings = |port| {
        json!({ "sql": { "db": {
            "url": format!("postgresql://u:p@127.0.0.1:{port}/x"),
            "timeout": "2s",
        }}})
    };
    let answers: [&[u8]; 9] = [
        b"",
        b"N",
        b"S",
        b"R\x00\x00\x00\x00",
        b"NR\x00\x00\x00\x04",
        b"NR\x00\x00\x00\x08\x00\x00\x00\x05",
        b"NR\x00\x00\x00\x08\x00\x00\x00\x00Z\x00\x00\x00\x05I",
        b"NR\x00\x00\x00\x08\x00\x00\x00\x00Z\x00\x00\x00\x05IT\x00\x00\x00\x06\xff\xff",
        b"NE\x00\x00\x00\x05\x00",
    ];
    is_refused(settings, &answers);
}

#[test]
fn whoever_plays_mysql_lets_nobody_in() {
    let settings = |port| {
        json!({ "sql": { "db": {
            "url": format!("mysql://u:p@127.0.0.1:{port}/x"),
            "timeout": "2s",
        }}})
    };
    let answers: [&[u8]; 7] = [
        b"",
        b"\x00\x00\x00\x00",
        b"\x01\x00\x00\x00\x0a",
        b"\x01\x00\x00\x00\xff",
        b"\x03\x00\x00\x00\xff\x10\x04",
        b"\xff\xff\xff\x00",
        b"\x0a\x00\x00\x00\x0a5.7\x00\x01\x00\x00\x00",
    ];
    is_refused(settings, &answers);
}
