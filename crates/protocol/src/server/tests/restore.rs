//! Sessions restored at the start of the node.

use alloc::boxed::Box;

use thrum_codec::packet::Will;
use thrum_codec::properties::WillProperties;

use super::*;

const AWAY_SINCE: Time = Time::from_millis(500_000);

fn stored(deliveries: Vec<StoredDelivery>) -> Stored {
    Stored {
        id: 9,
        client_id: "client".into(),
        version: Version::V5,
        session_expiry: 3600,
        away_since: AWAY_SINCE,
        last_packet_id: 0,
        seq_max: 0,
        deliveries,
        received: Vec::new(),
        will: None,
    }
}

fn message(payload: &str) -> Arc<Message> {
    Arc::new(Message::new(&publication("t", payload)))
}

fn waiting(seq: Seq, qos: QoS, payload: &str) -> StoredDelivery {
    StoredDelivery {
        seq,
        queued_at: AWAY_SINCE,
        message: Some(message(payload)),
        inflight: None,
        qos,
        retain: false,
        identifiers: Box::default(),
        group: None,
    }
}

fn under_way(seq: Seq, packet_id: u16, awaiting: Awaiting, payload: &str) -> StoredDelivery {
    StoredDelivery {
        inflight: Some((id(packet_id), awaiting)),
        ..waiting(seq, QOS2, payload)
    }
}

fn restored(stored: Stored) -> Peer {
    let limits = Arc::new(Limits::default());
    Peer {
        session: Session::restore(stored, &limits),
        now: AWAY_SINCE.plus_secs(1),
        frames: FrameCache::default(),
        routed: Vec::new(),
        outcome: Some(ReasonCode::Success),
        authentications: Vec::new(),
    }
}

#[test]
fn a_restored_session_is_disconnected_and_durable() {
    let peer = restored(stored(Vec::new()));
    let session = &peer.session;
    assert_eq!((session.id(), session.client_id()), (9, "client"));
    assert_eq!(session.link().version(), Version::V5);
    assert!(!session.link.is_connected());
    assert!(session.is_durable() && session.lifetime().is_persistent());
    assert_eq!(session.next_deadline(), Some(AWAY_SINCE.plus_secs(3600)));
}

// [MQTT-4.4.0-1] [MQTT-4.6.0-1] [MQTT-4.1.0-1] [MQTT3-4.4.0-1] [MQTT3-4.6.0-1] [MQTT3-4.1.0-1]
#[test]
fn in_flight_messages_are_retransmitted_and_queued_ones_follow() {
    for version in VERSIONS {
        let released = StoredDelivery {
            message: None,
            ..under_way(3, 12, Awaiting::PubComp, "")
        };
        let mut peer = restored(Stored {
            version,
            last_packet_id: 12,
            ..stored(
                [
                    waiting(6, QOS1, "e"),
                    under_way(2, 10, Awaiting::PubAck, "a"),
                    released,
                    under_way(4, 11, Awaiting::PubRec, "b"),
                    waiting(5, QOS2, "d"),
                ]
                .into(),
            )
        });
        assert_eq!(peer.session.outbound().backlog(), (2, queue_bytes(2, 4), 3));
        let expected = [
            "PUBREL #12",
            "PUBLISH 1 #10 dup t=a",
            "PUBLISH 2 #11 dup t=b",
            "PUBLISH 2 #13 t=d",
            "PUBLISH 1 #14 t=e",
        ];
        assert_eq!(peer.reconnect(&persistent(version)), expected);
        assert_eq!(peer.steps(), ["sent 5 #13 PubRec", "sent 6 #14 PubAck"]);
        peer.send(&pubcomp(12)).unwrap();
        peer.send(&puback(10)).unwrap();
        assert_eq!(peer.steps(), ["removed 3", "removed 2"]);
    }
}

#[test]
fn the_delivery_options_are_restored() {
    let shared = StoredDelivery {
        retain: true,
        identifiers: [3, 9].into(),
        group: Some(4),
        ..waiting(1, QOS1, "a")
    };
    let mut peer = restored(stored([shared].into()));
    let lines = peer.reconnect(&persistent(Version::V5));
    assert_eq!(lines, ["PUBLISH 1 #1 retain sub=3 sub=9 t=a"]);
    let taken = peer.session.outbound_mut().take_shared(None);
    let taken: Vec<_> = taken.iter().map(|taken| (taken.group, taken.seq)).collect();
    assert_eq!(taken, [(4, Some(1))]);
}

