//! What waits for a client that is away: which messages, in which order, and how those are counted
//! that cannot.

use std::time::Duration;

use thrum_broker::Config;
use thrum_broker::config::QueuePolicy;
use thrum_codec::{QoS, ReasonCode};
use thrum_protocol::limits::TopicPriority;

use crate::peer::{Peer, start};

/// A session that is away, and then three messages with `QoS` 1 and one with `QoS` 0 for it. What
/// it gets in the end.
fn queued(change: impl FnOnce(&mut Config)) -> Vec<String> {
    let (broker, address) = start(1, |config| {
        config.limits.client.queue = 3;
        change(config);
    });
    let (mut peer, _) = Peer::resume(address, "away");
    peer.subscribe("#", QoS::AtLeastOnce);
    peer.leave();
    let mut publisher = Peer::connect(address, "p");
    publisher.publish("replaceable", b"0", QoS::AtMostOnce, false);
    for topic in ["log/1", "log/2", "alarm/3"] {
        publisher.publish_acknowledged(topic, b"1");
    }
    publisher.publish_acknowledged("log/4", b"1");
    let (mut peer, present) = Peer::resume(address, "away");
    assert!(present);
    let topics = (0..3).map(|_| peer.message().topic).collect();
    peer.assert_silent();
    broker.stop();
    topics
}

#[test]
fn a_full_queue_refuses_new_messages_by_default() {
    assert_eq!(queued(|_| {}), ["log/1", "log/2", "alarm/3"]);
    let oldest_first = |config: &mut Config| {
        config.limits.client.queue_policy = QueuePolicy::DropOldest;
    };
    assert_eq!(queued(oldest_first), ["log/2", "alarm/3", "log/4"]);
}

#[test]
fn qos0_is_queued_where_that_is_set_until_its_room_is_needed() {
    let with_qos0 = |config: &mut Config| config.limits.client.queue_qos0 = true;
    assert_eq!(queued(with_qos0), ["log/1", "log/2", "alarm/3"]);
    let with_room = |config: &mut Config| {
        config.limits.client.queue_qos0 = true;
        config.limits.client.queue = 5;
    };
    let (broker, address) = start(2, with_room);
    let (mut peer, _) = Peer::resume(address, "away");
    peer.subscribe("t", QoS::AtLeastOnce);
    peer.leave();
    let mut publisher = Peer::connect(address, "p");
    publisher.publish("t", b"0", QoS::AtMostOnce, false);
    publisher.publish_acknowledged("t", b"1");
    let (mut peer, _) = Peer::resume(address, "away");
    let received = [peer.message(), peer.message()];
    assert_eq!(
        received.map(|message| message.qos),
        [QoS::AtMostOnce, QoS::AtLeastOnce]
    );
    broker.stop();
}

#[test]
fn topics_of_a_higher_priority_come_first() {
    let alarms_first = |config: &mut Config| {
        config.limits.client.queue_priorities = vec![TopicPriority {
            filter: "alarm/#".into(),
            priority: 9,
        }];
    };
    assert_eq!(queued(alarms_first), ["alarm/3", "log/1", "log/2"]);
}

#[test]
fn messages_dropped_for_room_are_counted_while_the_client_is_disconnected() {
    let (broker, address) = start(2, |config| {
        config.limits.client.queue = 1;
        config.limits.client.queue_policy = QueuePolicy::DropOldest;
        config.sys.interval = Duration::from_millis(50);
    });
    let (mut peer, _) = Peer::resume(address, "away");
    peer.subscribe("t", QoS::AtLeastOnce);
    peer.leave();
    let mut watcher = Peer::connect(address, "watcher");
    watcher.subscribe(
        "$SYS/broker/publish/messages/dropped/queue_oldest",
        QoS::AtMostOnce,
    );
    let mut publisher = Peer::connect(address, "p");
    for _ in 0..3 {
        assert_eq!(
            publisher.publish_acknowledged("t", b"x"),
            ReasonCode::Success
        );
    }
    while watcher.message().payload != b"2" {}
    broker.stop();
}
