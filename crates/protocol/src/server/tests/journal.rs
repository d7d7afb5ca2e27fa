//! Steps that a durable session records, transition by transition.

use alloc::boxed::Box;
use alloc::vec;

use thrum_codec::packet::Will;
use thrum_codec::properties::WillProperties;

use super::*;

const NOTHING: [&str; 0] = [];

fn expiring(peer: &mut Peer, qos: QoS, seconds: u32) -> Delivered {
    let message = Publication {
        expires_at: Some(peer.now.plus_secs(seconds)),
        ..publication("t", "expiring")
    };
    peer.deliver_publication(&message, &options(qos)).0
}

fn with_will(delay_secs: u32) -> Connect<'static> {
    Connect {
        will: Some(Will {
            topic: "w",
            payload: b"gone",
            qos: QOS1,
            retain: true,
            properties: WillProperties {
                will_delay: Some(delay_secs),
                message_expiry: Some(60),
                ..WillProperties::default()
            },
        }),
        ..persistent(Version::V5)
    }
}

#[test]
fn a_qos1_delivery_is_queued_sent_and_removed() {
    for version in VERSIONS {
        let mut peer = Peer::durable(&persistent(version));
        peer.sent(QOS1, "a");
        assert_eq!(peer.steps(), ["queued 1 q1 a", "sent 1 #1 PubAck"]);
        peer.send(&puback(1)).unwrap();
        assert_eq!(peer.steps(), ["removed 1"]);
        peer.send(&puback(1)).unwrap();
        assert_eq!(peer.steps(), NOTHING);
    }
}

#[test]
fn a_qos2_delivery_is_recorded_at_pubrec_and_pubcomp() {
    for version in VERSIONS {
        let mut peer = Peer::durable(&persistent(version));
        peer.sent(QOS2, "a");
        assert_eq!(peer.steps(), ["queued 1 q2 a", "sent 1 #1 PubRec"]);
        peer.send(&pubrec(1)).unwrap();
        assert_eq!(peer.steps(), ["sent 1 #1 PubComp"]);
        peer.send(&pubrec(1)).unwrap();
        assert_eq!(peer.steps(), NOTHING);
        peer.send(&pubcomp(1)).unwrap();
        assert_eq!(peer.steps(), ["removed 1"]);
    }
}

#[test]
fn a_delivery_that_the_client_refuses_is_removed() {
    let mut peer = Peer::durable(&persistent(Version::V5));
    peer.sent(QOS2, "a");
    peer.steps();
    let refused = ack_with(1, ReasonCode::QuotaExceeded);
    peer.send(&Packet::PubRec(refused)).unwrap();
    assert_eq!(peer.steps(), ["removed 1"]);
}

#[test]
fn qos0_is_not_recorded() {
    let mut peer = Peer::durable(&persistent(Version::V5));
    peer.sent(QOS0, "a");
    assert_eq!(peer.steps(), NOTHING);
}

#[test]
fn a_queued_message_is_recorded_when_queued_and_when_sent() {
    let mut peer = Peer::durable(&windowed(1));
    peer.sent(QOS1, "a");
    peer.steps();
    peer.queued(QOS2, "b");
    assert_eq!(peer.steps(), ["queued 2 q2 b"]);
    peer.lose();
    peer.queued(QOS1, "c");
    assert_eq!(peer.steps(), ["queued 3 q1 c"]);
    peer.reconnect(&windowed(2));
    assert_eq!(peer.steps(), ["sent 2 #2 PubRec"]);
    peer.send(&puback(1)).unwrap();
    assert_eq!(peer.steps(), ["removed 1", "sent 3 #3 PubAck"]);
}

#[test]
fn the_delivery_options_are_recorded() {
    let mut peer = Peer::durable(&persistent(Version::V5));
    let options = DeliveryOptions {
        qos: QOS1,
        retain: true,
        identifiers: &[3, 9],
        group: Some(5),
        is_acknowledged: false,
    };
    peer.deliver_publication(&publication("t", "a"), &options);
    let expected = [
        "queued 1 q1 a retain sub=3 sub=9 group=5",
        "sent 1 #1 PubAck",
    ];
    assert_eq!(peer.steps(), expected);
}

#[test]
fn a_retransmission_is_not_a_step() {
    let mut peer = Peer::durable(&persistent(Version::V5));
    peer.sent(QOS1, "a");
    peer.sent(QOS2, "b");
    peer.sent(QOS2, "c");
    peer.send(&pubrec(3)).unwrap();
    peer.lose();
    peer.steps();
    assert_eq!(peer.reconnect(&persistent(Version::V5)).len(), 3);
    assert_eq!(peer.steps(), NOTHING);
}

