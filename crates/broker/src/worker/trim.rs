//! Returns memory to the system after a large number of clients has disconnected.

use std::time::Duration;

use thrum_engine::timers::Target;

use crate::system;
use crate::traffic::Traffic;

/// A worker with at most this number of clients keeps its memory: some 2 MiB.
const UNTRIMMED_CLIENTS_MAX: usize = 4096;
/// Memory is returned when fewer than this part of the clients are left.
const TRIM_DIVISOR: usize = 4;
/// Time for the clients to reconnect, as after a network failure.
const RECONNECT_TIME: Duration = Duration::from_secs(2);

/// The highest number of clients of a worker since its last trim.
#[derive(Debug, Default)]
pub(super) struct ClientPeak {
    most: usize,
    /// The timer is armed.
    watched: bool,
}

/// Runs `how` in a thread, as the allocator searches all its free memory; workers that do not
/// allocate are not blocked. False if no memory is returned.
pub(crate) fn return_memory(how: impl FnOnce() + Send + 'static) -> bool {
    let trimmer = std::thread::Builder::new().name("trim".to_owned());
    let spawned = trimmer.spawn(how);
    if let Err(error) = &spawned {
        tracing::debug!(%error, "no thread to return free memory to the system");
    }
    spawned.is_ok()
}

impl ClientPeak {
    /// Called once per turn: checks how many clients have disconnected.
    pub(super) fn watch(&mut self, traffic: &mut Traffic) {
        self.most = self.most.max(present(traffic));
        if !self.watched && self.has_gone(traffic) {
            self.watched = true;
            let core = &mut traffic.engine.core;
            core.timers
                .insert(core.turn.now.plus(RECONNECT_TIME), Target::Trim);
        }
    }

    /// The time to reconnect has passed: returns memory if the clients are still absent.
    pub(super) fn trim(&mut self, traffic: &mut Traffic) {
        self.watched = false;
        if !self.has_gone(traffic) {
            return;
        }
        self.most = present(traffic);
        traffic.edge.connections.shrink_to_fit();
        traffic.engine.shrink();
        return_memory(system::return_free_memory);
    }

    fn has_gone(&self, traffic: &Traffic) -> bool {
        self.most > UNTRIMMED_CLIENTS_MAX && present(traffic) < self.most / TRIM_DIVISOR
    }
}

fn present(traffic: &Traffic) -> usize {
    let sessions = traffic.engine.core.sessions.len();
    traffic.edge.connections.len().max(sessions)
}
