//! Messages that the client may not publish: a reason code in the acknowledgement, or the end of
//! the connection.

use super::*;

fn send(peer: &mut Peer, publish: Publish<'_>) -> Vec<String> {
    peer.send(&Packet::Publish(publish)).unwrap()
}

/// A durable session whose messages the node refuses.
fn refused(version: Version) -> Peer {
    let mut peer = Peer::durable(&persistent(version));
    peer.outcome = Some(ReasonCode::NotAuthorized);
    peer
}

#[test]
fn a_denied_message_of_5_gets_a_reason_code_and_ends_its_exchange() {
    let mut peer = refused(Version::V5);
    assert!(send(&mut peer, publish(QOS0, 0, "t", "")).is_empty());
    assert_eq!(
        send(&mut peer, publish(QOS1, 1, "t", "")),
        ["PUBACK #1 0x87"]
    );
    // [MQTT-4.3.3-9]
    assert_eq!(
        send(&mut peer, publish(QOS2, 2, "t", "")),
        ["PUBREC #2 0x87"]
    );
    assert_eq!(peer.steps(), ["received #2", "received removed #2"]);
    assert_eq!(peer.send(&pubrel(2)).unwrap(), ["PUBCOMP #2 0x92"]);
}

// [MQTT3-3.3.5-2]
#[test]
fn a_denied_qos2_message_of_3x_completes_its_exchange() {
    for version in [Version::V31, Version::V311] {
        let mut peer = refused(version);
        assert_eq!(send(&mut peer, publish(QOS1, 1, "t", "")), ["PUBACK #1"]);
        assert_eq!(send(&mut peer, publish(QOS2, 2, "t", "")), ["PUBREC #2"]);
        // The acknowledgement was lost: the node is not asked about the message again.
        peer.lose();
        peer.reconnect(&persistent(version));
        let again = Publish {
            dup: true,
            ..publish(QOS2, 2, "t", "")
        };
        assert_eq!(send(&mut peer, again), ["PUBREC #2"]);
        assert_eq!(peer.routed.len(), 2);
        assert_eq!(peer.send(&pubrel(2)).unwrap(), ["PUBCOMP #2"]);
        assert_eq!(peer.steps(), ["received #2", "received removed #2"]);
        // The identifier is free for the next message.
        peer.outcome = Some(ReasonCode::Success);
        assert_eq!(send(&mut peer, publish(QOS2, 2, "t", "")), ["PUBREC #2"]);
        assert_eq!(peer.routed.len(), 3);
    }
}

#[test]
fn denied_messages_take_no_room_in_the_receive_maximum() {
    let limits = Limits {
        receive_maximum: 1,
        ..Limits::default()
    };
    let (mut peer, _) = Peer::with(limits, &persistent(Version::V5));
    peer.outcome = Some(ReasonCode::NotAuthorized);
    for packet_id in 1..10 {
        let qos = if packet_id % 2 == 0 { QOS1 } else { QOS2 };
        assert_eq!(send(&mut peer, publish(qos, packet_id, "t", "")).len(), 1);
    }
}

// [MQTT3-4.8.0-2]
#[test]
fn a_message_whose_denial_ends_the_connection_is_not_acknowledged() {
    for version in VERSIONS {
        for qos in [QOS1, QOS2] {
            let mut peer = refused(version);
            peer.outcome = None;
            assert!(send(&mut peer, publish(qos, 5, "t", "")).is_empty());
            peer.session.publish_withdrawn(qos, Some(id(5)));
            let told = peer.disconnect(ReasonCode::NotAuthorized, None);
            let expected: &[&str] = match version {
                Version::V5 => &["DISCONNECT 0x87 "],
                Version::V31 | Version::V311 => &[],
            };
            assert_eq!(told, expected);
            peer.lose();
            let steps: &[&str] = match qos {
                QOS2 => &["received #5", "received removed #5"],
                _ => &[],
            };
            assert_eq!(peer.steps(), steps);
            // The client may retransmit it, and the node is asked again.
            peer.reconnect(&persistent(version));
            assert!(send(&mut peer, publish(qos, 5, "t", "")).is_empty());
            assert_eq!(peer.routed.len(), 2);
        }
    }
}

#[test]
fn a_late_denial_does_not_affect_the_next_connection() {
    let limits = Limits {
        receive_maximum: 1,
        ..Limits::default()
    };
    for qos in [QOS1, QOS2] {
        let (mut peer, _) = Peer::with(limits.clone(), &persistent(Version::V5));
        peer.outcome = None;
        send(&mut peer, publish(qos, 5, "t", "before"));
        peer.lose();
        peer.reconnect(&persistent(Version::V5));
        send(&mut peer, publish(QOS1, 6, "t", "now"));
        peer.session.publish_withdrawn(qos, Some(id(5)));
        // The message of this connection still takes the only place in the window.
        let next = peer.send(&Packet::Publish(publish(QOS1, 7, "t", "")));
        assert_eq!(reason(next), ReasonCode::ReceiveMaximumExceeded);
        assert_eq!(peer.done(QOS1, 6, ReasonCode::Success), ["PUBACK #6"]);
        send(&mut peer, publish(QOS1, 7, "t", ""));
        assert_eq!(peer.done(QOS1, 7, ReasonCode::Success), ["PUBACK #7"]);
    }
}
