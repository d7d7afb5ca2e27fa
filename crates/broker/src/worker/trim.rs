//! What a crowd of clients needed goes back to the system when the crowd has gone.

use std::time::Duration;

use super::{Target, Worker};
use crate::system;

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
pub(super) fn give_back(how: impl FnOnce() + Send + 'static) -> bool {
    let trimmer = std::thread::Builder::new().name("trim".to_owned());
    let spawned = trimmer.spawn(how);
    if let Err(error) = &spawned {
        tracing::debug!(%error, "free memory stays with the process");
    }
    spawned.is_ok()
}

impl Worker {
    /// A client came.
    pub(super) fn crowd_grew(&mut self) {
        self.crowd.most = self.crowd.most.max(self.present());
    }

    /// A connection or a session ended.
    pub(super) fn crowd_shrank(&mut self) {
        if !self.crowd.watched && self.has_crowd_gone() {
            self.crowd.watched = true;
            self.timers
                .insert(self.local.now.plus(PATIENCE), Target::Trim);
        }
    }

    /// The patience is over.
    pub(super) fn trim(&mut self) {
        self.crowd.watched = false;
        if !self.has_crowd_gone() {
            return;
        }
        self.crowd.most = self.present();
        self.local.shrink();
        self.routes.forget();
        give_back(system::give_back_memory);
    }

    fn present(&self) -> usize {
        self.local.connections.len().max(self.local.clients.len())
    }

    fn has_crowd_gone(&self) -> bool {
        self.crowd.most > CROWD && self.present() < self.crowd.most / LEFT
    }
}
