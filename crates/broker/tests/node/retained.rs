//! Retained messages: which of them reach a new subscription, and what a limit of them does.

use std::collections::BTreeSet;
use std::num::NonZeroU16;
use std::time::Duration;

use thrum_codec::packet::Packet;
use thrum_codec::{QoS, ReasonCode, Version};

use super::peer::{Peer, connect_packet, start};

/// More than a replay looks up at a time and more than it queues.
const TOPICS: usize = 400;

/// Publishes with QoS 1, to be retained; the reason of the PUBACK.
fn retain(publisher: &mut Peer, topic: &str, payload: &[u8]) -> ReasonCode {
    publisher.publish(topic, payload, QoS::AtLeastOnce, true);
    publisher.receive(|packet| match packet {
        Packet::PubAck(ack) => ack.reason,
        other => panic!("expected PUBACK, got {other:?}"),
    })
}

fn retain_everywhere(publisher: &mut Peer, payload: &[u8]) {
    for number in 0..TOPICS {
        let reason = retain(publisher, &format!("r/{number}"), payload);
        assert!(!reason.is_error(), "{reason:?}");
    }
}

/// The retained message that a new client receives for a topic.
fn shown(peer: &mut Peer, topic: &str) -> Option<Vec<u8>> {
    peer.subscribe(topic, QoS::AtMostOnce);
    peer.publish("nowhere", b"", QoS::AtLeastOnce, false);
    peer.receive(|packet| match packet {
        Packet::Publish(publish) => Some(publish.payload.to_vec()),
        Packet::PubAck(_) => None,
        other => panic!("expected PUBLISH or PUBACK, got {other:?}"),
    })
}

// [MQTT-4.6.0-6] [MQTT3-4.6.0-6]
#[test]
fn a_retained_message_never_arrives_after_the_one_that_replaced_it() {
    for workers in [1, 3] {
        let (broker, address) = start(workers, |_| {});
        let mut publisher = Peer::connect(address, "p");
        retain_everywhere(&mut publisher, b"old");
        let mut slow = Peer::open(address, Version::V5);
        let mut connect = connect_packet(Version::V5, "slow");
        connect.properties.receive_maximum = NonZeroU16::new(1);
        slow.handshake(&connect);
        slow.subscribe("r/+", QoS::AtLeastOnce);
        let mut message = slow.message();
        // The rest waits for the acknowledgement of the first.
        retain_everywhere(&mut publisher, b"new");
        let (mut replayed, mut renewed) = (BTreeSet::new(), BTreeSet::new());
        loop {
            if message.retain {
                assert!(
                    replayed.insert(message.topic.clone()),
                    "{message:?} received twice"
                );
            }
            if message.payload == b"new" {
                renewed.insert(message.topic.clone());
            } else {
                assert!(
                    !renewed.contains(&message.topic),
                    "{message:?} received after the new one"
                );
            }
            slow.acknowledge(message.id);
            if replayed.len() == TOPICS && renewed.len() == TOPICS {
                break;
            }
            message = slow.message();
        }
        broker.stop();
    }
}

#[test]
fn a_replay_waits_for_its_client() {
    let (broker, address) = start(1, |_| {});
    let mut publisher = Peer::connect(address, "p");
    retain_everywhere(&mut publisher, b"x");
    let (mut peer, _) = Peer::resume(address, "away");
    peer.subscribe("r/+", QoS::AtLeastOnce);
    let mut seen = BTreeSet::new();
    for _ in 0..10 {
        seen.insert(peer.message().topic);
        peer.leave();
        (peer, _) = Peer::resume(address, "away");
    }
    while seen.len() < TOPICS {
        let message = peer.message();
        seen.insert(message.topic.clone());
        peer.acknowledge(message.id);
    }
    broker.stop();
}

