//! Warnings about frequent events, with a limited rate.

use std::sync::atomic::{AtomicU64, Ordering};

/// Seconds between two warnings: a system that is down fails for every client.
const PAUSE_SECS: u64 = 10;

/// Lets a warning through now and then.
#[derive(Debug)]
pub(crate) struct WarningLimit {
    /// Second of [`clock::uptime`](crate::clock::uptime) from which there may be a warning again.
    quiet_until: AtomicU64,
    /// Number of suppressed warnings since the last one.
    silent: AtomicU64,
}

impl WarningLimit {
    /// The first warning goes through.
    pub(crate) const fn new() -> Self {
        Self {
            quiet_until: AtomicU64::new(0),
            silent: AtomicU64::new(0),
        }
    }

    /// Whether there may be a warning now, and how many were left out before it.
    pub(crate) fn now(&self, now: u64) -> Option<u64> {
        let next = self.quiet_until.load(Ordering::Relaxed);
        let is_first = now >= next
            && self
                .quiet_until
                .compare_exchange(next, now + PAUSE_SECS, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if is_first {
            return Some(self.silent.swap(0, Ordering::Relaxed));
        }
        self.silent.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_failures_are_warned_about_at_a_limited_rate() {
        let limit = WarningLimit::new();
        let said: Vec<_> = (0..100).filter_map(|second| limit.now(second)).collect();
        assert_eq!(said, [0, 9, 9, 9, 9, 9, 9, 9, 9, 9]);
        assert_eq!(limit.now(99), None);
    }
}
