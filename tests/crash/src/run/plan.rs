//! What a run does, and how the environment changes it.

use std::{env, fs};

/// What a run does.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Part of the names of its files.
    pub name: &'static str,
    /// All choices follow from it; the moments of the kills follow from the machine too.
    pub seed: u64,
    /// How often the broker is killed.
    pub kills: u64,
    /// Whether what was not synced is taken back after most kills.
    pub loses_power: bool,
    /// Worker threads; none is one in the first third, three in the second, and either in the last.
    pub workers: Option<u32>,
}

impl Plan {
    /// A plan with this number of kills, unless `THRUM_CRASH_KILLS` says another; its seed is `THRUM_CRASH_SEED` or new,
    /// and `THRUM_CRASH_WORKERS` fixes the number of workers.
    ///
    /// # Panics
    /// A variable is no number.
    pub fn new(name: &'static str, kills: u64, loses_power: bool) -> Self {
        let number = |name: &str| {
            let text = env::var(name).ok()?;
            let number = text.parse::<u64>();
            Some(number.unwrap_or_else(|_| panic!("{name} is a number, not {text}")))
        };
        let new_seed = || u64::from(std::process::id()) << 20 | clock_bits();
        Self {
            name,
            seed: number("THRUM_CRASH_SEED").unwrap_or_else(new_seed),
            kills: number("THRUM_CRASH_KILLS").unwrap_or(kills),
            loses_power,
            workers: number("THRUM_CRASH_WORKERS").and_then(|workers| u32::try_from(workers).ok()),
        }
    }
}

/// Some bits that differ from run to run.
fn clock_bits() -> u64 {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_digit).take(12).collect();
    digits.parse::<u64>().unwrap_or(0)
}
