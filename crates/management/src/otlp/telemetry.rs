//! The thread that exports, from its start to its end.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use thrum_broker::{Queries, Signal};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::attributes;
use super::deliver::{Batch, Collector, Deliverer};
use super::exporter::Exporter;
use super::logs;
use super::metrics::{self, Period};
use super::settings::{TelemetryError, TelemetrySettings};
use super::spans;
use super::tap::{Lines, LogTap, silence_this_thread};
use crate::clock::Clock;
use crate::metrics::families;

/// Time for what waits at the end.
const FLUSH_TIME: Duration = Duration::from_secs(2);
/// Spans are fetched so often: the workers do not wake this thread.
const SPANS_INTERVAL: Duration = Duration::from_secs(1);
/// Spans of a request: 2 MiB with the longest texts, and collectors take 4 MiB.
const SPANS_MAX: usize = 512;
/// Threads that look up the name of the collector.
const BLOCKING_MAX: usize = 2;

/// An export that runs.
#[derive(Debug)]
pub struct Telemetry {
    settings: TelemetrySettings,
    tap: &'static LogTap,
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

/// An export that ends.
#[derive(Debug)]
#[must_use = "without waiting for it, what it has is lost at the end of the program"]
pub struct Ending(JoinHandle<()>);

/// What is exported.
struct Exports {
    settings: TelemetrySettings,
    queries: Queries,
    resource: Vec<u8>,
    clock: Clock,
    collector: Arc<Collector>,
    stopping: watch::Receiver<bool>,
}

impl Telemetry {
    /// Begins to export; `node` is the name of the broker.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(
        settings: TelemetrySettings,
        node: &str,
        queries: Queries,
        tap: &'static LogTap,
    ) -> Result<Self, TelemetryError> {
        let counts = queries.export().counts();
        counts.turn_on();
        let (stop, stopping) = watch::channel(false);
        let version = queries.figures().node.version;
        let collector = Collector::new(Exporter::new(&settings)?, Arc::clone(&counts));
        let exports = Exports {
            resource: attributes::resource(node, version, &settings.resource),
            settings: settings.clone(),
            queries,
            clock: Clock::start(),
            collector: Arc::new(collector),
            stopping,
        };
        let lines = settings.logs.then(|| tap.open(counts));
        let thread = spawn(exports, lines).inspect_err(|_| tap.close())?;
        Ok(Self {
            settings,
            tap,
            stop,
            thread,
        })
    }

    /// What it exports.
    pub fn settings(&self) -> &TelemetrySettings {
        &self.settings
    }

    /// Ends: what waits is exported meanwhile, as far as two seconds allow.
    pub fn end(self) -> Ending {
        self.tap.close();
        self.stop.send_replace(true);
        Ending(self.thread)
    }
}

impl Ending {
    /// Waits for its end.
    pub fn wait(self) {
        if self.0.join().is_err() {
            tracing::error!("the thread that exports telemetry ended by a panic");
        }
    }
}

fn spawn(exports: Exports, lines: Option<Lines>) -> io::Result<JoinHandle<()>> {
    let runtime = Builder::new_current_thread()
        .max_blocking_threads(BLOCKING_MAX)
        .enable_all()
        .build()?;
    let thread = std::thread::Builder::new().name("telemetry".to_owned());
    thread.spawn(move || {
        silence_this_thread();
        runtime.block_on(exports.run(lines));
        // A look-up of a name cannot be ended.
        runtime.shutdown_background();
    })
}

impl Exports {
    /// Exports until the end, and what waits then.
    async fn run(self, lines: Option<Lines>) {
        let mut stopping = self.stopping.clone();
        let all = async { tokio::join!(self.metrics(), self.logs(lines), self.spans()) };
        let end = async {
            // The sender is dropped at the end, too.
            stopping.wait_for(|is_stopping| *is_stopping).await.ok();
            sleep(FLUSH_TIME).await;
        };
        tokio::select! {
            _ = all => {}
            () = end => tracing::debug!("telemetry that waits is cut off by the end"),
        }
    }

    fn deliverer(&self, signal: Signal) -> Deliverer {
        let pause = self.settings.first_pause;
        let (collector, stopping) = (Arc::clone(&self.collector), self.stopping.clone());
        Deliverer::new(collector, signal, pause, stopping)
    }

    /// Exports the metrics at once, each interval, and at the end.
    async fn metrics(&self) {
        if !self.settings.metrics {
            return;
        }
        let mut deliverer = self.deliverer(Signal::Metrics);
        let mut ticks = interval(self.settings.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_last = false;
        while !is_last {
            let tick = async {
                ticks.tick().await;
            };
            deliverer.wait(tick).await;
            is_last = deliverer.is_stopping();
            // Those of now, also in a repetition: sums contain what the request before had.
            deliverer.deliver(|| self.metrics_of_now()).await;
        }
    }

    fn metrics_of_now(&self) -> Batch {
        let figures = self.queries.figures();
        let nanos = |millis: u64| millis.saturating_mul(1_000_000);
        let period = Period {
            start: nanos(figures.node.started_at),
            now: nanos(self.clock.now().wall_millis),
        };
        let (bytes, items) = metrics::request(&self.resource, &families(&figures, None), period);
        Batch {
            bytes: Arc::new(bytes),
            items,
        }
    }

    /// Exports the spans of messages each second, and at the end.
    async fn spans(&self) {
        if !self.settings.traces {
            return;
        }
        let mut deliverer = self.deliverer(Signal::Traces);
        let started_at = self.queries.figures().node.started_at;
        let started_at = started_at.saturating_mul(1_000_000);
        let mut is_last = false;
        while !is_last {
            deliverer.wait(sleep(SPANS_INTERVAL)).await;
            is_last = deliverer.is_stopping();
            self.deliver_spans(&mut deliverer, started_at).await;
        }
    }

    /// Sends the spans that have ended. Those that are not sent when the end comes wait for the
    /// next export.
    async fn deliver_spans(&self, deliverer: &mut Deliverer, started_at: u64) {
        loop {
            let found = self.queries.export().take_spans(SPANS_MAX);
            if found.is_empty() {
                return;
            }
            let batch = Batch {
                bytes: Arc::new(spans::request(&self.resource, &found, started_at)),
                items: found.len() as u64,
            };
            drop(found);
            if !deliverer.deliver(|| batch.clone()).await {
                return;
            }
        }
    }

    /// Exports the lines of the log until there are none at the end.
    async fn logs(&self, lines: Option<Lines>) {
        let Some(mut lines) = lines else { return };
        let mut deliverer = self.deliverer(Signal::Logs);
        loop {
            let found = lines.batch(&mut deliverer.stopping).await;
            if found.is_empty() {
                return;
            }
            let batch = Batch {
                bytes: Arc::new(logs::request(&self.resource, &found)),
                items: found.len() as u64,
            };
            drop(found);
            deliverer.deliver(|| batch.clone()).await;
        }
    }
}
