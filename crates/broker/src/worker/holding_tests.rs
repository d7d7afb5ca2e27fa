//! Publishers that wait for room: for how long, in which order, how many resume at once, and which
//! of their packets are kept.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thrum_access::{Admission, Answer, Gatekeeper, Login, Question, Reply};
use thrum_codec::QoS;
use thrum_codec::packet::{Packet, Publish};
use thrum_codec::properties::{PublishProperties, UserProperties};
use thrum_engine::access::Access;
use thrum_engine::ids::ConnectionKey;
use thrum_engine::node::metrics::Counter;
use thrum_engine::turn::TurnLimits;
use thrum_protection::{MemoryLevel, Rate};

use super::queue_tests::{Client, REFUSED, TAKEN, Workers, full_group, short};
use crate::config::{Anonymous, Config};
use crate::read_gate::PauseReason;

/// The limit of the queues of a test that fills them by their bytes: one message of 500 bytes
/// waits, two do not fit.
const ROOM_FOR_ONE: u32 = 1400;

/// Short queues for which publishers wait 3 seconds.
fn short_hold(config: &mut Config) {
    short(config);
    config.limits.client.queue_hold = Duration::from_secs(3);
}

/// Queues that are full by their bytes, for which publishers wait 3 seconds.
fn narrow(config: &mut Config) {
    short_hold(config);
    config.limits.client.queue = 100;
    config.limits.client.queue_bytes = ROOM_FOR_ONE;
}

/// A message of one byte, to be changed.
fn message(client: &mut Client) -> Publish<'static> {
    Publish {
        dup: false,
        qos: QoS::AtLeastOnce,
        retain: false,
        topic: "t",
        packet_id: Some(client.next_id()),
        properties: PublishProperties::default(),
        payload: b"x",
    }
}

fn publish_with_expiry(client: &mut Client, seconds: u32, payload: &'static [u8]) {
    let properties = PublishProperties {
        message_expiry: Some(seconds),
        ..PublishProperties::default()
    };
    let publish = message(client);
    client.write(&Packet::Publish(Publish {
        properties,
        payload,
        ..publish
    }));
}

/// Messages in the queue of a client of that worker.
fn queued(workers: &Workers, worker: usize, client_id: &str) -> usize {
    let sessions = &workers.workers[worker].traffic.engine.core.sessions;
    let slot = sessions.find(client_id).unwrap();
    sessions[slot].session.outbound().backlog().0
}

fn key_of(workers: &Workers, client_id: &str) -> ConnectionKey {
    let sessions = &workers.workers[0].traffic.engine.core.sessions;
    let slot = sessions.find(client_id).unwrap();
    sessions[slot].connection.unwrap()
}

/// Subscribes a client, which then disconnects.
fn subscribe_and_disconnect(
    workers: &mut Workers,
    worker: usize,
    (client_id, filter): (&str, &str),
) {
    let mut member = workers.client(worker, client_id);
    member.subscribe(filter);
    workers.settle();
    drop(member);
    workers.settle();
}

#[test]
fn a_group_whose_members_are_all_disconnected_refuses_past_the_limits_of_their_queues() {
    for at in [0, 1] {
        let mut workers = Workers::new(2, short);
        subscribe_and_disconnect(&mut workers, at, ("away", "$share/g/t"));
        let mut publisher = workers.client(0, "publisher");
        for payload in 0..10 {
            publisher.publish(payload);
        }
        workers.settle();
        let outcomes = publisher.received().outcomes();
        assert_eq!(outcomes[..2], [TAKEN; 2], "{at}");
        assert_eq!(outcomes[2..], [REFUSED; 8], "{at}");
        assert_eq!(queued(&workers, at, "away"), 2, "{at}");
    }
}

#[test]
fn a_disconnected_group_does_not_grow_because_another_one_of_the_topic_is_connected() {
    for at in [0, 1] {
        let mut workers = Workers::new(2, short);
        subscribe_and_disconnect(&mut workers, at, ("away", "$share/away/t"));
        let mut member = workers.client(0, "member");
        member.subscribe("$share/here/t");
        workers.settle();
        let mut publisher = workers.client(0, "publisher");
        for payload in 0..10 {
            publisher.publish(payload);
            assert_eq!(member.drain(&mut workers), [payload], "{at}");
        }
        assert_eq!(publisher.received().outcomes(), [TAKEN; 10], "{at}");
        assert_eq!(queued(&workers, at, "away"), 2, "{at}");
    }
}

