//! A configuration that is read again while the broker runs: all of it is taken over, or nothing.

use std::time::Duration;

use super::host::Host;
use crate::assemble::Node;
use crate::config::{self, Config, Loaded, Request};
use crate::logging::Level;

/// Settings that this program reads once, in addition to those the broker names.
const AT_START_ONLY: [&str; 2] = ["log.format", "node.name"];

/// The inputs of a reload.
#[derive(Debug)]
pub(super) struct Reload {
    request: Request,
    host: Host,
    level: Level,
    at_start: Config,
    in_force: Config,
}

impl Reload {
    /// For a broker that started with `config`.
    pub(super) fn new(request: Request, host: Host, config: Config, level: Level) -> Self {
        Self {
            request,
            host,
            level,
            at_start: config.clone(),
            in_force: config,
        }
    }

    /// Time between two looks at certificates; zero for none.
    pub(super) fn look_interval(&self) -> Duration {
        self.in_force.tls.reload_interval
    }

    /// Reads the configuration again and logs the result.
    pub(super) fn run(&mut self, broker: &mut Node) {
        match config::load(&self.request) {
            Ok(fresh) => self.take_over(fresh, broker),
            Err(problems) => {
                tracing::error!(
                    "configuration not reloaded, the old one stays in force: {problems}"
                );
            }
        }
    }

    fn take_over(&mut self, mut fresh: Loaded, broker: &mut Node) {
        self.host.fit(&mut fresh);
        let mut waiting = match broker.reload(&mut fresh) {
            Ok(waiting) => waiting,
            Err(error) => {
                tracing::error!(
                    "configuration not reloaded, the old one stays in force: {error:#}"
                );
                return;
            }
        };
        let fresh = fresh.config;
        if let Err(error) = self.level.set(&fresh.log.level) {
            tracing::error!(%error, "log level not changed");
        }
        let mut here = config::changed_keys(&self.at_start, &fresh);
        here.retain(|key| AT_START_ONLY.contains(&key.as_str()));
        waiting.append(&mut here);
        let changed = config::changed_keys(&self.in_force, &fresh);
        let changed = if changed.is_empty() {
            "nothing".to_owned()
        } else {
            changed.join(", ")
        };
        if waiting.is_empty() {
            tracing::info!(%changed, "configuration reloaded");
        } else {
            let waiting = waiting.join(", ");
            tracing::warn!(%changed, %waiting, "configuration reloaded, some keys wait for a restart");
        }
        self.in_force = fresh;
    }
}
