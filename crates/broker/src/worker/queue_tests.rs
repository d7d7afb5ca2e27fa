//! Full queues, over one worker and several: which publishers are refused, wait and resume.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mio::Poll;
use thrum_codec::packet::{
    Ack, Disconnect, Packet, Publish, Subscribe, SubscriptionOptions, SubscriptionRequest,
    SubscriptionRequests, TopicFilters, Unsubscribe,
};
use thrum_codec::properties::{
    AckProperties, DisconnectProperties, PublishProperties, SubscribeProperties, UserProperties,
};
use thrum_codec::{PacketId, QoS, ReasonCode, TopicFilter, Version, decode, encode, frame};
use thrum_engine::access::{Access, Shared};
use thrum_engine::node::Capacity;
use thrum_engine::node::metrics::Counter;
use thrum_engine::workers::WorkerId;

use super::Worker;
use super::tests::{connect_v5, node_with};
use crate::clock::Clock;
use crate::config::{Config, QueuePolicy};
use crate::node::NodePlan;
use crate::settings::Settings;

/// Workers of one node that take their turns by hand, in a time of their own.
pub(super) struct Workers {
    pub(super) workers: Vec<Worker>,
    pub(super) millis: Arc<AtomicU64>,
}

/// Queues of two messages behind a window of one.
pub(super) fn short(config: &mut Config) {
    config.limits.client.queue = 2;
    config.limits.client.inflight = 1;
}

impl Workers {
    pub(super) fn new(count: usize, change: impl FnOnce(&mut Config)) -> Self {
        Self::with_access(count, Access::default(), change)
    }

    /// The same with a gatekeeper.
    pub(super) fn with_access(
        count: usize,
        access: Access,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let mut config = Config::default();
        change(&mut config);
        let shared = Shared {
            access,
            generation: 0,
        };
        let settings = Arc::new(Settings::new(&config, &Arc::new(shared)));
        let millis = Arc::new(AtomicU64::new(1_000_000));
        let plan = NodePlan {
            workers: count,
            mailbox: Capacity {
                messages: 1000,
                bytes: 1 << 20,
            },
            clock: Clock::manual(&millis, 0),
            ..NodePlan::new(&config)
        };
        let node = node_with(plan, &config, &settings);
        let worker = |number| {
            let id = WorkerId::new(number);
            let poll = Poll::new().unwrap();
            node.open_mailbox(id, &poll).unwrap();
            Worker::new(id, Arc::clone(&node), &settings, poll)
        };
        Self {
            workers: (0..count).map(worker).collect(),
            millis,
        }
    }

    /// Turns of all workers until nothing more can happen.
    pub(super) fn settle(&mut self) {
        for _ in 0..6 {
            self.workers.iter_mut().for_each(Worker::run_turn);
        }
    }

    /// Time passes in small steps, as timers are due.
    pub(super) fn pass(&mut self, time: Duration) {
        for _ in 0..time.as_millis().div_ceil(50) {
            self.millis.fetch_add(50, Ordering::Relaxed);
            self.settle();
        }
    }

    pub(super) fn client(&mut self, worker: usize, client_id: &str) -> Client {
        let mut client = Client {
            stream: self.workers[worker].accepted(),
            last_id: 0,
        };
        let connect = connect_v5(client_id, 1000);
        client.stream.write_all(&connect).unwrap();
        self.settle();
        client
    }

    /// Subscribes a client on that worker, which then disconnects.
    fn leave_subscribed(&mut self, worker: usize, client_id: &str) {
        let mut away = self.client(worker, client_id);
        away.subscribe("t");
        self.settle();
        drop(away);
        self.settle();
    }

    pub(super) fn count(&self, counter: Counter) -> u64 {
        self.workers[0].node.state.metrics.total(counter)
    }
}

pub(super) struct Client {
    pub(super) stream: UnixStream,
    last_id: u16,
}

/// The arrived packets, as far as these tests check them.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// Outcomes of PUBACK and PUBREC with their identifiers.
    pub(super) answers: Vec<(u16, ReasonCode)>,
    /// Payloads with their identifiers.
    pub(super) messages: Vec<(u16, u8)>,
    pub(super) pongs: usize,
}

impl Received {
    pub(super) fn payloads(&self) -> Vec<u8> {
        self.messages.iter().map(|(_, payload)| *payload).collect()
    }

