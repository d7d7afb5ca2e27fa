//! Limits for the messages of a client, and topic aliases.

use thrum_codec::properties::SubscriptionIdentifiers;

use super::*;

fn peer(limits: Limits) -> Peer {
    Peer::with(limits, &persistent(Version::V5)).0
}

fn send(peer: &mut Peer, publish: Publish<'_>) -> Result<Vec<String>, Violation> {
    peer.send(&Packet::Publish(publish))
}

fn aliased<'a>(alias: u16, topic: &'a str, payload: &'a str) -> Publish<'a> {
    let mut publish = publish(QOS0, 0, topic, payload);
    publish.properties.topic_alias = NonZeroU16::new(alias);
    publish
}

// [MQTT-3.3.4-7]
#[test]
fn more_than_the_receive_maximum_is_refused() {
    for (first, second) in [(QOS1, QOS2), (QOS2, QOS1), (QOS1, QOS1), (QOS2, QOS2)] {
        let mut peer = peer(Limits {
            receive_maximum: 2,
            ..Limits::default()
        });
        peer.outcome = None;
        send(&mut peer, publish(first, 1, "t", "")).unwrap();
        send(&mut peer, publish(second, 2, "t", "")).unwrap();
        // [MQTT-3.3.4-8]
        send(&mut peer, publish(QOS0, 0, "t", "")).unwrap();
        assert_eq!(peer.send(&Packet::PingReq).unwrap(), ["PINGRESP"]);
        let outcome = send(&mut peer, publish(second, 3, "t", ""));
        assert_eq!(reason(outcome), ReasonCode::ReceiveMaximumExceeded);
        assert_eq!(peer.routed.len(), 3);
    }
}

#[test]
fn the_end_of_an_exchange_makes_room_for_the_next() {
    let mut peer = peer(Limits {
        receive_maximum: 1,
        ..Limits::default()
    });
    for round in 0..3 {
        let packet_id = 10 + round;
        send(&mut peer, publish(QOS1, packet_id, "t", "")).unwrap();
        send(&mut peer, publish(QOS2, packet_id, "t", "")).unwrap();
        // A repetition is not a second message.
        send(&mut peer, publish(QOS2, packet_id, "t", "")).unwrap();
        let blocked = send(&mut peer, publish(QOS2, 99, "t", ""));
        assert_eq!(reason(blocked), ReasonCode::ReceiveMaximumExceeded);
        peer.send(&pubrel(packet_id)).unwrap();
        peer.outcome = Some(ReasonCode::QuotaExceeded);
        send(&mut peer, publish(QOS2, packet_id, "t", "")).unwrap();
        peer.outcome = Some(ReasonCode::Success);
    }
}

#[test]
fn exchanges_of_an_earlier_connection_count_as_the_client_counts_them() {
    let mut peer = peer(Limits {
        receive_maximum: 1,
        ..Limits::default()
    });
    send(&mut peer, publish(QOS2, 1, "t", "")).unwrap();
    peer.lose();
    peer.reconnect(&persistent(Version::V5));
    // A new connection starts with the whole window, and every PUBCOMP adds room.
    send(&mut peer, publish(QOS2, 2, "t", "")).unwrap();
    peer.send(&pubrel(1)).unwrap();
    send(&mut peer, publish(QOS2, 3, "t", "")).unwrap();
    let blocked = send(&mut peer, publish(QOS2, 4, "t", ""));
    assert_eq!(reason(blocked), ReasonCode::ReceiveMaximumExceeded);
    peer.lose();
    peer.reconnect(&persistent(Version::V5));
    let again = Publish {
        dup: true,
        ..publish(QOS2, 2, "t", "")
    };
    send(&mut peer, again).unwrap();
    let blocked = send(&mut peer, publish(QOS2, 5, "t", ""));
    assert_eq!(reason(blocked), ReasonCode::ReceiveMaximumExceeded);
}

#[test]
fn clients_of_3x_have_no_receive_maximum() {
    for version in [Version::V31, Version::V311] {
        let limits = Limits {
            receive_maximum: 1,
            ..Limits::default()
        };
        let (mut peer, _) = Peer::with(limits, &persistent(version));
        for packet_id in 1..=20 {
            send(&mut peer, publish(QOS2, packet_id, "t", "")).unwrap();
        }
    }
}

