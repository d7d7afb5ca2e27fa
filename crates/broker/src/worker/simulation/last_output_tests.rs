//! Output on connections that end: fixed scenarios that random runs seldom reach.

use thrum_codec::packet::Packet;
use thrum_codec::{QoS, ReasonCode, Version};

use super::client::ConnectOptions;
use super::history::{Ending, Message};
use super::link::{Link, Transferred};
use super::plan::{EXPIRY_SECS_MAX, Plan};
use super::random::Random;
use super::stepped_worker::SteppedWorker;
use super::world::World;
use crate::mailbox::Mail;

/// Numbers of messages with a large payload are multiples of this.
const LARGE: u32 = 7;
/// More than a small socket takes.
const MANY: u32 = 12;
const PUBLISHER: usize = 0;
const SUBSCRIBER: usize = 1;

/// A node with one worker, and a durable subscriber beside the publisher.
fn world(has_disk: bool) -> World {
    let mut random = Random::new(3);
    let mut plan = Plan::of_two_clients(&mut random, 1, has_disk);
    plan.config.limits.output_bytes = 65_536;
    let mut world = World::with_plan(random, plan);
    for client in [PUBLISHER, SUBSCRIBER] {
        world.connect(client, ConnectOptions::lasting(EXPIRY_SECS_MAX));
    }
    world.settle().unwrap();
    world
}

fn message(number: u32, topic: &'static str, qos: QoS) -> Message {
    Message {
        number,
        topic,
        qos,
        retain: false,
        is_empty: false,
        expiry_secs: None,
    }
}

/// Runs turns without any work of the disk.
fn turns(world: &mut World) {
    for _ in 0..4 {
        world.machine.workers.iter_mut().for_each(|worker| {
            SteppedWorker::run_turn(worker);
        });
    }
}

/// Reads a connection up to its end or until it is idle; returns its packets as text.
fn read(world: &mut World, link: &mut Link) -> (Vec<String>, bool) {
    let mut packets = Vec::new();
    for _ in 0..200 {
        let transferred = link.transfer_to_client(usize::MAX);
        let handled = link.packets(Version::V5, |packet, _| {
            packets.push(match packet {
                Packet::Publish(publish) => format!("PUBLISH {} bytes", publish.payload.len()),
                Packet::PubAck(_) => "PUBACK".to_owned(),
                Packet::ConnAck(answer) => format!("CONNACK {:?}", answer.reason),
                Packet::Disconnect(disconnect) => format!("DISCONNECT {:?}", disconnect.reason),
                other => format!("{other:?}"),
            });
            Ok(())
        });
        handled.expect("whole packets");
        if transferred == Transferred::End {
            assert!(link.has_whole_packets(), "it ends within a packet");
            return (packets, true);
        }
        turns(world);
    }
    (packets, false)
}

#[test]
fn a_message_right_before_a_disconnect_is_acknowledged_when_it_is_on_the_disk() {
    let mut world = world(true);
    let subscribed = world.clients[SUBSCRIBER].subscribe("t/0", QoS::AtLeastOnce);
    world.record_all(subscribed);
    world.settle().unwrap();
    let sent = world.clients[PUBLISHER].publish(message(1, "t/0", QoS::AtLeastOnce));
    world.record_all(sent);
    world.clients[PUBLISHER].disconnect(false, None);
    world.transfer_all_to_node(PUBLISHER);
    let how = Ending::Disconnect {
        with_will: false,
        expiry_secs: None,
    };
    let mut link = world.end(PUBLISHER, how).unwrap();
    assert_eq!(read(&mut world, &mut link), (vec![], false));
    while world.machine.commit() {}
    assert_eq!(
        read(&mut world, &mut link),
        (vec!["PUBACK".to_owned()], true)
    );
}

/// Returns the packets that a slow client reads after a takeover of its session, which happens
/// while an answer waits for the disk, if there is one.
fn read_after_takeover(has_disk: bool) -> Vec<String> {
    let mut world = world(has_disk);
    for (filter, qos) in [("t/0", QoS::AtMostOnce), ("t/1", QoS::AtLeastOnce)] {
        let subscribed = world.clients[SUBSCRIBER].subscribe(filter, qos);
        world.record_all(subscribed);
    }
    world.settle().unwrap();
    for number in 1..=MANY {
        let sent =
            world.clients[PUBLISHER].publish(message(number * LARGE, "t/0", QoS::AtMostOnce));
        world.record_all(sent);
    }
    world.transfer_all_to_node(PUBLISHER);
    turns(&mut world);
    let sent = world.clients[SUBSCRIBER].publish(message(1, "t/1", QoS::AtLeastOnce));
    world.record_all(sent);
    world.transfer_all_to_node(SUBSCRIBER);
    turns(&mut world);
    let mut old = world.end(SUBSCRIBER, Ending::Cut).unwrap();
    world.connect(SUBSCRIBER, ConnectOptions::lasting(EXPIRY_SECS_MAX));
    world.transfer_all_to_node(SUBSCRIBER);
    turns(&mut world);
    let (packets, has_ended) = read(&mut world, &mut old);
    assert!(has_ended, "{packets:?}");
    packets
}

#[test]
fn a_disconnect_follows_whole_packets_while_output_waits_for_the_disk() {
    let packets = read_after_takeover(true);
    let (last, before) = packets.split_last().unwrap();
    let taken_over = ReasonCode::SessionTakenOver;
    assert_eq!(*last, format!("DISCONNECT {taken_over:?}"));
    assert_eq!(before, vec!["PUBLISH 3004 bytes"; MANY as usize]);
}

/// Returns the packets on a connection whose CONNACK waits for the disk, after an event.
fn read_unaccepted(happen: impl FnOnce(&mut World)) -> Vec<String> {
    let mut world = world(true);
    world.end(SUBSCRIBER, Ending::Cut);
    world.settle().unwrap();
    world.connect(SUBSCRIBER, ConnectOptions::lasting(EXPIRY_SECS_MAX));
    world.transfer_all_to_node(SUBSCRIBER);
    turns(&mut world);
    let mut link = world.end(SUBSCRIBER, Ending::Cut).unwrap();
    assert_eq!(read(&mut world, &mut link), (vec![], false));
    happen(&mut world);
    let (packets, has_ended) = read(&mut world, &mut link);
    assert!(has_ended, "{packets:?}");
    packets
}

// [MQTT-3.14.0-1]
#[test]
fn a_client_whose_connack_waits_for_the_disk_is_refused_when_another_takes_over() {
    let packets = read_unaccepted(|world| {
        world.connect(SUBSCRIBER, ConnectOptions::lasting(EXPIRY_SECS_MAX));
        world.transfer_all_to_node(SUBSCRIBER);
    });
    let refused = ReasonCode::UnspecifiedError;
    assert_eq!(packets, [format!("CONNACK {refused:?}")]);
}

// [MQTT-3.14.0-1]
#[test]
fn a_client_whose_connack_waits_for_the_disk_is_refused_when_the_node_stops() {
    let packets = read_unaccepted(|world| {
        let worker = &world.machine.workers[0].inner;
        worker
            .node
            .mailbox(worker.traffic.engine.core.id)
            .push(Mail::Stop);
    });
    let refused = ReasonCode::ServerUnavailable;
    assert_eq!(packets, [format!("CONNACK {refused:?}")]);
}

#[test]
fn a_slow_client_still_receives_the_reason_of_its_disconnect() {
    let packets = read_after_takeover(false);
    let taken_over = ReasonCode::SessionTakenOver;
    let last = format!("DISCONNECT {taken_over:?}");
    assert_eq!(packets.last(), Some(&last), "{packets:?}");
}