    pub(super) fn outcomes(&self) -> Vec<ReasonCode> {
        self.answers.iter().map(|(_, outcome)| *outcome).collect()
    }
}

impl Client {
    pub(super) fn write(&mut self, packet: &Packet<'_>) {
        let mut bytes = Vec::new();
        encode(packet, Version::V5, &mut bytes).unwrap();
        self.stream.write_all(&bytes).unwrap();
    }

    pub(super) fn next_id(&mut self) -> PacketId {
        self.last_id += 1;
        PacketId::new(self.last_id).unwrap()
    }

    pub(super) fn publish(&mut self, payload: u8) {
        self.publish_with(QoS::AtLeastOnce, payload);
    }

    pub(super) fn publish_with(&mut self, qos: QoS, payload: u8) {
        self.publish_to("t", qos, payload);
    }

    pub(super) fn publish_to(&mut self, topic: &str, qos: QoS, payload: u8) {
        let packet_id = (qos != QoS::AtMostOnce).then(|| self.next_id());
        self.write(&Packet::Publish(Publish {
            dup: false,
            qos,
            retain: false,
            topic,
            packet_id,
            properties: PublishProperties::default(),
            payload: &[payload],
        }));
    }

    pub(super) fn subscribe(&mut self, filter: &str) {
        let options = SubscriptionOptions {
            qos: QoS::AtLeastOnce,
            ..SubscriptionOptions::default()
        };
        let requests = [SubscriptionRequest {
            filter: TopicFilter::parse(filter).unwrap(),
            options,
        }];
        let packet_id = self.next_id();
        self.write(&Packet::Subscribe(Subscribe {
            packet_id,
            properties: SubscribeProperties::default(),
            requests: SubscriptionRequests::Listed(&requests),
        }));
    }

    fn unsubscribe(&mut self, filter: &str) {
        let filters = [TopicFilter::parse(filter).unwrap()];
        let packet_id = self.next_id();
        self.write(&Packet::Unsubscribe(Unsubscribe {
            packet_id,
            user: UserProperties::default(),
            filters: TopicFilters::Listed(&filters),
        }));
    }

    pub(super) fn acknowledge(&mut self, packet_id: u16) {
        self.write(&Packet::PubAck(Ack {
            packet_id: PacketId::new(packet_id).unwrap(),
            reason: ReasonCode::Success,
            properties: AckProperties::default(),
        }));
    }

    /// Everything that has reached the client since the last call.
    pub(super) fn received(&mut self) -> Received {
        let mut bytes = Vec::new();
        let end = self.stream.read_to_end(&mut bytes).unwrap_err();
        assert_eq!(end.kind(), ErrorKind::WouldBlock);
        let mut received = Received::default();
        let mut at = 0;
        while let Some(frame) = frame::split(&bytes[at..], u32::MAX).unwrap() {
            at += frame.len;
            match decode(frame, Version::V5).unwrap() {
                Packet::PubAck(ack) | Packet::PubRec(ack) => {
                    received.answers.push((ack.packet_id.as_u16(), ack.reason));
                }
                Packet::Publish(publish) => {
                    let packet_id = publish.packet_id.map_or(0, PacketId::as_u16);
                    received.messages.push((packet_id, publish.payload[0]));
                }
                Packet::PingResp => received.pongs += 1,
                _ => {}
            }
        }
        received
    }

    /// Reads and acknowledges messages until no more arrive.
    pub(super) fn drain(&mut self, workers: &mut Workers) -> Vec<u8> {
        let mut all = Vec::new();
        loop {
            workers.settle();
            let received = self.received();
            if received.messages.is_empty() {
                return all;
            }
            for (packet_id, payload) in received.messages {
                all.push(payload);
                self.acknowledge(packet_id);
            }
        }
    }
}

pub(super) const TAKEN: ReasonCode = ReasonCode::Success;
pub(super) const REFUSED: ReasonCode = ReasonCode::QuotaExceeded;

