//! The figures of the node as they change: pulses, and the seconds of the last 15 minutes.
//!
//! A pulse reads counters where they are counted, without asking a worker. Two of them give rates.
//! Whoever has a timer enters one each second; nothing here has one.

mod history;
mod pulse;

pub(crate) use history::History;
pub use history::{HISTORY_SECONDS, LIVE_FIGURES, LiveFigure, LiveSecond, LiveUnit};
pub use pulse::Pulse;

use super::query::{QuerySender, StreamNote};
use thrum_engine::node::metrics::Counter;

/// The figures of a node as they change.
#[derive(Clone, Copy, Debug)]
pub struct Live<'a>(pub(super) &'a QuerySender);

impl Live<'_> {
    /// The counters of this moment that rates are made of. No worker is asked.
    pub fn pulse(&self) -> Pulse {
        pulse::pulse(self.0)
    }

    /// Enters the second since the last call into the history.
    pub fn enter_second(&self) {
        let pulse = self.pulse();
        self.0.control.history().enter(pulse);
    }

    /// The seconds after `since`, which is in milliseconds of the Unix epoch, the oldest one first;
    /// none if nobody enters them.
    pub fn history(&self, since: u64) -> Option<Vec<LiveSecond>> {
        self.0.control.history().since(since)
    }

    /// Counts what became of a live stream.
    pub fn note_stream(&self, note: StreamNote) {
        let counter = match note {
            StreamNote::Refused => Counter::StreamsRefused,
            StreamNote::Cut => Counter::StreamsCut,
            StreamNote::Skipped => Counter::StreamStatesSkipped,
        };
        let metrics = &self.0.node().state.metrics;
        metrics.add_elsewhere(counter, 1);
    }

    /// CPU time of each worker since the start in milliseconds, as far as the system tells it.
    pub fn worker_millis(&self) -> Vec<Option<u64>> {
        let times = crate::process::thread_millis();
        let workers = 0..self.0.node().workers();
        workers
            .map(|worker| times.get(&format!("worker-{worker}")).copied())
            .collect()
    }
}
