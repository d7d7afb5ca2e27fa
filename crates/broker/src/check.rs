//! Checks a configuration as a start does, without opening a port, a data directory or a thread.

use crate::clock::Clock;
use crate::config::Config;
use crate::listener::{self, NamedListener, StartError};
use crate::protection::BanKeeper;
use crate::{sinks, storage, system};

/// Errors that would prevent a start, and warnings.
#[derive(Debug, Default)]
pub struct Checked {
    /// The errors with which a start would fail.
    pub refused: Vec<StartError>,
    /// The warnings of a start, a line each: a certificate that has expired, for example.
    pub warnings: Vec<String>,
}

/// The limit of memory must be at least this multiple of the program's memory without clients.
const MEMORY_TIMES_MIN: u64 = 4;

/// Checks a configuration, and reads every file that it names.
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
    let sinks = sinks::check(config);
    checked
        .refused
        .extend(sinks.into_iter().map(StartError::Sink));
    checked.refused.extend(bans.err());
    checked.refused.extend(data_dir.err());
    checked
}

/// Warns of a limit below the memory of the program itself, with which all clients would be
/// refused, and of a limit little above it, with which nearly all would be.
fn small_memory(config: &Config) -> Option<String> {
    let own = system::resident_bytes()?;
    is_small(config.limits.memory, own).then(|| {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        format!(
            "limits.memory leaves no room: the program takes {} MiB without clients, and clients are refused \
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
    use crate::config::{Bind, ListenerConfig};

    use super::*;

    #[test]
    fn a_socket_in_the_data_directory_prevents_a_start() {
        let mut config = Config::default();
        config.node.data_dir = "/nonexistent/data".into();
        let is_refused = |config: &Config| {
            let mut refused = check(config).refused.into_iter();
            refused.any(|error| error.to_string().contains("is in the data directory"))
        };
        let bind = |path: &str| vec![Bind::Unix(path.into())];
        config.listeners.clear();
        for (path, expected) in [
            ("/nonexistent/data/users.jsonl", true),
            ("/nonexistent/run/mqtt.sock", false),
        ] {
            let listener = ListenerConfig {
                bind: bind(path),
                ..ListenerConfig::default()
            };
            config.listeners.insert("local".to_owned(), listener);
            assert_eq!(is_refused(&config), expected, "{path}");
        }
    }

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
