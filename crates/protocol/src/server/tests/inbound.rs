//! Messages from the client: acknowledgement by quality of service, and no duplicates with QoS 2.

use super::*;

fn peer(version: Version) -> Peer {
    Peer::new(&persistent(version))
}

fn send(peer: &mut Peer, publish: Publish<'_>) -> Vec<String> {
    peer.send(&Packet::Publish(publish)).unwrap()
}

fn dup(publish: Publish<'_>) -> Publish<'_> {
    Publish {
        dup: true,
        ..publish
    }
}

// [MQTT-3.3.4-1] [MQTT-4.3.2-4] [MQTT-4.3.3-8] [MQTT-2.2.1-5]
// [MQTT3-3.3.4-1] [MQTT3-4.3.2-2] [MQTT3-4.3.3-2] [MQTT3-2.3.1-6]
#[test]
fn a_publish_is_acknowledged_by_its_qos() {
    for version in VERSIONS {
        let mut peer = peer(version);
        assert!(send(&mut peer, publish(QOS0, 0, "t", "0")).is_empty());
        assert_eq!(send(&mut peer, publish(QOS1, 7, "t", "1")), ["PUBACK #7"]);
        assert_eq!(
            send(&mut peer, publish(QOS2, 65_535, "t", "2")),
            ["PUBREC #65535"]
        );
        assert_eq!(peer.send(&pubrel(65_535)).unwrap(), ["PUBCOMP #65535"]);
        assert_eq!(peer.routed, ["t=0", "t=1", "t=2"]);
    }
}

#[test]
fn nothing_is_acknowledged_before_the_node_has_the_message() {
    let mut peer = peer(Version::V5);
    peer.outcome = None;
    assert!(send(&mut peer, publish(QOS1, 1, "t", "")).is_empty());
    assert!(send(&mut peer, publish(QOS2, 2, "t", "")).is_empty());
    assert!(send(&mut peer, publish(QOS1, 3, "t", "")).is_empty());
    // [MQTT-4.6.0-2] [MQTT-4.6.0-3]
    assert_eq!(peer.done(QOS1, 1, ReasonCode::Success), ["PUBACK #1"]);
    assert_eq!(peer.done(QOS2, 2, ReasonCode::Success), ["PUBREC #2"]);
    assert_eq!(peer.done(QOS1, 3, ReasonCode::Success), ["PUBACK #3"]);
    assert!(peer.done(QOS0, 9, ReasonCode::Success).is_empty());
}

// [MQTT3-4.8.0-2]
#[test]
fn a_withdrawn_message_leaves_no_state() {
    for qos in [QOS1, QOS2] {
        let mut peer = peer(Version::V311);
        peer.outcome = None;
        assert!(send(&mut peer, publish(qos, 5, "t", "x")).is_empty());
        peer.session.publish_withdrawn(qos, Some(id(5)));
        peer.lose();
        peer.reconnect(&persistent(Version::V311));
        peer.outcome = Some(ReasonCode::Success);
        let answer = if qos == QOS1 {
            "PUBACK #5"
        } else {
            "PUBREC #5"
        };
        let again = send(&mut peer, dup(publish(qos, 5, "t", "x")));
        assert_eq!(again, [answer]);
        assert_eq!(peer.routed, ["t=x", "t=x"], "it reaches the node again");
    }
}

// [MQTT-3.4.2-1] [MQTT-3.5.2-1]
#[test]
fn the_outcome_goes_into_the_acknowledgement() {
    let mut peer = peer(Version::V5);
    peer.outcome = Some(ReasonCode::NoMatchingSubscribers);
    assert_eq!(
        send(&mut peer, publish(QOS1, 1, "t", "")),
        ["PUBACK #1 0x10"]
    );
    assert_eq!(
        send(&mut peer, publish(QOS2, 2, "t", "")),
        ["PUBREC #2 0x10"]
    );
    peer.outcome = Some(ReasonCode::QuotaExceeded);
    assert_eq!(
        send(&mut peer, publish(QOS1, 3, "t", "")),
        ["PUBACK #3 0x97"]
    );
    assert_eq!(
        send(&mut peer, publish(QOS2, 4, "t", "")),
        ["PUBREC #4 0x97"]
    );
    // A reason code that these packets cannot have.
    peer.outcome = Some(ReasonCode::ServerBusy);
    assert_eq!(
        send(&mut peer, publish(QOS1, 5, "t", "")),
        ["PUBACK #5 0x80"]
    );
    assert_eq!(
        send(&mut peer, publish(QOS2, 6, "t", "")),
        ["PUBREC #6 0x80"]
    );
}

// [MQTT3-3.3.5-2]
#[test]
fn a_refused_publish_of_3x_is_acknowledged_as_usual() {
    for version in [Version::V31, Version::V311] {
        let mut peer = peer(version);
        peer.outcome = Some(ReasonCode::NotAuthorized);
        assert_eq!(send(&mut peer, publish(QOS1, 1, "t", "")), ["PUBACK #1"]);
        assert_eq!(send(&mut peer, publish(QOS2, 2, "t", "")), ["PUBREC #2"]);
        // The exchange continues as after a success.
        assert_eq!(
            send(&mut peer, dup(publish(QOS2, 2, "t", ""))),
            ["PUBREC #2"]
        );
        assert_eq!(peer.send(&pubrel(2)).unwrap(), ["PUBCOMP #2"]);
        assert_eq!(peer.routed.len(), 2);
    }
}

// [MQTT-4.3.3-9]
#[test]
fn after_a_refusing_pubrec_the_identifier_means_a_new_message() {
    let mut peer = peer(Version::V5);
    peer.outcome = Some(ReasonCode::NotAuthorized);
    assert_eq!(
        send(&mut peer, publish(QOS2, 2, "t", "a")),
        ["PUBREC #2 0x87"]
    );
    peer.outcome = Some(ReasonCode::Success);
    assert_eq!(send(&mut peer, publish(QOS2, 2, "t", "b")), ["PUBREC #2"]);
    assert_eq!(peer.routed, ["t=a", "t=b"]);
}

// [MQTT-4.3.2-5] [MQTT3-4.3.2-2]
#[test]
fn after_puback_the_identifier_means_a_new_message_even_with_dup() {
    for version in VERSIONS {
        let mut peer = peer(version);
        assert_eq!(send(&mut peer, publish(QOS1, 7, "t", "a")), ["PUBACK #7"]);
        assert_eq!(
            send(&mut peer, dup(publish(QOS1, 7, "t", "b"))),
            ["PUBACK #7"]
        );
        assert_eq!(send(&mut peer, publish(QOS1, 7, "t", "c")), ["PUBACK #7"]);
        assert_eq!(peer.routed, ["t=a", "t=b", "t=c"]);
    }
}

// [MQTT-4.3.3-10] [MQTT3-4.3.3-2]
#[test]
fn a_repeated_qos2_publish_is_acknowledged_but_not_routed_again() {
    for version in VERSIONS {
        let mut peer = peer(version);
        send(&mut peer, publish(QOS2, 7, "t", "a"));
        for again in [publish(QOS2, 7, "t", "a"), dup(publish(QOS2, 7, "t", "a"))] {
            assert_eq!(send(&mut peer, again), ["PUBREC #7"]);
        }
        assert_eq!(peer.routed, ["t=a"]);
        // [MQTT-4.3.3-12]
        assert_eq!(peer.send(&pubrel(7)).unwrap(), ["PUBCOMP #7"]);
        assert_eq!(send(&mut peer, publish(QOS2, 7, "t", "b")), ["PUBREC #7"]);
        assert_eq!(peer.routed, ["t=a", "t=b"]);
    }
}

// [MQTT-4.1.0-1] [MQTT3-4.1.0-1]
#[test]
fn a_qos2_message_is_routed_once_over_two_connections() {
    for version in VERSIONS {
        let mut peer = peer(version);
        send(&mut peer, publish(QOS2, 7, "t", "a"));
        send(&mut peer, publish(QOS2, 8, "t", "b"));
        peer.lose();
        peer.reconnect(&persistent(version));
        assert_eq!(
            send(&mut peer, dup(publish(QOS2, 7, "t", "a"))),
            ["PUBREC #7"]
        );
        assert_eq!(peer.send(&pubrel(7)).unwrap(), ["PUBCOMP #7"]);
        assert_eq!(peer.send(&pubrel(8)).unwrap(), ["PUBCOMP #8"]);
        assert_eq!(peer.routed, ["t=a", "t=b"]);
    }
}

#[test]
fn a_qos2_message_repeated_while_it_is_routed_gets_one_pubrec_when_it_is_done() {
    let mut peer = peer(Version::V5);
    peer.outcome = None;
    send(&mut peer, publish(QOS2, 7, "t", "a"));
    peer.lose();
    peer.reconnect(&persistent(Version::V5));
    assert!(send(&mut peer, dup(publish(QOS2, 7, "t", "a"))).is_empty());
    assert_eq!(peer.done(QOS2, 7, ReasonCode::Success), ["PUBREC #7"]);
    assert_eq!(peer.routed, ["t=a"]);
}

#[test]
fn a_pubrec_for_an_earlier_connection_is_sent_after_a_retransmission() {
    let mut peer = peer(Version::V5);
    peer.outcome = None;
    send(&mut peer, publish(QOS2, 7, "t", "a"));
    peer.lose();
    peer.reconnect(&persistent(Version::V5));
    assert!(peer.done(QOS2, 7, ReasonCode::Success).is_empty());
    assert_eq!(
        send(&mut peer, dup(publish(QOS2, 7, "t", "a"))),
        ["PUBREC #7"]
    );
    assert_eq!(peer.routed, ["t=a"]);
}

#[test]
fn a_puback_for_an_earlier_connection_is_not_sent_on_a_new_one() {
    for version in VERSIONS {
        let mut peer = peer(version);
        peer.outcome = None;
        send(&mut peer, publish(QOS1, 7, "t", "a"));
        send(&mut peer, publish(QOS1, 8, "t", "b"));
        peer.lose();
        assert!(peer.done(QOS1, 7, ReasonCode::Success).is_empty());
        peer.reconnect(&persistent(version));
        send(&mut peer, dup(publish(QOS1, 7, "t", "a")));
        assert!(peer.done(QOS1, 8, ReasonCode::Success).is_empty());
        assert_eq!(peer.done(QOS1, 7, ReasonCode::Success), ["PUBACK #7"]);
    }
}

#[test]
fn an_outcome_after_the_connection_is_recorded_without_a_reply() {
    let mut peer = peer(Version::V5);
    peer.outcome = None;
    send(&mut peer, publish(QOS2, 7, "t", "a"));
    send(&mut peer, publish(QOS2, 8, "t", "b"));
    peer.lose();
    assert!(peer.done(QOS2, 7, ReasonCode::Success).is_empty());
    assert!(peer.done(QOS2, 8, ReasonCode::QuotaExceeded).is_empty());
    peer.reconnect(&persistent(Version::V5));
    assert_eq!(
        send(&mut peer, dup(publish(QOS2, 7, "t", "a"))),
        ["PUBREC #7"]
    );
    // The refused message counts as new.
    assert!(send(&mut peer, dup(publish(QOS2, 8, "t", "b"))).is_empty());
    assert_eq!(peer.done(QOS2, 8, ReasonCode::Success), ["PUBREC #8"]);
    assert_eq!(peer.routed, ["t=a", "t=b", "t=b"]);
}

#[test]
fn unexpected_outcomes_change_nothing() {
    let mut peer = peer(Version::V5);
    assert!(peer.done(QOS2, 7, ReasonCode::Success).is_empty());
    send(&mut peer, publish(QOS2, 7, "t", "a"));
    assert!(peer.done(QOS2, 7, ReasonCode::QuotaExceeded).is_empty());
    assert_eq!(peer.send(&pubrel(7)).unwrap(), ["PUBCOMP #7"]);
    let mut out = Output::new();
    peer.session
        .publish_done(QOS1, None, ReasonCode::Success, &mut out);
    assert!(out.is_empty());
}

// [MQTT-4.3.3-11] [MQTT3-4.3.3-2]
#[test]
fn a_pubrel_for_an_unknown_message_is_answered() {
    for version in VERSIONS {
        let mut peer = peer(version);
        let expected = if version == Version::V5 {
            "PUBCOMP #9 0x92"
        } else {
            "PUBCOMP #9"
        };
        assert_eq!(peer.send(&pubrel(9)).unwrap(), [expected]);
    }
}

#[test]
fn a_pubrel_before_its_pubrec_is_a_protocol_error() {
    let mut peer = peer(Version::V5);
    peer.outcome = None;
    send(&mut peer, publish(QOS2, 7, "t", "a"));
    assert_eq!(reason(peer.send(&pubrel(7))), ReasonCode::ProtocolError);
}

#[test]
fn an_identifier_of_an_open_qos2_exchange_is_refused_for_qos1() {
    let mut peer = peer(Version::V5);
    send(&mut peer, publish(QOS2, 7, "t", "a"));
    assert_eq!(
        send(&mut peer, publish(QOS1, 7, "t", "b")),
        ["PUBACK #7 0x91"]
    );
    assert_eq!(peer.routed, ["t=a"]);
}

#[test]
fn before_5_the_two_kinds_of_exchange_are_independent() {
    let mut peer = peer(Version::V311);
    send(&mut peer, publish(QOS2, 7, "t", "a"));
    assert_eq!(send(&mut peer, publish(QOS1, 7, "t", "b")), ["PUBACK #7"]);
    assert_eq!(
        send(&mut peer, dup(publish(QOS2, 7, "t", "a"))),
        ["PUBREC #7"]
    );
    assert_eq!(peer.routed, ["t=a", "t=b"]);
}

// [MQTT-4.3.3-13]
#[test]
fn a_qos2_exchange_is_completed_after_the_message_expired() {
    let mut peer = peer(Version::V5);
    let mut short = publish(QOS2, 7, "t", "a");
    short.properties.message_expiry = Some(1);
    send(&mut peer, short);
    peer.advance_millis(5000);
    assert_eq!(send(&mut peer, dup(short)), ["PUBREC #7"]);
    assert_eq!(peer.send(&pubrel(7)).unwrap(), ["PUBCOMP #7"]);
}

#[test]
fn many_open_qos2_exchanges_end_in_any_order() {
    let mut peer = peer(Version::V311);
    let ids: Vec<u16> = (60_000..=65_535)
        .step_by(7)
        .chain((1..5000).step_by(3))
        .collect();
    for &packet_id in &ids {
        assert_eq!(send(&mut peer, publish(QOS2, packet_id, "t", "")).len(), 1);
    }
    let (even, odd): (Vec<u16>, Vec<u16>) = ids.iter().partition(|&&packet_id| packet_id % 2 == 0);
    for &packet_id in even.iter().rev().chain(&odd) {
        assert_eq!(
            send(&mut peer, dup(publish(QOS2, packet_id, "t", ""))).len(),
            1
        );
        assert_eq!(peer.send(&pubrel(packet_id)).unwrap().len(), 1);
    }
    assert_eq!(peer.routed.len(), ids.len());
}