#[test]
fn a_topic_over_a_limit_ends_the_connection() {
    let limits = Limits {
        topic_bytes_max: 20,
        topic_levels_max: 3,
        ..Limits::default()
    };
    let long = "x".repeat(21);
    for topic in [&*long, "a/b/c/d", "///"] {
        let outcome = send(&mut peer(limits.clone()), publish(QOS0, 0, topic, ""));
        assert_eq!(reason(outcome), ReasonCode::TopicNameInvalid);
        let alias = send(&mut peer(limits.clone()), aliased(1, topic, ""));
        assert_eq!(reason(alias), ReasonCode::TopicNameInvalid);
    }
    for topic in [&long[..20], "a/b/c", "//"] {
        send(&mut peer(limits.clone()), publish(QOS0, 0, topic, "")).unwrap();
    }
}

// [MQTT-3.2.2-11]
#[test]
fn a_qos_above_the_maximum_ends_the_connection() {
    for (maximum_qos, qos) in [(QOS0, QOS1), (QOS0, QOS2), (QOS1, QOS2)] {
        let mut peer = peer(Limits {
            maximum_qos,
            ..Limits::default()
        });
        send(&mut peer, publish(maximum_qos, 1, "t", "")).unwrap();
        let outcome = send(&mut peer, publish(qos, 2, "t", ""));
        assert_eq!(reason(outcome), ReasonCode::QoSNotSupported);
    }
}

// [MQTT-3.2.2-14]
#[test]
fn retain_ends_the_connection_if_it_is_not_available() {
    let mut peer = peer(Limits {
        retain_available: false,
        ..Limits::default()
    });
    let retained = Publish {
        retain: true,
        ..publish(QOS0, 0, "t", "")
    };
    assert_eq!(
        reason(send(&mut peer, retained)),
        ReasonCode::RetainNotSupported
    );
    assert!(peer.routed.is_empty());
}

#[test]
fn the_retain_flag_of_a_3x_client_is_ignored_if_it_is_not_available() {
    for version in [Version::V31, Version::V311] {
        let limits = Limits {
            retain_available: false,
            ..Limits::default()
        };
        let mut peer = Peer::with(limits, &persistent(version)).0;
        let retained = Packet::Publish(Publish {
            retain: true,
            ..publish(QOS1, 1, "t", "")
        });
        let mut out = Output::new();
        let action = peer.session.handle_packet(retained, peer.now, &mut out);
        let Ok(Action::Publish { publish, .. }) = action else {
            panic!("{version:?}: {action:?}");
        };
        assert!(!publish.retain, "{version:?}");
    }
}

// [MQTT-3.3.4-6]
#[test]
fn a_subscription_identifier_from_a_client_is_a_protocol_error() {
    let mut publish = publish(QOS0, 0, "t", "");
    publish.properties.subscription_identifiers = SubscriptionIdentifiers::Listed(&[5]);
    let outcome = send(&mut peer(Limits::default()), publish);
    assert_eq!(reason(outcome), ReasonCode::ProtocolError);
}

#[test]
fn packets_that_cannot_be_decoded_cannot_be_handled_either() {
    let mut peer = peer(Limits::default());
    let mut out = Output::new();
    let nameless = Packet::Publish(publish(QOS0, 0, "", ""));
    let outcome = peer.session.handle_packet(nameless, peer.now, &mut out);
    assert_eq!(outcome.unwrap_err().reason, ReasonCode::ProtocolError);
    let unnumbered = Packet::Publish(publish(QOS1, 0, "t", ""));
    let outcome = peer.session.handle_packet(unnumbered, peer.now, &mut out);
    assert_eq!(outcome.unwrap_err().reason, ReasonCode::ProtocolError);
}