// [MQTT-2.2.1-4] [MQTT3-2.3.1-4]
#[test]
fn identifiers_continue_after_the_hint_and_skip_those_in_use() {
    let mut peer = restored(Stored {
        last_packet_id: 65_533,
        ..stored(
            [
                under_way(1, 65_534, Awaiting::PubAck, "a"),
                under_way(2, 1, Awaiting::PubAck, "b"),
            ]
            .into(),
        )
    });
    assert_eq!(peer.session.outbound().last_packet_id(), 65_533);
    assert_eq!(peer.reconnect(&persistent(Version::V5)).len(), 2);
    assert_eq!(peer.sent(QOS1, "c"), "PUBLISH 1 #65535 t=c");
    assert_eq!(peer.sent(QOS1, "d"), "PUBLISH 1 #2 t=d");
    assert_eq!(peer.session.outbound().last_packet_id(), 2);
}

#[test]
fn sequence_numbers_continue_after_the_highest_assigned() {
    for (seq_max, next) in [(0, 8), (7, 8), (20, 21)] {
        let mut peer = restored(Stored {
            seq_max,
            ..stored([waiting(7, QOS1, "a")].into())
        });
        peer.queued(QOS1, "b");
        assert_eq!(peer.steps(), [format!("queued {next} q1 b")]);
    }
}

// [MQTT-4.3.3-10] [MQTT3-4.3.3-2]
#[test]
fn a_received_message_is_not_routed_again() {
    for version in VERSIONS {
        let mut peer = restored(Stored {
            version,
            received: [id(7), id(3), id(7)].into(),
            ..stored(Vec::new())
        });
        peer.reconnect(&persistent(version));
        let again = Packet::Publish(publish(QOS2, 7, "t", "x"));
        assert_eq!(peer.send(&again).unwrap(), ["PUBREC #7"]);
        assert!(peer.routed.is_empty());
        assert_eq!(peer.send(&pubrel(7)).unwrap(), ["PUBCOMP #7"]);
        assert_eq!(peer.send(&pubrel(3)).unwrap(), ["PUBCOMP #3"]);
        assert_eq!(peer.steps(), ["received removed #7", "received removed #3"]);
        peer.send(&again).unwrap();
        assert_eq!(peer.routed, ["t=x"]);
    }
}

// [MQTT-3.1.2-8]
#[test]
fn the_will_is_due_its_delay_after_the_connection_ended() {
    let connect = Connect {
        will: Some(Will {
            topic: "w",
            payload: b"gone",
            qos: QOS1,
            retain: true,
            properties: WillProperties {
                will_delay: Some(10),
                message_expiry: Some(60),
                content_type: Some("text/plain"),
                ..WillProperties::default()
            },
        }),
        ..persistent(Version::V5)
    };
    let live = Peer::new(&connect);
    let will = live.session.will().unwrap();
    let mut peer = restored(Stored {
        will: Some(StoredWill {
            message: will.message.copy_unstored(),
            delay_secs: will.delay_secs,
            message_expiry: will.message_expiry,
        }),
        ..stored(Vec::new())
    });
    let due = AWAY_SINCE.plus_secs(10);
    assert_eq!(peer.session.next_deadline(), Some(due));
    let Timeout::Will(message) = peer.session.handle_timeout(due) else {
        panic!("the will is due");
    };
    let publication = message.publication();
    assert_eq!(publication.expires_at, Some(due.plus_secs(60)));
    assert_eq!(publication.publisher, 9);
    assert_eq!(publication.properties.content_type, Some("text/plain"));
    assert_eq!(peer.steps(), ["will removed"]);
}

#[test]
fn a_delivery_whose_identifier_a_later_one_has_is_removed() {
    let mut peer = restored(stored(
        [
            under_way(1, 5, Awaiting::PubRec, "answered"),
            under_way(2, 6, Awaiting::PubAck, "a"),
            under_way(3, 5, Awaiting::PubAck, "b"),
        ]
        .into(),
    ));
    assert_eq!(peer.steps(), ["removed 1"]);
    let lines = peer.reconnect(&persistent(Version::V5));
    assert_eq!(lines, ["PUBLISH 1 #6 dup t=a", "PUBLISH 1 #5 dup t=b"]);
}

#[test]
fn a_delivery_without_its_message_is_removed() {
    let lost = |delivery| StoredDelivery {
        message: None,
        ..delivery
    };
    let mut peer = restored(stored(
        [
            lost(under_way(1, 1, Awaiting::PubAck, "")),
            lost(under_way(2, 2, Awaiting::PubRec, "")),
            lost(waiting(3, QOS1, "")),
            waiting(4, QOS1, "a"),
        ]
        .into(),
    ));
    assert_eq!(peer.steps(), ["removed 1", "removed 2", "removed 3"]);
    assert_eq!(peer.session.outbound().backlog(), (1, queue_bytes(1, 2), 0));
}
