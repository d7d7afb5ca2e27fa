//! Accepted CONNECT packets, and the contents of CONNACK.

use thrum_codec::packet::ConnAck;
use thrum_codec::properties::ConnAckProperties;

use super::*;

/// The CONNACK of a new session.
fn check(limits: &Limits, connect: &Connect<'_>, inspect: impl FnOnce(&Session, &ConnAck<'_>)) {
    check_connack(limits, connect, None, inspect);
}

fn check_connack(
    limits: &Limits,
    connect: &Connect<'_>,
    response_information: Option<&str>,
    inspect: impl FnOnce(&Session, &ConnAck<'_>),
) {
    let limits = Arc::new(limits.clone());
    let handshake = Handshake::new(connect, "assigned-1", &limits).unwrap();
    let mut session = Session::new(1, &handshake, &limits);
    let mut out = Output::new();
    let parts = ConnAckParts {
        response_information,
        ..ConnAckParts::default()
    };
    session.connect(handshake, parts, Time::default(), &mut out);
    let out = out.to_vec();
    let [Packet::ConnAck(connack)] = packets(&out, connect.version)[..] else {
        panic!("exactly one CONNACK expected");
    };
    assert_eq!(connack.reason, ReasonCode::Success);
    inspect(&session, &connack);
}

// [MQTT-3.1.4-5] [MQTT3-3.1.4-4] [MQTT-3.2.0-1] [MQTT-3.2.0-2] [MQTT3-3.2.0-1]
#[test]
fn an_accepted_connect_is_answered_with_one_connack_and_nothing_before_it() {
    for version in VERSIONS {
        let (peer, lines) = Peer::with(Limits::default(), &connect(version));
        assert_eq!(lines, ["CONNACK 0x00"]);
        assert!(peer.session.link.is_connected());
        assert_eq!(peer.session.link().version(), version);
        assert_eq!((peer.session.id(), peer.session.client_id()), (9, "client"));
    }
}

// [MQTT-3.1.2-24]
#[test]
fn a_client_whose_packet_size_is_below_connack_is_refused() {
    let limits = Limits::default();
    let mut connect = connect(Version::V5);
    let refusal = |connect: &Connect<'_>| {
        Handshake::new(connect, "", &limits)
            .map_err(|violation| violation.reason)
            .err()
    };
    connect.properties.maximum_packet_size = Some(3);
    assert_eq!(refusal(&connect), Some(ReasonCode::PacketTooLarge));
    connect.properties.maximum_packet_size = Some(32);
    assert_eq!(refusal(&connect), None);
}

#[test]
fn no_connection_exists_before_connect() {
    let limits = Arc::new(Limits::default());
    let handshake = Handshake::new(&connect(Version::V5), "", &limits).unwrap();
    let mut session = Session::new(1, &handshake, &limits);
    assert!(!session.link.is_connected());
    assert_eq!(session.next_deadline(), None);
    assert!(matches!(
        session.handle_timeout(Time::from_millis(u64::MAX)),
        Timeout::Pending
    ));
    let mut out = Output::new();
    session.disconnect(ReasonCode::ServerShuttingDown, None, &mut out);
    // [MQTT-3.14.0-1]
    assert!(out.is_empty());
    assert_eq!(&*session.into_client_id(), "client");
}

// [MQTT-3.1.3-6] [MQTT-3.1.3-7] [MQTT-3.2.2-16]
#[test]
fn an_empty_client_identifier_is_assigned_and_sent_to_the_client() {
    let connect = Connect {
        client_id: "",
        ..connect(Version::V5)
    };
    check(&Limits::default(), &connect, |session, connack| {
        assert_eq!(connack.properties.assigned_client_id, Some("assigned-1"));
        assert_eq!(session.client_id(), "assigned-1");
    });
    let named = Connect {
        client_id: "mine",
        ..connect
    };
    check(&Limits::default(), &named, |session, connack| {
        assert_eq!(connack.properties.assigned_client_id, None);
        assert_eq!(session.client_id(), "mine");
    });
}

// [MQTT3-3.1.3-6] [MQTT3-3.1.3-7]
#[test]
fn a_clean_session_of_311_may_have_no_client_identifier() {
    let connect = Connect {
        client_id: "",
        ..connect(Version::V311)
    };
    check(&Limits::default(), &connect, |session, _| {
        assert_eq!(session.client_id(), "assigned-1");
    });
}

