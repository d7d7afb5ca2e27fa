//! One message for many sessions: frames are encoded once, and sessions that need no copy keep
//! none.

use thrum_codec::properties::SubscriptionIdentifiers;

use super::*;

#[test]
fn the_size_limit_holds_for_copies_of_a_cached_frame_too() {
    let mut frames = FrameCache::default();
    let payload = "0123456789".repeat(5);
    let mut outgoing = Outgoing::new(publication("t", &payload), &mut frames);
    for (bytes_max, expected) in [(99, true), (56, true), (55, false), (99, true)] {
        let mut connect = persistent(Version::V5);
        connect.properties.maximum_packet_size = Some(bytes_max);
        let mut session = Peer::new(&connect).session;
        let mut out = Output::new();
        let delivered = session.deliver(&mut outgoing, options(QOS0), Time::default(), &mut out);
        assert_eq!(delivered == Delivered::Sent, expected);
        assert_eq!(out.len(), if expected { 56 } else { 0 });
    }
}

#[test]
fn every_receiver_of_a_fan_out_gets_its_own_copy() {
    let mut frames = FrameCache::default();
    let mut outgoing = Outgoing::new(publication("some/topic", "payload"), &mut frames);
    let forms = [
        (QOS0, false, "PUBLISH 0 some/topic=payload"),
        (QOS1, false, "PUBLISH 1 #ID some/topic=payload"),
        (QOS1, true, "PUBLISH 1 #ID retain some/topic=payload"),
        (QOS2, false, "PUBLISH 2 #ID some/topic=payload"),
    ];
    for sent_before in 0..4 {
        for (version, (qos, retain, expected)) in VERSIONS
            .into_iter()
            .flat_map(|version| forms.map(|form| (version, form)))
        {
            let mut peer = Peer::new(&connect(version));
            for _ in 0..sent_before {
                peer.sent(QOS1, "");
            }
            let options = DeliveryOptions {
                retain,
                ..options(qos)
            };
            let mut out = Output::new();
            out.own().extend_from_slice(b"before");
            peer.session
                .deliver(&mut outgoing, options, peer.now, &mut out);
            let packet_id = (sent_before + 1).to_string();
            assert_eq!(
                lines(&out.to_vec()[6..], version),
                [expected.replace("ID", &packet_id)]
            );
        }
    }
}

#[test]
fn a_frame_cache_is_reset_for_each_publication() {
    let mut frames = FrameCache::default();
    for (topic, payload) in [("t", "first"), ("t", "second"), ("u", "third")] {
        let mut outgoing = Outgoing::new(publication(topic, payload), &mut frames);
        for _ in 0..3 {
            let mut session = Peer::new(&connect(Version::V311)).session;
            let mut out = Output::new();
            session.deliver(&mut outgoing, options(QOS0), Time::default(), &mut out);
            assert_eq!(
                lines(&out.to_vec(), Version::V311),
                [format!("PUBLISH 0 {topic}={payload}")]
            );
        }
    }
}

#[test]
fn only_a_session_that_may_need_it_again_keeps_the_message() {
    let message = Arc::new(Message::new(&publication("t", "x")));
    let count = |connect: &Connect<'_>, options: DeliveryOptions<'_>| {
        let mut frames = FrameCache::default();
        let mut session = Peer::new(connect).session;
        let mut out = Output::new();
        let mut outgoing = Outgoing::from_message(&message, &mut frames);
        session.deliver(&mut outgoing, options, Time::default(), &mut out);
        drop(outgoing);
        Arc::strong_count(&message) - 1
    };
    let shared = DeliveryOptions {
        group: Some(3),
        is_acknowledged: false,
        ..options(QOS1)
    };
    for version in VERSIONS {
        assert_eq!(count(&connect(version), options(QOS1)), 0);
        assert_eq!(count(&connect(version), options(QOS2)), 0);
        assert_eq!(count(&connect(version), shared), 1);
        assert_eq!(count(&persistent(version), options(QOS1)), 1);
        assert_eq!(count(&persistent(version), options(QOS2)), 1);
        assert_eq!(count(&persistent(version), options(QOS0)), 0);
    }
}

// [MQTT-4.3.3-6]
#[test]
fn a_qos2_message_is_released_after_pubrec() {
    let message = Arc::new(Message::new(&publication("t", "x")));
    let mut peer = Peer::new(&persistent(Version::V5));
    let mut outgoing = Outgoing::from_message(&message, &mut peer.frames);
    peer.session
        .deliver(&mut outgoing, options(QOS2), peer.now, &mut Output::new());
    drop(outgoing);
    assert_eq!(Arc::strong_count(&message), 2);
    peer.send(&pubrec(1)).unwrap();
    assert_eq!(Arc::strong_count(&message), 1);
}

/// A payload that is shared by its receivers.
fn large() -> String {
    "0123456789abcdef".repeat(4096)
}

