//! SUBSCRIBE, UNSUBSCRIBE and their acknowledgements, byte by byte.

use super::{FIVE, PAIRS, THREE, check, check_written, filter, id, read};
use thrum_codec::Version::{V31, V311};
use thrum_codec::packet::{
    ReasonCodes, RetainHandling, SubAck, Subscribe, SubscriptionOptions, SubscriptionRequest,
    SubscriptionRequests, TopicFilters, Unsubscribe,
};
use thrum_codec::properties::{AckProperties, SubscribeProperties, UserProperties};
use thrum_codec::{Packet, QoS, ReasonCode, encode};

/// [MQTT-3.8.1-1] [MQTT3-3.8.1-1]
#[test]
fn subscribe_lists_filters_and_options() {
    let plain = |text, qos| SubscriptionRequest {
        filter: filter(text),
        options: SubscriptionOptions {
            qos,
            ..SubscriptionOptions::default()
        },
    };
    let requests = [
        plain("a/+", QoS::AtMostOnce),
        plain("#", QoS::AtLeastOnce),
        plain("$share/g/b", QoS::ExactlyOnce),
    ];
    let packet = Packet::Subscribe(Subscribe {
        packet_id: id(10),
        properties: SubscribeProperties::default(),
        requests: SubscriptionRequests::Listed(&requests),
    });
    let payload = b"\x00\x03a/+\x00\x00\x01#\x01\x00\x0A$share/g/b\x02";
    check(THREE, &[b"\x82\x19\x00\x0A", &payload[..]].concat(), packet);
    check(
        FIVE,
        &[b"\x82\x1A\x00\x0A\x00", &payload[..]].concat(),
        packet,
    );
    let Packet::Subscribe(Subscribe {
        requests: listed, ..
    }) = packet
    else {
        unreachable!()
    };
    assert_eq!(listed.len(), 3);
}

