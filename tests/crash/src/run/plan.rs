//! The plan of a run, and its environment variables.

use std::env;
use std::hash::{BuildHasher, RandomState};

/// The seed of every plan, so that the choices of a run change only with the code; `make night`
/// draws others.
const SEED: u64 = 20_261_123;

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Part of the names of its files.
    pub name: &'static str,
    /// All choices follow from it; the moments of the kills follow from the machine too.
    pub seed: u64,
    /// Number of kills.
    pub kills: u64,
    /// Whether what was not synced is taken back after most kills.
    pub loses_power: bool,
    /// Worker threads; none is one in the first third, three in the second, and either in the last.
    pub workers: Option<u32>,
}

impl Plan {
    /// A plan with this number of kills, unless `THRUM_CRASH_KILLS` gives another; its seed is
    /// fixed, unless `THRUM_CRASH_SEED` is another or `random`, and `THRUM_CRASH_WORKERS` fixes the
    /// number of workers.
    ///
    /// # Panics
    /// A variable is not a number.
    pub fn new(name: &'static str, kills: u64, loses_power: bool) -> Self {
        let number = |name: &str| env::var(name).ok().map(|text| number(name, &text));
        Self {
            name,
            seed: seed(name, env::var("THRUM_CRASH_SEED").ok().as_deref()),
            kills: number("THRUM_CRASH_KILLS").unwrap_or(kills),
            loses_power,
            workers: number("THRUM_CRASH_WORKERS").and_then(|workers| u32::try_from(workers).ok()),
        }
    }
}

fn number(name: &str, text: &str) -> u64 {
    text.parse()
        .unwrap_or_else(|_| panic!("{name} is a number, not {text}"))
}

#[expect(
    clippy::print_stdout,
    reason = "a run that proves too little fails without `Run::fail`, which prints the seed"
)]
fn seed(name: &str, asked: Option<&str>) -> u64 {
    let seed = match asked {
        None => SEED,
        Some("random") => RandomState::new().hash_one(name),
        Some(text) => number("THRUM_CRASH_SEED", text),
    };
    println!("{name}: THRUM_CRASH_SEED={seed}");
    seed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_is_fixed_unless_another_or_a_random_one_is_asked_for() {
        assert_eq!(seed("a", None), SEED);
        assert_eq!(seed("a", Some("7")), 7);
        assert_ne!(seed("a", Some("random")), seed("a", Some("random")));
    }
}