#[test]
fn a_replay_continues_after_a_restart_where_it_stopped() {
    for workers in [1, 3] {
        let folder = format!("thrum-node-{}-owed-{workers}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        let begin = || start(workers, |config| config.node.data_dir.clone_from(&folder));
        let (mut broker, mut address) = begin();
        let mut publisher = Peer::connect(address, "p");
        retain_everywhere(&mut publisher, b"x");
        let resume = |address| {
            let mut peer = Peer::open(address, Version::V5);
            let mut connect = connect_packet(Version::V5, "slow");
            connect.clean_start = false;
            connect.properties.session_expiry = Some(300);
            connect.properties.receive_maximum = NonZeroU16::new(1);
            let (_, present) = peer.handshake(&connect);
            (peer, present)
        };
        let (mut slow, _) = resume(address);
        slow.subscribe("r/+", QoS::AtLeastOnce);
        let mut seen = BTreeSet::new();
        while seen.len() < TOPICS {
            for _ in 0..(TOPICS - seen.len()).min(120) {
                let message = slow.message();
                assert!(message.retain && message.payload == b"x", "{message:?}");
                let is_new = seen.insert(message.topic.clone());
                assert!(is_new || message.dup, "{message:?} received twice");
                slow.acknowledge(message.id);
            }
            broker.stop();
            (broker, address) = begin();
            let present;
            (slow, present) = resume(address);
            assert!(present);
        }
        broker.stop();
        std::fs::remove_dir_all(&folder).expect("the broker has left it");
    }
}

// [MQTT-3.3.1-5] [MQTT3-3.3.1-5]
#[test]
fn a_message_that_cannot_be_retained_is_refused_or_leaves_nothing_old_behind() {
    let (broker, address) = start(1, |config| config.limits.retained.retained_payload = 10);
    let mut publisher = Peer::connect(address, "p");
    let mut live = Peer::connect(address, "live");
    live.subscribe("t", QoS::AtLeastOnce);
    retain(&mut publisher, "t", b"old");
    let old = live.message();
    live.acknowledge(old.id);
    // A publisher of MQTT 5.0 receives the refusal, and nothing has changed.
    let reason = retain(&mut publisher, "t", b"longer than the limit");
    assert_eq!(reason, ReasonCode::QuotaExceeded);
    live.assert_silent();
    let mut late = Peer::connect(address, "late0");
    assert_eq!(shown(&mut late, "t").as_deref(), Some(&b"old"[..]));
    // The message of a publisher without reason codes is delivered.
    for (number, version, qos) in [
        (1, Version::V5, QoS::AtMostOnce),
        (2, Version::V311, QoS::AtMostOnce),
        (3, Version::V311, QoS::AtLeastOnce),
    ] {
        retain(&mut publisher, "t", b"old");
        let old = live.message();
        live.acknowledge(old.id);
        let mut other = Peer::open(address, version);
        other.handshake(&connect_packet(version, "other"));
        other.publish("t", b"longer than the limit", qos, true);
        let message = live.message();
        assert_eq!(message.payload, b"longer than the limit");
        if qos != QoS::AtMostOnce {
            live.acknowledge(message.id);
        }
        let mut late = Peer::connect(address, &format!("late{number}"));
        assert_eq!(shown(&mut late, "t"), None, "{version:?} {qos:?}");
    }
    broker.stop();
}

#[test]
fn the_node_shows_its_figures_when_clients_may_retain_no_more() {
    let (broker, address) = start(1, |config| {
        config.limits.retained.retained_messages = 1;
        config.sys.interval = Duration::from_secs(1);
    });
    let mut publisher = Peer::connect(address, "p");
    assert!(!retain(&mut publisher, "only", b"x").is_error());
    assert_eq!(
        retain(&mut publisher, "second", b"x"),
        ReasonCode::QuotaExceeded
    );
    let mut late = Peer::connect(address, "late");
    late.subscribe("$SYS/broker/version", QoS::AtMostOnce);
    assert!(late.message().payload.starts_with(b"thrum"));
    late.subscribe("$SYS/broker/limits/retained", QoS::AtMostOnce);
    while late.message().payload != b"1" {}
    broker.stop();
}

// [MQTT-3.2.2-13] [MQTT-3.2.2-14]
#[test]
fn a_listener_without_retain_announces_and_enforces_it() {
    let (broker, address) = start(1, |config| {
        let listener = config.listeners.get_mut("mqtt").expect("it has that name");
        listener.retain_available = false;
    });
    let mut publisher = Peer::open(address, Version::V5);
    publisher.send(&Packet::Connect(connect_packet(Version::V5, "p")));
    let announced = publisher.receive(|packet| match packet {
        Packet::ConnAck(ack) => ack.properties.retain_available,
        other => panic!("expected CONNACK, got {other:?}"),
    });
    assert_eq!(announced, Some(false));
    publisher.publish("t", b"x", QoS::AtMostOnce, true);
    assert_eq!(
        publisher.disconnect_reason(),
        ReasonCode::RetainNotSupported
    );
    publisher.assert_closed();
    broker.stop();
}
