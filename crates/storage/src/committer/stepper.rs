//! The thread's work done step by step, for tests that decide when and in which order everything
//! happens.

use std::fmt;
use std::sync::Arc;

use super::writer::Writer;
use super::{Committer, Submitter, Wake};
use crate::disk::Disk;
use crate::log::WriteError;
use crate::store::{Store, Usage};

/// The work of a [`Committer`] without its thread. Dropped, it ends as a process that is killed.
pub struct Stepper<D: Disk>(Writer<D>);

impl<D: Disk> fmt::Debug for Stepper<D> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Stepper").finish_non_exhaustive()
    }
}

impl Committer {
    /// As [`Committer::start`], but the caller does the work of the thread: the committer only
    /// shows how it goes, and its [`Committer::stop`] writes nothing.
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
    /// Commits what waits, as the thread does when it is woken and, after a failure, when it tries
    /// again; false if nothing was to do.
    ///
    /// # Errors
    ///
    /// [`WriteError`]: nothing became durable, all of it waits for the next step.
    pub fn step(&mut self) -> Result<bool, WriteError> {
        self.0.step()
    }

    /// What the thread does when it has nothing else to do; true if more of it could follow.
    pub fn tidy_step(&mut self) -> bool {
        self.0.tidy()
    }

    /// What the store takes and does.
    pub fn usage(&self) -> Usage {
        self.0.store().usage()
    }

    /// Commits what waits and ends the log in order, as [`Committer::stop`] does with a thread.
    ///
    /// # Errors
    ///
    /// As [`Committer::stop`].
    pub fn stop(self) -> Result<(), WriteError> {
        self.0.stop()
    }
}
