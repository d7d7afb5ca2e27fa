//! The messages that a session holds, as an operator sees them, and the topics of those it dropped.

use super::*;

fn stages(peer: &Peer) -> Vec<String> {
    let held = peer.session.outbound().held_messages();
    held.map(|held| {
        let payload = held.kept.map(|kept| kept.message.payload().to_vec());
        let payload = payload.unwrap_or_else(|| b"-".to_vec());
        let payload = String::from_utf8_lossy(&payload);
        match held.stage {
            HeldStage::Queued => format!("queued {payload}"),
            HeldStage::Sent {
                packet_id,
                awaiting,
            } => format!("#{} {awaiting:?} {payload}", packet_id.as_u16()),
        }
    })
    .collect()
}

#[test]
fn held_messages_are_listed_in_the_order_of_their_delivery() {
    let mut peer = Peer::new(&windowed(2));
    assert!(stages(&peer).is_empty());
    assert_eq!(peer.session.outbound().oldest(), Oldest::default());
    peer.sent(QOS1, "a");
    let first = peer.now;
    peer.now = first.plus_secs(5);
    peer.sent(QOS2, "b");
    peer.queued(QOS1, "c");
    assert_eq!(stages(&peer), ["#1 PubAck a", "#2 PubRec b", "queued c"]);
    let expected = Oldest {
        queued: Some(peer.now),
        unacknowledged: Some(first),
    };
    assert_eq!(peer.session.outbound().oldest(), expected);
    peer.send(&puback(1)).unwrap();
    peer.send(&pubrec(2)).unwrap();
    assert_eq!(stages(&peer), ["#2 PubComp -", "#3 PubAck c"]);
}

#[test]
fn a_message_that_is_not_kept_is_listed_without_its_text() {
    let mut peer = Peer::new(&connect(Version::V5));
    peer.sent(QOS1, "a");
    assert_eq!(stages(&peer), ["#1 PubAck -"]);
    assert_eq!(peer.session.outbound().oldest(), Oldest::default());
}

#[test]
fn some_of_the_dropped_messages_are_named_and_all_are_counted() {
    let limits = Limits {
        queue: QueueLimits {
            messages_max: 100,
            age_max: Some(10),
            ..QueueLimits::default()
        },
        ..Limits::default()
    };
    let (mut peer, _) = Peer::with(limits, &persistent(Version::V5));
    peer.lose();
    for _ in 0..100 {
        peer.queued(QOS1, "x");
    }
    let outbound = peer.session.outbound();
    assert!(!outbound.may_have_dropped());
    peer.now = peer.now.plus_secs(60);
    peer.session.drop_stale(peer.now);
    let outbound = peer.session.outbound_mut();
    assert!(outbound.may_have_dropped());
    let named = outbound.take_dropped_messages();
    assert_eq!(named.len(), 64);
    let is_it = |(reason, message): &(DropReason, Arc<Message>)| {
        *reason == DropReason::QueueAge && message.topic() == "t"
    };
    assert!(named.iter().all(is_it));
    let counted: Vec<_> = outbound.take_dropped().collect();
    assert_eq!(counted, [(DropReason::QueueAge, 100)]);
    assert!(!outbound.may_have_dropped());
}