#[test]
fn an_expired_message_is_removed_when_it_is_next() {
    let mut peer = Peer::durable(&persistent(Version::V5));
    peer.lose();
    assert_eq!(expiring(&mut peer, QOS1, 5), Delivered::Queued);
    peer.queued(QOS1, "b");
    peer.steps();
    peer.advance_millis(5000);
    peer.reconnect(&persistent(Version::V5));
    assert_eq!(peer.steps(), ["removed 1", "sent 2 #1 PubAck"]);
}

#[test]
fn an_expired_message_is_removed_when_room_is_needed() {
    let limits = Limits {
        queue: QueueLimits {
            messages_max: 2,
            ..QueueLimits::default()
        },
        ..Limits::default()
    };
    let (mut peer, _) = Peer::with(limits, &persistent(Version::V5));
    peer.session.journal_mut().set_on(true);
    peer.lose();
    assert_eq!(expiring(&mut peer, QOS1, 5), Delivered::Queued);
    peer.queued(QOS1, "b");
    let refused = Delivered::Dropped(DropReason::QueueFull);
    assert_eq!(peer.deliver(QOS1, "c").0, refused);
    assert_eq!(peer.steps(), ["queued 1 q1 expiring", "queued 2 q1 b"]);
    peer.advance_millis(5000);
    peer.queued(QOS1, "d");
    assert_eq!(peer.steps(), ["removed 1", "queued 3 q1 d"]);
}

#[test]
fn a_message_too_large_for_the_client_is_removed() {
    let large = "x".repeat(100);
    let mut peer = Peer::durable(&persistent(Version::V5));
    peer.sent(QOS1, &large);
    peer.lose();
    peer.queued(QOS1, &large);
    peer.steps();
    let mut small = persistent(Version::V5);
    small.properties.maximum_packet_size = Some(50);
    peer.reconnect(&small);
    assert_eq!(peer.steps(), ["removed 1", "removed 2"]);
    let refused = Delivered::Dropped(DropReason::TooLarge);
    assert_eq!(peer.deliver(QOS1, &large).0, refused);
    assert_eq!(peer.steps(), NOTHING);
}

#[test]
fn messages_taken_for_other_members_are_left_to_the_caller() {
    let mut peer = Peer::durable(&windowed(1));
    let shared = DeliveryOptions {
        group: Some(1),
        is_acknowledged: false,
        ..options(QOS1)
    };
    peer.deliver_publication(&publication("t", "a"), &shared);
    peer.deliver_publication(&publication("t", "b"), &shared);
    peer.queued(QOS1, "c");
    peer.steps();
    let seqs = |taken: Vec<Taken>| taken.iter().map(|taken| taken.seq).collect::<Vec<_>>();
    assert_eq!(
        seqs(peer.session.outbound_mut().take_shared(Some(&[1]))),
        [Some(2)]
    );
    assert_eq!(
        seqs(peer.session.outbound_mut().take_shared(None)),
        [Some(1)]
    );
    assert_eq!(peer.steps(), NOTHING);
    let mut clean = Peer::new(&connect(Version::V5));
    clean.deliver_publication(&publication("t", "a"), &shared);
    assert_eq!(seqs(clean.session.outbound_mut().take_shared(None)), [None]);
}

#[test]
fn a_qos2_message_of_the_client_is_recorded_until_pubrel() {
    for version in VERSIONS {
        let mut peer = Peer::durable(&persistent(version));
        let message = Packet::Publish(publish(QOS2, 7, "t", "x"));
        peer.send(&message).unwrap();
        assert_eq!(peer.steps(), ["received #7"]);
        peer.send(&message).unwrap();
        assert_eq!(peer.steps(), NOTHING);
        peer.send(&pubrel(7)).unwrap();
        assert_eq!(peer.steps(), ["received removed #7"]);
        peer.send(&pubrel(7)).unwrap();
        peer.send(&Packet::Publish(publish(QOS1, 7, "t", "x")))
            .unwrap();
        assert_eq!(peer.steps(), NOTHING);
    }
}

#[test]
fn a_refused_qos2_message_is_removed_if_the_client_gets_a_reason_code() {
    for (version, expected) in [
        (
            Version::V5,
            ["received #7", "received removed #7"].as_slice(),
        ),
        (Version::V311, ["received #7"].as_slice()),
    ] {
        let mut peer = Peer::durable(&persistent(version));
        peer.outcome = Some(ReasonCode::NotAuthorized);
        peer.send(&Packet::Publish(publish(QOS2, 7, "t", "x")))
            .unwrap();
        assert_eq!(peer.steps(), expected);
    }
}