#[test]
fn messages_with_qos_0_do_not_exceed_the_queue_of_a_member_on_another_worker() {
    for at in [0, 1] {
        let mut workers = Workers::new(2, |config| {
            short(config);
            config.limits.client.queue_qos0 = true;
        });
        subscribe_and_disconnect(&mut workers, at, ("away", "$share/g/t"));
        let mut publisher = workers.client(0, "publisher");
        for payload in 0..10 {
            publisher.publish_with(QoS::AtMostOnce, payload);
        }
        workers.settle();
        assert_eq!(queued(&workers, at, "away"), 2, "{at}");
    }
}

#[test]
fn upgraded_messages_with_qos_0_do_not_exceed_the_queue_of_a_member_on_another_worker() {
    for at in [0, 1] {
        let mut workers = Workers::new(2, |config| {
            short(config);
            config.limits.client.upgrade_outgoing_qos = true;
        });
        let mut member = workers.client(at, "slow");
        member.subscribe("$share/g/t");
        workers.settle();
        let mut publisher = workers.client(0, "publisher");
        for payload in 0..10 {
            publisher.publish_with(QoS::AtMostOnce, payload);
        }
        workers.settle();
        assert_eq!(queued(&workers, at, "slow"), 2, "{at}");
    }
}

#[test]
fn a_publisher_waits_for_room_for_its_whole_topic_whatever_it_writes_of_it() {
    let topic = "t".repeat(500);
    for at in [0, 1] {
        let mut workers = Workers::new(2, narrow);
        let mut member = workers.client(at, "member");
        member.subscribe("$share/g/+");
        workers.settle();
        let mut publisher = workers.client(0, "publisher");
        let properties = PublishProperties {
            topic_alias: NonZeroU16::new(1),
            ..PublishProperties::default()
        };
        for topic in [&topic, "", ""] {
            let publish = message(&mut publisher);
            publisher.write(&Packet::Publish(Publish {
                topic,
                properties,
                ..publish
            }));
            workers.settle();
        }
        assert_eq!(publisher.received().outcomes(), [TAKEN; 2], "{at}");
        assert_eq!(workers.count(Counter::PublishersHeld), 1, "{at}");
        let wait = workers.workers[0].wait();
        assert_ne!(wait, Some(Duration::ZERO), "no busy loop: {at}");
        workers.pass(Duration::from_millis(3200));
        assert_eq!(publisher.received().outcomes(), [REFUSED], "{at}");
    }
}

#[test]
fn a_message_waits_for_room_for_its_properties_too() {
    let value = "v".repeat(500);
    let user = [("name", value.as_str())];
    for at in [0, 1] {
        let mut workers = Workers::new(2, narrow);
        let mut member = workers.client(at, "member");
        member.subscribe("$share/g/t");
        workers.settle();
        let mut publisher = workers.client(0, "publisher");
        for _ in 0..3 {
            let publish = message(&mut publisher);
            publisher.write(&Packet::Publish(Publish {
                properties: PublishProperties {
                    user: UserProperties::Listed(&user),
                    ..PublishProperties::default()
                },
                ..publish
            }));
            workers.settle();
        }
        assert_eq!(publisher.received().outcomes(), [TAKEN; 2], "{at}");
        assert_eq!(workers.count(Counter::PublishersHeld), 1, "{at}");
        assert_eq!(member.drain(&mut workers).len(), 3, "{at}");
        assert_eq!(publisher.received().outcomes(), [TAKEN], "{at}");
    }
}

/// Publishers that wait for a group with one message each.
fn publishers(workers: &mut Workers, size: u8) -> Vec<Client> {
    let publishers = (1..=size).map(|number| {
        let mut publisher = workers.client(0, &format!("p{number}"));
        publisher.publish(number);
        workers.settle();
        publisher
    });
    let publishers = publishers.collect();
    assert_eq!(workers.count(Counter::PublishersHeld), u64::from(size));
    publishers
}

/// Turns do little from now on.
fn limit_turns(workers: &mut Workers) {
    for worker in &mut workers.workers {
        *worker.traffic.engine.core.turn.limits_mut() = TurnLimits {
            portion_units: 5,
            reading_units: 10,
            writes: 1000,
            ..TurnLimits::default()
        };
    }
}

