//! A configuration that is read again while the broker runs: all of it is taken over, or nothing.

use thrum_broker::{Broker, Config};

use super::host::Host;
use crate::config::{self, Loaded, Request};
use crate::logging::Level;

/// Settings that this program reads once, beside those the broker names.
const AT_START_ONLY: [&str; 2] = ["log.format", "node.name"];

/// What a reload needs.
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

    /// Reads the configuration again and logs what came of it.
    pub(super) fn run(&mut self, broker: &Broker) {
        match config::load(&self.request) {
            Ok(fresh) => self.take_over(fresh, broker),
            Err(problems) => {
                tracing::error!(
                    "configuration not reloaded, the old one stays in force: {problems}"
                );
            }
        }
    }

    fn take_over(&mut self, mut fresh: Loaded, broker: &Broker) {
        self.host.fit(&mut fresh);
        let fresh = fresh.config;
        let mut waiting = broker.reload(&fresh);
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
