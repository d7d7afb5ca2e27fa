//! Returns memory to the system after a large number of clients has disconnected.

use std::time::Duration;

use thrum_engine::timers::Target;

use crate::system;
use crate::traffic::Traffic;

/// A worker with at most this number of clients keeps its memory: some 2 MiB.
const CROWD: usize = 4096;
/// Memory is returned when fewer than this part of the clients are left.
const LEFT: usize = 4;
/// Time for the clients to reconnect, as after a network failure.
const PATIENCE: Duration = Duration::from_secs(2);

/// The number of clients that a worker has seen.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    most: usize,
    /// The timer is armed.
    watched: bool,
}

/// The allocator searches all its free memory; workers that allocate nothing do not wait for it.
/// False if it returns none.
pub(crate) fn give_back(how: impl FnOnce() + Send + 'static) -> bool {
    let trimmer = std::thread::Builder::new().name("trim".to_owned());
    let spawned = trimmer.spawn(how);
    if let Err(error) = &spawned {
        tracing::debug!(%error, "free memory stays with the process");
    }
    spawned.is_ok()
}

impl Crowd {
    /// Once a turn: clients have connected or disconnected.
    pub(super) fn watch(&mut self, traffic: &mut Traffic) {
        self.most = self.most.max(present(traffic));
        if !self.watched && self.has_gone(traffic) {
            self.watched = true;
            let core = &mut traffic.engine.core;
            core.timers
                .insert(core.turn.now.plus(PATIENCE), Target::Trim);
        }
    }

    /// The time to reconnect has passed.
    pub(super) fn trim(&mut self, traffic: &mut Traffic) {
        self.watched = false;
        if !self.has_gone(traffic) {
            return;
        }
        self.most = present(traffic);
        traffic.edge.connections.shrink_to_fit();
        traffic.engine.shrink();
        give_back(system::give_back_memory);
    }

    fn has_gone(&self, traffic: &Traffic) -> bool {
        self.most > CROWD && present(traffic) < self.most / LEFT
    }
}

fn present(traffic: &Traffic) -> usize {
    let sessions = traffic.engine.core.sessions.len();
    traffic.edge.connections.len().max(sessions)
}