#[test]
fn resumed_publishers_keep_to_the_budget_of_the_turn() {
    let mut workers = Workers::new(1, |config| {
        short_hold(config);
        config.limits.client.queue = 40;
    });
    let mut member = workers.client(0, "member");
    member.subscribe("$share/g/t");
    workers.settle();
    let mut filler = workers.client(0, "filler");
    for payload in 0..41 {
        filler.publish(payload);
    }
    workers.settle();
    let mut publishers = publishers(&mut workers, 30);
    let mut other = workers.client(0, "other");
    other.subscribe("$share/g/t");
    workers.settle();
    limit_turns(&mut workers);
    workers.millis.fetch_add(200, Ordering::Relaxed);
    workers.workers[0].run_turn();
    let left = workers.count(Counter::PublishersHeld);
    assert!((15..30).contains(&left), "{left} of 30 wait after a turn");
    assert_eq!(workers.workers[0].wait(), Some(Duration::ZERO));
    for _ in 0..5 {
        workers.settle();
    }
    for publisher in &mut publishers {
        assert_eq!(publisher.received().outcomes(), [TAKEN]);
    }
    // In the order of their arrival.
    *workers.workers[0].traffic.engine.core.turn.limits_mut() = TurnLimits::default();
    let taken: Vec<u8> = (1..=30).collect();
    assert_eq!(other.drain(&mut workers), taken);
}

#[test]
fn publishers_whose_time_is_over_keep_to_the_budget_of_the_turn() {
    let mut workers = Workers::new(1, short_hold);
    let (_members, _publisher) = full_group(&mut workers, &[0]);
    let mut publishers = publishers(&mut workers, 30);
    limit_turns(&mut workers);
    workers.millis.fetch_add(3000, Ordering::Relaxed);
    workers.workers[0].run_turn();
    let left = workers.count(Counter::PublishersHeld);
    assert!((15..30).contains(&left), "{left} of 30 wait after a turn");
    for _ in 0..5 {
        workers.settle();
    }
    for publisher in &mut publishers {
        assert_eq!(publisher.received().outcomes(), [REFUSED]);
    }
}

#[test]
fn a_pause_gives_a_publisher_that_waits_no_more_time() {
    let mut workers = Workers::new(1, short_hold);
    let (_members, mut publisher) = full_group(&mut workers, &[0]);
    publisher.publish(7);
    workers.settle();
    let key = key_of(&workers, "publisher");
    workers.workers[0]
        .traffic
        .edge
        .pause(key, PauseReason::Rate);
    workers.pass(Duration::from_millis(3200));
    assert_eq!(publisher.received().outcomes(), []);
    workers.workers[0]
        .traffic
        .edge
        .resume(key, PauseReason::Rate);
    workers.settle();
    assert_eq!(publisher.received().outcomes(), [REFUSED]);
    // The next one has its own time.
    publisher.publish(8);
    workers.pass(Duration::from_millis(2800));
    assert_eq!(publisher.received().outcomes(), []);
}

#[test]
fn a_publisher_that_waits_for_one_group_after_the_other_waits_no_longer() {
    for freed in [0, 1] {
        let mut workers = Workers::new(1, short_hold);
        let mut members = ["a", "b"].map(|name| {
            let mut member = workers.client(0, name);
            member.subscribe(&format!("$share/{name}/t"));
            workers.settle();
            member
        });
        let mut publisher = workers.client(0, "publisher");
        for _ in 0..3 {
            publisher.publish(0);
            workers.settle();
        }
        assert_eq!(publisher.received().outcomes(), [TAKEN; 3]);
        publisher.publish(7);
        workers.pass(Duration::from_secs(2));
        let member = &mut members[freed];
        let first = member.received().messages[0].0;
        member.acknowledge(first);
        workers.pass(Duration::from_millis(900));
        assert_eq!(publisher.received().outcomes(), [], "{freed}");
        workers.pass(Duration::from_millis(300));
        assert_eq!(publisher.received().outcomes(), [TAKEN], "by one: {freed}");
        assert_eq!(workers.count(Counter::PublishesHeld), 1, "{freed}");
    }
}

/// Is asked about everything, and allows it.
#[derive(Debug)]
struct Permissive;

impl Gatekeeper for Permissive {
    fn login(&self, login: Login, reply: Reply<Answer>) {
        reply(Answer::Admit(Box::new(Admission {
            identity: login.identity,
            ..Admission::default()
        })));
    }

    fn has_authorizers(&self) -> bool {
        true
    }

