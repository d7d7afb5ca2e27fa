//! SUBSCRIBE, UNSUBSCRIBE and shared subscriptions.

use thrum_conformance::packets::{
    Connect, Version, ack, first, subscribe, subscribe_with, unique, unsubscribe,
};
use thrum_conformance::{Wire, bytes};

use crate::{broker, client, message, resume, send};

// [MQTT-3.8.4-1] [MQTT-3.8.4-2] [MQTT-3.8.4-5] [MQTT-3.8.4-6] [MQTT-3.8.4-7] [MQTT-3.9.3-1]
// [MQTT-2.2.1-6] [MQTT3-2.3.1-7] [MQTT3-3.8.4-1] [MQTT3-3.8.4-2] [MQTT3-3.8.4-4] [MQTT3-3.8.4-5]
// [MQTT3-3.9.3-1] [MQTT-3.9.3-2] [MQTT3-3.9.3-2]
#[test]
fn suback_has_one_code_for_each_filter_in_order() {
    for version in Version::ALL {
        let name = unique("s");
        let filters: Vec<_> = (0..7_u8)
            .map(|n| (format!("{name}/{n}/+"), n % 3))
            .collect();
        let requests: Vec<_> = filters
            .iter()
            .map(|(filter, qos)| (filter.as_str(), *qos))
            .collect();
        let mut wire = client(version);
        for packet_id in [1, 65_535] {
            wire.send(&subscribe(version, packet_id, &requests));
            wire.expect_ack(0x90, packet_id, &[0, 1, 2, 0, 1, 2, 0]);
        }
    }
}

// [MQTT-3.10.4-1] [MQTT-3.10.4-4] [MQTT-3.10.4-5] [MQTT-3.10.4-6] [MQTT-3.11.3-1] [MQTT-3.11.3-2]
// [MQTT3-3.10.4-1] [MQTT3-3.10.4-4] [MQTT3-3.10.4-5] [MQTT3-3.10.4-6]
#[test]
fn unsuback_answers_for_each_filter_in_order() {
    for version in Version::ALL {
        let name = unique("u");
        let (known, unknown) = (format!("{name}/+"), format!("{name}/a"));
        let mut wire = client(version);
        wire.subscribe(&known, 1);
        wire.send(&unsubscribe(version, 9, &[&unknown, &known, &known]));
        let codes: &[u8] = if version == Version::V5 {
            &[0x11, 0x00, 0x11]
        } else {
            &[]
        };
        wire.expect_ack(0xB0, 9, codes);
        // [MQTT-3.10.4-2] [MQTT3-3.10.4-2]
        send(&message(version, &unknown, 1, "x"));
        wire.expect_nothing_before_pingresp();
    }
}

// [MQTT-3.10.4-3] [MQTT3-3.10.4-3]
#[test]
fn delivery_that_began_is_completed_after_unsubscribe() {
    for version in Version::STANDARD {
        let topic = unique("t/");
        let id = unique("s");
        let (mut wire, _) = resume(version, &id);
        wire.subscribe(&topic, 2);
        send(&message(version, &topic, 2, "x"));
        let publish = wire.publish();
        wire.send(&unsubscribe(version, 9, &[&topic]));
        assert_eq!(wire.packet("UNSUBACK").kind(), 11);
        wire.abandon();
        let (mut wire, _) = resume(version, &id);
        let again = wire.take();
        assert_eq!((again.packet_id, again.dup), (publish.packet_id, true));
    }
}

// [MQTT-3.8.4-3] [MQTT3-3.8.4-3]
#[test]
fn same_filter_again_replaces_the_subscription() {
    for version in Version::ALL {
        let topic = unique("t/");
        let mut wire = client(version);
        wire.subscribe(&topic, 2);
        wire.subscribe(&topic, 0);
        send(&message(version, &topic, 2, "x"));
        assert_eq!(wire.take().qos, 0);
        wire.expect_nothing_before_pingresp();
        wire.send(&unsubscribe(version, 9, &[&topic]));
        wire.packet("UNSUBACK");
        send(&message(version, &topic, 2, "x"));
        wire.expect_nothing_before_pingresp();
    }
}

// [MQTT-3.8.3-3]
#[test]
fn no_local_holds_for_the_client_identifier() {
    let topic = unique("t/");
    let id = unique("s");
    let (mut wire, _) = resume(Version::V5, &id);
    wire.subscribe(&topic, 0x05);
    wire.deliver(&message(Version::V5, &topic, 1, "own"));
    wire.expect_nothing_before_pingresp();
    wire.abandon();
    // The same client on another connection.
    let (mut wire, _) = resume(Version::V5, &id);
    wire.deliver(&message(Version::V5, &topic, 1, "own"));
    wire.expect_nothing_before_pingresp();
    send(&message(Version::V5, &topic, 1, "foreign"));
    assert_eq!(wire.take().payload, b"foreign");
}

