//! Memory: its limit is watched, and what a crowd of clients needed goes back to the system when the crowd has gone.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Target, Worker};
use crate::metrics::Counter;
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
        // The allocator looks through all its free memory; workers that allocate nothing do not wait for it.
        let trimmer = std::thread::Builder::new().name("trim".to_owned());
        if let Err(error) = trimmer.spawn(system::give_back_memory) {
            tracing::debug!(%error, "free memory stays with the process");
        }
    }

    /// While memory is over its limit, publishers are read less.
    pub(super) fn watch_memory(&mut self) {
        let limit = self.local.settings.memory_bytes;
        let bytes = if limit == 0 {
            0
        } else {
            system::resident_bytes().unwrap_or(0)
        };
        let pressed = self.memory.is_short(bytes, limit);
        let before = self.node.pressure.swap(pressed, Ordering::Relaxed);
        if pressed {
            self.local.row().add(Counter::LimitMemory, 1);
        }
        if pressed && !before {
            tracing::warn!(
                limit,
                "memory is over limits.memory; publishers are read less"
            );
        } else if before && !pressed {
            tracing::info!("memory is below limits.memory again");
        }
    }

    fn present(&self) -> usize {
        self.local.connections.len().max(self.local.clients.len())
    }

    fn has_crowd_gone(&self) -> bool {
        self.crowd.most > CROWD && self.present() < self.crowd.most / LEFT
    }
}
