//! The only place of the bench that reads a clock or waits.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

/// Nanoseconds of the machine's monotonic clock: the same for every process of the machine.
pub fn monotonic_ns() -> u64 {
    nanos_of(clock_gettime(ClockId::Monotonic))
}

/// Steps of the monotonic clock in nanoseconds.
pub fn monotonic_resolution_ns() -> u64 {
    nanos_of(clock_getres(ClockId::Monotonic))
}

/// Nanoseconds that the calling thread has spent on a core.
pub fn thread_cpu_ns() -> u64 {
    nanos_of(clock_gettime(ClockId::ThreadCPUTime))
}

fn nanos_of(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * 1_000_000_000 + nanos
}

/// Seconds since 1970-01-01T00:00:00Z.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Milliseconds since 1970-01-01T00:00:00Z.
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Lets the calling thread rest; it may wake early.
pub fn rest(duration: Duration) {
    std::thread::park_timeout(duration);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_time_does_not_go_back() {
        let earlier = monotonic_ns();
        assert!(monotonic_ns() >= earlier);
    }
}
