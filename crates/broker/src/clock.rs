//! The one place of the broker that reads the clock.

#[cfg(test)]
use std::sync::Arc;
#[cfg(test)]
use std::sync::atomic::AtomicU64;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use thrum_protocol::Time;

/// Counts milliseconds since the Unix epoch: the wall clock is read once, at the start of the node, and from there on time
/// only goes forward, whatever happens to the wall clock.
#[derive(Debug)]
pub(crate) struct Clock {
    /// Since the Unix epoch, at the start of the node.
    started: Duration,
    source: Source,
    /// Seconds by which the wall clock is ahead: it may have been set since the start, as on a device that has no clock of
    /// its own, and ours stands still while the machine sleeps.
    wall_ahead: AtomicI64,
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
            wall_ahead: AtomicI64::new(0),
        }
    }

    /// A clock that a test moves, in milliseconds since the Unix epoch.
    #[cfg(test)]
    pub(crate) fn manual(millis: &Arc<AtomicU64>) -> Self {
        Self {
            started: Duration::from_millis(millis.load(Ordering::Relaxed)),
            source: Source::Manual(Arc::clone(millis)),
            wall_ahead: AtomicI64::new(0),
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

    /// Looks at the wall clock, which ends of tokens and bans are written by; to be called now and then. Seconds by which
    /// it is ahead of ours.
    #[expect(
        clippy::disallowed_methods,
        reason = "this module is where the clock is read"
    )]
    pub(crate) fn look_at_wall(&self) -> i64 {
        let ahead = match &self.source {
            Source::System(_) => {
                let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                seconds_between(self.started + self.elapsed(), wall.unwrap_or_default())
            }
            #[cfg(test)]
            Source::Manual(_) => return self.wall_ahead.load(Ordering::Relaxed),
        };
        self.wall_ahead.store(ahead, Ordering::Relaxed);
        ahead
    }

    /// What the wall clock shows at a moment, in seconds of the Unix epoch.
    pub(crate) fn wall_seconds(&self, at: Time) -> u64 {
        let ahead = self.wall_ahead.load(Ordering::Relaxed);
        (at.as_millis() / 1000).saturating_add_signed(ahead)
    }

    /// The moment at which the wall clock shows that, in seconds of the Unix epoch.
    pub(crate) fn at_wall_seconds(&self, seconds: u64) -> Time {
        let ahead = self.wall_ahead.load(Ordering::Relaxed);
        let seconds = seconds.saturating_add_signed(ahead.saturating_neg());
        Time::from_millis(seconds.saturating_mul(1000))
    }

    /// When the node started.
    pub(crate) fn started(&self) -> Time {
        to_time(self.started)
    }
}

/// A second more or less is no difference: the one may be read just before its next second and the other behind it.
fn seconds_between(ours: Duration, wall: Duration) -> i64 {
    let between = |later: Duration, earlier: Duration| {
        let seconds = later.saturating_sub(earlier).as_secs();
        i64::try_from(seconds).unwrap_or(i64::MAX)
    };
    between(wall, ours) - between(ours, wall)
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
    fn ends_are_counted_by_the_wall_clock_also_after_it_was_set() {
        let clock = Clock::manual(&Arc::new(AtomicU64::new(5_000)));
        assert_eq!(clock.wall_seconds(clock.now()), 5);
        let year = 31_536_000;
        for (ahead, wall) in [(year, 5 + 31_536_000), (-4, 1), (-year, 0)] {
            clock.wall_ahead.store(ahead, Ordering::Relaxed);
            assert_eq!(clock.look_at_wall(), ahead);
            assert_eq!(clock.wall_seconds(clock.now()), wall);
        }
        clock.wall_ahead.store(year, Ordering::Relaxed);
        let end = clock.at_wall_seconds(31_536_000 + 65);
        assert_eq!(end, Time::from_millis(65_000));
        assert_eq!(clock.at_wall_seconds(7), Time::from_millis(0));
    }

    #[test]
    fn a_wall_clock_that_is_not_set_is_not_ahead() {
        assert_eq!(Clock::start().look_at_wall().abs(), 0);
        let second = Duration::from_secs;
        assert_eq!(seconds_between(second(7), second(60)), 53);
        assert_eq!(seconds_between(second(60), second(7)), -53);
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
