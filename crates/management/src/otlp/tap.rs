//! Lines of the log on their way to the exporter: a queue that never waits.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use thrum_broker::{ExportCounts, ExportFate, Signal};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;
use tokio::time::timeout;

use super::logs::LogRecord;
use crate::clock::Clock;

/// Lines that wait: two seconds of a log that is full of clients, at its limit of 100 a second for
/// each of connecting and disconnecting, and room for everything else.
const LINES_MAX: usize = 2048;
/// Bytes of these lines.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// Lines of a request: with [`RECORD_BYTES_MAX`](super::logs::RECORD_BYTES_MAX) at most 2 MiB, and
/// collectors take 4 MiB.
const BATCH_MAX: usize = 256;
/// Lines wait so long for others, to share a request.
const BATCH_TIME: Duration = Duration::from_secs(1);

thread_local! {
    /// Lines of this thread are not exported: each export would cause the next one.
    static IS_EXPORTER: Cell<bool> = const { Cell::new(false) };
}

/// Lines of this thread are not exported from now on.
pub(super) fn silence_this_thread() {
    IS_EXPORTER.set(true);
}

/// Where lines of the log leave for the exporter. The log of a program has one.
#[derive(Debug, Default)]
pub struct LogTap {
    /// A line costs no more than this where logs are not exported.
    is_open: AtomicBool,
    /// Written when the export begins, changes or ends; threads that log read it.
    to: RwLock<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    lines: Sender<LogRecord>,
    bytes: Arc<AtomicUsize>,
    counts: Arc<ExportCounts>,
    clock: Clock,
}

/// The other end of a tap.
#[derive(Debug)]
pub(super) struct Lines {
    receiver: Receiver<LogRecord>,
    bytes: Arc<AtomicUsize>,
    counts: Arc<ExportCounts>,
}

impl LogTap {
    /// A tap that is closed.
    pub const fn new() -> Self {
        Self {
            is_open: AtomicBool::new(false),
            to: RwLock::new(None),
        }
    }

    /// Lines go to the result from now on.
    pub(super) fn open(&self, counts: Arc<ExportCounts>) -> Lines {
        let (sender, receiver) = channel(LINES_MAX);
        let bytes = Arc::new(AtomicUsize::new(0));
        let open = Open {
            lines: sender,
            bytes: Arc::clone(&bytes),
            counts: Arc::clone(&counts),
            clock: Clock::start(),
        };
        *self.to.write().unwrap_or_else(PoisonError::into_inner) = Some(open);
        self.is_open.store(true, Ordering::Relaxed);
        Lines {
            receiver,
            bytes,
            counts,
        }
    }

