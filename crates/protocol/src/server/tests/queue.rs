//! Queued messages: order, limits, expiry and size when they are sent.

use super::*;

fn away(limits: Limits, version: Version) -> Peer {
    let (mut peer, _) = Peer::with(limits, &persistent(version));
    peer.lose();
    peer
}

fn expiring(peer: &Peer, payload: &str, seconds: u32) -> Message {
    let expires_at = Some(peer.now.plus_secs(seconds));
    Message::new(&Publication {
        expires_at,
        ..publication("t", payload)
    })
}

// [MQTT-4.5.0-1] [MQTT3-4.5.0-1] [MQTT3-3.1.2-5]
#[test]
fn messages_for_a_disconnected_client_are_queued_in_order() {
    for version in VERSIONS {
        let mut peer = away(Limits::default(), version);
        for (qos, payload) in [(QOS1, "a"), (QOS2, "b"), (QOS1, "c")] {
            peer.queued(qos, payload);
        }
        assert_eq!(peer.session.outbound().backlog(), (3, queue_bytes(3, 6), 0));
        let lines = peer.reconnect(&persistent(version));
        // [MQTT-4.6.0-5] [MQTT3-4.6.0-6]
        assert_eq!(
            lines,
            ["PUBLISH 1 #1 t=a", "PUBLISH 2 #2 t=b", "PUBLISH 1 #3 t=c"]
        );
        assert_eq!(peer.session.outbound().backlog(), (0, 0, 3));
    }
}

#[test]
fn qos0_is_not_queued_for_a_disconnected_client() {
    for version in VERSIONS {
        let mut peer = away(Limits::default(), version);
        let (delivered, _) = peer.deliver(QOS0, "x");
        assert_eq!(delivered, Delivered::Dropped(DropReason::Offline));
    }
}

#[test]
fn nothing_is_queued_for_a_session_that_ended_with_its_connection() {
    let mut peer = Peer::new(&connect(Version::V5));
    assert!(peer.lose().session_ended);
    for qos in [QOS0, QOS1, QOS2] {
        let (delivered, _) = peer.deliver(qos, "x");
        assert_eq!(delivered, Delivered::Dropped(DropReason::Offline));
    }
}

// [MQTT-4.6.0-5] [MQTT-4.6.0-6] [MQTT3-4.6.0-5] [MQTT3-4.6.0-6]
#[test]
fn a_new_message_never_overtakes_a_queued_one() {
    let mut peer = Peer::new(&windowed(2));
    for payload in ["a", "b"] {
        peer.sent(QOS1, payload);
    }
    peer.queued(QOS1, "c");
    peer.session.link_mut().set_congested(true);
    peer.send(&puback(1)).unwrap();
    peer.session.link_mut().set_congested(false);
    // The window is open again, but "c" was queued first.
    peer.queued(QOS1, "d");
    let (more, lines) = peer.pump(usize::MAX);
    assert_eq!(
        (more, lines),
        (false, ["PUBLISH 1 #3 t=c".to_string()].to_vec())
    );
    assert_eq!(peer.send(&puback(2)).unwrap(), ["PUBLISH 1 #4 t=d"]);
}

#[test]
fn a_full_queue_refuses_new_messages_by_count() {
    let limits = Limits {
        queue: QueueLimits {
            messages_max: 2,
            ..QueueLimits::default()
        },
        ..Limits::default()
    };
    let mut peer = away(limits, Version::V5);
    peer.queued(QOS1, "a");
    peer.queued(QOS2, "b");
    let full = Delivered::Dropped(DropReason::QueueFull);
    assert_eq!(peer.deliver(QOS1, "c").0, full);
    assert_eq!(peer.reconnect(&windowed(1)), ["PUBLISH 1 #1 t=a"]);
    peer.queued(QOS1, "d");
    assert_eq!(peer.deliver(QOS1, "e").0, full);
}

#[test]
fn a_full_queue_refuses_new_messages_by_bytes() {
    let limits = Limits {
        queue: QueueLimits {
            bytes_max: queue_bytes_max(2, 10),
            ..QueueLimits::default()
        },
        ..Limits::default()
    };
    let mut peer = away(limits, Version::V5);
    peer.queued(QOS1, "1234");
    let full = Delivered::Dropped(DropReason::QueueFull);
    assert_eq!(peer.deliver(QOS1, "12345").0, full);
    peer.queued(QOS1, "1234");
    assert_eq!(
        peer.session.outbound().backlog(),
        (2, queue_bytes(2, 10), 0)
    );
    assert_eq!(peer.deliver(QOS1, "").0, full);
}

#[test]
fn a_message_that_is_sent_at_once_needs_no_room_in_the_queue() {
    let limits = Limits {
        queue: QueueLimits {
            bytes_max: queue_bytes_max(1, 5),
            ..QueueLimits::default()
        },
        ..Limits::default()
    };
    let small = Message::new(&publication("t", "1234"));
    let large = Message::new(&publication("t", "12345"));
    let (mut peer, _) = Peer::with(limits, &persistent(Version::V5));
    assert!(peer.session.has_room_for(&large, QOS1, 0));
    peer.lose();
    assert!(peer.session.has_room_for(&small, QOS1, 0));
    assert!(!peer.session.has_room_for(&large, QOS1, 0));
    assert!(
        !peer.session.has_room_for(&small, QOS1, 2),
        "the identifiers take memory too"
    );
}