#[test]
fn the_will_is_returned_unchanged() {
    let peer = Peer::durable(&with_will(10));
    let will = peer.session.will().unwrap();
    assert_eq!((will.delay_secs, will.message_expiry), (10, Some(60)));
    assert_eq!(
        (will.message.topic(), will.message.payload()),
        ("w", &b"gone"[..])
    );
    assert_eq!((will.message.qos(), will.message.retain()), (QOS1, true));
    assert_eq!(peer.session.lifetime().session_expiry(), 3600);
    assert!(Peer::durable(&windowed(1)).session.will().is_none());
}

#[test]
fn a_will_that_was_deleted_or_taken_is_removed() {
    let removed = |delay: u32, end: fn(&mut Peer)| {
        let mut peer = Peer::durable(&with_will(delay));
        end(&mut peer);
        assert_eq!(peer.steps(), ["will removed"]);
        assert!(peer.session.will().is_none());
        end(&mut peer);
        assert_eq!(peer.steps(), NOTHING);
    };
    removed(10, |peer| {
        drop(peer.send(&client_disconnect(ReasonCode::Success)).unwrap());
    });
    removed(10, |peer| drop(peer.disconnect(ReasonCode::Success, None)));
    removed(10, |peer| drop(peer.take_will()));
    removed(0, |peer| drop(peer.lose()));
    removed(10, |peer| {
        peer.lose();
        peer.advance_millis(10_000);
        peer.session.handle_timeout(peer.now);
    });
    removed(0xFFFF_FFFF, |peer| {
        peer.lose();
        peer.advance_millis(3_600_000);
        peer.session.handle_timeout(peer.now);
    });
}

#[test]
fn a_will_that_is_pending_or_replaced_is_not_a_step() {
    let mut peer = Peer::durable(&with_will(10));
    peer.send(&client_disconnect(ReasonCode::DisconnectWithWill))
        .unwrap();
    peer.lose();
    assert!(peer.session.will().is_some());
    peer.reconnect(&persistent(Version::V5));
    assert!(peer.session.will().is_none());
    assert_eq!(peer.steps(), NOTHING);
}

#[test]
fn a_session_that_is_not_durable_records_nothing() {
    let mut peer = Peer::new(&with_will(0));
    assert!(!peer.session.is_durable());
    peer.sent(QOS1, "a");
    peer.send(&Packet::Publish(publish(QOS2, 7, "t", "x")))
        .unwrap();
    peer.lose();
    assert!(!peer.session.journal.has_steps());
    assert!(peer.session.journal_mut().take_steps().is_none());
}

#[test]
fn a_session_that_is_no_longer_durable_discards_steps_but_keeps_the_last_sequence_number() {
    let mut peer = Peer::durable(&persistent(Version::V5));
    peer.sent(QOS1, "a");
    assert!(peer.session.journal.has_steps());
    peer.session.journal_mut().set_on(false);
    assert!(!peer.session.is_durable());
    peer.sent(QOS1, "b");
    peer.send(&puback(1)).unwrap();
    peer.session.journal_mut().reuse_list(Box::default());
    assert!(!peer.session.journal.has_steps());
    assert!(peer.session.journal_mut().take_steps().is_none());
    peer.session.journal_mut().set_on(true);
    peer.sent(QOS1, "c");
    peer.send(&puback(2)).unwrap();
    assert_eq!(peer.steps(), ["queued 2 q1 c", "sent 2 #3 PubAck"]);
}

#[test]
fn steps_are_recorded_in_the_returned_list() {
    let mut peer = Peer::durable(&persistent(Version::V5));
    let lent = Box::new(Vec::with_capacity(16));
    let place = lent.as_ptr();
    peer.session.journal_mut().reuse_list(lent);
    assert!(!peer.session.journal.has_steps());
    peer.sent(QOS1, "a");
    assert!(peer.session.journal.has_steps());
    let steps = peer.session.journal_mut().take_steps().unwrap();
    assert_eq!((steps.as_ptr(), steps.len()), (place, 2));
    // The list is emptied, and does not replace one that has steps.
    peer.session.journal_mut().reuse_list(steps);
    assert!(!peer.session.journal.has_steps());
    peer.send(&puback(1)).unwrap();
    peer.session
        .journal_mut()
        .reuse_list(Box::new(vec![Step::WillRemoved]));
    assert_eq!(peer.steps(), ["removed 1"]);
}
