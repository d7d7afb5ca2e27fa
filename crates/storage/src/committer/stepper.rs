//! The work of the thread in single steps, for tests that control the order of all events.

use std::fmt;
use std::sync::Arc;

use super::writer::Writer;
use super::{Committer, Submitter, Wake};
use crate::disk::Disk;
use crate::log::WriteError;
use crate::store::{Store, Usage};

/// The work of a [`Committer`] without its thread. Dropping it is equivalent to killing the
/// process.
pub struct Stepper<D: Disk>(Writer<D>);

impl<D: Disk> fmt::Debug for Stepper<D> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Stepper").finish_non_exhaustive()
    }
}

impl Committer {
    /// As [`Committer::start`], but the caller does the work of the thread. The committer only
    /// shows the state, and its [`Committer::stop`] writes nothing.
    pub fn stepped<D: Disk>(
        store: Store<D>,
        wakes: Vec<Wake>,
        queue_bytes_max: usize,
    ) -> (Self, Stepper<D>, Vec<Submitter>) {
        let (writer, submitters) = Writer::new(store, wakes, queue_bytes_max);
        let shared = Arc::clone(writer.shared());
        let committer = Self {
            shared,
            thread: None,
        };
        (committer, Stepper(writer), submitters)
    }
}

impl<D: Disk> Stepper<D> {
    /// Commits the queued batches, as the thread does after a wake-up and, after a failure, in its
    /// retry; returns `false` if there was nothing to do.
    ///
    /// # Errors
    ///
    /// [`WriteError`]: no batch became durable, and all of them remain for the next step.
    pub fn step(&mut self) -> Result<bool, WriteError> {
        self.0.step()
    }

    /// Does the work of an idle thread; returns whether more could follow.
    pub fn tidy_step(&mut self) -> bool {
        self.0.tidy()
    }

    /// Space and activity of the store.
    pub fn usage(&self) -> Usage {
        self.0.store().usage()
    }

    /// Commits the queued batches and closes the log, as [`Committer::stop`] does with a thread.
    ///
    /// # Errors
    ///
    /// As [`Committer::stop`].
    pub fn stop(self) -> Result<(), WriteError> {
        self.0.stop()
    }
}
