//! All other packets of a client: subscriptions, pings, DISCONNECT and packets that only a server
//! sends.

use thrum_codec::TopicFilter;
use thrum_codec::packet::{
    Auth, ConnAck, ReasonCodes, SubAck, SubscriptionOptions, SubscriptionRequest,
    SubscriptionRequests, TopicFilters,
};
use thrum_codec::properties::{
    AuthProperties, ConnAckProperties, SubscribeProperties, UserProperties,
};

use super::*;

fn peer(version: Version) -> Peer {
    Peer::new(&persistent(version))
}

fn subscribe<'a>(packet_id: u16, requests: &'a [SubscriptionRequest<'a>]) -> Packet<'a> {
    Packet::Subscribe(Subscribe {
        packet_id: id(packet_id),
        properties: SubscribeProperties::default(),
        requests: SubscriptionRequests::Listed(requests),
    })
}

fn request(filter: &str, qos: QoS) -> SubscriptionRequest<'_> {
    let options = SubscriptionOptions {
        qos,
        ..SubscriptionOptions::default()
    };
    SubscriptionRequest {
        filter: TopicFilter::parse(filter).unwrap(),
        options,
    }
}

fn unsubscribe<'a>(packet_id: u16, filters: &'a [TopicFilter<'a>]) -> Packet<'a> {
    Packet::Unsubscribe(Unsubscribe {
        packet_id: id(packet_id),
        user: UserProperties::default(),
        filters: TopicFilters::Listed(filters),
    })
}

// [MQTT-3.8.4-1] [MQTT-3.8.4-2] [MQTT-3.8.4-5] [MQTT-3.8.4-6] [MQTT-3.9.3-1] [MQTT-2.2.1-6]
// [MQTT3-3.8.4-1] [MQTT3-3.8.4-2] [MQTT3-3.8.4-4] [MQTT3-3.8.4-5] [MQTT3-3.9.3-1] [MQTT3-2.3.1-7]
#[test]
fn a_subscribe_is_answered_with_one_code_per_filter() {
    for version in VERSIONS {
        let mut peer = peer(version);
        let requests = [request("a/+", QOS2), request("b", QOS0), request("#", QOS1)];
        let mut out = Output::new();
        peer.send_into(&subscribe(77, &requests), &mut out).unwrap();
        let out = out.to_vec();
        let [Packet::SubAck(suback)] = packets(&out, version)[..] else {
            panic!("one SUBACK expected");
        };
        assert_eq!(suback.packet_id, id(77));
        let codes = [
            ReasonCode::GrantedQoS2,
            ReasonCode::Success,
            ReasonCode::GrantedQoS1,
        ];
        assert_eq!(suback.codes, ReasonCodes::Listed(&codes));
        // [MQTT-3.9.2-1] [MQTT-3.9.2-2]
        assert_eq!(suback.properties, AckProperties::default());
    }
}

// [MQTT-3.10.4-4] [MQTT-3.10.4-5] [MQTT-3.10.4-6] [MQTT-3.11.3-1]
// [MQTT3-3.10.4-4] [MQTT3-3.10.4-5] [MQTT3-3.10.4-6]
#[test]
fn an_unsubscribe_is_acknowledged_even_if_nothing_was_deleted() {
    for version in VERSIONS {
        let mut peer = peer(version);
        let filters = ["a/+", "b"].map(|filter| TopicFilter::parse(filter).unwrap());
        let lines = peer.send(&unsubscribe(78, &filters)).unwrap();
        assert_eq!(lines, ["UNSUBACK #78"]);
    }
    let mut peer = peer(Version::V5);
    let codes = [ReasonCode::Success, ReasonCode::NoSubscriptionExisted];
    let mut out = Output::new();
    peer.session.link_mut().unsuback(id(5), &codes, &mut out);
    let out = out.to_vec();
    let [Packet::UnsubAck(unsuback)] = packets(&out, Version::V5)[..] else {
        panic!("one UNSUBACK expected");
    };
    assert_eq!(unsuback.codes, ReasonCodes::Listed(&codes));
    // [MQTT-3.11.2-1] [MQTT-3.11.2-2]
    assert_eq!(unsuback.properties, AckProperties::default());
}

// [MQTT-3.1.2-24]
#[test]
fn an_acknowledgement_over_the_clients_maximum_packet_size_is_not_sent() {
    let mut connect = persistent(Version::V5);
    connect.properties.maximum_packet_size = Some(20);
    let mut peer = Peer::new(&connect);
    let mut out = Output::new();
    peer.session
        .link_mut()
        .suback(id(1), &[ReasonCode::Success; 15], None, &mut out);
    assert_eq!(out.len(), 20);
    out.clear();
    peer.session
        .link_mut()
        .suback(id(1), &[ReasonCode::Success; 16], None, &mut out);
    assert!(out.is_empty());
}

// [MQTT-3.1.2-29] [MQTT-3.9.2-1]
#[test]
fn a_suback_has_a_reason_string_only_if_the_client_accepts_one() {
    const WORDS: &str = "only a part of the subscription is delivered";
    let told = |connect: &Connect<'_>| {
        let mut peer = Peer::new(connect);
        let mut out = Output::new();
        let codes = [ReasonCode::Success];
        peer.session
            .link_mut()
            .suback(id(1), &codes, Some(WORDS), &mut out);
        let out = out.to_vec();
        let [Packet::SubAck(suback)] = packets(&out, connect.version)[..] else {
            panic!("one SUBACK expected");
        };
        suback.properties.reason_string.map(ToString::to_string)
    };
    assert_eq!(told(&persistent(Version::V5)).as_deref(), Some(WORDS));
    assert_eq!(told(&persistent(Version::V311)), None);
    let mut terse = persistent(Version::V5);
    terse.properties.request_problem_information = Some(false);
    assert_eq!(told(&terse), None);
    let mut narrow = persistent(Version::V5);
    narrow.properties.maximum_packet_size = Some(40);
    assert_eq!(told(&narrow), None);
}

