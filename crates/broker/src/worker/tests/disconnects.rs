//! Immediate answers to a client that publishes, and their cost.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use mio::Poll;
use thrum_access::Rules;
use thrum_codec::packet::{
    Packet, Publish, Subscribe, SubscriptionOptions, SubscriptionRequest, SubscriptionRequests,
};
use thrum_codec::properties::{PublishProperties, SubscribeProperties};
use thrum_codec::{PacketId, QoS, ReasonCode, TopicFilter, Version, decode, encode, frame};
use thrum_engine::access::{Access, Policy, Shared};
use thrum_engine::node::Capacity;
use thrum_engine::node::metrics::Counter;
use thrum_engine::workers::WorkerId;
use thrum_storage::disk::sim::{SimDisk, SimStorage};
use thrum_storage::{Committer, Options, QUEUE_BYTES_MAX, Stepper, Store};

use super::{NOW_MILLIS, connect, connect_v5, messages, node_with, settle, two_workers_with};
use crate::clock::Clock;
use crate::config::Config;
use crate::node::NodePlan;
use crate::settings::Settings;
use crate::worker::Worker;

fn policy(rules: &str) -> Policy {
    Policy {
        rules: Arc::new(Rules::parse(rules, "test").unwrap()),
        allows_by_default: false,
        ..Policy::default()
    }
}

fn packet(packet: &Packet<'_>, version: Version) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(packet, version, &mut bytes).unwrap();
    bytes
}

fn publish(topic: &str, qos: QoS, retain: bool, id: u16) -> Packet<'_> {
    Packet::Publish(Publish {
        dup: false,
        qos,
        retain,
        topic,
        packet_id: PacketId::new(id),
        properties: PublishProperties::default(),
        payload: b"x",
    })
}

fn subscribe(qos: QoS) -> Vec<u8> {
    let requests = [SubscriptionRequest {
        filter: TopicFilter::parse("t").unwrap(),
        options: SubscriptionOptions {
            qos,
            ..SubscriptionOptions::default()
        },
    }];
    let subscribe = Subscribe {
        packet_id: PacketId::new(1).unwrap(),
        properties: SubscribeProperties::default(),
        requests: SubscriptionRequests::Listed(&requests),
    };
    packet(&Packet::Subscribe(subscribe), Version::V5)
}

/// The reason of the DISCONNECT that has arrived, if any.
fn disconnected(client: &mut UnixStream) -> Option<ReasonCode> {
    let mut bytes = Vec::new();
    if let Err(error) = client.read_to_end(&mut bytes) {
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }
    let (mut at, mut found) = (0, None);
    while let Some(frame) = frame::split(&bytes[at..], u32::MAX).unwrap() {
        at += frame.len;
        if let Packet::Disconnect(disconnect) = decode(frame, Version::V5).unwrap() {
            found = Some(disconnect.reason);
        }
    }
    found
}

/// One worker with storage, which works on request.
fn durable_worker(policy: Policy) -> (Worker, Committer, Stepper<SimDisk>) {
    let config = Config::default();
    let access = Access {
        policy,
        ..Access::default()
    };
    let shared = Shared {
        access,
        generation: 0,
    };
    let settings = Arc::new(Settings::new(&config, &Arc::new(shared)));
    let plan = NodePlan {
        workers: 1,
        mailbox: Capacity {
            messages: 1000,
            bytes: 1 << 20,
        },
        clock: Clock::manual(&Arc::new(AtomicU64::new(NOW_MILLIS)), 0),
        ..NodePlan::new(&config)
    };
    let node = node_with(plan, &config, &settings);
    let id = WorkerId::new(0);
    let poll = Poll::new().unwrap();
    node.open_mailbox(id, &poll).unwrap();
    let disk = SimStorage::new(1);
    let opened = Store::open(disk.open().unwrap(), Options::default()).unwrap();
    let (store, recovered, _) = opened;
    let wakes = node.wakes();
    let (committer, stepper, submitters) = Committer::stepped(store, wakes, QUEUE_BYTES_MAX);
    let (mut parts, _) = node.restore(recovered, submitters);
    let part = parts.pop();
    let mut worker = Worker::new(id, node, &settings, poll).restored(part);
    worker.listen(Vec::new());
    (worker, committer, stepper)
}