// [MQTT-4.6.0-2] [MQTT-4.6.0-3]
#[test]
fn a_full_queue_is_reported_from_any_worker() {
    for (subscriber_at, qos) in [
        (0, QoS::AtLeastOnce),
        (1, QoS::AtLeastOnce),
        (1, QoS::ExactlyOnce),
    ] {
        let mut workers = Workers::new(2, |config| config.limits.client.queue = 5);
        workers.leave_subscribed(subscriber_at, "away");
        let mut publisher = workers.client(0, "publisher");
        for payload in 0..20 {
            publisher.publish_with(qos, payload);
        }
        workers.settle();
        let received = publisher.received();
        let expected: Vec<_> = (1..=20)
            .map(|id| (id, if id <= 5 { TAKEN } else { REFUSED }))
            .collect();
        assert_eq!(received.answers, expected, "{subscriber_at} {qos:?}");
        assert_eq!(workers.count(Counter::DroppedQueueFull), 15);
        let mut back = workers.client(0, "away");
        workers.settle();
        assert_eq!(back.received().payloads(), [0, 1, 2, 3, 4]);
    }
}

#[test]
fn publishers_of_several_workers_are_not_promised_the_same_room() {
    let mut workers = Workers::new(3, |config| config.limits.client.queue = 5);
    workers.leave_subscribed(2, "away");
    let mut publishers = [0, 1, 2].map(|at| workers.client(at, &format!("p{at}")));
    let mut taken = 0;
    for payload in 0..10 {
        for publisher in &mut publishers {
            publisher.publish(payload);
        }
        workers.settle();
        let outcomes = publishers
            .each_mut()
            .map(|publisher| publisher.received().outcomes());
        taken += outcomes
            .concat()
            .iter()
            .filter(|one| **one == TAKEN)
            .count();
    }
    let mut back = workers.client(0, "away");
    workers.settle();
    let kept = back.received().payloads().len();
    assert_eq!(taken, kept, "what was acknowledged is there");
    assert!((5..=6).contains(&kept), "{kept} of 5");
}

#[test]
fn a_message_that_another_client_takes_is_acknowledged_and_not_forced_on_a_full_queue() {
    let mut workers = Workers::new(2, |config| config.limits.client.queue = 2);
    for (at, client_id) in [(1, "full"), (0, "empty")] {
        workers.leave_subscribed(at, client_id);
        let mut publisher = workers.client(0, "publisher");
        publisher.publish(1);
        publisher.publish(2);
        workers.settle();
        assert_eq!(publisher.received().outcomes(), [TAKEN; 2]);
    }
    let mut back = workers.client(0, "full");
    workers.settle();
    assert_eq!(back.received().payloads(), [1, 2]);
}

#[test]
fn a_queue_with_a_long_limit_refuses_past_it_on_another_worker_too() {
    let mut workers = Workers::new(2, |config| config.limits.client.queue = 600);
    workers.leave_subscribed(1, "away");
    let mut publisher = workers.client(0, "publisher");
    let mut outcomes = Vec::new();
    for _ in 0..14 {
        for _ in 0..50 {
            publisher.publish(0);
        }
        workers.settle();
        outcomes.extend(publisher.received().outcomes());
    }
    let taken = outcomes.iter().filter(|one| **one == TAKEN).count();
    assert_eq!((outcomes.len(), taken), (700, 600));
    assert!(outcomes[600..].iter().all(|one| *one == REFUSED));
}

/// A group with so many members that take nothing, each on its worker, and all that they have room
/// for.
pub(super) fn full_group(workers: &mut Workers, at: &[usize]) -> (Vec<Client>, Client) {
    let members = at.iter().enumerate().map(|(number, at)| {
        let mut member = workers.client(*at, &format!("m{number}"));
        member.subscribe("$share/g/t");
        workers.settle();
        member
    });
    let members: Vec<Client> = members.collect();
    let mut publisher = workers.client(0, "publisher");
    for _ in 0..3 * members.len() {
        publisher.publish(0);
        workers.settle();
        assert_eq!(publisher.received().outcomes(), [TAKEN]);
    }
    (members, publisher)
}

