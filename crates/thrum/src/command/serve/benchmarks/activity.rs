//! What the runs of a broker do, as figures for its metrics.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use thrum_management::BenchmarkActivity;

/// What the runs of a broker do, and how they ended; read without a lock.
#[derive(Debug, Default)]
pub(super) struct Activity {
    is_running: AtomicBool,
    memory_bytes: AtomicU64,
    done: AtomicU64,
    stopped: AtomicU64,
    failed: AtomicU64,
}

impl Activity {
    /// The figures of this moment.
    pub(super) fn figures(&self) -> BenchmarkActivity {
        let figure = |of: &AtomicU64| of.load(Ordering::Relaxed);
        BenchmarkActivity {
            is_running: self.is_running.load(Ordering::Relaxed),
            memory_bytes: figure(&self.memory_bytes),
            done: figure(&self.done),
            stopped: figure(&self.stopped),
            failed: figure(&self.failed),
        }
    }

    /// A run begins.
    pub(super) fn begin(&self) {
        self.is_running.store(true, Ordering::Relaxed);
    }

    /// Its process takes so much memory.
    pub(super) fn take_memory(&self, bytes: u64) {
        self.memory_bytes.store(bytes, Ordering::Relaxed);
    }

    /// It ends in a state.
    pub(super) fn end(&self, state: &str) {
        self.is_running.store(false, Ordering::Relaxed);
        self.memory_bytes.store(0, Ordering::Relaxed);
        let count = match state {
            "done" => &self.done,
            "stopped" => &self.stopped,
            _ => &self.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_runs_say_what_runs_and_how_others_ended() {
        let activity = Activity::default();
        activity.begin();
        activity.take_memory(7);
        let running = activity.figures();
        assert_eq!((running.is_running, running.memory_bytes), (true, 7));
        for state in ["done", "stopped", "failed", "failed"] {
            activity.end(state);
        }
        let ended = BenchmarkActivity {
            done: 1,
            stopped: 1,
            failed: 2,
            ..BenchmarkActivity::default()
        };
        assert_eq!(activity.figures(), ended);
    }
}
