//! The thread that writes for all workers: the batches submitted during one commit form the next
//! commit.

#[cfg(feature = "testing")]
mod stepper;
#[cfg(test)]
mod tests;
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

/// Number of a batch, starting at 1 for each worker.
pub type Ticket = u64;

/// Called by the committer's thread when a worker's durable ticket or the health has changed; must
/// not block.
pub type Wake = Box<dyn Fn() + Send>;

/// Default limit of the bytes in queued batches: a commit of 64 MiB takes some tenths of a second,
/// and nothing should be delayed longer.
pub const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Starts, monitors and stops the thread.
#[derive(Debug)]
pub struct Committer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), WriteError>>>,
}

/// A worker's handle to the thread.
#[derive(Debug)]
pub struct Submitter {
    shared: Arc<Shared>,
    /// The worker's last ticket with a durable batch.
    durable: Arc<OwnLines<AtomicU64>>,
    worker: usize,
    last: Ticket,
}

/// Reads the state of the thread, from any thread and without a lock.
#[derive(Clone, Debug)]
pub struct StorageMonitor {
    shared: Arc<Shared>,
}

impl StorageMonitor {
    /// Whether the node may acknowledge messages.
    pub fn health(&self) -> Health {
        self.shared.health()
    }

    /// The counters.
    pub fn metrics(&self) -> MetricsSnapshot {
        self.shared.metrics.snapshot()
    }
}

#[derive(Debug)]
struct Shared {
    /// Guards the queue; held for a push or a take, never during a write.
    queue: Mutex<Queue>,
    arrived: Condvar,
    queue_bytes_max: usize,
    /// Read by workers for each message; written only when it changes.
    health: OwnLines<AtomicU8>,
    /// Guards the text of the last failure; taken when a commit fails and when the text is read.
    failure: Mutex<Option<String>>,
    metrics: Metrics,
}

/// A value on cache lines of its own, so that writes of other threads elsewhere do not slow down
/// its readers.
#[derive(Debug, Default)]
#[repr(align(128))]
struct OwnLines<T>(T);

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Submitted>,
    bytes: usize,
    spare: Vec<Batch>,
    /// Whether a worker asked to check the location of the directory.
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
    /// `queue_bytes_max` limits the queued batches, in bytes; an empty queue accepts a batch of any
    /// size.
    ///
    /// # Errors
    ///
    /// The operating system cannot start a thread.
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

    /// Whether the node may acknowledge messages.
    pub fn health(&self) -> Health {
        self.shared.health()
    }

    /// Text of the last failure, if the last commit failed.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure().clone()
    }

    /// The counters.
    pub fn metrics(&self) -> MetricsSnapshot {
        self.shared.metrics.snapshot()
    }

    /// A reader of the state of the thread.
    pub fn monitor(&self) -> StorageMonitor {
        let shared = Arc::clone(&self.shared);
        StorageMonitor { shared }
    }

    /// Writes the queued batches, closes the log and ends the thread. Batches submitted afterwards
    /// are never written.
    ///
    /// # Errors
    ///
    /// [`WriteError`] if the last commit fails: the batches that were not durable before are not
    /// durable.
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
        // A caller that needs the result calls `stop`.
        self.end().unwrap_or_default();
    }
}

impl Submitter {
    /// Submits a batch and replaces it by an empty one. Returns its ticket, or `None` if the queue
    /// is full, in which case the batch is unchanged. Never blocks. An empty batch gets the last
    /// ticket again.
    #[must_use = "the ticket shows when the batch is durable, and its absence that the batch was not taken"]
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

    /// Asks the thread to check that the directory is still at its path; the health shows the
    /// result.
    pub fn look(&self) {
        self.shared.queue().looks = true;
        self.shared.arrived.notify_one();
    }

    /// The last ticket whose batch is durable, along with all earlier ones.
    pub fn durable(&self) -> Ticket {
        self.durable.0.load(Ordering::Acquire)
    }

    /// The last assigned ticket.
    pub fn last(&self) -> Ticket {
        self.last
    }

    /// The counters.
    pub fn metrics(&self) -> MetricsSnapshot {
        self.shared.metrics.snapshot()
    }

    /// Whether the node may acknowledge messages.
    pub fn health(&self) -> Health {
        self.shared.health()
    }

    /// Text of the last failure, if the last commit failed.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure().clone()
    }
}

impl Queue {
    /// The thread has something to do.
    fn has_work(&self) -> bool {
        !self.waiting.is_empty() || self.looks || self.stopping
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
