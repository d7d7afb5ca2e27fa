//! Short or nearly full queues, and the messages that do not enter them.

use thrum_codec::QoS;
use thrum_codec::packet::{Packet, Publish};
use thrum_codec::properties::PublishProperties;
use thrum_engine::node::metrics::Counter;

use super::queue_tests::{REFUSED, TAKEN, Workers};

#[test]
fn a_short_queue_does_not_limit_an_open_window_on_any_worker() {
    for subscriber_at in [0, 1] {
        let mut workers = Workers::new(2, |config| {
            config.limits.client.queue = 10;
            config.limits.client.inflight = 100;
        });
        let mut subscriber = workers.client(subscriber_at, "subscriber");
        subscriber.subscribe("t");
        workers.settle();
        let mut publisher = workers.client(0, "publisher");
        for payload in 0..60 {
            publisher.publish(payload);
        }
        workers.settle();
        assert_eq!(
            publisher.received().outcomes(),
            [TAKEN; 60],
            "{subscriber_at}"
        );
        for payload in 60..120 {
            publisher.publish(payload);
        }
        workers.settle();
        let outcomes = publisher.received().outcomes();
        let expected = [vec![TAKEN; 50], vec![REFUSED; 10]].concat();
        assert_eq!(outcomes, expected, "{subscriber_at}");
        assert_eq!(subscriber.drain(&mut workers).len(), 110);
    }
}

#[test]
fn a_message_larger_than_the_queue_reaches_an_open_window_on_any_worker() {
    for subscriber_at in [0, 1] {
        let mut workers = Workers::new(2, |config| config.limits.client.queue_bytes = 1000);
        let mut subscriber = workers.client(subscriber_at, "subscriber");
        subscriber.subscribe("t");
        workers.settle();
        let mut publisher = workers.client(0, "publisher");
        let packet_id = Some(publisher.next_id());
        publisher.write(&Packet::Publish(Publish {
            dup: false,
            qos: QoS::AtLeastOnce,
            retain: false,
            topic: "t",
            packet_id,
            properties: PublishProperties::default(),
            payload: &[7; 5000],
        }));
        workers.settle();
        assert_eq!(publisher.received().outcomes(), [TAKEN], "{subscriber_at}");
        assert_eq!(subscriber.drain(&mut workers), [7]);
    }
}

#[test]
fn a_queue_keeps_to_its_limit_as_soon_as_others_know_that_it_is_nearly_full() {
    let mut workers = Workers::new(2, |config| config.limits.client.queue = 600);
    let mut away = workers.client(1, "away");
    away.subscribe("t");
    workers.settle();
    drop(away);
    let mut taker = workers.client(1, "taker");
    taker.subscribe("t");
    workers.settle();
    let mut publisher = workers.client(0, "publisher");
    for _ in 0..20 {
        for _ in 0..50 {
            publisher.publish(0);
        }
        workers.settle();
        assert_eq!(publisher.received().outcomes(), [TAKEN; 50]);
        taker.drain(&mut workers);
    }
    assert_eq!(workers.count(Counter::DroppedQueueFull), 400);
}
