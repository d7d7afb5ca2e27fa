//! The one place that reads the clock and waits: a black box is watched in real time.
#![expect(
    clippy::disallowed_methods,
    reason = "a black box is watched in real time"
)]

use std::time::{Duration, Instant};

/// Now.
pub fn now() -> Instant {
    Instant::now()
}

/// Waits; only for what cannot be waited for by an event.
pub fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}
