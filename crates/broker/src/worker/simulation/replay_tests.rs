//! Retained messages that are replaced during a replay, step by step.

use thrum_codec::QoS;
use thrum_storage::disk::sim::SimStorage;

use super::client::ConnectOptions;
use super::history::{Event, Message, RETAINED};
use super::plan::{EXPIRY_SECS_MAX, Plan};
use super::random::Random;
use super::stepped_worker::SteppedWorker;
use super::world::World;

/// Numbers of messages with a large payload are multiples of this.
const LARGE: u32 = 7;
const PUBLISHER: usize = 0;
const SUBSCRIBER: usize = 1;
/// SUBACK of one filter in 5.0.
const SUBACK_BYTES: usize = 6;

/// A node with a publisher and a subscriber, each at the worker of its number, if there are two.
pub(super) fn world(workers: usize, has_disk: bool) -> World {
    let mut random = Random::new(5);
    let mut plan = Plan::of_two_clients(&mut random, workers, has_disk);
    plan.config.limits.output_bytes = 300;
    plan.allowances.queues_overflow = false;
    let mut world = World::with_plan(random, plan);
    for client in [PUBLISHER, SUBSCRIBER] {
        let worker = client % workers;
        world.connect_to(worker, client, ConnectOptions::lasting(EXPIRY_SECS_MAX));
    }
    world.settle().unwrap();
    world
}

pub(super) fn retain(world: &mut World, number: u32, topic: &'static str) {
    let sent = world.clients[PUBLISHER].publish(Message {
        number,
        topic,
        qos: QoS::AtLeastOnce,
        retain: true,
        is_empty: false,
        expiry_secs: None,
    });
    world.record_all(sent);
    world.transfer_all_to_node(PUBLISHER);
}

fn subscribe(world: &mut World, filter: &'static str) {
    let subscribed = world.clients[SUBSCRIBER].subscribe(filter, QoS::AtLeastOnce);
    world.record_all(subscribed);
    world.transfer_all_to_node(SUBSCRIBER);
}

/// Writes so much that the disk no longer has the replaced messages.
fn give_segments_back(world: &mut World) {
    let [_, topic, ..] = RETAINED[PUBLISHER];
    for number in 100..200 {
        retain(world, number * LARGE, topic);
        for _ in 0..4 {
            world.machine.workers[PUBLISHER].run_turn();
            world.machine.commit_or_tidy();
            world.transfer_all_to_client(PUBLISHER).unwrap();
            world.transfer_all_to_node(PUBLISHER);
        }
    }
}

/// The messages that the subscriber received, in order.
fn received(world: &World) -> Vec<(u32, &'static str)> {
    let events = world.history.iter().map(|entry| entry.event);
    events
        .filter_map(|event| match event {
            Event::Received {
                client: SUBSCRIBER,
                number,
                topic,
                ..
            } => Some((number, topic)),
            _ => None,
        })
        .collect()
}

#[test]
fn an_interrupted_replay_sends_no_message_that_was_replaced_meanwhile() {
    let mut world = world(1, false);
    // More than the socket holds.
    let topics = RETAINED[..2].as_flattened();
    for (number, topic) in (1..).zip(topics) {
        retain(&mut world, number * LARGE, topic);
    }
    world.settle().unwrap();
    subscribe(&mut world, "r/#");
    world.turns();
    for (number, topic) in (101..).zip(topics) {
        retain(&mut world, number * LARGE, topic);
    }
    world.turns();
    world.settle().unwrap();
    let received = received(&world);
    for (number, topic) in (101..).zip(topics) {
        let newest = received.iter().rfind(|(_, of)| of == topic);
        assert_eq!(newest, Some(&(number * LARGE, *topic)), "{received:?}");
    }
    let old = received.iter().filter(|(number, _)| *number < 101 * LARGE);
    assert!((1..topics.len()).contains(&old.count()), "{received:?}");
}

#[test]
fn a_retained_message_read_before_it_was_replaced_survives_a_crash() {
    let [topic, ..] = RETAINED[PUBLISHER];
    let mut world = world(2, true);
    retain(&mut world, 1, topic);
    world.settle().unwrap();
    // The subscriber's worker has read it in its turn, and the other one replaces it before that
    // turn submits its changes.
    subscribe(&mut world, topic);
    world.machine.workers[SUBSCRIBER].run_half_turn();
    retain(&mut world, 2, topic);
    world.machine.workers[PUBLISHER].run_turn();
    give_segments_back(&mut world);
    world.machine.workers[SUBSCRIBER].run_half_turn();
    while world.machine.commit() {}
    world.machine.workers.iter_mut().for_each(|worker| {
        SteppedWorker::run_turn(worker);
    });
    world
        .transfer_at_most_to_client(SUBSCRIBER, SUBACK_BYTES)
        .unwrap();
    assert_eq!(received(&world), []);
    world.cut(SUBSCRIBER);
    world.restart(SimStorage::kill).unwrap();
    world.connect(SUBSCRIBER, ConnectOptions::lasting(EXPIRY_SECS_MAX));
    world.settle().unwrap();
    assert_eq!(received(&world).first(), Some(&(1, topic)));
}