#[test]
fn subscription_identifiers_count_against_the_queue_limit() {
    let limits = Limits {
        queue: QueueLimits {
            bytes_max: 100_000,
            ..QueueLimits::default()
        },
        ..Limits::default()
    };
    let mut peer = away(limits, Version::V5);
    let identifiers: Vec<u32> = (1..=8192).collect();
    let options = DeliveryOptions {
        identifiers: &identifiers,
        ..options(QOS1)
    };
    let publication = publication("t", "x");
    let outcomes = [(); 4].map(|()| peer.deliver_publication(&publication, &options).0);
    let full = Delivered::Dropped(DropReason::QueueFull);
    // Each of them has 32 KiB of identifiers.
    assert_eq!(outcomes[..3], [Delivered::Queued; 3]);
    assert_eq!(outcomes[3], full);
    let (_, bytes, _) = peer.session.outbound().backlog();
    assert!((3 * 4 * 8192..=100_000).contains(&bytes), "{bytes}");
    peer.reconnect(&persistent(Version::V5));
    assert_eq!(peer.session.outbound().backlog(), (0, 0, 3));
}

#[test]
fn a_queue_limit_of_0_keeps_nothing() {
    let limits = Limits {
        queue: QueueLimits {
            messages_max: 0,
            ..QueueLimits::default()
        },
        ..Limits::default()
    };
    let full = Delivered::Dropped(DropReason::QueueFull);
    assert_eq!(away(limits, Version::V5).deliver(QOS1, "a").0, full);
}

// [MQTT-3.3.2-5]
#[test]
fn a_message_that_expired_in_the_queue_is_dropped_and_counted() {
    let mut peer = away(Limits::default(), Version::V5);
    for (payload, seconds) in [("a", 5), ("b", 20), ("c", 5)] {
        let message = expiring(&peer, payload, seconds);
        let (delivered, _) = peer.deliver_publication(&message.publication(), &options(QOS1));
        assert_eq!(delivered, Delivered::Queued);
    }
    peer.queued(QOS1, "d");
    peer.advance_millis(5000);
    // [MQTT-3.3.2-6]
    let expected = ["PUBLISH 1 #1 expiry=15 t=b", "PUBLISH 1 #2 t=d"];
    assert_eq!(peer.reconnect(&persistent(Version::V5)), expected);
    assert_eq!(peer.dropped(), [(DropReason::Expired, 2)]);
    assert!(peer.dropped().is_empty());
}

#[test]
fn expired_messages_make_room_in_a_full_queue() {
    let limits = Limits {
        queue: QueueLimits {
            messages_max: 2,
            ..QueueLimits::default()
        },
        ..Limits::default()
    };
    let mut peer = away(limits, Version::V5);
    let message = expiring(&peer, "a", 5);
    peer.deliver_publication(&message.publication(), &options(QOS1));
    peer.queued(QOS1, "b");
    peer.advance_millis(5000);
    peer.queued(QOS1, "c");
    assert_eq!(
        peer.deliver(QOS1, "d").0,
        Delivered::Dropped(DropReason::QueueFull)
    );
    assert_eq!(peer.dropped(), [(DropReason::Expired, 1)]);
}

// [MQTT-3.1.2-24] [MQTT-3.1.2-25]
#[test]
fn a_queued_message_too_large_for_the_next_connection_is_dropped_and_counted() {
    let mut peer = away(Limits::default(), Version::V5);
    peer.queued(QOS1, &"x".repeat(100));
    peer.queued(QOS2, &"x".repeat(100));
    peer.queued(QOS1, "small");
    let mut connect = persistent(Version::V5);
    connect.properties.maximum_packet_size = Some(50);
    let lines = peer.reconnect(&connect);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].ends_with("t=small"));
    assert_eq!(peer.dropped(), [(DropReason::TooLarge, 2)]);
    assert_eq!(peer.session.outbound().backlog(), (0, 0, 1));
}

#[test]
fn pump_stops_at_the_given_output_size_and_returns_true() {
    let mut peer = Peer::new(&windowed(10));
    peer.session.link_mut().set_congested(true);
    for payload in ["a", "b", "c"] {
        peer.queued(QOS1, payload);
    }
    peer.session.link_mut().set_congested(false);
    assert_eq!(peer.pump(0), (true, [].to_vec()));
    let (more, lines) = peer.pump(1);
    assert_eq!((more, lines.len()), (true, 1));
    let (more, lines) = peer.pump(12);
    assert_eq!((more, lines.len()), (false, 2));
    assert_eq!(peer.pump(usize::MAX), (false, [].to_vec()));
}

#[test]
fn pump_returns_false_while_the_window_is_full() {
    let mut peer = Peer::new(&windowed(1));
    peer.sent(QOS1, "a");
    peer.queued(QOS1, "b");
    assert_eq!(peer.pump(0), (false, [].to_vec()));
}

#[test]
fn connecting_writes_a_bounded_burst_and_acknowledgements_trigger_the_rest() {
    let mut peer = away(Limits::default(), Version::V5);
    let payload = "x".repeat(100 * 1024);
    for _ in 0..8 {
        peer.queued(QOS1, &payload);
    }
    let lines = peer.reconnect(&persistent(Version::V5));
    assert_eq!(lines.len(), 3);
    let lines = peer.send(&puback(1)).unwrap();
    assert_eq!(lines.len(), 3);
    assert_eq!(peer.session.outbound().backlog().0, 2);
    peer.lose();
    // The same applies to retransmissions.
    let lines = peer.reconnect(&persistent(Version::V5));
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("PUBLISH 1 #2 dup"));
    let (more, lines) = peer.pump(usize::MAX);
    assert_eq!((more, lines.len()), (false, 4));
}
