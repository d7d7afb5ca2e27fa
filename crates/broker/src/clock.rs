//! The one place of the broker that reads the clock.

use std::sync::Arc;
#[cfg(test)]
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use thrum_engine::node::WallClock;
use thrum_protocol::Time;
use thrum_storage::Recovered;

/// Counts milliseconds: from what the wall clock shows at the start of the node, or on a node with
/// storage from where the log's time has got to; from there on time only goes forward, whatever
/// happens to the wall clock.
#[derive(Debug)]
pub(crate) struct Clock {
    /// What it showed at the start of the node.
    started: Duration,
    source: Source,
    /// What this clock sees of the wall clock, as the engines know it.
    wall: Arc<WallClock>,
}

#[derive(Debug)]
enum Source {
    /// The monotonic clock of the system, and what it showed at the start of the node.
    System(Instant),
    /// Milliseconds since the Unix epoch, as a test sets them, and what they were at the start of
    /// the node.
    #[cfg(test)]
    Manual(Arc<AtomicU64>, u64),
}

impl Clock {
    /// A clock that starts now.
    #[expect(
        clippy::disallowed_methods,
        reason = "this module is where the clock is read"
    )]
    pub(crate) fn start() -> Self {
        Self::new(wall(), Source::System(Instant::now()))
    }

    /// A clock that a test moves, in milliseconds, and whose wall clock is ahead of that.
    #[cfg(test)]
    pub(crate) fn manual(millis: &Arc<AtomicU64>, wall_ahead: i64) -> Self {
        let started = millis.load(Ordering::Relaxed);
        let source = Source::Manual(Arc::clone(millis), started);
        let wall = started.saturating_add_signed(wall_ahead);
        Self::new(Duration::from_millis(wall), source)
    }

    fn new(started: Duration, source: Source) -> Self {
        Self {
            started,
            source,
            wall: Arc::default(),
        }
    }

    /// Goes on from the log's time: what is stored counts from it. To be called at the start.
    pub(crate) fn go_on(&mut self, recovered: &Recovered) {
        let wall = millis_of(self.started);
        self.started = Duration::from_millis(recovered.log_time(wall));
        let shared = Arc::get_mut(&mut self.wall);
        shared
            .expect("nobody has it before the start")
            .resume_from(recovered, wall);
    }

    /// What this clock sees of the wall clock, for the engines.
    pub(crate) const fn of_wall(&self) -> &Arc<WallClock> {
        &self.wall
    }

    /// Time since the start of the node.
    pub(crate) fn elapsed(&self) -> Duration {
        match &self.source {
            Source::System(started) => started.elapsed(),
            #[cfg(test)]
            Source::Manual(millis, started) => {
                Duration::from_millis(millis.load(Ordering::Relaxed).saturating_sub(*started))
            }
        }
    }

    /// The present moment. One `clock_gettime` in user space.
    pub(crate) fn now(&self) -> Time {
        to_time(self.started + self.elapsed())
    }

    /// Looks at the wall clock, which ends of tokens, bans and certificates are written by; to be
    /// called now and then. Seconds by which it is ahead of ours.
    pub(crate) fn look_at_wall(&self) -> i64 {
        self.read_ahead() / 1000
    }

    fn read_ahead(&self) -> i64 {
        let ahead = match &self.source {
            Source::System(_) => {
                let ours = millis_of(self.started + self.elapsed());
                signed(millis_of(wall())) - signed(ours)
            }
            #[cfg(test)]
            Source::Manual(..) => return self.wall.ahead(),
        };
        self.wall.set_ahead(ahead);
        ahead
    }

    /// What the wall clock shows now.
    pub(crate) fn wall_now(&self) -> Time {
        self.look_at_wall();
        let seconds = self.wall.millis(self.now()) / 1000;
        Time::from_millis(seconds.saturating_mul(1000))
    }

    /// When the node started.
    pub(crate) fn started(&self) -> Time {
        to_time(self.started)
    }

    /// A test sets the wall clock.
    #[cfg(test)]
    pub(crate) fn set_wall_ahead(&self, millis: i64) {
        self.wall.set_ahead(millis);
    }
}

/// What the wall clock shows; a machine that believes to live before 1970 counts from there.
#[expect(
    clippy::disallowed_methods,
    reason = "this module is where the clock is read"
)]
pub(crate) fn wall() -> Duration {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    wall.unwrap_or_default()
}

fn millis_of(since_epoch: Duration) -> u64 {
    u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX)
}

fn signed(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}

fn to_time(since_epoch: Duration) -> Time {
    Time::from_millis(millis_of(since_epoch))
}

#[cfg(test)]
mod tests {
    use thrum_storage::ClockNote;

    use super::*;

    #[test]
    fn a_node_counts_from_the_unix_epoch() {
        let clock = Clock::start();
        // The first of January 2020 has passed.
        assert!(clock.started() > Time::from_millis(1_577_836_800_000));
        assert!(clock.now() >= clock.started());
    }

    #[test]
    fn a_look_at_the_wall_clock_is_known_to_the_engines() {
        let clock = Clock::manual(&Arc::new(AtomicU64::new(5_000)), 0);
        for (ahead, wall) in [(31_536_000, 31_536_005), (-4, 1)] {
            clock.set_wall_ahead(ahead * 1000);
            assert_eq!(clock.look_at_wall(), ahead);
            assert_eq!(clock.wall_now(), Time::from_millis(wall * 1000));
            assert_eq!(clock.of_wall().millis(clock.now()), wall * 1000);
        }
    }

    #[test]
    fn a_wall_clock_that_is_not_set_is_not_ahead() {
        assert_eq!(Clock::start().look_at_wall().abs(), 0);
    }

    #[test]
    fn a_clock_goes_on_from_the_time_of_the_log() {
        let recovered = Recovered {
            clock: Some(ClockNote::next(None, 70_000, 5_000)),
            ..Recovered::default()
        };
        let millis = Arc::new(AtomicU64::new(8_000));
        let mut clock = Clock::manual(&millis, 0);
        clock.go_on(&recovered);
        assert_eq!(clock.started(), Time::from_millis(73_000));
        assert_eq!(clock.of_wall().millis(clock.started()), 8_000);
        let mut clock = Clock::start();
        clock.go_on(&recovered);
        assert!(clock.now() >= clock.started());
        assert!(clock.now().since(clock.started()) < Duration::from_mins(10));
    }

    #[test]
    fn a_test_moves_its_clock() {
        let millis = Arc::new(AtomicU64::new(5_000));
        let clock = Clock::manual(&millis, 0);
        millis.store(7_500, Ordering::Relaxed);
        assert_eq!(clock.started(), Time::from_millis(5_000));
        assert_eq!(clock.now(), Time::from_millis(7_500));
        assert_eq!(clock.elapsed(), Duration::from_millis(2_500));
    }
}
