//! The only module of the broker that reads the clock.

use std::sync::Arc;
#[cfg(test)]
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use rustix::time::{ClockId, clock_gettime};
use thrum_engine::node::WallClock;
use thrum_protocol::Time;
use thrum_storage::Recovered;

/// A clock in milliseconds that only moves forward, whatever happens to the wall clock. It starts
/// at the wall clock's time, or, on a node with storage, at the time that the log has reached.
#[derive(Debug)]
pub(crate) struct Clock {
    /// The time of this clock at the start of the node.
    started: Duration,
    source: Source,
    /// The wall clock relative to this clock, as the engines see it.
    wall: Arc<WallClock>,
}

#[derive(Debug)]
enum Source {
    /// The monotonic clock of the system, with its value at the start of the node.
    System(Instant),
    #[cfg(test)]
    Manual(ManualClock),
}

/// A clock that a test moves.
#[cfg(test)]
#[derive(Debug)]
struct ManualClock {
    /// Milliseconds since the Unix epoch.
    millis: Arc<AtomicU64>,
    /// Their value at the start of the node.
    started: u64,
    /// Milliseconds by which the wall clock of the machine is ahead of the time of the node. The
    /// node notices a change when it reads the wall clock.
    wall_ahead: AtomicI64,
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

    /// A clock that a test moves, in milliseconds; its wall clock is ahead by `wall_ahead`.
    #[cfg(test)]
    pub(crate) fn manual(millis: &Arc<AtomicU64>, wall_ahead: i64) -> Self {
        let started = millis.load(Ordering::Relaxed);
        let source = Source::Manual(ManualClock {
            millis: Arc::clone(millis),
            started,
            wall_ahead: AtomicI64::new(0),
        });
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

    /// Continues from the log's time, from which stored times count. Called at the start only.
    pub(crate) fn resume_after(&mut self, recovered: &Recovered) {
        let wall = millis_of(self.started);
        self.started = Duration::from_millis(recovered.log_time(wall));
        let shared = Arc::get_mut(&mut self.wall);
        shared
            .expect("no engine shares the wall clock before the start")
            .resume_from(recovered, wall);
        #[cfg(test)]
        self.set_wall_ahead(self.wall.ahead());
    }

    /// The wall clock relative to this clock, for the engines.
    pub(crate) const fn wall_clock(&self) -> &Arc<WallClock> {
        &self.wall
    }

    /// Time since the start of the node.
    pub(crate) fn elapsed(&self) -> Duration {
        match &self.source {
            Source::System(started) => started.elapsed(),
            #[cfg(test)]
            Source::Manual(clock) => {
                let millis = clock.millis.load(Ordering::Relaxed);
                Duration::from_millis(millis.saturating_sub(clock.started))
            }
        }
    }

    /// The present time. One `clock_gettime` in user space.
    pub(crate) fn now(&self) -> Time {
        self.at(self.elapsed())
    }

    /// The present time, rounded up to the next millisecond.
    pub(crate) fn rounded_up(&self) -> Time {
        const ALMOST: Duration = Duration::from_nanos(999_999);
        self.at(self.elapsed() + ALMOST)
    }

    /// The time of this clock that long after the start of the node.
    pub(crate) fn at(&self, elapsed: Duration) -> Time {
        to_time(self.started + elapsed)
    }

    /// Compares this clock with the wall clock, by which tokens, bans and certificates expire;
    /// called at an interval. Returns the seconds by which the wall clock is ahead.
    pub(crate) fn update_wall_clock(&self) -> i64 {
        self.read_ahead() / 1000
    }

    fn read_ahead(&self) -> i64 {
        let ahead = match &self.source {
            Source::System(_) => {
                let ours = millis_of(self.started + self.elapsed());
                signed(millis_of(wall())) - signed(ours)
            }
            #[cfg(test)]
            Source::Manual(clock) => clock.wall_ahead.load(Ordering::Relaxed),
        };
        self.wall.set_ahead(ahead);
        ahead
    }

    /// The present time of the wall clock.
    pub(crate) fn wall_now(&self) -> Time {
        self.update_wall_clock();
        let seconds = self.wall.millis(self.now()) / 1000;
        Time::from_millis(seconds.saturating_mul(1000))
    }

    /// The time of the node's start.
    pub(crate) fn started(&self) -> Time {
        to_time(self.started)
    }

    /// Sets the wall clock of the machine in a test.
    #[cfg(test)]
    pub(crate) fn set_wall_ahead(&self, millis: i64) {
        if let Source::Manual(clock) = &self.source {
            clock.wall_ahead.store(millis, Ordering::Relaxed);
        }
    }
}

/// The time that the calling thread has spent on a core.
pub(crate) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The time of the wall clock; a time before 1970 counts as 1970.
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
            assert_eq!(clock.update_wall_clock(), ahead);
            assert_eq!(clock.wall_now(), Time::from_millis(wall * 1000));
            assert_eq!(clock.wall_clock().millis(clock.now()), wall * 1000);
        }
    }

    #[test]
    fn a_wall_clock_that_is_not_set_is_not_ahead() {
        assert_eq!(Clock::start().update_wall_clock().abs(), 0);
    }

    #[test]
    fn a_clock_goes_on_from_the_time_of_the_log() {
        let recovered = Recovered {
            clock: Some(ClockNote::next(None, 70_000, 5_000)),
            ..Recovered::default()
        };
        let millis = Arc::new(AtomicU64::new(8_000));
        let mut clock = Clock::manual(&millis, 0);
        clock.resume_after(&recovered);
        assert_eq!(clock.started(), Time::from_millis(73_000));
        assert_eq!(clock.wall_clock().millis(clock.started()), 8_000);
        let mut clock = Clock::start();
        clock.resume_after(&recovered);
        assert!(clock.now() >= clock.started());
        assert!(clock.now().since(clock.started()) < Duration::from_mins(10));
    }

    #[test]
    fn a_time_is_rounded_up_unless_it_is_whole() {
        let mut clock = Clock::manual(&Arc::new(AtomicU64::new(5_000)), 0);
        assert_eq!(clock.rounded_up(), Time::from_millis(5_000));
        clock.started += Duration::from_nanos(1);
        assert_eq!(clock.now(), Time::from_millis(5_000));
        assert_eq!(clock.rounded_up(), Time::from_millis(5_001));
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
