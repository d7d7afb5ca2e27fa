//! Messages on their way: quality of service, acknowledgements, order, topics.

use thrum_conformance::bytes::join;
use thrum_conformance::packets::{PINGREQ, Publish, Version, ack, first, subscribe, unique};

use crate::{client, message, send};

// [MQTT-3.8.4-8] [MQTT-3.3.4-1] [MQTT3-3.8.4-6] [MQTT3-3.3.4-1] [MQTT-2.2.1-2] [MQTT3-2.3.1-5]
#[test]
fn quality_of_service_is_the_lower_of_both_and_never_raised() {
    for version in Version::ALL {
        for granted in 0..=2 {
            let topic = unique("t/");
            let mut subscriber = client(version);
            subscriber.subscribe(&topic, granted);
            for published in 0..=2 {
                send(&message(version, &topic, published, "x"));
                let publish = subscriber.take();
                assert_eq!(publish.qos, granted.min(published));
                assert_eq!(publish.packet_id == 0, publish.qos == 0);
                // [MQTT-3.3.1-2] [MQTT-4.3.1-1] [MQTT3-3.3.1-2] [MQTT3-4.3.1-1]
                assert!(!publish.dup);
            }
        }
    }
}

// [MQTT-2.2.1-5] [MQTT-4.3.2-4] [MQTT-4.3.3-8] [MQTT-4.3.3-11] [MQTT3-2.3.1-6]
// [MQTT-3.4.2-1] [MQTT-3.5.2-1] [MQTT-3.7.2-1] [MQTT-2.2.2-1]
#[test]
fn acknowledgements_repeat_the_identifier() {
    for version in Version::ALL {
        let topic = unique("t/");
        let mut subscriber = client(version);
        subscriber.subscribe(&topic, 0);
        let mut wire = client(version);
        for packet_id in [1, 2, 255, 256, 65_535] {
            wire.send(
                &message(version, &topic, 1, "x")
                    .packet_id(packet_id)
                    .bytes(),
            );
            wire.expect_ack(0x40, packet_id, &[0]);
            wire.send(
                &message(version, &topic, 2, "x")
                    .packet_id(packet_id)
                    .bytes(),
            );
            wire.expect_ack(0x50, packet_id, &[0]);
            wire.send(&ack(first::PUBREL, packet_id));
            wire.expect_ack(0x70, packet_id, &[0]);
        }
    }
}

// [MQTT-3.5.2-1] [MQTT-3.4.2-1]
#[test]
fn no_matching_subscribers_is_reported_or_success() {
    let mut wire = client(Version::V5);
    for (qos, kind) in [(1, 4), (2, 5)] {
        wire.send(&message(Version::V5, &unique("t/"), qos, "x").bytes());
        let packet = wire.packet("an acknowledgement");
        assert_eq!(packet.kind(), kind);
        assert!(matches!(
            packet.ack(Version::V5).codes.as_slice(),
            [0x00 | 0x10]
        ));
    }
}

// [MQTT-4.6.0-5] [MQTT3-4.6.0-6]
#[test]
fn messages_of_one_client_arrive_in_order() {
    for version in Version::STANDARD {
        for qos in 0..=2 {
            let topic = unique("t/");
            let mut subscriber = client(version);
            subscriber.subscribe(&topic, qos);
            let mut publisher = client(version);
            for number in 1..=200_u16 {
                let message = message(version, &topic, qos, &number.to_string());
                publisher.deliver(&message.packet_id(number));
            }
            for number in 1..=200 {
                assert_eq!(subscriber.take().payload, number.to_string().as_bytes());
            }
        }
    }
}

// [MQTT-4.6.0-5] Acknowledgements are sent in the order of their messages.
#[test]
fn acknowledgements_are_in_the_order_of_the_messages() {
    for version in Version::STANDARD {
        let topic = unique("t/");
        let mut publisher = client(version);
        let bytes: Vec<_> = (1..=20)
            .flat_map(|id| message(version, &topic, 1, "x").packet_id(id).bytes())
            .collect();
        publisher.send(&bytes);
        for id in 1..=20 {
            let packet = publisher.packet("PUBACK");
            assert_eq!((packet.kind(), packet.ack(version).packet_id), (4, id));
        }
    }
}

// [MQTT-4.7.2-1] [MQTT3-4.7.2-1]
#[test]
fn wildcard_in_front_does_not_match_topics_with_a_dollar() {
    for version in Version::STANDARD {
        let name = unique("d");
        let mut subscriber = client(version);
        let requests = [
            ("#", 0),
            ("+/broker/version", 0),
            (&*format!("+/{name}"), 0),
        ];
        subscriber.send(&subscribe(version, 1, &requests));
        subscriber.expect_ack(0x90, 1, &[0, 0, 0]);
        send(&message(version, &format!("x/{name}"), 1, "end"));
        loop {
            let publish = subscriber.publish();
            assert!(!publish.topic.starts_with('$'), "{publish:?}");
            if publish.topic == format!("x/{name}") {
                break;
            }
        }
    }
}