fn commits(worker: &mut Worker, stepper: &mut Stepper<SimDisk>) {
    for _ in 0..4 {
        worker.run_turn();
        while stepper.step().unwrap() {}
        worker.run_turn();
    }
}

#[test]
fn a_client_that_may_not_publish_gets_the_refusal_without_waiting_for_the_disk() {
    for qos in [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce] {
        let (mut worker, _committer, mut stepper) = durable_worker(Policy {
            disconnects_denied: true,
            ..policy("allow all pubsub t")
        });
        let mut client = worker.accepted();
        client.write_all(&connect_v5("a", 300)).unwrap();
        commits(&mut worker, &mut stepper);
        assert_eq!(disconnected(&mut client), None);
        let denied = packet(&publish("u", qos, false, 1), Version::V5);
        client.write_all(&denied).unwrap();
        // The disk does nothing any more.
        for _ in 0..4 {
            worker.run_turn();
        }
        let told = disconnected(&mut client);
        assert_eq!(told, Some(ReasonCode::NotAuthorized), "{qos:?}");
    }
}

#[test]
fn lists_of_steps_come_back_from_both_ends_of_a_message() {
    let (mut worker, _committer, mut stepper) = durable_worker(policy("allow all pubsub #"));
    let mut subscriber = worker.accepted();
    subscriber
        .write_all(&connect_v5("subscriber", 300))
        .unwrap();
    let mut publisher = worker.accepted();
    publisher.write_all(&connect_v5("publisher", 300)).unwrap();
    commits(&mut worker, &mut stepper);
    subscriber.write_all(&subscribe(QoS::AtLeastOnce)).unwrap();
    commits(&mut worker, &mut stepper);
    for number in 1..20 {
        let message = packet(&publish("t", QoS::AtLeastOnce, false, number), Version::V5);
        publisher.write_all(&message).unwrap();
        commits(&mut worker, &mut stepper);
    }
    let journal = worker.traffic.engine.core.durable.journal.as_mut().unwrap();
    let lists = std::iter::from_fn(|| journal.spare_list()).count();
    assert_eq!(lists, 2, "each of the two has borrowed one");
}

#[test]
fn a_publish_without_retain_is_authorized_as_such() {
    for is_retain_available in [true, false] {
        let mut workers = two_workers_with(|parts| {
            let listener = parts.config.listeners.get_mut("mqtt").unwrap();
            listener.retain_available = is_retain_available;
            parts.access.policy = policy("deny all pub(retain=true) t\nallow all pubsub t");
        });
        let mut subscriber = super::subscriber(&mut workers, 1);
        let mut publisher = workers[0].accepted();
        publisher.write_all(&connect("publisher", None)).unwrap();
        settle(&mut workers);
        let plain = publish("t", QoS::AtMostOnce, false, 0);
        publisher.write_all(&packet(&plain, Version::V311)).unwrap();
        settle(&mut workers);
        assert_eq!(messages(&mut subscriber), [b"x"]);
        let message = publish("t", QoS::AtMostOnce, true, 0);
        publisher
            .write_all(&packet(&message, Version::V311))
            .unwrap();
        settle(&mut workers);
        let denied = workers[0].node.state.metrics.total(Counter::PublishDenied);
        assert_eq!(
            denied,
            u64::from(is_retain_available),
            "{is_retain_available}"
        );
        // Of 3.x it is delivered as if it were not to be retained.
        let is_delivered = messages(&mut subscriber) == [b"x"];
        assert_eq!(is_delivered, !is_retain_available);
    }
}
