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
    pub(super) request: Request,
    host: Host,
    level: Level,
    /// The settings that the broker was started with.
    pub(super) at_start: Config,
    /// The settings in force, with those that wait for a restart, and their origins.
    pub(super) in_force: Loaded,
    /// Why the last reload failed. It becomes an alarm, and so has no line of a file.
    pub(super) failure: Option<String>,
}

/// What a reload has done.
#[derive(Clone, Debug, Default)]
#[cfg_attr(
    not(feature = "management"),
    expect(dead_code, reason = "the management interface reads it")
)]
pub(super) struct Outcome {
    /// The keys that have changed.
    pub(super) changed: Vec<String>,
    /// Keys that wait for a restart.
    pub(super) waiting: Vec<String>,
}

/// Whether a new value of a key takes effect at a restart.
pub(crate) fn needs_restart(key: &str) -> bool {
    AT_START_ONLY.contains(&key) || thrum_broker::Config::needs_restart(key)
}

impl Reload {
    /// For a broker that started with `loaded`.
    pub(super) fn new(request: Request, host: Host, loaded: Loaded, level: Level) -> Self {
        let request = Request {
            data_dir: Some(loaded.config.node.data_dir.clone()),
            ..request
        };
        Self {
            request,
            host,
            level,
            at_start: loaded.config.clone(),
            in_force: loaded,
            failure: None,
        }
    }

    /// Time between two looks at certificates; zero for none.
    pub(super) fn look_interval(&self) -> Duration {
        self.in_force.config.tls.reload_interval
    }

    /// Looks at the figures for alarms.
    pub(super) fn look_at_alarms(&self, broker: &Node) {
        broker.look_at_alarms(&self.in_force.config, self.failure.as_deref());
    }

    /// Reads the configuration again and logs the result.
    ///
    /// # Errors
    /// Why it is not taken over; the old one stays in force.
    pub(super) fn run(&mut self, broker: &mut Node) -> Result<Outcome, String> {
        let (taken, failure) = match config::load(&self.request) {
            Ok(fresh) => {
                let taken = self.take_over(fresh, broker);
                let failure = taken.as_ref().err().cloned();
                (taken, failure)
            }
            Err(problems) => {
                let failure = format!("something is wrong at {}", problems.places());
                (Err(problems.to_string()), Some(failure))
            }
        };
        self.failure = failure;
        if let Err(error) = &taken {
            tracing::error!("configuration not reloaded, the old one stays in force: {error}");
        }
        taken
    }

    /// Fits a configuration to this machine, as that in force was.
    pub(super) fn fit(&self, fresh: &mut Loaded) {
        self.host.fit(fresh);
    }

    /// Puts a configuration in force that was read, and logs what has changed.
    ///
    /// # Errors
    /// As [`Reload::run`], but without a line in the log.
    pub(super) fn take_over(
        &mut self,
        mut fresh: Loaded,
        broker: &mut Node,
    ) -> Result<Outcome, String> {
        self.fit(&mut fresh);
        let mut waiting = broker
            .reload(&mut fresh)
            .map_err(|error| format!("{error:#}"))?;
        if let Err(error) = self.level.set(&fresh.config.log.level) {
            tracing::error!(%error, "log level not changed");
        }
        let mut here = config::changed_keys(&self.at_start, &fresh.config);
        here.retain(|key| AT_START_ONLY.contains(&key.as_str()));
        waiting.append(&mut here);
        let changed = config::changed_keys(&self.in_force.config, &fresh.config);
        let words = if changed.is_empty() {
            "nothing".to_owned()
        } else {
            changed.join(", ")
        };
        if waiting.is_empty() {
            tracing::info!(changed = %words, "configuration reloaded");
        } else {
            let waiting = waiting.join(", ");
            tracing::warn!(changed = %words, %waiting, "configuration reloaded, some keys wait for a restart");
        }
        self.in_force = fresh;
        self.failure = None;
        Ok(Outcome { changed, waiting })
    }
}