#[test]
fn an_alias_has_the_topic_that_was_set_last() {
    let mut peer = peer(Limits::default());
    send(&mut peer, aliased(1, "first", "a")).unwrap();
    send(&mut peer, aliased(2, "second", "b")).unwrap();
    send(&mut peer, aliased(1, "", "c")).unwrap();
    send(&mut peer, aliased(2, "", "d")).unwrap();
    send(&mut peer, aliased(1, "third", "e")).unwrap();
    send(&mut peer, aliased(1, "", "f")).unwrap();
    send(&mut peer, aliased(1, "third", "g")).unwrap();
    let expected = [
        "first=a", "second=b", "first=c", "second=d", "third=e", "third=f", "third=g",
    ];
    assert_eq!(peer.routed, expected);
}

// [MQTT-3.3.2-12]
#[test]
fn every_alias_up_to_the_maximum_is_accepted() {
    let mut peer = peer(Limits {
        topic_alias_maximum: 5,
        ..Limits::default()
    });
    for alias in [5, 1, 2, 3, 4] {
        let topic = format!("topic/{alias}");
        send(&mut peer, aliased(alias, &topic, "")).unwrap();
        send(&mut peer, aliased(alias, "", "")).unwrap();
    }
    assert_eq!(peer.routed.len(), 10);
}

// [MQTT-3.3.2-9] [MQTT-3.2.2-17] [MQTT-3.2.2-18]
#[test]
fn an_alias_above_the_maximum_ends_the_connection() {
    for maximum in [0, 5] {
        let mut peer = peer(Limits {
            topic_alias_maximum: maximum,
            ..Limits::default()
        });
        for topic in ["t", ""] {
            let outcome = send(&mut peer, aliased(maximum + 1, topic, ""));
            assert_eq!(reason(outcome), ReasonCode::TopicAliasInvalid);
        }
    }
}

#[test]
fn an_alias_that_was_never_set_is_a_protocol_error() {
    let mut peer = peer(Limits::default());
    assert_eq!(
        reason(send(&mut peer, aliased(3, "", ""))),
        ReasonCode::ProtocolError
    );
    send(&mut peer, aliased(3, "t", "")).unwrap();
    assert_eq!(
        reason(send(&mut peer, aliased(2, "", ""))),
        ReasonCode::ProtocolError
    );
}

// [MQTT-3.3.2-7]
#[test]
fn aliases_of_the_client_end_with_the_connection() {
    let mut peer = peer(Limits::default());
    send(&mut peer, aliased(1, "t", "")).unwrap();
    peer.lose();
    peer.reconnect(&persistent(Version::V5));
    assert_eq!(
        reason(send(&mut peer, aliased(1, "", ""))),
        ReasonCode::ProtocolError
    );
}

#[test]
fn a_repeated_qos2_publish_still_sets_its_alias() {
    let mut peer = peer(Limits::default());
    let mut first = publish(QOS2, 1, "t", "a");
    send(&mut peer, first).unwrap();
    first.properties.topic_alias = NonZeroU16::new(4);
    send(&mut peer, first).unwrap();
    send(&mut peer, aliased(4, "", "b")).unwrap();
    assert_eq!(peer.routed, ["t=a", "t=b"]);
}

#[test]
fn the_topic_of_a_publish_is_known_before_it_is_handled() {
    let mut peer = peer(Limits::default());
    let set = aliased(2, "first", "");
    let used = aliased(2, "", "");
    let unknown = aliased(1, "", "");
    let above = aliased(65, "", "");
    assert_eq!(peer.session.inbound().topic_of(&set), Some("first"));
    assert_eq!(
        peer.session.inbound().topic_of(&used),
        None,
        "the lookup changes nothing"
    );
    send(&mut peer, set).unwrap();
    assert_eq!(peer.session.inbound().topic_of(&used), Some("first"));
    let again = aliased(2, "second", "");
    assert_eq!(peer.session.inbound().topic_of(&again), Some("second"));
    assert_eq!(peer.session.inbound().topic_of(&used), Some("first"));
    let nameless = publish(QOS0, 0, "", "");
    for broken in [unknown, above, nameless] {
        assert_eq!(peer.session.inbound().topic_of(&broken), None);
        assert!(
            peer.session
                .handle_packet(Packet::Publish(broken), peer.now, &mut Output::new())
                .is_err()
        );
    }
    // [MQTT-3.3.2-7]
    peer.lose();
    peer.reconnect(&persistent(Version::V5));
    assert_eq!(peer.session.inbound().topic_of(&used), None);
}