    /// Lines go nowhere from now on.
    pub(super) fn close(&self) {
        self.is_open.store(false, Ordering::Relaxed);
        *self.to.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether a line of this thread is exported.
    pub(super) fn takes_lines(&self) -> bool {
        self.is_open.load(Ordering::Relaxed) && !IS_EXPORTER.get()
    }

    /// Passes a line on; one that finds the queue full is dropped and counted.
    pub(super) fn pass(&self, mut line: LogRecord) {
        let open = self.to.read().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = open.as_ref() else { return };
        line.wall_millis = open.clock.now().wall_millis;
        let bytes = line.bytes();
        let before = open.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > BYTES_MAX || open.lines.try_send(line).is_err() {
            open.bytes.fetch_sub(bytes, Ordering::Relaxed);
            open.counts.add(Signal::Logs, ExportFate::QueueFull, 1);
        }
    }
}

impl Lines {
    /// The next lines, the oldest first; none if there are none and will be none.
    pub(super) async fn batch(&mut self, stopping: &mut watch::Receiver<bool>) -> Vec<LogRecord> {
        let mut batch = Vec::new();
        tokio::select! {
            () = gather(&mut self.receiver, &mut batch) => {}
            // The sender is dropped at the end, too.
            _ = stopping.wait_for(|is_stopping| *is_stopping) => {}
        }
        while batch.len() < BATCH_MAX {
            let Ok(line) = self.receiver.try_recv() else {
                break;
            };
            batch.push(line);
        }
        let bytes = batch.iter().map(LogRecord::bytes).sum();
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        batch
    }
}

/// Waits for a line, and a while for more.
async fn gather(lines: &mut Receiver<LogRecord>, batch: &mut Vec<LogRecord>) {
    if lines.recv_many(batch, BATCH_MAX).await == 0 {
        return;
    }
    let rest = async {
        while batch.len() < BATCH_MAX {
            let room = BATCH_MAX - batch.len();
            if lines.recv_many(batch, room).await == 0 {
                break;
            }
        }
    };
    // A smaller batch is one as well.
    timeout(BATCH_TIME, rest).await.ok();
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.receiver.close();
        let left = self.receiver.len() as u64;
        self.counts.add(Signal::Logs, ExportFate::Stopped, left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> LogRecord {
        LogRecord {
            text: text.to_owned(),
            ..LogRecord::default()
        }
    }

    fn block_on(test: impl Future<Output = ()>) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(test);
    }

    #[test]
    fn a_full_queue_drops_the_newest_lines_and_counts_them() {
        let (tap, counts) = (LogTap::new(), Arc::default());
        let mut lines = tap.open(Arc::clone(&counts));
        for number in 0..LINES_MAX + 5 {
            tap.pass(line(&number.to_string()));
        }
        assert_eq!(counts.of(Signal::Logs).queue_full, 5);
        block_on(async {
            let (_stop, mut stopping) = watch::channel(false);
            for first in (0..LINES_MAX).step_by(BATCH_MAX) {
                let batch = lines.batch(&mut stopping).await;
                assert_eq!(batch.len(), BATCH_MAX);
                assert_eq!(batch[0].text, first.to_string());
            }
            tap.pass(line("late"));
            assert_eq!(lines.batch(&mut stopping).await[0].text, "late");
        });
    }

    #[test]
    fn long_lines_are_limited_by_their_bytes() {
        let (tap, counts) = (LogTap::new(), Arc::default());
        let mut lines = tap.open(Arc::clone(&counts));
        let long = "x".repeat(BYTES_MAX / 4);
        for _ in 0..6 {
            tap.pass(line(&long));
        }
        let passed = lines.receiver.len() as u64;
        assert_eq!((passed, counts.of(Signal::Logs).queue_full), (3, 3));
        block_on(async {
            let (_stop, mut stopping) = watch::channel(false);
            lines.batch(&mut stopping).await;
        });
        tap.pass(line(&long));
        assert_eq!(lines.receiver.len(), 1, "there is room again");
    }

    #[test]
    fn lines_that_wait_at_the_end_are_told_and_then_counted() {
        let (tap, counts) = (LogTap::new(), Arc::default());
        let mut lines = tap.open(Arc::clone(&counts));
        block_on(async {
            let (_stop, mut stopping) = watch::channel(true);
            assert!(lines.batch(&mut stopping).await.is_empty());
            tap.pass(line("a"));
            assert_eq!(lines.batch(&mut stopping).await.len(), 1);
        });
        tap.pass(line("b"));
        tap.close();
        tap.pass(line("c"));
        drop(lines);
        assert_eq!(counts.of(Signal::Logs).stopped, 1);
    }

    #[test]
    fn lines_of_the_exporter_are_not_exported() {
        let tap = LogTap::new();
        assert!(!tap.takes_lines(), "it is closed");
        let _lines = tap.open(Arc::default());
        assert!(tap.takes_lines());
        let of_exporter = || {
            silence_this_thread();
            tap.takes_lines()
        };
        let taken = std::thread::scope(|scope| scope.spawn(of_exporter).join());
        assert!(!taken.expect("no panic"));
    }
}