// [MQTT-3.12.4-1] [MQTT3-3.12.4-1]
#[test]
fn a_ping_is_answered() {
    for version in VERSIONS {
        assert_eq!(peer(version).send(&Packet::PingReq).unwrap(), ["PINGRESP"]);
    }
}

// [MQTT-3.1.0-2] [MQTT3-3.1.0-2] [MQTT-4.13.1-1] [MQTT3-4.8.0-1]
#[test]
fn a_second_connect_is_a_protocol_error() {
    for version in VERSIONS {
        let outcome = peer(version).send(&Packet::Connect(connect(version)));
        assert_eq!(reason(outcome), ReasonCode::ProtocolError);
    }
}

// [MQTT-4.13.1-1] [MQTT3-4.8.0-1]
#[test]
fn packets_that_only_a_server_sends_are_protocol_errors() {
    let codes = ReasonCodes::Listed(&[ReasonCode::Success]);
    let suback = SubAck {
        packet_id: id(1),
        properties: AckProperties::default(),
        codes,
    };
    let connack = ConnAck {
        session_present: false,
        reason: ReasonCode::Success,
        properties: ConnAckProperties::default(),
    };
    let packets = [
        Packet::ConnAck(connack),
        Packet::SubAck(suback),
        Packet::UnsubAck(suback),
        Packet::PingResp,
    ];
    for version in VERSIONS {
        for packet in &packets {
            let mut peer = peer(version);
            let mut out = Output::new();
            let outcome = peer.session.handle_packet(*packet, peer.now, &mut out);
            assert_eq!(outcome.unwrap_err().reason, ReasonCode::ProtocolError);
            assert!(out.is_empty());
        }
    }
}

// [MQTT-4.12.0-6]
#[test]
fn auth_without_an_authentication_method_is_a_protocol_error() {
    let properties = AuthProperties {
        authentication_method: Some("SCRAM-SHA-256"),
        ..AuthProperties::default()
    };
    for reason_code in [
        ReasonCode::ContinueAuthentication,
        ReasonCode::ReAuthenticate,
    ] {
        let auth = Packet::Auth(Auth {
            reason: reason_code,
            properties,
        });
        assert_eq!(
            reason(peer(Version::V5).send(&auth)),
            ReasonCode::ProtocolError
        );
    }
}

#[test]
fn a_server_reference_from_a_client_is_a_protocol_error() {
    let properties = DisconnectProperties {
        server_reference: Some("elsewhere"),
        ..DisconnectProperties::default()
    };
    let packet = Packet::Disconnect(Disconnect {
        reason: ReasonCode::Success,
        properties,
    });
    assert_eq!(
        reason(peer(Version::V5).send(&packet)),
        ReasonCode::ProtocolError
    );
}

