//! Retransmissions of a resumed session.

use super::*;

fn lost(version: Version, connect: &Connect<'_>) -> Peer {
    let mut peer = Peer::new(connect);
    assert_eq!(peer.session.link().version(), version);
    for (qos, payload) in [
        (QOS1, "a"),
        (QOS2, "b"),
        (QOS1, "c"),
        (QOS2, "d"),
        (QOS1, "e"),
    ] {
        peer.sent(qos, payload);
    }
    peer
}

// [MQTT-4.4.0-1] [MQTT-4.6.0-1] [MQTT-3.3.1-1] [MQTT-4.1.0-1] [MQTT-3.1.2-5]
// [MQTT3-4.4.0-1] [MQTT3-4.6.0-1] [MQTT3-3.3.1-1] [MQTT3-4.1.0-1] [MQTT3-3.1.2-4]
#[test]
fn unacknowledged_messages_are_retransmitted_in_order_with_dup_and_their_identifiers() {
    for version in VERSIONS {
        let mut peer = lost(version, &persistent(version));
        peer.send(&puback(3)).unwrap();
        peer.lose();
        for _ in 0..2 {
            let lines = peer.reconnect(&persistent(version));
            let expected = [
                "PUBLISH 1 #1 dup t=a",
                "PUBLISH 2 #2 dup t=b",
                "PUBLISH 2 #4 dup t=d",
                "PUBLISH 1 #5 dup t=e",
            ];
            assert_eq!(lines, expected);
            peer.lose();
        }
    }
}

// [MQTT-4.3.3-6] [MQTT-4.4.0-1] [MQTT3-4.3.3-1] [MQTT3-4.4.0-1]
#[test]
fn after_pubrel_only_pubrel_is_retransmitted() {
    for version in VERSIONS {
        let mut peer = lost(version, &persistent(version));
        peer.send(&pubrec(2)).unwrap();
        peer.send(&puback(1)).unwrap();
        peer.send(&pubrec(4)).unwrap();
        peer.send(&pubcomp(4)).unwrap();
        peer.lose();
        let lines = peer.reconnect(&persistent(version));
        let expected = ["PUBREL #2", "PUBLISH 1 #3 dup t=c", "PUBLISH 1 #5 dup t=e"];
        assert_eq!(lines, expected);
        assert!(peer.send(&pubcomp(2)).unwrap().is_empty());
    }
}

// [MQTT-4.4.0-1]
#[test]
fn nothing_is_retransmitted_on_the_same_connection() {
    let mut peer = lost(Version::V5, &persistent(Version::V5));
    for _ in 0..10 {
        peer.advance_millis(20_000);
        assert_eq!(peer.send(&Packet::PingReq).unwrap(), ["PINGRESP"]);
        assert_eq!(peer.pump(usize::MAX), (false, [].to_vec()));
    }
}

// [MQTT-3.3.1-3] [MQTT3-3.3.1-3]
#[test]
fn dup_marks_retransmissions_only() {
    let mut peer = Peer::new(&windowed(1));
    peer.sent(QOS1, "a");
    peer.queued(QOS1, "b");
    peer.lose();
    peer.queued(QOS1, "c");
    assert_eq!(
        peer.reconnect(&windowed(2)),
        ["PUBLISH 1 #1 dup t=a", "PUBLISH 1 #2 t=b"]
    );
    assert_eq!(peer.send(&puback(1)).unwrap(), ["PUBLISH 1 #3 t=c"]);
}

