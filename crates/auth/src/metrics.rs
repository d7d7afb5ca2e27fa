//! Counters: plain numbers that only grow, read by name.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one backend.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    allowed: AtomicU64,
    denied: AtomicU64,
    ignored: AtomicU64,
    errors: AtomicU64,
    timeouts: AtomicU64,
    cache_hits: AtomicU64,
    cache_misses: AtomicU64,
    permitted: AtomicU64,
    refused: AtomicU64,
    undecided: AtomicU64,
}

/// The counts of one backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackendCounts {
    /// Logins that it allowed.
    pub allowed: u64,
    /// Logins that it denied.
    pub denied: u64,
    /// Logins that it left to the next one.
    pub ignored: u64,
    /// Requests that it could not answer, time-outs included: each of them is a denial.
    pub errors: u64,
    /// Requests that it did not answer in time.
    pub timeouts: u64,
    /// Passwords that were found in the cache.
    pub cache_hits: u64,
    /// Passwords that were not, and had to be hashed.
    pub cache_misses: u64,
    /// Publishes and subscriptions that it allowed, where it decides about topics.
    pub permitted: u64,
    /// Publishes and subscriptions that it denied.
    pub refused: u64,
    /// Publishes and subscriptions that it had no opinion about.
    pub undecided: u64,
}

/// The counts of all backends together, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GatekeeperMetrics {
    /// Logins that were admitted.
    pub admitted: u64,
    /// Logins that were denied.
    pub denied: u64,
    /// Those of them that were denied because too many were waiting.
    pub overloaded: u64,
    /// Logins that wait for an answer now.
    pub pending: u64,
}

impl Counters {
    pub(crate) fn allowed(&self) {
        add(&self.allowed);
    }

    pub(crate) fn denied(&self) {
        add(&self.denied);
    }

    pub(crate) fn ignored(&self) {
        add(&self.ignored);
    }

    pub(crate) fn error(&self) {
        add(&self.errors);
    }

    pub(crate) fn timeout(&self) {
        add(&self.timeouts);
    }

    pub(crate) fn cache_hit(&self) {
        add(&self.cache_hits);
    }

    pub(crate) fn cache_miss(&self) {
        add(&self.cache_misses);
    }

    /// It was asked about a topic.
    pub(crate) fn decided(&self, decision: Option<bool>) {
        add(match decision {
            Some(true) => &self.permitted,
            Some(false) => &self.refused,
            None => &self.undecided,
        });
    }

    pub(crate) fn snapshot(&self) -> BackendCounts {
        BackendCounts {
            allowed: read(&self.allowed),
            denied: read(&self.denied),
            ignored: read(&self.ignored),
            errors: read(&self.errors),
            timeouts: read(&self.timeouts),
            cache_hits: read(&self.cache_hits),
            cache_misses: read(&self.cache_misses),
            permitted: read(&self.permitted),
            refused: read(&self.refused),
            undecided: read(&self.undecided),
        }
    }
}

pub(crate) fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