#[test]
fn a_publisher_waits_until_a_member_of_a_full_group_has_room() {
    for at in [&[0][..], &[1], &[0, 1], &[1, 1]] {
        let mut workers = Workers::new(2, short);
        let (mut members, mut publisher) = full_group(&mut workers, at);
        publisher.publish(7);
        publisher.publish(8);
        workers.settle();
        assert_eq!(publisher.received().answers, [], "it waits: {at:?}");
        assert_eq!(workers.count(Counter::PublishersHeld), 1, "{at:?}");
        let member = members.last_mut().unwrap();
        let first = member.received().messages[0].0;
        member.acknowledge(first);
        workers.settle();
        assert_eq!(
            publisher.received().outcomes(),
            [TAKEN],
            "one place: {at:?}"
        );
        let rest: Vec<u8> = members
            .iter_mut()
            .flat_map(|member| member.drain(&mut workers))
            .collect();
        assert_eq!(publisher.received().outcomes(), [TAKEN], "{at:?}");
        assert_eq!(
            rest.iter().filter(|payload| **payload >= 7).count(),
            2,
            "{rest:?}"
        );
        assert_eq!(workers.count(Counter::PublishersHeld), 0, "{at:?}");
        assert_eq!(workers.count(Counter::BytesHeld), 0, "{at:?}");
        assert_eq!(workers.count(Counter::DroppedNoSharedMember), 0, "{at:?}");
    }
}

// [MQTT-4.6.0-2] [MQTT-4.6.0-3] [MQTT-4.6.0-6]
#[test]
fn held_publishers_resume_in_the_order_of_their_arrival() {
    for member_at in [0, 1] {
        let mut workers = Workers::new(2, short);
        let (mut members, _publisher) = full_group(&mut workers, &[member_at]);
        let mut publishers = [1, 2, 3].map(|number| {
            let mut publisher = workers.client(0, &format!("p{number}"));
            publisher.publish(10 * number);
            workers.settle();
            publisher.publish(10 * number + 1);
            workers.settle();
            publisher
        });
        let member = &mut members[0];
        let taken = member.drain(&mut workers);
        assert_eq!(taken, [0, 0, 0, 10, 20, 30, 11, 21, 31], "{member_at}");
        for publisher in &mut publishers {
            assert_eq!(publisher.received().answers, [(1, TAKEN), (2, TAKEN)]);
        }
    }
}

#[test]
fn a_publisher_that_arrives_when_there_is_room_queues_behind_the_waiting_ones() {
    let mut workers = Workers::new(2, short);
    let (mut members, mut publisher) = full_group(&mut workers, &[1]);
    publisher.publish(7);
    workers.settle();
    let mut late = workers.client(0, "late");
    let first = members[0].received().messages[0].0;
    members[0].acknowledge(first);
    workers.workers[1].run_turn();
    // The other worker learns of the room behind this.
    late.publish(8);
    workers.settle();
    assert_eq!(publisher.received().outcomes(), [TAKEN]);
    assert_eq!(late.received().answers, []);
    assert_eq!(members[0].drain(&mut workers), [0, 0, 7, 8]);
}

#[test]
fn a_publisher_waits_no_longer_than_is_set_and_then_is_refused() {
    for at in [0, 1] {
        let mut workers = Workers::new(2, |config| {
            short(config);
            config.limits.client.queue_hold = Duration::from_secs(3);
        });
        let (mut members, mut publisher) = full_group(&mut workers, &[at]);
        publisher.publish_with(QoS::ExactlyOnce, 7);
        publisher.publish(8);
        workers.pass(Duration::from_millis(2800));
        assert_eq!(publisher.received().answers, []);
        workers.pass(Duration::from_millis(400));
        assert_eq!(publisher.received().answers, [(4, REFUSED)]);
        workers.pass(Duration::from_millis(3200));
        assert_eq!(publisher.received().answers, [(5, REFUSED)]);
        assert_eq!(workers.count(Counter::LimitQueueHold), 2);
        assert_eq!(members[0].drain(&mut workers), [0, 0, 0]);
    }
}

#[test]
fn a_stalled_member_does_not_hold_publishers_while_another_one_reads() {
    for at in [[0, 0], [0, 1], [1, 0]] {
        let mut workers = Workers::new(2, short);
        let (mut members, mut publisher) = full_group(&mut workers, &at);
        members[1].drain(&mut workers);
        for payload in 1..20 {
            publisher.publish(payload);
            workers.settle();
            assert_eq!(publisher.received().outcomes(), [TAKEN], "{payload} {at:?}");
            assert_eq!(members[1].drain(&mut workers), [payload], "{at:?}");
        }
        assert_eq!(workers.count(Counter::PublishesHeld), 0);
    }
}

