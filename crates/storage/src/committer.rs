//! The thread that writes for all workers: what they hand in while one commit is under way is the next commit.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::clock::Stopwatch;
use crate::disk::Disk;
use crate::log::WriteError;
use crate::metrics::{Metrics, MetricsSnapshot};
use crate::record::Batch;
use crate::store::{Health, Store};

/// Number of a batch, counted from 1 for each worker.
pub type Ticket = u64;

/// Called by the committer's thread when a worker's durable ticket or the health has changed; must not block.
pub type Wake = Box<dyn Fn() + Send>;

/// Bytes of batches that wait at most by default: a commit of 64 MiB takes some tenths of a second, longer nobody should wait.
pub const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes that one commit takes from the queue.
const COMMIT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// A commit that failed is tried again after this.
const RETRY: Duration = Duration::from_millis(200);
/// Emptied batches that are kept for the next ones.
const SPARE_BATCHES_MAX: usize = 64;
/// A larger one is not kept.
const SPARE_BYTES_MAX: usize = 1024 * 1024;

/// Starts, watches and stops the thread.
#[derive(Debug)]
pub struct Committer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), WriteError>>>,
}

/// A worker's way to the thread.
#[derive(Debug)]
pub struct Submitter {
    shared: Arc<Shared>,
    worker: usize,
    last: Ticket,
}

#[derive(Debug)]
struct Shared {
    /// Guards what waits; held for a push or a take, never during a write.
    queue: Mutex<Queue>,
    arrived: Condvar,
    queue_bytes_max: usize,
    /// By worker.
    durable: Box<[AtomicU64]>,
    health: AtomicU8,
    /// Guards the text of the last failure; taken when a commit fails and when someone asks.
    failure: Mutex<Option<String>>,
    metrics: Metrics,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Submitted>,
    bytes: usize,
    spare: Vec<Batch>,
    stopping: bool,
}

#[derive(Debug)]
struct Submitted {
    worker: usize,
    ticket: Ticket,
    batch: Batch,
}

impl Committer {
    /// Starts the thread, with a submitter for each worker in the order of `wakes`. `queue_bytes_max` bounds what waits, in bytes;
    /// one batch is always taken.
    ///
    /// # Errors
    ///
    /// The operating system has no thread to give.
    pub fn start<D>(
        store: Store<D>,
        wakes: Vec<Wake>,
        queue_bytes_max: usize,
    ) -> io::Result<(Self, Vec<Submitter>)>
    where
        D: Disk + 'static,
        D::File: 'static,
    {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            arrived: Condvar::new(),
            queue_bytes_max,
            durable: wakes.iter().map(|_| AtomicU64::new(0)).collect(),
            health: AtomicU8::new(store.health() as u8),
            failure: Mutex::default(),
            metrics: Metrics::default(),
        });
        shared.metrics.usage(store.usage());
        let submitters = (0..wakes.len()).map(|worker| Submitter {
            shared: Arc::clone(&shared),
            worker,
            last: 0,
        });
        let submitters = submitters.collect();
        let writer = Writer {
            applied: vec![0; wakes.len()],
            store,
            wakes,
            shared: Arc::clone(&shared),
        };
        let thread = thread::Builder::new().name("storage".to_owned());
        let thread = Some(thread.spawn(move || writer.run())?);
        Ok((Self { shared, thread }, submitters))
    }

    /// Whether the node may promise anything.
    pub fn health(&self) -> Health {
        self.shared.health()
    }

    /// Why the last commit failed, if it did.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure().clone()
    }

    /// The counters.
    pub fn metrics(&self) -> MetricsSnapshot {
        self.shared.metrics.snapshot()
    }

    /// Writes what waits, ends the log in order and ends the thread. What is submitted afterwards is never written.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the last commit fails: what was not durable before is not.
    pub fn stop(mut self) -> Result<(), WriteError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), WriteError> {
        self.shared.queue().stopping = true;
        self.shared.arrived.notify_one();
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        // Who wants to know how it ended calls `stop`.
        self.end().unwrap_or_default();
    }
}

impl Submitter {
    /// Hands in a batch and leaves an empty one; its ticket, or none if the queue is full and the batch stays as it is.
    /// Never waits. An empty batch gets the last ticket again.
    #[must_use = "without a ticket nobody learns when the batch is durable, or that it stayed behind"]
    pub fn submit(&mut self, batch: &mut Batch) -> Option<Ticket> {
        if batch.is_empty() {
            return Some(self.last);
        }
        batch.end_unit();
        let mut queue = self.shared.queue();
        let bytes = queue.bytes + batch.bytes_len();
        if bytes > self.shared.queue_bytes_max && !queue.waiting.is_empty() {
            drop(queue);
            self.shared.metrics.queue_was_full();
            return None;
        }
        self.last += 1;
        let empty = queue.spare.pop().unwrap_or_default();
        queue.bytes = bytes;
        queue.waiting.push_back(Submitted {
            worker: self.worker,
            ticket: self.last,
            batch: std::mem::replace(batch, empty),
        });
        drop(queue);
        self.shared.metrics.queue(bytes);
        self.shared.arrived.notify_one();
        Some(self.last)
    }

