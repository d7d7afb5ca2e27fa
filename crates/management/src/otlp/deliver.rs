//! A request until the collector has it: again after a pause where OTLP lets it be repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_lc_rs::rand;
use thrum_broker::{ExportCounts, ExportFate, Signal};
use tokio::sync::watch;
use tokio::time::sleep;

use super::exporter::{Exporter, Outcome};
use super::pauses::Pauses;

/// The collector, as all signals see it.
#[derive(Debug)]
pub(super) struct Collector {
    pub(super) exporter: Exporter,
    pub(super) counts: Arc<ExportCounts>,
    /// Its absence was told.
    is_away: AtomicBool,
    /// That it refuses a signal was told.
    refuses: [AtomicBool; Signal::ALL.len()],
}

/// A request with its number of items.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) bytes: Arc<Vec<u8>>,
    pub(super) items: u64,
}

/// Delivers the requests of one signal, one at a time.
#[derive(Debug)]
pub(super) struct Deliverer {
    collector: Arc<Collector>,
    signal: Signal,
    pauses: Pauses,
    pub(super) stopping: watch::Receiver<bool>,
}

/// Items that are under way; if they are dropped there, the end has cut them off.
struct UnderWay<'a> {
    collector: &'a Collector,
    signal: Signal,
    items: u64,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let counts = &self.collector.counts;
        counts.add(self.signal, ExportFate::Stopped, self.items);
    }
}

impl Collector {
    pub(super) fn new(exporter: Exporter, counts: Arc<ExportCounts>) -> Self {
        Self {
            exporter,
            counts,
            is_away: AtomicBool::new(false),
            refuses: Default::default(),
        }
    }

    fn note_away(&self, why: &str) {
        if !self.is_away.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                endpoint = self.exporter.endpoint(),
                error = why,
                "the OpenTelemetry collector does not take telemetry; the broker tries again with \
                 growing pauses"
            );
        }
    }

    fn note_accepted(&self) {
        if self.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!(
                endpoint = self.exporter.endpoint(),
                "the OpenTelemetry collector takes telemetry again"
            );
        }
    }

    /// Some items of a request were accepted, or all of them.
    fn note_rejected(&self, signal: Signal, rejected: u64, message: &str) {
        if rejected > 0 {
            let why = format!("it rejects {rejected} items of a request: {message}");
            self.note_refused(signal, &why);
        } else {
            self.refuses[signal as usize].store(false, Ordering::Relaxed);
        }
    }

    fn note_refused(&self, signal: Signal, why: &str) {
        if !self.refuses[signal as usize].swap(true, Ordering::Relaxed) {
            tracing::warn!(
                endpoint = self.exporter.endpoint(),
                signal = signal.name(),
                error = why,
                "the OpenTelemetry collector refuses telemetry, which is lost"
            );
        }
    }
}

impl Deliverer {
    pub(super) fn new(
        collector: Arc<Collector>,
        signal: Signal,
        first_pause: Duration,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self {
            collector,
            signal,
            pauses: Pauses::new(first_pause),
            stopping,
        }
    }

    /// Sends a request until the collector has it or refuses it, or the end comes. `make` makes it
    /// again for each repetition. False if the end came first.
    pub(super) async fn deliver(&mut self, make: impl Fn() -> Batch) -> bool {
        let collector = Arc::clone(&self.collector);
        let counts = &collector.counts;
        let mut under_way = UnderWay {
            collector: &collector,
            signal: self.signal,
            items: 0,
        };
        loop {
            let batch = make();
            under_way.items = batch.items;
            // Told before the request, as the end may come within it.
            let is_last = *self.stopping.borrow();
            match collector.exporter.send(self.signal, &batch.bytes).await {
                Outcome::Accepted { rejected, message } => {
                    under_way.items = 0;
                    let rejected = rejected.min(batch.items);
                    counts.add(self.signal, ExportFate::Exported, batch.items - rejected);
                    counts.add(self.signal, ExportFate::Refused, rejected);
                    self.pauses.reset();
                    collector.note_accepted();
                    collector.note_rejected(self.signal, rejected, &message);
                    return true;
                }
                Outcome::Refused(why) => {
                    under_way.items = 0;
                    counts.add_failed_request(self.signal);
                    counts.add(self.signal, ExportFate::Refused, batch.items);
                    self.pauses.reset();
                    collector.note_refused(self.signal, &why);
                    return true;
                }
                Outcome::Later { why, pause } => {
                    counts.add_failed_request(self.signal);
                    collector.note_away(&why);
                    let pause = self.pauses.next(pause, chance());
                    self.wait(sleep(pause)).await;
                }
            }
            if is_last {
                return false;
            }
        }
    }

    /// Waits, but not beyond the end.
    pub(super) async fn wait(&mut self, time: impl Future<Output = ()>) {
        tokio::select! {
            () = time => {}
            () = self.until_stop() => {}
        }
    }

    /// Waits for the end.
    async fn until_stop(&mut self) {
        // The sender is dropped at the end, too.
        self.stopping
            .wait_for(|is_stopping| *is_stopping)
            .await
            .ok();
    }

    /// Whether the end has come.
    pub(super) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }
}

/// A random number; without one, brokers may come back together, and no harm is done.
fn chance() -> u8 {
    let mut byte = [0];
    rand::fill(&mut byte).ok();
    byte[0]
}