// [MQTT-3.1.3-5] [MQTT3-3.1.3-5]
#[test]
fn client_identifiers_up_to_the_limit_are_accepted() {
    let longest = "x".repeat(256);
    let lists = [
        "a",
        "0123456789abcdefghijklm",
        "ABCDEFGHIJKLMNOPQRSTUVW",
        "nopqrstuvwxyzXYZ",
    ];
    for client_id in lists.into_iter().chain(["häuser/#+ $", &longest]) {
        for version in VERSIONS {
            let connect = Connect {
                client_id,
                ..connect(version)
            };
            check(&Limits::default(), &connect, |session, _| {
                assert_eq!(session.client_id(), client_id);
            });
        }
    }
}

#[test]
fn the_handshake_has_the_keys_of_the_session_lookup() {
    let handshake = Handshake::new(&persistent(Version::V311), "", &Limits::default()).unwrap();
    assert_eq!(handshake.client_id(), "client");
    assert_eq!(handshake.version(), Version::V311);
    assert!(!handshake.clean_start());
}

#[test]
fn limits_are_announced_and_defaults_omitted() {
    check(&Limits::default(), &connect(Version::V5), |_, connack| {
        let expected = ConnAckProperties {
            receive_maximum: NonZeroU16::new(1024),
            maximum_packet_size: Some(1024 * 1024),
            topic_alias_maximum: Some(64),
            ..ConnAckProperties::default()
        };
        assert_eq!(connack.properties, expected);
    });
    let silent = Limits {
        receive_maximum: u16::MAX,
        topic_alias_maximum: 0,
        packet_bytes_max: 77,
        ..Limits::default()
    };
    check(&silent, &connect(Version::V5), |_, connack| {
        let expected = ConnAckProperties {
            maximum_packet_size: Some(77),
            ..ConnAckProperties::default()
        };
        assert_eq!(connack.properties, expected);
    });
}

// [MQTT-3.2.2-9] [MQTT-3.1.2-26]
#[test]
fn unavailable_features_are_announced() {
    let limits = Limits {
        maximum_qos: QOS1,
        retain_available: false,
        wildcard_available: false,
        shared_available: false,
        ..Limits::default()
    };
    check(&limits, &connect(Version::V5), |_, connack| {
        assert_eq!(connack.properties.maximum_qos, Some(QOS1));
        assert_eq!(connack.properties.retain_available, Some(false));
        assert_eq!(
            connack.properties.wildcard_subscription_available,
            Some(false)
        );
        assert_eq!(
            connack.properties.shared_subscription_available,
            Some(false)
        );
    });
}

#[test]
fn a_longer_keep_alive_than_the_limit_is_replaced() {
    let limits = Limits {
        keep_alive_max: 100,
        ..Limits::default()
    };
    for (asked, told) in [(0, Some(100)), (101, Some(100)), (100, None), (1, None)] {
        let connect = Connect {
            keep_alive: asked,
            ..connect(Version::V5)
        };
        check(&limits, &connect, |session, connack| {
            assert_eq!(connack.properties.server_keep_alive, told);
            let seconds = told.unwrap_or(asked);
            let deadline = Time::from_millis(u64::from(seconds) * 1500);
            assert_eq!(session.next_deadline(), Some(deadline));
        });
    }
}

// [MQTT-3.2.2-22]
#[test]
fn a_3x_client_keeps_its_own_keep_alive() {
    let limits = Limits {
        keep_alive_max: 100,
        ..Limits::default()
    };
    let connect = Connect {
        keep_alive: 200,
        ..connect(Version::V311)
    };
    check(&limits, &connect, |session, _| {
        assert_eq!(session.next_deadline(), Some(Time::from_millis(300_000)));
    });
    check(&Limits::default(), &connect, |session, connack| {
        assert_eq!(connack.properties.server_keep_alive, None);
        assert_eq!(session.next_deadline(), Some(Time::from_millis(300_000)));
    });
}

#[test]
fn session_expiry_is_limited_and_announced() {
    let limits = Limits {
        session_expiry_max: 1000,
        ..Limits::default()
    };
    let cases = [
        (None, None),
        (Some(0), None),
        (Some(1000), None),
        (Some(1001), Some(1000)),
    ];
    for (asked, told) in cases.into_iter().chain([(Some(u32::MAX), Some(1000))]) {
        let mut connect = connect(Version::V5);
        connect.properties.session_expiry = asked;
        check(&limits, &connect, |session, connack| {
            assert_eq!(connack.properties.session_expiry, told);
            assert_eq!(session.lifetime().is_persistent(), asked.unwrap_or(0) > 0);
        });
    }
}

