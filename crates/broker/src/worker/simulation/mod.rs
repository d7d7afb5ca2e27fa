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

use world::{Failure, World};

/// Runs of the simulation in each test. For a night: `THRUM_SIM_SEEDS=1000..100000 cargo test --release -p thrum-broker --lib
/// simulation`.
const SEEDS: Range<u64> = 0..1000;
/// Events before a complaint that are shown with it.
const SHOWN: usize = 1000;

fn run(seed: u64) -> Result<World, Failure> {
    let mut world = World::new(seed);
    let mut go = || {
        world.prelude()?;
        for _ in 0..world.plan.steps {
            world.step()?;
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

#[test]
fn cov() {
    use crate::metrics::Counter;
    use history::Event;
    let mut n = std::collections::BTreeMap::<String, u64>::new();
    for seed in seeds(0, 1) {
        let world = run(seed).unwrap();
        let mut add = |k: &str, v: u64| *n.entry(k.to_owned()).or_default() += v;
        add("events", world.history.len() as u64);
        for e in &world.history {
            match e.event {
                Event::Received {
                    dup, qos, retain, ..
                } => add(&format!("received {qos:?} dup {dup} retain {retain}"), 1),
                Event::Gone { how, .. } => add(
                    &format!("gone {how:?}").chars().take(24).collect::<String>(),
                    1,
                ),
                Event::Connected {
                    session_present, ..
                } => add(&format!("connected {session_present}"), 1),
                Event::Accepted { outcome, .. } => add(&format!("accepted {outcome:?}"), 1),
                Event::Sent { message, .. } => add(
                    &format!("sent {:?} {}", message.qos, &message.topic[..1]),
                    1,
                ),
                other => add(
                    &format!("{other:?}")
                        .chars()
                        .take_while(|c| c.is_alphabetic())
                        .collect::<String>(),
                    1,
                ),
            }
        }
        for c in [
            (Counter::Takeovers, "takeovers"),
            (Counter::Handovers, "handovers"),
            (Counter::LimitOutput, "limit output"),
            (Counter::PublishersPaused, "paused"),
            (Counter::SharedRedispatched, "redispatched"),
            (Counter::Violations, "violations"),
            (Counter::Queued, "queued"),
            (Counter::SessionsExpired, "expired"),
            (Counter::KeepAliveTimeouts, "keepalive"),
            (Counter::DroppedQueueFull, "dropped full"),
            (Counter::StorageRefused, "storage refused"),
            (Counter::DroppedSlowConsumer, "slow"),
            (Counter::DroppedExpired, "message expired"),
            (Counter::MailboxFull, "mailbox full"),
            (Counter::DroppedNoSharedMember, "no member"),
        ] {
            add(c.1, world.machine.node.metrics.total(c.0));
        }
    }
    for (k, v) in n {
        println!("{k}: {v}");
    }
}
