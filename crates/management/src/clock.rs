//! The only place of this crate that reads clocks.

#[cfg(test)]
use std::sync::Arc;
#[cfg(test)]
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A moment on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Now {
    /// Milliseconds of the Unix epoch, for what is shown, stored, or agreed upon with others. They
    /// jump when the clock of the machine is set.
    pub(crate) wall_millis: u64,
    /// Time since the start, for what must neither end early nor last longer when the clock is set.
    pub(crate) uptime: Duration,
}

/// The clocks of this machine.
#[derive(Clone, Debug)]
pub(crate) struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    /// The start.
    System(Instant),
    /// Milliseconds since the start; the Unix epoch began 2,000,000,000 s before it.
    #[cfg(test)]
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// Clocks that start now.
    #[expect(clippy::disallowed_methods, reason = "the clock is read here")]
    pub(crate) fn start() -> Self {
        Self(Source::System(Instant::now()))
    }

    /// The present moment.
    #[expect(clippy::disallowed_methods, reason = "the clock is read here")]
    pub(crate) fn now(&self) -> Now {
        match &self.0 {
            Source::System(start) => {
                let wall = SystemTime::now().duration_since(UNIX_EPOCH);
                let wall = wall.unwrap_or_default().as_millis();
                Now {
                    wall_millis: u64::try_from(wall).unwrap_or(u64::MAX),
                    uptime: start.elapsed(),
                }
            }
            #[cfg(test)]
            Source::Manual(millis) => Now::after(millis.load(Ordering::SeqCst)),
        }
    }
}

#[cfg(test)]
impl Clock {
    /// Clocks that a test moves, in milliseconds since the start.
    pub(crate) fn manual() -> (Self, Arc<AtomicU64>) {
        let millis = Arc::new(AtomicU64::new(0));
        (Self(Source::Manual(Arc::clone(&millis))), millis)
    }
}

#[cfg(test)]
impl Now {
    /// So many milliseconds after the start of a manual clock.
    pub(crate) const fn after(millis: u64) -> Self {
        Self {
            wall_millis: 2_000_000_000_000 + millis,
            uptime: Duration::from_millis(millis),
        }
    }
}
