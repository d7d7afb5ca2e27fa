//! A configuration looked at as a start does, without a port, a data directory or a thread being
//! taken.

use crate::clock::Clock;
use crate::config::Config;
use crate::listener::{self, NamedListener, StartError};
use crate::protection::BanKeeper;
use crate::{storage, system};

/// What a node could not start with, and what works but will not be liked.
#[derive(Debug, Default)]
pub struct Checked {
    /// Everything that a start would refuse.
    pub refused: Vec<StartError>,
    /// What a start would warn of, a line each: a certificate that has expired.
    pub warnings: Vec<String>,
}

/// A limit of memory has to be so many times what the program takes before anybody has connected.
const MEMORY_TIMES_MIN: u64 = 4;

/// Reads every file that a configuration names.
pub fn check(config: &Config) -> Checked {
    let mut checked = Checked::default();
    let now = Clock::start().now();
    for (name, listener) in &config.listeners {
        let of = NamedListener {
            name,
            config: listener,
        };
        match listener::check(config, of, now) {
            Ok(warnings) => checked.warnings.extend(warnings),
            Err(error) => checked.refused.push(error),
        }
    }
    if let Some(warning) = small_memory(config) {
        tracing::warn!("{warning}");
        checked.warnings.push(warning);
    }
    let bans = BanKeeper::check(config).map_err(StartError::Bans);
    let data_dir = storage::check(config).map_err(StartError::Storage);
    checked.refused.extend(bans.err());
    checked.refused.extend(data_dir.err());
    checked
}

/// Below the memory of the program itself nobody comes in, and little above it hardly anybody.
fn small_memory(config: &Config) -> Option<String> {
    let own = system::resident_bytes()?;
    is_small(config.limits.memory, own).then(|| {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        format!(
            "limits.memory leaves no room: the program takes {} MiB before anybody has connected, and clients are refused \
             (0x97) while all of it together takes more than {} MiB; set it to {} MiB or more",
            mib(own),
            mib(config.limits.memory),
            mib(own * MEMORY_TIMES_MIN)
        )
    })
}

const fn is_small(limit: u64, own: u64) -> bool {
    limit > 0 && limit < own * MEMORY_TIMES_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_memory_that_the_program_fills_by_itself_is_warned_of() {
        let mut config = Config::default();
        for (limit, is_warned) in [(0, false), (16_000_000, true), (1 << 40, false)] {
            config.limits.memory = limit;
            assert_eq!(small_memory(&config).is_some(), is_warned, "{limit}");
        }
        assert!(is_small(79, 20) && !is_small(80, 20));
    }
}
