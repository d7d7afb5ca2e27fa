//! The one place of the client commands that reads the monotonic clock.

use std::time::Instant;

use thrum_protocol::Time;

/// Time since the command began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now(self) -> Time {
        Time::default().plus(self.0.elapsed())
    }
}