// [MQTT-3.3.4-9] [MQTT-4.9.0-2]
#[test]
fn redelivery_respects_a_smaller_receive_maximum() {
    let mut peer = lost(Version::V5, &persistent(Version::V5));
    peer.send(&pubrec(4)).unwrap();
    peer.lose();
    peer.queued(QOS1, "f");
    let lines = peer.reconnect(&windowed(2));
    assert_eq!(lines, ["PUBREL #4", "PUBLISH 1 #1 dup t=a"]);
    // A new message must not overtake one that is still to be retransmitted.
    peer.queued(QOS1, "g");
    assert_eq!(peer.send(&puback(1)).unwrap(), ["PUBLISH 2 #2 dup t=b"]);
    assert_eq!(peer.send(&pubcomp(4)).unwrap(), ["PUBLISH 1 #3 dup t=c"]);
    assert_eq!(peer.send(&pubrec(2)).unwrap(), ["PUBREL #2"]);
    assert_eq!(peer.send(&puback(3)).unwrap(), ["PUBLISH 1 #5 dup t=e"]);
    assert_eq!(peer.send(&pubcomp(2)).unwrap(), ["PUBLISH 1 #6 t=f"]);
    assert_eq!(peer.send(&puback(5)).unwrap(), ["PUBLISH 1 #7 t=g"]);
}

#[test]
fn a_message_acknowledged_before_its_retransmission_is_complete() {
    let mut peer = lost(Version::V5, &persistent(Version::V5));
    peer.lose();
    assert_eq!(peer.reconnect(&windowed(1)), ["PUBLISH 1 #1 dup t=a"]);
    assert!(peer.send(&puback(3)).unwrap().is_empty());
    assert_eq!(peer.send(&pubrec(2)).unwrap(), ["PUBREL #2"]);
    assert!(
        peer.send(&puback(1)).unwrap().is_empty(),
        "the released message has the window"
    );
    assert_eq!(peer.send(&pubcomp(2)).unwrap(), ["PUBLISH 2 #4 dup t=d"]);
}

// [MQTT-3.1.2-25]
#[test]
fn a_message_too_large_for_the_new_connection_counts_as_delivered() {
    let mut peer = Peer::new(&persistent(Version::V5));
    peer.sent(QOS1, &"x".repeat(100));
    peer.sent(QOS2, &"x".repeat(100));
    peer.sent(QOS1, "small");
    peer.lose();
    let mut connect = persistent(Version::V5);
    connect.properties.maximum_packet_size = Some(50);
    assert_eq!(peer.reconnect(&connect), ["PUBLISH 1 #3 dup t=small"]);
    assert_eq!(peer.dropped(), [(DropReason::TooLarge, 2)]);
    peer.lose();
    assert_eq!(
        peer.reconnect(&persistent(Version::V5)),
        ["PUBLISH 1 #3 dup t=small"]
    );
}

// [MQTT-4.3.3-7] [MQTT-3.3.2-6]
#[test]
fn a_sent_message_does_not_expire() {
    let mut peer = Peer::new(&persistent(Version::V5));
    let expires_at = Some(peer.now.plus_secs(5));
    let message = Publication {
        expires_at,
        ..publication("t", "x")
    };
    peer.deliver_publication(&message, &options(QOS2));
    peer.lose();
    peer.advance_millis(60_000);
    let lines = peer.reconnect(&persistent(Version::V5));
    assert_eq!(lines, ["PUBLISH 2 #1 dup expiry=0 t=x"]);
}

#[test]
fn subscription_identifiers_and_retain_are_retransmitted() {
    let mut peer = Peer::new(&persistent(Version::V5));
    let identifiers = &[3, 9];
    let options = DeliveryOptions {
        identifiers,
        retain: true,
        ..options(QOS1)
    };
    peer.deliver_publication(&publication("t", "x"), &options);
    peer.lose();
    let lines = peer.reconnect(&persistent(Version::V5));
    assert_eq!(lines, ["PUBLISH 1 #1 dup retain sub=3 sub=9 t=x"]);
}

#[test]
fn a_session_may_be_resumed_in_another_version() {
    let mut peer = lost(Version::V5, &persistent(Version::V5));
    peer.lose();
    let lines = peer.reconnect(&persistent(Version::V311));
    assert_eq!(lines.len(), 5);
    assert_eq!(peer.session.link().version(), Version::V311);
}

