//! Actions of clients as messages on `$events/…`.

use serde_json::Value;
use std::sync::Arc;

use thrum_access::Rules;
use thrum_broker::config::Anonymous;
use thrum_broker::{Access, Config, Policy, RuleSource};
use thrum_codec::packet::{Ack, Packet};
use thrum_codec::properties::AckProperties;
use thrum_codec::{QoS, ReasonCode, Version};

use crate::peer::{Peer, connect_packet, start, start_with};
use crate::rights::Folder;

/// The next event: the end of its topic, and its contents.
fn next(listener: &mut Peer) -> (String, Value) {
    let message = listener.message();
    let kind = message.topic.strip_prefix("$events/").expect("an event");
    let told: Value = serde_json::from_slice(&message.payload).expect("JSON");
    assert!(
        told["timestamp"]
            .as_u64()
            .is_some_and(|at| at > 1_600_000_000_000)
    );
    if message.qos == QoS::AtLeastOnce {
        listener.acknowledge(message.id);
    }
    (kind.to_owned(), told)
}

fn expect(listener: &mut Peer, kind: &str, client_id: &str) -> Value {
    let (found, told) = next(listener);
    assert_eq!(
        (found.as_str(), &told["clientid"]),
        (kind, &client_id.into()),
        "{told}"
    );
    told
}

fn listen(address: std::net::SocketAddr, filter: &str) -> Peer {
    let mut listener = Peer::connect(address, "listener");
    let granted = listener.subscribe(filter, QoS::AtLeastOnce);
    assert_eq!(granted, ReasonCode::GrantedQoS1);
    listener
}

#[test]
fn events_report_connects_and_disconnects_with_the_reason() {
    for workers in [1, 4] {
        let (broker, address) = start(workers, |_| {});
        let mut listener = listen(address, "$events/client/+");
        let first = Peer::connect(address, "a");
        let told = expect(&mut listener, "client/connected", "a");
        assert_eq!(told["proto_ver"], 5);
        assert_eq!(told["session_present"], false);
        assert_eq!(told["listener"], "mqtt");
        assert_eq!(told["username"], Value::Null);
        assert!(
            told["peername"]
                .as_str()
                .is_some_and(|peer| peer.starts_with("127.0.0.1:"))
        );
        let second = Peer::connect(address, "a");
        let told = expect(&mut listener, "client/disconnected", "a");
        assert_eq!(
            told["reason"],
            "another connection uses this client identifier"
        );
        expect(&mut listener, "client/connected", "a");
        second.disconnect();
        let told = expect(&mut listener, "client/disconnected", "a");
        assert_eq!(told["reason"], "the client sent DISCONNECT");
        drop(Peer::connect(address, "b"));
        expect(&mut listener, "client/connected", "b");
        let told = expect(&mut listener, "client/disconnected", "b");
        assert_eq!(
            told["reason"],
            "the connection was lost, without DISCONNECT"
        );
        drop(first);
        listener.assert_silent();
        broker.stop();
    }
}

#[test]
fn events_report_the_begin_and_the_end_of_subscriptions() {
    let (broker, address) = start(2, |_| {});
    let mut listener = listen(address, "$events/session/#");
    expect(&mut listener, "session/subscribed", "listener");
    let mut peer = Peer::connect(address, "a");
    for filter in ["x/+", "$share/g/x"] {
        peer.subscribe(filter, QoS::ExactlyOnce);
        let told = expect(&mut listener, "session/subscribed", "a");
        assert_eq!((&told["topic"], &told["qos"]), (&filter.into(), &2.into()));
        peer.unsubscribe(filter);
        let told = expect(&mut listener, "session/unsubscribed", "a");
        assert_eq!(told["topic"], filter);
    }
    // There is none.
    peer.unsubscribe("x/+");
    listener.assert_silent();
    broker.stop();
}

#[test]
fn events_report_deliveries_and_acknowledgements_also_of_queued_messages() {
    for workers in [1, 3] {
        let (broker, address) = start(workers, |_| {});
        let (mut subscriber, _) = Peer::resume(address, "s");
        subscriber.subscribe("t", QoS::AtLeastOnce);
        let mut listener = listen(address, "$events/message/#");
        let mut publisher = Peer::connect(address, "p");
        publisher.publish_acknowledged("t", b"12345");
        let told = expect(&mut listener, "message/delivered", "s");
        let about = ["topic", "qos", "payload_bytes"].map(|key| told[key].to_string());
        assert_eq!(about, ["\"t\"", "1", "5"]);
        let message = subscriber.message();
        subscriber.acknowledge(message.id);
        let told = expect(&mut listener, "message/acked", "s");
        assert_eq!(told["topic"], "t");
        subscriber.leave();
        publisher.publish_acknowledged("t", b"later");
        listener.assert_silent();
        let (mut subscriber, _) = Peer::resume(address, "s");
        let message = subscriber.message();
        expect(&mut listener, "message/delivered", "s");
        subscriber.acknowledge(message.id);
        let told = expect(&mut listener, "message/acked", "s");
        assert_eq!(told["payload_bytes"], 5);
        listener.assert_silent();
        broker.stop();
    }
}