/// The PUBLISH that the session must write, encoded without sharing.
fn encoded(publish: &Publish<'_>, version: Version) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&Packet::Publish(*publish), version, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_large_payload_reaches_every_receiver_and_is_copied_for_the_first_only() {
    let payload = large();
    let properties = PublishProperties {
        content_type: Some("text/plain"),
        correlation_data: Some(b"\x00\xff"),
        ..PublishProperties::default()
    };
    for version in VERSIONS {
        let mut frames = FrameCache::default();
        let publication = Publication {
            properties,
            expires_at: Some(Time::from_millis(1_000_000 + 9_000)),
            ..publication("some/topic", &payload)
        };
        let mut outgoing = Outgoing::new(publication, &mut frames);
        for receiver in 0..8_u16 {
            for (retain, qos, identifiers) in [
                (false, QOS0, &[][..]),
                (true, QOS1, &[]),
                (false, QOS2, &[]),
                (false, QOS1, &[7, 300]),
            ] {
                let mut peer = Peer::new(&connect(version));
                (0..receiver).for_each(|_| drop(peer.sent(QOS1, "")));
                let options = DeliveryOptions {
                    retain,
                    identifiers,
                    ..options(qos)
                };
                let mut out = Output::new();
                peer.session
                    .deliver(&mut outgoing, options, peer.now, &mut out);
                let expected = Publish {
                    retain,
                    properties: PublishProperties {
                        message_expiry: Some(9),
                        subscription_identifiers: SubscriptionIdentifiers::Listed(identifiers),
                        ..properties
                    },
                    ..publish(qos, receiver + 1, "some/topic", &payload)
                };
                assert!(out.to_vec() == encoded(&expected, version));
                let is_copy = receiver == 0 && qos == QOS0;
                assert_eq!(out.as_contiguous().is_some(), is_copy);
            }
        }
    }
}

#[test]
fn the_size_limit_holds_for_shared_payloads_too() {
    let payload = large();
    let mut frames = FrameCache::default();
    let mut outgoing = Outgoing::new(publication("t", &payload), &mut frames);
    let len = encoded(&publish(QOS0, 0, "t", &payload), Version::V5).len();
    for identifiers in [&[][..], &[1]] {
        let len = len + 2 * identifiers.len();
        for (bytes_max, expected) in [(len, true), (len - 1, false), (len, true)] {
            let mut connect = persistent(Version::V5);
            connect.properties.maximum_packet_size = Some(u32::try_from(bytes_max).unwrap());
            let mut session = Peer::new(&connect).session;
            let mut out = Output::new();
            let options = DeliveryOptions {
                identifiers,
                ..options(QOS0)
            };
            let delivered = session.deliver(&mut outgoing, options, Time::default(), &mut out);
            assert_eq!(delivered == Delivered::Sent, expected);
            assert_eq!(out.len(), if expected { len } else { 0 });
        }
    }
}

// [MQTT-4.4.0-1] [MQTT3-4.4.0-1]
#[test]
fn a_large_held_message_is_sent_and_retransmitted_without_a_copy() {
    let payload = large();
    for version in VERSIONS {
        let message = Arc::new(Message::new(&publication("t", &payload)));
        let mut frames = FrameCache::default();
        let mut peer = Peer::new(&persistent(version));
        peer.lose();
        for qos in [QOS1, QOS2] {
            let mut outgoing = Outgoing::from_message(&message, &mut frames);
            let session = &mut peer.session;
            let mut nowhere = Output::new();
            let delivered = session.deliver(&mut outgoing, options(qos), peer.now, &mut nowhere);
            assert_eq!(delivered, Delivered::Queued);
        }
        for dup in [false, true] {
            let mut out = Output::new();
            peer.reconnect_into(&persistent(version), &mut out);
            // One here, two in the session, two in the output.
            assert_eq!(Arc::strong_count(&message), 5);
            let connack = split(&out.to_vec(), u32::MAX).unwrap().unwrap().len;
            out.advance(connack);
            let expected = [(QOS1, 1), (QOS2, 2)].map(|(qos, packet_id)| {
                let publish = publish(qos, packet_id, "t", &payload);
                encoded(&Publish { dup, ..publish }, version)
            });
            assert!(out.to_vec() == expected.concat());
            peer.lose();
        }
    }
}

#[test]
fn an_alias_replaces_the_topic_of_a_shared_payload() {
    let payload = large();
    let mut connect = persistent(Version::V5);
    connect.properties.topic_alias_maximum = Some(4);
    let mut peer = Peer::new(&connect);
    let message = Arc::new(Message::new(&publication("some/topic", &payload)));
    for topic in ["some/topic", ""] {
        let mut outgoing = Outgoing::from_message(&message, &mut peer.frames);
        let mut out = Output::new();
        let session = &mut peer.session;
        session.deliver(&mut outgoing, options(QOS0), peer.now, &mut out);
        let expected = Publish {
            properties: PublishProperties {
                topic_alias: NonZeroU16::new(1),
                ..PublishProperties::default()
            },
            ..publish(QOS0, 0, topic, &payload)
        };
        assert!(out.to_vec() == encoded(&expected, Version::V5));
        assert!(out.as_contiguous().is_none());
    }
}
