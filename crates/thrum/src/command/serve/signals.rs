//! Signals: stop gracefully, read the configuration again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals as Received;
use thrum_broker::Broker;

use super::open_files;
use crate::config::{self, Loaded, Request};
use crate::logging::Level;

/// Exit code of a program that was interrupted.
const INTERRUPTED: i32 = 130;

/// Settings that this program reads once, beside those the broker names.
const AT_START_ONLY: [&str; 2] = ["log.format", "node.name"];

/// Signals that arrived and wait to be served.
#[derive(Debug)]
pub(super) struct Signals {
    received: Received,
    stopping: Arc<AtomicBool>,
}

impl Signals {
    /// Takes the signals from now on.
    pub(super) fn new() -> io::Result<Self> {
        let stopping = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The second one, while the broker stops, ends the program at once.
            flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&stopping))?;
        }
        Ok(Self { received: Received::new([SIGHUP, SIGINT, SIGTERM])?, stopping })
    }

    /// Serves signals until one asks to stop.
    pub(super) fn serve(
        mut self,
        request: &Request,
        mut loaded: Loaded,
        level: &Level,
        files: u64,
        broker: &mut Broker,
    ) {
        for signal in self.received.forever() {
            if signal != SIGHUP {
                self.stopping.store(true, Ordering::SeqCst);
                tracing::info!("stopping; a second signal stops at once");
                return;
            }
            match config::load(request) {
                Ok(mut fresh) => {
                    open_files::bound(&mut fresh.config, files);
                    if take_over(&loaded, &fresh, level, broker) {
                        loaded = fresh;
                    }
                }
                Err(problems) => {
                    tracing::error!(%problems, "configuration not reloaded, the old one stays in force");
                }
            }
        }
    }
}

/// Gives the new configuration to those it concerns; false if it was refused as a whole.
fn take_over(old: &Loaded, fresh: &Loaded, level: &Level, broker: &mut Broker) -> bool {
    let changed = config::changed_keys(&old.config, &fresh.config);
    let mut waiting = match broker.reload(fresh.config.clone()) {
        Ok(waiting) => waiting,
        Err(error) => {
            tracing::error!(%error, "configuration not reloaded, the old one stays in force");
            return false;
        }
    };
    if let Err(error) = level.set(&fresh.config.log.level) {
        tracing::error!(%error, "log level not changed");
    }
    let here = changed.iter().filter(|key| AT_START_ONLY.contains(&key.as_str())).cloned();
    waiting.extend(here);
    if waiting.is_empty() {
        tracing::info!(changed = %listed(&changed), "configuration reloaded");
    } else {
        tracing::warn!(
            changed = %listed(&changed),
            waiting = %listed(&waiting),
            "configuration reloaded, some keys wait for a restart"
        );
    }
    true
}

fn listed(keys: &[String]) -> String {
    if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") }
}
