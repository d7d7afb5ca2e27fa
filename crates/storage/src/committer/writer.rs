//! The work of the thread: take queued batches, apply and commit them, inform the workers.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{OwnLines, Shared, Submitted, Submitter, Ticket, Wake};
use crate::clock::Stopwatch;
use crate::disk::Disk;
use crate::log::WriteError;
use crate::metrics::Metrics;
use crate::record::Batch;
use crate::store::{Health, Store};

/// Bytes after which a commit takes no further batches from the queue.
pub(super) const COMMIT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Delay before a failed commit is retried.
const RETRY: Duration = Duration::from_millis(200);
/// Highest number of empty batches that are kept for reuse.
pub(super) const SPARE_BATCHES_MAX: usize = 64;
/// Largest capacity of a batch that is kept for reuse.
pub(super) const SPARE_BYTES_MAX: usize = 1024 * 1024;

/// The state of the thread.
pub(super) struct Writer<D: Disk> {
    store: Store<D>,
    wakes: Vec<Wake>,
    shared: Arc<Shared>,
    /// Tickets by worker.
    tickets: Vec<Tickets>,
    /// Workers with batches in the current commit, each once.
    committing: Vec<usize>,
    /// Batches of the current commit; empty between two steps.
    taken: Vec<Submitted>,
}

/// The tickets of one worker.
#[derive(Debug, Default)]
struct Tickets {
    /// The last ticket that the store has applied.
    applied: Ticket,
    /// Whether it is part of the current commit.
    is_committing: bool,
    /// The last durable ticket, for the worker to read.
    durable: Arc<OwnLines<AtomicU64>>,
}