#[test]
fn a_message_of_qos_2_is_acknowledged_by_its_pubrec() {
    let (broker, address) = start(1, |_| {});
    let mut subscriber = Peer::connect(address, "s");
    let mut listener = listen(address, "$events/message/acked");
    subscriber.subscribe("t", QoS::ExactlyOnce);
    let mut publisher = Peer::connect(address, "p");
    publisher.publish("t", b"x", QoS::ExactlyOnce, false);
    let message = subscriber.message();
    listener.assert_silent();
    subscriber.send(&Packet::PubRec(Ack {
        packet_id: message.id.expect("it has one"),
        reason: ReasonCode::Success,
        properties: AckProperties::default(),
    }));
    let told = expect(&mut listener, "message/acked", "s");
    assert_eq!((&told["topic"], &told["qos"]), (&"t".into(), &2.into()));
    broker.stop();
}

#[test]
fn a_message_without_receiver_is_reported_with_the_reason() {
    let (broker, address) = start(2, |config| config.limits.client.queue = 1);
    let (mut subscriber, _) = Peer::resume(address, "s");
    subscriber.subscribe("t", QoS::AtLeastOnce);
    subscriber.leave();
    let mut listener = listen(address, "$events/message/+");
    let mut publisher = Peer::connect(address, "p");
    let answer = publisher.publish_acknowledged("nobody/wants/it", b"x");
    assert_eq!(answer, ReasonCode::NoMatchingSubscribers);
    let told = expect(&mut listener, "message/dropped", "p");
    assert_eq!(
        (&told["reason"], &told["topic"]),
        (&"no_subscribers".into(), &"nobody/wants/it".into())
    );
    publisher.publish("t", b"x", QoS::AtMostOnce, false);
    let told = expect(&mut listener, "message/delivery_dropped", "s");
    assert_eq!(
        (&told["reason"], &told["topic"]),
        (&"offline".into(), &"t".into())
    );
    // No other client receives events of clients, or can publish them.
    let answer = publisher.publish_acknowledged("$events/client/connected", b"{}");
    assert_eq!(answer, ReasonCode::NotAuthorized);
    expect(&mut listener, "message/dropped", "p");
    let mut curious = Peer::connect(address, "curious");
    curious.subscribe("#", QoS::AtLeastOnce);
    Peer::connect(address, "another").disconnect();
    curious.assert_silent();
    broker.stop();
}

#[test]
fn events_report_a_refused_message_with_the_reason() {
    let policy = Policy {
        rules: Arc::new(
            Rules::parse(
                "allow all sub #\nallow all sub $events/#\nallow all pub a",
                "test",
            )
            .expect("rules"),
        ),
        ..Policy::default()
    };
    let policy = Policy {
        allows_by_default: false,
        order: vec![RuleSource::AllClients],
        ..policy
    };
    let access = Access {
        policy,
        ..Access::default()
    };
    let (broker, address) = start_with(access, 1, |config| config.limits.packet.max_payload = 5);
    let mut listener = listen(address, "$events/message/dropped");
    let mut peer = Peer::connect(address, "p");
    let cases = [
        ("b", &b"x"[..], "not_authorized"),
        ("a", b"123456", "quota_exceeded"),
        ("a", b"x", "no_subscribers"),
    ];
    for (topic, payload, reason) in cases {
        peer.publish_acknowledged(topic, payload);
        let told = expect(&mut listener, "message/dropped", "p");
        assert_eq!(
            (&told["topic"], &told["reason"]),
            (&topic.into(), &reason.into())
        );
    }
    broker.stop();
}

#[test]
fn a_disconnected_subscriber_receives_events_also_after_a_restart() {
    let folder = Folder::new("events");
    let on_disk = |config: &mut Config| {
        config.node.data_dir.clone_from(&folder.0);
        config.auth.anonymous = Anonymous::Allow;
    };
    let (broker, address) = start(3, on_disk);
    let (mut listener, _) = Peer::resume(address, "listener");
    listener.subscribe("$events/client/connected", QoS::AtLeastOnce);
    listener.leave();
    for version in [Version::V31, Version::V311, Version::V5] {
        let mut peer = Peer::open(address, version);
        let connect = connect_packet(version, "a");
        assert_eq!(peer.handshake(&connect).0, ReasonCode::Success);
        peer.disconnect();
    }
    broker.stop();
    let (broker, address) = start(2, on_disk);
    let (mut listener, is_present) = Peer::resume(address, "listener");
    assert!(is_present);
    for version in [3, 4, 5] {
        let told = expect(&mut listener, "client/connected", "a");
        assert_eq!(told["proto_ver"], version);
    }
    // It has reconnected itself.
    expect(&mut listener, "client/connected", "listener");
    broker.stop();
}
