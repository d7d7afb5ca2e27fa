//! Pings, DISCONNECT, AUTH and rules for all packets, byte by byte.

use super::connect::bare_connect;
use super::publish::bare_publish;
use super::{EVERY, FIVE, PAIRS, THREE, check, check_read, check_written, read};
use thrum_codec::Version::V311;
use thrum_codec::packet::{Auth, Disconnect, Publish};
use thrum_codec::properties::{AuthProperties, DisconnectProperties};
use thrum_codec::{Packet, ReasonCode};

#[test]
fn pings_are_two_bytes() {
    check(EVERY, b"\xC0\x00", Packet::PingReq);
    check(EVERY, b"\xD0\x00", Packet::PingResp);
}

#[test]
fn disconnect_omits_defaults() {
    let bare = DisconnectProperties::default();
    let normal = Disconnect {
        reason: ReasonCode::Success,
        properties: bare,
    };
    check(EVERY, b"\xE0\x00", Packet::Disconnect(normal));
    check_read(FIVE, b"\xE0\x01\x00", Packet::Disconnect(normal));
    check_read(FIVE, b"\xE0\x02\x00\x00", Packet::Disconnect(normal));
    let with_will = Disconnect {
        reason: ReasonCode::DisconnectWithWill,
        properties: bare,
    };
    check(FIVE, b"\xE0\x01\x04", Packet::Disconnect(with_will));
    check_read(FIVE, b"\xE0\x02\x04\x00", Packet::Disconnect(with_will));
    check_written(V311, Packet::Disconnect(with_will), b"\xE0\x00");
    let properties = DisconnectProperties {
        session_expiry: Some(1),
        reason_string: Some("s"),
        server_reference: Some("o"),
        user: PAIRS,
    };
    let bytes = b"\xE0\x1C\x9C\x1A\x11\x00\x00\x00\x01\x1F\x00\x01s\x1C\x00\x01o\
        \x26\x00\x01k\x00\x01v\x26\x00\x01k\x00\x00";
    let moved = Disconnect {
        reason: ReasonCode::UseAnotherServer,
        properties,
    };
    check(FIVE, bytes, Packet::Disconnect(moved));
}

#[test]
fn auth_carries_method_and_data() {
    let bare = AuthProperties::default();
    let done = Auth {
        reason: ReasonCode::Success,
        properties: bare,
    };
    check(FIVE, b"\xF0\x00", Packet::Auth(done));
    check_read(FIVE, b"\xF0\x02\x00\x00", Packet::Auth(done));
    let properties = AuthProperties {
        authentication_method: Some("m"),
        authentication_data: Some(b"\x00"),
        reason_string: Some("s"),
        user: PAIRS,
    };
    let bytes = b"\xF0\x1B\x18\x19\x15\x00\x01m\x16\x00\x01\x00\x1F\x00\x01s\
        \x26\x00\x01k\x00\x01v\x26\x00\x01k\x00\x00";
    let more = Auth {
        reason: ReasonCode::ContinueAuthentication,
        properties,
    };
    check(FIVE, bytes, Packet::Auth(more));
}

/// [MQTT-1.5.4-3] [MQTT3-1.5.3-3]
#[test]
fn a_byte_order_mark_is_a_character() {
    let bytes = b"\x30\x09\x00\x07\xEF\xBB\xBFa\xEF\xBB\xBF";
    let Packet::Publish(publish) = read(V311, bytes) else {
        panic!("a PUBLISH")
    };
    assert_eq!(publish.topic, "\u{FEFF}a\u{FEFF}");
    check(
        &[V311],
        bytes,
        Packet::Publish(Publish {
            payload: b"",
            ..publish
        }),
    );
}

/// [MQTT-1.5.5-1]
#[test]
fn remaining_lengths_use_the_shortest_form_on_both_sides_of_each_step() {
    let steps: [(usize, &[u8]); 6] = [
        (0x7F, b"\x7F"),
        (0x80, b"\x80\x01"),
        (0x3FFF, b"\xFF\x7F"),
        (0x4000, b"\x80\x80\x01"),
        (0x1F_FFFF, b"\xFF\xFF\x7F"),
        (0x20_0000, b"\x80\x80\x80\x01"),
    ];
    for (remaining, length) in steps {
        let payload = vec![0xA5; remaining - 3];
        let packet = Packet::Publish(Publish {
            topic: "t",
            payload: &payload,
            ..bare_publish()
        });
        let bytes = [b"\x30", length, b"\x00\x01t", &payload].concat();
        check(THREE, &bytes, packet);
    }
}

/// Only 5.0 requires the shortest form of the remaining length.
#[test]
fn a_padded_remaining_length_is_accepted_in_3_x() {
    check_read(THREE, b"\xC0\x80\x00", Packet::PingReq);
    check_read(
        EVERY,
        b"\x10\x8E\x80\x80\x00\x00\x04MQTT\x04\x02\x00\x3C\x00\x02ab",
        Packet::Connect(bare_connect(V311)),
    );
}