impl<D: Disk> Writer<D> {
    /// Creates a writer, and a submitter for each worker.
    pub(super) fn new(
        store: Store<D>,
        wakes: Vec<Wake>,
        queue_bytes_max: usize,
    ) -> (Self, Vec<Submitter>) {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            arrived: Condvar::new(),
            queue_bytes_max,
            health: OwnLines(AtomicU8::new(store.health() as u8)),
            failure: Mutex::default(),
            metrics: Metrics::default(),
        });
        shared.metrics.usage(store.usage());
        let tickets: Vec<_> = wakes.iter().map(|_| Tickets::default()).collect();
        let numbered = tickets.iter().enumerate();
        let submitters = numbered.map(|(worker, tickets)| Submitter {
            shared: Arc::clone(&shared),
            durable: Arc::clone(&tickets.durable),
            worker,
            last: 0,
        });
        let submitters = submitters.collect();
        let writer = Self {
            tickets,
            committing: Vec::new(),
            store,
            wakes,
            shared,
            taken: Vec::new(),
        };
        (writer, submitters)
    }

    /// The store, for tests without another thread.
    #[cfg(feature = "testing")]
    pub(super) fn store(&self) -> &Store<D> {
        &self.store
    }

    /// Commits the queued batches and closes the log.
    #[cfg(feature = "testing")]
    pub(super) fn stop(mut self) -> Result<(), WriteError> {
        self.shared.queue().stopping = true;
        while self.step()? {}
        self.store.close()
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Runs the thread until it is stopped.
    pub(super) fn run(mut self) -> Result<(), WriteError> {
        let mut may_tidy = true;
        loop {
            let stopping = self.wait(may_tidy);
            may_tidy = match self.step() {
                // An error ends the thread only when it is being stopped, without time for a retry.
                Err(error) if stopping => return Err(error),
                Ok(true) | Err(_) => true,
                Ok(false) if stopping => return self.store.close(),
                Ok(false) => self.tidy(),
            };
        }
    }

    /// Commits the queued batches; returns `false` if there are none.
    pub(super) fn step(&mut self) -> Result<bool, WriteError> {
        self.look_if_asked()?;
        self.take();
        if self.taken.is_empty() && !self.store.has_pending() {
            return Ok(false);
        }
        self.apply();
        self.commit()?;
        Ok(true)
    }

    /// Uses idle time for maintenance; returns whether more could follow at once.
    pub(super) fn tidy(&mut self) -> bool {
        let result = self.store.tidy();
        if let Err(error) = &result {
            self.failed(error);
        }
        self.shared.metrics.usage(self.store.usage());
        self.publish_health();
        result.unwrap_or(false)
    }

    /// Waits for work; returns whether the committer must stop.
    fn wait(&self, may_tidy: bool) -> bool {
        let queue = self.shared.queue();
        let arrived = &self.shared.arrived;
        let queue = if self.is_failing() {
            let waited = arrived.wait_timeout_while(queue, RETRY, |queue| !queue.stopping);
            waited.unwrap_or_else(PoisonError::into_inner).0
        } else if may_tidy {
            queue
        } else {
            let waited = arrived.wait_while(queue, |queue| !queue.has_work());
            waited.unwrap_or_else(PoisonError::into_inner)
        };
        queue.stopping
    }

    fn look_if_asked(&mut self) -> Result<(), WriteError> {
        if !std::mem::take(&mut self.shared.queue().looks) || self.is_failing() {
            return Ok(());
        }
        let result = self.store.look();
        if let Err(error) = &result {
            self.failed(error);
            self.publish_health();
        }
        result
    }

    fn take(&mut self) {
        let is_failing = self.is_failing();
        let mut queue = self.shared.queue();
        if is_failing && !queue.stopping {
            // The batches stay in the queue, so that it fills up and the publishers are held back.
            return;
        }
        let mut bytes = 0;
        while bytes < COMMIT_BYTES_MAX
            && let Some(submitted) = queue.waiting.pop_front()
        {
            bytes += submitted.batch.bytes_len();
            self.taken.push(submitted);
        }
        queue.bytes -= bytes;
        self.shared.metrics.queue(queue.bytes);
    }

    fn apply(&mut self) {
        for submitted in &mut self.taken {
            let applied = self.store.apply(&submitted.batch);
            // Only a bug in this program produces a batch that cannot be read, and such a batch
            // must not be acknowledged.
            assert!(applied.is_ok(), "a batch that cannot be read");
            let tickets = &mut self.tickets[submitted.worker];
            tickets.applied = submitted.ticket;
            if !std::mem::replace(&mut tickets.is_committing, true) {
                self.committing.push(submitted.worker);
            }
            submitted.batch.clear();
        }
        let is_kept = |batch: &Batch| batch.capacity() <= SPARE_BYTES_MAX;
        let emptied = self
            .taken
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

    /// Wakes only the workers whose batches became durable.
    fn publish_tickets(&mut self) {
        for worker in self.committing.drain(..) {
            let tickets = &mut self.tickets[worker];
            tickets.is_committing = false;
            tickets.durable.0.store(tickets.applied, Ordering::Release);
            self.wakes[worker]();
        }
    }

    fn is_failing(&self) -> bool {
        self.store.health() == Health::Failing
    }

    fn failed(&self, error: &WriteError) {
        self.shared.metrics.failed();
        let cause = std::error::Error::source(error);
        let text = cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
        *self.shared.failure() = Some(text);
    }

    fn publish_health(&self) {
        let health = self.store.health();
        let before = self.shared.health.0.swap(health as u8, Ordering::AcqRel);
        if before == health as u8 {
            return;
        }
        if health != Health::Failing {
            *self.shared.failure() = None;
        }
        self.wakes.iter().for_each(|wake| wake());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::sim::{Faults, SimStorage};
    use crate::store::Options;

    fn writer(storage: &SimStorage) -> Writer<crate::disk::sim::SimDisk> {
        let (store, ..) = Store::open(storage.open().unwrap(), Options::default()).unwrap();
        Writer::new(store, vec![Box::new(|| ())], 1000).0
    }

    #[test]
    fn the_thread_does_not_wait_while_tidying_may_continue() {
        let writer = writer(&SimStorage::new(1));
        assert!(!writer.wait(true));
        writer.shared.queue().stopping = true;
        assert!(writer.wait(true) && writer.wait(false));
    }

    #[test]
    fn a_failed_commit_is_retried_after_a_delay_and_at_once_on_a_stop() {
        let storage = SimStorage::new(2);
        let mut writer = writer(&storage);
        storage.set_faults(Faults {
            write_errors: 1000,
            ..Faults::default()
        });
        let change = crate::record::Change::Received {
            session: 1,
            packet_id: thrum_codec::PacketId::new(1).unwrap(),
        };
        let mut batch = Batch::default();
        batch.push(&change);
        writer.store.apply(&batch).unwrap();
        writer.step().unwrap_err();
        let watch = Stopwatch::start();
        assert!(!writer.wait(true));
        assert!(watch.elapsed() >= RETRY);
        writer.shared.queue().stopping = true;
        assert!(writer.wait(true));
    }
}
