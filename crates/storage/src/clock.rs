//! The only place in the storage that reads the clock: for the duration of a commit, never for
//! stored times.

use std::time::{Duration, Instant};

/// Start of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts a measurement.
    #[expect(
        clippy::disallowed_methods,
        reason = "only this module reads the clock"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the start.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
