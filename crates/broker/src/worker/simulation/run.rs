//! One run from its seed to the verdict.

use super::checker;
use super::history::Entry;
use super::world::{Failure, World};

/// Events before a complaint that are shown with it.
const SHOWN: usize = 100;

/// Runs a seed; the world as it is at the end, or what went wrong and how to see it again.
pub(super) fn run(seed: u64) -> Result<World, Failure> {
    let mut world = World::new(seed);
    let ended = live(&mut world);
    // The client's observations before the end explain more than the end.
    let checked = checker::check(&world.history, world.plan.allowances);
    let (place, complaint) = match (checked, ended) {
        (Err((place, complaint)), _) => (place, complaint),
        (Ok(()), Err(failure)) => (world.history.len(), failure),
        (Ok(()), Ok(())) => return Ok(world),
    };
    Err(format!(
        "seed {seed}, event {place}: {complaint}\n{}\n{}\nRepeat it: THRUM_SIM_SEEDS={seed}..{} cargo test -p thrum-broker \
         --lib simulation",
        world.plan,
        last_events(&world.history, place),
        seed + 1
    ))
}

fn live(world: &mut World) -> Result<(), Failure> {
    world.prelude()?;
    for _ in 0..world.plan.steps {
        world.step()?;
    }
    world.finale()
}

fn last_events(history: &[Entry], place: usize) -> String {
    let from = place.saturating_sub(SHOWN);
    let shown = history.iter().enumerate().take(place + 1).skip(from);
    let lines: Vec<String> = shown
        .map(|(number, entry)| format!("{number} {} {:?}", entry.at, entry.event))
        .collect();
    lines.join("\n")
}