    fn authorize(&self, _: Question, reply: Reply<Option<bool>>) {
        reply(Some(true));
    }
}

/// One worker whose gatekeeper is asked again about each packet.
fn asking() -> Workers {
    let mut access = Access {
        gatekeeper: Some(Arc::new(Permissive)),
        ..Access::default()
    };
    access.policy.decisions_max = 0;
    Workers::with_access(1, access, |config| {
        short_hold(config);
        config.auth.anonymous = Anonymous::Allow;
    })
}

#[test]
fn a_question_to_the_gatekeeper_gives_a_publisher_that_waits_no_more_time() {
    let mut workers = asking();
    let (_members, mut publisher) = full_group(&mut workers, &[0]);
    publisher.publish(7);
    workers.pass(Duration::from_millis(2800));
    assert_eq!(publisher.received().outcomes(), []);
    workers.pass(Duration::from_millis(400));
    assert_eq!(publisher.received().outcomes(), [REFUSED]);
    assert_eq!(workers.count(Counter::LimitQueueHold), 1);
}

#[test]
fn a_publisher_that_disconnects_while_the_gatekeeper_decides_is_closed_at_once() {
    use thrum_codec::ReasonCode;
    use thrum_codec::packet::Disconnect;
    use thrum_codec::properties::DisconnectProperties;
    let mut workers = asking();
    let (_members, mut publisher) = full_group(&mut workers, &[0]);
    publisher.publish(7);
    publisher.publish(8);
    publisher.write(&Packet::Disconnect(Disconnect {
        reason: ReasonCode::Success,
        properties: DisconnectProperties::default(),
    }));
    for _ in 0..4 {
        workers.settle();
    }
    assert_eq!(workers.count(Counter::ClientsConnected), 1);
}

#[test]
fn a_publisher_in_the_place_of_a_disconnected_one_resumes_when_there_is_room() {
    use thrum_codec::ReasonCode;
    use thrum_codec::packet::Disconnect;
    use thrum_codec::properties::DisconnectProperties;
    let mut workers = Workers::new(1, short);
    let (mut members, mut first) = full_group(&mut workers, &[0]);
    let place = key_of(&workers, "publisher");
    first.publish(7);
    workers.settle();
    first.write(&Packet::Disconnect(Disconnect {
        reason: ReasonCode::Success,
        properties: DisconnectProperties::default(),
    }));
    workers.settle();
    drop(first);
    workers.settle();
    let mut second = workers.client(0, "publisher");
    assert_eq!(key_of(&workers, "publisher"), place);
    second.publish(8);
    workers.settle();
    assert_eq!(second.received().outcomes(), []);
    members[0].drain(&mut workers);
    assert_eq!(second.received().outcomes(), [TAKEN]);
}

#[test]
fn publishers_of_all_workers_get_their_share_of_the_room() {
    let mut workers = Workers::new(3, short);
    let (mut members, _publisher) = full_group(&mut workers, &[0]);
    let mut publishers = [0, 1, 2].map(|at| {
        let mut publisher = workers.client(at, &format!("p{at}"));
        for payload in 0..20 {
            publisher.publish(payload);
        }
        workers.settle();
        publisher
    });
    for _ in 0..30 {
        for (packet_id, _) in members[0].received().messages {
            members[0].acknowledge(packet_id);
        }
        workers.settle();
    }
    let answered = publishers
        .each_mut()
        .map(|publisher| publisher.received().outcomes().len());
    assert_eq!(answered.iter().sum::<usize>(), 30, "{answered:?}");
    assert!(answered.iter().all(|count| *count >= 8), "{answered:?}");
}

#[test]
fn packets_ahead_of_a_held_publish_keep_to_their_portion() {
    let mut workers = Workers::new(1, short);
    let (_members, mut publisher) = full_group(&mut workers, &[0]);
    publisher.publish(7);
    workers.settle();
    limit_turns(&mut workers);
    for _ in 0..100 {
        publisher.write(&Packet::PingReq);
    }
    workers.workers[0].run_turn();
    let pongs = publisher.received().pongs;
    assert!((1..20).contains(&pongs), "{pongs} in one turn");
    assert_eq!(workers.workers[0].wait(), Some(Duration::ZERO));
    for _ in 0..10 {
        workers.settle();
    }
    assert_eq!(publisher.received().pongs, 100 - pongs);
}

