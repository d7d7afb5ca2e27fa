//! The one place of the client commands that reads the monotonic clock.

use std::time::{Duration, Instant};

use thrum_protocol::Time;

/// Time since the command began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// The same with a finer unit.
    pub(super) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    pub(super) fn now(self) -> Time {
        Time::default().plus(self.0.elapsed())
    }
}