#[test]
fn messages_of_a_member_that_leaves_go_to_members_with_full_queues() {
    for at in [[0, 0], [0, 1], [1, 0]] {
        let mut workers = Workers::new(2, short);
        let (mut members, mut publisher) = full_group(&mut workers, &at);
        publisher.publish(7);
        workers.settle();
        drop(members.remove(0));
        workers.settle();
        let taken = members[0].drain(&mut workers);
        assert_eq!(taken.len(), 7, "{taken:?} {at:?}");
        assert_eq!(publisher.received().outcomes(), [TAKEN]);
        assert_eq!(workers.count(Counter::DroppedNoSharedMember), 0, "{at:?}");
    }
}

#[test]
fn messages_of_a_member_that_leaves_ask_the_others_for_room_once() {
    const MEMBERS: usize = 640;
    let mut workers = Workers::new(1, short);
    let (mut members, _publisher) = full_group(&mut workers, &[0; MEMBERS]);
    let before = workers.workers[0].traffic.engine.core.turn.work;
    drop(members.remove(0));
    workers.settle();
    assert_eq!(workers.count(Counter::SharedRedispatched), 3);
    let work = workers.workers[0].traffic.engine.core.turn.work - before;
    // Sixteen members cost a unit, and all the turns some eighty; to ask them for each of the three
    // would cost two hundred.
    assert!(work < 150, "{work} units");
}

#[test]
fn a_joining_member_releases_the_publishers_that_wait() {
    let mut workers = Workers::new(2, short);
    let (_members, mut publisher) = full_group(&mut workers, &[1]);
    publisher.publish(7);
    workers.settle();
    assert_eq!(publisher.received().answers, []);
    let mut other = workers.client(1, "other");
    other.subscribe("$share/g/t");
    workers.pass(Duration::from_millis(200));
    assert_eq!(publisher.received().outcomes(), [TAKEN]);
    assert_eq!(other.received().payloads(), [7]);
}

#[test]
fn a_publisher_that_disconnects_while_it_waits_has_published_nothing() {
    let mut workers = Workers::new(2, short);
    let (mut members, mut publisher) = full_group(&mut workers, &[1]);
    publisher.publish_with(QoS::ExactlyOnce, 7);
    workers.settle();
    let mut publisher = workers.client(0, "publisher");
    publisher.last_id = 3;
    publisher.publish_with(QoS::ExactlyOnce, 7);
    workers.settle();
    assert_eq!(publisher.received().answers, []);
    assert_eq!(members[0].drain(&mut workers), [0, 0, 0, 7]);
    assert_eq!(publisher.received().outcomes(), [TAKEN]);
    workers.pass(Duration::from_millis(200));
    assert_eq!(workers.count(Counter::PublishersHeld), 0);
}

#[test]
fn a_subscriber_with_the_policy_for_it_holds_its_publishers_while_it_is_connected() {
    for at in [0, 1] {
        let mut workers = Workers::new(2, |config| {
            short(config);
            config.limits.client.queue_policy = QueuePolicy::Hold;
        });
        let mut subscriber = workers.client(at, "subscriber");
        subscriber.subscribe("t");
        workers.settle();
        let mut publisher = workers.client(0, "publisher");
        for payload in 1..=5 {
            publisher.publish(payload);
        }
        workers.settle();
        assert_eq!(publisher.received().outcomes(), [TAKEN; 3], "{at}");
        assert_eq!(subscriber.drain(&mut workers), [1, 2, 3, 4, 5], "{at}");
        assert_eq!(publisher.received().outcomes(), [TAKEN; 2], "{at}");
        for payload in 6..=9 {
            publisher.publish(payload);
        }
        workers.settle();
        assert_eq!(publisher.received().outcomes(), [TAKEN; 3], "{at}");
        drop(subscriber);
        workers.settle();
        assert_eq!(
            publisher.received().outcomes(),
            [REFUSED],
            "no client takes any: {at}"
        );
    }
}

#[test]
fn a_subscriber_without_the_policy_holds_no_publisher() {
    let mut workers = Workers::new(2, short);
    let mut subscriber = workers.client(1, "subscriber");
    subscriber.subscribe("t");
    workers.settle();
    let mut publisher = workers.client(0, "publisher");
    for payload in 1..=5 {
        publisher.publish(payload);
    }
    workers.settle();
    let outcomes = publisher.received().outcomes();
    assert_eq!(outcomes.len(), 5);
    let taken = outcomes.iter().filter(|one| **one == TAKEN).count();
    assert_eq!(subscriber.drain(&mut workers).len(), taken);
}

