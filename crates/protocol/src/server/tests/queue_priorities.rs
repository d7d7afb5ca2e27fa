//! Priorities of topics in the queue.

use super::*;

fn away(list: &[(&str, u8)]) -> Peer {
    let limits = Limits {
        queue: QueueLimits {
            priorities: priorities(list),
            ..QueueLimits::default()
        },
        ..Limits::default()
    };
    let (mut peer, _) = Peer::with(limits, &persistent(Version::V5));
    peer.session.journal_mut().set_on(true);
    peer.lose();
    peer
}

fn deliver(peer: &mut Peer, topic: &str, payload: &str) {
    let (delivered, _) = peer.deliver_publication(&publication(topic, payload), &options(QOS1));
    assert_eq!(delivered, Delivered::Queued);
}

#[test]
fn higher_priorities_leave_first_and_each_in_its_order() {
    let mut peer = away(&[("alarm/#", 200), ("log/#", 1)]);
    for (topic, payload) in [
        ("other", "1"),
        ("log/a", "2"),
        ("alarm/a", "3"),
        ("log/b", "4"),
        ("other", "5"),
        ("alarm/b", "6"),
        ("log/a", "7"),
    ] {
        deliver(&mut peer, topic, payload);
    }
    let expected = [
        "PUBLISH 1 #1 alarm/a=3",
        "PUBLISH 1 #2 alarm/b=6",
        "PUBLISH 1 #3 log/a=2",
        "PUBLISH 1 #4 log/b=4",
        "PUBLISH 1 #5 log/a=7",
        "PUBLISH 1 #6 other=1",
        "PUBLISH 1 #7 other=5",
    ];
    assert_eq!(peer.reconnect(&persistent(Version::V5)), expected);
}

#[test]
fn the_first_matching_filter_applies() {
    let limits = Limits {
        queue: QueueLimits {
            priorities: priorities(&[("a/quiet", 0), ("a/+", 9), ("#", 1)]),
            ..QueueLimits::default()
        },
        ..Limits::default()
    };
    let topics = ["a/quiet", "a/loud", "a/b/c", "$SYS/x"];
    assert_eq!(
        topics.map(|topic| limits.queue.priority(topic)),
        [0, 9, 1, 0]
    );
    assert_eq!(QueueLimits::default().priority("a"), 0);
}

#[test]
fn a_new_message_is_sorted_into_the_queue() {
    let mut peer = away(&[("high", 9)]);
    deliver(&mut peer, "low", "1");
    deliver(&mut peer, "low", "2");
    assert_eq!(peer.reconnect(&windowed(1)), ["PUBLISH 1 #1 low=1"]);
    deliver(&mut peer, "high", "3");
    assert_eq!(peer.send(&puback(1)).unwrap(), ["PUBLISH 1 #2 high=3"]);
    assert_eq!(peer.send(&puback(2)).unwrap(), ["PUBLISH 1 #3 low=2"]);
}

// [MQTT-4.6.0-1] [MQTT3-4.6.0-1]
#[test]
fn an_overtaken_delivery_gets_a_new_sequence_number() {
    let mut peer = away(&[("high", 9)]);
    deliver(&mut peer, "low", "a");
    deliver(&mut peer, "high", "b");
    deliver(&mut peer, "low", "c");
    peer.steps();
    peer.reconnect(&persistent(Version::V5));
    let expected = [
        "sent 2 #1 PubAck",
        "queued 4 q1 a",
        "removed 1",
        "sent 4 #2 PubAck",
        "queued 5 q1 c",
        "removed 3",
        "sent 5 #3 PubAck",
    ];
    assert_eq!(peer.steps(), expected);
    peer.send(&puback(2)).unwrap();
    assert_eq!(peer.steps(), ["removed 4"]);
}

#[test]
fn the_lowest_priority_is_dropped_but_not_for_a_lower_one() {
    let limits = Limits {
        queue: QueueLimits {
            policy: QueuePolicy::DropOldest,
            messages_max: 3,
            priorities: priorities(&[("high", 9), ("higher", 10)]),
            ..QueueLimits::default()
        },
        ..Limits::default()
    };
    let (mut peer, _) = Peer::with(limits, &persistent(Version::V5));
    peer.lose();
    deliver(&mut peer, "high", "1");
    deliver(&mut peer, "low", "2");
    deliver(&mut peer, "higher", "3");
    deliver(&mut peer, "high", "4");
    deliver(&mut peer, "high", "5");
    assert_eq!(peer.dropped(), [(DropReason::QueueDropped, 2)]);
    assert_eq!(
        peer.deliver(QOS1, "low").0,
        Delivered::Dropped(DropReason::QueueFull)
    );
    let expected = [
        "PUBLISH 1 #1 higher=3",
        "PUBLISH 1 #2 high=4",
        "PUBLISH 1 #3 high=5",
    ];
    assert_eq!(peer.reconnect(&persistent(Version::V5)), expected);
}

#[test]
fn changed_priorities_apply_to_queued_messages_and_keep_the_order_of_a_topic() {
    let mut peer = away(&[("a", 9)]);
    for (topic, payload) in [("a", "1"), ("b", "2"), ("a", "3"), ("b", "4")] {
        deliver(&mut peer, topic, payload);
    }
    let limits = Limits {
        queue: QueueLimits {
            priorities: priorities(&[("b", 9)]),
            ..QueueLimits::default()
        },
        ..Limits::default()
    };
    peer.session.set_limits(&Arc::new(limits));
    deliver(&mut peer, "b", "5");
    let expected = [
        "PUBLISH 1 #1 b=2",
        "PUBLISH 1 #2 b=4",
        "PUBLISH 1 #3 b=5",
        "PUBLISH 1 #4 a=1",
        "PUBLISH 1 #5 a=3",
    ];
    assert_eq!(peer.reconnect(&persistent(Version::V5)), expected);
}

#[test]
fn messages_of_a_group_are_taken_from_every_priority() {
    let mut peer = away(&[("high", 9)]);
    for (topic, group) in [("low", Some(1)), ("high", Some(1)), ("high", None)] {
        let options = DeliveryOptions {
            group,
            is_acknowledged: false,
            ..options(QOS1)
        };
        peer.deliver_publication(&publication(topic, "x"), &options);
    }
    assert_eq!(peer.session.outbound_mut().take_shared(Some(&[1])).len(), 2);
    assert_eq!(peer.session.outbound().backlog().0, 1);
}