// [MQTT-4.7.3-4] [MQTT3-4.7.3-4] [MQTT-1.5.4-3] [MQTT3-1.5.3-3]
#[test]
fn topics_are_compared_as_they_are() {
    for version in Version::STANDARD {
        let name = unique("t");
        let topics = [
            format!("{name}/a"),
            format!("{name}/A"),
            format!("/{name}/a"),
            format!("{name}/a/"),
            format!("{name}//a"),
            format!("{name}/a "),
            // One letter composed and decomposed, and U+FEFF, which must not be stripped.
            format!("{name}/\u{e9}"),
            format!("{name}/e\u{301}"),
            format!("{name}/\u{feff}a"),
        ];
        for wanted in &topics {
            let mut subscriber = client(version);
            subscriber.subscribe(wanted, 1);
            for topic in &topics {
                send(&message(version, topic, 1, topic));
            }
            let publish = subscriber.take();
            assert_eq!(&publish.topic, wanted);
            assert_eq!(publish.payload, wanted.as_bytes());
            subscriber.expect_nothing_before_pingresp();
        }
    }
}

// [MQTT-3.3.2-3] [MQTT3-3.3.2-3] [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT3-4.7.1-2] [MQTT3-4.7.1-3]
#[test]
fn wildcards_match_by_level() {
    let table: [(&str, &[&str], &[&str]); 8] = [
        ("a/#", &["a", "a/b", "a/b/c", "a/"], &["b", "ab", "/a"]),
        ("a/+", &["a/b", "a/"], &["a", "a/b/c"]),
        ("+", &["a"], &["/a", "a/b"]),
        ("+/+", &["/a", "a/b", "/"], &["a", "a/b/c"]),
        ("/+", &["/a", "/"], &["a", "/a/b"]),
        ("+/b/#", &["a/b", "a/b/c", "/b"], &["b", "a/c/b"]),
        ("a/+/c", &["a/b/c", "a//c"], &["a/c", "a/b/d", "a/b/c/d"]),
        ("#", &["a", "/", "a/b/c"], &[]),
    ];
    for version in Version::STANDARD {
        for (filter, matching, other) in table {
            let name = unique("w");
            let mut subscriber = client(version);
            subscriber.subscribe(&format!("{name}/{filter}"), 1);
            for topic in other.iter().chain(matching) {
                send(&message(version, &format!("{name}/{topic}"), 1, "x"));
            }
            for topic in matching {
                assert_eq!(
                    subscriber.take().topic,
                    format!("{name}/{topic}"),
                    "{filter}"
                );
            }
            subscriber.expect_nothing_before_pingresp();
        }
    }
}

// [MQTT-3.3.4-2] [MQTT3-3.3.5-1] [MQTT-3.3.4-4] [MQTT-3.3.4-5]
#[test]
fn overlapping_subscriptions_deliver_at_the_highest_quality() {
    for version in Version::STANDARD {
        let name = unique("o");
        let mut subscriber = client(version);
        let filters = [
            format!("{name}/#"),
            format!("{name}/a"),
            format!("{name}/+"),
        ];
        let requests = [(&*filters[0], 0), (&*filters[1], 2), (&*filters[2], 1)];
        subscriber.send(&subscribe(version, 1, &requests));
        subscriber.expect_ack(0x90, 1, &[0, 2, 1]);
        send(&message(version, &format!("{name}/a"), 2, "x"));
        send(&message(version, &format!("{name}/end/of/it"), 0, "end"));
        let mut qualities = Vec::new();
        loop {
            let publish = subscriber.take();
            if publish.payload == b"end" {
                break;
            }
            qualities.push(publish.qos);
        }
        assert_eq!(qualities.iter().max(), Some(&2));
        assert!(
            qualities.len() == 1 || qualities.len() == 3,
            "{qualities:?}"
        );
    }
}

// [MQTT-4.9.0-3] [MQTT-3.3.4-10] Packets of a publisher that waits for its acknowledgements are
// still handled.
#[test]
fn unfinished_qos_2_flows_block_nothing_else() {
    for version in Version::STANDARD {
        let topic = unique("t/");
        let mut wire = client(version);
        let open: Vec<_> = (1..=20)
            .flat_map(|id| message(version, &topic, 2, "x").packet_id(id).bytes())
            .collect();
        wire.send(&join(&[&open, &PINGREQ]));
        let mut kinds: Vec<_> = (0..21)
            .map(|_| wire.packet("PUBREC or PINGRESP").kind())
            .collect();
        kinds.sort_unstable();
        assert_eq!(kinds, [[5; 20].as_slice(), &[13]].concat());
        wire.deliver(&Publish::new(version, &topic, 1, b"x").packet_id(30));
    }
}