#[test]
fn subscribe_with_every_option_and_property() {
    let mut requests = Vec::new();
    let mut payload = Vec::new();
    let handlings = [
        RetainHandling::Send,
        RetainHandling::SendIfNew,
        RetainHandling::Never,
    ];
    for (handling_bits, retain_handling) in (0u8..).zip(handlings) {
        for bits in [0b0000, 0b0101, 0b1010] {
            requests.push(SubscriptionRequest {
                filter: filter("t"),
                options: SubscriptionOptions {
                    qos: QoS::from_u8(bits & 0b11).expect("0 to 2"),
                    no_local: bits & 0b0100 != 0,
                    retain_as_published: bits & 0b1000 != 0,
                    retain_handling,
                },
            });
            payload.extend_from_slice(&[0, 1, b't', bits | handling_bits << 4]);
        }
    }
    let properties = SubscribeProperties {
        subscription_identifier: Some(300),
        user: PAIRS,
    };
    let packet = Packet::Subscribe(Subscribe {
        packet_id: id(1),
        properties,
        requests: SubscriptionRequests::Listed(&requests),
    });
    let head = b"\x82\x37\x00\x01\x10\x0B\xAC\x02\x26\x00\x01k\x00\x01v\x26\x00\x01k\x00\x00";
    check(FIVE, &[&head[..], &payload].concat(), packet);
    // 3.x has only the quality of service.
    let mut written = Vec::new();
    encode(&packet, V311, &mut written).expect("valid");
    let options: Vec<u8> = written[4..].iter().skip(3).step_by(4).copied().collect();
    assert_eq!(options, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
}

#[test]
fn subscribe_of_3_1_ignores_the_upper_bits_of_the_requested_qos() {
    let Packet::Subscribe(subscribe) = read(V31, b"\x82\x06\x00\x01\x00\x01a\xFD") else {
        panic!("a SUBSCRIBE")
    };
    let options = SubscriptionOptions {
        qos: QoS::AtLeastOnce,
        ..SubscriptionOptions::default()
    };
    let requests: Vec<_> = subscribe.requests.into_iter().collect();
    assert_eq!(
        requests,
        [SubscriptionRequest {
            filter: filter("a"),
            options
        }]
    );
}

#[test]
fn repeated_requests_of_3_1_may_carry_dup() {
    assert!(matches!(
        read(V31, b"\x8A\x06\x00\x01\x00\x01a\x00"),
        Packet::Subscribe(_)
    ));
    assert!(matches!(
        read(V31, b"\xAA\x05\x00\x01\x00\x01a"),
        Packet::Unsubscribe(_)
    ));
    assert!(matches!(read(V31, b"\x6A\x02\x00\x01"), Packet::PubRel(_)));
}

/// [MQTT-2.2.1-6] [MQTT-3.9.3-2] [MQTT3-2.3.1-7] [MQTT3-3.9.3-2]
#[test]
fn suback_has_a_code_for_each_filter() {
    use thrum_codec::ReasonCode::{
        GrantedQoS1, GrantedQoS2, NotAuthorized, Success, UnspecifiedError,
    };
    let answer = |codes, properties| {
        Packet::SubAck(SubAck {
            packet_id: id(3),
            properties,
            codes: ReasonCodes::Listed(codes),
        })
    };
    let bare = AckProperties::default();
    let plain = answer(&[Success, GrantedQoS1, GrantedQoS2, UnspecifiedError], bare);
    check(THREE, b"\x90\x06\x00\x03\x00\x01\x02\x80", plain);
    check(FIVE, b"\x90\x07\x00\x03\x00\x00\x01\x02\x80", plain);
    let properties = AckProperties {
        reason_string: Some("s"),
        user: PAIRS,
    };
    let explained = answer(&[NotAuthorized], properties);
    let bytes = b"\x90\x15\x00\x03\x11\x1F\x00\x01s\x26\x00\x01k\x00\x01v\x26\x00\x01k\x00\x00\x87";
    check(FIVE, bytes, explained);
    // Every refusal is 0x80 in 3.x.
    for version in [V31, V311] {
        check_written(version, explained, b"\x90\x03\x00\x03\x80");
    }
}

/// [MQTT-3.10.1-1] [MQTT3-3.10.1-1]
#[test]
fn unsubscribe_lists_filters() {
    let filters = [filter("a"), filter("$queue/b/#")];
    let unsubscribe = Unsubscribe {
        packet_id: id(4),
        user: UserProperties::default(),
        filters: TopicFilters::Listed(&filters),
    };
    let payload = b"\x00\x01a\x00\x0A$queue/b/#";
    let bytes = [b"\xA2\x11\x00\x04", &payload[..]].concat();
    check(THREE, &bytes, Packet::Unsubscribe(unsubscribe));
    let bytes = [b"\xA2\x12\x00\x04\x00", &payload[..]].concat();
    check(FIVE, &bytes, Packet::Unsubscribe(unsubscribe));
    let head = b"\xA2\x1F\x00\x04\x0D\x26\x00\x01k\x00\x01v\x26\x00\x01k\x00\x00";
    let with_pairs = Unsubscribe {
        user: PAIRS,
        ..unsubscribe
    };
    check(
        FIVE,
        &[head, &payload[..]].concat(),
        Packet::Unsubscribe(with_pairs),
    );
}

/// [MQTT-2.2.1-6] [MQTT-3.11.3-2] [MQTT3-2.3.1-7]
#[test]
fn unsuback_has_codes_in_5_only() {
    let bare = AckProperties::default();
    let without = SubAck {
        packet_id: id(5),
        properties: bare,
        codes: ReasonCodes::Listed(&[]),
    };
    check(THREE, b"\xB0\x02\x00\x05", Packet::UnsubAck(without));
    let codes = ReasonCodes::Listed(&[ReasonCode::Success, ReasonCode::NoSubscriptionExisted]);
    let with = SubAck { codes, ..without };
    check(
        FIVE,
        b"\xB0\x05\x00\x05\x00\x00\x11",
        Packet::UnsubAck(with),
    );
    check_written(V311, Packet::UnsubAck(with), b"\xB0\x02\x00\x05");
    let properties = AckProperties {
        reason_string: Some("s"),
        user: PAIRS,
    };
    let bytes =
        b"\xB0\x16\x00\x05\x11\x1F\x00\x01s\x26\x00\x01k\x00\x01v\x26\x00\x01k\x00\x00\x00\x11";
    check(FIVE, bytes, Packet::UnsubAck(SubAck { properties, ..with }));
}