#[test]
fn nothing_is_handled_or_sent_after_disconnect() {
    let mut peer = peer(Version::V5);
    peer.outcome = None;
    peer.send(&Packet::Publish(publish(QOS1, 1, "t", "")))
        .unwrap();
    assert!(
        peer.send(&client_disconnect(ReasonCode::Success))
            .unwrap()
            .is_empty()
    );
    assert!(peer.session.link.is_connected());
    assert!(peer.send(&Packet::PingReq).unwrap().is_empty());
    assert!(peer.done(QOS1, 1, ReasonCode::Success).is_empty());
    assert!(
        peer.disconnect(ReasonCode::KeepAliveTimeout, None)
            .is_empty()
    );
    assert_eq!(
        peer.deliver(QOS0, "x").0,
        Delivered::Dropped(DropReason::Offline)
    );
    peer.queued(QOS1, "y");
    peer.lose();
    assert!(!peer.session.link.is_connected());
    assert!(peer.send(&Packet::PingReq).unwrap().is_empty());
}

// [MQTT-3.14.4-1] [MQTT-3.14.2-1] [MQTT-3.14.2-2]
#[test]
fn the_disconnect_of_the_server_is_its_last_packet() {
    let mut peer = peer(Version::V5);
    let mut out = Output::new();
    peer.session
        .disconnect(ReasonCode::ServerShuttingDown, Some("bye"), &mut out);
    let out = out.to_vec();
    let [Packet::Disconnect(disconnect)] = packets(&out, Version::V5)[..] else {
        panic!("one DISCONNECT expected");
    };
    assert_eq!(disconnect.reason, ReasonCode::ServerShuttingDown);
    let properties = disconnect.properties;
    assert_eq!(
        (properties.session_expiry, properties.reason_string),
        (None, Some("bye"))
    );
    assert!(
        peer.disconnect(ReasonCode::UnspecifiedError, None)
            .is_empty()
    );
    assert!(peer.send(&Packet::PingReq).unwrap().is_empty());
    peer.queued(QOS1, "later");
}

// [MQTT-3.14.0-1]
#[test]
fn a_client_whose_connack_was_not_sent_is_refused_with_another() {
    let mut out = Output::new();
    let mut session = peer(Version::V5).session;
    session
        .link_mut()
        .refuse(ReasonCode::ServerShuttingDown, "bye", &mut out);
    // Only one is sent.
    session
        .link_mut()
        .refuse(ReasonCode::ServerShuttingDown, "bye", &mut out);
    session.disconnect(ReasonCode::ServerShuttingDown, Some("bye"), &mut out);
    let out = out.to_vec();
    let [Packet::ConnAck(refusal)] = packets(&out, Version::V5)[..] else {
        panic!("one CONNACK expected");
    };
    // Only DISCONNECT may have the code 0x8B.
    assert_eq!(refusal.reason, ReasonCode::ServerUnavailable);
    assert_eq!(refusal.properties.reason_string, Some("bye"));
    assert!(!refusal.session_present);

    let mut out = Output::new();
    let mut session = peer(Version::V311).session;
    session
        .link_mut()
        .refuse(ReasonCode::ServerShuttingDown, "bye", &mut out);
    assert_eq!(out.to_vec(), [0x20, 2, 0, 3]);
}

#[test]
fn a_disconnect_to_a_3x_client_sends_nothing() {
    for version in [Version::V31, Version::V311] {
        let mut peer = peer(version);
        assert!(
            peer.disconnect(ReasonCode::ServerShuttingDown, Some("bye"))
                .is_empty()
        );
        peer.queued(QOS1, "later");
    }
}

// [MQTT-3.14.2-1]
#[test]
fn a_reason_that_disconnect_cannot_have_is_replaced() {
    let lines = peer(Version::V5).disconnect(ReasonCode::PacketIdentifierNotFound, None);
    assert_eq!(lines, ["DISCONNECT 0x80 "]);
    for byte in 0x80..=0xA2 {
        let Some(reason) = ReasonCode::from_u8(byte) else {
            continue;
        };
        assert_eq!(peer(Version::V5).disconnect(reason, None).len(), 1);
    }
}

// [MQTT-3.14.2-3] [MQTT-3.14.2-4]
#[test]
fn a_reason_string_over_the_clients_packet_size_is_omitted() {
    let mut connect = persistent(Version::V5);
    connect.properties.maximum_packet_size = Some(20);
    let mut peer = Peer::new(&connect);
    let lines = peer.disconnect(ReasonCode::ServerBusy, Some("a rather long explanation"));
    assert_eq!(lines, ["DISCONNECT 0x89 "]);
}
