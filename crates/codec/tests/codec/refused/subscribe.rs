//! SUBSCRIBE, UNSUBSCRIBE and their acknowledgements.

use thrum_codec::Version::{V31, V311};
use thrum_codec::{DecodeError, QoS};

use super::{EVERY, FIVE, THREE, TRAILING, TRUNCATED, accept, malformed, protocol, refuse};

fn subscribe_3(filter: &[u8], options: u8) -> Vec<u8> {
    let len = u16::try_from(filter.len()).expect("short").to_be_bytes();
    [b"\x00\x01", &len[..], filter, &[options]].concat()
}

fn subscribe_5(filter: &[u8], options: u8) -> Vec<u8> {
    let len = u16::try_from(filter.len()).expect("short").to_be_bytes();
    [b"\x00\x01\x00", &len[..], filter, &[options]].concat()
}

/// [MQTT-3.8.3-2] [MQTT-3.10.3-2] [MQTT3-3.8.3-3] [MQTT3-3.10.3-2]
#[test]
fn no_filter_at_all() {
    let of_subscribe = protocol("SUBSCRIBE without topic filter");
    let of_unsubscribe = protocol("UNSUBSCRIBE without topic filter");
    refuse(
        THREE,
        &[
            (0x82, b"\x00\x01", of_subscribe),
            (0xA2, b"\x00\x01", of_unsubscribe),
        ],
    );
    refuse(
        FIVE,
        &[
            (0x82, b"\x00\x01\x00", of_subscribe),
            (0xA2, b"\x00\x01\x00", of_unsubscribe),
        ],
    );
    let body = b"\x00\x01\x05\x26\x00\x00\x00\x00";
    refuse(
        FIVE,
        &[(0x82, body, of_subscribe), (0xA2, body, of_unsubscribe)],
    );
}

/// [MQTT3-3.8.3-4]
#[test]
fn requested_qos_of_3_x() {
    let error = malformed("requested QoS above 2 or reserved bits");
    for options in 0..=u8::MAX {
        let body = subscribe_3(b"a", options);
        if QoS::from_u8(options).is_none() {
            refuse(&[V311], &[(0x82, &body, error)]);
        } else {
            accept(&[V311], 0x82, &body);
        }
        if options & 0b11 == 3 {
            refuse(&[V31], &[(0x82, &body, error)]);
        } else {
            accept(&[V31], 0x82, &body);
        }
    }
}

/// [MQTT-3.8.3-5]
#[test]
fn subscription_options_of_5() {
    for options in 0..=u8::MAX {
        let error = if options & 0xC0 != 0 {
            Some(malformed("reserved bits of the subscription options"))
        } else if options & 0b11 == 3 {
            Some(protocol("maximum QoS 3"))
        } else if options & 0x30 == 0x30 {
            Some(protocol("retain handling 3"))
        } else {
            None
        };
        let body = subscribe_5(b"a", options);
        match error {
            Some(error) => refuse(FIVE, &[(0x82, &body, error)]),
            None => accept(FIVE, 0x82, &body),
        }
    }
}

/// [MQTT-3.8.3-4]
#[test]
fn no_local_on_a_shared_subscription() {
    let error = protocol("no local on a shared subscription");
    for filter in [&b"$share/g/a"[..], b"$queue/a"] {
        refuse(FIVE, &[(0x82, &subscribe_5(filter, 0x04), error)]);
        accept(FIVE, 0x82, &subscribe_5(filter, 0x2A));
    }
    accept(FIVE, 0x82, &subscribe_5(b"$shared/g/a", 0x04));
    // The rule also applies to a later filter.
    let body = [&subscribe_5(b"a", 0x04)[..], b"\x00\x0A$share/g/a\x04"].concat();
    refuse(FIVE, &[(0x82, &body, error)]);
}

/// [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.3-1] [MQTT-4.8.2-1] [MQTT-4.8.2-2]
/// [MQTT3-4.7.1-2] [MQTT3-4.7.1-3] [MQTT3-4.7.3-1]
#[test]
fn invalid_filters() {
    let error = malformed("invalid topic filter");
    let filters: [&[u8]; 22] = [
        b"",
        b"a#",
        b"#a",
        b"#/a",
        b"a/#/b",
        b"##",
        b"a/##",
        b"/#/",
        b"a+",
        b"+a",
        b"a/+b",
        b"a/b+/c",
        b"++",
        b"$share/",
        b"$share/g",
        b"$share/g/",
        b"$share//a",
        b"$share/+/a",
        b"$share/#/a",
        b"$share/g#/a",
        b"$share/g/a#",
        b"$queue/",
    ];
    for filter in filters {
        refuse_filter(filter, error);
    }
}

#[track_caller]
fn refuse_filter(filter: &[u8], error: DecodeError) {
    let of_3 = subscribe_3(filter, 0);
    let of_5 = subscribe_5(filter, 0);
    refuse(
        THREE,
        &[(0x82, &of_3, error), (0xA2, &of_3[..of_3.len() - 1], error)],
    );
    refuse(
        FIVE,
        &[(0x82, &of_5, error), (0xA2, &of_5[..of_5.len() - 1], error)],
    );
    // The invalid filter follows a valid one.
    let behind = [&subscribe_3(b"a", 0)[..], &of_3[2..]].concat();
    refuse(THREE, &[(0x82, &behind, error)]);
}

#[test]
fn lists_that_end_early() {
    refuse(
        THREE,
        &[
            (0x82, b"\x00\x01\x00\x01a", TRUNCATED),
            (0x82, b"\x00\x01\x00\x02a", TRUNCATED),
            (0x82, b"\x00\x01\x00", TRUNCATED),
            (0x82, b"\x00\x01\x00\x01a\x00\x00", TRUNCATED),
            (0xA2, b"\x00\x01\x00\x01a\x00", TRUNCATED),
            (0xA2, b"\x00\x01\x00\x01a\x00\x01", TRUNCATED),
        ],
    );
    refuse(
        FIVE,
        &[
            (0x82, b"\x00\x01", TRUNCATED),
            (0x82, b"\x00\x01\x00\x00\x01a", TRUNCATED),
            (0x82, b"\x00\x01\x00\x00\x01a\x00\x00\x01b", TRUNCATED),
            (0xA2, b"\x00\x01", TRUNCATED),
            (0xA2, b"\x00\x01\x00\x00\x01a\x00", TRUNCATED),
        ],
    );
    refuse(
        EVERY,
        &[
            (0x82, b"", TRUNCATED),
            (0x82, b"\x00", TRUNCATED),
            (0xA2, b"\x00", TRUNCATED),
        ],
    );
}

#[test]
fn answers_without_codes() {
    let error = protocol("answer without reason code");
    refuse(THREE, &[(0x90, b"\x00\x01", error)]);
    refuse(
        FIVE,
        &[
            (0x90, b"\x00\x01\x00", error),
            (0xB0, b"\x00\x01\x00", error),
        ],
    );
    refuse(
        FIVE,
        &[
            (0x90, b"\x00\x01", TRUNCATED),
            (0xB0, b"\x00\x01", TRUNCATED),
        ],
    );
    refuse(
        EVERY,
        &[(0x90, b"\x00", TRUNCATED), (0xB0, b"\x00", TRUNCATED)],
    );
    refuse(THREE, &[(0xB0, b"\x00\x01\x00", TRAILING)]);
}
