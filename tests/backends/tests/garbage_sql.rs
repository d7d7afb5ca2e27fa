//! Databases that send garbage. The client library may panic; clients still get an answer.

use serde_json::{Value, json};
use thrum_backends::client::{Authenticator, LoginAttempt, LoginResult};
use thrum_backends::garbage_server::{GarbageServer, is_refused};
use thrum_backends::replayed_dialogue::{ReplayedDialogue, USER};
use thrum_codec::ReasonCode;

/// Replacements of a byte: the ends of its range and values that change lengths.
const BYTES: [u8; 5] = [0x00, 0x01, 0x7f, 0xfe, 0xff];

fn settings(scheme: &str, port: u16) -> Value {
    json!({ "sql": { "db": {
        "url": format!("{scheme}://u:p@127.0.0.1:{port}/x"),
        "timeout": "2s",
    }}})
}

#[test]
fn garbage_from_postgresql_admits_no_client() {
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
    is_refused(|port| settings("postgresql", port), &answers);
}

#[test]
fn garbage_from_mysql_admits_no_client() {
    let answers: [&[u8]; 7] = [
        b"",
        b"\x00\x00\x00\x00",
        b"\x01\x00\x00\x00\x0a",
        b"\x01\x00\x00\x00\xff",
        b"\x03\x00\x00\x00\xff\x10\x04",
        b"\xff\xff\xff\x00",
        b"\x0a\x00\x00\x00\x0a5.7\x00\x01\x00\x00\x00",
    ];
    is_refused(|port| settings("mysql", port), &answers);
}

#[test]
fn damaged_packets_of_postgresql_admit_no_client() {
    assert_no_damage_admits_a_client("postgresql", &ReplayedDialogue::postgres());
}

#[test]
fn damaged_packets_of_mysql_admit_no_client() {
    assert_no_damage_admits_a_client("mysql", &ReplayedDialogue::mysql());
}

/// A wrong password is refused in time, whichever packet of the database is damaged.
fn assert_no_damage_admits_a_client(scheme: &str, dialogue: &ReplayedDialogue) {
    let server = GarbageServer::start();
    let settings = settings(scheme, server.port());
    server.answer_with(&dialogue.whole());
    Authenticator::open(&settings).admits(USER, "secret");
    Authenticator::open(&settings).refuses(USER, "wrong", ReasonCode::BadUserNameOrPassword);
    for said in dialogue.cut().chain(dialogue.altered(&BYTES)) {
        server.answer_with(&said);
        match Authenticator::open(&settings).log_in(&LoginAttempt::new(USER, "wrong")) {
            LoginResult::Denied(
                ReasonCode::ServerUnavailable | ReasonCode::BadUserNameOrPassword,
            ) => {}
            told => panic!("{said:?} is answered with {told:?}"),
        }
    }
}