#[test]
fn packets_behind_a_held_publish_are_examined_once() {
    let mut workers = Workers::new(1, short);
    let (mut members, mut publisher) = full_group(&mut workers, &[0]);
    for payload in 0..100 {
        publisher.publish(payload);
    }
    workers.settle();
    let before = workers.workers[0].traffic.engine.core.turn.work;
    for _ in 0..10 {
        publisher.write(&Packet::PingReq);
        workers.settle();
    }
    let work = workers.workers[0].traffic.engine.core.turn.work - before;
    assert_eq!(publisher.received().pongs, 10);
    assert!((10..200).contains(&work), "{work} units for 10 pings");
    assert_eq!(members[0].drain(&mut workers).len(), 103);
}

#[test]
fn a_publisher_that_waits_with_more_than_one_message_is_not_read_while_memory_is_low() {
    let mut workers = Workers::new(1, short);
    let (mut members, mut publisher) = full_group(&mut workers, &[0]);
    let node = Arc::clone(&workers.workers[0].node);
    node.state.memory.observe(0, 100);
    assert_eq!(node.state.memory.observe(85, 100).0, MemoryLevel::Low);
    let key = key_of(&workers, "publisher");
    let is_unread = |workers: &Workers| {
        let reading = workers.workers[0].traffic.edge.connections[key].reading;
        reading.has(PauseReason::Room)
    };
    publisher.publish(7);
    publisher.write(&Packet::PingReq);
    workers.settle();
    publisher.write(&Packet::PingReq);
    workers.settle();
    assert_eq!(publisher.received().pongs, 2);
    assert!(!is_unread(&workers), "acknowledgements help");
    let publish = message(&mut publisher);
    publisher.write(&Packet::Publish(Publish {
        payload: &[8; 2000],
        ..publish
    }));
    workers.settle();
    assert!(is_unread(&workers));
    node.state.memory.observe(0, 100);
    assert_eq!(members[0].drain(&mut workers), [0, 0, 0, 7, 8]);
    assert_eq!(publisher.received().outcomes(), [TAKEN; 2]);
}

#[test]
fn a_publisher_resumes_when_the_messages_that_fill_the_queue_have_expired() {
    for at in [0, 1] {
        let mut workers = Workers::new(2, short);
        let mut member = workers.client(at, "member");
        member.subscribe("$share/g/t");
        workers.settle();
        let mut publisher = workers.client(0, "publisher");
        for _ in 0..3 {
            publish_with_expiry(&mut publisher, 2, b"x");
            workers.settle();
        }
        assert_eq!(publisher.received().outcomes(), [TAKEN; 3], "{at}");
        publisher.publish(7);
        workers.pass(Duration::from_millis(1800));
        assert_eq!(publisher.received().outcomes(), [], "{at}");
        workers.pass(Duration::from_millis(1500));
        assert_eq!(publisher.received().outcomes(), [TAKEN], "{at}");
        assert_eq!(workers.count(Counter::DroppedExpired), 2, "{at}");
    }
}

#[test]
fn the_time_that_a_message_waits_with_its_publisher_counts_for_its_expiry() {
    let mut workers = Workers::new(1, short);
    let (mut members, mut publisher) = full_group(&mut workers, &[0]);
    publish_with_expiry(&mut publisher, 2, &[7]);
    workers.pass(Duration::from_millis(1500));
    let first = members[0].received().messages[0].0;
    members[0].acknowledge(first);
    workers.settle();
    assert_eq!(publisher.received().outcomes(), [TAKEN]);
    workers.pass(Duration::from_secs(1));
    assert_eq!(members[0].drain(&mut workers), [0, 0]);
}

#[test]
fn the_held_packets_of_a_publisher_are_charged_when_it_resumes() {
    let mut workers = Workers::new(1, |config| {
        short(config);
        let hour = Duration::from_hours(1);
        config.limits.client.messages = Rate::new(4, hour, 0).unwrap();
    });
    let (mut members, mut publisher) = full_group(&mut workers, &[0]);
    publisher.publish(7);
    workers.settle();
    let key = key_of(&workers, "publisher");
    let is_paced = |workers: &Workers| {
        let connection = &workers.workers[0].traffic.edge.connections[key];
        connection.reading.has(PauseReason::Rate)
    };
    assert!(!is_paced(&workers), "three of four messages are handled");
    assert_eq!(members[0].drain(&mut workers), [0, 0, 0, 7]);
    assert_eq!(publisher.received().outcomes(), [TAKEN]);
    assert!(is_paced(&workers));
}
