//! A configuration looked at as a start does, without a port, a data directory or a thread being taken.

use crate::clock::Clock;
use crate::config::Config;
use crate::listener::{self, StartError};
use crate::protection::BanKeeper;
use crate::storage;

/// What a node could not start with, and what works but will not be liked.
#[derive(Debug, Default)]
pub struct Checked {
    /// Everything that a start would refuse.
    pub refused: Vec<StartError>,
    /// What a start would warn of, a line each: a certificate that has expired.
    pub warnings: Vec<String>,
}

/// Reads every file that a configuration names.
pub fn check(config: &Config) -> Checked {
    let mut checked = Checked::default();
    let now = Clock::start().now();
    for (name, listener) in &config.listeners {
        match listener::check(config, (name, listener), now) {
            Ok(warnings) => checked.warnings.extend(warnings),
            Err(error) => checked.refused.push(error),
        }
    }
    let bans = BanKeeper::check(config).map_err(StartError::Bans);
    let data_dir = storage::check(config).map_err(StartError::Storage);
    checked.refused.extend(bans.err());
    checked.refused.extend(data_dir.err());
    checked
}
