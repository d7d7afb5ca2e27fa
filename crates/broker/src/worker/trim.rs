//! What a crowd of clients needed goes back to the system when the crowd has gone.

use std::time::Duration;

use thrum_engine::timers::Target;

use crate::system;
use crate::traffic::Traffic;

/// A worker with no more than so many clients keeps what it has: it is some 2 MiB.
const CROWD: usize = 4096;
/// Less than this part of them is left.
const LEFT: usize = 4;
/// Time in which the crowd may come back, as after a break of the network.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a worker remembers of its clients' number.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    most: usize,
    /// The timer is armed.
    watched: bool,
}

/// The allocator looks through all its free memory; workers that allocate nothing do not wait for
/// it. False if it does not.
pub(crate) fn give_back(how: impl FnOnce() + Send + 'static) -> bool {
    let trimmer = std::thread::Builder::new().name("trim".to_owned());
    let spawned = trimmer.spawn(how);
    if let Err(error) = &spawned {
        tracing::debug!(%error, "free memory stays with the process");
    }
    spawned.is_ok()
}

impl Crowd {
    /// Once a turn: clients have come, or gone.
    pub(super) fn watch(&mut self, traffic: &mut Traffic) {
        self.most = self.most.max(present(traffic));
        if !self.watched && self.has_gone(traffic) {
            self.watched = true;
            let core = &mut traffic.engine.core;
            core.timers
                .insert(core.turn.now.plus(PATIENCE), Target::Trim);
        }
    }

    /// The patience is over.
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
