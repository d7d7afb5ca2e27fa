//! Messages to the client: forms, exchanges, the window, sizes, expiry and aliases.

use thrum_codec::properties::UserProperties;

use super::*;

fn peer(version: Version) -> Peer {
    Peer::new(&persistent(version))
}

// [MQTT-4.3.1-1] [MQTT-4.3.2-2] [MQTT-4.3.3-2] [MQTT-3.3.1-2]
// [MQTT3-4.3.1-1] [MQTT3-4.3.2-1] [MQTT3-4.3.3-1] [MQTT3-3.3.1-2]
#[test]
fn a_message_is_sent_with_the_given_qos_and_without_dup() {
    for version in VERSIONS {
        for connect in [connect(version), persistent(version)] {
            let mut peer = Peer::new(&connect);
            assert_eq!(peer.sent(QOS0, "a"), "PUBLISH 0 t=a");
            assert_eq!(peer.sent(QOS1, "b"), "PUBLISH 1 #1 t=b");
            assert_eq!(peer.sent(QOS2, "c"), "PUBLISH 2 #2 t=c");
        }
    }
}

// [MQTT-4.3.2-3] [MQTT-4.3.3-4] [MQTT-4.3.3-5] [MQTT-2.2.1-5] [MQTT3-2.3.1-6]
#[test]
fn exchanges_run_to_their_end() {
    for version in VERSIONS {
        let mut peer = peer(version);
        peer.sent(QOS1, "a");
        peer.sent(QOS2, "b");
        assert_eq!(peer.session.outbound().backlog(), (0, 0, 2));
        assert!(peer.send(&puback(1)).unwrap().is_empty());
        assert_eq!(peer.session.outbound().backlog(), (0, 0, 1));
        assert_eq!(peer.send(&pubrec(2)).unwrap(), ["PUBREL #2"]);
        assert_eq!(peer.session.outbound().backlog(), (0, 0, 1));
        // A repeated PUBREC only causes another PUBREL.
        assert_eq!(peer.send(&pubrec(2)).unwrap(), ["PUBREL #2"]);
        assert!(peer.send(&pubcomp(2)).unwrap().is_empty());
        assert_eq!(peer.session.outbound().backlog(), (0, 0, 0));
    }
}

// [MQTT-4.4.0-2] [MQTT-4.8.2-6]
#[test]
fn an_acknowledgement_with_an_error_ends_the_exchange() {
    let mut peer = peer(Version::V5);
    peer.sent(QOS1, "a");
    peer.sent(QOS2, "b");
    let refusal = |packet_id| ack_with(packet_id, ReasonCode::QuotaExceeded);
    assert!(peer.send(&Packet::PubAck(refusal(1))).unwrap().is_empty());
    assert!(peer.send(&Packet::PubRec(refusal(2))).unwrap().is_empty());
    assert_eq!(peer.session.outbound().backlog(), (0, 0, 0));
    peer.lose();
    assert!(peer.reconnect(&persistent(Version::V5)).is_empty());
    assert!(peer.session.outbound_mut().take_shared(None).is_empty());
}

#[test]
fn acknowledgements_of_unknown_messages_change_nothing() {
    for version in VERSIONS {
        let mut peer = peer(version);
        peer.sent(QOS1, "a");
        assert!(peer.send(&puback(9)).unwrap().is_empty());
        assert!(peer.send(&pubcomp(9)).unwrap().is_empty());
        let expected = if version == Version::V5 {
            "PUBREL #9 0x92"
        } else {
            "PUBREL #9"
        };
        assert_eq!(peer.send(&pubrec(9)).unwrap(), [expected]);
        assert_eq!(peer.session.outbound().backlog(), (0, 0, 1));
    }
    let mut peer = peer(Version::V5);
    let refusal = Packet::PubRec(ack_with(9, ReasonCode::QuotaExceeded));
    assert!(peer.send(&refusal).unwrap().is_empty());
}

#[test]
fn an_acknowledgement_of_the_wrong_kind_is_a_protocol_error() {
    for version in VERSIONS {
        for wrong in [pubrec(1), pubcomp(1), puback(2), pubcomp(2)] {
            let mut peer = peer(version);
            peer.sent(QOS1, "a");
            peer.sent(QOS2, "b");
            assert_eq!(reason(peer.send(&wrong)), ReasonCode::ProtocolError);
        }
        let mut peer = peer(version);
        peer.sent(QOS2, "b");
        peer.send(&pubrec(1)).unwrap();
        assert_eq!(reason(peer.send(&puback(1))), ReasonCode::ProtocolError);
    }
}

