//! What is counted: plain numbers that only grow, read by name.

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
}

/// What one backend has said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackendCounts {
    /// Logins that it allowed.
    pub allowed: u64,
    /// Logins that it denied.
    pub denied: u64,
    /// Logins that it left to the next one.
    pub ignored: u64,
    /// Questions that it could not answer, time-outs included: each of them is a denial.
    pub errors: u64,
    /// Questions that it did not answer in time.
    pub timeouts: u64,
    /// Passwords and decisions that were remembered.
    pub cache_hits: u64,
}

/// A backend and what it has said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendMetrics {
    /// Its name in the configuration.
    pub name: String,
    /// What it has said so far.
    pub counts: BackendCounts,
}

/// Everything that is counted, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatekeeperMetrics {
    /// Backends in the order of their names.
    pub backends: Vec<BackendMetrics>,
    /// Logins that were let in.
    pub admitted: u64,
    /// Logins that were not.
    pub denied: u64,
    /// Those of them that were denied because too many were waiting.
    pub overloaded: u64,
    /// Logins that wait for an answer now.
    pub pending: u64,
}

impl GatekeeperMetrics {
    /// Each figure and its topic.
    pub(crate) fn figures(&self) -> Vec<(String, u64)> {
        let mut figures = vec![
            ("admitted".to_owned(), self.admitted),
            ("denied".to_owned(), self.denied),
            ("overloaded".to_owned(), self.overloaded),
            ("pending".to_owned(), self.pending),
        ];
        for BackendMetrics { name, counts } in &self.backends {
            // What a name may hold and a level of a topic may not.
            let name = name.replace(['/', '+', '#'], "_");
            let counts = [
                ("allowed", counts.allowed),
                ("denied", counts.denied),
                ("ignored", counts.ignored),
                ("errors", counts.errors),
                ("timeouts", counts.timeouts),
                ("cache_hits", counts.cache_hits),
            ];
            figures.extend(counts.map(|(what, count)| (format!("backends/{name}/{what}"), count)));
        }
        figures
    }
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

    pub(crate) fn snapshot(&self) -> BackendCounts {
        BackendCounts {
            allowed: read(&self.allowed),
            denied: read(&self.denied),
            ignored: read(&self.ignored),
            errors: read(&self.errors),
            timeouts: read(&self.timeouts),
            cache_hits: read(&self.cache_hits),
        }
    }
}

pub(crate) fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_backend_stand_below_its_name_whatever_that_is() {
        let counters = Counters::default();
        counters.allowed();
        counters.error();
        let metrics = GatekeeperMetrics {
            backends: vec![BackendMetrics {
                name: "a/+#".to_owned(),
                counts: counters.snapshot(),
            }],
            pending: 3,
            ..GatekeeperMetrics::default()
        };
        let figures = metrics.figures();
        for expected in [
            ("pending", 3),
            ("backends/a___/allowed", 1),
            ("backends/a___/errors", 1),
            ("backends/a___/timeouts", 0),
        ] {
            let (topic, value) = expected;
            assert!(figures.contains(&(topic.to_owned(), value)), "{figures:?}");
        }
    }
}