#[test]
fn identifiers_of_an_earlier_connection_stay_in_use() {
    let mut peer = lost(Version::V5, &persistent(Version::V5));
    peer.lose();
    peer.reconnect(&persistent(Version::V5));
    assert_eq!(peer.sent(QOS1, "f"), "PUBLISH 1 #6 t=f");
}

#[test]
fn a_connection_that_replaces_an_open_one_redelivers_as_well() {
    let mut peer = lost(Version::V5, &persistent(Version::V5));
    let lines = peer.reconnect(&persistent(Version::V5));
    assert_eq!(lines.len(), 5);
    assert!(lines.iter().all(|line| line.contains(" dup ")));
}

#[test]
fn a_session_that_becomes_clean_on_resumption_still_redelivers() {
    let mut peer = lost(Version::V5, &persistent(Version::V5));
    peer.lose();
    let mut last = persistent(Version::V5);
    last.properties.session_expiry = None;
    assert_eq!(peer.reconnect(&last).len(), 5);
    assert!(!peer.session.lifetime().is_persistent());
    // New messages of such a session are not kept; the earlier ones are completed one by one.
    assert_eq!(peer.sent(QOS1, "f"), "PUBLISH 1 #6 t=f");
    for packet_id in [1, 3, 5, 6] {
        peer.send(&puback(packet_id)).unwrap();
    }
    assert_eq!(peer.session.outbound().backlog(), (0, 0, 2));
    assert!(peer.lose().session_ended);
}

fn lost_with(count: u16) -> Peer {
    let mut peer = Peer::new(&persistent(Version::V5));
    for number in 1..=count {
        peer.sent(QOS1, &number.to_string());
    }
    peer.lose();
    peer
}

// [MQTT-4.6.0-5]
#[test]
fn a_new_message_never_overtakes_one_to_be_retransmitted() {
    let mut peer = lost_with(3);
    assert_eq!(peer.reconnect(&windowed(1)), ["PUBLISH 1 #1 dup t=1"]);
    peer.session.link_mut().set_congested(true);
    assert!(peer.send(&puback(1)).unwrap().is_empty());
    peer.session.link_mut().set_congested(false);
    // The window is open and the queue is empty.
    peer.queued(QOS1, "new");
    let (_, lines) = peer.pump(usize::MAX);
    assert_eq!(lines, ["PUBLISH 1 #2 dup t=2"]);
    assert_eq!(peer.send(&puback(2)).unwrap(), ["PUBLISH 1 #3 dup t=3"]);
    assert_eq!(peer.send(&puback(3)).unwrap(), ["PUBLISH 1 #4 t=new"]);
}

#[test]
fn redelivery_continues_with_acknowledgements_in_any_order() {
    let mut peer = lost_with(12);
    assert_eq!(peer.reconnect(&windowed(3)).len(), 3);
    for (acknowledged, next) in [
        (2, 4),
        (3, 5),
        (5, 6),
        (4, 7),
        (1, 8),
        (7, 9),
        (8, 10),
        (6, 11),
    ] {
        let expected = format!("PUBLISH 1 #{next} dup t={next}");
        assert_eq!(peer.send(&puback(acknowledged)).unwrap(), [expected]);
    }
}

#[test]
fn redelivery_continues_after_a_message_that_stays_unacknowledged() {
    let mut peer = lost_with(300);
    assert_eq!(peer.reconnect(&windowed(2)).len(), 2);
    for acknowledged in 2..300 {
        let next = acknowledged + 1;
        let expected = format!("PUBLISH 1 #{next} dup t={next}");
        assert_eq!(peer.send(&puback(acknowledged)).unwrap(), [expected]);
    }
    assert!(peer.send(&puback(300)).unwrap().is_empty());
    assert_eq!(peer.session.outbound().backlog(), (0, 0, 1));
}