// [MQTT-2.2.1-4] [MQTT-4.3.2-1] [MQTT-4.3.3-1] [MQTT3-2.3.1-4]
#[test]
fn identifiers_in_use_are_never_given_to_another_message() {
    let mut peer = peer(Version::V311);
    peer.sent(QOS1, "held back");
    peer.sent(QOS2, "released");
    peer.send(&pubrec(2)).unwrap();
    let mut seen = Vec::new();
    for _ in 0..70_000 {
        let line = peer.sent(QOS1, "x");
        let packet_id: u16 = line["PUBLISH 1 #".len()..]
            .split(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        assert!(packet_id > 2, "identifier {packet_id} is in use");
        seen.push(packet_id);
        peer.send(&puback(packet_id)).unwrap();
    }
    assert_eq!(
        &seen[65_530..65_535],
        [65_533, 65_534, 65_535, 3, 4].map(|n: u16| n).as_slice()
    );
    assert!(peer.send(&pubcomp(2)).unwrap().is_empty());
    assert_eq!(peer.session.outbound().backlog(), (0, 0, 1));
}

// [MQTT-3.3.4-9] [MQTT-3.3.4-10] [MQTT-4.9.0-1] [MQTT-4.9.0-2] [MQTT-4.9.0-3]
#[test]
fn the_clients_receive_maximum_delays_only_publish() {
    let mut peer = Peer::new(&windowed(2));
    peer.sent(QOS1, "a");
    peer.sent(QOS2, "b");
    peer.queued(QOS1, "c");
    peer.queued(QOS2, "d");
    assert_eq!(peer.sent(QOS0, "now"), "PUBLISH 0 t=now");
    assert_eq!(peer.send(&Packet::PingReq).unwrap(), ["PINGRESP"]);
    let inbound = Packet::Publish(publish(QOS1, 5, "t", ""));
    assert_eq!(peer.send(&inbound).unwrap(), ["PUBACK #5"]);
    // PUBREC does not free the window, PUBCOMP does.
    assert_eq!(peer.send(&pubrec(2)).unwrap(), ["PUBREL #2"]);
    assert_eq!(peer.send(&pubcomp(2)).unwrap(), ["PUBLISH 1 #3 t=c"]);
    assert_eq!(peer.send(&puback(1)).unwrap(), ["PUBLISH 2 #4 t=d"]);
    peer.queued(QOS1, "e");
    let refusal = Packet::PubRec(ack_with(4, ReasonCode::NotAuthorized));
    assert_eq!(peer.send(&refusal).unwrap(), ["PUBLISH 1 #5 t=e"]);
}

#[test]
fn the_servers_own_maximum_applies_to_every_version() {
    for version in VERSIONS {
        let limits = Limits {
            inflight_max: 1,
            ..Limits::default()
        };
        let (mut peer, _) = Peer::with(limits, &persistent(version));
        peer.sent(QOS1, "a");
        peer.queued(QOS1, "b");
        assert_eq!(peer.send(&puback(1)).unwrap(), ["PUBLISH 1 #2 t=b"]);
    }
}

#[test]
fn congestion_allows_only_acknowledgements() {
    let mut peer = peer(Version::V5);
    peer.sent(QOS1, "a");
    peer.session.link_mut().set_congested(true);
    let dropped = Delivered::Dropped(DropReason::SlowConsumer);
    assert_eq!(peer.deliver(QOS0, "lost"), (dropped, [].to_vec()));
    peer.queued(QOS1, "b");
    peer.queued(QOS2, "c");
    assert!(peer.send(&puback(1)).unwrap().is_empty());
    assert_eq!(peer.pump(usize::MAX), (false, [].to_vec()));
    assert_eq!(peer.send(&Packet::PingReq).unwrap(), ["PINGRESP"]);
    peer.session.link_mut().set_congested(false);
    let expected = ["PUBLISH 1 #2 t=b", "PUBLISH 2 #3 t=c"].map(String::from);
    assert_eq!(peer.pump(usize::MAX), (false, expected.to_vec()));
    assert_eq!(peer.sent(QOS0, "d"), "PUBLISH 0 t=d");
}

#[test]
fn a_new_connection_starts_without_congestion() {
    let mut peer = peer(Version::V5);
    peer.session.link_mut().set_congested(true);
    peer.queued(QOS1, "a");
    peer.lose();
    assert_eq!(
        peer.reconnect(&persistent(Version::V5)),
        ["PUBLISH 1 #1 t=a"]
    );
}

// [MQTT-3.1.2-24] [MQTT-3.1.2-25]
#[test]
fn a_message_over_the_clients_maximum_packet_size_is_not_sent() {
    let mut connect = persistent(Version::V5);
    connect.properties.maximum_packet_size = Some(20);
    let mut peer = Peer::new(&connect);
    let dropped = Delivered::Dropped(DropReason::TooLarge);
    for qos in [QOS0, QOS1, QOS2] {
        // Header 2, topic 3, property length 1, packet identifier 2 with QoS above 0.
        let fits = if qos == QOS0 { 14 } else { 12 };
        peer.sent(qos, &"x".repeat(fits));
        assert_eq!(
            peer.deliver(qos, &"x".repeat(fits + 1)),
            (dropped, [].to_vec())
        );
    }
    assert_eq!(peer.session.outbound().backlog(), (0, 0, 2));
}

// [MQTT-3.3.2-5]
#[test]
fn an_expired_message_is_not_delivered() {
    let mut peer = peer(Version::V5);
    let dropped = Delivered::Dropped(DropReason::Expired);
    for (expires_in, expected) in [(1, None), (0, Some(dropped))] {
        for qos in [QOS0, QOS1, QOS2] {
            let at = Time::from_millis(peer.now.as_millis() + expires_in);
            let message = Publication {
                expires_at: Some(at),
                ..publication("t", "")
            };
            let (delivered, _) = peer.deliver_publication(&message, &options(qos));
            assert_eq!(delivered, expected.unwrap_or(Delivered::Sent));
        }
    }
}

// [MQTT-3.3.2-6]
#[test]
fn the_remaining_expiry_interval_is_sent() {
    let mut peer = peer(Version::V5);
    let expires_at = Some(peer.now.plus_secs(10));
    let message = Publication {
        expires_at,
        ..publication("t", "")
    };
    let sent = |peer: &mut Peer| peer.deliver_publication(&message, &options(QOS0)).1;
    assert_eq!(sent(&mut peer), ["PUBLISH 0 expiry=10 t="]);
    peer.advance_millis(4000);
    assert_eq!(sent(&mut peer), ["PUBLISH 0 expiry=6 t="]);
    peer.advance_millis(5999);
    assert_eq!(sent(&mut peer), ["PUBLISH 0 expiry=1 t="]);
}

// [MQTT-3.3.4-3] [MQTT-3.3.4-4] [MQTT-3.3.4-5]
#[test]
fn subscription_identifiers_are_sent_to_clients_of_5_only() {
    for version in VERSIONS {
        let mut peer = Peer::new(&Connect {
            ..persistent(version)
        });
        for identifiers in [&[][..], &[7], &[268_435_455, 1]] {
            let options = DeliveryOptions {
                identifiers,
                ..options(QOS0)
            };
            let (_, lines) = peer.deliver_publication(&publication("t", ""), &options);
            let expected = match (version, identifiers) {
                (Version::V5, [7]) => "PUBLISH 0 sub=7 t=",
                (Version::V5, [_, _]) => "PUBLISH 0 sub=268435455 sub=1 t=",
                _ => "PUBLISH 0 t=",
            };
            assert_eq!(lines, [expected]);
        }
    }
}

// [MQTT-3.3.1-12] [MQTT-3.3.1-13]
#[test]
fn the_retain_flag_is_set_as_the_node_requests() {
    let mut peer = peer(Version::V5);
    for retain in [true, false] {
        let message = Publication {
            retain: !retain,
            ..publication("t", "")
        };
        let (_, lines) = peer.deliver_publication(
            &message,
            &DeliveryOptions {
                retain,
                ..options(QOS0)
            },
        );
        assert_eq!(
            lines,
            [if retain {
                "PUBLISH 0 retain t="
            } else {
                "PUBLISH 0 t="
            }]
        );
    }
}

// [MQTT-3.3.2-4] [MQTT-3.3.2-15] [MQTT-3.3.2-16] [MQTT-3.3.2-17] [MQTT-3.3.2-18] [MQTT-3.3.2-20]
#[test]
fn properties_are_forwarded_unaltered_at_once_and_from_the_queue() {
    let properties = PublishProperties {
        payload_format_indicator: Some(true),
        response_topic: Some("answers"),
        correlation_data: Some(b"\x00\xff"),
        content_type: Some("text/plain"),
        user: UserProperties::Listed(&[("b", "2"), ("a", "1"), ("b", "2")]),
        ..PublishProperties::default()
    };
    let message = Publication {
        properties,
        ..publication("t", "x")
    };
    let mut session = Peer::new(&windowed(1)).session;
    let mut frames = FrameCache::default();
    let mut outgoing = Outgoing::new(message, &mut frames);
    let mut out = Output::new();
    for _ in 0..2 {
        session.deliver(&mut outgoing, options(QOS1), Time::default(), &mut out);
    }
    session
        .handle_packet(puback(1), Time::default(), &mut out)
        .unwrap();
    let out = out.to_vec();
    let sent = packets(&out, Version::V5);
    assert_eq!(sent.len(), 2);
    for packet in sent {
        let Packet::Publish(publish) = packet else {
            panic!("PUBLISH expected")
        };
        assert_eq!(publish.properties, properties);
    }
}

#[test]
fn bytes_in_flight_are_limited_and_further_messages_are_queued() {
    let limits = || Limits {
        inflight_bytes_max: 10,
        ..Limits::default()
    };
    for connect in [connect(Version::V5), persistent(Version::V5)] {
        let mut peer = Peer::with(limits(), &connect).0;
        // The second message exceeds the limit.
        peer.sent(QOS1, "123456");
        peer.sent(QOS2, "123456");
        peer.queued(QOS1, "a");
        peer.queued(QOS1, "b");
        // QoS 0 needs no room in the window.
        peer.sent(QOS0, "123456");
        assert_eq!(
            peer.send(&puback(1)).unwrap(),
            ["PUBLISH 1 #3 t=a", "PUBLISH 1 #4 t=b"]
        );
        peer.sent(QOS1, "1234567890");
        peer.queued(QOS1, "c");
        // The client has the message; only its PUBCOMP is expected.
        peer.send(&pubrec(2)).unwrap();
        peer.queued(QOS1, "d");
        assert_eq!(
            peer.send(&puback(5)).unwrap(),
            ["PUBLISH 1 #6 t=c", "PUBLISH 1 #7 t=d"]
        );
    }
}

#[test]
fn retransmitted_bytes_count_on_the_new_connection() {
    let limits = Limits {
        inflight_bytes_max: 10,
        ..Limits::default()
    };
    let connect = persistent(Version::V5);
    let mut peer = Peer::with(limits, &connect).0;
    peer.sent(QOS1, "1234567");
    peer.sent(QOS1, "1234567");
    peer.lose();
    let again = peer.reconnect(&connect);
    assert_eq!(again.len(), 2, "{again:?}");
    peer.queued(QOS1, "a");
    assert!(
        peer.send(&puback(1))
            .unwrap()
            .contains(&"PUBLISH 1 #3 t=a".to_string())
    );
}

#[test]
fn messages_are_counted_per_connection() {
    let connect = persistent(Version::V5);
    let mut peer = Peer::new(&connect);
    peer.sent(QOS0, "a");
    peer.sent(QOS1, "b");
    peer.send(&Packet::Publish(publish(QOS0, 0, "t", "c")))
        .unwrap();
    let traffic = peer.session.link().traffic();
    assert_eq!((traffic.received, traffic.sent), (1, 2));
    let later = peer.now.plus_secs(7);
    assert_eq!(traffic.seconds(later), 7);
    peer.lose();
    assert_eq!(
        peer.session.link().traffic().sent,
        2,
        "the counters remain readable at the end"
    );
    peer.now = later;
    peer.reconnect(&connect);
    let traffic = peer.session.link().traffic();
    assert_eq!(
        (traffic.received, traffic.sent),
        (0, 1),
        "b was retransmitted"
    );
    assert_eq!(traffic.seconds(later), 0);
}
