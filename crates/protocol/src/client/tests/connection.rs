//! CONNECT and its options, CONNACK, DISCONNECT, and packets that a server may not send.

use alloc::string::ToString;
use alloc::vec;
use core::num::NonZeroU16;

use thrum_codec::EncodeError;
use thrum_codec::packet::{Connect, Disconnect, Unsubscribe};
use thrum_codec::packet::{
    Subscribe, SubscriptionOptions, SubscriptionRequest, SubscriptionRequests, TopicFilters,
};
use thrum_codec::properties::{
    ConnectProperties, DisconnectProperties, SubscribeProperties, UserProperties,
};

use super::*;
use crate::client::{Incoming, WillOptions};

fn with_connect(options: ClientOptions, client_id: &str, check: impl FnOnce(&Connect<'_>)) {
    let version = options.version;
    let mut client = Client::new(Arc::new(options), client_id);
    let mut out = Vec::new();
    client.connect(Time::default(), &mut out).unwrap();
    let frame = frame::split(&out, u32::MAX).unwrap().unwrap();
    match decode(frame, version).unwrap() {
        Packet::Connect(connect) => check(&connect),
        other => panic!("not a CONNECT: {other:?}"),
    }
}

// [MQTT-3.1.0-1] [MQTT3-3.1.0-1] [MQTT-3.1.2-9] [MQTT-3.1.2-12] [MQTT-3.1.2-17] [MQTT-3.1.2-19]
// [MQTT-3.1.3-1]
// [MQTT-3.1.3-3] [MQTT3-3.1.2-9] [MQTT3-3.1.2-14] [MQTT3-3.1.2-19] [MQTT3-3.1.2-21] [MQTT3-3.1.3-1]
// [MQTT3-3.1.3-3]
#[test]
fn every_option_arrives_in_the_connect_packet() {
    for version in [Version::V31, Version::V311, Version::V5] {
        let options = ClientOptions {
            version,
            clean_start: false,
            keep_alive: 17,
            session_expiry: 3600,
            receive_maximum: 12,
            maximum_packet_size: 4096,
            topic_alias_maximum: 3,
            username: Some("user".to_string()),
            password: Some(b"\x00pass".to_vec()),
            request_response_information: Some(true),
            request_problem_information: Some(false),
            authentication_method: Some("method".to_string()),
            authentication_data: Some(b"first".to_vec()),
            user_properties: vec![("a".to_string(), "b".to_string())],
            will: Some(WillOptions {
                topic: "gone".to_string(),
                payload: b"bye".to_vec(),
                qos: QoS::ExactlyOnce,
                retain: true,
                delay: Some(9),
                content_type: Some("text".to_string()),
                user_properties: vec![("w".to_string(), "x".to_string())],
                ..WillOptions::default()
            }),
            ..ClientOptions::default()
        };
        with_connect(options, "me", |connect| {
            assert_eq!((connect.version, connect.client_id), (version, "me"));
            assert_eq!((connect.clean_start, connect.keep_alive), (false, 17));
            assert_eq!(connect.username, Some("user"));
            assert_eq!(connect.password, Some(&b"\x00pass"[..]));
            let will = connect.will.unwrap();
            assert_eq!(
                (will.topic, will.payload, will.qos),
                ("gone", &b"bye"[..], QoS::ExactlyOnce)
            );
            assert!(will.retain);
            if version != Version::V5 {
                assert_eq!(connect.properties, ConnectProperties::default());
                return;
            }
            let properties = connect.properties;
            assert_eq!(properties.session_expiry, Some(3600));
            assert_eq!(properties.receive_maximum, NonZeroU16::new(12));
            assert_eq!(properties.maximum_packet_size, Some(4096));
            assert_eq!(properties.topic_alias_maximum, Some(3));
            assert_eq!(properties.request_response_information, Some(true));
            assert_eq!(properties.request_problem_information, Some(false));
            assert_eq!(properties.authentication_method, Some("method"));
            assert_eq!(properties.authentication_data, Some(&b"first"[..]));
            assert_eq!(properties.user, UserProperties::Listed(&[("a", "b")]));
            assert_eq!(will.properties.will_delay, Some(9));
            assert_eq!(will.properties.content_type, Some("text"));
            assert_eq!(will.properties.user, UserProperties::Listed(&[("w", "x")]));
        });
    }
}

// [MQTT-3.1.2-11] [MQTT-3.1.2-13] [MQTT-3.1.2-16] [MQTT-3.1.2-18] [MQTT3-3.1.2-11] [MQTT3-3.1.2-13]
// [MQTT3-3.1.2-15]
// [MQTT3-3.1.2-18] [MQTT3-3.1.2-20]
#[test]
fn a_plain_connect_has_neither_will_nor_credentials() {
    for version in [Version::V31, Version::V311, Version::V5] {
        with_connect(clean(version), "me", |connect| {
            assert_eq!(
                (connect.will, connect.username, connect.password),
                (None, None, None)
            );
        });
    }
}

// [MQTT3-3.1.2-22]
#[test]
fn a_password_without_user_name_gets_an_empty_user_name_in_3x() {
    let with_password = |version| ClientOptions {
        password: Some(b"p".to_vec()),
        ..clean(version)
    };
    with_connect(with_password(Version::V311), "me", |connect| {
        assert_eq!(connect.username, Some(""));
    });
    with_connect(with_password(Version::V5), "me", |connect| {
        assert_eq!(connect.username, None);
    });
}

// [MQTT3-3.1.3-7]
#[test]
fn an_empty_identifier_forces_a_clean_session_in_3x() {
    with_connect(persistent(Version::V311), "", |connect| {
        assert!(connect.clean_start);
    });
    with_connect(persistent(Version::V5), "", |connect| {
        assert!(!connect.clean_start);
    });
}

#[test]
fn an_option_that_does_not_fit_the_wire_is_an_error_and_writes_nothing() {
    let options = ClientOptions {
        password: Some(vec![0; 70_000]),
        ..clean(Version::V5)
    };
    let mut peer = Peer::new(options);
    let result = peer.client.connect(peer.now, &mut peer.out);
    assert_eq!(result, Err(EncodeError::FieldTooLong));
    assert!(peer.out.is_empty());
    assert_eq!(peer.client.next_deadline(), None);
}

#[test]
fn an_assigned_identifier_is_used_from_then_on() {
    let mut client = Client::new(Arc::new(persistent(Version::V5)), "");
    let mut out = Vec::new();
    client.connect(Time::default(), &mut out).unwrap();
    let properties = ConnAckProperties {
        assigned_client_id: Some("auto-7"),
        ..ConnAckProperties::default()
    };
    let ack = Packet::ConnAck(accept_with(false, properties));
    client
        .handle_packet(ack, Time::default(), &mut out)
        .unwrap();
    assert_eq!(client.client_id(), "auto-7");
    out.clear();
    client.connect(Time::default(), &mut out).unwrap();
    assert!(out.windows(6).any(|window| window == b"auto-7"));
}

// [MQTT-4.13.2-1]
#[test]
fn after_a_refusal_the_client_is_silent() {
    let mut peer = Peer::new(clean(Version::V5));
    let refusal = ConnAck {
        reason: ReasonCode::NotAuthorized,
        ..accept(false)
    };
    assert_eq!(peer.reconnect(&refusal), "refused 0x87");
    assert!(!peer.client.is_connected());
    assert_eq!(
        peer.publish(QoS::AtMostOnce, "t"),
        Err(PublishError::NotConnected)
    );
    assert_eq!(peer.client.next_deadline(), None);
}

// [MQTT-3.2.2-4]
#[test]
fn a_session_that_the_client_does_not_have_is_refused() {
    let mut peer = Peer::new(clean(Version::V5));
    peer.client.connect(peer.now, &mut peer.out).unwrap();
    let violation = peer.receive(Packet::ConnAck(accept(true))).unwrap_err();
    assert_eq!(violation.reason, ReasonCode::ProtocolError);
}

fn client_only() -> [Packet<'static>; 4] {
    let connect = Connect {
        version: Version::V5,
        is_bridge: false,
        clean_start: true,
        keep_alive: 0,
        client_id: "x",
        will: None,
        username: None,
        password: None,
        properties: ConnectProperties::default(),
    };
    let subscribe = Subscribe {
        packet_id: id(1),
        properties: SubscribeProperties::default(),
        requests: SubscriptionRequests::Listed(&[]),
    };
    let unsubscribe = Unsubscribe {
        packet_id: id(1),
        user: UserProperties::default(),
        filters: TopicFilters::Listed(&[]),
    };
    [
        Packet::Connect(connect),
        Packet::Subscribe(subscribe),
        Packet::Unsubscribe(unsubscribe),
        Packet::PingReq,
    ]
}

// [MQTT3-4.8.0-1]
#[test]
fn packets_that_only_clients_send_are_violations() {
    for packet in client_only() {
        let mut peer = Peer::connected(clean(Version::V5));
        assert_eq!(
            peer.receive(packet).unwrap_err().reason,
            ReasonCode::ProtocolError
        );
    }
    let mut peer = Peer::connected(clean(Version::V5));
    assert!(peer.receive(Packet::ConnAck(accept(false))).is_err());
    let disconnect = Disconnect {
        reason: ReasonCode::Success,
        properties: DisconnectProperties::default(),
    };
    let mut peer = Peer::connected(clean(Version::V311));
    assert!(peer.receive(Packet::Disconnect(disconnect)).is_err());
}

#[test]
fn only_connack_and_auth_are_accepted_first() {
    let mut peer = Peer::new(clean(Version::V5));
    assert!(
        peer.receive(Packet::PingResp).is_err(),
        "before the connection"
    );
    peer.client.connect(peer.now, &mut peer.out).unwrap();
    assert!(peer.receive(Packet::PingResp).is_err());
    assert!(peer.receive(delivery(QoS::AtMostOnce, 0, "t")).is_err());
}

// [MQTT-4.13.2-1]
#[test]
fn a_disconnect_of_the_server_ends_the_connection() {
    let mut peer = Peer::connected(clean(Version::V5));
    let disconnect = Disconnect {
        reason: ReasonCode::SessionTakenOver,
        properties: DisconnectProperties::default(),
    };
    assert_eq!(
        peer.receive(Packet::Disconnect(disconnect)).unwrap(),
        "disconnected 0x8e"
    );
    assert!(!peer.client.is_connected());
    assert!(peer.receive(Packet::PingResp).is_err());
}

// [MQTT-3.14.4-1] [MQTT-3.14.4-2] [MQTT3-3.14.4-1] [MQTT3-3.14.4-2]
#[test]
fn nothing_is_sent_after_disconnect() {
    for version in [Version::V311, Version::V5] {
        let mut peer = Peer::connected(clean(version));
        peer.client
            .disconnect(ReasonCode::Success, None, &mut peer.out);
        assert_eq!(peer.sent(), ["DISCONNECT"]);
        assert_eq!(
            peer.publish(QoS::AtMostOnce, "t"),
            Err(PublishError::NotConnected)
        );
        peer.client
            .disconnect(ReasonCode::Success, None, &mut peer.out);
        assert_eq!(peer.timeout_at(1_000_000), Ok(vec![]));
        let filter = [TopicFilter::parse("a").unwrap()];
        let request = [SubscriptionRequest {
            filter: filter[0],
            options: SubscriptionOptions::default(),
        }];
        let properties = SubscribeProperties::default();
        assert!(
            peer.client
                .subscribe(properties, &request, peer.now, &mut peer.out)
                .is_err()
        );
        let user = UserProperties::default();
        assert!(
            peer.client
                .unsubscribe(user, &filter, peer.now, &mut peer.out)
                .is_err()
        );
        assert!(peer.out.is_empty());
    }
}

// [MQTT-3.14.2-3] [MQTT-3.14.2-4]
#[test]
fn a_disconnect_over_the_packet_size_is_sent_without_reason_string_and_user_properties() {
    let small = ConnAckProperties {
        maximum_packet_size: Some(10),
        ..ConnAckProperties::default()
    };
    let properties = DisconnectProperties {
        reason_string: Some("leaving"),
        user: UserProperties::Listed(&[("a", "b")]),
        ..DisconnectProperties::default()
    };
    let disconnect = Disconnect {
        reason: ReasonCode::DisconnectWithWill,
        properties,
    };
    for (ack, length) in [(accept(false), 21), (accept_with(false, small), 3)] {
        let mut peer = Peer::new(clean(Version::V5));
        peer.reconnect(&ack);
        peer.client.disconnect_with(&disconnect, &mut peer.out);
        assert_eq!(peer.out.len(), length);
        assert_eq!(peer.sent(), ["DISCONNECT 0x04"]);
    }
}

// [MQTT-3.14.2-1]
#[test]
fn only_reasons_of_a_client_are_sent_in_disconnect() {
    for (reason, sent) in [
        (ReasonCode::DisconnectWithWill, "DISCONNECT 0x04"),
        (ReasonCode::ReceiveMaximumExceeded, "DISCONNECT 0x93"),
        (ReasonCode::KeepAliveTimeout, "DISCONNECT 0x80"),
        (ReasonCode::SessionTakenOver, "DISCONNECT 0x80"),
    ] {
        let mut peer = Peer::connected(clean(Version::V5));
        peer.client.disconnect(reason, None, &mut peer.out);
        assert_eq!(peer.sent(), [sent]);
    }
    let mut peer = Peer::connected(clean(Version::V311));
    peer.client
        .disconnect(ReasonCode::DisconnectWithWill, None, &mut peer.out);
    assert!(peer.out.is_empty(), "the server would drop the will");
}

#[test]
fn an_idle_client_is_small() {
    assert!(size_of::<Client>() <= 128, "{}", size_of::<Client>());
    let peer = Peer::connected(clean(Version::V5));
    assert!(peer.client.exchanges.is_none());
}

#[test]
fn a_client_without_session_expiry_sends_none_in_disconnect() {
    let disconnect = Disconnect {
        reason: ReasonCode::Success,
        properties: DisconnectProperties {
            session_expiry: Some(10),
            ..DisconnectProperties::default()
        },
    };
    for (options, expected) in [
        (clean(Version::V5), None),
        (persistent(Version::V5), Some(10)),
    ] {
        let mut peer = Peer::connected(options);
        peer.client.disconnect_with(&disconnect, &mut peer.out);
        let frame = frame::split(&peer.out, u32::MAX).unwrap().unwrap();
        let Packet::Disconnect(sent) = decode(frame, Version::V5).unwrap() else {
            panic!("a DISCONNECT is sent")
        };
        assert_eq!(sent.properties.session_expiry, expected);
    }
}

#[test]
fn a_publish_that_is_not_moved_is_handled_like_any_packet() {
    let mut moved = Peer::new(clean(Version::V5));
    let mut kept = Peer::new(clean(Version::V5));
    let mut compare = |phase: &str, connects: bool, ends: bool| {
        for peer in [&mut moved, &mut kept] {
            if connects {
                peer.reconnect(&accept(false));
            }
            if ends {
                peer.client.connection_lost();
            }
        }
        // One comes twice, one lacks its identifier.
        for (qos, packet_id) in [(0, 0), (1, 1), (2, 2), (2, 2), (1, 0)] {
            let qos = [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce][qos];
            let Packet::Publish(publish) = delivery(qos, packet_id, "t") else {
                unreachable!("a delivery is a PUBLISH");
            };
            let event = moved.receive(Packet::Publish(publish));
            let incoming = kept
                .client
                .handle_publish(&publish, kept.now, &mut kept.out);
            let incoming = incoming.map(|incoming| match incoming {
                Incoming::Message { alias } => render_event(&Event::Message { publish, alias }),
                Incoming::Repeated => render_event(&Event::None),
            });
            assert_eq!(event, incoming, "{phase}, {qos:?}, {packet_id}");
            assert_eq!(moved.sent(), kept.sent(), "{phase}, {qos:?}, {packet_id}");
        }
    };
    compare("before CONNECT", false, false);
    compare("connected", true, false);
    compare("after the end", false, true);
}
