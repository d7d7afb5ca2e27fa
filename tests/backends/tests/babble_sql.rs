//! Databases that talk nonsense. The library that speaks to them may panic; clients are answered
//! nevertheless.

use serde_json::{Value, json};
use thrum_backends::babble::{Babbler, is_refused};
use thrum_backends::client::{Door, Told, Visitor};
use thrum_backends::recital::{Recital, USER};
use thrum_codec::ReasonCode;

/// What a byte is replaced by, in turn: the ends of its range and what turns lengths around.
const BYTES: [u8; 5] = [0x00, 0x01, 0x7f, 0xfe, 0xff];

fn settings(scheme: &str, port: u16) -> Value {
    json!({ "sql": { "db": {
        "url": format!("{scheme}://u:p@127.0.0.1:{port}/x"),
        "timeout": "2s",
    }}})
}

#[test]
fn whoever_plays_postgresql_lets_nobody_in() {
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
fn whoever_plays_mysql_lets_nobody_in() {
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
fn damaged_packets_of_postgresql_let_nobody_in() {
    no_damage_lets_anybody_in("postgresql", &Recital::postgres());
}

#[test]
fn damaged_packets_of_mysql_let_nobody_in() {
    no_damage_lets_anybody_in("mysql", &Recital::mysql());
}

/// Who shows a wrong password is refused, and told so in time, whichever packet of the database is
/// damaged.
fn no_damage_lets_anybody_in(scheme: &str, recital: &Recital) {
    let babbler = Babbler::start();
    let settings = settings(scheme, babbler.port());
    babbler.say(&recital.whole());
    Door::open(&settings).admits(USER, "secret");
    Door::open(&settings).refuses(USER, "wrong", ReasonCode::BadUserNameOrPassword);
    for said in recital.cut().chain(recital.altered(&BYTES)) {
        babbler.say(&said);
        match Door::open(&settings).knock(&Visitor::new(USER, "wrong")) {
            Told::Out(ReasonCode::ServerUnavailable | ReasonCode::BadUserNameOrPassword) => {}
            told => panic!("{said:?} is answered with {told:?}"),
        }
    }
}
