//! Whole nodes under simulation: real workers, a virtual clock, a network that breaks, and clients that remember
//! everything. One seed is one run.

mod checker;
mod client;
mod disk;
mod finale;
mod history;
mod link;
mod machine;
mod plan;
mod random;
mod seat;
mod steps;
mod world;

use std::ops::Range;

use thrum_codec::QoS;

use world::{Failure, World};

/// Runs of the simulation in each test. For a night: `THRUM_SIM_SEEDS=1000..100000 cargo test --release -p thrum-broker --lib
/// simulation`.
const SEEDS: Range<u64> = 0..1000;
/// Events before a complaint that are shown with it.
const SHOWN: usize = 100;

fn run(seed: u64) -> Result<World, Failure> {
    let mut world = World::new(seed);
    let watcher = world.watcher();
    let mut go = || {
        world.settle()?;
        let event = world.clients[watcher].subscribe("w/+", QoS::ExactlyOnce);
        event.into_iter().for_each(|event| world.note(event));
        world.settle()?;
        for _ in 0..world.plan.steps {
            world.step()?;
            if std::env::var("STOP").is_ok_and(|at| world.history.len() > at.parse().unwrap()) {
                for seat in &world.machine.seats {
                    for (slot, client) in &seat.worker.local.clients {
                        let connection = client
                            .connection_slot()
                            .map(|key| &seat.worker.local.connections[key]);
                        println!(
                            "{slot} {} {:?} {:?}\n{:?}",
                            client.session.client_id(),
                            client.session.backlog(),
                            client.session,
                            connection
                        );
                    }
                    println!(
                        "{:?} {:?}",
                        seat.worker.durable, seat.worker.local.depending
                    );
                }
            }
        }
        world.finale()
    };
    let ended = go();
    let checked = checker::check(&world.history, world.plan.allowances);
    let (place, complaint) = match (checked, ended) {
        (Err((place, complaint)), _) => (place, complaint),
        (Ok(()), Err(failure)) => (world.history.len(), failure),
        (Ok(()), Ok(())) => return Ok(world),
    };
    let from = place.saturating_sub(SHOWN);
    let shown = world.history.iter().enumerate().take(place + 1).skip(from);
    let lines: Vec<String> = shown
        .map(|(number, entry)| format!("{number} {} {:?}", entry.at, entry.event))
        .collect();
    Err(format!(
        "seed {seed}, event {place}: {complaint}\n{}\n{}\nRepeat it: THRUM_SIM_SEEDS={seed}..{} cargo test -p thrum-broker --lib \
         simulation",
        world.plan,
        lines.join("\n"),
        seed + 1
    ))
}

/// The seeds of one of the tests that share them.
fn seeds(part: u64, parts: u64) -> impl Iterator<Item = u64> {
    let range = std::env::var("THRUM_SIM_SEEDS").map_or(SEEDS, |text| {
        let (first, end) = text.split_once("..").unwrap();
        first.parse().unwrap()..end.parse().unwrap()
    });
    range.filter(move |seed| seed % parts == part)
}

fn run_all(part: u64, parts: u64) {
    for seed in seeds(part, parts) {
        if let Err(failure) = run(seed) {
            panic!("{failure}");
        }
    }
}

#[test]
fn a_node_keeps_its_promises_in_even_runs() {
    run_all(0, 2);
}

#[test]
fn a_node_keeps_its_promises_in_odd_runs() {
    run_all(1, 2);
}