    /// The last ticket whose batch is durable, and with it all before.
    pub fn durable(&self) -> Ticket {
        let durable = self.shared.durable.get(self.worker);
        durable.map_or(0, |ticket| ticket.load(Ordering::Acquire))
    }

    /// The last ticket given.
    pub fn last(&self) -> Ticket {
        self.last
    }

    /// Whether the node may promise anything.
    pub fn health(&self) -> Health {
        self.shared.health()
    }

    /// Why the last commit failed, if it did.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure().clone()
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failure(&self) -> MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn health(&self) -> Health {
        match self.health.load(Ordering::Acquire) {
            0 => Health::Healthy,
            1 => Health::Full,
            _ => Health::Failing,
        }
    }
}

/// What the thread has.
struct Writer<D: Disk> {
    store: Store<D>,
    wakes: Vec<Wake>,
    shared: Arc<Shared>,
    /// Last ticket of each worker that the store has taken.
    applied: Vec<Ticket>,
}

impl<D: Disk> Writer<D> {
    fn run(mut self) -> Result<(), WriteError> {
        let mut taken = Vec::new();
        let mut may_tidy = true;
        loop {
            let stopping = self.wait(may_tidy, &mut taken);
            if !taken.is_empty() || self.store.has_pending() {
                self.apply(&mut taken);
                self.commit_or_retry(stopping)?;
                may_tidy = true;
            } else if stopping {
                return self.store.close();
            } else {
                may_tidy = self.tidy();
            }
        }
    }

    /// An error ends the thread only when there is no time left to try again.
    fn commit_or_retry(&mut self, stopping: bool) -> Result<(), WriteError> {
        let result = self.commit();
        if stopping { result } else { Ok(()) }
    }

    /// Waits for work and takes it; true if the committer is to stop.
    fn wait(&self, may_tidy: bool, taken: &mut Vec<Submitted>) -> bool {
        let mut queue = self.shared.queue();
        let failing = self.store.health() == Health::Failing;
        if failing && !queue.stopping {
            // What waits stays in the queue, so that it fills and the publishers are held back.
            let waited = self
                .shared
                .arrived
                .wait_timeout_while(queue, RETRY, |queue| !queue.stopping);
            return waited.unwrap_or_else(PoisonError::into_inner).0.stopping;
        }
        if !may_tidy {
            let idle = |queue: &mut Queue| queue.waiting.is_empty() && !queue.stopping;
            let waited = self.shared.arrived.wait_while(queue, idle);
            queue = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let mut bytes = 0;
        while bytes < COMMIT_BYTES_MAX
            && let Some(submitted) = queue.waiting.pop_front()
        {
            bytes += submitted.batch.bytes_len();
            taken.push(submitted);
        }
        queue.bytes -= bytes;
        self.shared.metrics.queue(queue.bytes);
        queue.stopping
    }

    fn apply(&mut self, taken: &mut Vec<Submitted>) {
        for submitted in taken.iter_mut() {
            let applied = self.store.apply(&submitted.batch);
            // Only a bug of ours makes a batch that cannot be read, and to acknowledge it would be a lie.
            assert!(applied.is_ok(), "a batch that cannot be read");
            self.applied[submitted.worker] = submitted.ticket;
            submitted.batch.clear();
        }
        let is_kept = |batch: &Batch| batch.capacity() <= SPARE_BYTES_MAX;
        let emptied = taken
            .drain(..)
            .map(|submitted| submitted.batch)
            .filter(is_kept);
        let mut queue = self.shared.queue();
        let room = SPARE_BATCHES_MAX.saturating_sub(queue.spare.len());
        queue.spare.extend(emptied.take(room));
    }

    fn commit(&mut self) -> Result<(), WriteError> {
        let watch = Stopwatch::start();
        let result = self.store.commit();
        match &result {
            Ok(committed) => {
                self.shared.metrics.committed(*committed, watch.elapsed());
                self.shared.metrics.usage(self.store.usage());
                self.publish_tickets();
            }
            Err(error) => {
                self.failed(error);
                self.shared.metrics.usage(self.store.usage());
            }
        }
        self.publish_health();
        result.map(|_| ())
    }

    /// True if more could follow at once.
    fn tidy(&mut self) -> bool {
        let result = self.store.tidy();
        if let Err(error) = &result {
            self.failed(error);
        }
        self.shared.metrics.usage(self.store.usage());
        self.publish_health();
        result.unwrap_or(false)
    }

    fn publish_tickets(&self) {
        let workers = self.shared.durable.iter().zip(&self.applied);
        for ((durable, &ticket), wake) in workers.zip(&self.wakes) {
            if durable.swap(ticket, Ordering::Release) != ticket {
                wake();
            }
        }
    }

    fn failed(&self, error: &WriteError) {
        self.shared.metrics.failed();
        let cause = std::error::Error::source(error);
        let text = cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
        *self.shared.failure() = Some(text);
    }

    fn publish_health(&self) {
        let health = self.store.health();
        let before = self.shared.health.swap(health as u8, Ordering::AcqRel);
        if before == health as u8 {
            return;
        }
        if health != Health::Failing {
            *self.shared.failure() = None;
        }
        self.wakes.iter().for_each(|wake| wake());
    }
}
