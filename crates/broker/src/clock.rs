//! The one place of the broker that reads the clock.

use std::time::Instant;

use thrum_protocol::Time;

/// Counts milliseconds from the start of the node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Instant,
}

impl Clock {
    /// A clock that starts now.
    #[expect(
        clippy::disallowed_methods,
        reason = "this module is where the clock is read"
    )]
    pub(crate) fn start() -> Self {
        Self {
            epoch: Instant::now(),
        }
    }

    /// Time since the start of the node.
    pub(crate) fn elapsed(&self) -> std::time::Duration {
        self.epoch.elapsed()
    }

    /// The present moment. One `clock_gettime` in user space.
    pub(crate) fn now(&self) -> Time {
        Time::from_millis(u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}
