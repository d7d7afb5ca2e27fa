//! The thread that exports, from its start to its end.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use thrum_broker::{NodeFigures, Signal, SpanTaker};
use thrum_files::stand_back;
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
use crate::metrics::Measured;
use crate::program::Managed;
use crate::security::Security;

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
    measured: Measured,
    /// None without traces.
    spans: Option<SpanTaker>,
    resource: Vec<u8>,
    /// The start of the broker, in nanoseconds of the Unix epoch.
    started_ns: u64,
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
        managed: &Managed,
        security: Security,
        tap: &'static LogTap,
    ) -> Result<Self, TelemetryError> {
        let queries = managed.queries.clone();
        let counts = queries.export().counts();
        counts.turn_on();
        let (stop, stopping) = watch::channel(false);
        let NodeFigures {
            version,
            started_at,
            ..
        } = queries.figures().node;
        let collector = Collector::new(Exporter::new(&settings)?, Arc::clone(&counts));
        let exports = Exports {
            resource: attributes::resource(node, version, &settings.resource),
            settings: settings.clone(),
            spans: settings.traces.then(|| queries.export().span_taker()),
            measured: Measured {
                queries,
                alarms: managed.alarms(),
                security,
                program: managed.program.clone(),
            },
            clock: Clock::start(),
            collector: Arc::new(collector),
            stopping,
            started_ns: nanos(started_at),
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

/// Milliseconds as nanoseconds.
const fn nanos(millis: u64) -> u64 {
    millis.saturating_mul(1_000_000)
}

fn spawn(exports: Exports, lines: Option<Lines>) -> io::Result<JoinHandle<()>> {
    let runtime = Builder::new_current_thread()
        .max_blocking_threads(BLOCKING_MAX)
        .enable_all()
        .build()?;
    let thread = std::thread::Builder::new().name("telemetry".to_owned());
    thread.spawn(move || {
        silence_this_thread();
        stand_back();
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
        let period = Period {
            start: self.started_ns,
            now: nanos(self.clock.now().wall_millis),
        };
        let families = self.measured.families();
        let (bytes, items) = metrics::request(&self.resource, &families, period);
        Batch {
            bytes: Arc::new(bytes),
            items,
        }
    }

    /// Exports the spans of messages each second, and at the end.
    async fn spans(&self) {
        let Some(spans) = &self.spans else { return };
        let mut deliverer = self.deliverer(Signal::Traces);
        let mut is_last = false;
        while !is_last {
            deliverer.wait(sleep(SPANS_INTERVAL)).await;
            is_last = deliverer.is_stopping();
            self.deliver_spans(spans, &mut deliverer).await;
        }
    }

    /// Sends the spans that have ended. Those that are not sent when the end comes go out with the
    /// next export, if that has begun and has traces.
    async fn deliver_spans(&self, spans: &SpanTaker, deliverer: &mut Deliverer) {
        loop {
            let found = spans.take(SPANS_MAX);
            if found.is_empty() {
                return;
            }
            let batch = Batch {
                bytes: Arc::new(spans::request(&self.resource, &found, self.started_ns)),
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
