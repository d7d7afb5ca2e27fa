//! One run from its seed to its result.

use super::checker;
use super::history::Entry;
use super::world::{Failure, World};

/// Events shown before a violation.
const SHOWN: usize = 100;

/// Runs a seed; returns the world at the end, or the failure and how to repeat it.
pub(super) fn run(seed: u64) -> Result<World, Failure> {
    let mut world = World::new(seed);
    let ended = run_steps(&mut world);
    // A violation in the history explains more than a failure at the end.
    let checked = checker::check(&world.history, world.plan.allowances);
    let (place, violation) = match (checked, ended) {
        (Err((place, violation)), _) => (place, violation),
        (Ok(()), Err(failure)) => (world.history.len(), failure),
        (Ok(()), Ok(())) => return Ok(world),
    };
    Err(format!(
        "seed {seed}, event {place}: {violation}\n{}\n{}\nRepeat it: THRUM_SIM_SEEDS={seed}..{} cargo test -p thrum-broker \
         --lib simulation",
        world.plan,
        last_events(&world.history, place),
        seed + 1
    ))
}

fn run_steps(world: &mut World) -> Result<(), Failure> {
    world.set_up()?;
    for _ in 0..world.plan.steps {
        world.step()?;
    }
    world.complete()
}

fn last_events(history: &[Entry], place: usize) -> String {
    let from = place.saturating_sub(SHOWN);
    let shown = history.iter().enumerate().take(place + 1).skip(from);
    let lines: Vec<String> = shown
        .map(|(number, entry)| format!("{number} {} {:?}", entry.at, entry.event))
        .collect();
    lines.join("\n")
}
