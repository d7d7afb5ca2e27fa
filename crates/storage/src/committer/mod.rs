//! The thread that writes for all workers: what they hand in while one commit is under way is the
//! next commit.

#[cfg(feature = "testing")]
mod stepper;
mod writer;

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

#[cfg(feature = "testing")]
pub use stepper::Stepper;

use crate::disk::Disk;
use crate::log::WriteError;
use crate::metrics::{Metrics, MetricsSnapshot};
use crate::record::Batch;
use crate::store::{Health, Store};
use writer::Writer;

/// Number of a batch, counted from 1 for each worker.
pub type Ticket = u64;

/// Called by the committer's thread when a worker's durable ticket or the health has changed; must
/// not block.
pub type Wake = Box<dyn Fn() + Send>;

/// Bytes of batches that wait at most by default: a commit of 64 MiB takes some tenths of a second,
/// longer nobody should wait.
pub const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;

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
    /// Its last ticket whose batch is durable.
    durable: Arc<OwnLines<AtomicU64>>,
    worker: usize,
    last: Ticket,
}

#[derive(Debug)]
struct Shared {
    /// Guards what waits; held for a push or a take, never during a write.
    queue: Mutex<Queue>,
    arrived: Condvar,
    queue_bytes_max: usize,
    /// Read by workers for each message, and written when it changes.
    health: OwnLines<AtomicU8>,
    /// Guards the text of the last failure; taken when a commit fails and when someone asks.
    failure: Mutex<Option<String>>,
    metrics: Metrics,
}

/// On cache lines of its own: what one worker reads often is not where others write.
#[derive(Debug, Default)]
#[repr(align(128))]
struct OwnLines<T>(T);

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Submitted>,
    bytes: usize,
    spare: Vec<Batch>,
    /// Somebody wants to know whether the folder is still where it was.
    looks: bool,
    stopping: bool,
}

#[derive(Debug)]
struct Submitted {
    worker: usize,
    ticket: Ticket,
    batch: Batch,
}

impl Committer {
    /// Starts the thread, with a submitter for each worker in the order of `wakes`.
    /// `queue_bytes_max` bounds what waits, in bytes; one batch is always taken.
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
        let (writer, submitters) = Writer::new(store, wakes, queue_bytes_max);
        let shared = Arc::clone(writer.shared());
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

    /// Writes what waits, ends the log in order and ends the thread. What is submitted afterwards
    /// is never written.
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
    /// Hands in a batch and leaves an empty one; its ticket, or none if the queue is full and the
    /// batch stays as it is. Never waits. An empty batch gets the last ticket again.
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

    /// Has the thread look whether the folder is still where it was; the health tells what it
    /// found.
    pub fn look(&self) {
        self.shared.queue().looks = true;
        self.shared.arrived.notify_one();
    }

    /// The last ticket whose batch is durable, and with it all before.
    pub fn durable(&self) -> Ticket {
        self.durable.0.load(Ordering::Acquire)
    }

    /// The last ticket given.
    pub fn last(&self) -> Ticket {
        self.last
    }

    /// The counters.
    pub fn metrics(&self) -> MetricsSnapshot {
        self.shared.metrics.snapshot()
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
        match self.health.0.load(Ordering::Acquire) {
            0 => Health::Healthy,
            1 => Health::Full,
            _ => Health::Failing,
        }
    }
}