// [MQTT-3.3.4-3] [MQTT-3.3.4-4] [MQTT-3.3.4-5]
#[test]
fn identifiers_of_all_matching_subscriptions_are_sent_along() {
    let name = unique("i");
    let topic = format!("{name}/a");
    let mut wire = client(Version::V5);
    let with_identifier = [
        (vec![0x0B, 0x01], format!("{name}/+")),
        (vec![0x0B, 0x80, 0x01], topic.clone()),
        (vec![0x0B, 0xFF, 0xFF, 0xFF, 0x7F], format!("{name}/#")),
        (vec![], format!("+/{name}")),
    ];
    for (property, filter) in &with_identifier {
        wire.send(&subscribe_with(Version::V5, 1, property, &[(filter, 1)]));
        wire.expect_ack(0x90, 1, &[1]);
    }
    send(&message(Version::V5, &topic, 1, "x"));
    send(&message(Version::V5, &format!("{name}/b/c"), 1, "end"));
    let mut identifiers = Vec::new();
    loop {
        let publish = wire.take();
        let found = publish.properties.numbers(0x0B);
        if publish.payload == b"end" {
            assert_eq!(found, [268_435_455]);
            break;
        }
        identifiers.extend(found);
    }
    identifiers.sort_unstable();
    assert_eq!(identifiers, [1, 128, 268_435_455]);
}

// [MQTT-3.8.4-3] The identifier is part of the subscription, so it is replaced and removed with it.
#[test]
fn identifier_is_replaced_with_its_subscription() {
    let topic = unique("t/");
    let mut wire = client(Version::V5);
    for (property, expected) in [
        (&[0x0B, 5][..], vec![5]),
        (&[0x0B, 6], vec![6]),
        (&[], vec![]),
    ] {
        wire.send(&subscribe_with(Version::V5, 1, property, &[(&topic, 1)]));
        wire.expect_ack(0x90, 1, &[1]);
        send(&message(Version::V5, &topic, 1, "x"));
        assert_eq!(wire.take().properties.numbers(0x0B), expected);
    }
}

// 4.8.2: each message goes to one member of each group.
#[test]
fn shared_messages_go_to_one_member_and_to_everyone_else() {
    let topic = unique("t/");
    let mut members: Vec<_> = (0..3).map(|_| client(Version::V5)).collect();
    for member in &mut members {
        member.subscribe(&format!("$share/g/{topic}"), 1);
    }
    let mut other_group = client(Version::V5);
    other_group.subscribe(&format!("$share/h/{topic}"), 1);
    let mut alone = client(Version::V5);
    alone.subscribe(&topic, 1);
    for number in 0..30 {
        send(&message(Version::V5, &topic, 1, &number.to_string()));
    }
    for everything in [&mut other_group, &mut alone] {
        for number in 0..30 {
            assert_eq!(everything.take().payload, number.to_string().as_bytes());
        }
    }
    let mut received = Vec::new();
    for member in &mut members {
        member.send(&thrum_conformance::packets::PINGREQ);
        let before = received.len();
        loop {
            let packet = member.packet("PUBLISH or PINGRESP");
            if packet.kind() == 13 {
                break;
            }
            let publish = packet.publish(Version::V5);
            member.send(&ack(first::PUBACK, publish.packet_id));
            received.push(String::from_utf8_lossy(&publish.payload).into_owned());
        }
        assert!(received.len() > before, "every member has its share");
    }
    received.sort_by_key(|payload| payload.parse::<u32>().unwrap_or(u32::MAX));
    let expected: Vec<_> = (0..30).map(|number: u32| number.to_string()).collect();
    assert_eq!(received, expected);
}

// [MQTT-4.8.2-3]
#[test]
fn member_gets_no_more_than_its_granted_quality() {
    for granted in 0..=2 {
        let topic = unique("t/");
        let mut member = client(Version::V5);
        member.subscribe(&format!("$share/g/{topic}"), granted);
        for published in 0..=2 {
            send(&message(Version::V5, &topic, published, "x"));
            assert_eq!(member.take().qos, granted.min(published));
        }
    }
}

// [MQTT-4.8.2-4]
#[test]
fn qos_2_share_that_broke_off_is_completed_to_the_same_member() {
    let topic = unique("t/");
    let filter = format!("$share/g/{topic}");
    let id = unique("s");
    let (mut member, _) = resume(Version::V5, &id);
    member.subscribe(&filter, 2);
    send(&message(Version::V5, &topic, 2, "x"));
    let publish = member.publish();
    member.send(&ack(first::PUBREC, publish.packet_id));
    member.expect_ack(0x62, publish.packet_id, &[0]);
    let mut other = client(Version::V5);
    other.subscribe(&filter, 2);
    member.abandon();
    let (mut member, present) = resume(Version::V5, &id);
    assert!(present);
    member.expect_ack(0x62, publish.packet_id, &[0]);
    member.send(&ack(first::PUBCOMP, publish.packet_id));
    member.expect_nothing_before_pingresp();
    other.expect_nothing_before_pingresp();
}

