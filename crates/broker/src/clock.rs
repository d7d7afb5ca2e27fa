//! The one place of the broker that reads the clock.

#[cfg(test)]
use std::sync::Arc;
#[cfg(test)]
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use thrum_protocol::Time;

/// Counts milliseconds since the Unix epoch: the wall clock is read once, at the start of the node, and from there on time
/// only goes forward, whatever happens to the wall clock.
#[derive(Debug)]
pub(crate) struct Clock {
    /// Since the Unix epoch, at the start of the node.
    started: Duration,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// The monotonic clock of the system, and what it showed at the start of the node.
    System(Instant),
    /// Milliseconds since the Unix epoch, as a test sets them.
    #[cfg(test)]
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// A clock that starts now.
    #[expect(
        clippy::disallowed_methods,
        reason = "this module is where the clock is read"
    )]
    pub(crate) fn start() -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            // A machine that believes to live before 1970 counts from there.
            started: wall.unwrap_or_default(),
            source: Source::System(Instant::now()),
        }
    }

    /// A clock that a test moves, in milliseconds since the Unix epoch.
    #[cfg(test)]
    pub(crate) fn manual(millis: &Arc<AtomicU64>) -> Self {
        Self {
            started: Duration::from_millis(millis.load(Ordering::Relaxed)),
            source: Source::Manual(Arc::clone(millis)),
        }
    }

    /// Time since the start of the node.
    pub(crate) fn elapsed(&self) -> Duration {
        match &self.source {
            Source::System(started) => started.elapsed(),
            #[cfg(test)]
            Source::Manual(millis) => {
                Duration::from_millis(millis.load(Ordering::Relaxed)).saturating_sub(self.started)
            }
        }
    }

    /// The present moment. One `clock_gettime` in user space.
    pub(crate) fn now(&self) -> Time {
        to_time(self.started + self.elapsed())
    }

    /// When the node started.
    pub(crate) fn started(&self) -> Time {
        to_time(self.started)
    }
}

fn to_time(since_epoch: Duration) -> Time {
    Time::from_millis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_counts_from_the_unix_epoch() {
        let clock = Clock::start();
        // The first of January 2020 has passed.
        assert!(clock.started() > Time::from_millis(1_577_836_800_000));
        assert!(clock.now() >= clock.started());
    }

    #[test]
    fn a_test_moves_its_clock() {
        let millis = Arc::new(AtomicU64::new(5_000));
        let clock = Clock::manual(&millis);
        millis.store(7_500, Ordering::Relaxed);
        assert_eq!(clock.started(), Time::from_millis(5_000));
        assert_eq!(clock.now(), Time::from_millis(7_500));
        assert_eq!(clock.elapsed(), Duration::from_millis(2_500));
    }
}