#[test]
fn other_clients_are_read_while_a_publisher_waits() {
    let mut workers = Workers::new(1, short);
    let (_members, mut publisher) = full_group(&mut workers, &[0]);
    publisher.publish(7);
    let mut other = workers.client(0, "other");
    other.subscribe("t");
    workers.settle();
    let mut third = workers.client(0, "third");
    third.publish_with(QoS::AtLeastOnce, 8);
    workers.settle();
    assert_eq!(third.received().answers, [], "it is for the group as well");
    assert_eq!(publisher.received().answers, []);
    other.unsubscribe("t");
    workers.settle();
    assert!(other.received().messages.is_empty());
}

#[test]
fn clients_that_publish_to_each_other_do_not_wait_for_each_other() {
    for at in [[0, 0], [0, 1]] {
        let mut workers = Workers::new(2, |config| {
            short(config);
            config.limits.client.queue_policy = QueuePolicy::Hold;
        });
        let mut clients = [0, 1].map(|number| {
            let mut client = workers.client(at[number], &format!("c{number}"));
            client.subscribe(&format!("to/{number}"));
            client
        });
        workers.settle();
        for payload in 0..8 {
            for (number, client) in clients.iter_mut().enumerate() {
                client.publish_to(&format!("to/{}", 1 - number), QoS::AtLeastOnce, payload);
            }
        }
        workers.settle();
        assert_eq!(workers.count(Counter::PublishersHeld), 2, "{at:?}");
        let mut taken = [0, 0];
        let mut answered = [0, 0];
        for _ in 0..20 {
            for (number, client) in clients.iter_mut().enumerate() {
                let received = client.received();
                answered[number] += received.outcomes().len();
                taken[number] += received.messages.len();
                let ids = received.messages.iter().map(|(packet_id, _)| *packet_id);
                ids.for_each(|packet_id| client.acknowledge(packet_id));
            }
            workers.settle();
        }
        assert_eq!((taken, answered), ([8, 8], [8, 8]), "{at:?}");
    }
}

// [MQTT-3.12.4-1]
#[test]
fn a_publisher_that_waits_gets_answers_to_its_pings_and_may_disconnect() {
    let mut workers = Workers::new(1, short);
    let (mut members, mut publisher) = full_group(&mut workers, &[0]);
    publisher.publish(7);
    publisher.write(&Packet::PingReq);
    workers.settle();
    publisher.write(&Packet::PingReq);
    workers.settle();
    let received = publisher.received();
    assert_eq!((received.pongs, received.answers.len()), (2, 0));
    publisher.publish(8);
    publisher.write(&Packet::Disconnect(Disconnect {
        reason: ReasonCode::Success,
        properties: DisconnectProperties::default(),
    }));
    workers.settle();
    assert_eq!(workers.count(Counter::ClientsConnected), 1);
    workers.pass(Duration::from_millis(200));
    assert_eq!(workers.count(Counter::PublishersHeld), 0);
    assert_eq!(members[0].drain(&mut workers), [0, 0, 0]);
}

// [MQTT-3.10.4-3]
#[test]
fn messages_acknowledged_before_an_unsubscribe_reach_the_subscriber_on_any_worker() {
    for publisher_at in [0, 1] {
        let mut workers = Workers::new(2, |_| {});
        let mut subscriber = workers.client(1, "subscriber");
        subscriber.subscribe("t");
        workers.settle();
        let mut publisher = workers.client(publisher_at, "publisher");
        publisher.publish(1);
        // The publisher's worker alone takes its turn: it has answered, and the other one has mail.
        workers.workers[publisher_at].run_turn();
        assert_eq!(publisher.received().outcomes(), [TAKEN]);
        subscriber.unsubscribe("t");
        workers.settle();
        assert_eq!(subscriber.received().payloads(), [1], "{publisher_at}");
        publisher.publish(2);
        workers.settle();
        assert_eq!(
            publisher.received().outcomes(),
            [ReasonCode::NoMatchingSubscribers]
        );
        assert!(subscriber.received().messages.is_empty());
    }
}