// [MQTT-4.8.2-6]
#[test]
fn message_refused_by_a_member_goes_to_no_other_member() {
    let topic = unique("t/");
    let mut members = [client(Version::V5), client(Version::V5)];
    for member in &mut members {
        member.subscribe(&format!("$share/g/{topic}"), 1);
    }
    // One publisher: each worker of the broker takes turns independently.
    let mut publisher = client(Version::V5);
    for _ in 0..2 {
        publisher.deliver(&message(Version::V5, &topic, 1, "x"));
    }
    for member in &mut members {
        let [high, low] = member.publish().packet_id.to_be_bytes();
        member.send(&bytes::frame(first::PUBACK, &[high, low, 0x97]));
    }
    for member in &mut members {
        member.expect_nothing_before_pingresp();
    }
}

// A share of a member that leaves without its acknowledgement goes to another one (not promised by
// the specification for QoS 1, but allowed, and a group without it loses messages).
#[test]
fn unacknowledged_share_of_a_member_that_ends_goes_to_another() {
    let topic = unique("t/");
    let filter = format!("$share/g/{topic}");
    let mut leaving = client(Version::V5);
    leaving.subscribe(&filter, 1);
    send(&message(Version::V5, &topic, 1, "x"));
    assert_eq!(leaving.publish().payload, b"x");
    let mut staying = client(Version::V5);
    staying.subscribe(&filter, 1);
    leaving.abandon();
    assert_eq!(staying.take().payload, b"x");
}

/// Topic filters that one packet may have, by default.
const PACKET_FILTERS: usize = 256;

// [MQTT-3.8.4-1] A large SUBSCRIBE is one SUBSCRIBE.
#[test]
fn many_filters_in_one_packet_get_as_many_codes() {
    for version in Version::STANDARD {
        let name = unique("k");
        let filters: Vec<_> = (0..PACKET_FILTERS)
            .map(|number| format!("{name}/{number}/+"))
            .collect();
        let requests: Vec<_> = filters.iter().map(|filter| (filter.as_str(), 1)).collect();
        let (mut wire, _) = Wire::connect(broker(), &Connect::new(version));
        wire.send(&subscribe(version, 7, &requests));
        wire.expect_ack(0x90, 7, &[1; PACKET_FILTERS]);
        send(&message(version, &format!("{name}/255/x"), 1, "x"));
        assert_eq!(wire.take().payload, b"x");
        let names: Vec<_> = filters.iter().map(String::as_str).collect();
        wire.send(&unsubscribe(version, 8, &names));
        wire.expect_ack(
            0xB0,
            8,
            if version == Version::V5 {
                &[0; PACKET_FILTERS]
            } else {
                &[]
            },
        );
    }
}

// [MQTT-3.8.4-6] [MQTT3-3.8.4-5]
#[test]
fn each_filter_beyond_the_limit_of_a_packet_is_refused() {
    for version in Version::STANDARD {
        let name = unique("l");
        let filters: Vec<_> = (0..1_000)
            .map(|number| format!("{name}/{number}"))
            .collect();
        let requests: Vec<_> = filters.iter().map(|filter| (filter.as_str(), 1)).collect();
        let (mut wire, _) = Wire::connect(broker(), &Connect::new(version));
        wire.send(&subscribe(version, 7, &requests));
        let refusal = if version == Version::V5 { 0x97 } else { 0x80 };
        let mut codes = [refusal; 1_000];
        codes[..PACKET_FILTERS].fill(1);
        wire.expect_ack(0x90, 7, &codes);
    }
}

/// Bridges of other brokers set the highest bit of the protocol level; they would loop without
/// this.
#[test]
fn bridge_gets_nothing_back_and_sees_the_retain_flag() {
    const LEVEL_AT: usize = 8;
    let topic = unique("b/");
    let mut connect = Connect::new(Version::V311).bytes();
    assert_eq!(connect[LEVEL_AT], 4);
    connect[LEVEL_AT] |= 0x80;
    let mut bridge = Wire::open(broker(), Version::V311);
    bridge.send(&connect);
    assert_eq!(bridge.packet("CONNACK").connack(Version::V311).code, 0);
    bridge.subscribe(&topic, 1);
    bridge.deliver(&message(Version::V311, &topic, 1, "own"));
    send(&message(Version::V311, &topic, 1, "other").retain());
    let publish = bridge.take();
    assert_eq!(
        (publish.payload.as_slice(), publish.retain),
        (&b"other"[..], true)
    );
    send(&message(Version::V311, &topic, 0, "").retain());
    assert_eq!(bridge.publish().payload, b"");
}