// [MQTT3-3.1.2-4] [MQTT3-3.1.2-6]
#[test]
fn clean_session_determines_the_expiry_of_a_3x_session() {
    for version in [Version::V31, Version::V311] {
        for (max, expected_secs) in [(u32::MAX, 500), (100, 100)] {
            let limits = Limits {
                session_expiry_max: max,
                session_expiry_v3: 500,
                ..Limits::default()
            };
            let (clean, _) = Peer::with(limits.clone(), &connect(version));
            assert!(!clean.session.lifetime().is_persistent());
            let (mut kept, _) = Peer::with(limits, &persistent(version));
            assert!(kept.session.lifetime().is_persistent());
            assert!(!kept.lose().session_ended);
            assert_eq!(
                kept.session.next_deadline(),
                Some(kept.now.plus_secs(expected_secs))
            );
        }
    }
}

// [MQTT-3.1.2-28]
#[test]
fn response_information_goes_only_to_a_client_that_asked() {
    for (asked, told) in [
        (Some(true), Some("answers/")),
        (Some(false), None),
        (None, None),
    ] {
        let mut connect = connect(Version::V5);
        connect.properties.request_response_information = asked;
        check_connack(
            &Limits::default(),
            &connect,
            Some("answers/"),
            |_, connack| {
                assert_eq!(connack.properties.response_information, told);
            },
        );
    }
}

// [MQTT-3.1.2-24]
#[test]
fn response_information_that_makes_connack_too_large_is_omitted() {
    let mut connect = connect(Version::V5);
    connect.properties.request_response_information = Some(true);
    connect.properties.maximum_packet_size = Some(60);
    let long = "x".repeat(50);
    check_connack(&Limits::default(), &connect, Some(&long), |_, connack| {
        assert_eq!(connack.properties.response_information, None);
    });
}

// [MQTT-3.2.2-2] [MQTT-3.2.2-3] [MQTT3-3.2.2-1] [MQTT3-3.2.2-2] [MQTT3-3.2.2-3]
#[test]
fn session_present_tells_whether_the_session_was_kept() {
    for version in [Version::V311, Version::V5] {
        let cases = [
            (false, true, true),
            (false, false, false),
            (true, true, false),
        ];
        for (clean_start, is_kept, expected) in cases {
            let connect = Connect {
                clean_start,
                ..persistent(version)
            };
            let limits = Arc::new(Limits::default());
            let handshake = Handshake::new(&connect, "", &limits).unwrap();
            let mut session = Session::new(1, &handshake, &limits);
            let parts = ConnAckParts {
                session_present: is_kept,
                ..ConnAckParts::default()
            };
            let mut out = Output::new();
            session.connect(handshake, parts, Time::default(), &mut out);
            let expected = if expected {
                "CONNACK 0x00 present"
            } else {
                "CONNACK 0x00"
            };
            assert_eq!(lines(&out.to_vec(), version), [expected]);
        }
    }
}

#[test]
fn a_window_of_0_counts_as_1() {
    let limits = Limits {
        receive_maximum: 0,
        inflight_max: 0,
        ..Limits::default()
    };
    check(&limits, &connect(Version::V5), |_, connack| {
        assert_eq!(connack.properties.receive_maximum, NonZeroU16::new(1));
    });
    let (mut peer, _) = Peer::with(limits, &persistent(Version::V5));
    let inbound = Packet::Publish(publish(QOS1, 1, "t", ""));
    assert_eq!(peer.send(&inbound).unwrap(), ["PUBACK #1"]);
    peer.sent(QOS1, "a");
    peer.queued(QOS1, "b");
}

#[test]
fn changed_limits_apply_from_the_next_connection() {
    let mut peer = Peer::new(&persistent(Version::V5));
    peer.lose();
    let limits = Limits {
        inflight_max: 1,
        topic_alias_maximum: 7,
        ..Limits::default()
    };
    peer.session.set_limits(&Arc::new(limits));
    let mut out = Output::new();
    peer.reconnect_into(&persistent(Version::V5), &mut out);
    let out = out.to_vec();
    let [Packet::ConnAck(connack)] = packets(&out, Version::V5)[..] else {
        panic!("one CONNACK expected");
    };
    assert_eq!(connack.properties.topic_alias_maximum, Some(7));
    peer.sent(QOS1, "a");
    peer.queued(QOS1, "b");
}

#[test]
fn an_idle_session_is_small() {
    assert!(
        size_of::<Session>() <= 184,
        "{} bytes",
        size_of::<Session>()
    );
}
