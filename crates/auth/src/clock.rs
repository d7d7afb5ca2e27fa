//! The only place of this crate that reads clocks.
#![expect(
    clippy::disallowed_methods,
    reason = "everything else takes the time as an argument"
)]

use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// In the form of file times.
pub(crate) fn wall() -> SystemTime {
    SystemTime::now()
}

/// Seconds of the Unix epoch.
pub(crate) fn wall_secs() -> u64 {
    let since = wall().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Time since the first call; never goes back.
pub(crate) fn uptime() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}
